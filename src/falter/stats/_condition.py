"""Intervals for how far fixed conditions differ, where estimates are skewed and near zero.

The squared distance Q of the condition means from their average is a noncentral sum of
chi-squares. Its mean is theta + tr V and its variance 2 tr V^2 + 4 theta u'Vu, with V the
covariance of the centred means and u the direction in which the conditions differ. A normal
interval on any scale misses the first part; this one inverts the distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.stats._interval import Interval, check_level, no_interval

__all__ = ["condition_intervals"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moments:
    """What the first three cumulants of D = Q - tr V - omega H are made of; theta = omega H.

    H is `scale`, its influence per item h; a is the item's influence along u, so that the linear
    part of D is the mean of sqrt(theta) a - omega h. `cubes` are the mean cubes of that sum.
    """

    observed: float
    scale: float
    trace2: float
    trace3: float
    along: float
    along2: float
    cross: float
    noise: float
    cubes: tuple[float, ...]


def condition_intervals(
    cells: Floats, rest: float, rest_left_out: Floats, *, level: float = 0.95
) -> tuple[Interval, Interval]:
    """Intervals for the condition variance, and for its share of condition + `rest`.

    `cells` is items x conditions, `rest` the other components' sum and its leave-one-out values.
    Both invert a three-moment (shifted gamma) approximation of D's distribution; both start at 0
    where no difference between the conditions is needed to explain the data. Fewer than three
    items, or nothing that varies: no interval.
    """
    check_level(level)
    items, width = cells.shape
    method = "inverted chi-square, three moments"
    centred = cells - cells.mean(axis=1, keepdims=True)
    means = centred.mean(axis=0)
    residual = centred - means
    if items < 3 or float(np.abs(residual).max()) <= 1e-13:
        return no_interval(level), no_interval(level)
    covariance = residual.T @ residual / (items - 1) / items
    plain = _moments(means, covariance, residual, 1.0, np.zeros(items))
    low, high = (edge / (width - 1) for edge in _invert(plain, level))
    variance = Interval(low=low, high=high, level=level, method=method)
    if rest <= 0.0:
        return variance, no_interval(level)
    influence = (items - 1) * (rest_left_out.mean() - rest_left_out) * (width - 1)
    shared = _moments(means, covariance, residual, rest * (width - 1), influence)
    low, high = (1.0 - 1.0 / (1.0 + odds) for odds in _invert(shared, level))
    return variance, Interval(low=low, high=high, level=level, method=method)


def _moments(
    means: Floats, covariance: Floats, residual: Floats, scale: float, influence: Floats
) -> _Moments:
    items = len(residual)
    distance = float(means @ means)
    square = covariance @ covariance
    direction = means / np.sqrt(distance) if distance > 0.0 else np.zeros_like(means)
    along = 2.0 * residual @ direction
    pairs = items * (items - 1)
    cubes = tuple(
        math.comb(3, k) * float(np.mean(along ** (3 - k) * (-influence) ** k)) / items**2
        for k in range(4)
    )
    return _Moments(
        observed=distance - float(np.trace(covariance)),
        scale=scale,
        trace2=float(np.trace(square)),
        trace3=float(np.trace(square @ covariance)),
        along=float(direction @ covariance @ direction),
        along2=float(direction @ square @ direction),
        cross=float(along @ influence) / pairs,
        noise=float(influence @ influence) / pairs,
        cubes=cubes,
    )


def _invert(m: _Moments, level: float) -> tuple[float, float]:
    """The omegas whose two tail probabilities at the observed Q are both above (1 - level)/2."""
    tail = (1.0 - level) / 2.0
    low = 0.0 if _above(0.0, m) >= tail else _root(m, tail)
    return low, _root(_at_least_median(m), 1.0 - tail)


def _at_least_median(m: _Moments) -> _Moments:
    """Conditions that differ less than chance would have them set no sharper upper limit.

    Else the interval would shrink to the point 0 for the luckiest data; at most this raises the
    coverage near 0 to 97.5 %. Source: Cowan, Cranmer, Gross and Vitells (2011).
    """
    from scipy.special import gammaincinv

    shape = m.trace2**3 / (2.0 * m.trace3**2)
    away = (float(gammaincinv(shape, 0.5)) - shape) / math.sqrt(shape)
    return replace(m, observed=max(m.observed, away * math.sqrt(2.0 * m.trace2)))


def _root(m: _Moments, target: float) -> float:
    """The omega at which the observed value is exceeded with the target probability."""
    inside, outside = 0.0, float(max(m.observed, m.trace2**0.5) / m.scale)
    # A rest that may well be 0 itself sets no upper limit to the ratio.
    limit = 1e12 * outside
    while _above(outside, m) < target:
        inside, outside = outside, 2.0 * outside
        if outside > limit:
            return math.inf
    for _ in range(50):
        middle = (inside + outside) / 2.0
        if _above(middle, m) < target:
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2.0


def _above(omega: float, m: _Moments) -> float:
    """P(D > observed - omega H) under omega, D a shifted gamma with the right three moments.

    The linear part enters the third cumulant as -2 times its own: its variance is estimated from
    the same items, which turns the skewness of a mean around (Johnson 1978; Hall 1992).
    """
    from scipy.special import gammainc, gammaincc, ndtr

    theta = omega * m.scale
    root = math.sqrt(theta)
    variance = 2.0 * m.trace2 + 4.0 * theta * m.along
    variance += omega * omega * m.noise - 2.0 * omega * root * m.cross
    third = 8.0 * m.trace3 + 24.0 * theta * m.along2
    third -= 2.0 * sum(cube * root ** (3 - k) * omega**k for k, cube in enumerate(m.cubes))
    score = (m.observed - theta) / math.sqrt(variance)
    if abs(third) < 1e-3 * variance**1.5:
        return float(ndtr(-score))
    shape = 4.0 * variance**3 / (third * third)
    away = math.sqrt(shape) * score
    if third < 0.0:
        return float(gammainc(shape, max(0.0, shape - away)))
    return float(gammaincc(shape, max(0.0, shape + away)))
