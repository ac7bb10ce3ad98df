"""Brittleness and average drops of a complete table, from a random subset of each item's cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.records.types import EstimateStatus
from falter.stats.intervals import (
    Interval,
    check_level,
    clopper_pearson,
    no_interval,
    student_quantile,
    tango,
)

Floats = NDArray[np.float64]
# From this many apparently disagreeing items on, or a quarter of all, the log scale is accurate.
MIN_DISAGREEING = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEstimate:
    """A number about exactly these items, estimated from some of their cells.

    Unless `status` is ok, `value` is None and the interval has no ends. `excluded` counts the items
    with too few cells.
    """

    value: float | None
    status: EstimateStatus
    interval: Interval
    standard_error: float | None
    items: int
    excluded: int
    estimand: str


def masked_brittleness(
    outcomes: ArrayLike,
    *,
    baseline: int | None = None,
    population: int | None = None,
    level: float = 0.95,
) -> SampleEstimate:
    """Return the plug-in brittleness of a complete items x conditions table from some of its cells.

        pert = (J − 1)/J mean_i c_i (k − c_i)/(k (k − 1))        total = p (1 − p) + Var(p)
        brittleness = pert/total

    for items with c of k random cells right. For other scores s_i² replaces the fraction. p is the
    mean, and Var(p) its estimated sampling variance. pert and total are unbiased for every k and
    all outcomes; their ratio can exceed 1.

    Parameters
    ----------
    outcomes : array_like of shape (items, J conditions)
        NaN where a cell was not requested. Every set of k cells must be equally likely, as
        `balanced_mask` draws them.
    baseline : the index of a condition that every item has, if any
        Pairs with it then count by their own probability, and two more cells per item are needed.
    population : the number N of items, of which the items with cells are a random part
        By default the number of rows.
    level : two-sided confidence level

    Returns
    -------
    SampleEstimate
        The interval is t on the log odds of the linear influence. If fewer than 10 items, and at
        most a quarter, seem to disagree, it is Clopper and Pearson's on scaled counts. Items with
        too few cells are excluded. J < 2, or only such items: not_identified. Fewer than two usable
        items: insufficient_data. Nothing varies: undefined_zero_variance.

    Notes
    -----
    The estimate is about exactly the N items. Its variance has (1 - n/N) of the variance between
    items, and all of the variance from the choice of cells. The latter is estimated from fourth
    moments, which needs 4 random 0/1 cells per item. With fewer cells the interval is that for
    similar items, which is too wide. So 4 cells on fewer items cost no more than 3 cells. With
    balanced masks, intervals and total are slightly too large: Var(p) contains a difference between
    conditions that balance removes.
    """
    rows = MaskedRows.from_outcomes(outcomes, baseline, population, least=2, level=level)
    what = "brittleness"
    if rows.status != "ok":
        return _undefined_estimate(rows, what, rows.status)
    m, within, whole = float(rows.mean.mean()), float(rows.pert.mean()), rows.total
    if whole == 0.0:
        return _undefined_estimate(rows, what, "undefined_zero_variance")
    value = within / whole
    # The influence (pert − B (square − 2m · mean))/total of an item.
    weights = (-value / whole, 2.0 * value * m / whole, 1.0 / whole)
    influence = weights[0] * rows.square + weights[1] * rows.mean + weights[2] * rows.pert
    variance = rows.sampling_variance(influence, rows.quadratic_mask(*weights))
    # With few items that disagree the log odds are far from normal, so the items are counted.
    interval = _rare_event_interval(rows)
    if interval is None:
        interval = _logit_interval(value, variance, _log_odds_bias(rows, m, within, whole), rows)
    else:
        interval = interval.mapped(lambda end: end * (1.0 / whole))
    # The ratio of two unbiased estimates may exceed 1, and its interval must contain the ratio.
    return _estimate(rows, what, value, interval.clipped(0.0, max(1.0, value)), variance)


def masked_drop(
    outcomes: ArrayLike, baseline: int, *, population: int | None = None, level: float = 0.95
) -> SampleEstimate:
    """Return the average drop over all conditions from the baseline and some of the conditions.

    The value is the mean over items of baseline - the mean of the item's other cells. It is
    unbiased if every set of these cells is equally likely.

    Parameters
    ----------
    outcomes : array_like of shape (items, conditions)
        NaN where a cell was not requested. Items without the baseline or without another cell are
        excluded.
    baseline : the index of the baseline
    population : the number N of items, by default the number of rows
    level : two-sided confidence level

    Returns
    -------
    SampleEstimate
        0/1 scores have Tango's interval on scaled counts, other scores Student's t. The interval is
        about exactly the N items. With one other cell per item it is that for similar items,
        because the variance from the choice of cells needs two.
    """
    rows = MaskedRows.from_outcomes(outcomes, baseline, population, least=1, level=level)
    what = "mean of score(baseline) - score(condition)"
    if rows.status != "ok":
        return _undefined_estimate(rows, what, rows.status)
    drops = rows.baseline - rows.other_mean
    variance = rows.sampling_variance(drops, rows.linear_mask(0.0, 1.0))
    value = float(drops.mean())
    interval = (
        _tango_interval(drops, variance, rows)
        if rows.binary
        else _t_interval(value, variance, rows)
    )
    return _estimate(rows, what, value, interval, variance)


@dataclass(frozen=True, kw_only=True)
class MaskedRows:
    """The usable items: items with the baseline, if any, and enough other conditions.

    `baseline` has the baseline's outcomes, 0 if there is no baseline. `cells` are the K other
    conditions of all J (K = J without a baseline), NaN where not requested. `counts` are the k
    requested cells per item. `population` is N. The choice of the k cells is random, so the
    estimates below are unbiased for the row of all J conditions.
    """

    baseline: Floats
    cells: Floats
    counts: Floats
    conditions: int
    population: int
    excluded: int
    level: float

    @classmethod
    def from_outcomes(
        cls,
        outcomes: ArrayLike,
        baseline: int | None,
        population: int | None,
        *,
        least: int,
        level: float,
    ) -> MaskedRows:
        """Return the usable rows of a table; raise InvalidValue for invalid arguments.

        A row without any cell is an item that was not requested. A row with too few cells is
        excluded.
        """
        table = np.asarray(outcomes, dtype=np.float64)
        if table.ndim != 2:
            expected = "items x conditions, NaN where not asked"
            raise InvalidValue("outcomes", table.shape, expected)
        if np.isinf(table).any():
            expected = "finite numbers, NaN where not asked"
            raise InvalidValue("outcomes", "an infinite score", expected)
        if baseline is not None and not 0 <= baseline < table.shape[1]:
            expected = f"a condition from 0 to {table.shape[1] - 1}, or None"
            raise InvalidValue("baseline", baseline, expected)
        if population is not None and population < len(table):
            expected = f"at least the {len(table)} rows of the table"
            raise InvalidValue("population", population, expected)
        check_level(level)
        others = [j for j in range(table.shape[1]) if j != baseline]
        cells = table[:, others]
        column = np.zeros(len(table)) if baseline is None else table[:, baseline]
        counts = (~np.isnan(cells)).sum(axis=1)
        # With a single other condition, one cell is the whole row, so `least` cannot be 2.
        enough = (counts >= max(1, min(least, len(others)))) & ~np.isnan(column)
        was_asked = ~np.isnan(table).all(axis=1)
        return cls(
            baseline=column[enough],
            cells=cells[enough],
            counts=counts[enough].astype(np.float64),
            conditions=table.shape[1],
            population=len(table) if population is None else population,
            excluded=int((was_asked & ~enough).sum()),
            level=level,
        )

    @property
    def items(self) -> int:
        return len(self.baseline)

    @property
    def status(self) -> EstimateStatus:
        """The reason for which nothing can be estimated, or ok."""
        if self.conditions < 2 or (self.items == 0 and self.excluded):
            return "not_identified"
        return "insufficient_data" if self.items < 2 else "ok"

    @cached_property
    def binary(self) -> bool:
        """Return True if all scores are 0 or 1."""
        scores = np.concatenate([self.cells[self.is_asked], self.baseline])
        return bool(np.isin(scores, (0.0, 1.0)).all())

    @cached_property
    def exact(self) -> bool:
        """Return True if no cell of the population's table is missing."""
        return self.items == self.population and bool(self.is_asked.all())

    @cached_property
    def is_asked(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.cells)

    @property
    def width(self) -> int:
        """K, the number of conditions that are chosen at random."""
        return int(self.cells.shape[1])

    @cached_property
    def other_mean(self) -> Floats:
        """The mean of each item's requested cells, without the baseline."""
        return np.asarray(np.where(self.is_asked, self.cells, 0.0).sum(axis=1) / self.counts)

    @cached_property
    def others_variance(self) -> Floats:
        """The estimated variance of `other_mean` from the choice of cells: (1 − k/K) s²/k."""
        return _variance_of_means(self.cells, self.counts)

    @cached_property
    def mean(self) -> Floats:
        """The estimated mean of each complete row: (baseline + K other_mean)/J."""
        return (self.baseline + self.width * self.other_mean) / self.conditions

    @cached_property
    def square(self) -> Floats:
        """The estimated mean square of each complete row."""
        squares = np.where(self.is_asked, self.cells**2, 0.0).sum(axis=1) / self.counts
        return np.asarray((self.baseline**2 + self.width * squares) / self.conditions)

    @cached_property
    def pert(self) -> Floats:
        """The estimated variance (ddof 0) within each complete row, without bias.

            square − mean² + (K/J)² others_variance

        The last term corrects the squared mean, which is too large by its own variance. Without a
        baseline the result is (J − 1)/J s². A rounding error becomes 0.
        """
        share = self.width / self.conditions
        variance = self.square - self.mean**2 + share**2 * self.others_variance
        return np.where(np.abs(variance) <= 1e-15, 0.0, variance)

    @property
    def total(self) -> float:
        """The estimated variance of all cells: mean square − m² + Var(m)."""
        of_mean = self.sampling_variance(
            self.mean, self.linear_mask(0.0, self.width / self.conditions)
        )
        value = float(self.square.mean()) - float(self.mean.mean()) ** 2 + of_mean
        return 0.0 if value <= 1e-14 else value

    @property
    def largest(self) -> float:
        """The largest `pert` that a 0/1 item with the fewest cells can show."""
        k = float(self.counts.min())
        right, baseline = np.meshgrid(np.arange(k + 1.0), (0.0, 1.0))
        mean = (baseline + self.width * right / k) / self.conditions
        # Without a baseline its two values in the grid must not enter the mean.
        if self.width == self.conditions:
            mean = right / k
        variance = right * (k - right) / (k * max(k - 1.0, 1.0)) * (1.0 - k / self.width) / k
        pert = mean * (1.0 - mean) + (self.width / self.conditions) ** 2 * variance
        return float(pert.max())

    def sampling_variance(self, values: Floats, mask: float | None) -> float:
        """Return the variance of the mean of the items' values, ((1 − n/N) T + n/N mask)/n.

        T is the variance of the values. `mask` is the part of T from the choice of cells; the
        remainder is between items (Cochran 1977, 10.3). If `mask` is None, all of T is counted.
        """
        # All cells are known, so the number is computed and not estimated.
        if self.exact:
            return 0.0
        total = float(values.var(ddof=1))
        sampled = self.items / self.population
        from_mask = total if mask is None else mask
        return ((1.0 - sampled) * total + sampled * from_mask) / self.items

    def linear_mask(self, square: float, mean: float) -> float | None:
        """Return the mask's part of the variance of square · mean square + mean · mean of others.

        None if an item has a single cell of several, which does not show this variance.
        """
        if (self.counts < min(2, self.width)).any():
            return None
        return float(
            _variance_of_means(square * self.cells**2 + mean * self.cells, self.counts).mean()
        )

    def quadratic_mask(self, square: float, mean: float, pert: float) -> float | None:
        """Return the mask's part of the variance of a weighted sum of `square`, `mean` and `pert`.

            mean over items of value² − Σ_r Δ^r q(0) (K over r)(c over r)/(k over r)

        The arguments are the weights. q(C) is the square of the value that all K cells would give,
        a polynomial of degree 4 in the number C of right cells. The sum estimates q without bias
        from c right of k cells. None for fewer than 4 cells, or for scores other than 0/1, which do
        not show this variance.
        """
        degree = min(4, self.width)
        if not self.binary or (self.counts < degree).any():
            return None
        values = square * self.square + mean * self.mean + pert * self.pert
        right = np.rint(self.other_mean * self.counts)
        # Newton's forward differences: q(C) = Σ_r Δ^r q(0) (C over r). For c right of k random
        # cells (c over r)/(k over r) has the mean (C over r)/(K over r), so every term is unbiased.
        q_of_all = np.zeros(self.items)
        for baseline in (0.0, 1.0):
            # q(0), ..., q(K): the mean of a whole row of 0/1 outcomes is also its mean square.
            m = (baseline + np.arange(self.width + 1.0)) / self.conditions
            q = ((square + mean) * m + pert * m * (1.0 - m)) ** 2
            for r in range(degree + 1):
                difference = np.diff(q, n=r)[0] * math.comb(self.width, r)
                share = _binomial_coefficients(right, r) / _binomial_coefficients(self.counts, r)
                q_of_all += np.where(self.baseline == baseline, difference * share, 0.0)
        # An unbiased difference can leave the possible range, from 0 to the whole variance.
        return min(float(values.var(ddof=1)), max(0.0, float((values**2 - q_of_all).mean())))


