"""Confidence sequences: intervals that may be looked at after every item."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats.intervals import Interval, check_level, no_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSequence:
    """The mean so far, and an interval after every item; NaN in `low` and `high` is "none yet".

    The chance that the mean is ever outside is at most 1 - level, so one may stop as soon as the
    answer shows.
    """

    value: float | None
    status: EstimateStatus
    interval: Interval
    low: Floats
    high: Floats
    items: int
    excluded: int
    estimand: str

    def first_outside(self, value: float = 0.0) -> int | None:
        """After how many items `value` was first excluded, or None."""
        return _first_place((self.low > value) | (self.high < value))

    def first_above(self, value: float = 0.0) -> int | None:
        """After how many items the whole interval first lay above `value`, or None."""
        return _first_place(self.low > value)

    def first_within(self, low: float, high: float) -> int | None:
        """After how many items the whole interval first lay between `low` and `high`, or None."""
        return _first_place((self.low > low) & (self.high < high))


def confidence_sequence(
    values: ArrayLike,
    *,
    level: float = 0.95,
    tightest_at: int = 250,
    first: int = 25,
    method: Literal["asymptotic", "bounded"] = "asymptotic",
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> ConfidenceSequence:
    """Intervals for a mean that hold at all sample sizes at once; NaN is missing and left out.

    `values` are in the order in which the items were drawn: scores, or baseline - perturbed for a
    drop. `tightest_at`, `first` and the method must be chosen before looking. α = 1 - level.

    asymptotic: x̄_n ± s_n √((v + 1)/v log((v + 1)/α²)/n) with v = nρ², and ρ chosen so that it is
    narrowest, 1.55 times the ordinary interval, after `tightest_at` items. From `first` items on;
    no interval while all values are equal. Like the central limit theorem, it needs some 20 items
    that differ.

    bounded: the predictable plug-in empirical-Bernstein sequence for values inside `bounds`,
    valid for any number of items and however rare a change is, and wider. For values in [0, 1]:

        Σ λ_i x_i / Σ λ_i ± (log(2/α) + Σ (x_i − m_{i−1})² (−log(1 − λ_i) − λ_i)) / Σ λ_i
        λ_i = min(1/2, √(2 log(2/α) / (v_{i−1} i log(1 + i))))

    with m and v the mean and variance of the items before, and of one more with 1/2 and 1/4.

    Items drawn without replacement from a finite set are covered too, by more than `level`.
    Source: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024); Waudby-Smith and Ramdas (2024).
    """
    check_level(level)
    vector = np.asarray(values, dtype=np.float64)
    x = vector[~np.isnan(vector)]
    _check(vector, x, tightest_at, first, method, bounds)
    if method == "asymptotic":
        low, high = _asymptotic(x, 1.0 - level, tightest_at, first)
    else:
        low, high = _bounded(x, 1.0 - level, bounds)
    interval = no_interval(level)
    if len(x) and not math.isnan(low[-1]):
        name = f"{method} confidence sequence"
        interval = Interval(low=float(low[-1]), high=float(high[-1]), level=level, method=name)
    return ConfidenceSequence(
        value=float(x.mean()) if len(x) else None,
        status="ok" if len(x) else "insufficient_data",
        interval=interval,
        low=low,
        high=high,
        items=len(x),
        excluded=len(vector) - len(x),
        estimand="mean, items like these, at every number of items at once",
    )


def _asymptotic(x: Floats, alpha: float, tightest_at: int, first: int) -> tuple[Floats, Floats]:
    """x̄_n ± s_n √((v + 1)/v log((v + 1)/α²)/n). Source: Waudby-Smith et al. (2024)."""
    from scipy.special import lambertw

    n = np.arange(1, len(x) + 1)
    # Differences from the first value keep the running variance exact where nothing varies.
    away = x - x[0] if len(x) else x
    mean = np.cumsum(away) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (np.cumsum(away**2) - n * mean**2) / (n - 1)
    # The v at which the width is least, as a function of rho, belongs to n = tightest_at.
    narrowest = float(-np.real(lambertw(-(alpha**2) / math.e, -1)) - 1.0)
    v = n * narrowest / tightest_at
    usable = (n >= max(first, 2)) & (variance > 1e-14)
    variance = np.where(usable, variance, np.nan)
    half = np.sqrt(variance * (v + 1.0) / v * np.log((v + 1.0) / alpha**2) / n)
    centre = mean + x[0] if len(x) else mean
    return centre - half, centre + half


def _bounded(x: Floats, alpha: float, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """The predictable plug-in empirical-Bernstein sequence. Source: Waudby-Smith and Ramdas (2024).

    In the game behind it λ is a bet, and the interval holds the means that did not lose against it.
    """
    start, width = bounds[0], bounds[1] - bounds[0]
    unit = (x - start) / width
    n = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(unit)) / (n + 1)
    variance = (0.25 + np.cumsum((unit - mean) ** 2)) / (n + 1)
    # A bet may use only what was known before the item.
    mean_before = np.concatenate(([0.5], mean))[: len(x)]
    variance_before = np.concatenate(([0.25], variance))[: len(x)]
    cost = math.log(2.0 / alpha)
    bet = np.minimum(np.sqrt(2.0 * cost / (variance_before * n * np.log1p(n))), 0.5)
    surprise = np.cumsum((unit - mean_before) ** 2 * (-np.log1p(-bet) - bet))
    total = np.cumsum(bet)
    centre, half = np.cumsum(bet * unit) / total, (cost + surprise) / total
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    return start + width * low, start + width * high


def _first_place(hits: NDArray[np.bool_]) -> int | None:
    """The place, from 1, of the first True."""
    return int(np.argmax(hits)) + 1 if hits.any() else None


def _check(
    vector: Floats,
    x: Floats,
    tightest_at: int,
    first: int,
    method: str,
    bounds: tuple[float, float],
) -> None:
    if vector.ndim != 1:
        expected = "a vector with a value for every item, in the order they were drawn"
        raise InvalidValue("values", vector.shape, expected)
    if np.isinf(x).any():
        raise InvalidValue("values", "an infinite value", "finite numbers, NaN where missing")
    if tightest_at < 1:
        raise InvalidValue("tightest_at", tightest_at, "a number of items, 1 or more")
    if first < 1:
        raise InvalidValue("first", first, "a number of items, 1 or more")
    if method not in ("asymptotic", "bounded"):
        raise InvalidValue("method", method, "'asymptotic' or 'bounded'")
    if not bounds[0] < bounds[1]:
        raise InvalidValue("bounds", bounds, "the smallest and the largest possible value")
    if method == "bounded" and ((x < bounds[0]) | (x > bounds[1])).any():
        raise InvalidValue("bounds", bounds, f"an interval with all of {x.min()} to {x.max()}")
