"""The mean of per-item values over several conditions, as one item-level quantity."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._clusters import cluster_codes, cluster_sums
from falter.stats._interval import Interval, check_level, no_interval, student_quantile
from falter.stats._paired_proportions import paired_proportions_interval, tango

__all__ = ["ItemMean", "item_mean"]

RARE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMean:
    """A mean over items and what is known about it; `units` are items, or clusters of items."""

    value: float | None
    status: EstimateStatus
    interval: Interval
    p_value: float | None
    standard_error: float | None
    items: int
    excluded: int
    conditions: int
    units: int


def item_mean(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ItemMean:
    """The weighted mean over conditions of each one's mean over its items, with a t interval.

    `values` is items x conditions (or items) with NaN for a missing cell. With every cell present
    this is the mean of the within-item means and its standard error s / sqrt(n); with cells missing
    every condition keeps its weight, and an item counts through its linear influence on the value.
    With `clusters` the variance is G/(G-1) times the sum of squared cluster sums (CR1), on G - 1
    degrees of freedom. A condition without a single value is left out. Fewer than two units:
    insufficient_data. Differences of 0/1 outcomes have an interval of their own: `_discrete`;
    other values that are all alike have none.
    """
    check_level(level)
    matrix, share = _table(values, weights)
    codes = cluster_codes(clusters, matrix.shape[0])
    seen = ~np.isnan(matrix)
    used = seen.any(axis=0) & (share > 0)
    matrix, seen, share = matrix[:, used], seen[:, used], share[used]
    rows = seen.any(axis=1)
    matrix, seen, codes = matrix[rows], seen[rows], codes[rows]
    items, excluded, conditions = int(rows.sum()), int((~rows).sum()), int(used.sum())
    units = items if clusters is None else len(np.unique(codes))
    if units < 2:
        return ItemMean(
            value=None,
            status="insufficient_data",
            interval=no_interval(level),
            p_value=None,
            standard_error=None,
            items=items,
            excluded=excluded,
            conditions=conditions,
            units=units,
        )
    share = share / share.sum()
    counts = seen.sum(axis=0)
    means = np.where(seen, matrix, 0.0).sum(axis=0) / counts
    value = float(means @ share)
    influence = np.where(seen, matrix - means, 0.0) @ (share / counts)
    sums = cluster_sums(influence, codes)
    error = float(np.sqrt(units / (units - 1) * np.square(sums).sum()))
    if error <= 1e-14 * float(np.abs(means).max()):
        error = 0.0
    part = np.where(seen, matrix, 0.0) @ (share / counts) * items
    interval = _discrete(matrix, seen, part, value, clusters is not None, codes, level)
    if interval is None and error == 0.0:
        interval = no_interval(level)
    elif interval is None:
        method = "t over items" if clusters is None else "t over clusters, CR1"
        half = student_quantile(level, units - 1) * error
        interval = Interval(low=value - half, high=value + half, level=level, method=method)
    return ItemMean(
        value=value,
        status="ok",
        interval=interval,
        p_value=_p_value(value, error, units),
        standard_error=error,
        items=items,
        excluded=excluded,
        conditions=conditions,
        units=units,
    )


def _discrete(
    matrix: NDArray[np.float64],
    seen: NDArray[np.bool_],
    part: NDArray[np.float64],
    value: float,
    clustered: bool,
    codes: NDArray[np.intp],
    level: float,
) -> Interval | None:
    """An interval for differences of 0/1 outcomes, where t covers too little.

    Every unit contributes x, with the mean of x the value. Scaled by s = sum x^2 / sum |x| they
    behave like b = sum x+ / s falls and c = sum x- / s rises among n: exactly so for one condition
    and no clusters, where s = 1. The interval is s times `paired_proportions_interval`'s for one
    condition, s times Tango's for several, which takes the counts less coarse. Clusters keep t and
    CR1 unless b + c < 20 or n - b - c < 20.
    """
    if not np.isin(matrix[seen], (-1.0, 0.0, 1.0)).all():
        return None
    x = cluster_sums(part, codes) if clustered else part
    units = len(x)
    x = x * (units / len(part))
    magnitude = float(np.abs(x).sum())
    scale = float(np.square(x).sum()) / magnitude if magnitude > 0.0 else 1.0
    b, c = float(x[x > 0].sum()) / scale, float(-x[x < 0].sum()) / scale
    if clustered and b + c >= RARE and units - b - c >= RARE:
        return None
    make = paired_proportions_interval if matrix.shape[1] == 1 else tango
    base = make(b, c, max(float(units), b + c), level=level)
    if base.low is None or base.high is None:
        return None
    low, high = min(value, max(-1.0, scale * base.low)), max(value, min(1.0, scale * base.high))
    return Interval(low=low, high=high, level=level, method=base.method)


def _p_value(value: float, error: float, units: int) -> float | None:
    """Two-sided Student's t against 0; None where equal non-zero values leave nothing to test."""
    from scipy.special import stdtr

    if error == 0.0:
        return 1.0 if value == 0.0 else None
    return float(2.0 * stdtr(units - 1, -abs(value / error)))


def _table(
    values: ArrayLike, weights: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    matrix = np.asarray(values, dtype=np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2:
        raise InvalidValue("values", matrix.shape, "items, or items x conditions")
    if np.isinf(matrix).any():
        raise InvalidValue("values", "an infinite score", "finite numbers, NaN where missing")
    columns = matrix.shape[1]
    share = np.ones(columns) if weights is None else np.asarray(weights, dtype=np.float64)
    if share.shape != (columns,) or not (share >= 0).all() or (columns and not share.sum() > 0):
        raise InvalidValue("weights", weights, f"{columns} numbers, none negative, not all zero")
    return matrix, share
