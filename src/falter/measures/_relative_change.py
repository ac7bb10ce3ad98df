"""How much a mean changed, as a share of what it was."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._resample import sums_interval, unit_codes, unit_sums

__all__ = ["net_relative_change", "relative_change"]

Floats = NDArray[np.float64]


def relative_change(
    old: ArrayLike,
    new: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Estimate:
    """(mean new − mean old)/mean old over the items that have both: the ratio of two means.

    Never the mean of ratios, which a few items near 0 decide. A fraction, below 0 for a loss. BCa
    bootstrap of items (or clusters), old and new drawn together; no interval where the old mean
    changes its sign in more than one draw of twenty: report such a change in points. Old mean 0:
    undefined_zero_denominator; fewer than two items: insufficient_data.
    """

    def statistic(sums: Floats) -> Floats:
        # From the sums of 1, old and new
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums[..., 2] / sums[..., 1] - 1.0)

    arms = [old, new]
    return _estimate("relative_change", arms, statistic, clusters, level, replications, seed)


def net_relative_change(
    old: ArrayLike,
    new: ArrayLike,
    repeat: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Estimate:
    """The relative change less that of asking the same prompt again, with one interval for both.

    (mean new − mean repeat)/mean old over the items that have all three; see `relative_change`. One
    repetition is itself a draw: the interval allows for that, a table of two percentages does not.
    """

    def statistic(sums: Floats) -> Floats:
        # From the sums of 1, old, new and repeat
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((sums[..., 2] - sums[..., 3]) / sums[..., 1])

    arms = [old, new, repeat]
    return _estimate("net_relative_change", arms, statistic, clusters, level, replications, seed)


def _estimate(
    measure: str,
    arms: list[ArrayLike],
    statistic: Callable[[Floats], Floats],
    clusters: Sequence[Hashable] | None,
    level: float,
    replications: int,
    seed: int,
) -> Estimate:
    vectors = [np.asarray(arm, dtype=np.float64) for arm in arms]
    shapes = {v.shape for v in vectors}
    if len(shapes) > 1 or vectors[0].ndim != 1:
        raise InvalidValue("old, new", sorted(shapes), "vectors of the same items")
    table = np.column_stack(vectors)
    whole = np.logical_not(np.isnan(table).any(axis=1))
    basis = Basis(
        estimand="relative change of the mean score, items like these",
        items=int(whole.sum()),
        conditions=len(arms),
        excluded=int((~whole).sum()),
        level=level,
        seed=seed,
    )
    codes = unit_codes(clusters, len(table))[whole]
    if basis.items < 2:
        return basis.undefined(measure, "insufficient_data", "fewer than two items")
    units = unit_sums(np.column_stack([np.ones(basis.items), table[whole]]), codes)
    sums = units.sum(axis=0)
    if abs(sums[1]) <= 1e-12 * np.abs(units[:, 1]).sum():
        return basis.undefined(measure, "undefined_zero_denominator", "the old mean is 0")
    sign = np.sign(sums[1])

    def with_the_sign(draws: Floats) -> Floats:
        return np.asarray(np.where(draws[..., 1] * sign > 0.0, statistic(draws), np.nan))

    interval = sums_interval(
        units, with_the_sign, level=level, replications=replications, seed=seed
    )
    return basis.estimate(measure, float(statistic(sums)), interval)
