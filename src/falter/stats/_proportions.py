"""Intervals for one proportion p, of which k successes in n trials were seen."""

from __future__ import annotations

import math

from falter.core.errors import InvalidValue
from falter.stats._interval import Interval, check_level, normal_quantile

__all__ = ["agresti_coull", "clopper_pearson", "wilson_interval"]


def wilson_interval(successes: float, trials: float, *, level: float = 0.95) -> Interval:
    """Wilson's score interval: the proportions p with |k/n − p| <= z √(p(1 − p)/n).

        (k/n + z²/2n ± z √((k/n)(1 − k/n)/n + z²/4n²)) / (1 + z²/n)

    Near-nominal coverage on average, also near 0 and 1. `trials=0` has no interval.
    Source: Wilson (1927); Brown, Cai and DasGupta (2001).
    """
    _check_counts(successes, trials)
    z = normal_quantile(level)
    if trials == 0:
        return Interval(low=None, high=None, level=level, method="wilson score")
    share = successes / trials
    weight = z * z / trials
    centre = (share + weight / 2.0) / (1.0 + weight)
    half = z / (1.0 + weight) * math.sqrt(share * (1.0 - share) / trials + weight / trials / 4.0)
    # The ends at k = 0 and k = n are 0 and 1, which rounding would miss.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low=low, high=high, level=level, method="wilson score")


def agresti_coull(successes: float, trials: float, *, level: float = 0.95) -> Interval:
    """Wald's interval after z²/2 more successes and as many failures; contains Wilson's.

        p̃ = (k + z²/2)/(n + z²)        p̃ ± z √(p̃(1 − p̃)/(n + z²))

    Hardly wider, and without Wilson's dips: at 100 items or more its coverage stays above 93.9 %
    wherever the truth is. `trials=0` has no interval. Source: Agresti and Coull (1998).
    """
    _check_counts(successes, trials)
    z = normal_quantile(level)
    if trials == 0:
        return Interval(low=None, high=None, level=level, method="agresti-coull")
    weight = trials + z * z
    centre = (successes + z * z / 2.0) / weight
    half = z * math.sqrt(centre * (1.0 - centre) / weight)
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Interval(low=low, high=high, level=level, method="agresti-coull")


def clopper_pearson(successes: float, trials: float, *, level: float = 0.95) -> Interval:
    """The exact binomial interval: never below its level, usually above it.

    The α/2 quantile of Beta(k, n − k + 1) and the 1 − α/2 quantile of Beta(k + 1, n − k), with
    α = 1 − level. `trials=0` has no interval. Source: Clopper and Pearson (1934).
    """
    from scipy.special import betaincinv

    _check_counts(successes, trials)
    check_level(level)
    if trials == 0:
        return Interval(low=None, high=None, level=level, method="clopper-pearson")
    tail = (1.0 - level) / 2.0
    failures = trials - successes
    low = 0.0 if successes == 0 else float(betaincinv(successes, failures + 1, tail))
    high = 1.0 if failures == 0 else float(betaincinv(successes + 1, failures, 1.0 - tail))
    return Interval(low=low, high=high, level=level, method="clopper-pearson")


def _check_counts(successes: float, trials: float) -> None:
    if not 0 <= trials < math.inf:
        raise InvalidValue("trials", trials, "a count, zero or more")
    if not 0 <= successes <= trials:
        raise InvalidValue("successes", successes, f"a count between 0 and trials, {trials}")
