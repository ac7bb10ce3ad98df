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
from falter.stats import Interval, agresti_coull, item_mean

__all__ = ["family_mean"]

Floats = NDArray[np.float64]
SHRUNK = 2.0


def family_mean(
    scores: ArrayLike,
    families: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean over families of each one's mean score; families are fixed, items random.

    `scores` is one condition, one score an item, NaN where it is missing; `families` names every
    item's family, as a subject. A family without a score is left out. `group` says how many there
    are. One family has `accuracy`'s interval.

    With n items in a family, mean m, and the mean p over F families, the variance is the sum of
    v/n over F^2 with v = (sum (x - m)^2 + 2 S)/(n + 1), S the mean over families of
    mean (x - p)^2: a family's own variance, as if it had two more degrees of freedom with the
    variance of all, so that a family of few items that are all alike does not pass for certainty.
    t is Student's on (sum 1/n)^2 / sum 1/(n^2 (n + 1)) degrees of freedom. 0/1 scores: Agresti
    and Coull's interval for a share p of p (1 - p)/variance items, scaled by (z/t)^2; others:
    p -+ t sd. With `clusters`: t over clusters, CR1.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(families) != len(values):
        expected = "a vector of scores, and as many families"
        raise InvalidValue("scores, families", (values.shape, len(families)), expected)
    if np.isinf(values).any():
        raise InvalidValue("scores", "an infinite score", "finite numbers, NaN where missing")
    there = ~np.isnan(values)
    numbers: dict[Hashable, int] = {}
    named = [f for f, known in zip(families, there, strict=True) if known]
    codes = np.array([numbers.setdefault(f, len(numbers)) for f in named], dtype=np.intp)
    count = len(numbers)
    basis = Basis(
        estimand=f"mean score of {count} fixed families, each of items like its own",
        items=int(there.sum()),
        excluded=int((~there).sum()),
        level=level,
    )
    if not count:
        return basis.undefined("family_mean", "insufficient_data", "no item has a score")
    units = None if clusters is None else [c for c, k in zip(clusters, there, strict=True) if k]
    found = _found(values[there], codes, count, units, basis)
    return replace(found, group={"families": str(count)})


def _found(
    values: Floats,
    codes: NDArray[np.intp],
    count: int,
    clusters: Sequence[Hashable] | None,
    basis: Basis,
) -> Estimate:
    sizes = np.bincount(codes).astype(np.float64)
    means = np.bincount(codes, weights=values) / sizes
    value = float(means.mean())
    binary = bool(np.isin(values, (0.0, 1.0)).all())
    if count == 1:
        one = accuracy(values, clusters=clusters, level=basis.level)
        if one.value is None:
            return basis.undefined("family_mean", one.status, one.method.removeprefix("none: "))
        own = Interval(low=one.low, high=one.high, level=basis.level, method=one.method)
        return basis.estimate("family_mean", value, own)
    if clusters is not None:
        spread = np.full((len(values), count), np.nan)
        spread[np.arange(len(values)), codes] = values
        mean = item_mean(spread, clusters=clusters, level=basis.level)
        if mean.value is None:
            return basis.undefined("family_mean", mean.status, "fewer than two clusters")
        return basis.estimate("family_mean", value, _within(mean.interval, binary))
    interval = _interval(values, codes, sizes, means, binary, basis.level)
    return basis.estimate("family_mean", value, interval)


def _interval(
    values: Floats,
    codes: NDArray[np.intp],
    sizes: Floats,
    means: Floats,
    binary: bool,
    level: float,
) -> Interval:
    from scipy.special import stdtrit

    value, count = float(means.mean()), len(sizes)
    own = np.bincount(codes, weights=np.square(values - means[codes]))
    whole = float((np.bincount(codes, weights=np.square(values - value)) / sizes).mean())
    variances = (own + SHRUNK * whole) / (sizes - 1.0 + SHRUNK)
    variance = float((variances / sizes).sum()) / count**2
    shares = 1.0 / sizes
    freedom = shares.sum() ** 2 / float((np.square(shares) / (sizes - 1.0 + SHRUNK)).sum())
    t, z = (float(stdtrit(df, 0.5 + level / 2.0)) for df in (freedom, math.inf))
    if binary:
        alike = variance == 0.0
        items = count**2 / shares.sum() if alike else value * (1.0 - value) / variance
        items = float(items) * (z / t) ** 2
        base = agresti_coull(value * items, items, level=level)
        return Interval(
            low=base.low, high=base.high, level=level, method="agresti-coull, items by stratum"
        )
    if variance == 0.0:
        return Interval(low=None, high=None, level=level, method="none: all items alike")
    half = t * math.sqrt(variance)
    return Interval(low=value - half, high=value + half, level=level, method="t by stratum")


def _within(interval: Interval, binary: bool) -> Interval:
    """Cut to shares, where scores are 0/1."""
    low, high = interval.low, interval.high
    if not binary or low is None or high is None:
        return interval
    return Interval(
        low=max(0.0, low), high=min(1.0, high), level=interval.level, method=interval.method
    )
