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

# From so many items that seem to disagree on, or a quarter of all, the log scale is good enough.
FEW = 10.0
NAMES = ("mean score", "variance within items", "variance", "brittleness")


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

        pert = (J − 1)/J mean_i c_i (k − c_i)/(k (k − 1))        total = p (1 − p) + Var(p)
        brittleness = pert/total

    for items with c of k random cells right (other scores: s_i² in the place of the fraction); p is
    the mean and Var(p) its estimated sampling variance. Both are unbiased, whatever k and the
    outcomes are; their ratio can come out above 1. `outcomes` is items x all J conditions, NaN
    where a cell was not asked; every set of k cells is equally likely, as `balanced_mask` draws
    them. `baseline` is the condition that every item was asked in, if there is one: pairs with it
    then count by their own chance, and two more cells per item are needed.

    The items with cells are a random part of the `population` (by default, of the rows). Finite:
    about this table, so (1 - n/N) of the variance between items and all of the variance from asking
    some cells. The latter is estimated from fourth moments: from 4 random 0/1 cells per item; with
    fewer the interval stays that of the super-population, which is too wide. So 4 cells, on fewer
    items, cost no more than 3. With balanced masks, intervals and total are a little too large:
    Var(p) contains a difference between conditions that balance takes out.

    Intervals: t on the linear influence, on the log odds for shares; where fewer than 10 items seem
    to disagree, Clopper and Pearson's on scaled counts. Items with too few cells are counted as
    excluded. J < 2 or nothing but such items: not_identified; fewer than two others:
    insufficient_data; nothing varies: brittleness has undefined_zero_variance.
    """
    rows = MaskedRows.read(outcomes, baseline, population, least=2, target=target, level=level)
    if rows.status != "ok":
        mean, pert, total, brittleness = (_undefined(rows, what, rows.status) for what in NAMES)
        return MaskedComponents(mean=mean, pert=pert, total=total, brittleness=brittleness)
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
    """The average drop over all other conditions from the baseline and some of them for every item.

    The mean over items of baseline - the mean of the others asked, unbiased if these are a random
    part, each set equally likely; t interval. Finite: (1 - n/N) of the variance between items, plus
    that from asking some conditions, which shows from two of them per item on; with one the
    interval stays that of the super-population. Items without the baseline or without another are
    excluded.
    """
    rows = MaskedRows.read(outcomes, baseline, population, least=1, target=target, level=level)
    what = "mean of score(baseline) - score(condition)"
    if rows.status != "ok":
        return _undefined(rows, what, rows.status)
    drops = rows.baseline - rows.others
    variance = rows.sampling_variance(drops, rows.linear_mask(0.0, 1.0))
    value = float(drops.mean())
    interval = _tango(drops, variance, rows) if rows.binary else _t(value, variance, rows)
    return _estimate(rows, what, value, interval, variance)


def _mean(rows: MaskedRows) -> SampleEstimate:
    variance = _mean_variance(rows)
    value = float(rows.mean.mean())
    interval = _agresti_coull(value, variance, rows) if rows.binary else _t(value, variance, rows)
    return _estimate(rows, NAMES[0], value, interval, variance)


def _mean_variance(rows: MaskedRows) -> float:
    share = rows.width / rows.conditions
    return rows.sampling_variance(rows.mean, rows.linear_mask(0.0, share))


def _pert(rows: MaskedRows) -> SampleEstimate:
    value = float(rows.pert.mean())
    variance = rows.sampling_variance(rows.pert, rows.quadratic_mask(0.0, 0.0, 1.0))
    interval = _few(rows) or _log(value, variance, rows)
    if rows.binary and interval.high is not None:
        # No item of 0/1 scores has a variance above 1/4.
        interval = replace(interval, high=max(value, min(interval.high, 0.25)))
    return _estimate(rows, NAMES[1], value, interval, variance)


def _total(rows: MaskedRows, mean: SampleEstimate) -> SampleEstimate:
    """mean square − m² + Var(m), with the linear influence square − 2m · mean of an item.

    For 0/1 scores it is m (1 − m), flat at m = 1/2: its interval is the image of the mean's.
    """
    m = mean.value or 0.0
    value = float(rows.square.mean()) - m**2 + _mean_variance(rows)
    value = 0.0 if value <= 1e-14 else value
    influence = rows.square - 2.0 * m * rows.mean
    share = rows.width / rows.conditions
    mask = rows.linear_mask(share, -2.0 * m * share)
    variance = rows.sampling_variance(influence, mask)
    interval = _log(value, variance, rows)
    low, high = mean.interval.low, mean.interval.high
    if rows.binary and not rows.exact and low is not None and high is not None:
        ends = [low * (1.0 - low), high * (1.0 - high), value]
        most = [0.25] if low <= 0.5 <= high and low < high else []
        method = "m(1 - m) of the mean's interval"
        interval = Interval(low=min(ends), high=max(ends + most), level=rows.level, method=method)
    return _estimate(rows, NAMES[2], value, interval, variance)


def _brittleness(
    rows: MaskedRows,
    mean: SampleEstimate,
    pert: SampleEstimate,
    total: SampleEstimate,
) -> SampleEstimate:
    """B = pert/total, with the influence (pert − B (square − 2m · mean))/total of an item."""
    m, within, whole = mean.value or 0.0, pert.value or 0.0, total.value or 0.0
    if whole == 0.0:
        return _undefined(rows, NAMES[3], "undefined_zero_variance")
    value = within / whole
    weights = (-value / whole, 2.0 * value * m / whole, 1.0 / whole)
    influence = weights[0] * rows.square + weights[1] * rows.mean + weights[2] * rows.pert
    variance = rows.sampling_variance(influence, rows.quadratic_mask(*weights))
    interval = _few(rows)
    if interval is None:
        interval = _logit(value, variance, _log_odds_bias(rows, m, within, whole), rows)
    else:
        interval = interval.mapped(lambda end: end * (1.0 / whole))
    return _estimate(rows, NAMES[3], value, interval.clipped(0.0, max(1.0, value)), variance)


def _few(rows: MaskedRows) -> Interval | None:
    """An interval for the variance within items when hardly an item of 0/1 scores disagrees.

        k = (Σ v)² / Σ v²        s = Σ v² / Σ v

    The items' estimates v behave like k items of the size s among n − k that have none: the
    interval is s times Clopper and Pearson's for k of n. If none disagrees, s is the largest that
    the cells of an item can show.
    """
    if not rows.binary or rows.exact:
        return None
    v = rows.pert
    total, squares = float(v.sum()), float(np.square(v).sum())
    k = total**2 / squares if squares > 0.0 else 0.0
    if total < 0.0 or k >= FEW or k > rows.items / 4.0:
        return None
    s = squares / total if total > 0.0 else rows.largest
    interval = clopper_pearson(k, rows.items, level=rows.level).mapped(lambda end: end * s)
    return replace(interval, method="scaled clopper-pearson, few items disagree")


def _agresti_coull(value: float, variance: float, rows: MaskedRows) -> Interval:
    """Agresti and Coull's interval for as many independent items as have this variance."""
    if rows.exact:
        return _without_error(value, rows)
    items = value * (1.0 - value) / variance if variance > 0.0 else float(rows.items)
    interval = agresti_coull(value * items, items, level=rows.level)
    return replace(interval, method="agresti-coull, effective items")


