"""How good a condition is, and how much is lost from the baseline to it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.stats import agresti_coull, item_mean, paired_difference

__all__ = ["accuracy", "accuracy_drop"]


def accuracy(
    scores: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Estimate:
    """The mean score of one condition over its items; NaN is missing and counted as excluded.

    Agresti and Coull's interval for 0/1 scores, Student's t for others, CR1 with `clusters`. A
    single 0/1 item has an interval, a single other item or cluster is insufficient_data.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise InvalidValue("scores", values.shape, "a vector, one score an item")
    estimand = "mean score in one fixed condition, super-population of items"
    mean = item_mean(values, clusters=clusters, level=level)
    present = values[~np.isnan(values)]
    binary = bool(np.isin(present, (0.0, 1.0)).all())
    if binary and clusters is None and len(present):
        found = agresti_coull(int(present.sum()), len(present), level=level)
        value, low, high, method = float(present.mean()), found.low, found.high, found.method
    elif mean.value is None:
        return Estimate(
            measure="accuracy",
            value=None,
            status=mean.status,
            estimand=estimand,
            level=level,
            method=mean.interval.method,
            items=mean.items,
            conditions=1,
            excluded=mean.excluded,
        )
    else:
        value, low, high = mean.value, mean.interval.low, mean.interval.high
        method = mean.interval.method
        if binary and low is not None and high is not None:
            low, high = max(0.0, low), min(1.0, high)
    return Estimate(
        measure="accuracy",
        value=value,
        estimand=estimand,
        low=low,
        high=high,
        level=level,
        method=method,
        items=mean.items,
        conditions=1,
        excluded=mean.excluded,
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
    with Bonett and Price's for 0/1 scores; McNemar's mid-p for 0/1 scores, else t. Fewer than two
    items in common: insufficient_data.
    """
    found = paired_difference(baseline, perturbed, clusters=clusters, level=level)
    return Estimate(
        measure="accuracy_drop",
        value=found.value,
        status=found.status,
        estimand="score(baseline) - score(condition), fixed condition, super-population of items",
        low=found.interval.low,
        high=found.interval.high,
        level=level,
        p_value=found.p_value,
        method=f"{found.interval.method}; p: {found.test}",
        items=found.items,
        conditions=2,
        excluded=found.excluded,
    )
