"""All drops of a table at once, with intervals that hold together, and the worst of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.stats import max_t

__all__ = ["PairedDrops", "paired_drops"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDrops:
    """The drop of every condition, and the largest; their intervals hold all at once."""

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

    `outcomes` is items x conditions, NaN where missing. The intervals hold together, and so does
    that of the worst drop, however many conditions it was chosen from; its value is still too high,
    because it was chosen for being the largest. `p_value` is adjusted for all conditions, and below
    1 - level just where the interval leaves out 0: see `falter.stats.max_t`. Fewer than two items
    in common: insufficient_data; fewer than 6 clusters: too_few_clusters.
    Source: Westfall and Young (1993); Romano and Wolf (2005).
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions, two or more of these")
    width = table.shape[1]
    if not 0 <= baseline < width:
        raise InvalidValue("baseline", baseline, f"a column from 0 to {width - 1}")
    conditions = tuple(j for j in range(width) if j != baseline)
    family = max_t(
        table[:, [baseline]] - table[:, conditions],
        clusters=clusters,
        level=level,
        replications=replications,
        seed=seed,
    )
    basis = partial(Basis, conditions=width, level=level, seed=seed)
    drops = []
    for member in family.members:
        mean = member.mean
        one_drop = basis(
            estimand="score(baseline) - score(this condition), items like these",
            items=mean.items,
            excluded=mean.excluded,
            clusters=mean.clusters,
            design_effect=mean.design_effect,
        )
        drops.append(
            one_drop.undefined("paired_drops", mean.status, "fewer than two items")
            if mean.value is None
            else one_drop.estimate(
                "paired_drops",
                mean.value,
                member.together,
                p_value=member.adjusted_p,
                status=mean.status,
            )
        )
    means = [member.mean for member in family.members]
    every_drop = basis(
        estimand="the largest true score(baseline) - score(condition) of these conditions, "
        "items like these",
        items=min(m.items for m in means),
        excluded=max(m.excluded for m in means),
        clusters=None if clusters is None else min(m.clusters or 0 for m in means),
    )
    top = family.largest()
    if top is None:
        why = "not every condition has two items"
        worst = every_drop.undefined("paired_drops.worst", "insufficient_data", why)
    else:
        place, interval = top
        worst = every_drop.estimate(
            "paired_drops.worst",
            means[place].value or 0.0,
            interval,
            p_value=family.members[place].adjusted_p,
            status=means[place].status,
        )
    return PairedDrops(conditions=conditions, drops=tuple(drops), worst=worst)
