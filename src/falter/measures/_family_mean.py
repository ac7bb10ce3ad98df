"""The mean over families of items: every subject counts the same, however many items it has."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy
from falter.measures._estimates import Basis
from falter.stats import (
    Interval,
    ItemMean,
    agresti_coull,
    clustered,
    item_mean,
    outer,
)

__all__ = ["family_mean"]

Floats = NDArray[np.float64]
# The degrees of freedom by which a family's own variance is drawn towards that of all scores.
BORROWED = 2.0


def family_mean(
    scores: ArrayLike,
    families: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean over families of each one's mean score; families are fixed, items random.

    `scores` is one condition, one score per item, NaN where it is missing; `families` names every
    item's family, as a subject. A family without a score is left out. `group` says how many there
    are. The interval is `_stratified_interval`; with `clusters`, t over clusters (CR2), and for 0/1
    scores Agresti and Coull's of the effective number of items; of one family, `accuracy`'s.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(families) != len(values):
        expected = "a vector of scores, and as many families"
        raise InvalidValue("scores, families", (values.shape, len(families)), expected)
    if np.isinf(values).any():
        raise InvalidValue("scores", "an infinite score", "finite numbers, NaN where missing")
    present = ~np.isnan(values)
    numbers: dict[Hashable, int] = {}
    names = [family for family, known in zip(families, present, strict=True) if known]
    codes = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)
    count = len(numbers)
    basis = Basis(
        estimand=f"mean of the mean scores of these {count} families, items like theirs",
        items=int(present.sum()),
        excluded=int((~present).sum()),
        level=level,
    )
    if not count:
        return basis.undefined("family_mean", "insufficient_data", "no item has a score")
    values = values[present]
    if clusters is not None:
        clusters = [c for c, known in zip(clusters, present, strict=True) if known]
    if count == 1:
        whole = accuracy(values, clusters=clusters, level=level)
        status, why = whole.status, whole.method.removeprefix("none: ")
        basis = replace(basis, clusters=whole.clusters, design_effect=whole.design_effect)
        interval = Interval(low=whole.low, high=whole.high, level=level, method=whole.method)
    elif clusters is not None:
        # A column for every family: item_mean is the mean of the columns' means.
        table = np.full((len(values), count), np.nan)
        table[np.arange(len(values)), codes] = values
        mean = item_mean(table, clusters=clusters, level=level)
        status, why, interval = mean.status, "fewer than two items", mean.interval
        if mean.value is not None and interval.low is not None:
            interval = _clustered_interval(mean, values, codes)
        basis = replace(basis, clusters=mean.clusters, design_effect=mean.design_effect)
    else:
        status, why, interval = "ok", "", _stratified_interval(values, codes, level)
    means = np.bincount(codes, weights=values) / np.bincount(codes).astype(np.float64)
    estimate = (
        basis.estimate("family_mean", float(means.mean()), interval, status=status)
        if status in ("ok", "too_few_clusters")
        else basis.undefined("family_mean", status, why)
    )
    return replace(estimate, group={"families": str(count)})


def _clustered_interval(mean: ItemMean, values: Floats, codes: NDArray[np.intp]) -> Interval:
    """`item_mean`'s over clusters; of 0/1 scores Agresti and Coull's, at least as wide."""
    interval, value = mean.interval, mean.value or 0.0
    if not np.isin(values, (0.0, 1.0)).all():
        return interval
    plain = _stratified_interval(values, codes, interval.level)
    variance = (mean.standard_error or 0.0) ** 2
    if variance == 0.0 or not mean.design_effect:
        return clustered(plain)
    # As many items as would have this variance without clusters, of which each counts a share.
    items = value * (1.0 - value) / variance * mean.design_effect * mean.effective_share
    return clustered(outer(agresti_coull(value * items, items, level=interval.level), plain))


def _stratified_interval(values: Floats, codes: NDArray[np.intp], level: float) -> Interval:
    """For the mean p over F families of the means m of their n items: the families are strata.

        v = (Σ (x − m)² + 2S)/(n − 1 + 2)        S = mean over families of the mean of (x − p)²
        variance = Σ (v/n) / F²        freedom = (Σ 1/n)² / Σ 1/(n² (n − 1 + 2))

    v is a family's own variance as if it had two more degrees of freedom with the variance of all,
    so that a family of few items that are all alike does not pass for certainty. Scores of 0 and 1:
    Agresti and Coull's interval for a share p of p (1 − p)/variance items, less (z/t)² for the few
    items of a small family, with Student's t on these degrees of freedom. Others: p ± t √variance.
    """
    from scipy.special import stdtrit

    sizes = np.bincount(codes).astype(np.float64)
    means = np.bincount(codes, weights=values) / sizes
    value, count = float(means.mean()), len(sizes)
    own_squares = np.bincount(codes, weights=np.square(values - means[codes]))
    spread = float((np.bincount(codes, weights=np.square(values - value)) / sizes).mean())
    variances = (own_squares + BORROWED * spread) / (sizes - 1.0 + BORROWED)
    variance = float((variances / sizes).sum()) / count**2
    shares = 1.0 / sizes
    freedom = shares.sum() ** 2 / float((np.square(shares) / (sizes - 1.0 + BORROWED)).sum())
    t, z = (float(stdtrit(df, 0.5 + level / 2.0)) for df in (freedom, math.inf))
    if np.isin(values, (0.0, 1.0)).all():
        # All alike: p (1 - p)/variance is 0/0, and its limit is F²/Σ 1/n items.
        all_alike = variance == 0.0
        items = count**2 / shares.sum() if all_alike else value * (1.0 - value) / variance
        items = float(items) * (z / t) ** 2
        interval = agresti_coull(value * items, items, level=level)
        return replace(interval, method="agresti-coull, items by stratum")
    if variance == 0.0:
        return Interval(low=None, high=None, level=level, method="none: all items alike")
    half = t * math.sqrt(variance)
    return Interval(low=value - half, high=value + half, level=level, method="t by stratum")
