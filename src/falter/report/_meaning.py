"""What became of the meaning: one table for the terminal, Markdown and the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from falter.analysis import MEANING_CHECKS, Analysis, Meaning
from falter.report import _numbers as n
from falter.report._escape import line
from falter.report._flow import Column, fitting, flow, padded

__all__ = ["ABOUT", "HEADS", "cells", "failures", "meaning_rows", "meaning_table", "warnings"]

HEADS = ("changed", "edits/100 words", *MEANING_CHECKS, "cosine", "lowest tenth")
ABOUT = (
    "Changed: texts that are really another text, of all. Span, number, negation, quantifier: how "
    "many changed texts lost one. The cosine describes how alike a small encoder finds the two "
    "texts; it is no check, and strengths do not follow it."
)
FAILING = 10


def cells(one: Meaning) -> tuple[str, ...]:
    """The row of one recipe under `HEADS`; an en dash where there is no number."""
    return (
        f"{n.whole(one.changed)}/{n.whole(one.texts)}",
        n.decimal(one.edits_per_100_words, 1),
        *(n.whole(one.lost[check]) for check in MEANING_CHECKS),
        n.decimal(one.cosine, 3),
        n.decimal(one.cosine_low, 3),
    )


def meaning_rows(found: Sequence[Meaning]) -> list[list[str]]:
    """Head and rows of a table in words."""
    return [["recipe", *HEADS], *([line(one.recipe, 60), *cells(one)] for one in found)]


def failures(one: Meaning) -> list[str]:
    """The first items that fail a check, with what they lost."""
    return [
        f"{line(item, 60)}: {check} {line(lost, 80)!r}"
        for item, check, lost in one.failing[:FAILING]
    ]


def warnings(analysis: Analysis) -> list[str]:
    """One sentence a recipe that lost something, for the summary."""
    return [
        f"{line(one.recipe, 60)} lost {_listed(one)} (of {n.whole(one.changed)} changed prompts "
        f"looked at in {line(one.task, 60)})"
        for one in analysis.meaning
        if any(one.lost.values())
    ]


def _listed(one: Meaning) -> str:
    parts = [f"a {check} in {n.whole(count)}" for check, count in one.lost.items() if count]
    return ", ".join(parts)


def meaning_table(found: Sequence[Meaning], console: Console) -> None:
    """Print a table a task, then the items that fail a check, then samples of one recipe."""
    for number, (task, members) in enumerate(groupby(found, key=lambda one: one.task)):
        if number:
            console.print()
        _table(task, list(members), console)
    for row in flow(ABOUT, min(console.width, 100)):
        console.print(Text(row, "dim"))
    for one in found:
        _details(one, console, samples=len(found) == 1)


def _table(task: str, members: Sequence[Meaning], console: Console) -> None:
    labels = [line(one.recipe, 60) for one in members]
    rows = [cells(one) for one in members]
    columns = [
        Column(head=head, cells=[row[at] for row in rows], rank=at) for at, head in enumerate(HEADS)
    ]
    least = min(30, max(map(len, labels)))
    kept, room = fitting(columns, console.width, least)
    room = min(room, max(len(task), *map(len, labels)))
    head = padded(line(task, room), room, left=True)
    console.print(Text(head + "".join("  " + padded(c.head, c.width) for c in kept), "bold"))
    for at, name in enumerate(labels):
        told = "".join("  " + padded(c.cells[at], c.width) for c in kept)
        console.print(Text(padded(line(name, room), room, left=True) + told))


def _details(one: Meaning, console: Console, *, samples: bool) -> None:
    rows = [f"  {row}" for row in failures(one)]
    if rows:
        console.print(Text(f"\n{line(one.recipe, 60)} lost something:", "yellow"))
    if samples:
        rows += [f"\n  {line(before, 300)}\n  {line(after, 300)}" for before, after in one.samples]
    for row in rows:
        console.print(Text(row), soft_wrap=True)
