"""What a perturbation changes beyond what asking again changes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy, accuracy_drop
from falter.measures._estimates import Basis
from falter.measures._resample import unit_codes, unit_sums
from falter.stats import jackknife, no_interval

__all__ = [
    "ExcessChange",
    "SignedChange",
    "any_metric_floor",
    "excess_change",
    "run_variance",
    "signed_change",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessChange:
    """`excess` is rate - noise in points; `abbott` the share of stable items that were changed."""

    rate: Estimate
    noise: Estimate
    excess: Estimate
    abbott: Estimate


def excess_change(
    perturbed: ArrayLike,
    repeated: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ExcessChange:
    """How many more items a perturbation changes than asking again does.

    Both are one 0/1 number an item, 1 where the output (or its score, or its quality) changed, NaN
    where not known; only items with both count. excess = r - r0 with `paired_difference`'s
    interval; abbott = (r - r0)/(1 - r0) with a jackknife t interval, below 0 where asking again
    changes more. Every item changes anyway: abbott is undefined_zero_denominator.
    Source: Abbott (1925).
    """
    first, second = _pair(perturbed, repeated)
    both = ~np.isnan(first + second)
    x, y = first[both], second[both]
    basis = Basis(
        estimand="items changed by the perturbation, less those changed by asking again, "
        "super-population of items",
        items=len(x),
        conditions=2,
        excluded=int((~both).sum()),
        level=level,
    )
    excess = replace(
        accuracy_drop(first, second, clusters=clusters, level=level),
        measure="excess_change",
        estimand=basis.estimand,
    )
    rates = (
        basis.estimate(f"excess_change.{name}", float(v.mean()), no_interval(level))
        if len(v)
        else basis.undefined(f"excess_change.{name}", "insufficient_data", "no item has both")
        for name, v in (("rate", x), ("noise", y))
    )
    rate, noise = rates
    codes = unit_codes(clusters, len(first))[both]
    abbott = _abbott(basis, np.column_stack([np.ones(len(x)), x, y]), codes)
    return ExcessChange(rate=rate, noise=noise, excess=excess, abbott=abbott)


def _abbott(basis: Basis, columns: Floats, codes: NDArray[np.intp]) -> Estimate:
    measure = "excess_change.abbott"
    if len(columns) < 2:
        return basis.undefined(measure, "insufficient_data", "fewer than two items")
    units = unit_sums(columns, codes)
    sums = units.sum(axis=0)
    if sums[2] == sums[0]:
        why = "asking again changes every item"
        return basis.undefined(measure, "undefined_zero_denominator", why)
    left = sums - units
    interval = no_interval(basis.level)
    if (left[:, 2] < left[:, 0]).all() and len(units) > 2:
        values = (left[:, 1] - left[:, 2]) / (left[:, 0] - left[:, 2])
        value = float((sums[1] - sums[2]) / (sums[0] - sums[2]))
        interval = jackknife(value, values, level=basis.level)
    return basis.estimate(measure, float((sums[1] - sums[2]) / (sums[0] - sums[2])), interval)


def any_metric_floor(flip_rates: Sequence[float]) -> float:
    """How often at least one of several independent metrics flips: 1 - product of (1 - q).

    A quality delta counts a pair if any metric moved, so five metrics that flip by chance look
    worse than two.
    """
    rates = np.asarray(flip_rates, dtype=np.float64)
    if rates.ndim != 1 or not ((rates >= 0.0) & (rates <= 1.0)).all():
        raise InvalidValue("flip_rates", flip_rates, "one probability a metric")
    return float(1.0 - np.prod(1.0 - rates))


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedChange:
    """The shares of items that got worse, better, or stayed; they sum to 1."""

    worse: Estimate
    better: Estimate
    unchanged: Estimate


def signed_change(
    before: ArrayLike,
    after: ArrayLike,
    *,
    tolerance: float = 1e-9,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> SignedChange:
    """Which way scores moved: a perturbation that hurts as many items as it helps has no drop.

    One score an item, NaN where missing; within `tolerance` is unchanged. Agresti and Coull's
    intervals, CR1 with `clusters`. No item with both: insufficient_data.
    """

    first, second = _pair(before, after)
    gap = second - first
    lacking = np.isnan(gap)

    def share(part: str, where: NDArray[np.bool_]) -> Estimate:
        found = accuracy(np.where(lacking, np.nan, where), clusters=clusters, level=level)
        estimand = f"share of items whose score is {part}, super-population of items"
        return replace(found, measure=f"signed_change.{part}", estimand=estimand, conditions=2)

    return SignedChange(
        worse=share("worse", gap < -tolerance),
        better=share("better", gap > tolerance),
        unchanged=share("unchanged", np.abs(gap) <= tolerance),
    )


def run_variance(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The variance between two runs of the same cell: half the mean squared difference.

    One number a repeated cell, NaN where missing; a tenth of the cells is enough. Unbiased; take it
    off the interaction of `variance_components` with one run. For 0/1 scores half of
    Agresti and Coull's interval for the share that differs, for others half of t's.
    """

    one, two = _pair(first, second)
    found = accuracy(np.square(one - two), level=level)
    half = [None if v is None else max(0.0, v) / 2.0 for v in (found.value, found.low, found.high)]
    return replace(
        found,
        measure="run_variance",
        value=half[0],
        low=half[1],
        high=half[2],
        estimand="variance between runs of a cell, super-population of cells",
    )


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != two.shape:
        raise InvalidValue("both arms", (one.shape, two.shape), "two vectors of the same items")
    return one, two
