"""Means of scores between 0 and 1 over several conditions, and differences of such means."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Between, Rate, agresti_coull
from falter.stats.mean import ItemMean, item_mean

Floats = NDArray[np.float64]


def rate(
    values: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    scale: tuple[float, float] | None = None,
) -> ItemMean:
    """Return the mean of scores on a scale, with an interval that cannot leave the scale.

    Parameters
    ----------
    values : array_like of shape (items,) or (items, conditions)
        Each condition counts equally; NaN where missing.
    clusters : the cluster of each item; None for independent items
    scale : the lowest and the highest possible score
        None: 0 and 1 if all scores lie between them. Otherwise the scale is unknown, and the
        interval is Student's t of `item_mean`. A score outside a given scale raises InvalidValue.

    Returns
    -------
    ItemMean
        The two-sided interval of `Rate` for the scores mapped to 0 to 1, mapped back. There is no
        p-value, because 0 is no hypothesis for a score. One single 0/1 score has an interval;
        otherwise fewer than two items are insufficient_data. Fewer than 6 clusters:
        too_few_clusters, without an interval.

    Notes
    -----
    `Rate` is Agresti and Coull's interval for the number of independent answers that the scores are
    worth. Near an end of the scale a mean has more room on one side, which Student's t ignores.
    """
    table = _as_table(values)
    known = table[~np.isnan(table)]
    if scale is None and not _is_in_unit_range(table):
        mean = item_mean(table, clusters=clusters, level=level)
        method = mean.interval.method.replace("t over", "t, scale unknown, over")
        return replace(mean, interval=replace(mean.interval, method=method), how=None)
    low, high = scale or (0.0, 1.0)
    if known.size and not low <= known.min() <= known.max() <= high:
        expected = f"scores between {low:g} and {high:g}"
        raise InvalidValue("values", (float(known.min()), float(known.max())), expected)
    unit = (table - low) / (high - low)
    mean = replace(item_mean(unit, clusters=clusters, level=level), how=None)
    # `item_mean` needs two items; one 0/1 answer is already a binomial count.
    if mean.items == 1 and clusters is None and known.size == 1 and known[0] in (low, high):
        share = float(unit[~np.isnan(table)][0])
        interval = agresti_coull(share, 1, level=level)
        mean = replace(mean, value=share, status="ok", interval=interval, informative=0.0)
    elif found := _rate(unit, clusters=clusters):
        mean = replace(mean, interval=found.interval(level), informative=found.informative)
    if mean.value is None or (low, high) == (0.0, 1.0):
        return mean

    def back(share: float) -> float:
        return low + (high - low) * share

    error = None if mean.standard_error is None else (high - low) * mean.standard_error
    return replace(
        mean, value=back(mean.value), interval=mean.interval.mapped(back), standard_error=error
    )


def mean_drop(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ItemMean:
    """Return `item_mean` of drops, baseline - score, widened if the baseline is near 0 or 1.

    `drops` is (items,) or (items, conditions), NaN where missing. Several conditions share one
    baseline, so their drops rise and fall together. If `baseline` (items,) is given, the interval
    is widened to contain the interval of `Between`, and the p-value is at least that of `Between`.
    This needs scores between 0 and 1, two conditions and two items. Otherwise, or without
    `baseline`, the result is `item_mean`.
    """
    matrix = np.asarray(drops, dtype=np.float64)
    apart = None
    if baseline is not None and matrix.ndim == 2:
        weight = np.ones(matrix.shape[1]) if weights is None else np.asarray(weights, np.float64)
        apart = _separate_means(matrix, weight, baseline, clusters)
    return item_mean(drops, weights=weights, clusters=clusters, level=level, apart=apart)


def between_rates(
    first: ArrayLike, second: ArrayLike, *, clusters: Sequence[Hashable] | None = None
) -> Between | None:
    """Return the mean of one table less the mean of another table of the same items.

    `first` and `second` are (items,) or (items, conditions), NaN where missing. None if a score
    lies outside 0 to 1, or if a mean has no interval.
    """
    tables = [_as_table(first), _as_table(second)]
    one, two = (_rate(table, clusters=clusters) for table in tables)
    if one is None or two is None or not all(map(_is_in_unit_range, tables)):
        return None
    correlation = _correlation(*map(_item_means, tables))
    return Between(value=one.value - two.value, first=one, second=two, correlation=correlation)


def between_drops(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    clusters: Sequence[Hashable] | None = None,
) -> Between | None:
    """Return one mean drop less another mean drop of the same items.

    `first` and `second` are pairs of a baseline (items,) and scores (items, conditions), NaN where
    missing. None with a single condition, scores outside 0 to 1, or a mean without an interval.
    """
    sides, drops = [], []
    for baseline, scores in (first, second):
        clean, table = np.asarray(baseline, dtype=np.float64), _as_table(scores)
        drop = clean[:, None] - table
        apart = _separate_means(drop, np.ones(table.shape[1]), clean, clusters)
        if apart is None:
            return None
        sides.append(apart)
        drops.append(_item_means(drop))
    one, two = sides
    correlation = _correlation(drops[0], drops[1])
    return Between(value=one.value - two.value, first=one, second=two, correlation=correlation)


def _as_table(values: ArrayLike) -> Floats:
    matrix = np.asarray(values, dtype=np.float64)
    return matrix[:, None] if matrix.ndim == 1 else matrix


def _is_in_unit_range(table: Floats) -> bool:
    known = table[~np.isnan(table)]
    return bool(known.size) and 0.0 <= float(known.min()) <= float(known.max()) <= 1.0


def _item_means(table: Floats, weight: Floats | None = None) -> Floats:
    """Return each item's weighted mean over its conditions; 0 for an item without any value."""
    share = np.where(np.isnan(table), 0.0, 1.0 if weight is None else weight)
    total = (np.where(np.isnan(table), 0.0, table) * share).sum(axis=1)
    return np.asarray(total / np.maximum(share.sum(axis=1), 1e-300))


