"""Capability and output consistency of every panel, beside what luck alone would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from falter.core.records import Estimate
from falter.figures import Column, Curve, Curves, Figure, Grid, Value
from falter.measures import (
    capability,
    consistency_curve,
    output_consistency,
    performance_drop_rate,
    random_baseline,
)
from falter.protocols.consistency._panels import GridPanel
from falter.protocols.tables import figures_of

declared = figures_of("consistency")

__all__ = ["output_figures"]

CONVENTIONS: tuple[Literal["promptbench", "paper", "pairwise"], ...] = (
    "promptbench",
    "paper",
    "pairwise",
)
PANEL = (Column(name="Model"), Column(name="Data set"), Column(name="Read by"))


def output_figures(panels: Sequence[GridPanel], level: float) -> Iterator[Figure]:
    """The main table, the curve over the number of configurations, and the drop rates."""
    yield _main(panels, level)
    curves = tuple(_curve(panel, level) for panel in panels if panel.outputs is not None)
    if curves:
        yield Curves(curves=curves, **declared("consistency-curve"))
    yield _drop_rates(panels, level)


def _main(panels: Sequence[GridPanel], level: float) -> Grid:
    rows = []
    for panel in panels:
        scores = panel.scores
        binary = bool(np.isin(scores[~np.isnan(scores)], (0.0, 1.0)).all())
        same = None
        if panel.outputs is not None:
            same = output_consistency(
                panel.outputs,
                scores if binary else None,
                missing=panel.missing,
                clusters=panel.clusters,
                level=level,
            )
        rows.append(
            (
                panel.model,
                panel.task,
                panel.scorer,
                len(scores),
                scores.shape[1],
                panel.signed(capability(scores, clusters=panel.clusters, level=level)),
                *_same(panel, same),
                *_nulls(panel, level, binary=binary),
            )
        )
    over, luck = "Same answer everywhere, %", "By luck alone, %"
    return Grid(rows=tuple(rows), **declared("capability"))  # fmt: skip


def _same(panel: GridPanel, same: object) -> list[Estimate | None]:
    parts = ("strict", "correct", "wrong")
    found = [getattr(same, part, None) for part in parts]
    return [None if estimate is None else panel.signed(estimate) for estimate in found]


def _nulls(panel: GridPanel, level: float, *, binary: bool) -> list[Estimate | None]:
    """The chance that all configurations are right: items alike, and as they are."""
    if not binary:
        return [None, None]
    return [
        panel.signed(random_baseline(panel.scores, items=items, level=level))
        for items in ("equal", "beta-binomial")
    ]


def _curve(panel: GridPanel, level: float) -> Curve:
    assert panel.outputs is not None
    curve = consistency_curve(
        panel.outputs, missing=panel.missing, clusters=panel.clusters, level=level
    )
    points = zip(curve.sizes, curve.consistency, strict=True)
    return Curve(
        label=f"{panel.model} ({panel.scorer})",
        points=tuple((float(size), panel.signed(estimate)) for size, estimate in points),
        facet=panel.task,
    )


def _drop_rates(panels: Sequence[GridPanel], level: float) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        cells: list[Value] = []
        for convention in CONVENTIONS:
            rate = performance_drop_rate(
                panel.scores[:, 0],
                panel.scores[:, 1:],
                convention=convention,
                clusters=panel.clusters,
                level=level,
            )
            cells += [panel.signed(rate.rate)]
            if convention == "paper":
                cells += [rate.skipped]
        rows.append((panel.model, panel.task, panel.scorer, *cells))
    return Grid(rows=tuple(rows), **declared("drop-rates"))
