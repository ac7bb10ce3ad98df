"""Whether a perturbation leaves the order of the models alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._ranks import Cases, Coefficient, correlation, read_cases
from falter.measures._resample import Seed, check_replications
from falter.stats import Interval, no_interval

__all__ = ["RankAgreement", "rank_agreement"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement:
    """One place a perturbation: the mean over tasks, what noise alone gives, and every task's.

    `excluded` of `agreement` and `noise` counts the tasks left out because every model had the
    same accuracy.
    """

    conditions: tuple[int, ...]
    agreement: tuple[Estimate, ...]
    noise: tuple[Estimate, ...]
    by_task: Mapping[str, tuple[Estimate, ...]]


def rank_agreement(
    outcomes: Mapping[str, ArrayLike],
    *,
    baselines: tuple[int, ...] | None = None,
    coefficient: Coefficient = "spearman",
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> RankAgreement:
    """Spearman's rho of the models' accuracies, baseline against condition, averaged over tasks.

    `outcomes[task]` is items x models x conditions, NaN where missing. Column 0 is the baseline, or
    `baselines` names for every column the one it is compared with (its own number: a baseline).
    Ties have average ranks; a task in which all models tie has no rho and is left out of the mean.
    Fewer than three models: insufficient_data. `coefficient="kendall"` gives tau-b.

    Items are drawn again through the whole pipeline, for all models at once. Noise lowers a rank
    correlation, that of draws twice: the lower end is their percentile, the upper end the lower one
    reflected at the value, or 1 where swapping explains the agreement: see `_interval`. `noise` is
    the same number after swapping baseline and condition within random items; its interval holds
    the draws, its `p_value` is the share of draws at or below the agreement that was found.
    """
    check_replications(replications)
    tasks = read_cases(outcomes, baselines)
    values = [_pairwise(c.accuracies(), c, coefficient) for c in tasks]
    draws = [
        _pairwise(c.resampled(replications, (seed, place)), c, coefficient)
        for place, c in enumerate(tasks)
    ]
    swaps = [_swapped(c, coefficient, replications, (seed, place)) for place, c in enumerate(tasks)]
    basis = Basis(
        estimand=f"{coefficient} of the models' accuracies, baseline against condition, these "
        "models and tasks, super-population of items",
        items=sum(len(c.table) for c in tasks),
        conditions=2,
        level=level,
        seed=seed,
    )
    few = tasks[0].models < 3
    mean, drawn, noise = (_over_tasks(found) for found in (values, draws, swaps))
    lost = np.isnan(np.stack(values)).sum(axis=0)
    agreement, floor = [], []
    for place in range(len(tasks[0].pairs)):
        own = replace(basis, excluded=int(lost[place]))
        agreement.append(
            _one("rank_agreement", mean[place], drawn[:, place], noise[:, place], own, few)
        )
        floor.append(_noise(mean[place], noise[:, place], own, few))
    return RankAgreement(
        conditions=tuple(j for _, j in tasks[0].pairs),
        agreement=tuple(agreement),
        noise=tuple(floor),
        by_task={
            task.name: tuple(
                _one("rank_agreement.task", v, d, n, replace(basis, items=len(task.table)), few)
                for v, d, n in zip(value, draw.T, swap.T, strict=True)
            )
            for task, value, draw, swap in zip(tasks, values, draws, swaps, strict=True)
        },
    )


def _pairwise(accuracies: Floats, case: Cases, coefficient: Coefficient) -> Floats:
    """(..., models, conditions) to (..., cases)."""
    turned = np.moveaxis(accuracies, -1, -2)
    first = turned[..., [b for b, _ in case.pairs], :]
    return correlation(first, turned[..., [j for _, j in case.pairs], :], coefficient)


def _swapped(case: Cases, coefficient: Coefficient, replications: int, seed: Seed) -> Floats:
    first, second = case.swapped(replications, seed)
    return correlation(np.moveaxis(first, -1, -2), np.moveaxis(second, -1, -2), coefficient)


def _over_tasks(found: list[Floats]) -> Floats:
    """The mean over the tasks that have a number; NaN where none has."""
    stacked = np.stack(found)
    seen = ~np.isnan(stacked)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(seen, stacked, 0.0).sum(axis=0) / seen.sum(axis=0))


def _one(
    measure: str, value: float, draws: Floats, noise: Floats, basis: Basis, few: bool
) -> Estimate:
    if few:
        return basis.undefined(measure, "insufficient_data", "fewer than three models")
    if np.isnan(value):
        return basis.undefined(measure, "undefined_zero_variance", "all models tie")
    return basis.estimate(measure, float(value), _interval(float(value), draws, noise, basis.level))


def _noise(value: float, draws: Floats, basis: Basis, few: bool) -> Estimate:
    kept = draws[~np.isnan(draws)]
    if few or not len(kept) or np.isnan(value):
        if few:
            why = "fewer than three models"
            return basis.undefined("rank_agreement.noise", "insufficient_data", why)
        return basis.undefined("rank_agreement.noise", "undefined_zero_variance", "all models tie")
    low, high = np.quantile(kept, [(1.0 - basis.level) / 2.0, (1.0 + basis.level) / 2.0])
    name = f"quantiles of {len(draws)} swaps of baseline and condition within items, PCG64"
    return basis.estimate(
        "rank_agreement.noise",
        float(kept.mean()),
        Interval(low=float(low), high=float(high), level=basis.level, method=name),
        p_value=float((1 + (kept <= value + 1e-12).sum()) / (1 + len(kept))),
    )


def _interval(value: float, draws: Floats, noise: Floats, level: float) -> Interval:
    """From the lower percentile of the draws to its reflection, or to 1.

    Models whose accuracies are close have a rank correlation that is biased far down, by an amount
    the draws do not show. If one tenth of a tail of the swaps is at or below the value, the order
    may not have changed at all. Simulated coverage is 90 to 99 %, the lower end nearly always.
    """
    kept, swapped = draws[~np.isnan(draws)], noise[~np.isnan(noise)]
    if len(kept) < 0.95 * len(draws) or np.ptp(kept) == 0.0 or not len(swapped):
        return no_interval(level)
    tail = (1.0 - level) / 2.0
    low, high = (float(end) for end in np.quantile(kept, [tail, 1.0 - tail]))
    high = min(1.0, max(high, 2.0 * value - low))
    method = f"percentile bootstrap of items, reflected above, {len(draws)} draws, PCG64"
    if value >= np.quantile(swapped, tail / 10.0):
        high, method = 1.0, method.replace("reflected above", "up to 1: no more than noise")
    return Interval(low=low, high=high, level=level, method=method)