def _tango(drops: Floats, variance: float, rows: MaskedRows) -> Interval:
    """Tango's interval on scaled counts of falls and rises, narrowed for a finite target.

        s = Σ x² / Σ |x|        b = Σ x⁺ / s        c = Σ x⁻ / s

    The items' drops x behave like b falls and c rises of the size s. A finite target has a smaller
    variance than Var(x)/n, and distances from the value shrink by the root of their ratio.
    """
    value = float(drops.mean())
    if rows.exact:
        return _without_error(value, rows)
    magnitude = float(np.abs(drops).sum())
    s = float(np.square(drops).sum()) / magnitude if magnitude > 0.0 else 1.0
    b, c = float(drops[drops > 0.0].sum()) / s, float(-drops[drops < 0.0].sum()) / s
    interval = tango(b, c, max(float(rows.items), b + c), level=rows.level)
    of_items = float(drops.var(ddof=1)) / rows.items
    shrink = math.sqrt(variance / of_items) if of_items > 0.0 else 1.0
    narrowed = interval.mapped(lambda end: value + shrink * (s * end - value))
    return narrowed.clipped(-1.0, 1.0)


def _t(value: float, variance: float, rows: MaskedRows) -> Interval:
    if variance <= 0.0:
        return _without_error(value, rows)
    half = _half_width(variance, rows)
    return Interval(low=value - half, high=value + half, level=rows.level, method="t over items")


def _log(value: float, variance: float, rows: MaskedRows) -> Interval:
    """value · exp(variance/(2 value²) ± t se/value): t on the log scale.

    The log of an unbiased estimate is too small by half its squared relative error.
    """
    if variance <= 0.0:
        return _without_error(value, rows)
    if value <= 0.0:
        return _t(value, variance, rows).clipped(min(0.0, value), math.inf)
    half = min(_half_width(variance, rows) / value, 300.0)
    centre = value * math.exp(min(variance / (2.0 * value**2), half))
    low, high = centre * math.exp(-half), centre * math.exp(half)
    return Interval(low=low, high=high, level=rows.level, method="t over items, log")


def _log_odds_bias(rows: MaskedRows, mean: float, within: float, whole: float) -> float:
    """How far the log odds of within/whole are too high: log within - log(whole - within).

    Each log is too small by half its squared relative error, as in `_log`.
    """
    between = whole - within
    if within <= 0.0 or between <= 0.0:
        return 0.0
    weights = (1.0, -2.0 * mean, -1.0)
    rest = rows.square - 2.0 * mean * rows.mean - rows.pert
    of_within = rows.sampling_variance(rows.pert, rows.quadratic_mask(0.0, 0.0, 1.0)) / within**2
    of_between = rows.sampling_variance(rest, rows.quadratic_mask(*weights)) / between**2
    return (of_between - of_within) / 2.0


def _logit(value: float, variance: float, bias: float, rows: MaskedRows) -> Interval:
    """t on the logit scale, whose standard error is se/(value (1 − value)), less the bias."""
    if variance <= 0.0:
        return _without_error(value, rows)
    if not 0.0 < value < 1.0:
        return _t(value, variance, rows)
    half = _half_width(variance, rows) / (value * (1.0 - value))
    centre = math.log(value) - math.log1p(-value) - max(-half, min(bias, half))
    low, high = (0.5 + 0.5 * math.tanh((centre + end) / 2.0) for end in (-half, half))
    return Interval(low=low, high=high, level=rows.level, method="t over items, logit")


def _half_width(variance: float, rows: MaskedRows) -> float:
    return student_quantile(rows.level, rows.items - 1) * math.sqrt(variance)


def _without_error(value: float, rows: MaskedRows) -> Interval:
    """No width where nothing is left to chance; no interval where nothing is known about it."""
    if rows.exact:
        method = "every cell asked, no sampling error"
        return Interval(low=value, high=value, level=rows.level, method=method)
    return no_interval(rows.level)


def _estimate(
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
