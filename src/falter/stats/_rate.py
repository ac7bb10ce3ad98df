"""The mean of scores between 0 and 1 over several conditions, with an interval that stays there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._clusters import cluster_codes
from falter.stats._interval import Interval, normal_quantile, outer, student_quantile
from falter.stats._mean import ASSUMED, RARE, ItemMean, item_mean
from falter.stats._proportions import agresti_coull

__all__ = ["mean_rate"]

METHOD = "agresti-coull, effective number of answers"


def mean_rate(
    values: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> ItemMean:
    """`item_mean` of scores between 0 and 1, each condition counting the same, as a proportion.

    A mean of scores is no mean of differences: it cannot leave [0, 1], and near an end it has more
    room on one side. With x̄ and se as in `item_mean`, the scores say as much about x̄ as

        n_eff = x̄(1 − x̄)/se² · (z/t)²

    independent answers that are right or wrong would; the interval is Agresti and Coull's of
    x̄ n_eff among n_eff. Of 0/1 scores n_eff is at most the number of answers, and that of items
    where items do not differ at all; without clusters the interval of one condition is that of its
    items. With clusters se is at least what too few items that differ leave open, see `item_mean`,
    and the interval holds that without clusters. There is no p-value: 0 is nothing to test against.
    Source: Korn and Graubard (1998), with both quantiles as there.
    """
    mean = replace(item_mean(values, clusters=clusters, level=level), p_value=None, how=None)
    matrix = np.asarray(values, dtype=np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    known = matrix[~np.isnan(matrix)]
    if known.size and not 0.0 <= known.min() <= known.max() <= 1.0:
        raise InvalidValue("values", (known.min(), known.max()), "scores between 0 and 1")
    error, freedom = mean.standard_error, mean.freedom
    if mean.value is None or error is None or not freedom:
        return mean
    if not np.isin(known, (0.0, 1.0)).all():
        if error == 0.0:
            return mean
        interval = _interval(mean.value, _effective(mean.value, error, freedom, level), level)
        return replace(mean, interval=interval)
    alone = item_mean(values, level=level)
    assert alone.standard_error is not None and alone.freedom is not None
    answers = _answers(mean.value, alone.standard_error, alone.freedom, matrix, level)
    interval = _interval(mean.value, answers, level)
    if clusters is None:
        return replace(mean, interval=interval)
    error = max(error, alone.standard_error * _least(mean, matrix, clusters) ** 0.5)
    if error > 0.0:
        fewer = min(answers, _effective(mean.value, error, freedom, level))
        interval = outer(_interval(mean.value, fewer, level), interval)
    return replace(mean, interval=replace(interval, method=f"{METHOD}, CR2"))


def _answers(
    value: float, error: float, freedom: float, matrix: NDArray[np.float64], level: float
) -> float:
    """How many independent 0/1 answers those of independent items are worth."""
    present = ~np.isnan(matrix)
    items = float(present.any(axis=1).sum())
    if error == 0.0 or present.any(axis=0).sum() == 1:
        return items
    return min(float(present.sum()), _effective(value, error, freedom, level))


def _effective(value: float, error: float, freedom: float, level: float) -> float:
    ratio = normal_quantile(level) / student_quantile(level, freedom)
    return value * (1.0 - value) / error**2 * ratio**2


def _least(mean: ItemMean, matrix: NDArray[np.float64], clusters: Sequence[Hashable]) -> float:
    """The design effect that few items which differ from the others cannot show to be absent."""
    present = (~np.isnan(matrix)).any(axis=1)
    sizes = np.bincount(cluster_codes(clusters, len(matrix))[present])
    size = float(np.square(sizes).sum()) / mean.items
    right = (mean.value or 0.0) * mean.items
    events = min(right, mean.items - right)
    return 1.0 + (size - 1.0) * ASSUMED * max(0.0, 1.0 - events / RARE)


def _interval(value: float, answers: float, level: float) -> Interval:
    right = min(1.0, max(0.0, value)) * answers
    return replace(agresti_coull(right, answers, level=level), method=METHOD)
