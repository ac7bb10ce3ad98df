"""Figures of the protocol: capability, output consistency, the part due to luck, paper figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from falter.analysis.sentences import noun
from falter.measures.consistency import (
    OutputConsistency,
    Steadiness,
    capability,
    consistency_curve,
    item_std,
    output_consistency,
    random_baseline,
    steadiness,
    steadiness_beside_others,
)
from falter.measures.drops import performance_drop_rate
from falter.measures.regression import RobustnessRegression, robustness_regression
from falter.protocols.factors import GridPanel, grid_anova
from falter.protocols.tables import figures_of
from falter.records import numbers as n
from falter.records.errors import InvalidValue
from falter.records.figures import (
    Bar,
    Bars,
    Curve,
    Curves,
    Figure,
    Forest,
    ForestRow,
    Grid,
    Statement,
    Strip,
    Strips,
    Value,
)
from falter.records.types import Estimate
from falter.stats.agreement import spearman
from falter.stats.factorial import Anova

declaration = figures_of("consistency")
Floats = NDArray[np.float64]
AS_IN_PAPER = "as in the paper"
PAPER_SCORER_PREFIX = "exact_"
"""Prefix of the scorers that compare the whole response, as the paper does."""
MIN_POINTS = 3
"""Minimum number of model–data set pairs for a regression line and for correlations."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A panel and its measures.

    Intervals have the level `level`. The intervals of the steadiness have the level `together`, so
    that they hold at `level` for all model–data set pairs of the run simultaneously.
    """

    panel: GridPanel
    level: float
    together: float

    @property
    def is_binary(self) -> bool:
        scores = self.panel.scores
        return bool(np.isin(scores[~np.isnan(scores)], (0.0, 1.0)).all())

    @cached_property
    def capability(self) -> Estimate:
        panel = self.panel
        mean = capability(panel.scores, clusters=panel.clusters, level=self.level)
        return panel.signed(mean)

    @cached_property
    def same(self) -> OutputConsistency | None:
        """Shares of items with the same output in all configurations; None without outputs."""
        panel = self.panel
        if panel.outputs is None:
            return None
        return output_consistency(
            panel.outputs,
            panel.scores if self.is_binary else None,
            missing=panel.missing,
            clusters=panel.clusters,
            level=self.level,
        )

    @cached_property
    def luck(self) -> Estimate | None:
        """The paper's p^V: the chance of V correct responses; None for graded scores."""
        panel = self.panel
        if not self.is_binary:
            return None
        return panel.signed(
            random_baseline(panel.scores, clusters=panel.clusters, level=self.level)
        )

    @cached_property
    def steadiness(self) -> Steadiness | None:
        """The steadiness index, and the index of right answers; None for graded scores."""
        panel = self.panel
        if not self.is_binary:
            return None
        found = steadiness(panel.scores, clusters=panel.clusters, level=self.together)
        return Steadiness(index=panel.signed(found.index), right=panel.signed(found.right))

    @property
    def index(self) -> Estimate | None:
        return None if self.steadiness is None else self.steadiness.index


def measured_panels(panels: Sequence[GridPanel], level: float) -> list[Measured]:
    """Return the measures of every panel; panels of one model and task are merged if all agree.

    The level of simultaneous intervals is Bonferroni's, over the pairs of model and task.
    """
    by_pair: dict[tuple[str, str], list[GridPanel]] = {}
    for panel in panels:
        by_pair.setdefault((panel.model, panel.task), []).append(panel)
    merged: list[GridPanel] = []
    for readings in by_pair.values():
        if all(_panels_agree(readings[0], other) for other in readings[1:]):
            scorers = tuple(name for panel in readings for name in panel.scorers)
            readings = [replace(readings[0], scorers=scorers)]
        merged += readings
    together = 1.0 - (1.0 - level) / max(1, len(by_pair))
    return [Measured(panel=panel, level=level, together=together) for panel in merged]


def _panels_agree(one: GridPanel, other: GridPanel) -> bool:
    """Return True if two panels agree on every score and on which responses are equal."""
    if one.outputs is None or other.outputs is None:
        return False
    return np.array_equal(one.scores, other.scores, equal_nan=True) and np.array_equal(
        _first_places(one.outputs), _first_places(other.outputs)
    )


