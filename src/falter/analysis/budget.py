"""What a budget left unasked, and what the cells that were asked say about all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.results import AskedRecipe, NotAsked, Settings
from falter.analysis.table import Table
from falter.measures.estimates import of_result
from falter.records.types import Estimate
from falter.stats.layout import planned_half_widths
from falter.stats.subsample import SampleEstimate, masked_brittleness, masked_drop

Floats = NDArray[np.float64]


def not_asked(table: Table, settings: Settings, sign: Callable[..., Estimate]) -> NotAsked | None:
    """The cells of a table that a budget left out, and estimates about exactly its items.

    These come from the design: which cells were asked is random by the seed, so they say what the
    whole table would have said, and their intervals hold the chance of that choice. They are over
    all items; where a recipe did not change a prompt, the clean prompt's outcome stands. None where
    no budget was set, or no cell was left out.
    """
    layout = table.layout
    if layout is None or layout["requests"] >= layout["of"] or not table.columns:
        return None
    population, columns = int(layout["items"]), [0, *table.columns]
    values = table.carry(table.matrix(strict=settings.strict))[:, columns]
    about: dict[str, Any] = {"population": population, "level": settings.level}
    asked: NDArray[np.bool_] = np.asarray(table.in_plan.any(axis=2))
    per_item = asked[:, table.columns].sum(axis=1)
    fewest = int(per_item.min(initial=len(table.columns)))

    def estimate(measure: str, sample: SampleEstimate, conditions: int, **group: str) -> Estimate:
        return sign(of_result(measure, sample, conditions=conditions), **group)

    def recipe(place: int, column: int) -> AskedRecipe:
        label, count = table.recipes[column].label, int(asked[:, column].sum())
        drop = masked_drop(values[:, [0, place]], 0, **about)
        return AskedRecipe(
            label=label,
            asked=count,
            not_asked=population - count,
            drop=estimate("masked.drop", drop, 1, recipe=label),
        )

    return NotAsked(
        items=population,
        items_asked=len(table.items),
        cells=table.planned,
        of=int(layout["of"]),
        per_item=(fewest, int(per_item.max(initial=0))),
        brittleness=estimate(
            "masked.brittleness", masked_brittleness(values, baseline=0, **about), len(columns)
        ),
        average=estimate("masked.drop", masked_drop(values, 0, **about), len(columns) - 1),
        recipes=tuple(recipe(n, column) for n, column in enumerate(table.columns, start=1)),
        promised=planned_half_widths(
            items=len(table.items),
            population=population,
            conditions=len(columns),
            per_item=max(1, fewest),
            level=settings.level,
        ),
    )
