"""Is robustness more than competence? A line through (performance, robustness) points."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue, UnknownName
from falter.core.records import Estimate, EstimateStatus
from falter.measures._estimates import Basis
from falter.measures._resample import generator
from falter.stats import Interval, jackknife, no_interval

__all__ = ["RobustnessRegression", "robustness_regression"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessRegression:
    """The fitted line; with `effects`, the slope and R^2 within them."""

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

    A point is a number, or the vector of its items' values, whose mean is taken; None or NaN leaves
    the point out. Intervals are Student's t, that of R^2 has none.

    Both axes come from the same answers, so luck on the items moves a point along the line.
    `correction="split-half"` takes products of different halves of the items only: slope =
    sum x_A y_B / sum x_A x_B over random halves, with jackknife intervals over points. It needs
    vectors, with the same items in both; datasets shared by models should list them in one order.
    `effects` are labels of every point (its model, its dataset): their means are taken off first,
    since 9 x 6 crossed points are not 54 independent ones.

    Constant performance: undefined_zero_variance; fewer than three points: insufficient_data;
    performance that varies less than its own noise: not_identified. The null to hold the slope
    against is this regression with `random_baseline` as the robustness.
    """
    if correction not in ("none", "split-half"):
        raise UnknownName("correction", correction, ("none", "split-half"))
    points = _points(performance, robustness, effects)
    basis = Basis(
        estimand="robustness on performance, these kinds of points",
        items=len(points.x),
        conditions=1,
        excluded=points.lost,
        level=level,
        seed=seed if correction == "split-half" else None,
    )
    if correction == "split-half":
        return _halves(points, basis, splits)
    return _plain(points, basis)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """Item values of every point that has both, and the columns that effects take out."""

    x: list[Floats]
    y: list[Floats]
    design: Floats
    lost: int


def _plain(points: _Points, basis: Basis) -> RobustnessRegression:
    from scipy.special import stdtrit

    x, y = (np.array([v.mean() for v in values]) for values in (points.x, points.y))
    maker = _maker(points.design) if len(x) else np.zeros((0, 0))
    own_x, own_y = maker @ x, maker @ y
    freedom = len(x) - int(np.linalg.matrix_rank(points.design)) - 1 if len(x) else 0
    if freedom < 1:
        return _none(basis, "insufficient_data", "too few points")
    square = float(own_x @ own_x)
    if square <= 1e-20 * max(1.0, float(x @ x)):
        return _none(basis, "undefined_zero_variance", "performance is constant")
    slope = float(own_x @ own_y) / square
    total = float(own_y @ own_y)
    rest = max(0.0, total - slope * slope * square)
    error = float(np.sqrt(rest / freedom / square))
    t = float(stdtrit(freedom, 0.5 + basis.level / 2.0))

    def around(value: float, half: float) -> Interval:
        method = f"t on {freedom} degrees of freedom"
        return Interval(low=value - half, high=value + half, level=basis.level, method=method)

    intercept = float(y.mean() - slope * x.mean())
    at_zero = error * float(np.sqrt(square / len(x) + x.mean() ** 2))
    plain = points.design.shape[1] == 1
    return RobustnessRegression(
        slope=basis.estimate("robustness_regression.slope", slope, around(slope, t * error)),
        intercept=basis.estimate(
            "robustness_regression.intercept",
            intercept,
            around(intercept, t * at_zero) if plain else no_interval(basis.level),
        ),
        r_squared=_r_squared(basis, 1.0 - rest / total if total > 1e-20 else None),
    )


def _halves(points: _Points, basis: Basis, splits: int) -> RobustnessRegression:
    if splits < 1:
        raise InvalidValue("splits", splits, "one or more")
    short = min((len(v) for v in points.x), default=2)
    if short < 2 or any(len(a) != len(b) for a, b in zip(points.x, points.y, strict=True)):
        raise InvalidValue(
            "performance, robustness", f"a point of {short} items", "vectors of the same two items "
            "or more for every point", hint="correction='none' takes numbers",
        )  # fmt: skip
    if len(points.x) < 3:
        return _none(basis, "insufficient_data", "fewer than three points")
    halves = _split(points, splits, basis.seed or 0)
    everything = np.arange(len(points.x))
    value = _corrected(halves, points.design, everything)
    if np.isnan(value[0]):
        why = "performance varies less than its sampling error"
        return _none(basis, "not_identified", why)
    left_out = np.stack(
        [_corrected(halves, points.design, np.delete(everything, p)) for p in everything]
    )

    def of(place: int) -> Interval:
        if np.isnan(left_out[:, place]).any() or np.isnan(value[place]):
            return no_interval(basis.level)
        found = jackknife(float(value[place]), left_out[:, place], level=basis.level)
        return replace(found, method=f"{found.method} over points, {splits} splits, PCG64")

    return RobustnessRegression(
        slope=basis.estimate("robustness_regression.slope", float(value[0]), of(0)),
        intercept=basis.estimate("robustness_regression.intercept", float(value[1]), of(1)),
        r_squared=_r_squared(basis, None if np.isnan(value[2]) else min(1.0, float(value[2]))),
    )


