"""Intervals from leaving out one item at a time, on a scale where they are nearly normal."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._interval import Interval, check_level, no_interval, student_quantile

__all__ = ["Transform", "jackknife", "jackknife_error"]

Transform = Literal["identity", "log", "logit"]


def jackknife(
    value: float,
    leave_one_out: ArrayLike,
    *,
    transform: Transform = "identity",
    level: float = 0.95,
) -> Interval:
    """A t interval around g(value) from its n leave-one-out values, carried back through g.

    bias = (n-1) (mean g_(i) - g), se^2 = (n-1)/n sum (g_(i) - mean g_(.))^2,
    g - bias -+ t(n-1) se; g is the identity, log (for variances) or logit (for shares). The centre
    is corrected for bias, the reported value is not; the interval always contains the value. Where
    g is not finite everywhere the identity is used. Nothing varies, or n < 3: no interval.
    Source: Tukey (1958); Efron and Stein (1981).
    """
    check_level(level)
    left = np.asarray(leave_one_out, dtype=np.float64)
    _check(value, left)
    n = left.size
    method = f"jackknife t, {transform}"
    if transform != "identity" and not _inside(value, left, transform):
        transform, method = "identity", f"jackknife t, identity (no {transform} at the boundary)"
    centre, moved = _there(np.array([value]), transform)[0], _there(left, transform)
    spread = float(moved.max() - moved.min()) if n else 0.0
    if n < 3 or spread <= 1e-13 * max(1.0, abs(float(centre))):
        return no_interval(level)
    mean = float(moved.mean())
    error = jackknife_error(moved)
    middle = centre - (n - 1) * (mean - centre)
    half = student_quantile(level, n - 1) * error
    low, high = _back(np.array([middle - half, middle + half]), transform)
    return Interval(
        low=min(float(low), value), high=max(float(high), value), level=level, method=method
    )


def jackknife_error(leave_one_out: ArrayLike) -> float:
    """The jackknife standard error, sqrt((n-1)/n sum (x_(i) - mean x_(.))^2); 0 for no items."""
    left = np.asarray(leave_one_out, dtype=np.float64)
    if left.size == 0:
        return 0.0
    return float(np.sqrt((left.size - 1) / left.size * np.square(left - left.mean()).sum()))


def _inside(value: float, left: NDArray[np.float64], transform: Transform) -> bool:
    low, high = (
        min(value, float(left.min(initial=value))),
        max(value, float(left.max(initial=value))),
    )
    return low > 0.0 and (transform == "log" or high < 1.0)


def _there(x: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    if transform == "log":
        return np.log(x)
    if transform == "logit":
        return np.log(x) - np.log1p(-x)
    return x


def _back(x: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    if transform == "log":
        return np.exp(x)
    if transform == "logit":
        return 0.5 * (1.0 + np.tanh(x / 2.0))
    return x


def _check(value: float, left: NDArray[np.float64]) -> None:
    if left.ndim != 1:
        raise InvalidValue("leave_one_out", left.shape, "a vector, one value an item left out")
    if not (np.isfinite(value) and np.isfinite(left).all()):
        raise InvalidValue("leave_one_out", "a value that is not finite", "finite numbers")
