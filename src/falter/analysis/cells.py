"""Tables from the cells of other sources, and tables of one task stacked by model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from falter.analysis.table import MISSING, STATUSES, Table
from falter.records.errors import UsageError
from falter.records.ids import short
from falter.records.types import BASELINE, Panel, Recipe, Step

# A table with more places than this is refused if fewer than one in MAX_PLACES_PER_CELL has a cell.
MAX_SPARSE_PLACES = 2_000_000
MAX_PLACES_PER_CELL = 20
Ints = NDArray[np.integer]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PanelCells:
    """Cells of one panel as vectors of equal length, with an element for each cell.

    `item`, `condition` and `run` are indices. `outcome` is a place in `OUTCOMES`. `output` numbers
    the answers, -1 where none was extracted; None if answers are not known. Run numbers only order
    the runs of an item and condition.
    """

    item: Ints
    condition: Ints
    run: Ints
    value: NDArray[np.float64]
    outcome: NDArray[np.uint8]
    output: Ints | None = None


def condition_recipe(label: str) -> Recipe:
    """Return another tool's condition as a recipe of one unknown step, so that it has an id."""
    return Recipe(label=label, group="conditions", steps=(Step(name=label, version=0),))


def table_of(
    panel: Panel,
    cells: PanelCells,
    items: Sequence[str],
    conditions: Sequence[str],
    *,
    has_baseline: bool,
    clusters: Sequence[str] | None = None,
) -> Table:
    """Return a table of items × conditions × runs.

    With `has_baseline`, condition 0 is the baseline. A planned place without a cell is missing. A
    run that a condition has for no item is not planned.
    """
    runs = _run_numbers(cells, len(conditions))
    depth = int(runs.max(initial=0)) + 1
    shape = (len(items), len(conditions), depth)
    _refuse_sparse(shape, len(cells.value), panel)
    cell_index = (cells.item, cells.condition, runs)
    value = np.full(shape, np.nan)
    outcome = np.full(shape, MISSING, np.uint8)
    present = np.zeros(shape, np.bool_)
    value[cell_index], outcome[cell_index], present[cell_index] = cells.value, cells.outcome, True
    planned: NDArray[np.bool_] = np.asarray(present.any(axis=0))
    planned[:, 0] = True
    output = None
    if cells.output is not None:
        output = np.full(shape, -1, np.int32)
        output[cell_index] = cells.output
    status = np.full((1, len(conditions), 1), STATUSES.index("changed"), np.uint8)
    recipes = [condition_recipe(condition) for condition in conditions]
    if has_baseline:
        status[:, 0] = STATUSES.index("baseline")
        label = conditions[0]
        recipes[0] = BASELINE if label == BASELINE.label else Recipe(label=label)
    return Table(
        panel=panel,
        recipes=tuple(recipes),
        items=tuple(items),
        value=value,
        outcome=outcome,
        # Constant arrays are broadcast, so they take no memory.
        status=np.broadcast_to(status, shape),
        edits=None,
        margin=np.broadcast_to(np.full((), np.nan), shape),
        in_plan=np.broadcast_to(planned, shape),
        draws=1,
        repeats=depth,
        chance=None,
        item_ids=tuple(items),
        has_baseline=has_baseline,
        output=output,
        clusters=None if clusters is None else tuple(clusters),
    )


def _refuse_sparse(shape: tuple[int, int, int], cells: int, panel: Panel) -> None:
    """Raise UsageError if the table would be nearly empty: a column was probably misread."""
    places = math.prod(shape)
    if places > MAX_SPARSE_PLACES and places > MAX_PLACES_PER_CELL * cells:
        items, conditions, runs = shape
        raise UsageError(
            f"{cells:,} results of {panel.model.label[:80]!r} on {panel.task[:80]!r} would fill a "
            f"table of {items:,} items × {conditions:,} conditions × {runs:,} runs",
            hint="check the columns of items, conditions and runs: --item, --condition, --run",
        )