def _variance_of_means(cells: Floats, counts: Floats) -> Floats:
    """Return (1 − k/K) s²/k for every row, with s² the variance of its k requested cells."""
    asked = ~np.isnan(cells)
    means = np.where(asked, cells, 0.0).sum(axis=1) / counts
    deviations = np.where(asked, cells - means[:, None], 0.0)
    variance = np.square(deviations).sum(axis=1) / np.maximum(counts - 1.0, 1.0)
    return np.asarray((1.0 - counts / cells.shape[1]) * variance / counts)


def _binomial_coefficients(n: Floats, r: int) -> Floats:
    """Return binomial coefficients of whole numbers, 0 if r > n."""
    factors = [(n - i) / (i + 1.0) for i in range(r)]
    return np.prod(np.maximum(factors, 0.0), axis=0) if factors else np.ones_like(n)


def _rare_event_interval(rows: MaskedRows) -> Interval | None:
    """Return an interval for the variance within items if hardly any 0/1 item disagrees; else None.

        k = (Σ v)² / Σ v²        s = Σ v² / Σ v

    The items' estimates v behave like k items of size s among n items. The interval is s times
    Clopper and Pearson's for k of n. If no item disagrees, s is the largest value that the cells of
    an item can show.
    """
    if not rows.binary or rows.exact:
        return None
    v = rows.pert
    total, squares = float(v.sum()), float(np.square(v).sum())
    k = total**2 / squares if squares > 0.0 else 0.0
    if total < 0.0 or k >= MIN_DISAGREEING or k > rows.items / 4.0:
        return None
    s = squares / total if total > 0.0 else rows.largest
    interval = clopper_pearson(k, rows.items, level=rows.level).mapped(lambda end: end * s)
    return replace(interval, method="scaled clopper-pearson, few items disagree")


