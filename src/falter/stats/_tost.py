"""Equivalence: showing that a perturbation costs next to nothing, not failing to show it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._interval import Interval
from falter.stats._mean import Inference, ItemMean, item_mean
from falter.stats._paired import paired_difference

__all__ = ["Tost", "equivalence_p", "tost"]

Verdict = Literal["degraded", "equivalent", "undecided"]
Side = Literal["both", "loss"]
# The least alpha that is looked for: intervals beyond it say nothing more.
LEAST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Tost:
    """The drop with its 1 - 2 alpha interval, and what that shows about the margin."""

    value: float | None
    status: EstimateStatus
    interval: Interval
    verdict: Verdict | None
    p_value: float | None
    margin: float
    alpha: float
    side: Side
    items: int
    excluded: int
    clusters: int | None
    estimand: str = "mean of baseline - perturbed, items like these"


def tost(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    margin: float = 0.02,
    alpha: float = 0.05,
    side: Side = "both",
    clusters: Sequence[Hashable] | None = None,
) -> Tost:
    """Two one-sided tests of |drop| >= margin, as the 1 - 2 alpha interval of the paired drop.

    `equivalent`: the interval lies inside -+margin, even if it excludes 0; `degraded`: it lies
    above 0 but not inside; `undecided`: anything else, a gain beyond the margin and too few
    clusters among it.
    With `side="loss"` (non-inferiority) only its upper end must be below the margin. Decide on the
    margin before looking. The interval is `paired_difference`'s, so 0/1 scores, clusters and
    missing items are treated as there; `p_value` is the least alpha that would show equivalence,
    between 1e-12 and 0.5, which stands for anything above. Source: Schuirmann (1987).
    """
    _check(margin, alpha, side)
    drop = paired_difference(baseline, perturbed, clusters=clusters, level=1.0 - 2.0 * alpha)
    drops = np.asarray(baseline, dtype=np.float64) - np.asarray(perturbed, dtype=np.float64)
    mean = item_mean(drops, clusters=clusters)

    verdict: Verdict | None = None
    if drop.status == "too_few_clusters":
        verdict = "undecided"
    elif drop.interval.low is not None:
        if _is_inside(drop.interval, margin, side):
            verdict = "equivalent"
        else:
            verdict = "degraded" if drop.interval.low > 0.0 else "undecided"
    return Tost(
        value=drop.value,
        status=drop.status,
        interval=drop.interval,
        verdict=verdict,
        p_value=equivalence_p(mean, margin=margin, side=side),
        margin=margin,
        alpha=alpha,
        side=side,
        items=drop.items,
        excluded=drop.excluded,
        clusters=drop.clusters,
    )


def equivalence_p(mean: ItemMean, *, margin: float, side: Side = "both") -> float | None:
    """The least alpha whose 1 - 2 alpha interval lies inside the margin; None without an interval.

    Between 1e-12 and 0.5, which stands for anything above.
    """
    if mean.value is None or mean.interval.low is None:
        return None
    if not _is_inside(replace(mean.interval, low=mean.value, high=mean.value), margin, side):
        return 0.5
    return _equivalence(mean.how, margin, side)


@lru_cache(maxsize=4096)  # of few items, many recipes have the same counts
def _equivalence(how: Inference | None, margin: float, side: Side) -> float | None:
    """The least alpha, from all that the intervals of a mean are made of."""
    if how is None:
        return None
    return _least_alpha(lambda a: _is_inside(how.interval(1.0 - 2.0 * a), margin, side))


def _is_inside(interval: Interval, margin: float, side: str) -> bool:
    if interval.low is None or interval.high is None:
        return False
    return interval.high < margin and (side == "loss" or interval.low > -margin)


def _least_alpha(is_equivalent_at: Callable[[float], bool]) -> float:
    """By bisection of log alpha, since an interval becomes wider with its level."""
    low, high = math.log(LEAST), math.log(0.5 - LEAST)
    if is_equivalent_at(math.exp(low)):
        return LEAST
    if not is_equivalent_at(math.exp(high)):
        return 0.5
    for _ in range(30):
        middle = (low + high) / 2.0
        if is_equivalent_at(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def _check(margin: float, alpha: float, side: str) -> None:
    if not 0.0 < margin < math.inf:
        raise InvalidValue("margin", margin, "a difference above 0", hint="2 points are 0.02")
    if not LEAST < alpha < 0.5:
        raise InvalidValue("alpha", alpha, "an error rate between 0 and 0.5; 0.05 is usual")
    if side not in ("both", "loss"):
        raise InvalidValue("side", side, "'both' (equivalence) or 'loss' (non-inferiority)")
