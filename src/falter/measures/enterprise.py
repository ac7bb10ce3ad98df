"""Content delta, quality delta and robustness score of the enterprise protocol; table summaries."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from falter.measures.drops import accuracy
from falter.measures.estimates import Basis, Bools, Clusters, Floats, vectors
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import no_interval
from falter.stats.resampling import jackknife

# The rating of two responses that mean the same.
SAME_MEANING_RATING = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BothScorings:
    """A share in two scorings.

    `strict` counts unreadable ratings as changed, `valid` leaves them out.
    """

    strict: Estimate
    valid: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityDelta:
    """The share of content-changed pairs whose quality changed, by direction.

    worse, better, mixed (one metric rose, another fell) and unchanged are shares of the readable
    pairs and add up to 1. worse, better and mixed add up to `valid`.
    """

    strict: Estimate
    valid: Estimate
    worse: Estimate
    better: Estimate
    mixed: Estimate
    unchanged: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedPairs:
    """Pairs of responses with a judge's ratings, one row per pair.

    `similarity` is 1, 2 or 3, NaN for an unreadable rating. `original` and `perturbed` are pairs x
    metrics, NaN where a metric is missing; they are needed only below a similarity of 3. `missing`
    marks pairs that were never requested, which no scoring counts. `items` names the item of each
    pair. By default pair k of every category belongs to item k.
    """

    similarity: ArrayLike
    original: ArrayLike
    perturbed: ArrayLike
    missing: ArrayLike | None = None
    items: Clusters = None


def content_delta(
    similarity: ArrayLike,
    *,
    missing: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> BothScorings:
    """The share of pairs whose responses mean something else: #{rating < 3}/N.

    `similarity` is (pairs,) with ratings 1, 2 or 3. An unreadable rating (NaN) counts as changed in
    `strict`. It is left out of `valid`, where `excluded` counts it. Pairs marked `missing` are in
    neither. Agresti and Coull's two-sided interval, with `clusters` for the effective number of
    pairs (CR2). No pair: insufficient_data.
    """
    ratings, sent = _ratings(similarity, missing)
    unread = np.isnan(ratings)
    changed = np.where(unread, np.nan, ratings < SAME_MEANING_RATING)
    estimand = "share of pairs whose content changed, items like these"
    return BothScorings(
        strict=_share("strict", np.where(unread, 1.0, changed), sent, estimand, clusters, level),
        valid=_share("valid", changed, sent, estimand, clusters, level),
    )


def quality_delta(
    similarity: ArrayLike,
    original: ArrayLike,
    perturbed: ArrayLike,
    *,
    missing: ArrayLike | None = None,
    tolerance: float = 1e-9,
    clusters: Clusters = None,
    level: float = 0.95,
) -> QualityDelta:
    """Among pairs whose content changed, the share of which any quality metric changed, up or down.

    Parameters
    ----------
    similarity : array_like of shape (pairs,)
        Ratings 1, 2 or 3, NaN for an unreadable rating. A rating below 3 is changed content.
    original, perturbed : array_like of shape (pairs,) or (pairs, metrics)
        NaN where a metric is missing.
    missing : True for pairs that were never requested
    tolerance : a metric changed if it differs by more than this
    clusters : the cluster of each pair; None for independent pairs

    Returns
    -------
    QualityDelta
        A pair that lacks a metric is changed if another metric changed. If not, it is excluded from
        `valid` and changed in `strict`. `strict` also contains the pairs with an unreadable
        similarity, as changed unless all metrics are known and equal. The two-sided intervals are
        Agresti and Coull's. No pair with changed content: insufficient_data.
    """
    ratings, sent = _ratings(similarity, missing)
    quality, rose, fell = _quality_changes(original, perturbed, len(ratings), tolerance)
    content_changed = sent & (ratings < SAME_MEANING_RATING)
    readable = content_changed & ~np.isnan(quality)

    def share(part: str, values: Floats, rows: Bools, what: str) -> Estimate:
        estimand = f"share of content-changed pairs whose quality {what}, items like these"
        estimate = _share(part, values, rows, estimand, clusters, level)
        return replace(estimate, measure=f"quality_delta.{part}")

    # `strict` counts every unknown as a change, so the score is a bound and not a guess.
    strict = np.where(np.isnan(quality), 1.0, quality)
    strict_rows = sent & (content_changed | np.isnan(ratings))
    return QualityDelta(
        strict=share("strict", strict, strict_rows, "changed"),
        valid=share("valid", quality, content_changed, "changed"),
        worse=share("worse", (fell & ~rose).astype(float), readable, "fell"),
        better=share("better", (rose & ~fell).astype(float), readable, "rose"),
        mixed=share("mixed", (rose & fell).astype(float), readable, "both rose and fell"),
        unchanged=share("unchanged", (~rose & ~fell).astype(float), readable, "did not change"),
    )


def _change_flags(pairs: RatedPairs, tolerance: float) -> tuple[Bools, Floats, Floats]:
    """Return the requested pairs, and 1/0/NaN for changed content and for changed quality."""
    ratings, asked = _ratings(pairs.similarity, pairs.missing)
    quality, _, _ = _quality_changes(pairs.original, pairs.perturbed, len(ratings), tolerance)
    return asked, np.where(np.isnan(ratings), np.nan, ratings < SAME_MEANING_RATING), quality


def _quality_changes(
    original: ArrayLike, perturbed: ArrayLike, pairs: int, tolerance: float
) -> tuple[Floats, Bools, Bools]:
    """Return 1/0/NaN for a change of any metric, True where one rose, True where one fell."""
    before, after = (np.asarray(x, dtype=np.float64) for x in (original, perturbed))
    if before.ndim == 1:
        before, after = before[:, None], after[:, None] if after.ndim == 1 else after
    shapes = (before.shape, after.shape)
    matching = before.shape == after.shape and before.ndim == 2 and len(before) == pairs
    if not matching or not before.shape[1]:
        raise InvalidValue("original, perturbed", shapes, f"{pairs} pairs x metrics, both")
    # Every metric counts separately: a rise of one does not compensate a fall of another.
    change = after - before
    with np.errstate(invalid="ignore"):
        rose = np.asarray((change > tolerance).any(axis=1), dtype=bool)
        fell = np.asarray((change < -tolerance).any(axis=1), dtype=bool)
    changed = (rose | fell).astype(float)
    # If a pair lacks a metric, "no change" is unknown.
    changed[~(rose | fell) & np.isnan(change).any(axis=1)] = np.nan
    return changed, rose, fell


def _ratings(similarity: ArrayLike, missing: ArrayLike | None) -> tuple[Floats, Bools]:
    """Return the ratings, and True for the requested pairs."""
    (ratings,) = vectors("similarity", similarity)
    readable = ratings[~np.isnan(ratings)]
    invalid = readable[~np.isin(readable, (1.0, 2.0, 3.0))]
    if len(invalid):
        raise InvalidValue(
            "similarity", float(invalid[0]), "1, 2 or 3", hint="NaN where a rating is not readable"
        )
    lost = np.zeros(len(ratings), bool) if missing is None else np.asarray(missing, dtype=bool)
    if lost.shape != ratings.shape:
        raise InvalidValue("missing", lost.shape, f"a flag for each of {len(ratings)} pairs")
    return ratings, ~lost


def _share(
    scoring: str, values: Floats, rows: Bools, estimand: str, clusters: Clusters, level: float
) -> Estimate:
    """Return the share of the selected rows whose value is 1."""
    if clusters is not None:
        clusters = [c for c, counts in zip(clusters, rows, strict=True) if counts]
    estimate = accuracy(values[rows], clusters=clusters, level=level)
    return replace(estimate, measure=f"content_delta.{scoring}", estimand=estimand, conditions=2)


# The robustness score: 1 - content delta x quality delta.

Scoring = Literal["strict", "valid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryScore:
    """Content delta, quality delta and robustness of one category."""

    content: BothScorings
    quality: QualityDelta
    overall: BothScorings


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallScores:
    """The robustness of one model in one number, by three formulas.

    `overall_formula` is 1 - dC dQ over all perturbed pairs together. `mean_excl_baseline` is the
    mean of the perturbed categories, and the preferred number. `mean_incl_baseline` also averages
    the noise floor in, as the published table does.
    """

    overall_formula: Estimate
    mean_incl_baseline: Estimate
    mean_excl_baseline: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessScore:
    """The scores of every category, and the overall scores in both scorings."""

    categories: Mapping[str, CategoryScore]
    strict: OverallScores
    valid: OverallScores


def robustness_score(
    categories: Mapping[str, RatedPairs],
    *,
    baseline: str = "baseline",
    tolerance: float = 1e-9,
    level: float = 0.95,
) -> RobustnessScore:
    """Content delta, quality delta and robustness of every category, and of all together.

        robustness = 1 − dC dQ

    If nothing is missing, this is 1 minus the share of pairs whose content and quality both
    changed. It is 1 if no content changed, although dQ is then undefined. It is undefined if
    content changed and no pair's quality is known.

    Parameters
    ----------
    categories : for each category its pairs
    baseline : the category that has the same prompt twice
        It is the noise floor, and no perturbation category can be expected to score higher.
    tolerance : a metric changed if it differs by more than this
    level : two-sided confidence level

    Returns
    -------
    RobustnessScore
        The intervals are jackknife t over items (logit). Pairs of one item are left out together,
        in all categories. `items` of an estimate counts pairs. If items are named, they are the
        clusters of the pairs: fewer than 6 are too_few_clusters. A mean over categories is
        undefined if a category is.
    """
    sums = {name: _Category.from_pairs(pairs, tolerance) for name, pairs in categories.items()}
    scores = {}
    for name, pairs in categories.items():
        scores[name] = CategoryScore(
            content=content_delta(
                pairs.similarity, missing=pairs.missing, clusters=pairs.items, level=level
            ),
            quality=quality_delta(
                pairs.similarity,
                pairs.original,
                pairs.perturbed,
                missing=pairs.missing,
                tolerance=tolerance,
                clusters=pairs.items,
                level=level,
            ),
            overall=BothScorings(
                strict=_robustness_estimate("strict", [sums[name]], "strict", level),
                valid=_robustness_estimate("valid", [sums[name]], "valid", level),
            ),
        )
    everything = list(sums.values())
    perturbed = [category for name, category in sums.items() if name != baseline]

    def overall(kind: Scoring) -> OverallScores:
        formula = _robustness_estimate("overall_formula", perturbed, kind, level, pooled=True)
        with_baseline = _robustness_estimate("mean_incl_baseline", everything, kind, level)
        without = _robustness_estimate("mean_excl_baseline", perturbed, kind, level)
        return OverallScores(
            overall_formula=replace(formula, conditions=len(perturbed)),
            mean_incl_baseline=replace(with_baseline, conditions=len(sums)),
            mean_excl_baseline=replace(without, conditions=len(perturbed)),
        )

    return RobustnessScore(categories=scores, strict=overall("strict"), valid=overall("valid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Category:
    """The sums of a category by item and scoring.

    The four columns count the pairs, the changed pairs, those of them that are decidable, and those
    with changed quality, too. A pair is decidable if its quality is known. `pairs` counts requested
    pairs.
    """

    items: tuple[Hashable, ...]
    sums: Mapping[Scoring, Floats]
    pairs: int
    clustered: bool

    @classmethod
    def from_pairs(cls, pairs: RatedPairs, tolerance: float) -> _Category:
        asked, content, quality = _change_flags(pairs, tolerance)
        count = len(content)
        codes = cluster_codes(pairs.items, count)
        names = range(count) if pairs.items is None else pairs.items
        unread = np.isnan(content)
        changed = np.where(unread, 1.0, content)
        strict = np.column_stack([
            np.ones(count), changed, changed, changed * np.where(np.isnan(quality), 1.0, quality)
        ])  # fmt: skip
        known = np.where(unread, 0.0, content)
        decidable = known * ~np.isnan(quality)
        valid = np.column_stack([
            ~unread, known, decidable, decidable * np.where(np.isnan(quality), 0.0, quality)
        ])  # fmt: skip
        sums: dict[Scoring, Floats] = {}
        items = tuple(dict.fromkeys(names))
        tables: tuple[tuple[Scoring, Floats], ...] = (("strict", strict), ("valid", valid))
        for kind, table in tables:
            sums[kind] = np.zeros((len(items), 4))
            # `add.at`, since an item may have several pairs and plain indexing would keep the last
            # one.
            np.add.at(sums[kind], codes, np.where(asked[:, None], table, 0.0))
        named = pairs.items is not None
        return cls(items=items, sums=sums, pairs=int(asked.sum()), clustered=named)


def _robustness_estimate(
    part: str, categories: Sequence[_Category], kind: Scoring, level: float, *, pooled: bool = False
) -> Estimate:
    """Return the mean robustness of categories, or of all their pairs (`pooled`)."""
    measure = f"robustness_score.{part}"
    pairs = sum(category.pairs for category in categories)
    used = sum(int(category.sums[kind][:, 0].sum()) for category in categories)
    everything = dict.fromkeys(item for category in categories for item in category.items)
    basis = Basis(
        estimand="1 - content delta x quality delta, items like these",
        items=used,
        conditions=2,
        excluded=pairs - used,
        clusters=len(everything) if any(c.clustered for c in categories) else None,
        level=level,
    )
    numbers = {item: number for number, item in enumerate(everything)}
    units = np.zeros((len(numbers), len(categories), 4))
    for place, category in enumerate(categories):
        units[[numbers[item] for item in category.items], place] = category.sums[kind]
    if pooled:
        units = units.sum(axis=1, keepdims=True)
    total = units.sum(axis=0)
    value = float(_robustness(total)) if categories else np.nan
    if np.isnan(value):
        why = "no readable pair, or content changed and no quality is known"
        return basis.undefined(measure, "insufficient_data", why)
    # A product of two shares has no simple variance; leaving out items changes both together.
    left_out = _robustness(total - units)
    interval = no_interval(level)
    if len(left_out) > 2 and not np.isnan(left_out).any():
        interval = jackknife(value, left_out, transform="logit", level=level).clipped(0.0, 1.0)
    return basis.estimate(measure, value, interval)


def _robustness(sums: Floats) -> Floats:
    """Map (..., categories, 4) sums to the mean of 1 − dC dQ over the categories."""
    pairs, changed, decidable, both = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        robustness = 1.0 - changed / pairs * (both / decidable)
    # If nothing changed, dQ is 0/0, but it is multiplied by dC = 0.
    robustness = np.where((changed == 0.0) & (pairs > 0.0), 1.0, robustness)
    return np.asarray(robustness.mean(axis=-1))


# Summaries of tables of scores: over runs, over models, over languages.

Scores = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean and standard deviation (ddof 1) of `count` numbers.

    `sd` is None for fewer than two numbers, `mean` for none.
    """

    mean: float | None
    sd: float | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Mean and standard deviation over runs, for every category and for the mean over categories.

    `flagged` maps the index of an incomplete run to the categories that it lacks. No mean over
    categories counts such a run.
    """

    categories: Mapping[str, Spread]
    mean_incl_baseline: Spread
    mean_excl_baseline: Spread
    flagged: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryDifficulty:
    """One category over models: its mean, its drop from the baseline's mean, and three spreads.

    `mean_run_sd` is the mean of the models' standard deviations over runs. `pooled_run_sd` is the
    root of their mean square, which estimates a common standard deviation. `sd_across_models` is
    the standard deviation of the models' scores.
    """

    mean: float | None
    drop: float | None
    mean_run_sd: float | None
    pooled_run_sd: float | None
    sd_across_models: float | None
    models: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """Unweighted column means, with the worst columns and the range of every row.

    `times_worst` counts the rows in which a column is worst.
    """

    means: Mapping[str, float | None]
    worst: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, float | None]
    times_worst: Mapping[str, int]


def spread(values: Sequence[float | None]) -> Spread:
    """Mean and standard deviation (ddof 1) of the numbers that are not None.

    An infinite number or NaN raises InvalidValue.
    """
    numbers = [v for v in values if v is not None]
    if any(not math.isfinite(v) for v in numbers):
        raise InvalidValue("values", values, "finite numbers, None where there is none")
    count = len(numbers)
    mean = math.fsum(numbers) / count if count else None
    sd = None
    if mean is not None and count > 1:
        sd = math.sqrt(math.fsum((v - mean) ** 2 for v in numbers) / (count - 1))
    return Spread(mean=mean, sd=sd, count=count)


def run_summary(runs: Sequence[Scores], *, baseline: str = "baseline") -> RunSummary:
    """Mean and standard deviation (ddof 1) over runs, each a score for every category.

    The mean over categories is taken within a run, with and without the `baseline` category. A run
    that lacks a category (absent or None) is flagged and left out of these means. It counts only
    for the categories that it has. With one run sd is None.
    """
    names = list(dict.fromkeys(name for run in runs for name in run))
    lacking = {
        number: tuple(name for name in names if run.get(name) is None)
        for number, run in enumerate(runs)
    }
    complete = [run for number, run in enumerate(runs) if not lacking[number]]

    def averages(categories: list[str]) -> Spread:
        return spread([_known_mean([run[name] for name in categories]) for run in complete])

    return RunSummary(
        categories={name: spread([run.get(name) for run in runs]) for name in names},
        mean_incl_baseline=averages(names),
        mean_excl_baseline=averages([name for name in names if name != baseline]),
        flagged={number: absent for number, absent in lacking.items() if absent},
    )


def category_difficulty(
    scores: Mapping[str, Scores],
    run_sds: Mapping[str, Scores] | None = None,
    *,
    baseline: str = "baseline",
) -> dict[str, CategoryDifficulty]:
    """For every category the unweighted mean over models, and how far below the baseline it is.

    Scores are `scores[model][category]`, None if missing. `run_sds` has the standard deviations
    over runs in the same structure. drop = mean(baseline) - mean(category), positive for a loss,
    each mean over the models that have the category. It is None for the baseline and without a
    baseline.
    """
    names = list(dict.fromkeys(name for row in scores.values() for name in row))
    columns = {name: spread([row.get(name) for row in scores.values()]) for name in names}
    base = columns[baseline].mean if baseline in columns else None
    difficulties = {}
    for name in names:
        column = columns[name]
        sds = [row.get(name) for row in (run_sds or {}).values()]
        squares = _known_mean([s * s for s in sds if s is not None])
        has_drop = name != baseline and base is not None and column.mean is not None
        difficulties[name] = CategoryDifficulty(
            mean=column.mean,
            drop=(base or 0.0) - (column.mean or 0.0) if has_drop else None,
            mean_run_sd=_known_mean(sds),
            pooled_run_sd=None if squares is None else math.sqrt(squares),
            sd_across_models=column.sd,
            models=column.count,
        )
    return difficulties


def table_summary(table: Mapping[str, Scores]) -> TableSummary:
    """Column means over rows, and where every row is at its worst, which is its highest number.

    Numbers are `table[row][column]`, such as quality deltas of models by language. All ties for
    worst are named. A row without a number has no worst column.
    """
    columns = list(dict.fromkeys(name for row in table.values() for name in row))
    worst: dict[str, tuple[str, ...]] = {}
    ranges: dict[str, float | None] = {}
    for label, row in table.items():
        numbers = {name: v for name, v in row.items() if v is not None}
        highest = max(numbers.values(), default=None)
        worst[label] = tuple(name for name, v in numbers.items() if v == highest)
        ranges[label] = max(numbers.values()) - min(numbers.values()) if numbers else None
    return TableSummary(
        means={name: _known_mean([row.get(name) for row in table.values()]) for name in columns},
        worst=worst,
        ranges=ranges,
        times_worst={name: sum(name in names for names in worst.values()) for name in columns},
    )


def _known_mean(values: Sequence[float | None]) -> float | None:
    return spread(values).mean