def _rate(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> Rate | None:
    """Return the mean of scores between 0 and 1 as a `Rate`; None if it has no interval."""
    plain = item_mean(values, weights=weights)
    mean = plain if clusters is None else item_mean(values, weights=weights, clusters=clusters)
    if mean.value is None or plain.standard_error is None or mean.standard_error is None:
        return None
    matrix = _as_table(values)
    weight = np.ones(matrix.shape[1]) if weights is None else np.asarray(weights, np.float64)
    present = ~np.isnan(matrix) & (weight > 0.0)
    binary = bool(np.isin(matrix[present], (0.0, 1.0)).all())
    own = _relative_variance(plain, 1.0 / plain.items)
    if binary:
        # Answers of one item may cancel out, but n binary answers are worth at most n independent
        # answers.
        own = max(own, 1.0 / float(present.sum()))
    elif own == 0.0:  # scores on a scale that are all equal
        return None
    # With one 0/1 answer per item the sum is binomial: the mean alone gives the variance.
    one_answer_each = binary and int(present.any(axis=0).sum()) == 1
    rate = Rate(
        value=mean.value,
        items=float(mean.items),
        informative=informative_items(
            _item_means(np.where(present, matrix, np.nan), weight)[present.any(axis=1)]
        ),
        own=None if one_answer_each else own,
        freedom=float(plain.items - 1),
    )
    if clusters is None or not mean.freedom:
        return rate
    sizes = np.bincount(cluster_codes(clusters, len(matrix))[present.any(axis=1)])
    return replace(
        rate,
        by_cluster=_relative_variance(mean, 0.0),
        cluster_freedom=mean.freedom,
        size=float(np.square(sizes).sum()) / mean.items,
    )


def _relative_variance(mean: ItemMean, none: float) -> float:
    """Return the variance of the mean over x̄(1 − x̄); `none` if x̄ is 0 or 1."""
    value = mean.value or 0.0
    spread = value * (1.0 - value)
    return (mean.standard_error or 0.0) ** 2 / spread if spread > 0.0 else none


def informative_items(means: Floats) -> float:
    """Return the effective number of items with the rarer outcome, for means between 0 and 1.

        k = min of (Σx)²/Σx² and (Σ(1 − x))²/Σ(1 − x)²

    `means` has one number per item, without NaN. k is Kish's (1965) effective number: an item that
    is wrong once in twelve runs counts little.
    """
    # Right and wrong answers are both counted, because the rarer kind limits the precision.
    return min(float(x.sum()) ** 2 / max(float(x @ x), 1e-300) for x in (means, 1.0 - means))


def _separate_means(
    drops: Floats, weight: Floats, baseline: ArrayLike, clusters: Sequence[Hashable] | None
) -> Between | None:
    """Return both means as a `Between`; None for one condition, which is compared by pairs.

    It is also None for fewer than two items, for scores outside 0 to 1, and if a mean has no
    interval.
    """
    first = np.asarray(baseline, dtype=np.float64)
    if first.shape != drops.shape[:1]:
        raise InvalidValue("baseline", first.shape, f"a score for each of {len(drops)} items")
    scores = first[:, None] - drops
    present: NDArray[np.bool_] = ~np.isnan(scores) & (weight > 0)
    used, rows = np.asarray(present.any(axis=0)), np.asarray(present.any(axis=1))
    known = np.concatenate([first[rows], scores[present]])
    if used.sum() < 2 or rows.sum() < 2 or not 0.0 <= known.min() <= known.max() <= 1.0:
        return None
    kept = None if clusters is None else [c for c, row in zip(clusters, rows, strict=True) if row]
    before = _rate(first[rows], clusters=kept)
    after = _rate(scores[rows][:, used], weights=weight[used], clusters=kept)
    if before is None or after is None:
        return None
    means = _item_means(np.where(present, scores, np.nan)[rows], weight)
    correlation = _correlation(first[rows], means)
    value = before.value - after.value
    return Between(value=value, first=before, second=after, correlation=correlation)


def _correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of two vectors over items; 0 if one of them is constant."""
    one, two = first - first.mean(), second - second.mean()
    size = math.sqrt(float((one * one).sum() * (two * two).sum()))
    return float((one * two).sum()) / size if size > 1e-12 else 0.0
