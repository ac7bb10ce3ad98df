"""Outcomes that change with the prompt, compared with outcomes that change when it is repeated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from falter.measures.averages import mean_score, micro_average
from falter.measures.drops import accuracy_drop
from falter.measures.estimates import Basis, Clusters, Floats, items_by_times, vectors
from falter.measures.resample import resampled_sums, student_bca, unit_sums
from falter.measures.tables import outcome_array
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Interval, no_interval
from falter.stats.resampling import jackknife

# Scores that differ by at most this number count as equal.
SCORE_TOLERANCE = 1e-9
# A graded score flips if it moves by more than this share of its scale, unless repeats move it by
# more. Without a threshold a jitter of .0005 flipped 100 % of the items in simulations.
MIN_FLIP = 0.05
# This many repeat pairs are needed to know how far a repeat moves a graded score. With fewer than
# 19 pairs the rank ⌈.95(m + 1)⌉ lies beyond the largest move.
FEWEST_PAIRS = 20
# Stands for a ratio whose denominator is 0 in a resample: larger than every real ratio.
INFINITE_RATIO = 1e12


def turn_threshold(scores: ArrayLike, again: ArrayLike = (), *, turn: float = MIN_FLIP) -> float:
    """Return the distance by which a score must move to have flipped, for a panel and its scorer.

    `scores` are all scores of the panel in any shape, NaN where missing. For 0/1 scores any change
    is a flip. Graded scores flip if they move by more than `turn`. `again` has the moves between
    repeats of one prompt (later less first). If there are m >= 20, the threshold is at least the
    ⌈.95(m + 1)⌉-th smallest absolute move.
    """
    values, moves = (np.asarray(x, dtype=np.float64).ravel() for x in (scores, again))
    if np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        return SCORE_TOLERANCE
    moves = np.sort(np.abs(moves[~np.isnan(moves)]))
    if len(moves) < FEWEST_PAIRS:
        return turn
    return max(turn, float(moves[min(len(moves), math.ceil(0.95 * (len(moves) + 1))) - 1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipRate:
    """Flip rates under the perturbations and under repeats of the clean prompt.

    `rate` is over all conditions, and `conditions` has one rate for each. `again` is the rate of
    repeats, and `excess` is `rate` less `again`. A score flips if it moves by more than
    `threshold`.
    """

    rate: Estimate
    conditions: tuple[Estimate, ...]
    again: Estimate
    excess: Estimate
    threshold: float = SCORE_TOLERANCE


def flip_rate(
    baseline: ArrayLike,
    outcomes: ArrayLike,
    *,
    changed: ArrayLike | None = None,
    again: ArrayLike | None = None,
    threshold: float | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> FlipRate:
    """The share of changed cells whose outcome is not that of their item's baseline.

    Parameters
    ----------
    baseline : array_like of shape (items,) or (items, repeats)
    outcomes : array_like of shape (items, conditions) or (items, conditions, realisations)
        Without the baseline; NaN where missing. A cell with several outcomes counts by the share of
        its pairs with the baseline that differ.
    changed : array_like of shape (items, conditions)
        False for cells whose prompt was left alone; they do not count. None: all count.
    again : array_like of shape (items,) or (items, repeats)
        Outcomes of the baseline's prompt when it is repeated. None: the baseline's own repeats are
        compared. With neither, `again` and `excess` are not_identified.
    threshold : the distance above which two outcomes differ; None for the panel's `turn_threshold`
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    FlipRate
        The rates are averaged over items within a condition, then over conditions, with the
        two-sided interval of `mean_score`. `excess` is rate - again over the items that have both,
        paired.
    """
    first = items_by_times("baseline", baseline)
    cells = outcome_array(outcomes)
    repeats = first if again is None else _repeats(first, again)
    if threshold is None:
        moves = _moves(first, None if again is None else repeats)
        every = np.concatenate([first.ravel(), cells.ravel(), repeats.ravel()])
        threshold = turn_threshold(every, moves)
    flips = cell_flips(first, cells, threshold)
    if changed is not None:
        mask = np.asarray(changed, dtype=bool)
        if mask.shape != flips.shape:
            raise InvalidValue("changed", mask.shape, f"items x conditions, {flips.shape}")
        flips = np.where(mask, flips, np.nan)
    noise = _share_above(np.abs(_moves(first, None if again is None else repeats)), threshold, (1,))

    def share(measure: str, values: Floats, pairs_text: str) -> Estimate:
        estimate = mean_score(values, clusters=clusters, level=level)
        return replace(estimate, measure=measure, estimand=f"{pairs_text}, items like these")

    pairs_text = "share of changed cells whose outcome is not the baseline's"
    rate = share("flip_rate", flips, pairs_text)
    each = tuple(share("flip_rate", flips[:, [j]], pairs_text) for j in range(flips.shape[1]))
    same = "share of baseline outcomes that differ when repeated"
    if np.isnan(noise).all():
        why = "none: the baseline was asked once"
        again_rate = replace(
            rate, value=None, low=None, high=None, status="not_identified", method=why,
            measure="flip_rate.again", estimand=f"{same}, items like these", conditions=0, items=0,
        )  # fmt: skip
        excess = replace(
            again_rate, measure="flip_rate.excess", estimand=f"{pairs_text}, less the {same}"
        )
    else:
        again_rate = share("flip_rate.again", noise[:, None], same)
        excess = replace(
            micro_average(flips - noise[:, None], clusters=clusters, level=level),
            measure="flip_rate.excess",
            estimand=f"{pairs_text}, less the {same}, items like these",
        )
    return FlipRate(
        rate=rate, conditions=each, again=again_rate, excess=excess, threshold=threshold
    )


def cell_flips(baseline: Floats, cells: Floats, threshold: float = SCORE_TOLERANCE) -> Floats:
    """Return items x conditions: the share of pairs with a baseline outcome that differ.

    `baseline` is items x repeats, `cells` items x conditions x realisations. NaN for a cell without
    a pair.
    """
    gaps = np.abs(cells[:, :, :, None] - baseline[:, None, None, :])
    return _share_above(gaps, threshold, (2, 3))


def _repeats(baseline: Floats, again: ArrayLike) -> Floats:
    repeats = items_by_times("again", again)
    if len(repeats) != len(baseline):
        raise InvalidValue("again", repeats.shape, f"outcomes of {len(baseline)} items")
    return repeats


def _moves(baseline: Floats, again: Floats | None) -> Floats:
    """Return items x pairs of runs of the clean prompt: the move of the score.

    NaN where a score is missing. Without `again` the pairs are formed from the baseline's own runs.
    """
    if again is None:
        first, second = np.triu_indices(baseline.shape[1], k=1)
        return baseline[:, second] - baseline[:, first]
    pairs = baseline.shape[1] * again.shape[1]  # -1 would be ambiguous for zero items
    return (again[:, None, :] - baseline[:, :, None]).reshape(len(baseline), pairs)


def _share_above(gaps: Floats, threshold: float, axes: tuple[int, ...]) -> Floats:
    """Return the share of the known gaps above the threshold; NaN if none is known."""
    count = (~np.isnan(gaps)).sum(axis=axes)
    above = (gaps > threshold).sum(axis=axes)
    return np.where(count > 0, above / np.maximum(count, 1), np.nan)


# Lost and gained items, compared with flips among repeats.


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """Items that flipped to wrong (`lost`) and to right (`gained`).

    `again` is the number of items that flip in each direction when the unchanged prompt is
    repeated. `ratio` is lost + gained over twice `again`. `items` counts the items with both
    scores.
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
    threshold: float | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Churn:
    """Count the items that flip when the prompt is changed, and when it is only repeated.

        lost = Σ_i share of pairs (k, l) with before_ik − after_il > τ, gained likewise
        again = n/2 · mean over items of the share of pairs k < l with |x_ik − x_il| > τ
        ratio = ((lost + gained)/n) / (2 again/n)

    Parameters
    ----------
    before, after, asked_again : array_like of shape (items,) or (items, repeats)
        NaN where missing. `asked_again` has all scores x of the unchanged prompt. The repeats of a
        prompt are exchangeable, so half of their differences go each way.
    threshold : τ; None for the `turn_threshold` of all these scores
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    Churn
        No item with two repeats: not_identified. No flip among repeats: the ratio is
        undefined_zero_denominator. Two-sided intervals: BCa bootstrap of items, or clusters. The
        ratio's interval has no upper end if that end lies at draws without a flip among repeats.
        Fewer than 6 clusters with repeats: too_few_clusters.

    Notes
    -----
    All comparisons are between single repeats, so many repeats make neither side more stable.
    """
    first, scores_after, every = (
        items_by_times(name, side)
        for name, side in (("before", before), ("after", after), ("asked_again", asked_again))
    )
    if not len(first) == len(scores_after) == len(every):
        sizes = (len(first), len(scores_after), len(every))
        raise InvalidValue("before, after, asked_again", sizes, "the same items in each")
    moves = _moves(every, None)
    if threshold is None:
        scores = np.concatenate([x.ravel() for x in (first, scores_after, every)])
        threshold = turn_threshold(scores, moves)
    change = first[:, :, None] - scores_after[:, None, :]
    lost, gained = (_share_above(gap, threshold, (1, 2)) for gap in (change, -change))
    either = ~np.isnan(lost)
    repeated = np.where(either, _share_above(np.abs(moves), threshold, (1,)), np.nan)
    asked = ~np.isnan(repeated)
    columns = np.stack(
        [np.where(either, lost + gained, 0.0), either, np.where(asked, repeated, 0.0), asked],
        axis=1,
    )
    codes = cluster_codes(clusters, len(either))
    sums = _FlipSums(columns, unit_sums(columns[either], codes[either]), replications, seed)
    again = Basis(
        estimand="items that flip each way when the same prompt is repeated, items like these",
        items=int(either.sum()),
        conditions=2,
        excluded=int((~asked).sum()),
        clusters=None if clusters is None else len(np.unique(codes[asked])),
        level=level,
        seed=seed,
    )
    ratio = replace(
        again,
        estimand="items that flip under the recipe for each that flips when repeated, items "
        "like these",
    )
    return Churn(
        lost=float(np.nansum(lost)),
        gained=float(np.nansum(gained)),
        items=again.items,
        again=_again_estimate(again, sums),
        ratio=_ratio_estimate(ratio, sums),
    )


