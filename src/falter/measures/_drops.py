"""All drops of a table at once, with intervals that hold together, and the worst of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._simultaneous import Difference, largest, simultaneous

__all__ = ["PairedDrops", "paired_drops"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDrops:
    """One place a condition, and the largest drop; the intervals hold all at once."""

    conditions: tuple[int, ...]
    drops: tuple[Estimate, ...]
    worst: Estimate


def paired_drops(
    outcomes: ArrayLike,
    *,
    baseline: int = 0,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> PairedDrops:
    """Baseline less every other condition, over the items that have both, with max-t intervals.

    `outcomes` is items x conditions, NaN where missing. The intervals hold together, the worst
    drop's included: picking the largest of 14 is paid for, while its value is still too high by
    that choice. `p_value` is adjusted for all conditions. 0/1 drops of fewer than 20 changed items
    have `paired_difference`'s interval at Bonferroni's level. Fewer than two items in common:
    insufficient_data. Source: Westfall and Young (1993); Romano and Wolf (2005).
    """
    table = np.asarray(outcomes, dtype=np.float64)
    _check(table.shape, baseline)
    conditions = tuple(j for j in range(table.shape[1]) if j != baseline)
    found = simultaneous(
        table[:, [baseline]] - table[:, conditions],
        clusters=clusters,
        level=level,
        replications=replications,
        seed=seed,
    )
    basis = Basis(
        estimand="the largest true score(baseline) - score(condition), fixed conditions, "
        "super-population of items",
        items=min(f.items for f in found),
        conditions=table.shape[1],
        excluded=max(f.excluded for f in found),
        level=level,
        seed=seed,
    )
    top = largest(found)
    if top is None:
        worst = basis.undefined("paired_drops.worst", "insufficient_data", "a drop is not known")
    else:
        place, interval = top
        own = found[place]
        worst = basis.estimate(
            "paired_drops.worst", own.value or 0.0, interval, p_value=own.p_value
        )
    drops = tuple(_drop(f, table.shape[1], level, seed) for f in found)
    return PairedDrops(conditions=conditions, drops=drops, worst=worst)


def _drop(found: Difference, conditions: int, level: float, seed: int) -> Estimate:
    basis = Basis(
        estimand="score(baseline) - score(condition), fixed condition, super-population of items",
        items=found.items,
        conditions=conditions,
        excluded=found.excluded,
        level=level,
        seed=seed,
    )
    if found.value is None:
        return basis.undefined("paired_drops", "insufficient_data", "fewer than two items")
    return basis.estimate("paired_drops", found.value, found.interval, p_value=found.p_value)


def _check(shape: tuple[int, ...], baseline: int) -> None:
    if len(shape) != 2 or shape[1] < 2:
        raise InvalidValue("outcomes", shape, "items x conditions, two or more")
    if not 0 <= baseline < shape[1]:
        raise InvalidValue("baseline", baseline, f"a column from 0 to {shape[1] - 1}")
