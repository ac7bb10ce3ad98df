"""How good a condition is, and how much is lost from the baseline to it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.stats import agresti_coull, clustered, item_mean, outer, paired_difference

__all__ = ["accuracy", "accuracy_drop"]


def accuracy(
    scores: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Estimate:
    """The mean score of one condition over its items; NaN is missing and counted as excluded.

    Agresti and Coull's interval for 0/1 scores, of the effective number of items where they are
    clustered and never narrower than without clusters; Student's t for others, CR2 with `clusters`.
    A single 0/1 item has an interval, a single other item is insufficient_data; fewer than 6
    clusters are too_few_clusters.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise InvalidValue("scores", values.shape, "a vector, one score per item")
    mean = item_mean(values, clusters=clusters, level=level)
    value, status, interval = mean.value, mean.status, mean.interval
    present = values[~np.isnan(values)]
    binary = bool(((present == 0.0) | (present == 1.0)).all())
    if binary and clusters is None and len(present):
        value, status = float(present.mean()), "ok"
        interval = agresti_coull(int(present.sum()), len(present), level=level)
    elif binary and value is not None and interval.low is not None:
        right, share = value * len(present), mean.effective_share
        interval = clustered(
            outer(
                agresti_coull(right * share, len(present) * share, level=level),
                agresti_coull(right, len(present), level=level),
            )
        )
    return Estimate(
        measure="accuracy",
        value=value,
        status=status,
        estimand="mean score in this condition, items like these",
        low=interval.low,
        high=interval.high,
        level=level,
        method=interval.method,
        items=mean.items,
        conditions=1,
        excluded=mean.excluded,
        clusters=mean.clusters,
        design_effect=mean.design_effect,
    )


def accuracy_drop(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean of baseline - perturbed over the items that have both: positive when something is lost.

    Interval and p-value are `falter.stats.paired_difference`'s: t over items or clusters, Tango's
    with Bonett and Price's for 0/1 scores, of the effective number of pairs where these are
    clustered; McNemar's mid-p for 0/1 scores without clusters. Fewer than two items in common:
    insufficient_data; fewer than 6 clusters: too_few_clusters.
    """
    drop = paired_difference(baseline, perturbed, clusters=clusters, level=level)
    return Estimate(
        measure="accuracy_drop",
        value=drop.value,
        status=drop.status,
        estimand="score(baseline) - score(this condition), items like these",
        low=drop.interval.low,
        high=drop.interval.high,
        level=level,
        p_value=drop.p_value,
        method=f"{drop.interval.method}; p: {drop.test}",
        items=drop.items,
        conditions=2,
        excluded=drop.excluded,
        clusters=drop.clusters,
        design_effect=drop.design_effect,
    )