class _FlipSums:
    """Sums over items: flips, items with flips known, flips among repeats, items with repeats."""

    def __init__(self, columns: Floats, units: Floats, replications: int, seed: int) -> None:
        self.total = columns.sum(axis=0)
        self.flipped_again = int((columns[:, 2] > 0.0).sum())
        self.draws = self.left_out = units[:0]
        if len(units) > 1:
            self.draws = resampled_sums(units, replications, seed)
            self.left_out = units.sum(axis=0) - units

    def interval(self, statistic: Callable[[Floats], Floats], level: float) -> Interval:
        value = float(statistic(self.total))
        draws, left_out = statistic(self.draws), statistic(self.left_out)
        return student_bca(value, draws, left_out, level=level, size=self.flipped_again)


def _again_estimate(about: Basis, sums: _FlipSums) -> Estimate:
    measure = "churn.again"
    if not sums.total[3]:
        return about.undefined(measure, "not_identified", "nothing was asked twice")
    count = about.items / 2.0
    interval = no_interval(about.level)
    if sums.flipped_again:
        interval = sums.interval(_again_share, about.level).mapped(lambda share: count * share)
    return about.estimate(measure, count * float(_again_share(sums.total)), interval)


def _ratio_estimate(about: Basis, sums: _FlipSums) -> Estimate:
    measure = "churn.ratio"
    if not sums.total[3]:
        return about.undefined(measure, "not_identified", "nothing was asked twice")
    if not sums.flipped_again:
        why = "repeating flipped nothing"
        return about.undefined(measure, "undefined_zero_denominator", why)
    interval = sums.interval(_churn_ratio, about.level)
    if interval.high is not None and interval.high >= INFINITE_RATIO / 2.0:
        interval = replace(interval, high=None)
    return about.estimate(measure, float(_churn_ratio(sums.total)), interval)


