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

        bias = (n − 1)(ḡ − g)        se² = (n − 1)/n Σ_i (g_i − ḡ)²        g − bias ± t(n − 1) se

    g_i is g of the value without item i and ḡ their mean; g is the identity, log (for variances) or
    logit (for shares). The centre is corrected for bias, the reported value is not; the interval
    always contains the value. Where g is not finite everywhere the identity is used. Nothing
    varies, or n < 3: no interval. Source: Tukey (1958); Efron and Stein (1981).
    """
    check_level(level)
    left_out = np.asarray(leave_one_out, dtype=np.float64)
    _check(value, left_out)
    n = left_out.size
    method = f"jackknife t, {transform}"
    lowest = min(value, float(left_out.min(initial=value)))
    highest = max(value, float(left_out.max(initial=value)))
    if transform != "identity" and not (lowest > 0.0 and (transform == "log" or highest < 1.0)):
        transform, method = "identity", f"jackknife t, identity (no {transform} at the boundary)"
    g, g_left_out = _to_scale(np.array([value]), transform)[0], _to_scale(left_out, transform)
    spread = float(g_left_out.max() - g_left_out.min()) if n else 0.0
    if n < 3 or spread <= 1e-13 * max(1.0, abs(float(g))):
        return no_interval(level)
    # g − bias ± t(n − 1) se, and back
    centre = g - (n - 1) * (float(g_left_out.mean()) - g)
    half = student_quantile(level, n - 1) * jackknife_error(g_left_out)
    low, high = _from_scale(np.array([centre - half, centre + half]), transform)
    return Interval(
        low=min(float(low), value), high=max(float(high), value), level=level, method=method
    )


def jackknife_error(leave_one_out: ArrayLike) -> float:
    """The jackknife standard error, √((n − 1)/n Σ_i (x_i − x̄)²); 0 for no items."""
    left_out = np.asarray(leave_one_out, dtype=np.float64)
    n = left_out.size
    if n == 0:
        return 0.0
    return float(np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum()))


def _to_scale(x: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    if transform == "log":
        return np.log(x)
    if transform == "logit":
        return np.log(x) - np.log1p(-x)
    return x


def _from_scale(x: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    if transform == "log":
        return np.exp(x)
    if transform == "logit":
        # 1/(1 + exp(-x)), which does not overflow this way
        return 0.5 * (1.0 + np.tanh(x / 2.0))
    return x


def _check(value: float, left_out: NDArray[np.float64]) -> None:
    if left_out.ndim != 1:
        raise InvalidValue(
            "leave_one_out", left_out.shape, "a vector, one value for every item left out"
        )
    if not (np.isfinite(value) and np.isfinite(left_out).all()):
        raise InvalidValue("leave_one_out", "a value that is not finite", "finite numbers")
