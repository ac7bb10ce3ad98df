"""Variance components and average drops from a random few of the conditions of each item."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import EstimateStatus
from falter.stats._interval import Interval, no_interval, student_quantile
from falter.stats._masked_rows import MaskedRows
from falter.stats._paired_proportions import tango
from falter.stats._proportions import agresti_coull, clopper_pearson
from falter.stats._target import SampleEstimate, Target, estimand

__all__ = ["MaskedComponents", "masked_components", "masked_drop"]

Floats = NDArray[np.float64]

FEW = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedComponents:
    """What the complete table would say: mean, variance within items and in all, their ratio."""

    mean: SampleEstimate
    pert: SampleEstimate
    total: SampleEstimate
    brittleness: SampleEstimate


def masked_components(
    outcomes: ArrayLike,
    *,
    baseline: int | None = None,
    population: int | None = None,
    target: Target = "super-population",
    level: float = 0.95,
) -> MaskedComponents:
    """The plug-in components of the complete items x conditions table from some of its cells.

    `outcomes` is items x all J conditions, NaN where a cell was not asked; which k cells of an item
    were asked is random, each set equally likely, as `balanced_mask` draws them. With c of k right,
    pert = (J - 1)/J mean_i c_i (k - c_i)/(k (k - 1)), the U-statistic s_i^2 for other scores;
    total = p (1 - p) + Var(p), with p the mean and Var(p) its estimated sampling variance.
    Both are unbiased, whatever k and the outcomes are; brittleness is their ratio, which can come
    out above 1. `baseline` is the condition that every item was asked in, if there is one: pairs
    with it then count by their own chance, and two more cells an item are needed.

    `population` items there are (else the rows given), of which those with cells are a random part.
    Finite: this table, (1 - n/N) of the variance between items and all of the variance from asking
    some cells. The latter is estimated from fourth moments: from 4 random 0/1 cells an item; with
    fewer the interval stays that of the super-population, which is too wide. So 4 cells, on fewer
    items, cost no more than 3. With balanced masks, intervals and total are the least bit too
    large: Var(p) contains a difference between conditions that balance takes out.

    Intervals: t on the linear influence, on the log odds for shares; where fewer than 10 items seem
    to disagree, Clopper and Pearson's on scaled counts. Items with too few cells are counted as
    excluded. J < 2 or nothing but such items: not_identified; fewer than two others:
    insufficient_data; nothing varies: brittleness has undefined_zero_variance.
    """
    rows = MaskedRows.read(outcomes, baseline, population, least=2, target=target, level=level)
    if rows.status != "ok":
        none = [_undefined(rows, what, rows.status) for what in _NAMES]
        return MaskedComponents(mean=none[0], pert=none[1], total=none[2], brittleness=none[3])
    mean = _mean(rows)
    total = _total(rows, mean)
    pert = _pert(rows)
    return MaskedComponents(
        mean=mean,
        pert=pert,
        total=total,
        brittleness=_brittleness(rows, mean, pert, total),
    )


def masked_drop(
    outcomes: ArrayLike,
    baseline: int,
    *,
    population: int | None = None,
    target: Target = "super-population",
    level: float = 0.95,
) -> SampleEstimate:
    """The average drop over all other conditions from the baseline and some of them an item.

    The mean over items of baseline - the mean of the others asked, unbiased if these are a random
    part, each set equally likely; t interval. Finite: (1 - n/N) of the variance between items, plus
    that from asking some conditions, which takes two of them an item; with one the interval stays
    that of the super-population. Items without the baseline or without another are excluded.
    """
    rows = MaskedRows.read(outcomes, baseline, population, least=1, target=target, level=level)
    what = "mean of score(baseline) - score(condition)"
    if rows.status != "ok":
        return _undefined(rows, what, rows.status)
    drops = rows.sure - rows.others
    variance = rows.sampling_variance(drops, rows.linear_mask(0.0, 1.0))
    value = float(drops.mean())
    interval = _tango(drops, variance, rows) if rows.binary else _t(value, variance, rows)
    return _made(rows, what, value, interval, variance)


_NAMES = ("mean score", "variance within items", "variance", "brittleness")


def _mean(rows: MaskedRows) -> SampleEstimate:
    variance = _mean_variance(rows)
    value = float(rows.mean.mean())
    interval = _share(value, variance, rows) if rows.binary else _t(value, variance, rows)
    return _made(rows, _NAMES[0], value, interval, variance)


def _mean_variance(rows: MaskedRows) -> float:
    share = rows.width / rows.conditions
    return rows.sampling_variance(rows.mean, rows.linear_mask(0.0, share))


def _pert(rows: MaskedRows) -> SampleEstimate:
    value = float(rows.pert.mean())
    variance = rows.sampling_variance(rows.pert, rows.quadratic_mask(0.0, 0.0, 1.0))
    interval = _few(rows) or _log(value, variance, rows)
    if rows.binary and interval.high is not None:  # no item of 0/1 scores varies more than that
        interval = replace(interval, high=max(value, min(interval.high, 0.25)))
    return _made(rows, _NAMES[1], value, interval, variance)


def _total(rows: MaskedRows, mean: SampleEstimate) -> SampleEstimate:
    """The variance of a cell; that of 0/1 scores is m (1 - m), which is flat at m = 1/2."""
    centre = mean.value or 0.0
    value = float(rows.square.mean()) - centre**2 + _mean_variance(rows)
    value = 0.0 if value <= 1e-14 else value
    influence = rows.square - 2.0 * centre * rows.mean
    share = rows.width / rows.conditions
    mask = rows.linear_mask(share, -2.0 * centre * share)
    variance = rows.sampling_variance(influence, mask)
    interval = _log(value, variance, rows)
    low, high = mean.interval.low, mean.interval.high
    if rows.binary and not rows.exact and low is not None and high is not None:
        ends = [low * (1.0 - low), high * (1.0 - high), value]
        top = [0.25] if low <= 0.5 <= high and low < high else []
        method = "m(1 - m) of the mean's interval"
        interval = Interval(low=min(ends), high=max(ends + top), level=rows.level, method=method)
    return _made(rows, _NAMES[2], value, interval, variance)


def _brittleness(
    rows: MaskedRows,
    mean: SampleEstimate,
    pert: SampleEstimate,
    total: SampleEstimate,
) -> SampleEstimate:
    centre, within, whole = mean.value or 0.0, pert.value or 0.0, total.value or 0.0
    if whole == 0.0:
        return _undefined(rows, _NAMES[3], "undefined_zero_variance")
    value = within / whole
    weights = (-value / whole, 2.0 * value * centre / whole, 1.0 / whole)
    influence = weights[0] * rows.square + weights[1] * rows.mean + weights[2] * rows.pert
    variance = rows.sampling_variance(influence, rows.quadratic_mask(*weights))
    interval = _few(rows)
    if interval is None:
        interval = _logit(value, variance, _shift(rows, centre, within, whole), rows)
    else:
        interval = _scaled(interval, 1.0 / whole)
    return _made(rows, _NAMES[3], value, _cut(interval, 0.0, max(1.0, value)), variance)


def _few(rows: MaskedRows) -> Interval | None:
    """An interval for the variance within items when hardly an item of 0/1 scores disagrees.

    Their estimates v behave like k = (sum v)^2/(sum v^2) items of the size sum v^2/sum v among the
    rest that have none. If none disagrees, the size is the largest that k cells can show.
    """
    if not rows.binary or rows.exact:
        return None
    found = rows.pert
    sum_, squares = float(found.sum()), float(np.square(found).sum())
    count = sum_**2 / squares if squares > 0.0 else 0.0
    if sum_ < 0.0 or count >= FEW or count > rows.items / 4.0:
        return None
    size = squares / sum_ if sum_ > 0.0 else rows.largest
    return _scaled(clopper_pearson(count, rows.items, level=rows.level), size)


def _share(value: float, variance: float, rows: MaskedRows) -> Interval:
    """Agresti and Coull's interval for as many independent items as have this variance."""
    if rows.exact:
        return _nothing(value, rows)
    items = value * (1.0 - value) / variance if variance > 0.0 else float(rows.items)
    found = agresti_coull(value * items, items, level=rows.level)
    return replace(found, method="agresti-coull, effective items")


