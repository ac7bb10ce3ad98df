"""Which factor of the grid moves the score: analysis of variance, and the mean at every level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from falter.figures import Figure, Grid, Statement, Value
from falter.measures import RobustnessRegression, accuracy, random_baseline, robustness_regression
from falter.protocols.consistency._panels import GridPanel
from falter.protocols.tables import figures_of
from falter.stats import Anova, anova

declared = figures_of("consistency")


def factor_figures(panels: Sequence[GridPanel], level: float) -> Iterator[Figure]:
    """The table of variance of every panel, and the mean score at each level."""
    yield _variance(panels)
    yield _levels(panels, level)


def _variance(panels: Sequence[GridPanel]) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        by_type = {typ: _table(panel, typ) for typ in (2, 3)}
        blocked = _table(panel, 2, blocked=True)
        intercept = _table(panel, 3, eta="with_intercept")
        for factor in panel.levels:
            two, three = by_type[2][factor], by_type[3][factor]
            rows.append(
                (
                    *(panel.model, panel.task, panel.scorer, factor, two.freedom),
                    *(two.sum_squares, two.f, two.p_value, three.f, three.p_value),
                    *(two.eta_squared, intercept[factor].eta_squared, two.partial_eta_squared),
                    *(blocked[factor].f, blocked[factor].p_value),
                )
            )
    return Grid(rows=tuple(rows), **declared("factors"))


def _table(panel: GridPanel, typ: int, *, blocked: bool = False, eta: str = "total") -> Anova:
    items, width = panel.scores.shape
    return anova(
        panel.scores.ravel(),
        {factor: list(levels) * items for factor, levels in panel.levels.items()},
        typ=typ,  # type: ignore[arg-type]
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
    return Grid(rows=tuple(rows), **declared("levels"))


# Is robustness more than competence? A line through all points, beside the line of luck.


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
    yield Grid(rows=tuple(rows), **declared("regression"))


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
