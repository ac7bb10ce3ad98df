"""Notes on what these data cannot show, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from falter.analysis._settings import Settings
from falter.analysis._stack import Stack
from falter.analysis._table import Table

__all__ = ["notes_of"]

MOST_NAMED = 12


def notes_of(
    tables: Sequence[Table], by_task: Sequence[Stack], settings: Settings
) -> tuple[str, ...]:
    """The notes that the settings bring along, then those about the tables."""
    if not tables:
        return settings.notes
    notes = (*_baseline(tables), *_design(tables), *_scores(tables), *_models(by_task))
    return (*settings.notes, *notes)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _baseline(tables: Sequence[Table]) -> Iterator[str]:
    lacking = [table for table in tables if not table.has_baseline]
    if lacking and len(lacking) < len(tables):
        panels = _listed([f"{t.panel.model.label} on {t.panel.task}" for t in lacking])
        yield f"These have no baseline condition, so they have no drops: {panels}."
    elif lacking:
        names = list(dict.fromkeys(r.label for t in lacking for r in t.recipes))
        yield (
            "No condition is named as the baseline, so there is no drop, no verdict and no noise "
            f"floor. The conditions are: {_listed(names)}. Name one with --baseline."
        )


def _design(tables: Sequence[Table]) -> Iterator[str]:
    widths = {len(t.columns) + t.has_baseline for t in tables}
    if widths == {1}:
        yield "There is only one condition, so nothing can be said about prompts."
    asked_again = any(r.repeat and not r.perturbs for table in tables for r in table.recipes)
    if all(table.repeats == 1 for table in tables) and not asked_again:
        yield (
            "Every question was asked only once, so variance between runs cannot be told apart. "
            "Asking 5 to 10 % of the cells twice would be enough."
        )
    if any(table.uneven for table in tables):
        yield (
            "Some conditions have fewer runs than others, so variance components are of each "
            "condition's mean over its runs."
        )
    if any(table.clusters is not None for table in tables):
        yield (
            "Intervals of drops, averages and rankings allow for clusters of items; those of a "
            "panel's variance components treat items as independent."
        )
    if not any(table.output is not None for table in tables):
        yield "Only scores are known, not answers, so output consistency cannot be computed."


def _scores(tables: Sequence[Table]) -> Iterator[str]:
    values = [t.value[~np.isnan(t.value)] for t in tables]
    known = [v for v in values if len(v)]
    if not known:
        yield "No cell has a score."
        return
    low, high = min(float(v.min()) for v in known), max(float(v.max()) for v in known)
    if low < 0.0 or high > 1.0:
        yield (
            f"Scores run from {low:g} to {high:g}, so a point is a hundredth of their unit, and "
            "the shares of items that are all right or all wrong mean nothing."
        )
    if any(not np.isin(v, (0.0, 1.0)).all() for v in known):
        yield (
            "Not all scores are 0 or 1. Where they are not, there is no Cochran's Q, and an item "
            "counts as lost or gained when its score changes by more than 0.5."
        )


def _models(by_task: Sequence[Stack]) -> Iterator[str]:
    models = {model for stack in by_task for model in stack.models}
    most = max(len(stack.models) for stack in by_task)
    if len(models) == 1:
        yield "There is only one model, so there is no ranking."
    elif most == 1:
        yield "No two models have the same task, so there is no ranking."
    elif most == 2:
        yield (
            "A rank correlation needs three models. With two, see how many recipes leave the "
            "better one ahead."
        )
    incomplete = [stack for stack in by_task if stack.lacking and len(stack.models) > 1]
    for lacking in dict.fromkeys(stack.lacking for stack in incomplete):
        alike = [stack for stack in incomplete if stack.lacking == lacking]
        yield (
            f"On {_listed([stack.task for stack in alike])}, models are compared on the "
            f"{len(alike[0].recipes)} conditions that all of them have; some models lack: "
            f"{_listed(lacking)}."
        )
    if len({stack.models for stack in by_task}) > 1:
        yield (
            "Not every model has every task, so the agreement of rankings is over the tasks that "
            "all of them have."
        )
    if len(by_task) == 1:
        yield "There is only one task, so nothing is pooled over tasks."