def _tango(drops: Floats, variance: float, rows: MaskedRows) -> Interval:
    """Tango's interval on scaled counts of falls and rises, drawn in for a finite target.

    With s = sum x^2/sum |x|, items behave like sum x+/s falls and sum x-/s rises of the size s.
    """
    if rows.exact:
        return _nothing(float(drops.mean()), rows)
    value, size = float(drops.mean()), float(np.abs(drops).sum())
    scale = float(np.square(drops).sum()) / size if size > 0.0 else 1.0
    b, c = float(drops[drops > 0.0].sum()) / scale, float(-drops[drops < 0.0].sum()) / scale
    found = tango(b, c, max(float(rows.items), b + c), level=rows.level)
    whole = float(drops.var(ddof=1)) / rows.items
    drawn = math.sqrt(variance / whole) if whole > 0.0 else 1.0
    low, high = (value + drawn * (scale * (end or 0.0) - value) for end in (found.low, found.high))
    return _cut(replace(found, low=low, high=high), -1.0, 1.0)


def _t(value: float, variance: float, rows: MaskedRows) -> Interval:
    if variance <= 0.0:
        return _nothing(value, rows)
    half = _half(variance, rows)
    return Interval(low=value - half, high=value + half, level=rows.level, method="t over items")


def _log(value: float, variance: float, rows: MaskedRows) -> Interval:
    if variance <= 0.0:
        return _nothing(value, rows)
    if value <= 0.0:
        return _cut(_t(value, variance, rows), min(0.0, value), math.inf)
    half = min(_half(variance, rows) / value, 300.0)
    # The log of an unbiased estimate is too small by half its squared relative error.
    centre = value * math.exp(min(variance / (2.0 * value**2), half))
    low, high = centre * math.exp(-half), centre * math.exp(half)
    return Interval(low=low, high=high, level=rows.level, method="t over items, log")