def _run_numbers(cells: PanelCells, conditions: int) -> Ints:
    """Return every cell's place among the runs of its item and condition, from 0."""
    key = cells.item.astype(np.int64) * conditions + cells.condition
    order = np.lexsort((cells.run, key))
    ordered = key[order]
    # The first place of each item and condition in the sorted cells.
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    number_within = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    places = np.empty(len(key), dtype=np.int32)
    places[order] = number_within
    return places


# Tables of one task side by side: the same items and conditions for every model.


Floats = NDArray[np.float64]


def model_names(tables: Sequence[Table]) -> dict[str, str]:
    """Return model names by id. Models with the same name get the beginning of their id."""
    labels = {table.panel.model.id: table.panel.model.label for table in tables}
    ambiguous = {label for label, count in Counter(labels.values()).items() if count > 1}
    return {i: f"{name}@{short(i, 6)}" if name in ambiguous else name for i, name in labels.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Scores of one task for several models, with the same items and conditions for all.

    `values` has shape (items, models, conditions), NaN where a model lacks an item. `cubes` holds a
    (items, conditions[, runs]) array for each model. `recipes` are the conditions that all models
    have, a baseline first. `lacking` names the recipes that some model lacks. `changed` is an
    (items, conditions) mask: True where a recipe changed the prompt for any model. `repeated` are
    the columns of `recipes` that repeat the baseline. `cubes` do not contain these columns.
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
    """Return a stack for each task, in the order of the tasks."""
    names = model_names(tables)
    tasks = dict.fromkeys(table.panel.task for table in tables)
    return tuple(
        _stack(task, [t for t in tables if t.panel.task == task], names, strict) for task in tasks
    )


def _stack(task: str, tables: Sequence[Table], names: Mapping[str, str], strict: bool) -> Stack:
    shared_ids = reduce(lambda a, b: a & b, ({r.id for r in t.recipes} for t in tables))
    has_baseline = all(table.has_baseline for table in tables)
    recipes = [r for r in tables[0].recipes if r.id in shared_ids]
    labels = {r.id: r.label for table in tables for r in table.recipes}
    items = sorted({item for table in tables for item in table.items})
    row_of = {item: n for n, item in enumerate(items)}
    # A repeated baseline only shows noise: it would count as a condition without an effect.
    repeated = [
        n for n, r in enumerate(recipes) if not r.perturbs and (r.repeat or not has_baseline)
    ]
    cubes, matrices = {}, []
    clusters: dict[str, str] = {}
    changed = np.zeros((len(items), len(recipes)), dtype=bool)
    for table in tables:
        columns_of = {r.id: n for n, r in enumerate(table.recipes)}
        columns = [columns_of[r.id] for r in recipes]
        rows = [row_of[item] for item in table.items]
        changed[rows] |= table.changed()[:, columns]
        in_cube = [column for n, column in enumerate(columns) if n not in repeated]
        cube = table.cube(in_cube, strict=strict)
        cubes[names[table.panel.model.id]] = _aligned_rows(cube, rows, len(items))
        matrix = table.carry(table.matrix(strict=strict))[:, columns]
        matrices.append(_aligned_rows(matrix, rows, len(items)))
        if table.clusters is not None:
            clusters |= dict(zip(table.items, table.clusters, strict=True))
    return Stack(
        task=task,
        models=tuple(cubes),
        recipes=tuple(recipes),
        lacking=tuple(label for i, label in labels.items() if i not in shared_ids),
        has_baseline=has_baseline,
        repeated=tuple(repeated),
        cubes=cubes,
        values=np.stack(matrices, axis=1),
        changed=changed,
        # An item without a cluster in any table is its own cluster.
        clusters=tuple(clusters.get(item, f"item {item}") for item in items) if clusters else None,
    )


def _aligned_rows(cells: Floats, rows: Sequence[int], items: int) -> Floats:
    """Return `cells` with their rows placed among all items; not copied if already in place."""
    if list(rows) == list(range(items)):
        return cells
    aligned = np.full((items, *cells.shape[1:]), np.nan)
    aligned[list(rows)] = cells
    return aligned
