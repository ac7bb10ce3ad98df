"""From where in the article a summary takes its sentences, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy
from falter.measures._estimates import Basis
from falter.measures._resample import check_replications, signed_sums
from falter.stats import Interval, item_mean, no_interval

__all__ = ["PositionDistribution", "PositionShift", "position_distribution", "position_shift"]

Floats = NDArray[np.float64]
Sources = Sequence[Sequence[int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDistribution:
    """The share of mapped sentences in every bin; None where not one sentence is mapped.

    `excluded` counts the sentences that map to nothing.
    """

    shares: tuple[float, ...] | None
    counts: tuple[int, ...]
    sentences: int
    excluded: int
    articles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionShift:
    """Two distributions, three distances, and what changed article by article.

    `tv`, `jsd` (in bits) and `wasserstein` (in article lengths) compare the histograms, which can
    be the same while every article changed: `changed` is the share of articles with another set of
    source sentences, `jaccard` the mean overlap of the two sets.
    """

    before: PositionDistribution
    after: PositionDistribution
    tv: Estimate
    jsd: Estimate
    wasserstein: Estimate
    changed: Estimate
    jaccard: Estimate


def position_distribution(
    sources: Sources, lengths: Sequence[int], *, bins: int = 10
) -> PositionDistribution:
    """The histogram of floor(bins j/n): which part of its article a summary sentence comes from.

    `sources[a]` has for every summary sentence of article a the number j of the article sentence it
    maps to, from 0, or None where it maps to none; `lengths[a]` is the number n of sentences.
    """
    table, lost = _histograms(sources, lengths, bins)
    return _distribution(table, lost)


def position_shift(
    before: Sources,
    after: Sources,
    lengths: Sequence[int],
    *,
    bins: int = 10,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> PositionShift:
    """How far the source positions moved from one set of summaries to another of the same articles.

    tv = half the summed |difference|; jsd = Jensen-Shannon divergence, base 2; wasserstein = the
    area between the cumulative histograms, in article lengths. Finite samples always differ: the
    `p_value` is the share of random swaps of before and after within articles that are as far
    apart; there is no interval. `changed` and `jaccard` are over articles
    with a mapped sentence in both, Agresti and Coull's and a t interval.
    """
    check_replications(replications)
    if not len(before) == len(after) == len(lengths):
        raise InvalidValue(
            "before, after, lengths", (len(before), len(after), len(lengths)), "the same articles"
        )
    first, lost_first = _histograms(before, lengths, bins)
    second, lost_second = _histograms(after, lengths, bins)
    basis = Basis(
        estimand="distance of two histograms of source positions, these articles",
        items=len(lengths),
        conditions=2,
        level=level,
        seed=seed,
    )
    distances = _distances(first.sum(axis=0), second.sum(axis=0))
    drawn = signed_sums(first - second, replications, seed) / 2.0
    middle = (first + second).sum(axis=0) / 2.0
    null = _distances(middle + drawn, middle - drawn)
    tv, jsd, wasserstein = (
        _distance(basis, name, distances[place], null[place])
        for place, name in enumerate(("tv", "jsd", "wasserstein"))
    )
    changed, jaccard = _by_article(before, after, level)
    return PositionShift(
        before=_distribution(first, lost_first),
        after=_distribution(second, lost_second),
        tv=tv,
        jsd=jsd,
        wasserstein=wasserstein,
        changed=changed,
        jaccard=jaccard,
    )


def _distances(first: Floats, second: Floats) -> Floats:
    """Three x (...): tv, jsd and wasserstein of (..., bins) counts; NaN where one is empty."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p = first / first.sum(axis=-1, keepdims=True)
        q = second / second.sum(axis=-1, keepdims=True)
        middle = (p + q) / 2.0
        entropy = sum(
            np.where(x > 0.0, x * np.log2(np.where(x > 0.0, x / middle, 1.0)), 0.0).sum(axis=-1)
            for x in (p, q)
        )
    gap = np.cumsum(p - q, axis=-1)
    jsd = np.where(np.isnan(p[..., 0] + q[..., 0]), np.nan, np.maximum(entropy, 0.0) / 2.0)
    wasserstein = np.abs(gap).sum(axis=-1) / p.shape[-1]
    return np.stack([np.abs(p - q).sum(axis=-1) / 2.0, jsd, wasserstein])


def _distance(basis: Basis, name: str, value: float, null: Floats) -> Estimate:
    if np.isnan(value):
        why = "no sentence of one set is mapped"
        return basis.undefined(f"position_shift.{name}", "insufficient_data", why)
    kept = null[~np.isnan(null)]
    method = f"p: {len(null)} swaps of before and after within articles, PCG64"
    p_value = float((1 + (kept >= value - 1e-12).sum()) / (1 + len(kept)))
    none = Interval(low=None, high=None, level=basis.level, method=method)
    return basis.estimate(f"position_shift.{name}", float(value), none, p_value=p_value)


def _by_article(before: Sources, after: Sources, level: float) -> tuple[Estimate, Estimate]:
    changed = np.full(len(before), np.nan)
    overlap = np.full(len(before), np.nan)
    for place, (one, two) in enumerate(zip(before, after, strict=True)):
        first, second = ({j for j in side if j is not None} for side in (one, two))
        if first and second:
            changed[place] = first != second
            overlap[place] = len(first & second) / len(first | second)
    basis = Basis(
        estimand="super-population of articles",
        items=int((~np.isnan(overlap)).sum()),
        conditions=2,
        excluded=int(np.isnan(overlap).sum()),
        level=level,
    )
    share = accuracy(changed, level=level)
    if share.value is None:
        why = "no article has sources in both"
        return (
            basis.undefined("position_shift.changed", "insufficient_data", why),
            basis.undefined("position_shift.jaccard", "insufficient_data", why),
        )
    interval = Interval(low=share.low, high=share.high, level=level, method=share.method)
    mean = item_mean(overlap, level=level)
    return (
        basis.estimate("position_shift.changed", share.value, interval),
        basis.estimate(
            "position_shift.jaccard",
            float(overlap[~np.isnan(overlap)].mean()),
            no_interval(level) if mean.value is None else mean.interval,
        ),
    )


def _histograms(sources: Sources, lengths: Sequence[int], bins: int) -> tuple[Floats, int]:
    """Articles x bins of counts, and how many sentences map to nothing."""
    if bins < 1 or len(sources) != len(lengths):
        raise InvalidValue(
            "sources, lengths, bins", (len(sources), len(lengths), bins), "a length an article"
        )
    article = np.array([a for a, row in enumerate(sources) for _ in row], dtype=np.intp)
    place = np.array([-1 if j is None else j for row in sources for j in row], dtype=np.intp)
    mapped = place >= 0
    article, place = article[mapped], place[mapped]
    size = np.asarray(lengths, dtype=np.intp)[article] if len(article) else article
    beyond = place >= size
    if beyond.any():
        a = int(article[beyond][0])
        raise InvalidValue(
            "sources", int(place[beyond][0]), f"numbers below {lengths[a]} in article {a}"
        )
    bin_of = bins * place // np.maximum(size, 1)
    counts = np.bincount(article * bins + bin_of, minlength=len(lengths) * bins)
    return counts.reshape(len(lengths), bins).astype(float), int((~mapped).sum())


def _distribution(table: Floats, lost: int) -> PositionDistribution:
    counts = table.sum(axis=0)
    total = float(counts.sum())
    return PositionDistribution(
        shares=tuple(float(c) for c in counts / total) if total else None,
        counts=tuple(int(c) for c in counts),
        sentences=int(total),
        excluded=lost,
        articles=len(table),
    )