def _again_share(sums: Floats) -> Floats:
    """Return the share of items that flip when repeated, in either direction."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums[..., 2] / sums[..., 3])


def _churn_ratio(sums: Floats) -> Floats:
    """Return the number of flips under the recipe per flip under a repeat."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (sums[..., 0] / sums[..., 1]) / _again_share(sums)
    return np.where(np.isinf(ratio), INFINITE_RATIO, ratio)


# The frequency of changed outcomes with an unchanged prompt.


def noise_floor(
    baseline: ArrayLike,
    repeat: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean over items of the share of repeat pairs whose scores differ.

    `baseline` is (items,) or (items, runs), NaN where missing. `repeat` has the scores of further
    runs in either shape; without it the baseline's own runs are the pairs. Scores differ if they
    are more than `threshold` apart, by default the `turn_threshold` of these scores. The two-sided
    interval is `mean_score`'s, also with clusters. Items without a pair are excluded. No item left:
    insufficient_data.
    """
    first = items_by_times("baseline", baseline)
    again = None if repeat is None else _repeats(first, repeat)
    moves = _moves(first, again)
    if threshold is None:
        scores = first.ravel() if again is None else np.concatenate([first.ravel(), again.ravel()])
        threshold = turn_threshold(scores, moves)
    shares = _share_above(np.abs(moves), threshold, (1,))
    return replace(
        mean_score(shares[:, None], clusters=clusters, level=level),
        measure="noise_floor",
        estimand="share of items whose score differs when the prompt is repeated, items like these",
        conditions=1,
    )


# The changes under a perturbation in excess of the changes under a repeat.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessChange:
    """Shares of items changed by the perturbation (`rate`) and by a repeat (`noise`).

    `excess` is their difference. `abbott` is the share of the otherwise stable items that were
    changed.
    """

    rate: Estimate
    noise: Estimate
    excess: Estimate
    abbott: Estimate


def excess_change(
    perturbed: ArrayLike, repeated: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> ExcessChange:
    """Return the share of items that a perturbation changes beyond the share that a repeat changes.

        excess = r − r0        abbott = (r − r0)/(1 − r0)

    r is the share of items changed by the perturbation, r0 the share changed by a repeat.

    Parameters
    ----------
    perturbed, repeated : array_like of shape (items,)
        1 where the output (or its score, or its quality) changed, else 0, NaN where unknown. Only
        items with both numbers count.
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    ExcessChange
        excess has `paired_difference`'s two-sided interval, abbott a jackknife t interval; rate and
        noise have none. abbott is below 0 if a repeat changes more. If a repeat changes every item,
        abbott is undefined_zero_denominator. Fewer than 6 clusters: too_few_clusters.

    References
    ----------
    Abbott (1925).
    """
    by_prompt, by_repeat = vectors("perturbed, repeated", perturbed, repeated)
    both = ~np.isnan(by_prompt + by_repeat)
    codes = cluster_codes(clusters, len(by_prompt))[both]
    x, y = by_prompt[both], by_repeat[both]
    basis = Basis(
        estimand="items changed by the perturbation, minus those changed by repeating, items "
        "like these",
        items=len(x),
        conditions=2,
        excluded=int((~both).sum()),
        clusters=None if clusters is None else len(np.unique(codes)),
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
        why = "repeating changes every item"
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
