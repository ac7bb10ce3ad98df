"""Main effects and two-factor interactions of the factors of a grid."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.analysis.table import OUTCOMES, Table
from falter.measures.averages import mean_score
from falter.measures.drops import accuracy_drop
from falter.protocols.protocol import PartResult
from falter.protocols.tables import figures_of
from falter.records.errors import InvalidValue
from falter.records.figures import Figure, Grid, Value
from falter.records.types import Estimate
from falter.stats.factorial import Anova, anova
from falter.stats.multiplicity import holm

Floats = NDArray[np.float64]
NO_RESPONSE = (OUTCOMES.index("failed"), OUTCOMES.index("missing"))
MAX_UNFOLDED_PANELS = 2
"""Maximum number of panels for which the table of tests is shown unfolded."""
declaration = figures_of("")


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPanel:
    """One model on one data set under one scorer, or under several scorers that agree.

    `scores` has shape (items, configurations), with draws and repeats averaged. `outputs` and
    `missing` have the same shape and describe the first draw and repeat. `outputs` holds a code for
    each extracted answer, -1 without one; it is None if no answers are known. `missing` marks cells
    whose request failed or has no response yet. `levels` maps every factor to the level of each
    configuration.
    """

    model: str
    task: str
    scorers: tuple[str, ...]
    scores: Floats
    outputs: NDArray[np.int32] | None
    missing: NDArray[np.bool_]
    levels: Mapping[str, tuple[Hashable, ...]]
    clusters: tuple[str, ...] | None
    signature: str

    @property
    def labels(self) -> tuple[str, str, str]:
        """Model, data set and scorers: the first cells of every table row."""
        return self.model, self.task, " and ".join(self.scorers)

    def signed(self, estimate: Estimate) -> Estimate:
        """Return the estimate with model, task and scorers in its group, and the signature."""
        group = dict(zip(("model", "task", "scorer"), self.labels, strict=True))
        return replace(estimate, group={**estimate.group, **group}, signature=self.signature)

    def mean_at(self, levels: Mapping[str, Hashable]) -> Floats:
        """Return the items' mean scores, shape (items,), over configurations with all `levels`.

        The mean is NaN for an item that lacks one of the scores.
        """
        places = [
            at
            for at in range(self.scores.shape[1])
            if all(self.levels[factor][at] == level for factor, level in levels.items())
        ]
        return np.asarray(self.scores[:, places].mean(axis=1))


def grid_of(result: PartResult) -> dict[str, list[Any]]:
    """Return the factors of a part with their levels, empty if the part has no grid."""
    declared_grid = result.part.experiment.get("grid")
    if declared_grid is None:
        declared_grid = json.loads(result.run.origin.get("grid", "{}"))
    return {factor: list(levels) for factor, levels in declared_grid.items()}


def grid_panels(result: PartResult) -> tuple[GridPanel, ...]:
    """Return a panel per model, data set and scorer, in the order of the run."""
    names = model_names(result.tables)
    signatures = [panel.signature for panel in result.analysis.panels]
    return tuple(
        _grid_panel(result, table, names[table.panel.model.id], signature)
        for table, signature in zip(result.tables, signatures, strict=True)
    )


def _grid_panel(result: PartResult, table: Table, model: str, signature: str) -> GridPanel:
    grid = grid_of(result)
    configurations = list(product(*grid.values()))
    return GridPanel(
        model=model,
        task=result.run.panels[table.place].task,
        scorers=(table.panel.scorer,),
        scores=table.matrix(strict=result.analysis.unparsed == "wrong"),
        outputs=None if table.output is None else table.output[:, :, 0],
        missing=np.isin(table.outcome[:, :, 0], NO_RESPONSE),
        levels={
            factor: tuple(configuration[place] for configuration in configurations)
            for place, factor in enumerate(grid)
        },
        clusters=table.clusters,
        signature=signature,
    )


def factor_figures(panels: Sequence[GridPanel], level: float) -> Iterator[Figure]:
    """Yield tables of the tests within items, the means by level, and the interactions, if any."""
    rows = tuple(row for panel in panels for row in _test_rows(panel))
    yield Grid(rows=rows, folded=len(panels) > MAX_UNFOLDED_PANELS, **declaration("factors"))
    rows = tuple(row for panel in panels for row in _level_rows(panel, level))
    yield Grid(rows=rows, **declaration("levels"))
    rows = tuple(row for panel in panels for row in _interaction_rows(panel, level))
    if rows:
        yield Grid(rows=rows, **declaration("interactions"))


def grid_anova(panels: Sequence[GridPanel], **how: Any) -> Anova:
    """Return the analysis of variance by factor, over all items and models of `panels`.

    All panels must have the levels of the first one. `how` is passed on to `anova`.
    """
    items = sum(len(panel.scores) for panel in panels)
    return anova(
        np.concatenate([panel.scores.ravel() for panel in panels]),
        {factor: list(levels) * items for factor, levels in panels[0].levels.items()},
        **how,
    )


def _test_rows(panel: GridPanel) -> Iterator[tuple[Value, ...]]:
    items, width = panel.scores.shape
    block = np.repeat(np.arange(items), width).tolist()
    try:
        table = grid_anova([panel], block=block, products=len(panel.levels) > 1)
    except InvalidValue:  # missing answers, so that two effects cannot be estimated separately
        return
    terms = [term for term in table.terms if term.name != "block"]
    for term, p in zip(terms, holm([term.p_value for term in terms]), strict=True):
        yield (*panel.labels, term.name, term.freedom, term.f, term.p_value, p)


def _level_rows(panel: GridPanel, level: float) -> Iterator[tuple[Value, ...]]:
    """Yield the mean score of each level, and its drop from the factor's first level."""
    for factor, of_configurations in panel.levels.items():
        first, *others = dict.fromkeys(of_configurations)
        for name in (first, *others):
            scores = panel.mean_at({factor: name})
            mean = mean_score(scores[:, None], clusters=panel.clusters, level=level)
            drop = None
            if name != first:
                clean = panel.mean_at({factor: first})
                drop = panel.signed(
                    accuracy_drop(clean, scores, clusters=panel.clusters, level=level)
                )
            yield (*panel.labels, factor, str(name), panel.signed(mean), drop)


def _interaction_rows(panel: GridPanel, level: float) -> Iterator[tuple[Value, ...]]:
    """Yield for each pair of levels the joint drop minus the sum of the two single drops.

    The two factors' first levels are the baseline.
    """
    for a, b in combinations(panel.levels, 2):
        first_a, *others_a = dict.fromkeys(panel.levels[a])
        first_b, *others_b = dict.fromkeys(panel.levels[b])
        for drop_a, drop_b in product(others_a, others_b):
            interaction = accuracy_drop(
                panel.mean_at({a: drop_a, b: first_b}) - panel.mean_at({a: first_a, b: first_b}),
                panel.mean_at({a: drop_a, b: drop_b}) - panel.mean_at({a: first_a, b: drop_b}),
                clusters=panel.clusters,
                level=level,
            )
            both = f"{a} {drop_a} and {b} {drop_b}"
            yield (*panel.labels, both, panel.signed(replace(interaction, measure="interaction")))
