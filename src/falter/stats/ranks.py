"""Agreement of rankings: Spearman's and Kendall's coefficients, with ties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats.intervals import Interval

Floats = NDArray[np.float64]
NO_INTERVAL = Interval(
    low=None, high=None, level=0.95, method="none: resample the items behind the numbers"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCorrelation:
    """A coefficient between -1 and 1. `items` is the number of things ranked.

    There is no interval, because no formula gives a usable one for six models. Resample the items
    behind both vectors, and put theirs here with `dataclasses.replace`.
    """

    value: float | None
    status: EstimateStatus
    items: int
    excluded: int
    method: str
    interval: Interval = NO_INTERVAL
    estimand: str = "these two rankings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Concordance:
    """Kendall's W with Friedman's test; `conditions` rank `items`."""

    value: float | None
    status: EstimateStatus
    chi2: float | None
    freedom: int
    p_value: float | None
    items: int
    excluded: int
    conditions: int
    interval: Interval = NO_INTERVAL
    estimand: str = "these rankings"


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1 for the least; tied values share the mean of their places."""
    _, places, counts = np.unique(
        np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True
    )
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2.0)[places.ravel()])


def spearman(first: ArrayLike, second: ArrayLike) -> RankCorrelation:
    """Spearman's rank correlation: Pearson's, of the average ranks.

    A pair with a NaN is left out and counted. Fewer than three pairs: insufficient_data; a vector
    whose values are all the same: undefined_zero_variance. Source: Spearman (1904).
    """
    x, y, excluded, status = _pairs(first, second)
    value = None
    if status == "ok":
        x, y = average_ranks(x), average_ranks(y)
        x, y = x - x.mean(), y - y.mean()
        value = _clip(float(x @ y / np.sqrt((x @ x) * (y @ y))))
    return RankCorrelation(
        value=value, status=status, items=len(x), excluded=excluded, method="spearman"
    )


def kendall_w(scores: ArrayLike) -> Concordance:
    """Kendall's W: how far J conditions rank the same things alike, 0 not at all, 1 perfectly.

        W = 12 Σ_i (R_i − R̄)² / (J²(n³ − n) − J T)        χ² = J (n − 1) W, n − 1 degrees of freedom

    with rank sums R_i of n things, and T the sum of t³ − t over all groups of t tied things in a
    condition. `scores` is things x conditions, ranked within each condition with average ranks. χ²
    is Friedman's; its p-value is rough below about 15 conditions. A row with a NaN is left out and
    counted. One condition: not_identified; fewer than two things: insufficient_data; all tied in
    every condition: undefined_zero_variance. Source: Kendall and Babington Smith (1939).
    """
    from scipy.special import chdtrc

    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("scores", table.shape, "things x conditions")
    whole = ~np.isnan(table).any(axis=1)
    table, excluded = table[whole], int((~whole).sum())
    things, conditions = table.shape
    status: EstimateStatus = "ok"
    if conditions < 2:
        status = "not_identified"
    elif things < 2:
        status = "insufficient_data"
    elif not np.ptp(table, axis=0).any():
        status = "undefined_zero_variance"
    value = chi2 = None
    if status == "ok":
        sums = np.sum([average_ranks(column) for column in table.T], axis=0)
        ties = 0.0
        for column in table.T:
            t = np.unique(column, return_counts=True)[1].astype(np.float64)
            ties += float((t**3 - t).sum())
        most = conditions**2 * (things**3 - things) - conditions * ties
        value = float(12.0 * np.square(sums - sums.mean()).sum() / most)
        chi2 = conditions * (things - 1) * value
    return Concordance(
        value=value,
        status=status,
        chi2=chi2,
        freedom=max(0, things - 1),
        p_value=None if chi2 is None else float(chdtrc(things - 1, chi2)),
        items=things,
        excluded=excluded,
        conditions=conditions,
    )


def _clip(value: float) -> float:
    """Rounding can take a coefficient past 1."""
    return min(1.0, max(-1.0, value))


def _pairs(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats, int, EstimateStatus]:
    """The pairs without a NaN, how many have one, and whether a correlation is defined."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidValue("first, second", (x.shape, y.shape), "two vectors of the same length")
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[both], y[both]
    status: EstimateStatus = "ok"
    if len(x) < 3:
        status = "insufficient_data"
    elif np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        status = "undefined_zero_variance"
    return x, y, int((~both).sum()), status
