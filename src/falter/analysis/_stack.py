"""Tables of one task side by side: the same items and conditions for every model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from falter.analysis._table import Table
from falter.core.ids import short
from falter.core.records import Recipe

__all__ = ["Stack", "model_names", "stacks"]

Floats = NDArray[np.float64]


def model_names(tables: Sequence[Table]) -> dict[str, str]:
    """Model ids to names; two models of the same name carry the beginning of their id."""
    labels = {table.panel.model.id: table.panel.model.label for table in tables}
    twice = {label for label, count in Counter(labels.values()).items() if count > 1}
    return {i: f"{name}@{short(i, 6)}" if name in twice else name for i, name in labels.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One task: for every model items × conditions (× runs), rows of NaN where it lacks an item.

    `recipes` are the conditions that all models have, the baseline first where there is one;
    `lacking` names those that some model lacks. `again` are the columns of `recipes` that ask the
    baseline once more: they are in `values` only.
    """

    task: str
    models: tuple[str, ...]
    recipes: tuple[Recipe, ...]
    lacking: tuple[str, ...]
    based: bool
    again: tuple[int, ...]
    cubes: Mapping[str, Floats]
    values: Floats
    clusters: tuple[str, ...] | None

    @property
    def labels(self) -> list[str]:
        return [recipe.label for recipe in self.recipes]


def stacks(tables: Sequence[Table], *, strict: bool) -> tuple[Stack, ...]:
    """The tables by task, in the order of the tasks."""
    names = model_names(tables)
    tasks = dict.fromkeys(table.panel.task for table in tables)
    return tuple(
        _stack(task, [t for t in tables if t.panel.task == task], names, strict) for task in tasks
    )


def _stack(task: str, tables: Sequence[Table], names: Mapping[str, str], strict: bool) -> Stack:
    shared = reduce(lambda a, b: a & b, ({r.id for r in t.recipes} for t in tables))
    based = all(table.based for table in tables)
    recipes = [r for r in tables[0].recipes if r.id in shared]
    every = {r.id: r.label for table in tables for r in table.recipes}
    items = sorted({item for table in tables for item in table.items})
    place = {item: n for n, item in enumerate(items)}
    kept = [n for n, r in enumerate(recipes) if r.perturbs or (based and not r.repeat)]
    cubes, layers = {}, []
    for table in tables:
        at = {r.id: n for n, r in enumerate(table.recipes)}
        columns = [at[r.id] for r in recipes]
        rows = [place[item] for item in table.items]
        cube = table.cube([columns[n] for n in kept], strict=strict)
        cubes[names[table.panel.model.id]] = _aligned(cube, rows, len(items))
        matrix = table.carry(table.matrix(strict=strict))[:, columns]
        layers.append(_aligned(matrix, rows, len(items)))
    return Stack(
        task=task,
        models=tuple(cubes),
        recipes=tuple(recipes),
        lacking=tuple(label for i, label in every.items() if i not in shared),
        based=based,
        again=tuple(n for n in range(len(recipes)) if n not in kept),
        cubes=cubes,
        values=np.stack(layers, axis=1),
        clusters=_clusters(tables, items),
    )


def _aligned(cells: Floats, rows: Sequence[int], items: int) -> Floats:
    """The rows in their places among all items; nothing is copied where they are there already."""
    if list(rows) == list(range(items)):
        return cells
    out = np.full((items, *cells.shape[1:]), np.nan)
    out[list(rows)] = cells
    return out


def _clusters(tables: Sequence[Table], items: Sequence[str]) -> tuple[str, ...] | None:
    """The cluster of every item; an item without one stands alone."""
    known: dict[str, str] = {}
    for table in tables:
        if table.clusters is not None:
            known |= dict(zip(table.items, table.clusters, strict=True))
    return tuple(known.get(item, f"item {item}") for item in items) if known else None
