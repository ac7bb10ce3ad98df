"""Whether robustness is more than competence: a line through (performance, robustness) points."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.estimates import Basis, Clusters, Floats
from falter.measures.resample import generator, sums_interval, unit_codes, unit_sums
from falter.records.errors import InvalidValue, UnknownName
from falter.records.types import Estimate, EstimateStatus
from falter.stats.intervals import Interval, no_interval
from falter.stats.resampling import jackknife


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessRegression:
    """The fitted line; with `effects`, the slope and R² within them."""

    slope: Estimate
    intercept: Estimate
    r_squared: Estimate


def robustness_regression(
    performance: Sequence[ArrayLike],
    robustness: Sequence[ArrayLike],
    *,
    correction: Literal["none", "split-half"] = "none",
    effects: Sequence[Sequence[Hashable]] = (),
    splits: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> RobustnessRegression:
    """Least squares of robustness on performance over model x dataset points.

        slope = Σ xy/Σ x²        split-half: slope = Σ x_A y_B/Σ x_A x_B, A and B random halves

    A point is a number, or the vector of its items' values, whose mean is taken; None or NaN leaves
    the point out. Intervals are Student's t; R² has none.

    Both axes come from the same answers, so luck on the items moves a point along the line.
    `correction="split-half"` takes products of different halves of the items only, with jackknife
    intervals over points. It needs vectors, with the same items in both; datasets shared by models
    should list them in one order. `effects` are labels of every point (its model, its dataset):
    their means are subtracted first, since 9 x 6 crossed points are not 54 independent ones.

    Constant performance: undefined_zero_variance; fewer than three points: insufficient_data;
    performance that varies less than its own noise: not_identified. The null to compare the slope
    with is this regression with `random_baseline` as the robustness.
    """
    if correction not in ("none", "split-half"):
        raise UnknownName("correction", correction, ("none", "split-half"))
    points = _points(performance, robustness, effects)
    basis = Basis(
        estimand="robustness on performance, points like these",
        items=len(points.x),
        conditions=1,
        excluded=points.excluded,
        level=level,
        seed=seed if correction == "split-half" else None,
    )
    if correction == "split-half":
        return _split_half(points, basis, splits)
    return _least_squares(points, basis)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """Item values of every point that has both, and the columns that effects take out."""

    x: list[Floats]
    y: list[Floats]
    design: Floats
    excluded: int


def _least_squares(points: _Points, basis: Basis) -> RobustnessRegression:
    """slope = Σ xy/Σ x² and R² = 1 − Σ (y − slope x)²/Σ y², of x and y without their effects.

    se² = Σ (y − slope x)²/f/Σ x², and of the intercept se² (Σ x²/n + x̄²), f degrees of freedom
    """
    from scipy.special import stdtrit

    x, y = (np.array([v.mean() for v in values]) for values in (points.x, points.y))
    without_effects = _residual_maker(points.design) if len(x) else np.zeros((0, 0))
    rest_x, rest_y = without_effects @ x, without_effects @ y
    freedom = len(x) - int(np.linalg.matrix_rank(points.design)) - 1 if len(x) else 0
    if freedom < 1:
        return _undefined(basis, "insufficient_data", "too few points")
    square = float(rest_x @ rest_x)
    if square <= 1e-20 * max(1.0, float(x @ x)):
        return _undefined(basis, "undefined_zero_variance", "performance is constant")
    slope = float(rest_x @ rest_y) / square
    total = float(rest_y @ rest_y)
    residual = max(0.0, total - slope * slope * square)
    error = float(np.sqrt(residual / freedom / square))
    t = float(stdtrit(freedom, 0.5 + basis.level / 2.0))

    def around(value: float, half: float) -> Interval:
        method = f"t on {freedom} degrees of freedom"
        return Interval(low=value - half, high=value + half, level=basis.level, method=method)

    intercept = float(y.mean() - slope * x.mean())
    at_zero = error * float(np.sqrt(square / len(x) + x.mean() ** 2))
    has_effects = points.design.shape[1] > 1
    return RobustnessRegression(
        slope=basis.estimate("robustness_regression.slope", slope, around(slope, t * error)),
        intercept=basis.estimate(
            "robustness_regression.intercept",
            intercept,
            no_interval(basis.level) if has_effects else around(intercept, t * at_zero),
        ),
        r_squared=_r_squared(basis, 1.0 - residual / total if total > 1e-20 else None),
    )


def _split_half(points: _Points, basis: Basis, splits: int) -> RobustnessRegression:
    """The line from products of different halves, with a jackknife over points."""
    if splits < 1:
        raise InvalidValue("splits", splits, "one or more")
    shortest = min((len(v) for v in points.x), default=2)
    if shortest < 2 or any(len(a) != len(b) for a, b in zip(points.x, points.y, strict=True)):
        raise InvalidValue(
            "performance, robustness",
            f"a point of {shortest} items",
            "for every point two vectors of the same two items or more",
            hint="correction='none' takes numbers",
        )
    if len(points.x) < 3:
        return _undefined(basis, "insufficient_data", "fewer than three points")
    halves = _halves(points, splits, basis.seed or 0)
    all_points = np.arange(len(points.x))
    line = _line(halves, points.design, all_points)
    if np.isnan(line[0]):
        why = "performance varies less than its sampling error"
        return _undefined(basis, "not_identified", why)
    left_out = np.stack(
        [_line(halves, points.design, np.delete(all_points, p)) for p in all_points]
    )
    slope, intercept, r_squared = (float(number) for number in line)

    def interval(value: float, without_a_point: Floats) -> Interval:
        if np.isnan(without_a_point).any() or np.isnan(value):
            return no_interval(basis.level)
        over_points = jackknife(value, without_a_point, level=basis.level)
        method = f"{over_points.method} over points, {splits} splits, PCG64"
        return replace(over_points, method=method)

    return RobustnessRegression(
        slope=basis.estimate("robustness_regression.slope", slope, interval(slope, left_out[:, 0])),
        intercept=basis.estimate(
            "robustness_regression.intercept", intercept, interval(intercept, left_out[:, 1])
        ),
        r_squared=_r_squared(basis, None if np.isnan(r_squared) else min(1.0, r_squared)),
    )


def _halves(points: _Points, splits: int, seed: int) -> Floats:
    """Four (x_A, x_B, y_A, y_B) x points x splits; points of one length share their halves."""
    rng = generator(seed)
    in_half_a: dict[int, Floats] = {}
    for length in sorted({len(v) for v in points.x}):
        order = rng.random((length, splits)).argsort(axis=0)
        in_half_a[length] = (order < length // 2).astype(float)
    halves = np.empty((4, len(points.x), splits))
    for place, (x, y) in enumerate(zip(points.x, points.y, strict=True)):
        a, size = in_half_a[len(x)], len(x) // 2
        for row, values in ((0, x), (2, y)):
            halves[row, place] = values @ a / size
            halves[row + 1, place] = values @ (1.0 - a) / (len(x) - size)
    return halves


def _line(halves: Floats, design: Floats, points: NDArray[np.intp]) -> Floats:
    """Slope, intercept and R² of some points; NaN where not identified.

    slope = Σ (x_A y_B + x_B y_A)/2 / Σ x_A x_B
    R² = (Σ (x_A y_B + x_B y_A)/2)² / (Σ x_A x_B Σ y_A y_B)
    """
    without_effects = _residual_maker(design[points])
    x_a, x_b, y_a, y_b = (without_effects @ half[points] for half in halves)
    xy = float((x_a * y_b + x_b * y_a).sum()) / 2.0
    xx, yy = float((x_a * x_b).sum()), float((y_a * y_b).sum())
    if not xx > 1e-12 * float(np.square(halves[:2, points]).sum()):
        return np.full(3, np.nan)
    slope = xy / xx
    means = halves[:, points].mean(axis=(1, 2))
    intercept = (means[2] + means[3]) / 2.0 - slope * (means[0] + means[1]) / 2.0
    r_squared = xy * xy / (xx * yy) if yy > 0.0 else np.nan
    return np.array([slope, intercept, r_squared])


def _r_squared(basis: Basis, value: float | None) -> Estimate:
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


def _residual_maker(design: Floats) -> Floats:
    """I − D(D'D)⁺D', the projection that takes the design's columns out."""
    return np.asarray(np.eye(len(design)) - design @ np.linalg.pinv(design))


def _points(
    performance: Sequence[ArrayLike],
    robustness: Sequence[ArrayLike],
    effects: Sequence[Sequence[Hashable]],
) -> _Points:
    count = len(performance)
    if count != len(robustness):
        sizes = (count, len(robustness))
        raise InvalidValue("performance, robustness", sizes, "as many points in both")
    for labels in effects:
        if len(labels) != count:
            raise InvalidValue("effects", labels, f"a label for each of {count} points")
    x, y = (
        [np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in values]
        for values in (performance, robustness)
    )
    complete = [
        place
        for place, (a, b) in enumerate(zip(x, y, strict=True))
        if len(a) and len(b) and not (np.isnan(a).any() or np.isnan(b).any())
    ]
    # An intercept, and an indicator of every label of every effect.
    columns = [np.ones(len(complete))]
    for labels in effects:
        labels = [labels[place] for place in complete]
        columns += [np.array([o == name for o in labels], float) for name in dict.fromkeys(labels)]
    return _Points(
        x=[x[place] for place in complete],
        y=[y[place] for place in complete],
        design=np.column_stack(columns),
        excluded=count - len(complete),
    )


# What goes together: two numbers per cell, over all items and within them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """Correlation over all cells, and within items: whether better reasoning goes with being right
    on the same item.
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

    over the cells of items i and conditions j that have both; `quality` x and `scores` y are items
    x conditions, NaN where missing. `overall` mixes easy items, which are reasoned about well and
    answered well, with what a prompt does; `within` first subtracts each item's means. BCa
    bootstrap of items (or clusters). Something is constant: undefined_zero_variance. Fewer than two
    items: insufficient_data.
    """
    x, y = np.asarray(quality, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape:
        raise InvalidValue("quality, scores", (x.shape, y.shape), "two tables items x conditions")
    present = ~np.isnan(x + y)
    rows = present.any(axis=1)
    codes = unit_codes(clusters, len(x))[rows]
    x, y = np.where(present, x, 0.0)[rows], np.where(present, y, 0.0)[rows]
    present = present[rows]
    counts = present.sum(axis=1)
    basis = Basis(
        estimand="correlation over cells, items like these",
        items=len(x),
        conditions=present.shape[1],
        excluded=int((~rows).sum()),
        level=level,
        seed=seed,
    )

    def correlation(measure: str, centre_x: Floats, centre_y: Floats) -> Estimate:
        a, b = np.where(present, x - centre_x, 0.0), np.where(present, y - centre_y, 0.0)
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
    """(mean xy − mean x mean y)/√(Var x Var y) from the sums of 1, x, y, x², y² and xy."""
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y, xx, yy, xy = np.moveaxis(sums[..., 1:] / sums[..., :1], -1, 0)
        var_x, var_y = xx - np.square(x), yy - np.square(y)
        r = (xy - x * y) / np.sqrt(var_x * var_y)
    varies = (var_x > 1e-14 * xx) & (var_y > 1e-14 * yy)
    return np.asarray(np.where(varies, np.clip(r, -1.0, 1.0), np.nan))
