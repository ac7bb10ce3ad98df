"""How many outcomes change with the prompt, beside how many change when it is asked again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures.averages import mean_score, micro_average
from falter.measures.drop_decomposition import items_by_times
from falter.measures.drops import accuracy_drop
from falter.measures.estimates import Basis, Clusters, Floats
from falter.measures.resample import resampled_sums, student_bca, unit_codes, unit_sums
from falter.measures.tables import outcome_array
from falter.stats import jackknife, no_interval, wilson_interval

# Scores this close are the same.
SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipRate:
    """`rate` over all conditions, `conditions` of each, `again` of asking again, and by how much
    `rate` is above that: `excess`.
    """

    rate: Estimate
    conditions: tuple[Estimate, ...]
    again: Estimate
    excess: Estimate


def flip_rate(
    baseline: ArrayLike,
    outcomes: ArrayLike,
    *,
    changed: ArrayLike | None = None,
    again: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> FlipRate:
    """The share of changed cells whose outcome is not that of their item's baseline.

    `baseline` is one outcome per item, or items x repeats; `outcomes` items x conditions (x
    realisations) without the baseline, NaN where missing. Cells that `changed` (items x conditions)
    says the prompt was left alone in do not count. A cell asked several times counts by the share
    of its pairs with the baseline that differ by more than 1e-9. Averaged over items within a
    condition and then over conditions, with the interval of `mean_score`.

    `again` is what came of the baseline's prompt asked again, one outcome per item or items x
    repeats; without it the baseline's own repeats are compared, and with neither it is
    not_identified. `excess` is rate - again over the items that have both.
    """
    first = _columns("baseline", baseline, None)
    cells = outcome_array(outcomes)
    flips = cell_flips(first, cells)
    if changed is not None:
        mask = np.asarray(changed, dtype=bool)
        if mask.shape != flips.shape:
            raise InvalidValue("changed", mask.shape, f"items x conditions, {flips.shape}")
        flips = np.where(mask, flips, np.nan)
    noise = flips_of_asking_again(first, again)

    def share(measure: str, values: Floats, what: str) -> Estimate:
        estimate = mean_score(values, clusters=clusters, level=level)
        return replace(estimate, measure=measure, estimand=f"{what}, items like these")

    what = "share of changed cells whose outcome is not the baseline's"
    rate = share("flip_rate", flips, what)
    each = tuple(share("flip_rate", flips[:, [j]], what) for j in range(flips.shape[1]))
    same = "share of baseline outcomes that differ when asked again"
    if np.isnan(noise).all():
        why = "none: the baseline was asked once"
        gone = replace(
            rate, value=None, low=None, high=None, status="not_identified", method=why,
            measure="flip_rate.again", estimand=f"{same}, items like these", conditions=0, items=0,
        )  # fmt: skip
        return FlipRate(
            rate=rate,
            conditions=each,
            again=gone,
            excess=replace(gone, measure="flip_rate.excess", estimand=f"{what}, less the {same}"),
        )
    difference = micro_average(flips - noise[:, None], clusters=clusters, level=level)
    return FlipRate(
        rate=rate,
        conditions=each,
        again=share("flip_rate.again", noise[:, None], same),
        excess=replace(
            difference,
            measure="flip_rate.excess",
            estimand=f"{what}, less the {same}, items like these",
        ),
    )


def cell_flips(baseline: Floats, cells: Floats) -> Floats:
    """Items x conditions: the share of pairs with a baseline outcome that differ; NaN for none."""
    with np.errstate(invalid="ignore"):
        different = np.abs(cells[:, :, :, None] - baseline[:, None, None, :]) > SAME
    known = ~np.isnan(cells)[:, :, :, None] & ~np.isnan(baseline)[:, None, None, :]
    return _shares(different & known, known, (2, 3))


def flips_of_asking_again(baseline: Floats, again: ArrayLike | None) -> Floats:
    """For every item the share of pairs of runs of its clean prompt that differ; NaN for none."""
    if again is not None:
        return cell_flips(baseline, _columns("again", again, len(baseline))[:, None, :])[:, 0]
    first, second = np.triu_indices(baseline.shape[1], k=1)
    x, y = baseline[:, first], baseline[:, second]
    known = ~np.isnan(x + y)
    with np.errstate(invalid="ignore"):
        different = np.abs(x - y) > SAME
    return _shares(different & known, known, (1,))


def _shares(
    different: NDArray[np.bool_], known: NDArray[np.bool_], axes: tuple[int, ...]
) -> Floats:
    count = known.sum(axis=axes)
    return np.where(count > 0, different.sum(axis=axes) / np.maximum(count, 1), np.nan)


def _columns(name: str, values: ArrayLike, items: int | None) -> Floats:
    """Items x repeats, also from one outcome per item."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or (items is not None and len(array) != items):
        raise InvalidValue(name, array.shape, "one outcome per item, or items x repeats")
    return array


