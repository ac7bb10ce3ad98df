"""Sums of condition means with any coefficients, as one item-level quantity."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import EstimateStatus
from falter.measures._resample import unit_codes
from falter.stats import (
    Interval,
    cluster_parts,
    no_interval,
    too_few_clusters,
)

__all__ = ["Contrast", "contrast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The value and its interval; None where a condition has no item, or items are too few."""

    value: float | None
    status: EstimateStatus
    interval: Interval
    error: float
    p_value: float | None
    items: int
    excluded: int
    clusters: int | None
    design_effect: float | None


def contrast(
    matrix: NDArray[np.float64],
    coefficients: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Contrast:
    """A sum of condition means with coefficients c, over items x conditions, NaN for missing.

        v = Σ_j c_j ȳ_j        u_i = Σ_j c_j (y_ij − ȳ_j)/n_j
        se² = n/(n − 1) Σ_i u_i²        v ± t(n − 1) se

    u_i is the linear influence of an item on v, n_j the items with condition j. With no cell
    missing this is the one-sample t interval of Σ_j c_j y_ij. With `clusters` se and t are those of
    `falter.stats.item_mean`: CR2 with Satterthwaite's degrees of freedom; fewer than 6:
    too_few_clusters.
    """
    from scipy.special import stdtr, stdtrit

    c = np.asarray(coefficients, dtype=np.float64)
    codes = unit_codes(clusters, len(matrix))
    present = ~np.isnan(matrix) & (c != 0.0)
    rows = present.any(axis=1)
    y, codes = np.where(present, matrix, 0.0)[rows], codes[rows]
    present = present[rows]
    counts = present.sum(axis=0)
    items = int(rows.sum())
    unknown = Contrast(
        value=None,
        status="insufficient_data",
        interval=no_interval(level),
        error=0.0,
        p_value=None,
        items=items,
        excluded=int((~rows).sum()),
        clusters=None if clusters is None else len(np.unique(codes)),
        design_effect=None,
    )
    if items < 2 or (counts[c != 0.0] == 0).any():
        return unknown
    counts = np.maximum(counts, 1)
    means = y.sum(axis=0) / counts
    residuals = np.where(present, y - means, 0.0)
    value = float(means @ c)
    error = float(np.sqrt(items / (items - 1) * np.square(residuals @ (c / counts)).sum()))
    # What rounding leaves of equal values is no standard error.
    rounding = 1e-14 * float(np.abs(means * c).max())
    error = 0.0 if error <= rounding else error
    known = replace(unknown, value=value, status="ok", error=error)
    if clusters is None:
        freedom, method = float(items - 1), "t over items"
    elif few := too_few_clusters(known.clusters):
        return replace(known, status="too_few_clusters", interval=no_interval(level, few))
    else:
        parts = cluster_parts(residuals, present, codes)
        clustered, freedom = parts.error(c), parts.freedom(c, counts)
        clustered = 0.0 if clustered <= rounding else clustered
        effect = (clustered / error) ** 2 if error > 0.0 else None
        known = replace(known, error=clustered, design_effect=effect)
        method = "t over clusters, CR2"
        if clustered == 0.0:
            method = "t over items, as the clusters do not differ"
        else:
            error = clustered
    if error == 0.0 or freedom <= 0.0:
        return known
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * error
    interval = Interval(low=value - half, high=value + half, level=level, method=method)
    p_value = float(2.0 * stdtr(freedom, -abs(value / error)))
    return replace(known, interval=interval, p_value=p_value)
