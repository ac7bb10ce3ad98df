"""The mean of one number over several tasks, from its intervals on each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.stats import Interval, no_interval

__all__ = ["mean_over_tasks"]

METHOD = "recovered from the intervals of the tasks (MOVER)"


def mean_over_tasks(estimates: Sequence[Estimate]) -> Estimate:
    """The plain mean of a number over tasks that share no items; every task counts the same.

    The interval is Zou and Donner's: each end lies sqrt(sum of (value - low)^2) / tasks, and so for
    high, from the mean. It keeps the skew of the parts and is exact for normal ones. Tasks on which
    the number is undefined are left out and counted in `excluded`; with none left it is
    insufficient_data. One task gives its own estimate. The p-value is that of one task, else None.
    """
    levels = {estimate.level for estimate in estimates}
    if len(levels) > 1:
        raise InvalidValue("estimates", sorted(levels), "intervals of one level")
    seen = [(e.value, e) for e in estimates if e.value is not None]
    if len(estimates) == 1:
        return estimates[0]
    basis = Basis(
        estimand="mean over these tasks, super-population of items of each",
        items=sum(e.items for _, e in seen),
        conditions=max((e.conditions for _, e in seen), default=0),
        excluded=len(estimates) - len(seen),
        level=levels.pop() if levels else 0.95,
    )
    if not seen:
        return basis.undefined("mean_over_tasks", "insufficient_data", "no task has a value")
    value = math.fsum(v for v, _ in seen) / len(seen)
    down = _half([None if e.low is None else v - e.low for v, e in seen])
    up = _half([None if e.high is None else e.high - v for v, e in seen])
    if down is None or up is None:
        interval = no_interval(basis.level)
    else:
        interval = Interval(low=value - down, high=value + up, level=basis.level, method=METHOD)
    return basis.estimate("mean_over_tasks", value, interval)


def _half(distances: Sequence[float | None]) -> float | None:
    """How far the end of the interval lies from the mean; None where a task has no interval."""
    known = [d for d in distances if d is not None]
    if len(known) < len(distances):
        return None
    return math.sqrt(math.fsum(d * d for d in known)) / len(known)
