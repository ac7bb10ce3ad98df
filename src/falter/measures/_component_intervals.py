"""Which interval a variance component gets, and why.

A mean of squares is skewed to the right, so it is taken on the log scale. A difference of mean
squares, such as the item component, can be 0 or below: the log is taken of the first of the two,
the other held fixed. A share is taken through the log of its odds, shifted in the same way. The
total variance of 0/1 outcomes is m(1 - m) and flat at m = 1/2: see `total_interval`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from falter.measures._tables import Table
from falter.stats import Interval, jackknife, no_interval

__all__ = [
    "component_interval",
    "difference_interval",
    "ratio_interval",
    "scaled",
    "share_of",
    "total_interval",
]

Floats = NDArray[np.float64]


def component_interval(table: Table, values: Floats, ceiling: float | None = None) -> Interval:
    """For a mean of squares: on the log scale, cut at the largest value there can be."""
    if len(values) < 4:
        return no_interval(table.level)
    found = jackknife(float(values[0]), values[1:], transform="log", level=table.level)
    return _cut(found, 0.0, table.ceiling if ceiling is None else ceiling)


def difference_interval(table: Table, values: Floats, subtracted: float) -> Interval:
    """For a difference x - s of mean squares: the log interval of x = value + s, less s."""
    if len(values) < 4:
        return no_interval(table.level)
    shifted = values + max(0.0, subtracted)
    found = jackknife(float(shifted[0]), shifted[1:], transform="log", level=table.level)
    return _cut(_moved(found, -max(0.0, subtracted)), -table.ceiling, table.ceiling)


def ratio_interval(table: Table, part: Floats, whole: Floats, shift: float = 0.0) -> Interval:
    """For a share: through the log of f = (whole - part)/part + shift; share = 1/(f + 1 - shift).

    Without a shift that is the logit. With shift = 1/J and the residual as part, f is a ratio of
    mean squares, positive also where the item component is not.
    """
    if len(part) < 4 or not (whole > 0.0).all():
        return no_interval(table.level)
    if (part > 0.0).all() and ((whole - part) / part + shift > 0.0).all():
        odds = (whole - part) / part + shift
        found = jackknife(float(odds[0]), odds[1:], transform="log", level=table.level)
        if found.low is None or found.high is None:
            return found
        edges = (1.0 / (odds + 1.0 - shift) for odds in (found.high, found.low))
        low, high = (1.0 if edge < 0.0 else edge for edge in edges)
        name = "jackknife t, log odds" if shift == 0.0 else "jackknife t, log ratio of mean squares"
        return _cut(Interval(low=low, high=high, level=table.level, method=name), 0.0, 1.0)
    ratio = part / whole
    return _cut(jackknife(float(ratio[0]), ratio[1:], level=table.level), 0.0, 1.0)


def total_interval(table: Table, total: Floats) -> Interval:
    """For the total variance: of 0/1 outcomes the image of the mean's interval under m(1 - m).

    The mean's interval is a jackknife on the logit scale. Where it contains 1/2 the image reaches
    up to 1/4, its largest value; a jackknife of the total itself fails there.
    """
    if not table.binary or len(total) < 4:
        return component_interval(table, total)
    means = table.cells.mean(axis=(1, 2))
    items = len(means)
    left_out = (means.sum() - means) / (items - 1)
    value = float(means.mean())
    found = jackknife(value, left_out, transform="logit", level=table.level)
    if found.low is None or found.high is None:
        return found
    low, high = max(0.0, found.low), min(1.0, found.high)
    edges = (low * (1.0 - low), high * (1.0 - high))
    # The bounds contain the mean; the plug-in total differs from m(1 - m) by rounding alone.
    top = 0.25 if low <= 0.5 <= high else max(edges)
    return Interval(
        low=min(*edges, float(total[0])),
        high=max(top, float(total[0])),
        level=table.level,
        method=f"m(1 - m) of the mean's {found.method}",
    )


def scaled(interval: Interval, factor: float) -> Interval:
    """The interval of a constant times the quantity."""
    return Interval(
        low=None if interval.low is None else interval.low * factor,
        high=None if interval.high is None else interval.high * factor,
        level=interval.level,
        method=interval.method,
    )


def share_of(bound: Interval, rest: float) -> Interval:
    """The interval of x/(x + rest) from the interval of x."""
    low, high = bound.low, bound.high
    return Interval(
        low=None if low is None else low / (low + rest),
        high=None if high is None else high / (high + rest),
        level=bound.level,
        method=bound.method,
    )


def _moved(interval: Interval, step: float) -> Interval:
    return Interval(
        low=None if interval.low is None else interval.low + step,
        high=None if interval.high is None else interval.high + step,
        level=interval.level,
        method=interval.method,
    )


def _cut(interval: Interval, floor: float, ceiling: float) -> Interval:
    return Interval(
        low=None if interval.low is None else max(floor, interval.low),
        high=None if interval.high is None else min(ceiling, interval.high),
        level=interval.level,
        method=interval.method,
    )
