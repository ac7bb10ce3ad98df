"""All drops of a table at once, with simultaneous intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.stats import max_t

__all__ = ["paired_drops"]


def paired_drops(
    outcomes: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Baseline less every other condition, over the items that have both, with max-t intervals.

    `outcomes` is items x conditions, the baseline first, NaN where missing. The intervals are
    simultaneous, so the worst drop's holds too, however many conditions it was chosen from.
    `p_value` is adjusted for all conditions, and below 1 - level just where the interval leaves
    out 0: see `falter.stats.max_t`. Fewer than two items in common: insufficient_data; fewer than 6
    clusters: too_few_clusters.
    Source: Westfall and Young (1993); Romano and Wolf (2005).
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions, two or more of these")
    family = max_t(
        table[:, :1] - table[:, 1:],
        clusters=clusters,
        level=level,
        replications=replications,
        seed=seed,
    )
    drops = []
    for member in family.members:
        mean = member.mean
        basis = Basis(
            estimand="score(baseline) - score(this condition), items like these",
            items=mean.items,
            conditions=table.shape[1],
            excluded=mean.excluded,
            clusters=mean.clusters,
            design_effect=mean.design_effect,
            level=level,
            seed=seed,
        )
        drops.append(
            basis.undefined("paired_drops", mean.status, "fewer than two items")
            if mean.value is None
            else basis.estimate(
                "paired_drops",
                mean.value,
                member.together,
                p_value=member.adjusted_p,
                status=mean.status,
            )
        )
    return tuple(drops)
