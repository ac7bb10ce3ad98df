"""Whether 'A beats B' survives a change of prompt, and which ranks a model may have."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._resample import resampled_sums, unit_codes, unit_sums
from falter.stats import clopper_pearson

__all__ = ["PairSurvival", "RankSet", "RankingSurvival", "rank_sets", "ranking_survival"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSurvival:
    """Two models, the better one at the baseline first; `tied` conditions count as not survived."""

    better: int
    worse: int
    survival: Estimate
    tied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSet:
    """The best and the worst rank a model may have, 1 the highest; any rank between may be its."""

    model: int
    best: int
    worst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSurvival:
    """Every pair of models, and the ranks that no test excludes."""

    pairs: tuple[PairSurvival, ...]
    ranks: tuple[RankSet, ...]


def ranking_survival(
    outcomes: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> RankingSurvival:
    """P(A still beats B under a random perturbation of this kind), for every pair of models.

    `outcomes` is items x models x conditions, NaN where missing; column 0 is the baseline. The
    share of the perturbations under which the better model of the baseline is still strictly
    better; the perturbations are the sample, so 14 of them leave wide limits: Clopper and
    Pearson's. Models that tie at the baseline, or no perturbation: None. `ranks` are those of the scores averaged over all conditions: see `rank_sets`.
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 3 or 0 in table.shape:
        raise InvalidValue("outcomes", table.shape, "items x models x conditions, none empty")
    with np.errstate(invalid="ignore", divide="ignore"):
        present = ~np.isnan(table)
        accuracy = np.where(present, table, 0.0).sum(axis=0) / present.sum(axis=0)
    pairs = tuple(
        _survival(a, b, accuracy, len(table), level)
        for a, b in combinations(range(table.shape[1]), 2)
    )
    complete = np.where(present.all(axis=2), np.where(present, table, 0.0).mean(axis=2), np.nan)
    ranks = rank_sets(
        complete, clusters=clusters, level=level, replications=replications, seed=seed
    )
    return RankingSurvival(pairs=pairs, ranks=ranks)


def rank_sets(
    scores: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> tuple[RankSet, ...]:
    """For every model all ranks that simultaneous paired tests do not exclude.

    `scores` is items x models; items that lack a model are left out. A model ranks behind those
    that beat it in a max-t test over all pairs and ahead of those it beats: with probability
    `level` all sets hold the true ranks. Two models whose scores differ by the same amount on every
    item are compared by a sign test at Bonferroni's level.
    Source: Mogstad, Romano, Shaikh and Wilhelm (2024).
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidValue("scores", table.shape, "items x models")
    codes = unit_codes(clusters, len(table))
    whole = ~np.isnan(table).any(axis=1)
    table, codes = table[whole], codes[whole]
    units = unit_sums(table - table.mean(axis=0), codes) if len(table) else table
    better = _better(table, units, level, replications, seed)
    models = table.shape[1]
    return tuple(
        RankSet(model=m, best=1 + int(better[:, m].sum()), worst=models - int(better[m].sum()))
        for m in range(models)
    )


def _better(
    table: Floats, units: Floats, level: float, replications: int, seed: int
) -> NDArray[np.bool_]:
    """models x models: whether the row's model is better than the column's in a max-t test.

        se_ab² = G/(G − 1) Σ_g (u_ga − u_gb)²/n²        better: |x̄_a − x̄_b| > q se_ab

    `units` are the sums u of deviations from the models' means within G clusters of n items, and q
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


def _survival(a: int, b: int, accuracy: Floats, items: int, level: float) -> PairSurvival:
    """The share of perturbations under which the better of two models stays strictly better."""
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
