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
from falter.measures._simultaneous import largest, simultaneous

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
    because it was chosen for being the largest. `p_value` is adjusted for all conditions. 0/1 drops
    of fewer than 20 changed items have `paired_difference`'s interval at Bonferroni's level. Fewer
    than two items in common: insufficient_data.
    Source: Westfall and Young (1993); Romano and Wolf (2005).
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions, two or more of these")
    width = table.shape[1]
    if not 0 <= baseline < width:
        raise InvalidValue("baseline", baseline, f"a column from 0 to {width - 1}")
    conditions = tuple(j for j in range(width) if j != baseline)
    differences = simultaneous(
        table[:, [baseline]] - table[:, conditions],
        clusters=clusters,
        level=level,
        replications=replications,
        seed=seed,
    )
    basis = partial(Basis, conditions=width, level=level, seed=seed)
    drops = []
    for difference in differences:
        one_drop = basis(
            estimand="score(baseline) - score(this condition), items like these",
            items=difference.items,
            excluded=difference.excluded,
        )
        drops.append(
            one_drop.undefined("paired_drops", "insufficient_data", "fewer than two items")
            if difference.value is None
            else one_drop.estimate(
                "paired_drops",
                difference.value,
                difference.interval,
                p_value=difference.p_value,
            )
        )
    every_drop = basis(
        estimand="the largest true score(baseline) - score(condition) of these conditions, "
        "items like these",
        items=min(d.items for d in differences),
        excluded=max(d.excluded for d in differences),
    )
    top = largest(differences)
    if top is None:
        why = "not every condition has two items"
        worst = every_drop.undefined("paired_drops.worst", "insufficient_data", why)
    else:
        place, interval = top
        worst = every_drop.estimate(
            "paired_drops.worst",
            differences[place].value or 0.0,
            interval,
            p_value=differences[place].p_value,
        )
    return PairedDrops(conditions=conditions, drops=tuple(drops), worst=worst)
