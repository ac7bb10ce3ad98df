"""Whether a perturbation leaves the order of the models alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._ranks import Cases, Coefficient, correlation, read_cases
from falter.measures._resample import check_replications
from falter.stats import Interval, no_interval

__all__ = ["RankAgreement", "rank_agreement"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement:
    """For every perturbation the mean over tasks, what noise alone gives, and every task's.

    `excluded` of `agreement` and `noise` counts the tasks left out because every model had the same
    accuracy.
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
    `baselines` gives for every column the one it is compared with (a baseline: its own number).
    Ties have average ranks; a task in which all models tie has no rho and is left out of the mean.
    Fewer than three models: insufficient_data. `coefficient="kendall"` gives tau-b.

    Items are drawn again through the whole pipeline, for all models at once. Noise lowers a rank
    correlation, and that of draws twice: the lower end is their percentile, the upper end the lower
    one reflected at the value, or 1 where swapping explains the agreement: see `_interval`. `noise`
    is the same number after swapping baseline and condition within random items; its interval holds
    the draws, its `p_value` is the share of draws at or below the observed agreement.
    """
    check_replications(replications)
    tasks = read_cases(outcomes, baselines)
    values, draws, swaps = [], [], []
    for place, task in enumerate(tasks):
        values.append(_pairwise(task.accuracies(), task, coefficient))
        resampled = task.resampled(replications, (seed, place))
        draws.append(_pairwise(resampled, task, coefficient))
        base, other = task.swapped(replications, (seed, place))
        swaps.append(
            correlation(np.moveaxis(base, -1, -2), np.moveaxis(other, -1, -2), coefficient)
        )
    basis = Basis(
        estimand=f"{coefficient} of the models' accuracies, baseline against condition, these "
        "models and tasks, items like these",
        items=sum(len(task.table) for task in tasks),
        conditions=2,
        level=level,
        seed=seed,
    )
    too_few = tasks[0].models < 3
    value, draw, swap = (_mean_over_tasks(numbers) for numbers in (values, draws, swaps))
    tied = np.isnan(np.stack(values)).sum(axis=0)
    agreement, noise = [], []
    for j in range(len(tasks[0].pairs)):
        of_case = replace(basis, excluded=int(tied[j]))
        agreement.append(
            _agreement("rank_agreement", value[j], draw[:, j], swap[:, j], of_case, too_few)
        )
        noise.append(_noise(value[j], swap[:, j], of_case, too_few))
    return RankAgreement(
        conditions=tuple(j for _, j in tasks[0].pairs),
        agreement=tuple(agreement),
        noise=tuple(noise),
        by_task={
            task.name: tuple(
                _agreement(
                    "rank_agreement.task", v, d, s, replace(basis, items=len(task.table)), too_few
                )
                for v, d, s in zip(value, draw.T, swap.T, strict=True)
            )
            for task, value, draw, swap in zip(tasks, values, draws, swaps, strict=True)
        },
    )


def _pairwise(accuracies: Floats, task: Cases, coefficient: Coefficient) -> Floats:
    """(..., models, conditions) to (..., cases)."""
    by_condition = np.moveaxis(accuracies, -1, -2)
    base = by_condition[..., [b for b, _ in task.pairs], :]
    return correlation(base, by_condition[..., [j for _, j in task.pairs], :], coefficient)


def _mean_over_tasks(numbers: list[Floats]) -> Floats:
    """The mean over the tasks that have a number; NaN where none has."""
    stacked = np.stack(numbers)
    present = ~np.isnan(stacked)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(present, stacked, 0.0).sum(axis=0) / present.sum(axis=0))


def _agreement(
    measure: str, value: float, draws: Floats, swaps: Floats, basis: Basis, too_few: bool
) -> Estimate:
    if too_few:
        return basis.undefined(measure, "insufficient_data", "fewer than three models")
    if np.isnan(value):
        return basis.undefined(measure, "undefined_zero_variance", "all models tie")
    return basis.estimate(measure, float(value), _interval(float(value), draws, swaps, basis.level))


def _noise(value: float, swaps: Floats, basis: Basis, too_few: bool) -> Estimate:
    measure = "rank_agreement.noise"
    known = swaps[~np.isnan(swaps)]
    if too_few:
        return basis.undefined(measure, "insufficient_data", "fewer than three models")
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


def _interval(value: float, draws: Floats, swaps: Floats, level: float) -> Interval:
    """From the lower percentile of the draws to its reflection, or to 1.

    Models whose accuracies are close have a rank correlation that is biased far down, by an amount
    the draws do not show. If one tenth of a tail of the swaps is at or below the value, the order
    may not have changed at all. Simulated coverage is 90 to 99 %, the lower end nearly always.
    """
    known, swapped = draws[~np.isnan(draws)], swaps[~np.isnan(swaps)]
    if len(known) < 0.95 * len(draws) or np.ptp(known) == 0.0 or not len(swapped):
        return no_interval(level)
    tail = (1.0 - level) / 2.0
    low, high = (float(end) for end in np.quantile(known, [tail, 1.0 - tail]))
    high = min(1.0, max(high, 2.0 * value - low))
    method = f"percentile bootstrap of items, reflected above, {len(draws)} draws, PCG64"
    if value >= np.quantile(swapped, tail / 10.0):
        high, method = 1.0, method.replace("reflected above", "up to 1: no more than noise")
    return Interval(low=low, high=high, level=level, method=method)
