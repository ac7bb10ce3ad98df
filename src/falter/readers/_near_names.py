"""Names that differ only in white space, in case or by `.0`, and so would not pair."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from falter.core.errors import TaskError
from falter.readers._cells import Cells, Coded

__all__ = ["check_names"]

_POINT_ZERO = re.compile(r"(-?\d+)\.0+")
SHOWN = 3
Pair = tuple[int, int]


def check_names(cells: Cells) -> Cells:
    """The cells, or an error that names what was meant to be one name.

    Two names of a condition, model or task that are equal but for white space or a `.0` are an
    error. Two items are one only if they share a model and task and never a condition: then each
    of them lacks what the other has. A difference in case may be meant, so it is a note.
    """
    notes = []
    for role in ("condition", "model", "task", "item"):
        column: Coded = getattr(cells, role)
        same, cased = _near(column.names)
        if role == "item":
            same, cased = _complements(cells, same), _complements(cells, cased)
        if same:
            raise TaskError(
                f"{_many(role, len(same))} differ only in white space or by '.0': "
                f"{_listed(same, column.names)}",
                hint="they would not be paired; write each name in one way",
            )
        if cased:
            notes.append(
                f"{_many(role, len(cased))} differ only in case and are not taken for the same: "
                f"{_listed(cased, column.names)}."
            )
    return replace(cells, notes=(*cells.notes, *notes))


def _near(names: Sequence[str]) -> tuple[list[Pair], list[Pair]]:
    """Neighbours among names that are equal but for white space or `.0`, and but for case."""
    texts = [_plain(name) for name in names]
    if len({text.casefold() for text in texts}) == len(names):
        return [], []
    plain: defaultdict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        plain[text].append(place)
    cased: defaultdict[str, list[int]] = defaultdict(list)
    for text, group in plain.items():
        cased[text.casefold()].append(group[0])
    return _neighbours(plain.values()), _neighbours(cased.values())


def _neighbours(groups: Iterable[list[int]]) -> list[Pair]:
    return [pair for group in groups for pair in pairwise(group)]


def _plain(name: str) -> str:
    text = " ".join(name.split())
    number = _POINT_ZERO.fullmatch(text) if text.endswith("0") else None
    return number[1] if number else text


def _complements(cells: Cells, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of items of one model and task that never have the same condition."""
    if not pairs:
        return []
    involved = np.zeros(len(cells.item.names), dtype=bool)
    involved[[item for pair in pairs for item in pair]] = True
    rows = involved[cells.item.codes]
    columns = (cells.item, cells.model, cells.task, cells.condition)
    panels: defaultdict[int, set[Pair]] = defaultdict(set)
    conditions: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
    for item, *place in np.unique([c.codes[rows] for c in columns], axis=1).T.tolist():
        panels[item].add((place[0], place[1]))
        conditions[item].add((place[0], place[1], place[2]))
    return [(a, b) for a, b in pairs if panels[a] & panels[b] and not conditions[a] & conditions[b]]


def _many(role: str, count: int) -> str:
    return f"Two {role}s" if count == 1 else f"{count:,} pairs of {role}s"


def _listed(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    texts = [f"{names[a][:60]!r} and {names[b][:60]!r}" for a, b in pairs[:SHOWN]]
    return "; ".join([*texts, "…"] if len(pairs) > SHOWN else texts)