def _tango_interval(drops: Floats, variance: float, rows: MaskedRows) -> Interval:
    """Return Tango's interval on scaled counts of falls and rises for a finite population.

        s = Σ x² / Σ |x|        b = Σ x⁺ / s        c = Σ x⁻ / s

    The items' drops x behave like b falls and c rises of size s. A finite population has a smaller
    variance than Var(x)/n, and distances from the value shrink by the root of the ratio of both.
    """
    value = float(drops.mean())
    if rows.exact:
        return _without_error(value, rows)
    magnitude = float(np.abs(drops).sum())
    s = float(np.square(drops).sum()) / magnitude if magnitude > 0.0 else 1.0
    b, c = float(drops[drops > 0.0].sum()) / s, float(-drops[drops < 0.0].sum()) / s
    # b + c is at most n (Cauchy and Schwarz), except for rounding.
    interval = tango(b, c, max(float(rows.items), b + c), level=rows.level)
    of_items = float(drops.var(ddof=1)) / rows.items
    shrink = math.sqrt(variance / of_items) if of_items > 0.0 else 1.0
    narrowed = interval.mapped(lambda end: value + shrink * (s * end - value))
    return narrowed.clipped(-1.0, 1.0)


def _t_interval(value: float, variance: float, rows: MaskedRows) -> Interval:
    if variance <= 0.0:
        return _without_error(value, rows)
    half = _half_width(variance, rows)
    return Interval(low=value - half, high=value + half, level=rows.level, method="t over items")


