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
from falter.stats import Interval

__all__ = ["PositionDistribution", "PositionShift", "position_shift"]

Floats = NDArray[np.float64]
Sources = Sequence[Sequence[int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDistribution:
    """The histogram of ⌊bins · j/n⌋: which part of its article a summary sentence comes from.

    `shares` of the mapped sentences are None where none is mapped; `excluded` counts the sentences
    that map to nothing.
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

    `before[a]` and `after[a]` have for every summary sentence of article a the number j of the
    article sentence it maps to, from 0, or None where it maps to none; `lengths[a]` is the number n
    of sentences of the article.

        tv = ½ Σ_b |p_b − q_b|        wasserstein = Σ_b |P_b − Q_b|/bins
        jsd = ½ Σ_b p_b log₂(p_b/m_b) + ½ Σ_b q_b log₂(q_b/m_b),   m = (p + q)/2

    for the shares p and q of the bins before and after, cumulative P and Q; wasserstein is in
    article lengths. Finite samples always differ: the `p_value` is the share of random swaps of
    before and after within articles that are as far apart; there is no interval. `changed` and
    `jaccard` are over articles with a mapped sentence in both, Agresti and Coull's and a t
    interval.
    """
    check_replications(replications)
    if not len(before) == len(after) == len(lengths):
        raise InvalidValue(
            "before, after, lengths", (len(before), len(after), len(lengths)), "the same articles"
        )
    old, old_unmapped = _histograms(before, lengths, bins)
    new, new_unmapped = _histograms(after, lengths, bins)
    basis = Basis(
        estimand="distance of two histograms of source positions, these articles",
        items=len(lengths),
        conditions=2,
        level=level,
        seed=seed,
    )
    distances = _distances(old.sum(axis=0), new.sum(axis=0))
    # Swapping within an article adds or takes off half of its difference.
    half_difference = signed_sums(old - new, replications, seed) / 2.0
    middle = (old + new).sum(axis=0) / 2.0
    null = _distances(middle + half_difference, middle - half_difference)
    method = f"p: {replications} swaps of before and after within articles, PCG64"
    none = Interval(low=None, high=None, level=level, method=method)
    estimates = {}
    for place, name in enumerate(("tv", "jsd", "wasserstein")):
        value, swapped = distances[place], null[place]
        measure = f"position_shift.{name}"
        if np.isnan(value):
            why = "no sentence before, or none after, is mapped"
            estimates[name] = basis.undefined(measure, "insufficient_data", why)
            continue
        swapped = swapped[~np.isnan(swapped)]
        p_value = float((1 + (swapped >= value - 1e-12).sum()) / (1 + len(swapped)))
        estimates[name] = basis.estimate(measure, float(value), none, p_value=p_value)
    changed, jaccard = _by_article(before, after, level)
    return PositionShift(
        before=_distribution(old, old_unmapped),
        after=_distribution(new, new_unmapped),
        **estimates,
        changed=changed,
        jaccard=jaccard,
    )


def _distances(old: Floats, new: Floats) -> Floats:
    """Three x (...): tv, jsd and wasserstein of (..., bins) counts; NaN where one is empty."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p = old / old.sum(axis=-1, keepdims=True)
        q = new / new.sum(axis=-1, keepdims=True)
        middle = (p + q) / 2.0
        entropy = sum(
            np.where(x > 0.0, x * np.log2(np.where(x > 0.0, x / middle, 1.0)), 0.0).sum(axis=-1)
            for x in (p, q)
        )
    tv = np.abs(p - q).sum(axis=-1) / 2.0
    jsd = np.where(np.isnan(p[..., 0] + q[..., 0]), np.nan, np.maximum(entropy, 0.0) / 2.0)
    wasserstein = np.abs(np.cumsum(p - q, axis=-1)).sum(axis=-1) / p.shape[-1]
    return np.stack([tv, jsd, wasserstein])


def _by_article(before: Sources, after: Sources, level: float) -> tuple[Estimate, Estimate]:
    """The share of articles with other source sentences, and the mean overlap |A ∩ B|/|A ∪ B|."""
    changed = np.full(len(before), np.nan)
    overlap = np.full(len(before), np.nan)
    for place, sides in enumerate(zip(before, after, strict=True)):
        old, new = ({j for j in side if j is not None} for side in sides)
        if old and new:
            changed[place] = old != new
            overlap[place] = len(old & new) / len(old | new)
    basis = Basis(
        estimand="articles like these",
        items=int((~np.isnan(overlap)).sum()),
        conditions=2,
        excluded=int(np.isnan(overlap).sum()),
        level=level,
    )
    named = (("position_shift.changed", changed), ("position_shift.jaccard", overlap))
    first, second = (_share(basis, name, values) for name, values in named)
    return first, second


def _share(basis: Basis, name: str, values: Floats) -> Estimate:
    """The mean of numbers from 0 to 1, its interval held to that."""
    present = values[~np.isnan(values)]
    if not len(present):
        why = "no article has mapped sentences before and after"
        return basis.undefined(name, "insufficient_data", why)
    of = accuracy(values, level=basis.level)
    low, high = (
        None if bound is None else min(max(bound, 0.0), 1.0) for bound in (of.low, of.high)
    )
    interval = Interval(low=low, high=high, level=basis.level, method=of.method)
    return basis.estimate(name, float(present.mean()), interval)


def _histograms(sources: Sources, lengths: Sequence[int], bins: int) -> tuple[Floats, int]:
    """Articles x bins of counts, and how many sentences map to nothing."""
    if bins < 1 or len(sources) != len(lengths):
        expected = "as many articles as lengths, and one bin or more"
        raise InvalidValue("sources, lengths, bins", (len(sources), len(lengths), bins), expected)
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


def _distribution(table: Floats, unmapped: int) -> PositionDistribution:
    counts = table.sum(axis=0)
    total = float(counts.sum())
    return PositionDistribution(
        shares=tuple(float(c) for c in counts / total) if total else None,
        counts=tuple(int(c) for c in counts),
        sentences=int(total),
        excluded=unmapped,
        articles=len(table),
    )
