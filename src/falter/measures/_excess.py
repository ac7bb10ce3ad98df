"""What a perturbation changes beyond what asking again changes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy_drop
from falter.measures._estimates import Basis
from falter.measures._resample import unit_codes, unit_sums
from falter.stats import jackknife, no_interval

__all__ = ["ExcessChange", "excess_change"]

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


def _paired(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidValue("both arms", (x.shape, y.shape), "two vectors of the same items")
    return x, y