def _shift(rows: MaskedRows, mean: float, within: float, whole: float) -> float:
    """How far the log odds of within/whole are too high: log within - log(whole - within)."""
    between = whole - within
    if within <= 0.0 or between <= 0.0:
        return 0.0
    weights = (1.0, -2.0 * mean, -1.0)
    rest = rows.square - 2.0 * mean * rows.mean - rows.pert
    first = rows.sampling_variance(rows.pert, rows.quadratic_mask(0.0, 0.0, 1.0)) / within**2
    second = rows.sampling_variance(rest, rows.quadratic_mask(*weights)) / between**2
    return (second - first) / 2.0


def _logit(value: float, variance: float, shift: float, rows: MaskedRows) -> Interval:
    if variance <= 0.0:
        return _nothing(value, rows)
    if not 0.0 < value < 1.0:
        return _t(value, variance, rows)
    half = _half(variance, rows) / (value * (1.0 - value))
    centre = math.log(value) - math.log1p(-value) - max(-half, min(shift, half))
    low, high = (0.5 + 0.5 * math.tanh((centre + end) / 2.0) for end in (-half, half))
    return Interval(low=low, high=high, level=rows.level, method="t over items, logit")


def _half(variance: float, rows: MaskedRows) -> float:
    return student_quantile(rows.level, rows.items - 1) * math.sqrt(variance)


def _nothing(value: float, rows: MaskedRows) -> Interval:
    """Nothing left to chance, or nothing known about it."""
    if rows.exact:
        return Interval(
            low=value, high=value, level=rows.level, method="complete, no sampling error"
        )
    return no_interval(rows.level)


def _cut(interval: Interval, least: float, most: float) -> Interval:
    if interval.low is None or interval.high is None:
        return interval
    return replace(interval, low=max(least, interval.low), high=min(most, interval.high))


def _scaled(interval: Interval, size: float) -> Interval:
    if interval.low is None or interval.high is None:
        return interval
    method = "scaled clopper-pearson, few items disagree"
    return replace(interval, low=interval.low * size, high=interval.high * size, method=method)


def _made(
    rows: MaskedRows, what: str, value: float, interval: Interval, variance: float
) -> SampleEstimate:
    return SampleEstimate(
        value=value,
        status="ok",
        interval=interval,
        standard_error=None if interval.low is None else math.sqrt(variance),
        items=rows.items,
        excluded=rows.excluded,
        estimand=estimand(what, rows.target, rows.population),
    )


def _undefined(rows: MaskedRows, what: str, status: EstimateStatus) -> SampleEstimate:
    return SampleEstimate(
        value=None,
        status=status,
        interval=no_interval(rows.level),
        standard_error=None,
        items=rows.items,
        excluded=rows.excluded,
        estimand=estimand(what, rows.target, rows.population),
    )
