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

        low = v̄ − √(Σ_t (v_t − low_t)²)/T        high = v̄ + √(Σ_t (high_t − v_t)²)/T

    for the values v of T tasks. The interval keeps the skew of the tasks' own and is exact for
    normal ones. Tasks on which the number is undefined are left out and counted in `excluded`; with
    none left it is insufficient_data. One task gives its own estimate. The p-value is that of one
    task, else None. Source: Zou and Donner (2008).
    """
    levels = {estimate.level for estimate in estimates}
    if len(levels) > 1:
        raise InvalidValue("estimates", sorted(levels), "intervals of one level")
    defined = [(e.value, e) for e in estimates if e.value is not None]
    if len(estimates) == 1:
        return estimates[0]
    basis = Basis(
        estimand="mean over these tasks, items like those of each",
        items=sum(e.items for _, e in defined),
        conditions=max((e.conditions for _, e in defined), default=0),
        excluded=len(estimates) - len(defined),
        level=levels.pop() if levels else 0.95,
    )
    if not defined:
        return basis.undefined("mean_over_tasks", "insufficient_data", "no task has a value")
    tasks = len(defined)
    value = math.fsum(v for v, _ in defined) / tasks
    below = [v - e.low for v, e in defined if e.low is not None]
    above = [e.high - v for v, e in defined if e.high is not None]
    interval = no_interval(basis.level)
    if len(below) == len(above) == tasks:
        interval = Interval(
            low=value - math.sqrt(math.fsum(d * d for d in below)) / tasks,
            high=value + math.sqrt(math.fsum(d * d for d in above)) / tasks,
            level=basis.level,
            method=METHOD,
        )
    return basis.estimate("mean_over_tasks", value, interval)
