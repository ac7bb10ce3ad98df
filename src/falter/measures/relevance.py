"""Effects of rewording on summaries: source positions, scores, ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from falter.measures.drops import accuracy
from falter.measures.estimates import Basis, Clusters, Floats, vectors
from falter.measures.resample import check_replications, signed_sums, unit_sums
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.agreement import Agreement
from falter.stats.clusters import cluster_codes, too_few_clusters
from falter.stats.intervals import Interval, no_interval, student_quantile
from falter.stats.mean import item_mean
from falter.stats.paired import sign_flip_test
from falter.stats.resampling import jackknife_error

Sources = Sequence[Sequence[int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDistribution:
    """The histogram of ⌊bins · j/n⌋: the part of its article that a summary sentence comes from.

    `shares` of the mapped sentences are None if no sentence is mapped. `sentences` counts the
    mapped sentences, and `excluded` the sentences that map to no article sentence.
    """

    shares: tuple[float, ...] | None
    counts: tuple[int, ...]
    sentences: int
    excluded: int
    articles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionShift:
    """Two distributions, three distances between them, and the changes article by article.

    `tv`, `jsd` (in bits) and `wasserstein` (in article lengths) compare the histograms. These can
    be equal although every article changed. `changed` is the share of articles with a different set
    of source sentences, `jaccard` the mean overlap of the two sets.
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
    """The shift of source positions from one set of summaries to another of the same articles.

        tv = ½ Σ_b |p_b − q_b|        wasserstein = Σ_b |P_b − Q_b|/bins
        jsd = ½ Σ_b p_b log₂(p_b/m_b) + ½ Σ_b q_b log₂(q_b/m_b),   m = (p + q)/2

    for the shares p and q of the bins before and after, with cumulative shares P and Q.

    Parameters
    ----------
    before, after : for each article a list with one entry per summary sentence
        The index j, from 0, of the article sentence to which it maps; None if it maps to none.
    lengths : the number n of sentences of each article
    bins : the number of bins of the histograms

    Returns
    -------
    PositionShift
        Distances have no interval, because finite samples always differ. Their `p_value` is the
        share of random swaps of before and after within articles with at least this distance.
        `changed` and `jaccard` are over articles with a mapped sentence in both. Their two-sided
        intervals are Agresti and Coull's, for jaccard with the effective number of articles.
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
    # Swapping within an article adds or subtracts half of its difference. So a draw needs one sign
    # per article and no second histogram.
    half_difference = signed_sums(old - new, replications, seed) / 2.0
    middle = (old + new).sum(axis=0) / 2.0
    null = _distances(middle + half_difference, middle - half_difference)
    method = f"none: a distance; p: {replications} swaps of both within articles, PCG64"
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
        # The observed labels are one of the arrangements, so that p is never 0 (Phipson and Smyth
        # 2010).
        p_value = float((1 + (swapped >= value - 1e-12).sum()) / (1 + len(swapped)))
        estimates[name] = basis.estimate(measure, float(value), none, p_value=p_value)
    changed, jaccard = _article_changes(before, after, level)
    return PositionShift(
        before=_distribution(old, old_unmapped),
        after=_distribution(new, new_unmapped),
        **estimates,
        changed=changed,
        jaccard=jaccard,
    )


def _distances(old: Floats, new: Floats) -> Floats:
    """Return 3 x (...): tv, jsd and wasserstein of (..., bins) counts; NaN if a side is empty."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p = old / old.sum(axis=-1, keepdims=True)
        q = new / new.sum(axis=-1, keepdims=True)
        middle = (p + q) / 2.0
        entropy = sum(
            np.where(x > 0.0, x * np.log2(np.where(x > 0.0, x / middle, 1.0)), 0.0).sum(axis=-1)
            for x in (p, q)
        )
    tv = np.abs(p - q).sum(axis=-1) / 2.0
    # Rounding can make the entropy of equal shares negative. Without a sentence it is NaN, not 0.
    jsd = np.where(np.isnan(p[..., 0] + q[..., 0]), np.nan, np.maximum(entropy, 0.0) / 2.0)
    # In one dimension the distance is the area between the two cumulative curves.
    wasserstein = np.abs(np.cumsum(p - q, axis=-1)).sum(axis=-1) / p.shape[-1]
    return np.stack([tv, jsd, wasserstein])


def _article_changes(before: Sources, after: Sources, level: float) -> tuple[Estimate, Estimate]:
    """Return the share of articles with other source sentences, and the mean overlap.

    The overlap of the sets A and B is |A ∩ B|/|A ∪ B|.
    """
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
    return _share_estimate(basis, "changed", changed), _share_estimate(basis, "jaccard", overlap)


