"""The mean of per-item values over several conditions, as one item-level quantity."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._clusters import cluster_codes, cluster_sums
from falter.stats._interval import Interval, check_level, no_interval, student_quantile
from falter.stats._paired_proportions import paired_proportions_interval, tango

__all__ = ["ItemMean", "item_mean"]

Floats = NDArray[np.float64]
# With fewer items that changed (or that did not), Student's t covers too little for 0/1 scores.
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

    For x_ij of item i in condition j, the n_j items that have condition j, and weights w_j that
    add up to 1:

        x̄ = Σ_j w_j x̄_j        u_i = Σ_j w_j (x_ij − x̄_j)/n_j
        se² = G/(G − 1) Σ_g (Σ_{i in g} u_i)²        x̄ ± t(G − 1) se

    u_i is the linear influence of an item on x̄, and G the number of clusters ("CR1"); without
    `clusters` every item is one of its own. With every cell present x̄ is the mean of the items'
    own means, and se their standard deviation over √n. The p-value is Student's t against 0.

    `values` is items x conditions (or items) with NaN for a missing cell. A condition without a
    value is left out, an item without one excluded. Fewer than two units: insufficient_data.
    Differences of 0/1 scores have `_binary_interval`; other values that are all alike have none.
    Source: Liang and Zeger (1986); Cameron and Miller (2015) for G/(G − 1).
    """
    from scipy.special import stdtr

    check_level(level)
    matrix, weight = _checked(values, weights)
    codes = cluster_codes(clusters, matrix.shape[0])
    # Keep the conditions, and then the items, that have at least one value.
    present = ~np.isnan(matrix)
    used = present.any(axis=0) & (weight > 0)
    matrix, present, weight = matrix[:, used], present[:, used], weight[used]
    rows = present.any(axis=1)
    matrix, present, codes = matrix[rows], present[rows], codes[rows]
    items = int(rows.sum())
    units = items if clusters is None else len(np.unique(codes))
    result = partial(
        ItemMean,
        items=items,
        excluded=int((~rows).sum()),
        conditions=int(used.sum()),
        units=units,
    )
    if units < 2:
        return result(
            value=None,
            status="insufficient_data",
            interval=no_interval(level),
            p_value=None,
            standard_error=None,
        )
    # x̄ and u_i
    weight = weight / weight.sum()
    counts = present.sum(axis=0)
    means = np.where(present, matrix, 0.0).sum(axis=0) / counts
    value = float(means @ weight)
    influence = np.where(present, matrix - means, 0.0) @ (weight / counts)
    # se, which is 0 where only rounding is left of equal values
    error = float(np.sqrt(units / (units - 1) * np.square(cluster_sums(influence, codes)).sum()))
    if error <= 1e-14 * float(np.abs(means).max()):
        error = 0.0
    interval = None
    if np.isin(matrix[present], (-1.0, 0.0, 1.0)).all():
        # What every unit adds to x̄, scaled so that x̄ is the mean of these parts.
        parts = np.where(present, matrix, 0.0) @ (weight / counts) * items
        if clusters is not None:
            parts = cluster_sums(parts, codes) * (units / items)
        interval = _binary_interval(
            parts, value, level, clustered=clusters is not None, conditions=matrix.shape[1]
        )
    if interval is None and error > 0.0:
        method = "t over items" if clusters is None else "t over clusters, CR1"
        half = student_quantile(level, units - 1) * error
        interval = Interval(low=value - half, high=value + half, level=level, method=method)
    # Equal values that are not 0 leave nothing to test against.
    p_value = 1.0 if value == 0.0 else None
    if error > 0.0:
        p_value = float(2.0 * stdtr(units - 1, -abs(value / error)))
    return result(
        value=value,
        status="ok",
        interval=interval or no_interval(level),
        p_value=p_value,
        standard_error=error,
    )


def _binary_interval(
    parts: Floats, value: float, level: float, *, clustered: bool, conditions: int
) -> Interval | None:
    """The interval of the mean of n parts x that come from differences of 0/1 scores.

        s = Σ x² / Σ |x|        b = Σ x⁺ / s        c = Σ x⁻ / s

    The parts behave like b falls and c rises of size s among n pairs: exactly so for one condition
    without clusters, where s = 1. The interval is s times that of (b − c)/n, by
    `paired_proportions_interval` for one condition and by Tango for several, whose counts are less
    coarse. None, and so Student's t, for clusters with b + c >= 20 and n − b − c >= 20.
    """
    units = len(parts)
    magnitude = float(np.abs(parts).sum())
    scale = float(np.square(parts).sum()) / magnitude if magnitude > 0.0 else 1.0
    b, c = float(parts[parts > 0].sum()) / scale, float(-parts[parts < 0].sum()) / scale
    if clustered and b + c >= RARE and units - b - c >= RARE:
        return None
    proportions = paired_proportions_interval if conditions == 1 else tango
    base = proportions(b, c, max(float(units), b + c), level=level)
    if base.low is None or base.high is None:
        return None
    low, high = min(value, max(-1.0, scale * base.low)), max(value, min(1.0, scale * base.high))
    return Interval(low=low, high=high, level=level, method=base.method)


def _checked(values: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """The values as items x conditions, and a weight for every condition."""
    matrix = np.asarray(values, dtype=np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2:
        raise InvalidValue("values", matrix.shape, "items, or items x conditions")
    if np.isinf(matrix).any():
        raise InvalidValue("values", "an infinite score", "finite numbers, NaN where missing")
    columns = matrix.shape[1]
    weight = np.ones(columns) if weights is None else np.asarray(weights, dtype=np.float64)
    if weight.shape != (columns,) or not (weight >= 0).all() or (columns and not weight.sum() > 0):
        raise InvalidValue("weights", weights, f"{columns} numbers, none negative, not all zero")
    return matrix, weight
