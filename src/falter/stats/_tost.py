"""Equivalence: showing that a perturbation costs next to nothing, not failing to show it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._interval import Interval
from falter.stats._mean import item_mean
from falter.stats._paired import paired_difference

__all__ = ["Tost", "tost"]

Verdict = Literal["degraded", "equivalent", "undecided"]
Side = Literal["both", "loss"]
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
    above 0 but not inside; `undecided`: anything else, a gain beyond the margin among it.
    With `side="loss"` (non-inferiority) only its upper end must be below the margin. Decide on the
    margin before looking. The interval is `paired_difference`'s, so 0/1 scores, clusters and
    missing items are treated as there; `p_value` is the least alpha that would show equivalence,
    between 1e-12 and 0.5, which stands for anything above. Source: Schuirmann (1987).
    """
    _check(margin, alpha, side)
    found = paired_difference(baseline, perturbed, clusters=clusters, level=1.0 - 2.0 * alpha)
    gaps = np.asarray(baseline, dtype=np.float64) - np.asarray(perturbed, dtype=np.float64)

    def inside(at: float) -> bool:
        interval = item_mean(gaps, clusters=clusters, level=1.0 - 2.0 * at).interval
        return _within(interval, margin, side)

    known = found.interval.low is not None
    return Tost(
        value=found.value,
        status=found.status,
        interval=found.interval,
        verdict=_verdict(found.interval, margin, side) if known else None,
        p_value=_least(inside) if known else None,
        margin=margin,
        alpha=alpha,
        side=side,
        items=found.items,
        excluded=found.excluded,
        clusters=found.clusters,
    )


def _within(interval: Interval, margin: float, side: Side) -> bool:
    if interval.low is None or interval.high is None:
        return False
    return interval.high < margin and (side == "loss" or interval.low > -margin)


def _verdict(interval: Interval, margin: float, side: Side) -> Verdict:
    if _within(interval, margin, side):
        return "equivalent"
    return "degraded" if interval.low is not None and interval.low > 0.0 else "undecided"


def _least(inside: Callable[[float], bool]) -> float:
    """The smallest alpha at which `inside` holds: intervals widen with the level, so bisect."""
    low, high = math.log(LEAST), math.log(0.5 - LEAST)
    if inside(math.exp(low)):
        return LEAST
    if not inside(math.exp(high)):
        return 0.5
    for _ in range(30):
        middle = (low + high) / 2.0
        if inside(math.exp(middle)):
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