# Lost and gained, and how many of each come from asking again alone.


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
    clusters: Clusters = None,
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


# How often an outcome changes when nothing was changed.


def noise_floor(baseline: ArrayLike, repeat: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The share of items whose score differs between two runs of the same prompt.

    Wilson's interval. Scores within 1e-9 are the same. Items that lack one of the runs are
    excluded; none left: insufficient_data.
    """
    run, rerun = np.asarray(baseline, dtype=float), np.asarray(repeat, dtype=float)
    if run.ndim != 1 or run.shape != rerun.shape:
        expected = "two vectors of the same items, one score for every item"
        raise InvalidValue("baseline, repeat", (run.shape, rerun.shape), expected)
    change = np.abs(run - rerun)
    present = change[~np.isnan(change)]
    changed = int((present > SAME).sum())
    interval = wilson_interval(changed, len(present), level=level)
    return Estimate(
        measure="noise_floor",
        value=changed / len(present) if len(present) else None,
        status="ok" if len(present) else "insufficient_data",
        estimand="share of items whose score differs when they are asked again, items like these",
        low=interval.low,
        high=interval.high,
        level=level,
        method=interval.method,
        items=len(present),
        conditions=1,
        excluded=len(change) - len(present),
    )


# What a perturbation changes beyond what asking again changes.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessChange:
    """`rate` and `noise` are the shares changed by the perturbation and by asking again; `excess`
    is their difference, `abbott` the share of the otherwise stable items that were changed.
    """

    rate: Estimate
    noise: Estimate
    excess: Estimate
    abbott: Estimate


def excess_change(
    perturbed: ArrayLike, repeated: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> ExcessChange:
    """How many more items a perturbation changes than asking again does.

        excess = r − r0        abbott = (r − r0)/(1 − r0)

    r is the share of items changed by the perturbation, r0 that changed by asking again. Both
    arguments have one 0/1 number for every item, 1 where the output (or its score, or its quality)
    changed, NaN where not known; only items with both count. excess has `paired_difference`'s
    interval; abbott a jackknife t interval, and is below 0 where asking again changes more. Every
    item changes anyway: abbott is undefined_zero_denominator. Source: Abbott (1925).
    """
    by_prompt, by_repeat = _paired(perturbed, repeated)
    both = ~np.isnan(by_prompt + by_repeat)
    codes = unit_codes(clusters, len(by_prompt))[both]
    x, y = by_prompt[both], by_repeat[both]
    basis = Basis(
        estimand="items changed by the perturbation, less those changed by asking again, items "
        "like these",
        items=len(x),
        conditions=2,
        excluded=int((~both).sum()),
        level=level,
    )
    excess = replace(
        accuracy_drop(by_prompt, by_repeat, clusters=clusters, level=level),
        measure="excess_change",
        estimand=basis.estimand,
    )
    rate, noise = (
        basis.estimate(f"excess_change.{name}", float(changed.mean()), no_interval(level))
        if len(changed)
        else basis.undefined(f"excess_change.{name}", "insufficient_data", "no item has both")
        for name, changed in (("rate", x), ("noise", y))
    )
    # Abbott's formula from sums of 1, x and y over units, and without each of the units.
    measure = "excess_change.abbott"
    units = unit_sums(np.column_stack([np.ones(len(x)), x, y]), codes)
    n, changed, changed_anyway = units.sum(axis=0)
    if len(x) < 2:
        abbott = basis.undefined(measure, "insufficient_data", "fewer than two items")
    elif changed_anyway == n:
        why = "asking again changes every item"
        abbott = basis.undefined(measure, "undefined_zero_denominator", why)
    else:
        value = float((changed - changed_anyway) / (n - changed_anyway))
        left_out = units.sum(axis=0) - units
        stable = left_out[:, 0] - left_out[:, 2]
        interval = no_interval(level)
        if (stable > 0.0).all() and len(units) > 2:
            interval = jackknife(value, (left_out[:, 1] - left_out[:, 2]) / stable, level=level)
        abbott = basis.estimate(measure, value, interval)
    return ExcessChange(rate=rate, noise=noise, excess=excess, abbott=abbott)


def _paired(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidValue("both arms", (x.shape, y.shape), "two vectors of the same items")
    return x, y
