"""Whether a perturbation leaves the order of the models alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._ranks import rank_correlation, read_cases
from falter.measures._resample import check_replications
from falter.stats import Interval, no_interval

__all__ = ["RankAgreement", "rank_agreement"]

Floats = NDArray[np.float64]
# With three models a rank correlation has only four values: it says next to nothing.
MIN_RANKED_MODELS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement:
    """For every condition but the baseline the mean over tasks, and the same from noise alone.

    `excluded` counts the tasks left out because every model had the same accuracy.
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

    `outcomes[task]` is items x models x conditions, NaN where missing; column 0 is the baseline.
    Ties have average ranks; a task in which all models tie has no rho and is left out of the mean.
    Fewer than four models: insufficient_data, and nothing is computed.

    Items are drawn again through the whole pipeline, for all models at once. Sampling noise lowers
    a rank correlation, and resampling adds this bias a second time: the lower limit is the
    percentile of the draws, the upper limit the lower one mirrored at the value, or 1 where
    swapping explains the agreement: see `_agreement_interval`. `noise` is the same number after
    swapping baseline and condition within random items; its interval holds the draws, its
    `p_value` is the share of draws at or below the observed agreement.
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
        agreement, noise = (
            basis.undefined(measure, "insufficient_data", "fewer than four models")
            for measure in ("rank_agreement", "rank_agreement.noise")
        )
        count = len(conditions)
        return RankAgreement(
            conditions=conditions, agreement=(agreement,) * count, noise=(noise,) * count
        )
    values, draws, swaps = [], [], []
    for place, task in enumerate(tasks):
        values.append(_with_baseline(task.accuracies()))
        draws.append(_with_baseline(task.resampled(replications, (seed, place))))
        base, other = task.swapped(replications, (seed, place))
        swaps.append(rank_correlation(np.moveaxis(base, -1, -2), np.moveaxis(other, -1, -2)))
    value, draw, swap = (_mean_over_tasks(numbers) for numbers in (values, draws, swaps))
    tied = np.isnan(np.stack(values)).sum(axis=0)
    agreements, noises = [], []
    for j in range(len(conditions)):
        of_case = replace(basis, excluded=int(tied[j]))
        agreements.append(_agreement(value[j], draw[:, j], swap[:, j], of_case))
        noises.append(_noise(value[j], swap[:, j], of_case))
    return RankAgreement(conditions=conditions, agreement=tuple(agreements), noise=tuple(noises))


def _with_baseline(accuracies: Floats) -> Floats:
    """(..., models, conditions) to the (..., cases) correlations with the baseline."""
    by_condition = np.moveaxis(accuracies, -1, -2)
    return rank_correlation(by_condition[..., :1, :], by_condition[..., 1:, :])


def _mean_over_tasks(numbers: list[Floats]) -> Floats:
    """The mean over the tasks that have a number; NaN where none has."""
    stacked = np.stack(numbers)
    present = ~np.isnan(stacked)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(present, stacked, 0.0).sum(axis=0) / present.sum(axis=0))


def _agreement(value: float, draws: Floats, swaps: Floats, basis: Basis) -> Estimate:
    if np.isnan(value):
        return basis.undefined("rank_agreement", "undefined_zero_variance", "all models tie")
    interval = _agreement_interval(float(value), draws, swaps, basis.level)
    return basis.estimate("rank_agreement", float(value), interval)


def _noise(value: float, swaps: Floats, basis: Basis) -> Estimate:
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
