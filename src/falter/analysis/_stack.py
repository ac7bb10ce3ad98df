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
    `changed` says in which cells a recipe changed the prompt, for any model. `lacking` names those
    recipes that some model lacks. `repeated` are the columns of `recipes` that ask
    the baseline once more: they are in `values` only.
    """

    task: str
    models: tuple[str, ...]
    recipes: tuple[Recipe, ...]
    lacking: tuple[str, ...]
    has_baseline: bool
    repeated: tuple[int, ...]
    cubes: Mapping[str, Floats]
    values: Floats
    changed: NDArray[np.bool_]
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
    has_baseline = all(table.has_baseline for table in tables)
    recipes = [r for r in tables[0].recipes if r.id in shared]
    labels = {r.id: r.label for table in tables for r in table.recipes}
    items = sorted({item for table in tables for item in table.items})
    rows_of = {item: n for n, item in enumerate(items)}
    # Asking the baseline once more is noise: it would count as a condition without an effect.
    repeated = [
        n for n, r in enumerate(recipes) if not r.perturbs and (r.repeat or not has_baseline)
    ]
    cubes, layers = {}, []
    clusters: dict[str, str] = {}
    changed = np.zeros((len(items), len(recipes)), dtype=bool)
    for table in tables:
        columns_of = {r.id: n for n, r in enumerate(table.recipes)}
        columns = [columns_of[r.id] for r in recipes]
        rows = [rows_of[item] for item in table.items]
        changed[rows] |= table.changed()[:, columns]
        in_cube = [column for n, column in enumerate(columns) if n not in repeated]
        cube = table.cube(in_cube, strict=strict)
        cubes[names[table.panel.model.id]] = _aligned(cube, rows, len(items))
        matrix = table.carry(table.matrix(strict=strict))[:, columns]
        layers.append(_aligned(matrix, rows, len(items)))
        if table.clusters is not None:
            clusters |= dict(zip(table.items, table.clusters, strict=True))
    return Stack(
        task=task,
        models=tuple(cubes),
        recipes=tuple(recipes),
        lacking=tuple(label for i, label in labels.items() if i not in shared),
        has_baseline=has_baseline,
        repeated=tuple(repeated),
        cubes=cubes,
        values=np.stack(layers, axis=1),
        changed=changed,
        # An item whose cluster no table knows stands alone.
        clusters=tuple(clusters.get(item, f"item {item}") for item in items) if clusters else None,
    )


def _aligned(cells: Floats, rows: Sequence[int], items: int) -> Floats:
    """The rows in their places among all items; nothing is copied where they are there already."""
    if list(rows) == list(range(items)):
        return cells
    aligned = np.full((items, *cells.shape[1:]), np.nan)
    aligned[list(rows)] = cells
    return aligned
