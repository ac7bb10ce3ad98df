"""The difference between two scores of the same items."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from falter.core.records import EstimateStatus
from falter.stats._checks import paired_vectors
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

    Interval: Student's t with the standard error over items, or CR1 over clusters; for 0/1 scores
    `paired_proportions_interval`'s. For clustered 0/1 scores with b + c < 20, or fewer than 20
    pairs that agree, the same, scaled by the design effect. p-value: McNemar's mid-p for
    0/1 scores without clusters, else Student's t. Fewer than two items, or clusters, in common:
    insufficient_data.
    """
    before, after = paired_vectors(baseline, perturbed)
    mean = item_mean(before - after, clusters=clusters, level=level)
    both = ~np.isnan(before - after)
    before, after = before[both], after[both]
    b = c = None
    p_value, test = mean.p_value, "t"
    if np.isin(before, (0.0, 1.0)).all() and np.isin(after, (0.0, 1.0)).all():
        b, c = int(((before == 1) & (after == 0)).sum()), int(((before == 0) & (after == 1)).sum())
        if clusters is None and mean.status == "ok":
            p_value, test = mcnemar(b, c).mid_p, "mcnemar mid-p"
    return PairedDifference(
        value=mean.value,
        status=mean.status,
        interval=mean.interval,
        p_value=p_value,
        test=test,
        standard_error=mean.standard_error,
        items=mean.items,
        excluded=mean.excluded,
        clusters=None if clusters is None else mean.units,
        b=b,
        c=c,
    )
