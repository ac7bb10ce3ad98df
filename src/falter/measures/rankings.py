"""Rankings of models by accuracy: agreement, changes and survival under perturbations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.estimates import Basis, Clusters, Floats
from falter.measures.resample import (
    Seed,
    check_replications,
    resampled_sums,
    signed_sums,
    unit_sums,
)
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes, too_few_clusters
from falter.stats.intervals import Interval, clopper_pearson, no_interval
from falter.stats.mean import known_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The scores of one task, items x models x conditions; a case is a condition but the first."""

    table: Floats

    @property
    def models(self) -> int:
        return int(self.table.shape[1])

    def accuracies(self) -> Floats:
        """Return models x conditions; NaN where a model has no item."""
        return _means(self._units().sum(axis=0), self.table.shape)

    def resampled(self, replications: int, seed: Seed) -> Floats:
        """Return draws x models x conditions: the accuracies on items drawn with replacement."""
        return _means(resampled_sums(self._units(), replications, seed), self.table.shape)

    def swapped(self, replications: int, seed: Seed) -> tuple[Floats, Floats]:
        """Return draws x models x cases of the two arms, after swapping them within random items.

        All models of an item are swapped together, which keeps their common part. A cell whose
        other arm is missing is left out.
        """
        base, other = self.table[:, :, :1], self.table[:, :, 1:]
        both = ~np.isnan(base - other)
        difference = np.where(both, base - other, 0.0)
        shape = difference.shape[1:]
        # Swapping an item reverses the sign of its difference: middle ± half the signed mean.
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = np.where(both, base + other, 0.0).sum(axis=0) / (2.0 * both.sum(axis=0))
            signed = signed_sums(difference.reshape(len(difference), -1), replications, seed)
            half = signed.reshape(replications, *shape) / (2.0 * both.sum(axis=0))
        return middle + half, middle - half

    def _units(self) -> Floats:
        """Return the scores of each item, and 1 for every score that exists.

        Without gaps a single 1 in front of the scores is enough.
        """
        flat = self.table.reshape(len(self.table), -1)
        present = ~np.isnan(flat)
        # Without gaps one count is enough for all cells, which halves the resampled columns.
        if present.all():
            return np.column_stack([np.ones(len(flat)), flat])
        return np.hstack([np.where(present, flat, 0.0), present])


def read_cases(outcomes: Mapping[str, ArrayLike]) -> tuple[Cases, ...]:
    """Return every task's table as `Cases`; raise InvalidValue for unequal or empty shapes."""
    if not outcomes:
        raise InvalidValue("outcomes", {}, "items x models x conditions for every task")
    tasks = []
    for name, cells in outcomes.items():
        table = np.asarray(cells, dtype=np.float64)
        if table.ndim != 3 or 0 in table.shape:
            raise InvalidValue(
                f"outcomes of '{name}'", table.shape, "items x models x conditions, none empty"
            )
        tasks.append(Cases(table=table))
    shapes = [task.table.shape[1:] for task in tasks]
    if len(set(shapes)) > 1:
        raise InvalidValue("outcomes", shapes, "the same models and conditions in every task")
    return tuple(tasks)


def average_ranks(scores: Floats) -> Floats:
    """Return ranks along the last axis from 1 for the lowest score; ties share their mean rank.

    Scores that differ by less than about 1e-12 are tied, because means of the same numbers in
    another order differ by rounding. A NaN never equals a score.
    """
    rounded = np.round(scores, 12)
    ranks = np.empty_like(rounded)
    for place in range(rounded.shape[-1]):
        score = rounded[..., place : place + 1]
        below, equal = (rounded < score).sum(axis=-1), (rounded == score).sum(axis=-1)
        ranks[..., place] = below + (1 + equal) / 2.0
    return ranks


def rank_correlation(first: Floats, second: Floats) -> Floats:
    """Return Spearman's rho along the last axis; NaN if a side is constant.

    Σ xy/√(Σ x² Σ y²) of the average ranks less their mean. Source: Spearman (1904).
    """
    ranks = [average_ranks(scores) for scores in (first, second)]
    x, y = (r - r.mean(axis=-1, keepdims=True) for r in ranks)
    size = np.sqrt(np.square(x).sum(axis=-1) * np.square(y).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(size > 0.0, (x * y).sum(axis=-1) / size, np.nan))