def _split(points: _Points, splits: int, seed: int) -> Floats:
    """Four (x_A, x_B, y_A, y_B) x points x splits; points of one length share their halves."""
    rng = generator(seed)
    masks: dict[int, Floats] = {}
    for length in sorted({len(v) for v in points.x}):
        order = rng.random((length, splits)).argsort(axis=0)
        masks[length] = (order < length // 2).astype(float)
    found = np.empty((4, len(points.x), splits))
    for place, (x, y) in enumerate(zip(points.x, points.y, strict=True)):
        first = masks[len(x)]
        for row, values in ((0, x), (2, y)):
            found[row, place] = values @ first / (len(x) // 2)
            found[row + 1, place] = values @ (1.0 - first) / (len(x) - len(x) // 2)
    return found


def _corrected(halves: Floats, design: Floats, kept: NDArray[np.intp]) -> Floats:
    """Slope, intercept and R^2 from products of different halves; NaN where not identified."""
    maker = _maker(design[kept])
    x_a, x_b, y_a, y_b = (maker @ half[kept] for half in halves)
    both = float((x_a * y_b + x_b * y_a).sum()) / 2.0
    square, other = float((x_a * x_b).sum()), float((y_a * y_b).sum())
    if not square > 1e-12 * float(np.square(halves[:2, kept]).sum()):
        return np.full(3, np.nan)
    slope = both / square
    means = halves[:, kept].mean(axis=(1, 2))
    intercept = (means[2] + means[3]) / 2.0 - slope * (means[0] + means[1]) / 2.0
    fit = both * both / (square * other) if other > 0.0 else np.nan
    return np.array([slope, intercept, fit])


def _r_squared(basis: Basis, value: float | None) -> Estimate:
    measure = "robustness_regression.r_squared"
    if value is None:
        return basis.undefined(measure, "undefined_zero_variance", "robustness is constant")
    return basis.estimate(measure, value, replace(no_interval(basis.level), method="none: R^2"))


def _none(basis: Basis, status: EstimateStatus, why: str) -> RobustnessRegression:
    slope, intercept, fit = (
        basis.undefined(f"robustness_regression.{part}", status, why)
        for part in ("slope", "intercept", "r_squared")
    )
    return RobustnessRegression(slope=slope, intercept=intercept, r_squared=fit)


def _maker(design: Floats) -> Floats:
    """The projection that takes the design's columns off."""
    return np.asarray(np.eye(len(design)) - design @ np.linalg.pinv(design))


def _points(
    performance: Sequence[ArrayLike],
    robustness: Sequence[ArrayLike],
    effects: Sequence[Sequence[Hashable]],
) -> _Points:
    if len(performance) != len(robustness):
        sizes = (len(performance), len(robustness))
        raise InvalidValue("performance, robustness", sizes, "as many points in both")
    for labels in effects:
        if len(labels) != len(performance):
            raise InvalidValue("effects", labels, f"one label a point, {len(performance)}")
    x, y = (
        [np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in values]
        for values in (performance, robustness)
    )
    kept = [
        place
        for place, (a, b) in enumerate(zip(x, y, strict=True))
        if len(a) and len(b) and not (np.isnan(a).any() or np.isnan(b).any())
    ]
    columns = [np.ones(len(kept))]
    for labels in effects:
        own = [labels[place] for place in kept]
        columns += [np.array([o == name for o in own], float) for name in dict.fromkeys(own)]
    return _Points(
        x=[x[place] for place in kept],
        y=[y[place] for place in kept],
        design=np.column_stack(columns),
        lost=len(performance) - len(kept),
    )
