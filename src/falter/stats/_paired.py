"""The difference between two scores of the same items."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from falter.core.records import EstimateStatus
from falter.stats._checks import is_binary, paired_vectors
from falter.stats._interval import Interval
from falter.stats._mcnemar import mcnemar
from falter.stats._mean import item_mean

__all__ = ["PairedDifference", "paired_difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Baseline minus perturbed, so that a loss is positive; `b` fell and `c` rose."""

    value: float | None
    status: EstimateStatus
    interval: Interval
    p_value: float | None
    test: str
    standard_error: float | None
    items: int
    excluded: int
    clusters: int | None
    design_effect: float | None
    b: int | None
    c: int | None


def paired_difference(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """Mean of baseline - perturbed over the items that have both; NaN is missing, never zero.

    The interval is `item_mean`'s: Student's t over items or clusters (CR2); for 0/1 scores
    `paired_proportions_interval`'s, of the effective number of pairs where they are clustered.
    p-value: McNemar's mid-p for 0/1 scores, for clustered ones the least error rate at which the
    interval leaves out 0; else Student's t. Fewer than two items in common: insufficient_data;
    fewer than 6 clusters: too_few_clusters.
    """
    before, after = paired_vectors(baseline, perturbed)
    mean = item_mean(before - after, clusters=clusters, level=level)
    both = ~np.isnan(before - after)
    before, after = before[both], after[both]
    b = c = None
    p_value, test = mean.p_value, "t"
    if is_binary(before) and is_binary(after):
        b, c = int(((before == 1) & (after == 0)).sum()), int(((before == 0) & (after == 1)).sum())
        if clusters is None and mean.status == "ok":
            p_value, test = mcnemar(b, c).mid_p, "mcnemar mid-p"
        elif clusters is not None:
            test = "the interval's"
    return PairedDifference(
        value=mean.value,
        status=mean.status,
        interval=mean.interval,
        p_value=p_value,
        test=test,
        standard_error=mean.standard_error,
        items=mean.items,
        excluded=mean.excluded,
        clusters=mean.clusters,
        design_effect=mean.design_effect,
        b=b,
        c=c,
    )
