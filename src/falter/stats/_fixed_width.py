"""Stopping once an interval is narrow enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._interval import Interval, no_interval, normal_quantile
from falter.stats._target import estimand

__all__ = ["FixedWidthStop", "fixed_width_stop"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedWidthStop:
    """Whether and where to stop; `value` and `interval` are those at `stop`, or after all items.

    `items` were used, `excluded` were NaN; what comes after `stop` is not used.
    """

    stop: int | None
    value: float | None
    status: EstimateStatus
    interval: Interval
    items: int
    excluded: int
    estimand: str


def fixed_width_stop(
    values: ArrayLike,
    half_width: float,
    *,
    minimum: int = 50,
    every: int = 1,
    population: int | None = None,
    level: float = 0.95,
) -> FixedWidthStop:
    """Stop at the first n >= `minimum` at which the interval is narrow enough:

        z √((s_n² + 1/n)(1 − n/N)/n) <= half_width

    The left side is the interval's half-width. `values` are in drawn order; NaN is missing and left
    out. `every` checks only at multiples of it, as batches do. `population` is N, for the mean of
    exactly these N items; without it the factor is 1. The 1/n is for values between -1 and 1: it
    keeps a run of equal ones from stopping at once, and the interval covers 93.5 % or more where
    few items change, when with s_n alone it covers 75 %. For estimation: a decision taken when this
    stops has no error bound. Fewer than two items: insufficient_data.
    Source: Chow and Robbins (1965).
    """
    vector = np.asarray(values, dtype=np.float64)
    x = vector[~np.isnan(vector)]
    _check(vector, x, half_width, minimum, every, population)
    n = np.arange(1, len(x) + 1)
    # s_n² after every item; of one item there is none, and 0 stands for it.
    away = x - x[0] if len(x) else x
    squares = np.cumsum(away**2) - np.cumsum(away) ** 2 / n
    variance = np.where(squares > 1e-14, squares, 0.0) / np.maximum(n - 1, 1)
    not_drawn = np.ones(len(n)) if population is None else 1.0 - n / population
    half = normal_quantile(level) * np.sqrt((variance + 1.0 / n) * not_drawn / n)
    allowed = (n >= max(minimum, 2)) & ((n % every == 0) | (n == population))
    stops = np.flatnonzero(allowed & (half <= half_width))
    stop = int(n[stops[0]]) if len(stops) else None
    used = len(x) if stop is None else stop
    value = float(x[:used].mean()) if used > 1 else None
    interval = no_interval(level)
    if value is not None:
        low, high = value - float(half[used - 1]), value + float(half[used - 1])
        interval = Interval(low=low, high=high, level=level, method="chow-robbins")
    return FixedWidthStop(
        stop=stop,
        value=value,
        status="insufficient_data" if value is None else "ok",
        interval=interval,
        items=used,
        excluded=len(vector) - len(x),
        estimand=estimand(
            "mean", "super-population" if population is None else "finite", population
        ),
    )


def _check(
    vector: Floats, x: Floats, half_width: float, minimum: int, every: int, population: int | None
) -> None:
    if vector.ndim != 1:
        expected = "a vector with a value for every item, in the order they were drawn"
        raise InvalidValue("values", vector.shape, expected)
    if np.isinf(x).any():
        raise InvalidValue("values", "an infinite value", "finite numbers, NaN where missing")
    if not half_width > 0.0:
        raise InvalidValue("half_width", half_width, "a number above 0", hint="2 points are 0.02")
    for name, count in (("minimum", minimum), ("every", every)):
        if count < 1:
            raise InvalidValue(name, count, "a number of items, 1 or more")
    if population is not None and population < len(x):
        raise InvalidValue("population", population, f"at least {len(x)}, the items with a value")
