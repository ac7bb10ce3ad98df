"""Which interval a variance component gets, and why.

All of them are jackknives; `values` are the quantity of the whole table and then without item (or
cluster) 1, 2, ... A mean of squares is skewed to the right, so the jackknife is of its log. A
difference of mean squares, such as the item component, can be 0 or below: the log is of the first
of the two, the other is held fixed. A share goes through the log of its odds, shifted in the same
way. The total variance of 0/1 outcomes is m(1 − m), flat at m = 1/2: see `total_interval`.
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
    "total_interval",
]

Floats = NDArray[np.float64]


def component_interval(table: Table, values: Floats, ceiling: float | None = None) -> Interval:
    """For a mean of squares: on the log scale, cut at the largest value it can have."""
    if len(values) < 4:
        return no_interval(table.level)
    interval = jackknife(float(values[0]), values[1:], transform="log", level=table.level)
    return interval.clipped(0.0, table.ceiling if ceiling is None else ceiling)


def difference_interval(table: Table, values: Floats, subtracted: float) -> Interval:
    """For a difference x − s of mean squares: the log interval of x = value + s, less s."""
    if len(values) < 4:
        return no_interval(table.level)
    s = max(0.0, subtracted)
    x = values + s
    interval = jackknife(float(x[0]), x[1:], transform="log", level=table.level)
    return interval.mapped(lambda end: end - s).clipped(-table.ceiling, table.ceiling)


def ratio_interval(table: Table, part: Floats, whole: Floats, shift: float = 0.0) -> Interval:
    """For a share part/whole = 1/(f + 1 − shift): through the log of f.

        f = (whole − part)/part + shift

    Without a shift that is the logit. With shift = 1/J and the residual as part, f is a ratio of
    mean squares, positive also where the item component is not.
    """
    if len(part) < 4 or not (whole > 0.0).all():
        return no_interval(table.level)
    if (part > 0.0).all() and ((whole - part) / part + shift > 0.0).all():
        f = (whole - part) / part + shift
        interval = jackknife(float(f[0]), f[1:], transform="log", level=table.level)
        if interval.low is None or interval.high is None:
            return interval
        # The share falls as f rises, so the ends change places; below f = shift - 1 it is 1.
        ends = (1.0 / (end + 1.0 - shift) for end in (interval.high, interval.low))
        low, high = (1.0 if end < 0.0 else end for end in ends)
        name = "jackknife t, log odds" if shift == 0.0 else "jackknife t, log ratio of mean squares"
        return Interval(low=low, high=high, level=table.level, method=name).clipped(0.0, 1.0)
    share = part / whole
    return jackknife(float(share[0]), share[1:], level=table.level).clipped(0.0, 1.0)


def total_interval(table: Table, total: Floats) -> Interval:
    """For the total variance: of 0/1 outcomes the image of the mean's interval under m(1 − m).

    The mean's interval is a jackknife on the logit scale. Where it contains 1/2 the image reaches
    up to 1/4, its largest value; a jackknife of the total itself fails there.
    """
    if not table.binary or len(total) < 4:
        return component_interval(table, total)
    means = table.parts.mean
    interval = jackknife(float(means[0]), means[1:], transform="logit", level=table.level)
    if interval.low is None or interval.high is None:
        return interval
    low, high = max(0.0, interval.low), min(1.0, interval.high)
    ends = (low * (1.0 - low), high * (1.0 - high))
    # The bounds contain the mean; the plug-in total differs from m(1 - m) by rounding alone.
    top = 0.25 if low <= 0.5 <= high else max(ends)
    return Interval(
        low=min(*ends, float(total[0])),
        high=max(top, float(total[0])),
        level=table.level,
        method=f"m(1 - m) of the mean's {interval.method}",
    )
