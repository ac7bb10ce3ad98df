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
from falter.stats._checks import binary_table
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
    estimand: str = "these conditions, items like these"


def all_alike(rate: float, correlation: float, count: int) -> AllAlike:
    """The chance that all `count` answers to an item agree, where items' rates have a beta.

        E[p^count] = Π_k (a + k)/(a + b + k), k < count,   a/(a + b) = rate,
        1/(a + b + 1) = correlation

    The same of 1 − p for all wrong. At correlation 0, where all items are equally hard, it is
    rate^count, which is less than at any other; at 1 simply the rate.
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
        # a + b, and the product as gamma functions: Γ(a + count)/Γ(a) = Π_k (a + k)
        total = (1.0 - correlation) / correlation
        a = p * total
        log = gammaln(a + count) - gammaln(a) - gammaln(total + count) + gammaln(total)
        return math.exp(float(log))

    return AllAlike(right=power(rate), wrong=power(1.0 - rate))


def item_correlation(
    outcomes: ArrayLike, *, level: float = 0.95, replications: int = 2000, seed: int = 0
) -> ItemCorrelation:
    """The intra-item correlation of 0/1 outcomes, for `all_alike`, with a bootstrap of items.

        (MS_B − MS_W)/(MS_B + (m − 1) MS_W)        m = (N − Σ n_i²/N)/(I − 1)
        MS_B = Σ n_i (p_i − p)²/(I − 1)        MS_W = Σ n_i p_i (1 − p_i)/(N − I)

    with the share p_i of the n_i outcomes of item i that are right, N outcomes of I items in all,
    and their share p; cut at 0 below. `outcomes` is items x configurations, NaN for a missing cell.
    Items with fewer than two outcomes are left out and counted. One condition: not_identified;
    fewer than two items: insufficient_data; all outcomes the same: undefined_zero_variance.
    Source: Ridout, Demétrio and Firth (1999), the analysis of variance estimator.
    """
    check_level(level)
    table = binary_table(outcomes) if np.size(outcomes) else np.zeros((0, 0))
    sizes = (~np.isnan(table)).sum(axis=1)
    rows = np.column_stack([np.nansum(table, axis=1), sizes])[sizes >= 2]
    status: EstimateStatus = "ok" if len(rows) >= 2 else "insufficient_data"
    if len(table) and table.shape[1] == 1:
        status = "not_identified"
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
    """From every item's number of right answers and of outcomes; NaN where nothing varies."""
    right, n = rows[:, 0], rows[:, 1]
    items, total = len(rows), float(n.sum())
    p = float(right.sum()) / total
    within = float((right * (1.0 - right / n)).sum()) / (total - items)
    between = float((n * (right / n - p) ** 2).sum()) / (items - 1)
    m = (total - float(np.square(n).sum()) / total) / (items - 1)
    denominator = between + (m - 1.0) * within
    return max(0.0, (between - within) / denominator) if denominator > 0.0 else math.nan
