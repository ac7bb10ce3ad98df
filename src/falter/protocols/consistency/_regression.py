"""Is robustness more than competence? A line through all points, beside the line of luck."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from falter.figures import Column, Figure, Grid, Statement, Value
from falter.measures import RobustnessRegression, random_baseline, robustness_regression
from falter.protocols.consistency._panels import GridPanel

__all__ = ["regression_figures"]

Floats = NDArray[np.float64]
FEWEST = 3
PAPER = "the paper has slope 1.05 and R² 0.924 over 54 points"


def regression_figures(panels: Sequence[GridPanel], level: float, seed: int) -> Iterator[Figure]:
    """One line for each way of reading, over its model × data set points."""
    scorers = list(dict.fromkeys(_manner(panel) for panel in panels))
    rows: list[tuple[Value, ...]] = []
    for scorer in scorers:
        points = [p for p in panels if _manner(p) == scorer and p.outputs is not None]
        if len(points) < FEWEST:
            continue
        for name, line in _lines(points, level, seed):
            rows.append((scorer, name, len(points), *_numbers(line)))
    if not rows:
        text = (
            f"A line through capability and consistency needs {FEWEST} points, each a model on a "
            "data set; add models or data sets."
        )
        yield Statement(name="regression", title="Does robustness come with competence?",
                        text=(text,), kind="note")  # fmt: skip
        return
    yield Grid(
        name="regression",
        title="Does robustness come with competence?",
        columns=(
            Column(name="Read"),
            Column(name="Line"),
            Column(name="Points", unit="count"),
            Column(name="Slope", unit="coefficient"),
            Column(name="Intercept", unit="coefficient"),
            Column(name="R²", unit="coefficient"),
        ),
        rows=tuple(rows),
        labels=2,
        text=(
            f"Output consistency on capability, one point for each model and data set; {PAPER}.",
            "Luck alone gives a line too, because a model that is mostly right is mostly right "
            "everywhere: it is that of a beta-binomial null with the same items. Only what lies "
            "beyond it is robustness of another kind. Both axes come from the same answers; "
            "'split halves' takes them from different items.",
        ),
    )


def _manner(panel: GridPanel) -> str:
    """How the paper reads an answer, or by label."""
    return "as in the paper" if panel.scorer.startswith("exact") else f"by {panel.scorer}"


def _lines(
    points: Sequence[GridPanel], level: float, seed: int
) -> Iterator[tuple[str, RobustnessRegression]]:
    performance = [panel.scores.mean(axis=1) for panel in points]
    robustness = [_all_same(panel) for panel in points]
    yield "observed", robustness_regression(performance, robustness, level=level)
    nulls = [random_baseline(panel.scores, items="beta-binomial").value for panel in points]
    null = [float("nan") if value is None else value for value in nulls]
    means = [float(np.nanmean(values)) for values in performance]
    yield "luck alone", robustness_regression(means, null, level=level)
    tasks = [panel.task for panel in points]
    if all(len(p.scores) == len(q.scores) for p in points for q in points if p.task == q.task):
        split = robustness_regression(
            performance, robustness, correction="split-half", level=level, seed=seed
        )
        yield "observed, split halves", split
    models = [panel.model for panel in points]
    if len(points) > len(set(models)) + len(set(tasks)) and len(set(models)) > 1:
        effects = robustness_regression(
            performance, robustness, effects=(models, tasks), level=level
        )
        yield "within models and data sets", effects


def _all_same(panel: GridPanel) -> Floats:
    """1 for an item with the same answer everywhere, 0 for another, NaN where cells are missing."""
    assert panel.outputs is not None
    same = (panel.outputs >= 0).all(axis=1) & (panel.outputs == panel.outputs[:, :1]).all(axis=1)
    return np.where(panel.missing.any(axis=1), np.nan, same.astype(float))


def _numbers(line: RobustnessRegression) -> tuple[Value, ...]:
    return tuple(
        replace(estimate, signature="") for estimate in (line.slope, line.intercept, line.r_squared)
    )
