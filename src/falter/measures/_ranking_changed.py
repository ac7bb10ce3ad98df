"""How often one perturbation changes who stands where, and how often nothing at all would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._ranks import Cases, average_ranks, read_cases
from falter.measures._resample import Seed, check_replications
from falter.stats import Interval, no_interval

__all__ = ["RankingChanged", "ranking_changed"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingChanged:
    """The share of cases with another ranking, beside what no perturbation would give.

    `null_swap`: baseline and condition swapped within random items. `null_items`: the baseline's
    own ranking on items drawn again. `null_repeat`: the columns that repeat the baseline.
    `changed[task]` has one place a case, in the order of `conditions`.
    """

    share: Estimate
    null_swap: Estimate
    null_items: Estimate
    null_repeat: Estimate
    conditions: tuple[int, ...]
    changed: Mapping[str, tuple[bool, ...]]


def ranking_changed(
    outcomes: Mapping[str, ArrayLike],
    *,
    baselines: tuple[int, ...] | None = None,
    repeats: tuple[int, ...] = (),
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> RankingChanged:
    """The share of (task, setting, perturbation) cases whose vector of average ranks is another.

    `outcomes` and `baselines` as in `rank_agreement`: two settings are two baselines in one table.
    `repeats` are the columns that ask the baseline again, or change nothing: they are no cases, and
    give `null_repeat`. The share is exact for these items. Models a point apart change places by
    chance alone: the share says something only where it is far above the nulls. The intervals of
    the two simulated nulls hold the draws. A case in which a model has no item is left out and
    counted in `excluded`; fewer than two models: insufficient_data.
    """
    check_replications(replications)
    tasks = read_cases(outcomes, baselines)
    basis = Basis(
        estimand="share of cases whose ranking of the models is not the baseline's, these items",
        items=sum(len(c.table) for c in tasks),
        level=level,
        seed=seed,
    )
    few = tasks[0].models < 2
    moved = [_changed(c) for c in tasks]
    again = np.array([j in repeats for _, j in tasks[0].pairs], dtype=bool)
    changed = np.stack(moved)
    cases, controls = changed[:, ~again], changed[:, again]
    swaps = _mean(
        [_swapped(c, replications, (seed, place))[:, ~again] for place, c in enumerate(tasks)]
    )
    items = _mean([_own(c, replications, (seed, place)) for place, c in enumerate(tasks)])
    return RankingChanged(
        share=_share("ranking_changed", cases, basis, few),
        null_swap=_null("ranking_changed.null_swap", swaps, basis, few),
        null_items=_null("ranking_changed.null_items", items, basis, few),
        null_repeat=_share("ranking_changed.null_repeat", controls, basis, few),
        conditions=tuple(j for _, j in tasks[0].pairs if j not in repeats),
        changed={c.name: tuple(bool(x) for x in row) for c, row in zip(tasks, cases, strict=True)},
    )


def _differ(first: Floats, second: Floats) -> Floats:
    """(..., cases, models) to 1 where the ranks differ, NaN where a model has no accuracy."""
    lacking = np.isnan(first).any(axis=-1) | np.isnan(second).any(axis=-1)
    found = (average_ranks(first) != average_ranks(second)).any(axis=-1).astype(float)
    return np.asarray(np.where(lacking, np.nan, found))


def _changed(case: Cases) -> Floats:
    turned = case.accuracies().T
    return _differ(turned[[b for b, _ in case.pairs]], turned[[j for _, j in case.pairs]])


def _swapped(case: Cases, replications: int, seed: Seed) -> Floats:
    first, second = case.swapped(replications, seed)
    return _differ(np.moveaxis(first, -1, -2), np.moveaxis(second, -1, -2))


def _own(case: Cases, replications: int, seed: Seed) -> Floats:
    """Draws x baselines: whether the baseline ranks otherwise on items drawn again."""
    columns = sorted({b for b, _ in case.pairs})
    alone = replace(case, table=case.table[:, :, columns])
    drawn = np.moveaxis(alone.resampled(replications, seed), -1, -2)
    return _differ(drawn, np.broadcast_to(alone.accuracies().T, drawn.shape))


def _mean(found: list[Floats]) -> Floats:
    """Over tasks and cases, one number a draw."""
    joined = np.concatenate(found, axis=1)
    seen = ~np.isnan(joined)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(seen, joined, 0.0).sum(axis=1) / seen.sum(axis=1))


def _share(measure: str, cases: Floats, basis: Basis, few: bool) -> Estimate:
    kept = cases[~np.isnan(cases)]
    own = replace(basis, conditions=len(kept), excluded=cases.size - len(kept))
    if few or not len(kept):
        why = "fewer than two models" if few else "no case"
        return own.undefined(measure, "insufficient_data", why)
    exact = replace(no_interval(basis.level), method="none: exact for these items")
    return own.estimate(measure, float(kept.mean()), exact)


def _null(measure: str, draws: Floats, basis: Basis, few: bool) -> Estimate:
    kept = draws[~np.isnan(draws)]
    if few or not len(kept):
        return basis.undefined(measure, "insufficient_data", "fewer than two models, or no case")
    low, high = np.quantile(kept, [(1.0 - basis.level) / 2.0, (1.0 + basis.level) / 2.0])
    name = f"quantiles of {len(draws)} draws, PCG64"
    interval = Interval(low=float(low), high=float(high), level=basis.level, method=name)
    return basis.estimate(measure, float(kept.mean()), interval)
