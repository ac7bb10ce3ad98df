"""Regression of robustness on performance, and the correlation of two numbers per cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from falter.measures.estimates import Basis, Clusters, Floats
from falter.measures.resample import sums_interval, unit_sums
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Interval, no_interval, student_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessRegression:
    """The slope, intercept and R² of the fitted line."""

    slope: Estimate
    intercept: Estimate
    r_squared: Estimate


def robustness_regression(
    performance: Sequence[float | None], robustness: Sequence[float | None], *, level: float = 0.95
) -> RobustnessRegression:
    """Least squares of robustness on performance over model x dataset points, as papers print it.

        slope = Σ xy/Σ x²        se² = Σ (y − slope x)²/(n − 2)/Σ x²,   x and y less their means

    `performance` and `robustness` have one number per point; None or NaN leaves a point out. The
    two-sided intervals are Student's t with n − 2 degrees of freedom; R² has none. Both axes come
    from the same answers, and luck alone gives a slope, too: `steadiness` measures robustness
    beyond luck. Constant performance: undefined_zero_variance. Fewer than three points:
    insufficient_data.
    """
    points = np.array([performance, robustness], dtype=np.float64).T
    whole = points[~np.isnan(points).any(axis=1)]
    n = len(whole)
    basis = Basis(
        estimand="robustness on performance, points like these",
        items=n,
        excluded=len(points) - n,
        level=level,
    )
    if n < 3:
        return _undefined(basis, "insufficient_data", "fewer than three points")
    means = whole.mean(axis=0)
    x, y = (whole - means).T
    square, total = float(x @ x), float(y @ y)
    # Relative to the size of the mean, since rounding of equal shares is not a spread.
    if square <= 1e-20 * max(1.0, n * float(means[0]) ** 2):
        return _undefined(basis, "undefined_zero_variance", "performance is constant")
    slope = float(x @ y) / square
    # Points on a line can leave a rounding error below 0, which has no square root.
    residual = max(0.0, total - slope * slope * square)
    error = math.sqrt(residual / (n - 2) / square)
    at_zero = error * math.sqrt(square / n + float(means[0]) ** 2)

    def estimate(part: str, value: float, error: float) -> Estimate:
        half = student_quantile(level, n - 2) * error
        method = f"t on {n - 2} degrees of freedom"
        interval = Interval(low=value - half, high=value + half, level=level, method=method)
        return basis.estimate(f"robustness_regression.{part}", value, interval)

    return RobustnessRegression(
        slope=estimate("slope", slope, error),
        intercept=estimate("intercept", float(means[1] - slope * means[0]), at_zero),
        r_squared=_r_squared_estimate(basis, 1.0 - residual / total if total > 1e-20 else None),
    )


def _r_squared_estimate(basis: Basis, value: float | None) -> Estimate:
    measure = "robustness_regression.r_squared"
    if value is None:
        return basis.undefined(measure, "undefined_zero_variance", "robustness is constant")
    none = replace(no_interval(basis.level), method="none: R² has no interval here")
    return basis.estimate(measure, value, none)


def _undefined(basis: Basis, status: EstimateStatus, why: str) -> RobustnessRegression:
    slope, intercept, r_squared = (
        basis.undefined(f"robustness_regression.{part}", status, why)
        for part in ("slope", "intercept", "r_squared")
    )
    return RobustnessRegression(slope=slope, intercept=intercept, r_squared=r_squared)


# The correlation of two numbers per cell, over all items and within items.


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """Correlation over all cells, and within items.

    `within` shows if better reasoning goes with being right on the same item.
    """

    overall: Estimate
    within: Estimate


def association(
    quality: ArrayLike,
    scores: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Association:
    """Pearson's correlation of two numbers per cell, such as reasoning quality and correctness.

        overall: r of x_ij and y_ij        within: r of x_ij − x̄_i and y_ij − ȳ_i

    Parameters
    ----------
    quality, scores : array_like of shape (items, conditions)
        x and y, NaN where missing. Only cells that have both count.
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    Association
        Two-sided intervals: BCa bootstrap of items (or clusters). A constant number:
        undefined_zero_variance. Fewer than two items: insufficient_data. Fewer than 6 clusters:
        too_few_clusters.

    Notes
    -----
    `overall` mixes the effect of a prompt with the effect of easy items, which have both good
    reasoning and right answers. `within` first subtracts the means of each item.
    """
    x, y = np.asarray(quality, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape:
        raise InvalidValue("quality, scores", (x.shape, y.shape), "two tables items x conditions")
    present = ~np.isnan(x + y)
    rows = present.any(axis=1)
    codes = cluster_codes(clusters, len(x))[rows]
    x, y = np.where(present, x, 0.0)[rows], np.where(present, y, 0.0)[rows]
    present = present[rows]
    counts = present.sum(axis=1)
    basis = Basis(
        estimand="correlation over cells, items like these",
        items=len(x),
        conditions=present.shape[1],
        excluded=int((~rows).sum()),
        clusters=None if clusters is None else len(np.unique(codes)),
        level=level,
        seed=seed,
    )

    def correlation(measure: str, centre_x: Floats, centre_y: Floats) -> Estimate:
        a, b = np.where(present, x - centre_x, 0.0), np.where(present, y - centre_y, 0.0)
        # r needs only sums, so resampling adds up rows and touches no cell.
        columns = [counts, a.sum(axis=1), b.sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1)]
        units = unit_sums(np.column_stack([*columns, (a * b).sum(axis=1)]), codes)
        if len(units) < 2:
            return basis.undefined(measure, "insufficient_data", "fewer than two items")
        value = float(_pearson(units.sum(axis=0)))
        if np.isnan(value):
            why = "the quality or the score never varies"
            return basis.undefined(measure, "undefined_zero_variance", why)
        interval = sums_interval(units, _pearson, level=level, replications=replications, seed=seed)
        return basis.estimate(measure, value, interval)

    total = max(1, int(counts.sum()))
    item_x = (x.sum(axis=1) / np.maximum(counts, 1))[:, None]
    item_y = (y.sum(axis=1) / np.maximum(counts, 1))[:, None]
    mean_x, mean_y = np.full((1, 1), x.sum() / total), np.full((1, 1), y.sum() / total)
    return Association(
        overall=correlation("association.overall", mean_x, mean_y),
        within=correlation("association.within", item_x, item_y),
    )


def _pearson(sums: Floats) -> Floats:
    """Return (mean xy − mean x mean y)/√(Var x Var y) from the sums of 1, x, y, x², y² and xy."""
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y, xx, yy, xy = np.moveaxis(sums[..., 1:] / sums[..., :1], -1, 0)
        var_x, var_y = xx - np.square(x), yy - np.square(y)
        r = (xy - x * y) / np.sqrt(var_x * var_y)
    varies = (var_x > 1e-14 * xx) & (var_y > 1e-14 * yy)
    return np.asarray(np.where(varies, np.clip(r, -1.0, 1.0), np.nan))
