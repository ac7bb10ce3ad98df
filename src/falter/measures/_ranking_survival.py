"""Whether 'A beats B' outlives a change of prompt, and which ranks a model may have."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue, UnknownName
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._resample import resampled_sums, unit_codes, unit_sums
from falter.stats import Interval, clopper_pearson, no_interval

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
    """The ranks a model may have, 1 the best; every rank in between may be its own too."""

    model: int
    best: int
    worst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSurvival:
    """All pairs of models, and the ranks that no test excludes."""

    pairs: tuple[PairSurvival, ...]
    ranks: tuple[RankSet, ...]


def ranking_survival(
    outcomes: ArrayLike,
    *,
    baseline: int = 0,
    method: Literal["clopper-pearson", "beta"] = "clopper-pearson",
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> RankingSurvival:
    """P(A still beats B under a random perturbation of this kind), for every pair of models.

    `outcomes` is items x models x conditions, NaN where missing. The share of the perturbations
    under which the better model of the baseline is still strictly better; the perturbations are the
    sample, so 14 of them leave wide limits: Clopper and Pearson's, or with `method="beta"` the
    equal-tailed posterior of Jeffreys' prior. Models that tie at the baseline, or no perturbation:
    None. `ranks` are those of the scores averaged over all conditions: see `rank_sets`.
    """
    table = _read(outcomes, baseline)
    if method not in ("clopper-pearson", "beta"):
        raise UnknownName("interval method", method, ("clopper-pearson", "beta"))
    with np.errstate(invalid="ignore", divide="ignore"):
        seen = ~np.isnan(table)
        accuracy = np.where(seen, table, 0.0).sum(axis=0) / seen.sum(axis=0)
    others = [j for j in range(table.shape[2]) if j != baseline]
    pairs = tuple(
        _survival(first, second, accuracy, baseline, others, len(table), method, level)
        for first, second in combinations(range(table.shape[1]), 2)
    )
    complete = np.where(seen.all(axis=2), np.where(seen, table, 0.0).mean(axis=2), np.nan)
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

    `scores` is items x models; items that lack a model are left out. A model is behind those that
    beat it in a max-t test over all pairs and ahead of those it beats: with probability `level` all
    sets hold the true ranks. A pair without any disagreement in size is told apart by a sign test
    at Bonferroni's level. Source: Mogstad, Romano, Shaikh and Wilhelm (2024).
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
    """models x models: whether the row's model is better than the column's beyond doubt."""
    models, count = table.shape[1], len(units)
    found = np.zeros((models, models), dtype=bool)
    first, second = np.triu_indices(models, 1)
    if count < 2 or not len(first):
        return found
    gaps = table.mean(axis=0)[first] - table.mean(axis=0)[second]
    spread = units.T @ units
    own = np.diag(spread)
    square = own[first] + own[second] - 2.0 * spread[first, second]
    steady = square > 1e-12 * (own[first] + own[second])
    errors = np.sqrt(np.where(steady, square, 0.0) * count / (count - 1)) / len(table)
    clear = np.zeros(len(first), dtype=bool)
    if steady.any():
        drawn = resampled_sums(units, replications, seed) / len(table)
        t = (drawn[:, first[steady]] - drawn[:, second[steady]]) / errors[steady]
        limit = float(np.quantile(np.abs(t).max(axis=1), level))
        clear[steady] = np.abs(gaps[steady]) > limit * errors[steady]
    # Equal differences on every item leave no standard error: a sign test on the units.
    clear[~steady] = (gaps[~steady] != 0.0) & (2.0 * 0.5**count <= (1.0 - level) / len(first))
    up, down = clear & (gaps > 0.0), clear & (gaps < 0.0)
    found[first[up], second[up]] = True
    found[second[down], first[down]] = True
    return found


def _survival(
    first: int,
    second: int,
    accuracy: Floats,
    baseline: int,
    others: Sequence[int],
    items: int,
    method: str,
    level: float,
) -> PairSurvival:
    gap = np.round(accuracy[first] - accuracy[second], 12)
    if gap[baseline] < 0.0:
        first, second, gap = second, first, -gap
    under = gap[others]
    known = under[~np.isnan(under)]
    basis = Basis(
        estimand="probability that the better model of the baseline is strictly better, random "
        "perturbation of this kind, these items",
        items=items,
        conditions=len(known),
        excluded=len(under) - len(known),
        level=level,
    )
    tied = int((known == 0.0).sum())
    if np.isnan(gap[baseline]) or not len(known):
        why = basis.undefined("ranking_survival", "insufficient_data", "no perturbation, or score")
        return PairSurvival(better=first, worse=second, survival=why, tied=tied)
    if gap[baseline] == 0.0:
        why = basis.undefined("ranking_survival", "not_identified", "they tie at the baseline")
        return PairSurvival(better=first, worse=second, survival=why, tied=tied)
    kept = int((known > 0.0).sum())
    interval = _interval(kept, len(known), method, level)
    found = basis.estimate("ranking_survival", kept / len(known), interval)
    return PairSurvival(better=first, worse=second, survival=found, tied=tied)


def _interval(kept: int, total: int, method: str, level: float) -> Interval:
    if method == "clopper-pearson":
        return clopper_pearson(kept, total, level=level)
    from scipy.special import betaincinv

    tail = (1.0 - no_interval(level).level) / 2.0
    low, high = (
        float(betaincinv(kept + 0.5, total - kept + 0.5, edge)) for edge in (tail, 1.0 - tail)
    )
    return Interval(low=low, high=high, level=level, method="beta posterior, jeffreys prior")


def _read(outcomes: ArrayLike, baseline: int) -> Floats:
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 3 or 0 in table.shape:
        raise InvalidValue("outcomes", table.shape, "items x models x conditions, none empty")
    if not 0 <= baseline < table.shape[2]:
        raise InvalidValue("baseline", baseline, f"a column from 0 to {table.shape[2] - 1}")
    return table
