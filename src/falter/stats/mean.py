"""The mean of per-item values over several conditions, with its interval and p-value."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.records.types import EstimateStatus
from falter.stats.clusters import cluster_codes, cluster_parts, too_few_clusters
from falter.stats.intervals import (
    Between,
    Interval,
    bonett_price,
    check_level,
    no_interval,
    normal_quantile,
    outer,
    paired_proportions_interval,
    quantile_ratio,
    student_quantile,
    tango,
)

Floats = NDArray[np.float64]
# If fewer than 20 items changed (or fewer than 20 did not), the data cannot show the correlation
# within clusters. A minimum is then assumed: an intraclass correlation of 0.05 for 0 such items,
# falling linearly to 0 for 20. Plans also assume 0.05 if no correlation is known.
RARE_EVENTS, ASSUMED_ICC = 20, 0.05
# The smallest error rate that is distinguished from 0: 1 − level has no more digits.
MIN_P_VALUE = 1e-15
NO_VARIATION = "no variation between items, an interval cannot be had"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMean:
    """A mean over items and its uncertainty. `value` is None without a usable mean.

    `freedom` has the degrees of freedom of `standard_error`. `conditions` counts the conditions
    with a value. `clusters` counts clusters, None for independent items. `design_effect` is the
    clustered variance over the variance of as many independent items. `informative` counts the
    items that carry the rarer side of a mean between 0 and 1 (see `Rate`). `how` can compute the
    interval at any level.
    """

    interval: Interval
    items: int
    excluded: int
    conditions: int
    value: float | None = None
    status: EstimateStatus = "insufficient_data"
    standard_error: float | None = None
    freedom: float | None = None
    clusters: int | None = None
    design_effect: float | None = None
    informative: float | None = None
    how: Inference | None = None

    def at(self, level: float) -> Interval:
        """Return the interval at another level.

        Without `how`, raise InvalidValue if the ends are known at their own level only. An interval
        without ends changes its level alone.
        """
        check_level(level)
        if self.how is not None:
            return self.how.interval(level)
        own = self.interval
        if own.low is not None and level != own.level:
            hint = f"compute the mean again with level={level:g}"
            raise InvalidValue("level", level, f"{own.level:g}, the mean's own level", hint=hint)
        return replace(own, level=level)

    def is_rare(self) -> bool:
        """Return True if fewer than 20 items of 0/1 scores changed, or fewer than 20 did not."""
        pairs = None if self.how is None else self.how.pairs
        return pairs is not None and pairs.events() < RARE_EVENTS

    @property
    def p_value(self) -> float | None:
        """The two-sided p-value: the smallest error rate at which the interval excludes 0.

        It is None without `how`, and for equal values other than 0.
        """
        return None if self.how is None else self.how.p_value()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PairCounts:
    """A mean of differences of 0/1 scores, expressed as counts of pairs.

    `fell` and `rose` pairs of the size `scale` among `pairs` give the mean. `several` is True for
    several conditions.
    """

    fell: float
    rose: float
    pairs: float
    scale: float
    several: bool

    def interval(self, value: float, level: float, share: float = 1.0) -> Interval:
        """Return the interval, scaled by the size of a pair; every pair counts `share`."""
        # Counts over several conditions are less coarse, so Tango's interval is sufficient.
        proportions = tango if self.several else paired_proportions_interval
        fell, rose, pairs = self.fell * share, self.rose * share, self.pairs * share
        base = proportions(fell, rose, pairs, level=level)
        if base.low is None or base.high is None:
            return base
        low, high = max(-1.0, self.scale * base.low), min(1.0, self.scale * base.high)
        # Rounding must not leave the value outside its interval.
        return Interval(low=min(value, low), high=max(value, high), level=level, method=base.method)

    def events(self) -> float:
        """Return the smaller of the numbers of changed and unchanged pairs."""
        return min(self.fell + self.rose, self.pairs - self.fell - self.rose)

    def min_design_effect(self, size: float) -> float:
        """Return the smallest design effect to assume for clusters of `size` items."""
        return assumed_design_effect(self.events(), size)

    def excludes_zero(self, level: float, share: float) -> bool:
        """Return True if `interval` excludes zero, without computing its ends."""
        fell, rose, pairs = self.fell * share, self.rose * share, self.pairs * share
        z = normal_quantile(level)
        # Tango's score test at 0: if it does not reject, no interval excludes 0, and no root needs
        # to be found.
        if not (fell - rose) ** 2 > z * z * (fell + rose):
            return False
        if self.several:
            return True
        ends = bonett_price(fell, rose, pairs, level=level)
        return ends.low is not None and ends.high is not None and not ends.low <= 0.0 <= ends.high


def assumed_design_effect(events: float, size: float) -> float:
    """Return the smallest design effect to assume for clusters of `size` items with few events."""
    return 1.0 + (size - 1.0) * ASSUMED_ICC * max(0.0, 1.0 - events / RARE_EVENTS)


def known_mean(values: Floats, axis: int | tuple[int, ...] = 1) -> Floats:
    """Return the mean over an axis without its NaNs; NaN if all values are NaN."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def item_mean(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    apart: Between | None = None,
) -> ItemMean:
    """Return the weighted mean over conditions of each condition's mean over its items.

    x_ij is the value of item i in condition j, n_j the number of items with condition j. The
    weights w_j are scaled to the sum 1:

        x̄ = Σ_j w_j x̄_j        u_i = Σ_j w_j (x_ij − x̄_j)/n_j
        se² = n/(n − 1) Σ_i u_i²        x̄ ± t(n − 1) se

    u_i is the linear influence of an item on x̄. Without missing cells x̄ is the mean of the items'
    own means, and se their standard deviation over √n. The interval and the p-value, its inversion
    at 0, are two-sided.

    Parameters
    ----------
    values : array_like of shape (items,) or (items, conditions)
        NaN where missing. An item without a value is excluded. A condition without a value, or with
        the weight 0, is left out.
    weights : one non-negative weight per condition; None for equal weights
    clusters : the cluster of each item; None for independent items
    apart : both means as in `mean_drop`
        The interval is widened to contain the interval of `apart`.

    Returns
    -------
    ItemMean
        Fewer than two items: insufficient_data. Fewer than 6 clusters: too_few_clusters, with a
        value and no interval. Differences of 0/1 scores have the interval of `_pair_counts`. Other
        values that are all equal have no interval, nor has a condition within a single cluster.

    Notes
    -----
    With clusters, let h_gj be the share of condition j's items in cluster g:

        se² = Σ_g (Σ_j Σ_{i in g} w_j (x_ij − x̄_j)/(n_j √(1 − h_gj)))²        ("CR2")

    with Student's t on Satterthwaite's degrees of freedom (G − 1 for clusters of one size). For 0/1
    scores and their differences the interval without clusters is computed for n_eff = n/deff (z/t)²
    items, at most n. It is never narrower than without clusters. deff is se² over the variance
    without clusters, and at least 1 + ρ(1 − k/20)(m − 1) if only k < 20 items changed (or did not).
    Clusters of m items could be correlated by ρ = 0.05 without a visible sign in so few items.

    References
    ----------
    Liang and Zeger (1986); Bell and McCaffrey (2002); Korn and Graubard (1998).
    """
    check_level(level)
    matrix, weight = _checked_arrays(values, weights)
    if clusters is None and apart is None and matrix.shape[1] == 1:
        return _mean_of_one_condition(matrix[:, 0], level)
    codes = cluster_codes(clusters, matrix.shape[0])
    # Keep the conditions, and then the items, that have at least one value.
    present = ~np.isnan(matrix)
    used = present.any(axis=0) & (weight > 0)
    matrix, present, weight = matrix[:, used], present[:, used], weight[used]
    rows = present.any(axis=1)
    matrix, present, codes = matrix[rows], present[rows], codes[rows]
    items = int(rows.sum())
    undefined = ItemMean(
        interval=no_interval(level),
        items=items,
        excluded=int((~rows).sum()),
        conditions=int(used.sum()),
        clusters=None if clusters is None else len(np.unique(codes)),
    )
    if items < 2:
        return undefined
    # x̄ and the error of independent items, set to 0 if equal values leave a rounding error only
    weight = weight / weight.sum()
    counts = present.sum(axis=0)
    means = np.where(present, matrix, 0.0).sum(axis=0) / counts
    residuals = np.where(present, matrix - means, 0.0)
    rounding = 1e-14 * float(np.abs(means).max())
    error = float(np.sqrt(items / (items - 1) * np.square(residuals @ (weight / counts)).sum()))
    error = 0.0 if error <= rounding else error
    pairs = _pair_counts(matrix, present, weight / counts)
    estimated = replace(undefined, value=float(means @ weight), status="ok")
    apart = None if apart is None else replace(apart, value=float(means @ weight))
    if clusters is None:
        return _infer_over_items(estimated, error, pairs, apart)
    if few := too_few_clusters(estimated.clusters):
        return replace(estimated, status="too_few_clusters", interval=no_interval(level, few))
    parts = cluster_parts(residuals, present, codes)
    by_cluster = parts.error(weight)
    return _infer_over_clusters(
        estimated,
        error,
        0.0 if by_cluster <= rounding else by_cluster,
        parts.freedom(weight, counts),
        pairs,
        float(np.square(np.bincount(codes)).sum()) / items,
        apart,
    )


