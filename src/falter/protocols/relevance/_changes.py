"""How much the scores change when the article is reworded, beside the controls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.measures import accuracy, net_relative_change, relative_change
from falter.protocols.relevance._parts import MEASURES
from falter.protocols.relevance._replies import AGAIN, ORIGINAL, Floats, Scores

__all__ = ["change_figures"]

RELEVANT, IRRELEVANT, TOP = (
    "relevant sentences",
    "irrelevant sentences",
    "relevant sentences, top 3",
)
COMPARED = ((RELEVANT, IRRELEVANT), (TOP, RELEVANT))
PANEL = (Column(name="Model"), Column(name="Data set"), Column(name="Measure"))


def change_figures(panels: Sequence[Scores], level: float, seed: int) -> tuple[Figure, ...]:
    """The change of every corpus mean, and what the controls leave of it."""
    return _changes(panels, level, seed), *_controls(panels, level, seed)


def _changes(panels: Sequence[Scores], level: float, seed: int) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        old, again = panel.values[:, 0], panel.of(AGAIN)
        for place, arm in enumerate(panel.arms):
            if arm == ORIGINAL:
                continue
            new = panel.values[:, place]
            both = ~np.isnan(old) & ~np.isnan(new)
            net = None
            if again is not None and arm != AGAIN:
                net = _net(panel, old, new, again, level, seed)
            rows.append(
                (
                    *_names(panel),
                    arm,
                    int(both.sum()),
                    panel.left_out[place],
                    panel.signed(_mean(panel, old, both, level)),
                    panel.signed(_mean(panel, new, both, level)),
                    _change(panel, old, new, level, seed),
                    net,
                )
            )
    return Grid(
        name="relative-change",
        title="What rewording does to the scores",
        columns=(
            *PANEL,
            Column(name="Reworded"),
            Column(name="both versions", unit="count", over="Articles"),
            Column(name="no usable rewrite", unit="count", over="Articles"),
            Column(name="original", unit="score", over="Mean score"),
            Column(name="reworded", unit="score", over="Mean score"),
            Column(name="of the mean", unit="percent", over="Change, %"),
            Column(name="less asking again", unit="percent", over="Change, %"),
        ),
        rows=tuple(rows),
        labels=4,
        text=(
            "Change: (reworded − original)/original of the two means over the articles that have "
            "both; below 0 is a loss. An article without a usable rewrite is in neither mean.",
            "Less asking again: the change that the same article shows when it is asked twice is "
            "taken off, with one interval for both.",
        ),
    )


def _controls(panels: Sequence[Scores], level: float, seed: int) -> tuple[Grid, ...]:
    """Relevant against irrelevant sentences, and three against one, over the same articles."""
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        old = panel.values[:, 0]
        for one, other in COMPARED:
            first, second = panel.of(one), panel.of(other)
            if first is None or second is None:
                continue
            net = _net(panel, old, first, second, level, seed)
            rows.append((*_names(panel), one, other, net.items, net))
    if not rows:
        return ()
    return (
        Grid(
            name="controls",
            title="Is it the relevant sentences?",
            columns=(
                *PANEL,
                Column(name="Reworded"),
                Column(name="Compared with"),
                Column(name="Articles", unit="count"),
                Column(name="Difference in change, %", unit="percent"),
            ),
            rows=tuple(rows),
            labels=5,
            text=(
                "How much more (below 0) the mean loses than under the control, in percent of the "
                "original mean, over the articles that have all three.",
            ),
        ),
    )


def _names(panel: Scores) -> tuple[str, str, str]:
    return panel.model, panel.task, MEASURES.get(panel.measure, panel.measure)


def _mean(panel: Scores, values: Floats, both: np.ndarray, level: float) -> Estimate:
    return accuracy(np.where(both, values, np.nan), clusters=panel.clusters, level=level)


def _change(panel: Scores, old: Floats, new: Floats, level: float, seed: int) -> Estimate:
    return panel.signed(relative_change(old, new, clusters=panel.clusters, level=level, seed=seed))


def _net(
    panel: Scores, old: Floats, new: Floats, other: Floats, level: float, seed: int
) -> Estimate:
    return panel.signed(
        net_relative_change(old, new, other, clusters=panel.clusters, level=level, seed=seed)
    )
