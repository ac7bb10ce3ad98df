"""Tables from the cells of any source: a spreadsheet, or the logs of another harness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.analysis._table import MISSING, STATUSES, Table
from falter.core.errors import UsageError
from falter.core.records import BASELINE, Panel, Recipe, Step

__all__ = ["PanelCells", "condition_recipe", "table_of"]

MOST_PLACES = 2_000_000
SPARSEST = 20
Ints = NDArray[np.integer]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PanelCells:
    """The cells of one panel: numbers of items, conditions and runs, score, outcome, output.

    `outcome` counts as in `OUTCOMES`; `output` is -1 where nothing could be read, None if answers
    are not known. Run numbers only order the runs of a cell.
    """

    item: Ints
    condition: Ints
    run: Ints
    value: NDArray[np.float64]
    outcome: NDArray[np.uint8]
    output: Ints | None = None


def condition_recipe(label: str) -> Recipe:
    """Someone else's condition as a recipe of one unknown step, so that it has an identity."""
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
    """Items × conditions × runs. With `has_baseline`, condition 0 is the baseline.

    A place that has no cell is missing; a run that a condition has for no item is not planned.
    """
    runs = _runs(cells, len(conditions))
    depth = int(runs.max(initial=0)) + 1
    shape = (len(items), len(conditions), depth)
    _check(shape, len(cells.value), panel)
    at = (cells.item, cells.condition, runs)
    value = np.full(shape, np.nan)
    outcome = np.full(shape, MISSING, np.uint8)
    present = np.zeros(shape, np.bool_)
    value[at], outcome[at], present[at] = cells.value, cells.outcome, True
    planned: NDArray[np.bool_] = np.asarray(present.any(axis=0))
    planned[:, 0] = True
    output = None
    if cells.output is not None:
        output = np.full(shape, -1, np.int32)
        output[at] = cells.output
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
        # These are the same all over, so that they take no memory.
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


def _check(shape: tuple[int, int, int], cells: int, panel: Panel) -> None:
    """A table that is nearly empty means that some column was taken for what it is not."""
    places = math.prod(shape)
    if places > MOST_PLACES and places > SPARSEST * cells:
        items, conditions, runs = shape
        raise UsageError(
            f"{cells:,} results of {panel.model.label[:80]!r} on {panel.task[:80]!r} would fill a "
            f"table of {items:,} items × {conditions:,} conditions × {runs:,} runs",
            hint="are the columns of items, conditions and runs the right ones?",
        )


def _runs(cells: PanelCells, conditions: int) -> Ints:
    """Every cell's place among the runs of its item and condition, from 0."""
    key = cells.item.astype(np.int64) * conditions + cells.condition
    order = np.lexsort((cells.run, key))
    ordered = key[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    within = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    places = np.empty(len(key), dtype=np.int32)
    places[order] = within
    return places
