"""The panels of a grid: scores and outputs, items × configurations."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis import OUTCOMES, Table, model_names
from falter.core.records import Estimate
from falter.protocols.protocol import PartResult

__all__ = ["GridPanel", "panels_of_grid"]

Floats = NDArray[np.float64]
UNASKED = (OUTCOMES.index("failed"), OUTCOMES.index("missing"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPanel:
    """One model on one data set, read in one way.

    `scores` is items × configurations (draws and repeats averaged), `outputs` the numbers of what
    was answered in the first draw, -1 for what could not be read. `levels` has, for every factor,
    the level of each configuration.
    """

    model: str
    task: str
    scorer: str
    scores: Floats
    outputs: NDArray[np.int32] | None
    missing: NDArray[np.bool_]
    levels: Mapping[str, tuple[Hashable, ...]]
    clusters: tuple[str, ...] | None
    signature: str

    @property
    def name(self) -> str:
        return f"{self.model} on {self.task}"

    def signed(self, estimate: Estimate) -> Estimate:
        """The estimate with what it is about."""
        group = {"model": self.model, "task": self.task, "scorer": self.scorer}
        return replace(estimate, group={**estimate.group, **group}, signature=self.signature)


def panels_of_grid(result: PartResult) -> tuple[GridPanel, ...]:
    """One for each model, data set and scorer, in the order of the run."""
    names = model_names(result.tables)
    grid = result.part.experiment["grid"]
    strict = result.analysis.unparsed == "wrong"
    signatures = [panel.signature for panel in result.analysis.panels]
    return tuple(
        _panel(result, table, names[table.panel.model.id], grid, signature, strict=strict)
        for table, signature in zip(result.tables, signatures, strict=True)
    )


def _panel(
    result: PartResult,
    table: Table,
    model: str,
    grid: Mapping[str, Sequence[Any]],
    signature: str,
    *,
    strict: bool,
) -> GridPanel:
    configurations = list(itertools.product(*grid.values()))
    levels = {
        factor: tuple(configuration[place] for configuration in configurations)
        for place, factor in enumerate(grid)
    }
    return GridPanel(
        model=model,
        task=result.run.panels[table.place].task,
        scorer=table.panel.scorer,
        scores=table.matrix(strict=strict),
        outputs=None if table.output is None else table.output[:, :, 0],
        missing=np.isin(table.outcome[:, :, 0], UNASKED),
        levels=levels,
        clusters=table.clusters,
        signature=signature,
    )
