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
    """`rate` and `noise` are the shares changed by the perturbation and by asking again; `excess`
    is their difference, `abbott` the share of the otherwise stable items that were changed.
    """

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

        excess = r − r0        abbott = (r − r0)/(1 − r0)

    r is the share of items changed by the perturbation, r0 that changed by asking again. Both
    arguments have one 0/1 number for every item, 1 where the output (or its score, or its quality)
    changed, NaN where not known; only items with both count. excess has `paired_difference`'s
    interval; abbott a jackknife t interval, and is below 0 where asking again changes more. Every
    item changes anyway: abbott is undefined_zero_denominator. Source: Abbott (1925).
    """
    by_prompt, by_repeat = _paired(perturbed, repeated)
    both = ~np.isnan(by_prompt + by_repeat)
    codes = unit_codes(clusters, len(by_prompt))[both]
    x, y = by_prompt[both], by_repeat[both]
    basis = Basis(
        estimand="items changed by the perturbation, less those changed by asking again, items "
        "like these",
        items=len(x),
        conditions=2,
        excluded=int((~both).sum()),
        level=level,
    )
    excess = replace(
        accuracy_drop(by_prompt, by_repeat, clusters=clusters, level=level),
        measure="excess_change",
        estimand=basis.estimand,
    )
    rate, noise = (
        basis.estimate(f"excess_change.{name}", float(changed.mean()), no_interval(level))
        if len(changed)
        else basis.undefined(f"excess_change.{name}", "insufficient_data", "no item has both")
        for name, changed in (("rate", x), ("noise", y))
    )
    # Abbott's formula from sums of 1, x and y over units, and without each of the units.
    measure = "excess_change.abbott"
    units = unit_sums(np.column_stack([np.ones(len(x)), x, y]), codes)
    n, changed, changed_anyway = units.sum(axis=0)
    if len(x) < 2:
        abbott = basis.undefined(measure, "insufficient_data", "fewer than two items")
    elif changed_anyway == n:
        why = "asking again changes every item"
        abbott = basis.undefined(measure, "undefined_zero_denominator", why)
    else:
        value = float((changed - changed_anyway) / (n - changed_anyway))
        left_out = units.sum(axis=0) - units
        stable = left_out[:, 0] - left_out[:, 2]
        interval = no_interval(level)
        if (stable > 0.0).all() and len(units) > 2:
            interval = jackknife(value, (left_out[:, 1] - left_out[:, 2]) / stable, level=level)
        abbott = basis.estimate(measure, value, interval)
    return ExcessChange(rate=rate, noise=noise, excess=excess, abbott=abbott)


def any_metric_floor(flip_rates: Sequence[float]) -> float:
    """How often at least one of several independent metrics flips: 1 − Π (1 − q).

    A quality delta counts a pair if any metric changed, so five metrics that flip by chance look
    worse than two.
    """
    rates = np.asarray(flip_rates, dtype=np.float64)
    if rates.ndim != 1 or not ((rates >= 0.0) & (rates <= 1.0)).all():
        raise InvalidValue("flip_rates", flip_rates, "probabilities, one for every metric")
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
    """How many scores fell and how many rose: if as many did, there is no drop, but a change.

    One score per item, NaN where missing; within `tolerance` is unchanged. Agresti and Coull's
    intervals, CR1 with `clusters`. No item with both: insufficient_data.
    """
    old, new = _paired(before, after)
    change = new - old

    def share(part: str, is_so: NDArray[np.bool_]) -> Estimate:
        values = np.where(np.isnan(change), np.nan, is_so)
        return replace(
            accuracy(values, clusters=clusters, level=level),
            measure=f"signed_change.{part}",
            estimand=f"share of items whose score is {part}, items like these",
            conditions=2,
        )

    return SignedChange(
        worse=share("worse", change < -tolerance),
        better=share("better", change > tolerance),
        unchanged=share("unchanged", np.abs(change) <= tolerance),
    )


def run_variance(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The variance between two runs of the same cell: half the mean squared difference.

    One number for every repeated cell, NaN where missing; a tenth of the cells is enough. Unbiased;
    subtract it from the interaction of `variance_components` with one run. For 0/1 scores half of
    Agresti and Coull's interval for the share that differs, for others half of t's.
    """
    run, rerun = _paired(first, second)
    square = accuracy(np.square(run - rerun), level=level)
    value, low, high = (
        None if number is None else max(0.0, number) / 2.0
        for number in (square.value, square.low, square.high)
    )
    return replace(
        square,
        measure="run_variance",
        value=value,
        low=low,
        high=high,
        estimand="variance between runs of a cell, cells like these",
    )


def _paired(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidValue("both arms", (x.shape, y.shape), "two vectors of the same items")
    return x, y
