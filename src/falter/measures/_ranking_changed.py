"""How often a perturbation changes the ranking of models, and how often nothing at all would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._ranks import average_ranks, read_cases
from falter.measures._resample import check_replications
from falter.stats import Interval, no_interval

__all__ = ["RankingChanged", "ranking_changed"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingChanged:
    """The share of cases with another ranking, beside what no perturbation would give.

    `null_swap`: baseline and condition swapped within random items. `null_items`: the baseline's
    own ranking on items drawn again. `null_repeat`: the columns that repeat the baseline.
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

    `outcomes` as in `rank_agreement`.
    `repeats` are the columns that ask the baseline again, or change nothing: they do not count as
    cases, and give `null_repeat`. The share is exact for these items. Models a point apart change
    places by chance alone: the share says something only where it is far above the nulls. The
    intervals of the two simulated nulls hold the draws. A case in which a model has no item is left
    out and counted in `excluded`; fewer than two models: insufficient_data.
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
        observed.append(_differ(by_condition[:1], by_condition[1:]))
        base, other = task.swapped(replications, (seed, place))
        differs = _differ(np.moveaxis(base, -1, -2), np.moveaxis(other, -1, -2))
        swaps.append(differs[:, ~is_repeat])
        # The baseline alone, on items drawn again.
        alone = replace(task, table=task.table[:, :, :1])
        again = np.moveaxis(alone.resampled(replications, (seed, place)), -1, -2)
        redrawn.append(_differ(again, np.broadcast_to(alone.accuracies().T, again.shape)))
    changed = np.stack(observed)
    cases, controls = changed[:, ~is_repeat], changed[:, is_repeat]
    return RankingChanged(
        share=_share_of_cases("ranking_changed", cases, basis, too_few),
        null_swap=_null_share("ranking_changed.null_swap", swaps, basis, too_few),
        null_items=_null_share("ranking_changed.null_items", redrawn, basis, too_few),
        null_repeat=_share_of_cases("ranking_changed.null_repeat", controls, basis, too_few),
    )


def _differ(base: Floats, other: Floats) -> Floats:
    """(..., cases, models) to 1 where the ranks differ, NaN where a model has no accuracy."""
    lacking = np.isnan(base).any(axis=-1) | np.isnan(other).any(axis=-1)
    differs = (average_ranks(base) != average_ranks(other)).any(axis=-1).astype(float)
    return np.asarray(np.where(lacking, np.nan, differs))


def _share_of_cases(measure: str, cases: Floats, basis: Basis, too_few: bool) -> Estimate:
    known = cases[~np.isnan(cases)]
    basis = replace(basis, conditions=len(known), excluded=cases.size - len(known))
    if too_few or not len(known):
        why = "fewer than two models" if too_few else "no case"
        return basis.undefined(measure, "insufficient_data", why)
    exact = replace(no_interval(basis.level), method="none: exact for these items")
    return basis.estimate(measure, float(known.mean()), exact)


def _null_share(measure: str, tasks: list[Floats], basis: Basis, too_few: bool) -> Estimate:
    """The mean share and its quantiles over draws; `tasks` are draws x cases."""
    joined = np.concatenate(tasks, axis=1)
    present = ~np.isnan(joined)
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = np.where(present, joined, 0.0).sum(axis=1) / present.sum(axis=1)
    known = draws[~np.isnan(draws)]
    if too_few or not len(known):
        return basis.undefined(measure, "insufficient_data", "fewer than two models, or no case")
    low, high = np.quantile(known, [(1.0 - basis.level) / 2.0, (1.0 + basis.level) / 2.0])
    name = f"quantiles of {len(draws)} draws, PCG64"
    interval = Interval(low=float(low), high=float(high), level=basis.level, method=name)
    return basis.estimate(measure, float(known.mean()), interval)
