"""An interval for the difference of two paired proportions that survives rare discordance."""

from __future__ import annotations

import math

from falter.core.errors import InvalidValue
from falter.stats._interval import Interval, normal_quantile

__all__ = ["paired_proportions_interval"]


def paired_proportions_interval(
    b: float, c: float, pairs: float, *, level: float = 0.95
) -> Interval:
    """Bonett and Price's interval for (b - c)/n: Wald after one more pair of either kind.

    p10 = (b + 1)/(n + 2), p01 = (c + 1)/(n + 2), d = p10 - p01,
    d -+ z sqrt((p10 + p01 - d^2)/(n + 2)), cut at -1 and 1. With b = c = 0 it is about
    -+2.8/(n + 2). Counts may be fractions. `pairs=0` has no interval.
    Source: Bonett and Price (2012); recommended by Fagerland, Lydersen and Laake (2014).
    """
    _check_counts(b, c, pairs)
    z = normal_quantile(level)
    if pairs == 0:
        return Interval(low=None, high=None, level=level, method="bonett-price")
    fell, rose = (b + 1.0) / (pairs + 2.0), (c + 1.0) / (pairs + 2.0)
    centre = fell - rose
    half = z * math.sqrt(max(0.0, fell + rose - centre**2) / (pairs + 2.0))
    # Shrinking towards 0 must not exclude the estimate itself, which it can at |b - c| = n.
    low = max(-1.0, min(centre - half, (b - c) / pairs))
    high = min(1.0, max(centre + half, (b - c) / pairs))
    return Interval(low=low, high=high, level=level, method="bonett-price")


def _check_counts(b: float, c: float, pairs: float) -> None:
    if b < 0 or c < 0:
        raise InvalidValue("b, c", (b, c), "counts of discordant pairs, zero or more")
    if not b + c <= pairs * (1.0 + 1e-12):
        raise InvalidValue("pairs", pairs, f"at least the discordant pairs, {b + c}")