def _first_places(outputs: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return for each output the first configuration in which its item has the same output.

    Shape (items, configurations), -1 for no output. Example: [7, 7, 2] becomes [0, 0, 2].
    """
    places = np.array([(outputs == column[:, None]).argmax(axis=1) for column in outputs.T]).T
    return np.where(outputs < 0, -1, places)


def main_figures(found: Sequence[Measured]) -> Iterator[Figure]:
    """Yield the main table, bars, comparison with other models, and consistency curves.

    A figure without data is left out.
    """
    yield Grid(rows=tuple(map(_main_row, found)), **declaration("capability"))
    bars = tuple(
        Bar(
            label=" · ".join(m.panel.labels[:2]),
            parts=(m.panel.signed(m.same.correct), m.panel.signed(m.same.wrong)),
            share=m.capability,
        )
        for m in _sorted_by_task(_panels_of_paper(found))
        if m.same is not None and m.same.correct is not None and m.same.wrong is not None
    )
    if bars:
        yield Bars(bars=bars, **declaration("bars"))
    beside = tuple(_difficulty_rows(_panels_of_paper(found)))
    if beside:
        yield Grid(rows=beside, **declaration("beside-others"))
    curves = tuple(_consistency_curve(m) for m in found if m.panel.outputs is not None)
    if curves:
        yield Curves(curves=curves, **declaration("consistency-curve"))


def _main_row(m: Measured) -> tuple[Value, ...]:
    panel = m.panel
    shares = (getattr(m.same, part, None) for part in ("strict", "correct", "wrong"))
    return (
        *panel.labels,
        *panel.scores.shape,
        m.capability,
        *(share and panel.signed(share) for share in shares),
        m.index,
        None if m.steadiness is None else m.steadiness.right,
        m.luck,
    )


def _consistency_curve(m: Measured) -> Curve:
    panel = m.panel
    assert panel.outputs is not None
    curve = consistency_curve(
        panel.outputs, missing=panel.missing, clusters=panel.clusters, level=m.level
    )
    points = zip(curve.sizes, curve.consistency, strict=True)
    return Curve(
        label=f"{panel.model} ({panel.labels[2]})",
        points=tuple((float(size), panel.signed(estimate)) for size, estimate in points),
        facet=panel.task,
    )


MIN_MODELS = 4
"""Minimum number of models for estimating item difficulty from the other models."""


def _difficulty_rows(found: Sequence[Measured]) -> Iterator[tuple[Value, ...]]:
    """Yield the index of right answers, given the item difficulty for the other models."""
    for m in found:
        others = [
            other.panel.scores
            for other in found
            if other.panel.task == m.panel.task and other.panel.model != m.panel.model
        ]
        alike = all(len(scores) == len(m.panel.scores) for scores in others)
        if len(others) >= MIN_MODELS - 1 and alike and m.is_binary:
            index = steadiness_beside_others(m.panel.scores, np.hstack(others), level=m.level)
            yield (*m.panel.labels, m.panel.signed(index))


def _panels_of_paper(found: Sequence[Measured]) -> list[Measured]:
    """Return the panels with the paper's scorers; without any, the last panel of each pair."""
    read = [m for m in found if any(s.startswith(PAPER_SCORER_PREFIX) for s in m.panel.scorers)]
    last = {m.panel.labels[:2]: m for m in found}
    return read or list(last.values())


def _sorted_by_task(found: Sequence[Measured]) -> list[Measured]:
    tasks = list(dict.fromkeys(m.panel.task for m in found))
    return sorted(found, key=lambda m: tasks.index(m.panel.task))


# The paper's figures: regression, gap to luck, drop rates, deviations, analysis of variance


def paper_figures(found: Sequence[Measured], level: float) -> Iterator[Figure]:
    """Yield the paper's figures, computed as the paper does."""
    read = _panels_of_paper(found)
    yield from _regression_figures(found, level)
    yield Grid(rows=tuple(_data_set_rows(read)), **declaration("by-data-set"))
    yield from _drop_rate_figures(_sorted_by_task(read), level)
    yield from _deviation_figures(found, level)
    yield from _pooled_anova_tables(found)
    if len(read) >= MIN_POINTS:
        yield _correlation_table(read)


def _regression_figures(found: Sequence[Measured], level: float) -> Iterator[Figure]:
    """Yield the scatter plot with regression line and luck curve, and a table of the lines.

    The table has a line for the paper's scorers and one for falter's, if they differ. With fewer
    than MIN_POINTS points, a statement says so.
    """
    ways = {AS_IN_PAPER: _panels_of_paper(found)}
    own = [m for m in found if not all(s.startswith(PAPER_SCORER_PREFIX) for s in m.panel.scorers)]
    if own != ways[AS_IN_PAPER]:
        ways["as falter reads"] = own
    rows: list[tuple[Value, ...]] = []
    lines: dict[str, RobustnessRegression] = {}
    for way, measured in ways.items():
        points = [m for m in measured if m.panel.outputs is not None]
        if len(points) >= MIN_POINTS:
            line = lines[way] = robustness_regression(
                [m.capability.value for m in points],
                [None if m.same is None else m.same.strict.value for m in points],
                level=level,
            )
            rows.append((way, len(points), line.slope, line.intercept, line.r_squared))
    if not rows:
        yield Statement(**declaration("no-regression", fewest=MIN_POINTS))
        return
    way, line = next(iter(lines.items()))
    yield Curves(curves=tuple(_scatter_curves(ways[way], line)), **declaration("scatter", way=way))
    yield Grid(rows=tuple(rows), **declaration("regression"))


LUCK_STEPS = 20


def _scatter_curves(points: Sequence[Measured], line: RobustnessRegression) -> Iterator[Curve]:
    """Yield the fitted line, the luck curve p^V, and a point for each model and data set."""
    points_shown = [(m, m.capability.value, m.same.strict) for m in points if m.same is not None]
    ends = [p for _, p, _ in points_shown if p is not None]
    if line.slope.value is not None and line.intercept.value is not None:
        fitted = [
            (100 * x, _bare_estimate("fitted line", line.intercept.value + line.slope.value * x))
            for x in (min(ends), max(ends))
        ]
        yield Curve(label="fitted line", points=tuple(fitted))
    width = points[0].panel.scores.shape[1]
    steps = np.linspace(min(ends), 1.0, LUCK_STEPS).tolist()
    luck = tuple((100 * x, _bare_estimate("luck", x**width)) for x in steps)
    yield Curve(label=f"luck, p to the power of {width}", points=luck)
    for m, p, same in points_shown:
        if p is not None:
            name = " · ".join(m.panel.labels[:2])
            yield Curve(label=name, points=((100 * p, m.panel.signed(same)),))


def _bare_estimate(measure: str, value: float) -> Estimate:
    return Estimate(measure=measure, value=value, method="none: a formula")


def _data_set_rows(found: Sequence[Measured]) -> Iterator[tuple[Value, ...]]:
    """Yield for each data set the means over models of capability, consistency and luck.

    The row ends with mean, minimum and maximum of the gap between consistency and luck.
    """
    for task in dict.fromkeys(m.panel.task for m in found):
        rows = [
            (m.capability.value, m.same.strict.value, m.luck.value)
            for m in found
            if m.panel.task == task and m.same is not None and m.luck is not None
        ]
        table = np.array([row for row in rows if None not in row], dtype=np.float64)
        if len(table):
            gap = table[:, 1] - table[:, 2]
            means = table.mean(axis=0).tolist()
            yield (task, len(table), *means, float(gap.mean()), float(gap.min()), float(gap.max()))


def _drop_rate_figures(found: Sequence[Measured], level: float) -> Iterator[Figure]:
    rows: list[tuple[Value, ...]] = []
    drawn: list[ForestRow] = []
    for m in found:
        panel, scores = m.panel, m.panel.scores
        rates = {
            convention: performance_drop_rate(
                scores[:, 0], scores[:, 1:], convention=convention, clusters=panel.clusters,
                level=level,
            )
            for convention in ("promptbench", "paper", "pairwise")
        }  # fmt: skip
        first, printed, pairs = (panel.signed(rate.rate) for rate in rates.values())
        own = _drop_rate_range(scores)
        rows.append((*panel.labels, first, *own, printed, rates["paper"].skipped, pairs))
        drawn.append(ForestRow(label=" · ".join(panel.labels[:2]), kind="member", estimate=first))
    yield Forest(rows=tuple(drawn), **declaration("drop-rates-chart"))
    yield Grid(rows=tuple(rows), **declaration("drop-rates"))


def _drop_rate_range(scores: Floats) -> tuple[float | None, float | None, float | None]:
    """Return minimum, mean and maximum of the drop rate over the choice of the original.

    Each configuration is the original once. All three are None for a single configuration, or if
    the scores of a configuration are all 0. Only items without a missing score count.
    """
    sums = scores[~np.isnan(scores).any(axis=1)].sum(axis=0)
    if len(sums) < 2 or not (sums > 0.0).all():
        return None, None, None
    others = (sums.sum() - sums) / (len(sums) - 1)
    rates = 1.0 - others / sums
    return float(rates.min()), float(rates.mean()), float(rates.max())


def _deviation_figures(found: Sequence[Measured], level: float) -> Iterator[Figure]:
    """Yield the items' standard deviations by data set, and a table of the items at zero."""
    rows: list[tuple[Value, ...]] = []
    strips: dict[str, list[Strip]] = {}
    for m in found:
        panel = m.panel
        spread = item_std(panel.scores, clusters=panel.clusters, level=level)
        moving = [
            (str(item), float(v))
            for item, v in zip(spread.items, spread.values, strict=True)
            if v > 0.0
        ]
        kind = f"read by {panel.labels[2]}"
        strip = Strip(label=panel.model, kind=kind, values=tuple(moving))
        strips.setdefault(panel.task, []).append(strip)
        estimates = (spread.mean, spread.all_correct, spread.all_wrong, spread.steady)
        rows.append((*panel.labels, len(moving), *(panel.signed(e) for e in estimates)))
    for at, (task, of_task) in enumerate(strips.items(), start=1):
        name = f"item-deviations-{at}" if len(strips) > 1 else "item-deviations"
        figure = Strips(strips=tuple(of_task), **declaration("item-deviations", task=task))
        yield replace(figure, name=name)
    yield Grid(rows=tuple(rows), **declaration("items-at-rest"))


def pooled_tables(found: Sequence[Measured]) -> Iterator[tuple[str, int, Anova, Anova]]:
    """Yield data set, number of panels, and two analyses of variance over all models.

    The second one computes η² with the intercept in the denominator. A data set that cannot be
    analysed is left out.
    """
    read = _panels_of_paper(found)
    for task in dict.fromkeys(m.panel.task for m in read):
        panels = [m.panel for m in read if m.panel.task == task]
        with contextlib.suppress(InvalidValue):  # no score, or gaps left a factor one level
            with_intercept = grid_anova(panels, eta="with_intercept")
            yield task, len(panels), grid_anova(panels), with_intercept


def _pooled_anova_tables(found: Sequence[Measured]) -> Iterator[Figure]:
    """Yield the paper's tables C.1 and C.2, over all models, with items in the error term."""
    tables = list(pooled_tables(found))
    rows: list[tuple[Value, ...]] = []
    for task, models, table, with_intercept in tables:
        for term in (*table.terms, table.intercept):
            rows.append(
                (
                    task, term.name, models, term.freedom, term.sum_squares, term.f, term.p_value,
                    None if term is table.intercept else term.eta_squared,
                    with_intercept[term.name].eta_squared, term.partial_eta_squared,
                )
            )  # fmt: skip
    if rows:
        p_values = [term.p_value for _, _, table, _ in tables for term in table.terms]
        known = [p for p in p_values if p is not None]
        yield Grid(
            rows=tuple(rows),
            **declaration(
                "anova",
                significant=sum(p < 0.05 for p in known),
                tests=len(known),
                freedoms=", ".join(n.whole(table.residual_freedom) for _, _, table, _ in tables),
            ),
        )


MEASURES = (
    "capability",
    "same answer everywhere",
    "steadiness",
    "mean SD of an item",
    "drop rate between any two",
)


def _correlation_table(found: Sequence[Measured]) -> Grid:
    """Return Spearman correlations between the measures, over model–data set pairs."""
    numbers: dict[str, list[float]] = {}
    for m in found:
        scores = m.panel.scores
        spread = item_std(scores, level=m.level).mean
        pairs = performance_drop_rate(scores[:, 0], scores[:, 1:], convention="pairwise").rate
        same = None if m.same is None else m.same.strict
        row = (m.capability, same, m.index, spread, pairs)
        for name, estimate in zip(MEASURES, row, strict=True):
            value = None if estimate is None else estimate.value
            numbers.setdefault(name, []).append(np.nan if value is None else value)
    rows: list[tuple[Value, ...]] = []
    for name, values in numbers.items():
        row_of = [spearman(values, others).value for others in numbers.values()]
        rows.append((name, *row_of))
    return Grid(rows=tuple(rows), **declaration("measures-agree", points=len(found)))


# Findings: a tally of verdicts over the pairs, then a text on each pair


MAX_PAIRS = 4
MIN_STEADY_INDEX = 0.9
"""Minimum lower limit of the index for "practically the same"; the upper limit must be 1."""


def answer_sentences(found: Sequence[Measured]) -> Iterator[str]:
    """Yield a tally of verdicts if there are several model–data set pairs, then each pair.

    At most MAX_PAIRS pairs are described; a last sentence counts the remaining pairs.
    """
    pairs: dict[tuple[str, str], list[Measured]] = {}
    for m in found:
        pairs.setdefault((m.panel.model, m.panel.task), []).append(m)
    if len(pairs) > 1:
        verdicts = [_verdict(readings[-1]) for readings in pairs.values()]
        counted = [(verdicts.count(verdict), verdict) for verdict in dict.fromkeys(verdicts)]
        told = "; ".join(f"{count} {verdict}" for count, verdict in counted)
        yield (
            f"Of {len(pairs)} pairs of a model and a data set: {told}. The intervals of steadiness "
            "hold for all of them at once."
        )
    for readings in list(pairs.values())[:MAX_PAIRS]:
        yield from _pair_sentences(readings)
    if len(pairs) > MAX_PAIRS:
        yield f"{len(pairs) - MAX_PAIRS} more are in the first table."


def _verdict(m: Measured) -> str:
    """Return the verdict on the interval of the index, as the end of a sentence."""
    index = m.index
    if index is None or index.value is None:
        return "not informative at this capability or number of items"
    if index.low is None or index.high is None:
        return "without an interval, because the clusters are too few"
    if index.high == 1.0 and index.low > MIN_STEADY_INDEX:
        return "practically the same however asked"
    if index.low > 0.0:
        return "steadier than luck with equally hard items"
    return "not shown to be steadier than luck"


def _pair_sentences(readings: Sequence[Measured]) -> Iterator[str]:
    """Yield the text on one pair: by the last scorer, then by the first if they differ."""
    m, paper = readings[-1], readings[0]
    model, task, _ = m.panel.labels
    width = m.panel.scores.shape[1]
    if m.same is None or m.same.strict.value is None:
        return
    items = noun(m.same.strict.items, "item")
    text = (
        f"Asked in {width} ways, {model} gives the same answer to "
        f"{n.shown(m.same.strict, 'percent').with_unit(' %')} of {items} of {task}"
    )
    if m.same.strict.excluded:
        text += f" (of {m.same.strict.excluded} more an answer is missing)"
    if m.same.correct is not None and m.same.wrong is not None:
        right, wrong = n.percent(m.same.correct.value), n.percent(m.same.wrong.value)
        text += f" ({right} % right, {wrong} % wrong)"
    if m.capability.value is not None:
        text += f"; it is right {n.percent(m.capability.value)} of 100 times"
    text += "."
    index = m.index
    if index is None or index.value is None:
        reason = index.method.removeprefix("none: ") if index else "scores are graded"
        text += f" How much of that is luck is not said: {reason}."
    else:
        text += (
            " On a scale from luck (0) to items that are all right everywhere or wrong everywhere "
            f"(1), it has {n.shown(index, 'coefficient').text}: {_verdict(m)}. Easy and hard items "
            "count as steady, and wrong answers may differ."
        )
    if paper is not m and paper.same is not None and paper.same.strict.value is not None:
        text += (
            " Read as the paper does, where the whole reply, lower-cased and stripped, must be the "
            f"answer: the same for {n.percent(paper.same.strict.value)} %, right "
            f"{n.percent(paper.capability.value)} of 100 times."
        )
    yield text
