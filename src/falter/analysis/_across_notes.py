"""What the data at hand do not allow, and why: said once, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from falter.analysis._settings import Settings
from falter.analysis._stack import Stack
from falter.analysis._table import Table

__all__ = ["notes_of"]

NAMED = 12


def notes_of(
    tables: Sequence[Table], found: Sequence[Stack], settings: Settings
) -> tuple[str, ...]:
    """First what was said before the numbers were made, then what could not be made."""
    if not tables:
        return settings.notes
    made = (*_baseline(tables), *_design(tables), *_scores(tables), *_models(found))
    return (*settings.notes, *made)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _baseline(tables: Sequence[Table]) -> Iterator[str]:
    lacking = [table for table in tables if not table.based]
    if lacking and len(lacking) < len(tables):
        told = _listed([f"{t.panel.model.label} on {t.panel.task}" for t in lacking])
        yield f"These lack the baseline condition and have no drops: {told}."
    elif lacking:
        names = list(dict.fromkeys(r.label for t in lacking for r in t.recipes))
        yield (
            "No condition is named as the baseline, so there is no drop, no verdict and no noise "
            f"floor. The conditions are: {_listed(names)}. Name one with --baseline."
        )


def _design(tables: Sequence[Table]) -> Iterator[str]:
    widths = {len(t.columns) + t.based for t in tables}
    if widths == {1}:
        yield "One condition: nothing can be said about prompts."
    if all(table.repeats == 1 for table in tables):
        yield (
            "One run: variance between runs is not identified. Asking 5 to 10 % of the cells "
            "twice would tell it apart."
        )
    if any(table.uneven for table in tables):
        yield (
            "Some conditions have fewer runs than others: components take each condition's mean "
            "over its runs."
        )
    if any(table.clusters is not None for table in tables):
        yield (
            "Intervals of drops, averages and rankings take clusters as the unit; those of a "
            "panel's variance components take items."
        )
    if not any(table.output is not None for table in tables):
        yield "Answers are not known, only scores: output consistency cannot be computed."


def _scores(tables: Sequence[Table]) -> Iterator[str]:
    values = [t.value[~np.isnan(t.value)] for t in tables]
    known = [v for v in values if len(v)]
    if not known:
        yield "No cell has a score."
        return
    low, high = min(float(v.min()) for v in known), max(float(v.max()) for v in known)
    if low < 0.0 or high > 1.0:
        yield (
            f"Scores run from {low:g} to {high:g}: a point is a hundredth of their unit, and the "
            "shares of items all right or all wrong mean nothing."
        )
    if any(not np.isin(v, (0.0, 1.0)).all() for v in known):
        yield (
            "Scores are not all 0 or 1: no Cochran's Q where they are not, lost and gained count "
            "changes of more than 0.5."
        )


def _models(found: Sequence[Stack]) -> Iterator[str]:
    models = {model for stack in found for model in stack.models}
    most = max(len(stack.models) for stack in found)
    if len(models) == 1:
        yield "One model: no ranking."
    elif most == 1:
        yield "No two models on the same task: no ranking."
    elif most == 2:
        yield "Two models: rank correlation needs three; survival of their order is given."
    yield from _lacking([stack for stack in found if stack.lacking and len(stack.models) > 1])
    if len({stack.models for stack in found}) > 1:
        yield "Not every model has every task: agreement of rankings is over the tasks all have."
    if len(found) == 1:
        yield "One task: nothing is pooled over tasks."


def _lacking(found: Sequence[Stack]) -> Iterator[str]:
    """Tasks whose models have different conditions; those that lack the same ones together."""
    for lacking in dict.fromkeys(stack.lacking for stack in found):
        same = [stack for stack in found if stack.lacking == lacking]
        yield (
            f"On {_listed([stack.task for stack in same])}, models are compared on the "
            f"{len(same[0].recipes)} conditions that all of them have; some lack: "
            f"{_listed(lacking)}."
        )
