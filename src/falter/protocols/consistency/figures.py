"""Figures of a grid: capability and consistency, what explains them, factors, items, the answer."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.analysis.table import OUTCOMES, Table
from falter.measures.consistency import (
    capability,
    consistency_curve,
    item_std,
    output_consistency,
    random_baseline,
)
from falter.measures.drops import accuracy, performance_drop_rate
from falter.measures.regression import RobustnessRegression, robustness_regression
from falter.protocols.protocol import PartResult
from falter.protocols.tables import figures_of, grid_named
from falter.records import numbers as n
from falter.records.figures import (
    Column,
    Curve,
    Curves,
    Figure,
    Grid,
    Statement,
    Strip,
    Strips,
    Value,
)
from falter.records.types import Estimate
from falter.stats.factorial import Anova, anova

# Panels: scores and outputs, items × configurations


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


declared = figures_of("consistency")

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


# Spread of the score of an item; items that never move are kept apart


def deviation_figures(panels: Sequence[GridPanel], level: float, seed: int) -> Iterator[Figure]:
    """The distribution of the items' standard deviations, and the shares that have none."""
    rows: list[tuple[Value, ...]] = []
    strips = []
    for panel in panels:
        spread = item_std(panel.scores, clusters=panel.clusters, level=level)
        moving = [(str(item), float(v)) for item, v in
                  zip(spread.items, spread.values, strict=True) if v > 0.0]  # fmt: skip
        strips.append(Strip(label=panel.name, kind=f"read by {panel.scorer}", values=tuple(moving)))
        estimates = (spread.mean, spread.all_correct, spread.all_wrong, spread.steady)
        rows.append(
            (
                panel.model,
                panel.task,
                panel.scorer,
                len(moving),
                *(panel.signed(estimate) for estimate in estimates),
            )
        )
    yield Strips(strips=tuple(strips), **declared("item-deviations"))
    yield Grid(rows=tuple(rows), **declared("items-at-rest"))


# Factors: analysis of variance, and the mean at every level


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
    return Grid(rows=tuple(rows), **declared("factors"))


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
    return Grid(rows=tuple(rows), **declared("levels"))


FEWEST = 3


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
        yield Statement(**declared("no-regression", fewest=FEWEST))
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


# The first sentences: the protocol's question, then each model on each data set


MOST_PANELS = 6
Row = Sequence[Value]


def answer_sentences(outputs: Sequence[Figure], lines: Sequence[Figure]) -> Iterator[str]:
    """Whether consistency is more than capability; how much stays the same, beside luck."""
    grid = grid_named(outputs, "capability")
    panels: dict[tuple[Value, Value], list[Row]] = {}
    for row in grid.rows if grid is not None else ():
        panels.setdefault((row[0], row[1]), []).append(row)
    yield _slope_sentence(lines, len(panels))
    for rows in list(panels.values())[:MOST_PANELS]:
        yield from _panel_sentences(rows)
    if len(panels) > MOST_PANELS:
        yield f"{len(panels) - MOST_PANELS} more stand in the first table."


def _slope_sentence(figures: Sequence[Figure], points: int) -> str:
    """The slope over most points, beside that of luck."""
    grid = grid_named(figures, "regression")
    rows = grid.rows if grid is not None else ()
    found = {(row[0], row[1]): row for row in rows}
    observed = max((r for r in rows if r[1] == "observed"), key=lambda r: _whole(r[2]), default=())
    luck = found.get((observed[0], "luck alone")) if observed else None
    if luck is None or not isinstance(observed[3], Estimate) or not isinstance(luck[3], Estimate):
        return (
            "Does robustness come with competence? That needs three points or more, each a model "
            f"on a data set; here {'is' if points == 1 else 'are'} {n.whole(points)}."
        )
    slope, by_luck = observed[3], luck[3].value
    text = (
        f"Over {_whole(observed[2])} points, each a model on a data set, output consistency rises "
        f"by {n.shown(slope, 'coefficient').text} points for each point of capability; luck "
        f"alone, with items like these, gives {n.coefficient(by_luck)}."
    )
    if slope.value is None or slope.low is None or slope.high is None:
        return text
    if not isinstance(by_luck, float):
        return text
    if slope.low <= by_luck <= slope.high:
        return (
            f"{text} That is inside the interval: no robustness is shown beyond what comes with "
            "being right more often."
        )
    than = "more" if slope.value > by_luck else "less"
    return f"{text} That is outside the interval: {than} than being right more often explains."


def _panel_sentences(rows: Sequence[Row]) -> Iterator[str]:
    """One sentence by the reader of what people write, and the paper's reading where it differs."""
    row, paper = rows[-1], rows[0]
    model, task, _, items, configurations, mean, same, right = row[:8]
    luck = row[10]
    if not isinstance(mean, Estimate) or not isinstance(same, Estimate) or same.value is None:
        return
    text = (
        f"{model} on {task}: the same answer under all {configurations} configurations for "
        f"{n.shown(same, 'percent').with_unit(' %')} of {items} items"
    )
    if isinstance(right, Estimate) and right.value is not None:
        text += f", the right one for {n.percent(right.value)} %"
        if isinstance(luck, Estimate) and luck.value is not None:
            text += f" (by luck alone {n.percent(luck.value)} %)"
    text += f"; mean score {n.percent(mean.value)} of 100."
    other, score = paper[6], paper[5]
    if isinstance(other, Estimate) and isinstance(score, Estimate):
        strict = n.percent(other.value), n.percent(score.value)
        if strict != (n.percent(same.value), n.percent(mean.value)):
            text += (
                " Read as the paper does, where the whole reply must be the answer: "
                f"{strict[0]} % and {strict[1]} of 100."
            )
    yield text


def _whole(value: Value) -> int:
    return value if isinstance(value, int) else 0
