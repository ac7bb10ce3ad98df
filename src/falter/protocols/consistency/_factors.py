"""Which factor of the grid moves the score: analysis of variance, and the mean at every level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from falter.figures import Column, Figure, Grid, Value
from falter.measures import accuracy
from falter.protocols.consistency._panels import GridPanel
from falter.stats.factorial import Anova, anova

__all__ = ["factor_figures"]


def factor_figures(panels: Sequence[GridPanel], level: float) -> Iterator[Figure]:
    """The table of variance of every panel, and the mean score at each level."""
    yield _variance(panels)
    yield _levels(panels, level)


def _variance(panels: Sequence[GridPanel]) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        table = _table(panel)
        blocked = _table(panel, blocked=True)
        intercept = _table(panel, eta="with_intercept")
        for factor in panel.levels:
            term = table[factor]
            rows.append(
                (
                    *(panel.model, panel.task, panel.scorer, factor, term.freedom),
                    # Without products of factors types II and III are the same.
                    *(term.sum_squares, term.f, term.p_value, term.f, term.p_value),
                    *(term.eta_squared, intercept[factor].eta_squared, term.partial_eta_squared),
                    *(blocked[factor].f, blocked[factor].p_value),
                )
            )
    return Grid(
        name="factors",
        title="Which factor moves the score",
        columns=(
            Column(name="Model"),
            Column(name="Data set"),
            Column(name="Read by"),
            Column(name="Factor"),
            Column(name="df", unit="count"),
            Column(name="Sum of squares", unit="coefficient"),
            Column(name="F", unit="coefficient", over="Type II"),
            Column(name="p", unit="p", over="Type II"),
            Column(name="F", unit="coefficient", over="Type III"),
            Column(name="p", unit="p", over="Type III"),
            Column(name="of all", unit="coefficient", over="η²"),
            Column(name="with the intercept", unit="coefficient", over="η²"),
            Column(name="partial", unit="coefficient", over="η²"),
            Column(name="F", unit="coefficient", over="Within items"),
            Column(name="p", unit="p", over="Within items"),
        ),
        rows=tuple(rows),
        labels=4,
        text=(
            "Analysis of variance of the scores by the factors of the grid. Types II and III are "
            "the same where every cell has its answer. The paper leaves the differences between "
            "items in the error, which hides most effects; within items they are taken out. η² "
            "with the intercept in its denominator is the paper's second table and cannot be "
            "compared with the first.",
        ),
    )


def _table(panel: GridPanel, *, blocked: bool = False, eta: str = "total") -> Anova:
    items, width = panel.scores.shape
    return anova(
        panel.scores.ravel(),
        {factor: list(levels) * items for factor, levels in panel.levels.items()},
        block=np.repeat(np.arange(items), width).tolist() if blocked else None,
        eta=eta,  # type: ignore[arg-type]
    )


def _levels(panels: Sequence[GridPanel], level: float) -> Grid:
    """Each level's mean over the configurations that have it, by item."""
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        for factor, levels in panel.levels.items():
            for name in dict.fromkeys(levels):
                columns = [place for place, own in enumerate(levels) if own == name]
                scores = panel.scores[:, columns]
                known = ~np.isnan(scores).all(axis=1)
                means = np.full(len(scores), np.nan)
                means[known] = np.nanmean(scores[known], axis=1)
                mean = accuracy(means, clusters=panel.clusters, level=level)
                rows.append(
                    (panel.model, panel.task, panel.scorer, factor, str(name), panel.signed(mean))
                )
    return Grid(
        name="levels",
        title="The mean score at every level",
        columns=(
            Column(name="Model"),
            Column(name="Data set"),
            Column(name="Read by"),
            Column(name="Factor"),
            Column(name="Level"),
            Column(name="Score, %", unit="percent"),
        ),
        rows=tuple(rows),
        labels=5,
        folded=True,
    )