def _log_odds_bias(rows: MaskedRows, mean: float, within: float, whole: float) -> float:
    """Return the bias of the log odds of within/whole: log within - log(whole - within).

    The log of an unbiased estimate is too small by half its squared relative error.
    """
    between = whole - within
    if within <= 0.0 or between <= 0.0:
        return 0.0
    weights = (1.0, -2.0 * mean, -1.0)
    # The linear influence of an item on whole − within; `rows.pert` is its influence on within.
    other_influence = rows.square - 2.0 * mean * rows.mean - rows.pert
    of_within = rows.sampling_variance(rows.pert, rows.quadratic_mask(0.0, 0.0, 1.0)) / within**2
    of_between = rows.sampling_variance(other_influence, rows.quadratic_mask(*weights)) / between**2
    return (of_between - of_within) / 2.0


def _logit_interval(value: float, variance: float, bias: float, rows: MaskedRows) -> Interval:
    """Return a bias-corrected t interval on the logit scale, with error se/(value (1 − value))."""
    if variance <= 0.0:
        return _without_error(value, rows)
    if not 0.0 < value < 1.0:
        return _t_interval(value, variance, rows)
    half = _half_width(variance, rows) / (value * (1.0 - value))
    # A correction larger than the half-width would move the value itself out of its interval.
    centre = math.log(value) - math.log1p(-value) - max(-half, min(bias, half))
    # The logistic function in a form that does not overflow.
    low, high = (0.5 + 0.5 * math.tanh((centre + end) / 2.0) for end in (-half, half))
    return Interval(low=low, high=high, level=rows.level, method="t over items, logit")


