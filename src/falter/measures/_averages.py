"""The average drop over several conditions, as one paired quantity with one interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.stats import ItemMean, item_mean, mean_drop, mean_rate

__all__ = ["group_average", "macro_average", "mean_score", "micro_average"]


def group_average(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean drop over the conditions of a group, each condition counting the same.

    `drops` is items x conditions of baseline - perturbed, NaN where a pair is missing: first the
    mean over conditions within an item, then over items. The conditions share their items, so
    their intervals must not be averaged; this one is computed from one number per item. With pairs
    missing each condition keeps its weight. A condition without any pair is left out and not
    counted in `conditions`; `excluded` counts the items without any pair.

    `baseline` are the baseline's scores, an item each. Give them where they are between 0 and 1:
    where nearly all of them are right, or wrong, the drops alone are far too sure.
    """
    return _average(
        "group_average", "the conditions of this group", drops, baseline, None, clusters, level
    )


def micro_average(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean drop over all perturbations that were run; see `group_average`."""
    return _average("micro_average", "all these conditions", drops, baseline, None, clusters, level)


def macro_average(
    drops: ArrayLike,
    groups: Sequence[Hashable],
    *,
    baseline: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean over groups of their average drops, each group counting the same.

    `groups` names the group of every column of `drops`; see `group_average` for the rest.
    """
    matrix = _matrix(drops)
    if len(groups) != matrix.shape[1]:
        raise InvalidValue("groups", groups, f"a group for each of {matrix.shape[1]} conditions")
    was_run = [not np.isnan(column).all() for column in matrix.T]
    sizes = Counter(group for group, ran in zip(groups, was_run, strict=True) if ran)
    weights = np.array(
        [1.0 / sizes[group] if ran else 0.0 for group, ran in zip(groups, was_run, strict=True)]
    )
    return _average(
        "macro_average", "these groups of conditions", matrix, baseline, weights, clusters, level
    )


def mean_score(
    scores: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Estimate:
    """The mean of scores, or shares, over all conditions, each counting the same.

    `scores` is items x conditions, NaN where missing. Between 0 and 1 the interval is that of
    `falter.stats.mean_rate`, which stays there; of other scores that of `micro_average`.
    """
    matrix = _matrix(scores)
    known = matrix[~np.isnan(matrix)]
    in_unit = bool(known.size) and 0.0 <= float(known.min()) <= float(known.max()) <= 1.0
    mean = (mean_rate if in_unit else item_mean)(matrix, clusters=clusters, level=level)
    return _estimate("mean_score", "mean score over all these conditions", mean, level)


def _average(
    measure: str,
    over: str,
    drops: ArrayLike,
    baseline: ArrayLike | None,
    weights: NDArray[np.float64] | None,
    clusters: Sequence[Hashable] | None,
    level: float,
) -> Estimate:
    """`item_mean` as an estimate; without a condition that was run there is nothing to weigh."""
    matrix = _matrix(drops)
    if weights is not None and not weights.any():
        weights = None
    mean = mean_drop(matrix, weights=weights, clusters=clusters, level=level, baseline=baseline)
    found = _estimate(measure, f"mean drop over {over}", mean, level)
    test = "t" if clusters is None else "the same"
    if clusters is None and mean.how is not None and mean.how.apart is not None:
        test = "the larger of t and MOVER"
    return replace(found, p_value=mean.p_value, method=f"{found.method}; p: {test}")


def _estimate(measure: str, what: str, mean: ItemMean, level: float) -> Estimate:
    """A mean over items as an estimate, without a test."""
    return Estimate(
        measure=measure,
        value=mean.value,
        status=mean.status,
        estimand=f"{what}, items like these",
        low=mean.interval.low,
        high=mean.interval.high,
        level=level,
        method=mean.interval.method,
        items=mean.items,
        conditions=mean.conditions,
        excluded=mean.excluded,
        clusters=mean.clusters,
        design_effect=mean.design_effect,
    )


def _matrix(drops: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(drops, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InvalidValue("drops", matrix.shape, "items x conditions of baseline - perturbed")
    return matrix
