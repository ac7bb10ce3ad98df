"""Chance agreement of repeated answers, where items differ in difficulty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._bootstrap import bootstrap
from falter.stats._interval import Interval, check_level, no_interval

__all__ = ["AllAlike", "ItemCorrelation", "all_alike", "item_correlation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllAlike:
    """The chance that all answers to an item are right, that all are wrong, and either."""

    right: float
    wrong: float

    @property
    def either(self) -> float:
        return self.right + self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCorrelation:
    """How alike the outcomes of one item are, from 0 (no more than any) to 1, and their mean."""

    value: float | None
    status: EstimateStatus
    interval: Interval
    rate: float | None
    items: int
    excluded: int
    seed: int
    estimand: str = "fixed conditions, super-population of items"


def all_alike(rate: float, correlation: float, count: int) -> AllAlike:
    """The chance that `count` answers to an item agree, when items' success rates are a beta.

    E[p^count] = prod (a + k)/(a + b + k) for k below `count`, with a/(a + b) = rate and
    1/(a + b + 1) = correlation; the same of 1 - p for all wrong. At correlation 0, where all items
    are equally hard, rate^count, which is less than any other; at 1 simply the rate.
    """
    from scipy.special import gammaln

    if not 0.0 <= rate <= 1.0:
        raise InvalidValue("rate", rate, "a number from 0 to 1")
    if not 0.0 <= correlation <= 1.0:
        raise InvalidValue("correlation", correlation, "a number from 0 to 1")
    if count < 1 or count != int(count):
        raise InvalidValue("count", count, "a count of answers, one or more")

    def power(p: float) -> float:
        if correlation == 0.0:
            return float(p**count)
        if correlation == 1.0 or p in (0.0, 1.0):
            return p
        total = (1.0 - correlation) / correlation
        a = p * total
        rise = gammaln(a + count) - gammaln(a) - gammaln(total + count) + gammaln(total)
        return math.exp(float(rise))

    return AllAlike(right=power(rate), wrong=power(1.0 - rate))


def item_correlation(
    outcomes: ArrayLike, *, level: float = 0.95, replications: int = 2000, seed: int = 0
) -> ItemCorrelation:
    """The intra-item correlation of 0/1 outcomes, for `all_alike`, with a bootstrap of items.

    (MS_B - MS_W)/(MS_B + (m - 1) MS_W), items x configurations, NaN for a missing cell; m is the
    mean number of outcomes an item, less their variance over I times that mean. Cut at 0 below.
    Items with fewer than two outcomes are left out and counted. Fewer than two items:
    insufficient_data; all outcomes the same: undefined_zero_variance. Source: Ridout, Demetrio and
    Firth (1999).
    """
    check_level(level)
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("outcomes", table.shape, "items x configurations")
    strange = table[~np.isnan(table) & ~np.isin(table, (0.0, 1.0))]
    if strange.size:
        raise InvalidValue("outcomes", float(strange[0]), "0, 1, or NaN where missing")
    sizes = (~np.isnan(table)).sum(axis=1)
    rows = np.column_stack([np.nansum(table, axis=1), sizes])[sizes >= 2]
    status: EstimateStatus = "ok" if len(rows) >= 2 else "insufficient_data"
    value = _correlation(rows) if status == "ok" else math.nan
    if status == "ok" and math.isnan(value):
        status = "undefined_zero_variance"
    return ItemCorrelation(
        value=value if status == "ok" else None,
        status=status,
        interval=bootstrap(rows, _correlation, replications=replications, level=level, seed=seed)
        if status == "ok"
        else no_interval(level),
        rate=float(rows[:, 0].sum() / rows[:, 1].sum()) if len(rows) else None,
        items=len(rows),
        excluded=int((sizes < 2).sum()),
        seed=seed,
    )


def _correlation(rows: NDArray[Any]) -> float:
    """From items' right answers and outcomes; NaN where nothing varies."""
    right, sizes = rows[:, 0], rows[:, 1]
    items, total = len(rows), float(sizes.sum())
    mean = float(right.sum()) / total
    within = float((right * (1.0 - right / sizes)).sum()) / (total - items)
    between = float((sizes * (right / sizes - mean) ** 2).sum()) / (items - 1)
    typical = (total - float(np.square(sizes).sum()) / total) / (items - 1)
    room = between + (typical - 1.0) * within
    return max(0.0, (between - within) / room) if room > 0.0 else math.nan