def _half_width(variance: float, rows: MaskedRows) -> float:
    return student_quantile(rows.level, rows.items - 1) * math.sqrt(variance)


def _without_error(value: float, rows: MaskedRows) -> Interval:
    """Return an interval of width 0 if no cell is missing; otherwise an interval without ends."""
    if rows.exact:
        method = "every cell asked, no sampling error"
        return Interval(low=value, high=value, level=rows.level, method=method)
    return no_interval(rows.level)


def _estimate(
    rows: MaskedRows, what: str, value: float, interval: Interval, variance: float
) -> SampleEstimate:
    return SampleEstimate(
        value=value,
        status="ok",
        interval=interval,
        standard_error=None if interval.low is None else math.sqrt(variance),
        items=rows.items,
        excluded=rows.excluded,
        estimand=_estimand(what, rows),
    )


def _undefined_estimate(rows: MaskedRows, what: str, status: EstimateStatus) -> SampleEstimate:
    return SampleEstimate(
        value=None,
        status=status,
        interval=no_interval(rows.level),
        standard_error=None,
        items=rows.items,
        excluded=rows.excluded,
        estimand=_estimand(what, rows),
    )


def _estimand(what: str, rows: MaskedRows) -> str:
    return f"{what}, these conditions, exactly these {rows.population} items"
