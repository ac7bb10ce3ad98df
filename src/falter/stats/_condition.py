"""Intervals for how far fixed conditions differ, where estimates are skewed and near zero.

The squared distance Q of the condition means from their average is a noncentral sum of
chi-squares. Its mean is theta + tr V and its variance 2 tr V^2 + 4 theta u'Vu, with V the covariance
of the centred means and u the direction in which the conditions differ. A normal interval on any
scale misses the first part; this one inverts the distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.stats._interval import Interval, check_level

__all__ = ["condition_intervals"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moments:
    """Cumulants of D = Q - tr V - omega H, less its mean, at theta = omega H."""

    observed: float
    scale: float
    trace2: float
    trace3: float
    along: float
    along2: float
    cross: float
    noise: float
    skews: tuple[float, float, float, float]


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
    none = Interval(low=None, high=None, level=level, method="none: items do not differ")
    centred = cells - cells.mean(axis=1, keepdims=True)
    means = centred.mean(axis=0)
    residual = centred - means
    if items < 3 or float(np.abs(residual).max()) <= 1e-13:
        return none, none
    covariance = residual.T @ residual / (items - 1) / items
    plain = _moments(means, covariance, residual, 1.0, np.zeros(items))
    low, high = (edge / (width - 1) for edge in _invert(plain, level))
    variance = Interval(low=low, high=high, level=level, method=method)
    if rest <= 0.0:
        return variance, none
    influence = (items - 1) * (rest_left_out.mean() - rest_left_out) * (width - 1)
    shared = _moments(means, covariance, residual, rest * (width - 1), influence)
    low, high = (odds / (1.0 + odds) for odds in _invert(shared, level))
    return variance, Interval(low=low, high=high, level=level, method=method)


def _moments(
    means: Floats, covariance: Floats, residual: Floats, scale: float, influence: Floats
) -> _Moments:
    items = len(residual)
    distance = float(means @ means)
    square = covariance @ covariance
    direction = means / np.sqrt(distance) if distance > 0.0 else np.zeros_like(means)
    per_item = items * (items - 1)
    along = 2.0 * residual @ direction
    return _Moments(
        observed=distance - float(np.trace(covariance)),
        scale=scale,
        trace2=float(np.trace(square)),
        trace3=float(np.trace(square @ covariance)),
        along=float(direction @ covariance @ direction),
        along2=float(direction @ square @ direction),
        cross=float(along @ influence) / per_item,
        noise=float(influence @ influence) / per_item,
        skews=tuple(float(np.mean(along ** (3 - k) * (-influence) ** k)) / items**2 * math.comb(3,k) for k in range(4)),
    )


def _invert(m: _Moments, level: float) -> tuple[float, float]:
    """The omegas whose two tail probabilities at the observed Q are both above (1 - level)/2."""
    tail = (1.0 - level) / 2.0
    low = 0.0 if _above(0.0, m) >= tail else _root(m, tail)
    high = 0.0 if _above(0.0, m) >= 1.0 - tail else _root(m, 1.0 - tail)
    return low, high


def _root(m: _Moments, target: float) -> float:
    """The omega at which the observed value is exceeded with the target probability."""
    inside, outside = 0.0, max(m.observed, m.trace2**0.5) / m.scale
    while _above(outside, m) < target:
        inside, outside = outside, 2.0 * outside
    for _ in range(50):
        middle = (inside + outside) / 2.0
        if _above(middle, m) < target:
            inside = middle
        else:
            outside = middle
    return (inside + outside) / 2.0


def _above(omega: float, m: _Moments) -> float:
    """P(D > observed - omega H) under omega, D a gamma variable with the right three moments."""
    from scipy.special import gammainc, gammaincc, ndtr

    theta = omega * m.scale
    variance = 2.0 * m.trace2 + 4.0 * theta * m.along
    variance += omega * omega * m.noise - 2.0 * omega * np.sqrt(theta) * m.cross
    third = 8.0 * m.trace3 + 24.0 * theta * m.along2
    root = math.sqrt(theta)
    third -= 2.0*sum(skew * root ** (3 - k) * omega**k for k, skew in enumerate(m.skews))
    score = (m.observed - theta) / np.sqrt(variance)
    shape = 4.0 * variance**3 / third**2
    if shape > 1e6:
        return float(ndtr(-score))
    if third < 0.0:
        return float(gammainc(shape, max(0.0, shape - score * math.sqrt(shape))))
    return float(gammaincc(shape, max(0.0, shape + score * math.sqrt(shape))))