def _mean_of_one_condition(values: Floats, level: float) -> ItemMean:
    """Return `item_mean` of independent items in one condition, the most frequent case, faster."""
    present = ~np.isnan(values)
    used = np.ascontiguousarray(values[present])
    items = len(used)
    mean = ItemMean(
        interval=no_interval(level),
        items=items,
        excluded=len(values) - items,
        conditions=1 if items else 0,
    )
    if items < 2:
        return mean
    value = float(used.sum() / items)
    residuals = used - value
    error = float(np.sqrt(items / (items - 1) * np.square(residuals * (1.0 / items)).sum()))
    error = 0.0 if error <= 1e-14 * abs(value) else error
    fell, rose = int((used == 1.0).sum()), int((used == -1.0).sum())
    pairs = None
    if fell + rose + int((used == 0.0).sum()) == items:
        pairs = _PairCounts(
            fell=float(fell), rose=float(rose), pairs=float(items), scale=1.0, several=False
        )
    return _infer_over_items(replace(mean, value=value, status="ok"), error, pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The parts from which the intervals and tests of a mean are computed at any level.

    `pairs` is given for differences of 0/1 scores. Otherwise `error` is the standard error for
    Student's t, 0 if nothing varies. `least` is the design effect to use, None without clusters.
    `apart` is the difference of both means (MOVER), None if they are unknown.
    """

    value: float
    error: float
    freedom: float
    pairs: _PairCounts | None
    least: float | None
    method: str
    apart: Between | None = None

    def share(self, level: float) -> float:
        """Return the weight of a clustered item: (z/t)²/deff, at most 1, with deff at least 1.

        Source: Korn and Graubard (1998).
        """
        if self.least is None:
            return 1.0
        ratio = quantile_ratio(level, self.freedom)
        return min(1.0, ratio * ratio / max(1.0, self.least))

    def interval(self, level: float) -> Interval:
        """Return the two-sided interval, widened to contain the interval of `apart` if known."""
        interval = self._own_interval(level)
        apart = None if self.apart is None else self.apart.interval(level)
        if apart is None or apart.low is None:
            return interval
        # Drops that are all equal have no interval except MOVER's.
        whole = apart if interval.low is None else outer(interval, apart)
        return replace(whole, method=f"{interval.method}, holding MOVER of both means")

    def _own_interval(self, level: float) -> Interval:
        if self.pairs is not None:
            interval, share = self.pairs.interval(self.value, level), self.share(level)
            if share < 1.0:
                # Fewer pairs move the centre towards 0, so without this step one end could lie
                # further inside than for independent items.
                interval = outer(self.pairs.interval(self.value, level, share), interval)
            if self.least is None:
                return interval
            method = f"{interval.method}, effective sample size of clusters, CR2"
            return replace(interval, method=method)
        if self.error == 0.0:
            return no_interval(level, NO_VARIATION)
        half = student_quantile(level, self.freedom) * self.error
        low, high = self.value - half, self.value + half
        return Interval(low=low, high=high, level=level, method=self.method)

    def p_value(self) -> float | None:
        """Return the smallest error rate at which `interval` excludes 0; None without a test."""
        own = self._own_p_value()
        if own is None or self.apart is None:
            return own
        return max(own, least_error(self.apart.excludes_zero))

    def _own_p_value(self) -> float | None:
        if self.pairs is None:
            return self.students_p()
        if self.least is None:
            return _inversion_p_of_items(self.pairs)
        return _inversion_p(self.pairs, self.share)

    def students_p(self) -> float | None:
        """Return the p-value of Student's two-sided test.

        Without variation it is 1 if the value is 0; otherwise it is None.
        """
        from scipy.special import stdtr

        if self.error == 0.0:
            return 1.0 if self.value == 0.0 else None
        return float(2.0 * stdtr(self.freedom, -abs(self.value / self.error)))


def _infer_over_items(
    mean: ItemMean, error: float, pairs: _PairCounts | None, apart: Between | None = None
) -> ItemMean:
    """Return the mean with the interval and the test of independent items."""
    value, freedom = mean.value or 0.0, float(mean.items - 1)
    how = Inference(
        value=value, error=error, freedom=freedom, pairs=pairs, least=None, method="t over items",
        apart=apart,
    )  # fmt: skip
    return replace(
        mean,
        interval=how.interval(mean.interval.level),
        standard_error=error,
        freedom=freedom,
        how=how,
    )


def _infer_over_clusters(
    mean: ItemMean,
    error: float,
    by_cluster: float,
    freedom: float,
    pairs: _PairCounts | None,
    size: float,
    apart: Between | None,
) -> ItemMean:
    """Return the mean with the interval and the test of clusters.

    `error` is the standard error of independent items, `by_cluster` that of CR2. `size` is the
    cluster size that an item has on average. Clusters without any difference do not prove that
    others would not differ. They keep the error of independent items.
    """
    level = mean.interval.level
    if freedom <= 0.0:
        return replace(mean, interval=no_interval(level, "all items of a condition in one cluster"))
    # Below 1 the items of a cluster cancel out. Counted pairs do not profit from it: see `share`.
    effect = (by_cluster / error) ** 2 if error > 0.0 else None
    design_effect = effect or 1.0
    how = Inference(
        value=mean.value or 0.0,
        error=by_cluster or error,
        freedom=freedom,
        pairs=pairs,
        least=design_effect if pairs is None else max(design_effect, pairs.min_design_effect(size)),
        method="t over clusters, CR2"
        if by_cluster > 0.0
        else "t over items, as the clusters do not differ",
        apart=apart,
    )
    return replace(
        mean,
        interval=how.interval(level),
        standard_error=by_cluster,
        freedom=freedom,
        design_effect=effect,
        how=how,
    )


def _inversion_p(pairs: _PairCounts, share: Callable[[float], float]) -> float:
    """Return the smallest error rate at which the interval excludes 0."""
    if pairs.fell == pairs.rose:
        return 1.0

    def excludes(level: float) -> bool:
        weight = share(level)
        if not pairs.excludes_zero(level, weight):
            return False
        return weight == 1.0 or pairs.excludes_zero(level, 1.0)

    return least_error(excludes)


def least_error(excludes: Callable[[float], bool]) -> float:
    """Return the smallest α for which `excludes(1 − α)` is true, by bisection; 1 if none is."""
    return bisect_error(lambda p: excludes(1.0 - p), MIN_P_VALUE, -1e-12, beyond=1.0, steps=50)


def bisect_error(
    shows: Callable[[float], bool], lowest: float, log_most: float, *, beyond: float, steps: int
) -> float:
    """Return the smallest error rate from `lowest` on for which `shows` is true, by bisection.

    `exp(log_most)` is the largest rate that is tried. If it does not show either, return `beyond`.
    """
    # On the log scale equally many steps find a rate of 0.04 and a rate of 1e-12.
    low, high = math.log(lowest), log_most
    if shows(math.exp(low)):
        return lowest
    if not shows(math.exp(high)):
        return beyond
    for _ in range(steps):
        middle = (low + high) / 2.0
        low, high = (low, middle) if shows(math.exp(middle)) else (middle, high)
    return math.exp(high)


@lru_cache(maxsize=4096)  # with few items, many recipes have equal counts
def _inversion_p_of_items(pairs: _PairCounts) -> float:
    """Return `_inversion_p` of independent items, for which every pair counts in full."""
    return _inversion_p(pairs, lambda level: 1.0)


def _pair_counts(matrix: Floats, present: NDArray[np.bool_], shares: Floats) -> _PairCounts | None:
    """Return the mean of n parts x, from differences of 0/1 scores, as counts of changed pairs.

        s = Σ x² / Σ |x|        b = Σ x⁺ / s        c = Σ x⁻ / s

    The parts behave like b falls and c rises of size s among n pairs. For one condition this is
    exact, with s = 1. The interval is s times the interval of (b − c)/n:
    `paired_proportions_interval` for one condition, Tango for several, whose counts are less
    coarse. None for values other than −1, 0 and 1.
    """
    known = matrix[present]
    if not ((known == 0.0) | (np.abs(known) == 1.0)).all():
        return None
    # Each item's contribution to x̄, scaled so that x̄ is the mean of these parts.
    parts = np.where(present, matrix, 0.0) @ shares * len(matrix)
    magnitude = float(np.abs(parts).sum())
    scale = float(np.square(parts).sum()) / magnitude if magnitude > 0.0 else 1.0
    b, c = float(parts[parts > 0].sum()) / scale, float(-parts[parts < 0].sum()) / scale
    return _PairCounts(
        fell=b,
        rose=c,
        pairs=max(float(len(parts)), b + c),
        scale=scale,
        several=matrix.shape[1] > 1,
    )


def _checked_arrays(values: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """Return the values as items x conditions, and one weight per condition, both checked."""
    matrix = np.asarray(values, dtype=np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2:
        raise InvalidValue("values", matrix.shape, "items, or items x conditions")
    if np.isinf(matrix).any():
        raise InvalidValue("values", "an infinite score", "finite numbers, NaN where missing")
    columns = matrix.shape[1]
    if weights is None:
        return matrix, np.ones(columns)
    weight = np.asarray(weights, dtype=np.float64)
    if weight.shape != (columns,) or not (weight >= 0).all() or (columns and not weight.sum() > 0):
        raise InvalidValue("weights", weights, f"{columns} numbers, none negative, not all zero")
    return matrix, weight
