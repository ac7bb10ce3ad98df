"""Means of scores between 0 and 1 over several conditions, and their difference from a baseline."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Between, Rate
from falter.stats.mean import ItemMean, item_mean, open_effect

Floats = NDArray[np.float64]


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
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if known.size and not 0.0 <= known.min() <= known.max() <= 1.0:
        raise InvalidValue("values", (known.min(), known.max()), "scores between 0 and 1")
    rate = _rate(values, clusters=clusters)
    interval = None if rate is None else rate.agresti_coull(level)
    return mean if interval is None else replace(mean, interval=interval)


def mean_drop(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ItemMean:
    """`item_mean` of drops, baseline - score, whose interval knows how near the baseline is to 1.

    One baseline for several conditions makes their drops rise and fall together. Given as
    `baseline`, scores between 0 and 1 make the interval hold `Between`'s, and the p-value of the
    interval no smaller than its. Without it, of one condition and of other scores: `item_mean`.
    """
    matrix = np.asarray(drops, dtype=np.float64)
    apart = None
    if baseline is not None and matrix.ndim == 2:
        weight = np.ones(matrix.shape[1]) if weights is None else np.asarray(weights, np.float64)
        apart = _apart(matrix, weight, baseline, clusters)
    return item_mean(drops, weights=weights, clusters=clusters, level=level, apart=apart)


def between_rates(
    first: ArrayLike, second: ArrayLike, *, clusters: Sequence[Hashable] | None = None
) -> Between | None:
    """The mean of one table of scores between 0 and 1 less that of another of the same items."""
    tables = [_table(first), _table(second)]
    one, two = (_rate(table, clusters=clusters) for table in tables)
    if one is None or two is None or not all(map(_in_unit, tables)):
        return None
    correlation = _correlation(*map(_by_item, tables))
    return Between(value=one.value - two.value, first=one, second=two, correlation=correlation)


def between_drops(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    clusters: Sequence[Hashable] | None = None,
) -> Between | None:
    """One mean drop less another of the same items; each is baseline and items x conditions."""
    sides, drops = [], []
    for baseline, scores in (first, second):
        clean, table = np.asarray(baseline, dtype=np.float64), _table(scores)
        drop = clean[:, None] - table
        apart = _apart(drop, np.ones(table.shape[1]), clean, clusters)
        if apart is None:
            return None
        sides.append(apart)
        drops.append(_by_item(drop))
    one, two = sides
    correlation = _correlation(drops[0], drops[1])
    return Between(value=one.value - two.value, first=one, second=two, correlation=correlation)


def _table(values: ArrayLike) -> Floats:
    matrix = np.asarray(values, dtype=np.float64)
    return matrix[:, None] if matrix.ndim == 1 else matrix


def _in_unit(table: Floats) -> bool:
    known = table[~np.isnan(table)]
    return bool(known.size) and 0.0 <= float(known.min()) <= float(known.max()) <= 1.0


def _by_item(table: Floats) -> Floats:
    """An item's mean over its conditions, 0 for one without any."""
    there = ~np.isnan(table)
    total = np.where(there, table, 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(there.sum(axis=1), 1))


def _rate(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> Rate | None:
    """The mean of scores between 0 and 1 as a proportion, see `mean_rate`; None for too few."""
    mean = item_mean(values, weights=weights, clusters=clusters)
    alone = mean if clusters is None else item_mean(values, weights=weights)
    if alone.value is None or alone.standard_error is None or not alone.freedom:
        return None
    matrix = _table(values)
    present = ~np.isnan(matrix)
    items = float(present.any(axis=1).sum())
    binary = bool(np.isin(matrix[present], (0.0, 1.0)).all())
    same = binary and (alone.standard_error == 0.0 or int(present.any(axis=0).sum()) == 1)
    rate = Rate(
        value=alone.value,
        error=alone.standard_error,
        freedom=alone.freedom,
        most=float(present.sum()) if binary else None,
        fixed=items if same else None,
    )
    if clusters is None or mean.standard_error is None or mean.freedom is None:
        return rate
    error = mean.standard_error
    if binary:
        error = max(error, alone.standard_error * _open_effect(alone, present, clusters) ** 0.5)
    return replace(rate, by_cluster=error, cluster_freedom=mean.freedom)


def _open_effect(mean: ItemMean, present: NDArray[np.bool_], clusters: Sequence[Hashable]) -> float:
    """The design effect that few items which differ from the others cannot show to be absent."""
    sizes = np.bincount(cluster_codes(clusters, len(present))[present.any(axis=1)])
    size = float(np.square(sizes).sum()) / mean.items
    right = (mean.value or 0.0) * mean.items
    return open_effect(min(right, mean.items - right), size)


def _apart(
    drops: Floats, weight: Floats, baseline: ArrayLike, clusters: Sequence[Hashable] | None
) -> Between | None:
    """Both means apart; None for one condition, which is a matter of pairs, or other scores."""
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
    share = np.where(present[rows], weight, 0.0)
    means = np.nansum(scores[rows] * share, axis=1) / share.sum(axis=1)
    correlation = _correlation(first[rows], means)
    value = before.value - after.value
    return Between(value=value, first=before, second=after, correlation=correlation)


def _correlation(first: Floats, second: Floats) -> float:
    """Of two numbers an item; 0 where one of them is the same for all."""
    one, two = first - first.mean(), second - second.mean()
    size = math.sqrt(float((one * one).sum() * (two * two).sum()))
    return float((one * two).sum()) / size if size > 1e-12 else 0.0