def _means(sums: Floats, shape: tuple[int, ...]) -> Floats:
    """Return (..., models, conditions) means from the sums of `Cases._units`."""
    cells = shape[1] * shape[2]
    with np.errstate(invalid="ignore", divide="ignore"):
        if sums.shape[-1] == cells + 1:
            means = sums[..., 1:] / sums[..., :1]
        else:
            means = sums[..., :cells] / sums[..., cells:]
    return np.asarray(means.reshape(*sums.shape[:-1], shape[1], shape[2]))


# The agreement of two orders of the models.
# With three models a rank correlation has only four values, which is not informative.
MIN_RANKED_MODELS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement:
    """For every condition but the baseline, the mean rank correlation over tasks, and noise.

    `noise` is the same number with baseline and condition swapped at random. `excluded` of an
    estimate counts the tasks left out because all models had the same accuracy.
    """

    conditions: tuple[int, ...]
    agreement: tuple[Estimate, ...]
    noise: tuple[Estimate, ...]


def rank_agreement(
    outcomes: Mapping[str, ArrayLike],
    *,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> RankAgreement:
    """Spearman's rho of the models' accuracies, baseline against condition, averaged over tasks.

    Parameters
    ----------
    outcomes : `outcomes[task]` is (items, models, conditions)
        NaN where missing; column 0 is the baseline.
    level : two-sided confidence level

    Returns
    -------
    RankAgreement
        Ties have average ranks. A task in which all models tie has no rho and is left out of the
        mean. Fewer than four models: insufficient_data, and nothing is computed.

    Notes
    -----
    Items are resampled through the whole computation, for all models at once. Sampling noise biases
    a rank correlation downwards, and resampling adds this bias a second time. The lower limit is
    the percentile of the draws. The upper limit is the lower limit mirrored at the value, or 1 if
    swapping explains the agreement: see `_agreement_interval`. `noise` is the agreement after
    swapping baseline and condition within random items. Its interval has quantiles of the draws.
    Its `p_value` is the share of draws at or below the observed agreement (one-sided).
    """
    check_replications(replications)
    tasks = read_cases(outcomes)
    basis = Basis(
        estimand="spearman of the models' accuracies, baseline against condition, these "
        "models and tasks, items like these",
        items=sum(len(task.table) for task in tasks),
        conditions=2,
        level=level,
        seed=seed,
    )
    conditions = tuple(range(1, tasks[0].table.shape[2]))
    if tasks[0].models < MIN_RANKED_MODELS:
        why = "fewer than four models"
        few, noise = (
            (basis.undefined(measure, "insufficient_data", why),) * len(conditions)
            for measure in ("rank_agreement", "rank_agreement.noise")
        )
        return RankAgreement(conditions=conditions, agreement=few, noise=noise)
    values, draws, swaps = [], [], []
    for place, task in enumerate(tasks):
        values.append(_baseline_correlations(task.accuracies()))
        draws.append(_baseline_correlations(task.resampled(replications, (seed, place))))
        base, other = task.swapped(replications, (seed, place))
        swaps.append(rank_correlation(np.moveaxis(base, -1, -2), np.moveaxis(other, -1, -2)))
    value, draw, swap = (known_mean(np.stack(x), axis=0) for x in (values, draws, swaps))
    tied = np.isnan(np.stack(values)).sum(axis=0)
    agreements, noises = [], []
    for j in range(len(conditions)):
        of_case = replace(basis, excluded=int(tied[j]))
        agreements.append(_agreement_estimate(value[j], draw[:, j], swap[:, j], of_case))
        noises.append(_noise_estimate(value[j], swap[:, j], of_case))
    return RankAgreement(conditions=conditions, agreement=tuple(agreements), noise=tuple(noises))


def _baseline_correlations(accuracies: Floats) -> Floats:
    """Map (..., models, conditions) to the (..., cases) correlations with the baseline."""
    by_condition = np.moveaxis(accuracies, -1, -2)
    return rank_correlation(by_condition[..., :1, :], by_condition[..., 1:, :])


def _agreement_estimate(value: float, draws: Floats, swaps: Floats, basis: Basis) -> Estimate:
    if np.isnan(value):
        return basis.undefined("rank_agreement", "undefined_zero_variance", "all models tie")
    interval = _agreement_interval(float(value), draws, swaps, basis.level)
    return basis.estimate("rank_agreement", float(value), interval)


def _noise_estimate(value: float, swaps: Floats, basis: Basis) -> Estimate:
    measure = "rank_agreement.noise"
    known = swaps[~np.isnan(swaps)]
    if not len(known) or np.isnan(value):
        return basis.undefined(measure, "undefined_zero_variance", "all models tie")
    low, high = np.quantile(known, [(1.0 - basis.level) / 2.0, (1.0 + basis.level) / 2.0])
    name = f"quantiles of {len(swaps)} swaps of baseline and condition within items, PCG64"
    return basis.estimate(
        measure,
        float(known.mean()),
        Interval(low=float(low), high=float(high), level=basis.level, method=name),
        p_value=float((1 + (known <= value + 1e-12).sum()) / (1 + len(known))),
    )


def _agreement_interval(value: float, draws: Floats, swaps: Floats, level: float) -> Interval:
    """Return the interval from the lower percentile of the draws to its reflection, or to 1.

    If the accuracies of models are close, their rank correlation is biased far down, by an amount
    that the draws do not show. So the upper end is 1 unless the value lies below the quantile of
    the swaps at a tenth of a tail. Simulated coverage is 90 to 99 %; the misses are nearly always
    at the lower end.
    """
    known, swapped = draws[~np.isnan(draws)], swaps[~np.isnan(swaps)]
    if len(known) < 0.95 * len(draws) or np.ptp(known) == 0.0 or not len(swapped):
        return no_interval(level)
    tail = (1.0 - level) / 2.0
    low, high = (float(end) for end in np.quantile(known, [tail, 1.0 - tail]))
    # Noise lowers a rank correlation, and drawing items again lowers it once more: the upper
    # percentile lies too low by twice the bias, the lower one errs to the safe side.
    high = min(1.0, max(high, 2.0 * value - low))
    method = f"percentile bootstrap of items, reflected above, {len(draws)} draws, PCG64"
    # A tenth of a tail: the end leaves 1 only if an unchanged order is almost excluded.
    if value >= np.quantile(swapped, tail / 10.0):
        high, method = 1.0, method.replace("reflected above", "up to 1: no more than noise")
    return Interval(low=low, high=high, level=level, method=method)


# The frequency of changed rankings, with a perturbation and without one.
@dataclass(frozen=True, slots=True, kw_only=True)
class RankingChanged:
    """The share of cases with a changed ranking, and the shares without any perturbation.

    `null_swap`: baseline and condition are swapped within random items. `null_items`: the
    baseline's own ranking on resampled items. `null_repeat`: the columns that repeat the baseline.
    """

    share: Estimate
    null_swap: Estimate
    null_items: Estimate
    null_repeat: Estimate


def ranking_changed(
    outcomes: Mapping[str, ArrayLike],
    *,
    repeats: tuple[int, ...] = (),
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> RankingChanged:
    """The share of (task, perturbation) cases whose vector of average ranks is another.

    `outcomes` is as in `rank_agreement`. `repeats` are the columns that repeat the baseline, or
    change nothing. They do not count as cases, and give `null_repeat`. The share is exact for these
    items and has no interval. Models with close accuracies change places by chance. So the share is
    meaningful only if it is far above the nulls. The intervals of both simulated nulls have
    quantiles of the draws. A case in which a model has no item is excluded. Fewer than two models,
    or no case: insufficient_data.
    """
    check_replications(replications)
    tasks = read_cases(outcomes)
    basis = Basis(
        estimand="share of cases whose ranking of the models is not the baseline's, these items",
        items=sum(len(task.table) for task in tasks),
        level=level,
        seed=seed,
    )
    too_few = tasks[0].models < 2
    is_repeat = np.array([j in repeats for j in range(1, tasks[0].table.shape[2])], dtype=bool)
    observed, swaps, redrawn = [], [], []
    for place, task in enumerate(tasks):
        by_condition = task.accuracies().T
        observed.append(_rankings_differ(by_condition[:1], by_condition[1:]))
        base, other = task.swapped(replications, (seed, place))
        differs = _rankings_differ(np.moveaxis(base, -1, -2), np.moveaxis(other, -1, -2))
        swaps.append(differs[:, ~is_repeat])
        # The baseline alone, on resampled items. Without its other columns the null does not depend
        # on any perturbation.
        alone = replace(task, table=task.table[:, :, :1])
        again = np.moveaxis(alone.resampled(replications, (seed, place)), -1, -2)
        redrawn.append(_rankings_differ(again, np.broadcast_to(alone.accuracies().T, again.shape)))
    changed = np.stack(observed)
    cases, controls = changed[:, ~is_repeat], changed[:, is_repeat]
    return RankingChanged(
        share=_share_of_cases("ranking_changed", cases, basis, too_few),
        null_swap=_null_share("ranking_changed.null_swap", swaps, basis, too_few),
        null_items=_null_share("ranking_changed.null_items", redrawn, basis, too_few),
        null_repeat=_share_of_cases("ranking_changed.null_repeat", controls, basis, too_few),
    )


def _rankings_differ(base: Floats, other: Floats) -> Floats:
    """Map (..., cases, models) to 1 where the ranks differ; NaN where a model has no accuracy."""
    # A comparison with NaN is False, so a model without a score would be ranked as if last.
    lacking = np.isnan(base).any(axis=-1) | np.isnan(other).any(axis=-1)
    differs = (average_ranks(base) != average_ranks(other)).any(axis=-1).astype(float)
    return np.asarray(np.where(lacking, np.nan, differs))


def _share_of_cases(measure: str, cases: Floats, basis: Basis, too_few: bool) -> Estimate:
    known = cases[~np.isnan(cases)]
    basis = replace(basis, conditions=len(known), excluded=cases.size - len(known))
    if too_few or not len(known):
        why = "fewer than two models" if too_few else "no case"
        return basis.undefined(measure, "insufficient_data", why)
    # For exactly these items nothing is sampled; the nulls show the effect of chance alone.
    exact = replace(no_interval(basis.level), method="none: exact for these items")
    return basis.estimate(measure, float(known.mean()), exact)


def _null_share(measure: str, tasks: list[Floats], basis: Basis, too_few: bool) -> Estimate:
    """Return the mean share and its quantiles over draws; `tasks` are draws x cases."""
    draws = known_mean(np.concatenate(tasks, axis=1), axis=1)
    known = draws[~np.isnan(draws)]
    if too_few or not len(known):
        return basis.undefined(measure, "insufficient_data", "fewer than two models, or no case")
    low, high = np.quantile(known, [(1.0 - basis.level) / 2.0, (1.0 + basis.level) / 2.0])
    name = f"quantiles of {len(draws)} draws, PCG64"
    interval = Interval(low=float(low), high=float(high), level=basis.level, method=name)
    return basis.estimate(measure, float(known.mean()), interval)


# The survival of 'A beats B' under a changed prompt, and the possible ranks of a model.
@dataclass(frozen=True, slots=True, kw_only=True)
class PairSurvival:
    """Two models, the better one at the baseline first.

    `tied` counts the conditions in which they tie. These count as not survived.
    """

    better: int
    worse: int
    survival: Estimate
    tied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSet:
    """The best and the worst rank that a model may have, 1 being the highest accuracy."""

    model: int
    best: int
    worst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSurvival:
    """The survival of every pair of models, and the set of possible ranks of every model."""

    pairs: tuple[PairSurvival, ...]
    ranks: tuple[RankSet, ...]


def ranking_survival(
    outcomes: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> RankingSurvival:
    """P(A still beats B under a random perturbation of this kind), for every pair of models.

    Parameters
    ----------
    outcomes : array_like of shape (items, models, conditions)
        NaN where missing; column 0 is the baseline.
    clusters : the cluster of each item, for `ranks` only
    level : two-sided confidence level

    Returns
    -------
    RankingSurvival
        For a pair, the share of perturbations under which the better model of the baseline is still
        strictly better, with Clopper and Pearson's interval. The perturbations are the sample, so
        14 of them leave wide limits. Models that tie at the baseline: not_identified. No
        perturbation, or no baseline score: insufficient_data. `ranks` are those of the scores
        averaged over all conditions: see `rank_sets`.
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 3 or 0 in table.shape:
        raise InvalidValue("outcomes", table.shape, "items x models x conditions, none empty")
    accuracy, present = known_mean(table, axis=0), ~np.isnan(table)
    pairs = tuple(
        _pair_survival(a, b, accuracy, len(table), level)
        for a, b in combinations(range(table.shape[1]), 2)
    )
    # Complete items only: a model would gain by missing the conditions that are hard.
    complete = np.where(present.all(axis=2), np.where(present, table, 0.0).mean(axis=2), np.nan)
    ranks = rank_sets(
        complete, clusters=clusters, level=level, replications=replications, seed=seed
    )
    return RankingSurvival(pairs=pairs, ranks=ranks)


def rank_sets(
    scores: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> tuple[RankSet, ...]:
    """For every model all ranks that simultaneous paired tests do not exclude.

    `scores` is items x models; an item with a NaN is left out. A model ranks behind the models that
    beat it in a max-t test over all pairs, and ahead of the models that it beats. With probability
    `level` all sets contain the true ranks. Two models whose scores differ by the same amount on
    every item are compared by a sign test at Bonferroni's level. Without two items (or 6 clusters),
    no rank is excluded. Source: Mogstad, Romano, Shaikh and Wilhelm (2024).
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidValue("scores", table.shape, "items x models")
    codes = cluster_codes(clusters, len(table))
    whole = ~np.isnan(table).any(axis=1)
    table, codes = table[whole], codes[whole]
    units = unit_sums(table - table.mean(axis=0), codes) if len(table) else table
    if clusters is not None and too_few_clusters(len(units)):
        units = units[:0]
    better = _significantly_better(table, units, level, replications, seed)
    models = table.shape[1]
    return tuple(
        RankSet(model=m, best=1 + int(better[:, m].sum()), worst=models - int(better[m].sum()))
        for m in range(models)
    )


def _significantly_better(
    table: Floats, units: Floats, level: float, replications: int, seed: int
) -> NDArray[np.bool_]:
    """Return models x models: True if the row's model is better than the column's in a max-t test.

        se_ab² = G/(G − 1) Σ_g (u_ga − u_gb)²/n²        better: |x̄_a − x̄_b| > q se_ab

    `units` are the sums u of deviations from the models' means within G clusters of n items. q is
    the `level` quantile of the largest |t| of all pairs over draws of the units.
    """
    models, count = table.shape[1], len(units)
    better = np.zeros((models, models), dtype=bool)
    a, b = np.triu_indices(models, 1)
    if count < 2 or not len(a):
        return better
    differences = table.mean(axis=0)[a] - table.mean(axis=0)[b]
    products = units.T @ units
    squares = np.diag(products)
    square = squares[a] + squares[b] - 2.0 * products[a, b]
    varies = square > 1e-12 * (squares[a] + squares[b])
    errors = np.sqrt(np.where(varies, square, 0.0) * count / (count - 1)) / len(table)
    significant = np.zeros(len(a), dtype=bool)
    if varies.any():
        drawn = resampled_sums(units, replications, seed) / len(table)
        t = (drawn[:, a[varies]] - drawn[:, b[varies]]) / errors[varies]
        q = float(np.quantile(np.abs(t).max(axis=1), level))
        significant[varies] = np.abs(differences[varies]) > q * errors[varies]
    # Equal differences on every item leave no standard error: a sign test on the units.
    sign_test = 2.0 * 0.5**count <= (1.0 - level) / len(a)
    significant[~varies] = (differences[~varies] != 0.0) & sign_test
    up, down = significant & (differences > 0.0), significant & (differences < 0.0)
    better[a[up], b[up]] = True
    better[b[down], a[down]] = True
    return better


def _pair_survival(a: int, b: int, accuracy: Floats, items: int, level: float) -> PairSurvival:
    """Return the share of perturbations under which the better of two models stays better."""
    lead = np.round(accuracy[a] - accuracy[b], 12)
    if lead[0] < 0.0:
        a, b, lead = b, a, -lead
    known = lead[1:][~np.isnan(lead[1:])]
    total, survived = len(known), int((known > 0.0).sum())
    basis = Basis(
        estimand="probability that the better model of the baseline is strictly better, "
        "perturbations like these, these items",
        items=items,
        conditions=total,
        excluded=len(lead) - 1 - total,
        level=level,
    )
    measure = "ranking_survival"
    if np.isnan(lead[0]) or not total:
        why = "no score at the baseline, or no perturbation with one"
        survival = basis.undefined(measure, "insufficient_data", why)
    elif lead[0] == 0.0:
        survival = basis.undefined(measure, "not_identified", "they tie at the baseline")
    else:
        interval = clopper_pearson(survived, total, level=level)
        survival = basis.estimate(measure, survived / total, interval)
    tied = int((known == 0.0).sum())
    return PairSurvival(better=a, worse=b, survival=survival, tied=tied)
