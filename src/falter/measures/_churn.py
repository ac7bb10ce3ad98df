"""Lost and gained, and how many of each come from asking again alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._parts import items_by_times
from falter.measures._resample import resampled_sums, student_bca, unit_codes, unit_sums
from falter.stats import no_interval

__all__ = ["Churn", "churn"]

Floats = NDArray[np.float64]
HALF = 0.5
# Stands for a ratio whose denominator is 0 in a resample: beyond every real one.
BEYOND = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """How many items turned wrong and right, and how many do each way when asked again.

    `ratio` is lost and gained over what asking again turns, both ways each.
    """

    lost: float
    gained: float
    items: int
    again: Estimate
    ratio: Estimate


def churn(
    before: ArrayLike,
    after: ArrayLike,
    asked_again: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Churn:
    """Items that turn when the prompt is changed, beside those that turn when it is asked again.

        lost = Σ_i share of pairs (k, l) with before_ik − after_il > 1/2, gained likewise
        again = n/2 · mean over items of the share of pairs k < l with |x_ik − x_il| > 1/2
        ratio = ((lost + gained)/n) / (2 again/n)

    Scores are items x times asked, NaN where missing. `asked_again` holds all scores x of the
    unchanged prompt; askings of one prompt are alike, so half of what differs turns each way.
    Pairs of single askings on both sides, so that many repeats make neither side calmer. Nothing
    asked twice: not_identified. Asking again turns nothing: the ratio is
    undefined_zero_denominator. Intervals: BCa bootstrap of items, or clusters; the ratio's has no
    upper end where that is at draws in which asking again turned nothing.
    """
    first, then, every = (
        items_by_times(name, side)
        for name, side in (("before", before), ("after", after), ("asked_again", asked_again))
    )
    if not len(first) == len(then) == len(every):
        sizes = (len(first), len(then), len(every))
        raise InvalidValue("before, after, asked_again", sizes, "the same items in each")
    lost, gained = _turned(first, then)
    either = ~np.isnan(lost)
    repeated = np.where(either, _differing(every), np.nan)
    asked = ~np.isnan(repeated)
    columns = np.stack(
        [np.where(either, lost + gained, 0.0), either, np.where(asked, repeated, 0.0), asked],
        axis=1,
    )
    items, total = int(either.sum()), columns.sum(axis=0)
    basis = partial(Basis, items=items, conditions=2, level=level, seed=seed)
    spread = _spread(columns[either], unit_codes(clusters, len(either))[either], replications, seed)
    moving = int((columns[:, 2] > 0.0).sum())
    again = basis(
        estimand="items that turn each way when the same prompt is asked again, items like these",
        excluded=int((~asked).sum()),
    )
    ratio = basis(
        estimand="items that turn under the recipe for each that turns when asked again, items "
        "like these",
        excluded=int((~asked).sum()),
    )
    return Churn(
        lost=float(np.nansum(lost)),
        gained=float(np.nansum(gained)),
        items=items,
        again=_again(again, total, spread, moving),
        ratio=_ratio_estimate(ratio, total, spread, moving),
    )


def _again(about: Basis, total: Floats, spread: tuple[Floats, Floats], moving: int) -> Estimate:
    measure = "churn.again"
    if not total[3]:
        return about.undefined(measure, "not_identified", "nothing was asked twice")
    count = about.items / 2.0
    interval = no_interval(about.level)
    if moving:
        value, draws, left_out = float(_share(total)), _share(spread[0]), _share(spread[1])
        interval = student_bca(value, draws, left_out, level=about.level, size=moving)
    return about.estimate(
        measure, count * float(_share(total)), interval.mapped(lambda share: count * share)
    )


def _ratio_estimate(
    about: Basis, total: Floats, spread: tuple[Floats, Floats], moving: int
) -> Estimate:
    measure = "churn.ratio"
    if not total[3]:
        return about.undefined(measure, "not_identified", "nothing was asked twice")
    if not moving:
        why = "asking again turned nothing"
        return about.undefined(measure, "undefined_zero_denominator", why)
    value, draws, left_out = float(_ratio(total)), _ratio(spread[0]), _ratio(spread[1])
    interval = student_bca(value, draws, left_out, level=about.level, size=moving)
    if interval.high is not None and interval.high >= BEYOND / 2.0:
        interval = replace(interval, high=None)
    return about.estimate(measure, value, interval)


def _turned(before: Floats, after: Floats) -> tuple[Floats, Floats]:
    """For every item the shares of pairs that fall and rise; NaN without a pair."""
    change = before[:, :, None] - after[:, None, :]
    present = ~np.isnan(change)
    count = present.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        fell = np.where(count > 0, (change > HALF).sum(axis=(1, 2)) / count, np.nan)
        rose = np.where(count > 0, (change < -HALF).sum(axis=(1, 2)) / count, np.nan)
    return fell, rose


def _differing(every: Floats) -> Floats:
    """For every item the share of its pairs of askings that differ; NaN without a pair."""
    left, right = np.triu_indices(every.shape[1], k=1)
    change = np.abs(every[:, left] - every[:, right])
    count = (~np.isnan(change)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Floats = np.where(count > 0, (change > HALF).sum(axis=1) / count, np.nan)
    return share


def _share(sums: Floats) -> Floats:
    """The share of items that asking again turns, either way."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 2] / sums[..., 3])


def _ratio(sums: Floats) -> Floats:
    """What turns under the recipe for each that turns when asked again."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (sums[..., 0] / sums[..., 1]) / _share(sums)
    return np.where(np.isinf(ratio), BEYOND, ratio)


def _spread(
    columns: Floats, codes: NDArray[np.intp], replications: int, seed: int
) -> tuple[Floats, Floats]:
    """The sums of the resamples, and those without one unit each."""
    units = unit_sums(columns, codes)
    if len(units) < 2:
        return units[:0], units[:0]
    return resampled_sums(units, replications, seed), units.sum(axis=0) - units