def _share_estimate(basis: Basis, name: str, values: Floats) -> Estimate:
    """Return the mean of numbers from 0 to 1, with its interval limited to this range."""
    measure = f"position_shift.{name}"
    if not basis.items:
        why = "no article has mapped sentences before and after"
        return basis.undefined(measure, "insufficient_data", why)
    mean = accuracy(values, level=basis.level)
    value = float(values[~np.isnan(values)].mean())
    interval = Interval(low=mean.low, high=mean.high, level=basis.level, method=mean.method)
    return basis.estimate(measure, value, interval.clipped(0.0, 1.0))


def _histograms(sources: Sources, lengths: Sequence[int], bins: int) -> tuple[Floats, int]:
    """Return articles x bins of counts, and the number of sentences that map to no sentence."""
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
    # Sentence j of n lies at j/n of the article. Integer division avoids rounding errors.
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


# Scores before and after, article by article.


MIN_DIFFERING = 6
"""Fewest differing articles for a p-value: with 5 of them the smallest p is 2/2^5."""
MIN_FOR_INTERVAL = 8
"""Fewest changed articles for an interval: with 8, simulated coverage was 92 % or more."""
SIGN_FLIPS = 2000


def score_change(
    old: ArrayLike, new: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> Estimate:
    """Return (mean new − mean old)/mean old over the articles that have both.

    `old` and `new` are (articles,), NaN where missing. The result is a fraction, below 0 for a
    loss. The two-sided interval is log(mean new/mean old) ± t·se of a jackknife over articles (or
    clusters), exponentiated, so it never passes −100 %. Fewer than 8 articles that changed, or a
    mean of 0 or less: no interval. Fewer than 6 clusters: too_few_clusters. Old mean 0:
    undefined_zero_denominator. Fewer than two articles: insufficient_data.
    """
    table = np.column_stack(vectors("old, new", old, new))
    whole = np.logical_not(np.isnan(table).any(axis=1))
    basis = Basis(
        estimand="relative change of the mean score, articles like these",
        items=int(whole.sum()),
        conditions=2,
        excluded=int((~whole).sum()),
        level=level,
    )
    if basis.items < 2:
        return basis.undefined("score_change", "insufficient_data", "fewer than two articles")
    units = unit_sums(table[whole], cluster_codes(clusters, len(table))[whole])
    if clusters is not None:
        basis = replace(basis, clusters=len(units))
    sums = units.sum(axis=0)
    if abs(sums[0]) <= 1e-12 * np.abs(units[:, 0]).sum():
        return basis.undefined("score_change", "undefined_zero_denominator", "the old mean is 0")
    value = float(sums[1] / sums[0]) - 1.0
    left_out = sums - units
    changed = int((table[whole, 0] != table[whole, 1]).sum())
    why = too_few_clusters(basis.clusters)
    if changed < MIN_FOR_INTERVAL:
        why = f"fewer than {MIN_FOR_INTERVAL} articles changed"
    elif not (sums > 0.0).all() or not (left_out > 0.0).all():
        why = "a mean of 0 or less"
    if why:
        return basis.estimate("score_change", value, no_interval(level, why))
    # A ratio is skewed, its logarithm far less; the ends also stay above −100 %.
    error = jackknife_error(np.log(left_out[:, 1] / left_out[:, 0]))
    half = student_quantile(level, len(units) - 1) * error
    low, high = ((1.0 + value) * math.exp(end) - 1.0 for end in (-half, half))
    interval = Interval(low=low, high=high, level=level, method="jackknife t of the log ratio")
    return basis.estimate("score_change", value, interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDifference:
    """The mean of first − second, with the p-value of sign flips.

    `differ` counts the articles whose difference is not 0.
    """

    difference: Estimate
    differ: int


def arm_difference(
    first: ArrayLike, second: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> ArmDifference:
    """Return how far the mean score of one arm is from that of another, over articles with both.

    `first` and `second` are (articles,) with scores from 0 to 1, NaN where missing. The two-sided
    p-value is that of sign flips of the differences, article by article (clusters whole). Up to 16
    differing articles all flips are listed, else 2,000 are drawn. The two-sided interval is
    `item_mean`'s, limited to −1 … 1. Fewer than 6 articles that differ: neither interval nor
    p-value. Fewer than 8: no interval.
    """
    a, b = vectors("first, second", first, second)
    test = sign_flip_test(a, b, clusters=clusters, replications=SIGN_FLIPS)
    differ = int((np.abs(a - b) > 1e-12).sum())
    mean = item_mean(a - b, clusters=clusters, level=level)
    basis = Basis(estimand="difference of mean scores, articles like these", items=0, level=level)
    basis = replace(basis.counting(mean), conditions=2)
    interval = mean.interval.clipped(-1.0, 1.0)
    if differ < MIN_FOR_INTERVAL:
        interval = no_interval(level, f"fewer than {MIN_FOR_INTERVAL} articles differ")
    p_value = test.p_value if differ >= MIN_DIFFERING else None
    return ArmDifference(
        difference=basis.of_mean("arm_difference", mean, interval, p_value=p_value), differ=differ
    )


# A rating as the mean of a judge's probabilities of the scores.


@dataclass(frozen=True, slots=True, kw_only=True)
class GevalScore:
    """The weighted score, or None with the reason.

    `total` is the sum of the percentages. `renormalised` is True if it was not 100.
    """

    value: float | None = None
    status: EstimateStatus
    total: float | None = None
    renormalised: bool = False
    reason: str = ""


def geval_score(percentages: Sequence[float] | None) -> GevalScore:
    """Σ s p_s / Σ p_s over the scores s = 1 to 5, from five percentages p.

    The percentage of a score of 1 comes first. A sum that differs from 100 by more than 0.5 is
    renormalised and flagged. The value is None for anything but five finite numbers, for a number
    below 0, and for a sum of 0. Source: Liu et al. (2023), G-Eval.
    """
    p = [] if percentages is None else [float(percentage) for percentage in percentages]
    reason = ""
    if len(p) != 5:
        reason = f"{len(p)} numbers instead of five"
    elif not all(math.isfinite(percentage) for percentage in p):
        reason = "a number that is not finite"
    elif min(p) < 0.0:
        reason = "a percentage below 0"
    if reason:
        return GevalScore(status="insufficient_data", reason=reason)
    total = math.fsum(p)
    if total == 0.0:
        reason = "the percentages sum to 0"
        return GevalScore(status="undefined_zero_denominator", total=0.0, reason=reason)
    value = math.fsum(s * p_s for s, p_s in enumerate(p, start=1)) / total
    renormalised = abs(total - 100.0) > 0.5
    return GevalScore(value=value, status="ok", total=total, renormalised=renormalised)


# People's preferences among several summaries, by several criteria.


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanEvaluation:
    """Ratings of several arms by criterion, and the best arms.

    `means[arm][criterion]` are the mean ratings. `sds` are their standard deviations (ddof 1), None
    for fewer than two ratings. `tally` counts for each arm the items of which it is the best, also
    if it shares this place. `agreement` is Krippendorff's alpha of several raters by criterion,
    where it was computed.
    """

    means: Mapping[str, Mapping[str, Estimate]]
    sds: Mapping[str, Mapping[str, float | None]]
    best: tuple[str, ...]
    tally: Mapping[str, int] = field(default_factory=dict)
    agreement: Mapping[str, Agreement] = field(default_factory=dict)


def human_evaluation(
    ratings: Mapping[str, Mapping[str, ArrayLike]],
    *,
    scales: Mapping[str, tuple[float, float]] | None = None,
    level: float = 0.95,
) -> HumanEvaluation:
    """Mean and standard deviation of every arm on every criterion, and which arm is best.

    Parameters
    ----------
    ratings : `ratings[arm][criterion]` is (items,)
        NaN where nobody rated the item. Average several raters of one item before.
    scales : for each criterion the lowest and the highest rating
        The intervals of these criteria stay on their scale. All other criteria have the interval of
        `item_mean`.
    level : two-sided confidence level

    Returns
    -------
    HumanEvaluation
        The best arm wins most criteria. Among arms with equally many wins, the highest total
        decides. A criterion that several arms lead is won by each of them. Arms that still tie are
        all named. Without any rating there is no best arm.
    """
    means: dict[str, dict[str, Estimate]] = {}
    sds: dict[str, dict[str, float | None]] = {}
    for arm, criteria in ratings.items():
        means[arm], sds[arm] = {}, {}
        for name, values in criteria.items():
            (vector,) = vectors(f"ratings of '{arm}'", values)
            rated = vector[~np.isnan(vector)]
            basis = Basis(
                estimand="mean rating, items like these",
                items=len(rated),
                excluded=len(vector) - len(rated),
                level=level,
            )
            sds[arm][name] = float(rated.std(ddof=1)) if len(rated) > 1 else None
            if not len(rated):
                why = "no item was rated"
                means[arm][name] = basis.undefined("human_evaluation", "insufficient_data", why)
                continue
            interval = item_mean(vector, level=level).interval
            if scales and name in scales:
                mean = accuracy(vector, level=level, scale=scales[name])
                interval = Interval(low=mean.low, high=mean.high, level=level, method=mean.method)
            means[arm][name] = basis.estimate("human_evaluation", float(rated.mean()), interval)
    table = {
        arm: {name: e.value for name, e in row.items() if e.value is not None}
        for arm, row in means.items()
    }
    return HumanEvaluation(means=means, sds=sds, best=best_arms(table), tally=best_tally(ratings))


def best_tally(ratings: Mapping[str, Mapping[str, ArrayLike]]) -> dict[str, int]:
    """Return for each arm the number of items of which it is the best, by `best_arms` per item."""
    tally = dict.fromkeys(ratings, 0)
    columns = {arm: {c: np.asarray(v, float) for c, v in of.items()} for arm, of in ratings.items()}
    items = max((len(v) for of in columns.values() for v in of.values()), default=0)
    for item in range(items):
        rated = {
            arm: {c: float(v[item]) for c, v in of.items() if item < len(v) and v[item] == v[item]}
            for arm, of in columns.items()
        }
        for arm in best_arms({arm: of for arm, of in rated.items() if of}):
            tally[arm] += 1
    return tally


def best_arms(table: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """Return the arms that win most criteria and, among these, have the highest total.

    The ratings are `table[arm][criterion]`; an arm may lack a criterion.
    """
    names = dict.fromkeys(name for row in table.values() for name in row)
    wins = dict.fromkeys(table, 0)
    for name in names:
        leading = max(row[name] for row in table.values() if name in row)
        for arm, row in table.items():
            wins[arm] += name in row and row[name] >= leading - 1e-12
    if not names:
        return ()
    most = max(wins.values(), default=0)
    totals = {arm: sum(table[arm].values()) for arm, count in wins.items() if count == most}
    highest = max(totals.values(), default=0.0)
    return tuple(arm for arm, total in totals.items() if total >= highest - 1e-12)


# A rate as people would judge it, from a judge's verdicts and a sample of human verdicts.


def corrected_rate(judged: ArrayLike, human: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The mean of what people would say, when a judge saw all items and people a random few.

        ȳ + w (f̄ of the others − f̄ of the labelled)        w = Cov(y, f)/((1 + n/N) Var f)
        u = (y − ȳ − w (f − f̄))/n for the labelled, w (f − f̄)/N for the others
        se² = n/(n − 2) Σ u²

    The n items that people judged must be a random sample; N is the number of other items. The
    weight w minimises the variance.

    Parameters
    ----------
    judged : array_like of shape (items,)
        The judge's numbers f. An item with a NaN is excluded.
    human : array_like of shape (items,)
        The people's numbers y, NaN where nobody judged the item.

    Returns
    -------
    Estimate
        A two-sided t interval with n − 2 degrees of freedom (at least 1), because the mean and the
        weight are estimated. Fewer than two labelled items: insufficient_data.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), power-tuned prediction-powered inference.
    """
    from scipy.special import stdtrit

    f, y = vectors("judged, human", judged, human)
    judged_at_all = ~np.isnan(f)
    f, y = f[judged_at_all], y[judged_at_all]
    labelled = ~np.isnan(y)
    basis = Basis(
        estimand="mean of what people would say, items like these",
        items=len(f),
        excluded=int((~judged_at_all).sum()),
        level=level,
    )
    if labelled.sum() < 2:
        why = "fewer than two items that people judged"
        return basis.undefined("corrected_rate", "insufficient_data", why)
    y = y[labelled]
    f_labelled, f_others = f[labelled], f[~labelled]
    n, others = len(f_labelled), len(f_others)
    variance = float(np.var(f, ddof=1))
    weight = 0.0
    if others and variance > 1e-14:
        weight = float(np.cov(y, f_labelled)[0, 1]) / variance / (1.0 + n / others)
    correction = weight * (f_others.mean() - f_labelled.mean()) if others else 0.0
    value = float(y.mean() + correction)
    influence = np.zeros(len(f))
    influence[labelled] = (y - y.mean() - weight * (f_labelled - f_labelled.mean())) / n
    if others:
        influence[~labelled] = weight * (f_others - f_others.mean()) / others
    freedom = max(1, n - 2)
    error = float(np.sqrt(n / freedom * np.square(influence).sum()))
    if error <= 1e-14 * max(1.0, abs(float(f.mean()))):
        return basis.estimate("corrected_rate", value, no_interval(basis.level))
    half = float(stdtrit(freedom, 0.5 + basis.level / 2.0)) * error
    method = f"t, tuned prediction-powered, {n} labelled, weight {weight:.2f}"
    interval = Interval(low=value - half, high=value + half, level=basis.level, method=method)
    return basis.estimate("corrected_rate", value, interval)
