"""Decompose a drop by the state of the replies, and into effects of the test and the wording."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.estimates import Basis, Bools, Clusters, Floats, items_by_times
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.intervals import Interval, clopper_pearson, no_interval, outer, wilson_interval
from falter.stats.mean import known_mean

STATES = ("another", "unparsed", "truncated", "refused")
"""States of a reply that lost a point: another answer, or no answer, by its reason."""
_UNPARSED, _TRUNCATED = STATES.index("unparsed"), STATES.index("truncated")
BLAMES = ("reading", "meaning", "serving")
_ESTIMANDS = {
    "reading": "right answers that only a second reader finds, before less after",
    "meaning": "what of the drop items whose meaning check fails add",
    "serving": "what of the drop items that were served differently add",
    "wording": "the drop among the items that neither concerns, read by both readers",
}
NOTHING_TO_CORRECT = "none: nothing to correct"
# With fewer touched items the normal approximation fails: MOVER covered 86.6 % with 1 to 5 of them.
# The exact ends of the share are multiplied instead.
MIN_TOUCHED_ITEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DropParts:
    """A drop, and two sets of parts that each add up to it.

    `states` has the points by the state of the reply (`STATES`). `unrecovered` has the same for the
    points that the second extractor does not recover. `reading`, `meaning` and `serving` may be
    attributed to the test, and `wording` is the remainder. `corrected` counts the items of
    `BLAMES`.
    """

    drop: Estimate
    reading: Estimate
    meaning: Estimate
    serving: Estimate
    wording: Estimate
    states: Mapping[str, Estimate]
    unrecovered: Mapping[str, Estimate]
    corrected: tuple[int, ...]

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """The four parts, in the order in which they are shown."""
        return self.reading, self.meaning, self.serving, self.wording

    @property
    def blamed(self) -> str | None:
        """The largest effect of the test that is shown.

        None if there is none, or if the wording's effect is shown as well.
        """
        if shown(self.wording):
            return None
        found = [name for name in BLAMES if shown(getattr(self, name))]
        return max(found, key=lambda name: getattr(self, name).low, default=None)


def shown(estimate: Estimate) -> bool:
    """Return True if the interval of a part lies above 0."""
    return estimate.low is not None and estimate.low > 0.0


def drop_parts(
    before: ArrayLike,
    after: ArrayLike,
    *,
    states: tuple[ArrayLike, ArrayLike] | None = None,
    reread: tuple[ArrayLike, ArrayLike] | None = None,
    meaning_fails: ArrayLike | None = None,
    served_differently: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> DropParts:
    """Split a drop D by the state of the replies, and by its possible causes in the test.

    By state s: (points lost in replies after in s − points gained from replies before in s)/n.

    By cause: y' is a reply's corrected score. It is the larger of its score and the second
    extractor's score if the reply is unparsed or truncated, else its score. D' is the drop of y'. T
    are the touched items (their meaning check failed, or they were served differently), R the other
    items, s = |T|/n:

        reading = D − D'    meaning + serving = s(D'_T − D'_R)    wording = D'_R

    An item with both marks counts half in each part. A reply that the second extractor cannot parse
    stays wrong, and so does a refusal.

    Parameters
    ----------
    before, after : array_like of shape (items,) or (items, repeats)
        Scores; unparsed replies are 0, and NaN is only for failed requests.
    states : for the same cells, indices into `STATES`; None: every reply is another answer
    reread : the second extractor's scores for the same cells, NaN where it finds no answer
    meaning_fails, served_differently : masks of the cells of `after`, or of its items
    clusters : the cluster of each item; None for independent items
    level : two-sided confidence level

    Returns
    -------
    DropParts
        If `reread`, `meaning_fails` or `served_differently` is None, its part is not_identified,
        and the wording contains it. A part that touches no item is 0 and has no interval.

    Notes
    -----
    Reading, wording and the states have the paired interval of their items. Meaning and serving
    have that of a product of a share (Wilson) and a difference (MOVER). With fewer than 10 touched
    items it has the extreme products of exact ends. Source: Zou and Donner (2008).
    """
    sides = items_by_times("before", before), items_by_times("after", after)
    if len(sides[0]) != len(sides[1]):
        raise InvalidValue("before, after", (len(sides[0]), len(sides[1])), "the same items twice")
    kinds = _like("states", states or tuple(np.zeros(side.shape) for side in sides), sides)
    again = _like("reread", reread or tuple(np.full(side.shape, np.nan) for side in sides), sides)
    options: dict[str, Any] = {"clusters": clusters, "level": level}
    means = known_mean(sides[0]), known_mean(sides[1])
    drop = accuracy_drop(*means, **options)
    kept = ~np.isnan(means[0] - means[1])
    corrected = _corrected(sides[0], kinds[0], again[0]), _corrected(sides[1], kinds[1], again[1])
    states_left = (
        # A reply that the second extractor recovers is an answer like any other from here on.
        np.where(corrected[0] > sides[0], 0.0, kinds[0]),
        np.where(corrected[1] > sides[1], 0.0, kinds[1]),
    )
    remaining = known_mean(corrected[0]) - known_mean(corrected[1])
    # The part of the drop that the second extractor removes; below 0 if the drop becomes larger.
    recovered = means[0] - means[1] - remaining
    marks = [
        None if mask is None else _item_mask(name, mask, sides[1]) & kept
        for name, mask in (("meaning_fails", meaning_fails),
                           ("served_differently", served_differently))
    ]  # fmt: skip
    none = np.zeros(len(remaining), np.bool_)
    either, both = (
        np.asarray(join(*(none if mark is None else mark for mark in marks)))
        for join in (np.logical_or, np.logical_and)
    )
    # Only untouched items: their drop cannot be blamed on the test.
    rest = _paired_mean(np.where(either, np.nan, remaining), options)
    reading = _paired_mean(recovered, options)
    found = [np.asarray((now > was).any(axis=1)) for now, was in zip(corrected, sides, strict=True)]
    counts = [int(((found[0] | found[1]) & kept).sum()),
              *(0 if mark is None else int(mark.sum()) for mark in marks)]  # fmt: skip
    parts: dict[str, Estimate] = {
        "wording": rest,
        "reading": _reading_part(reading, counts[0], looked_at=reread is not None),
    }
    for name, mark in zip(BLAMES[1:], marks, strict=True):
        parts[name] = _touched_part(mark, both, remaining, rest, drop, options)
    named = {
        name: replace(part, measure=f"drop_parts.{name}", p_value=None,
                      estimand=f"{_ESTIMANDS[name]}, items like these")
        for name, part in parts.items()
    }  # fmt: skip
    return DropParts(
        drop=drop,
        states=_parts_by_state(sides, kinds, options),
        unrecovered=_parts_by_state(corrected, states_left, options),
        corrected=tuple(counts),
        **named,
    )


def _like(name: str, pair: Any, sides: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return both arrays as items x repeats; raise unless they have the shapes of `sides`."""
    first, second = (items_by_times(name, side) for side in pair)
    for side, other in zip(sides, (first, second), strict=True):
        if side.shape != other.shape:
            raise InvalidValue(name, other.shape, f"the cells that were read, {side.shape}")
    return first, second


def _item_mask(name: str, mask: ArrayLike, cells: Floats) -> Bools:
    """Return True for each item with any marked cell that has a score."""
    marks = np.asarray(mask, dtype=np.bool_)
    marks = marks[:, None] if marks.ndim == 1 else marks
    if marks.shape not in (cells.shape, (len(cells), 1)):
        raise InvalidValue(name, marks.shape, f"the cells of after, {cells.shape}, or its items")
    return np.asarray((marks & ~np.isnan(cells)).any(axis=1))


def _corrected(cells: Floats, kinds: Floats, reread: Floats) -> Floats:
    """Return the scores, with the right answers that only the second extractor finds."""
    can_rescue = np.isin(kinds, (_UNPARSED, _TRUNCATED)) & ~np.isnan(reread)
    # The larger score only: a second extractor may rescue a reply, it must not overrule the first.
    return np.where(can_rescue, np.fmax(cells, reread), cells)


def _paired_mean(numbers: Floats, options: Mapping[str, Any]) -> Estimate:
    """Return the mean of numbers from −1 to 1 with the paired interval."""
    # Splitting a difference into its positive and negative part counts it as falls and rises.
    return accuracy_drop(np.maximum(numbers, 0.0), np.maximum(-numbers, 0.0), **options)


def _parts_by_state(
    sides: tuple[Floats, Floats],
    kinds: tuple[Floats, Floats],
    options: Mapping[str, Any],
) -> dict[str, Estimate]:
    """Return the part of the drop for each state; "another" gets the remainder."""
    parts, means = {}, (known_mean(sides[0]), known_mean(sides[1]))
    rest = means[0] - means[1]
    for code, name in enumerate(STATES[1:], start=1):
        shares = [known_mean(np.where(np.isnan(side), np.nan, kind == code))
                  for side, kind in zip(sides, kinds, strict=True)]  # fmt: skip
        # Points lost to replies in this state after, less points gained from such replies before.
        parts[name] = shares[1] * means[0] - shares[0] * means[1]
        rest = rest - parts[name]
    parts[STATES[0]] = rest
    return {
        name: replace(
            _paired_mean(numbers, options),
            measure=f"drop_parts.state.{name}",
            estimand="points lost to replies of this kind, items like these",
            p_value=None,
        )
        for name, numbers in parts.items()
    }


def _reading_part(part: Estimate, recovered: int, *, looked_at: bool) -> Estimate:
    if not looked_at:
        return _without(part, "not_identified", None, "none: it was not looked at")
    if recovered == 0 and part.value is not None:
        return _without(part, "ok", 0.0, NOTHING_TO_CORRECT)
    return part


def _without(part: Estimate, status: Any, value: float | None, method: str) -> Estimate:
    return replace(part, value=value, status=status, low=None, high=None, method=method)


def _touched_part(
    mark: Bools | None,
    both: Bools,
    remaining: Floats,
    rest: Estimate,
    drop: Estimate,
    options: Mapping[str, Any],
) -> Estimate:
    """Return s(D'_T − D'_R) for the items of one mark, with its interval."""
    if mark is None:
        return _without(drop, "not_identified", None, "none: it was not looked at")
    if drop.value is None:
        return _without(drop, "insufficient_data", None, "none: fewer than two items")
    if not mark.any():
        return _without(drop, "ok", 0.0, NOTHING_TO_CORRECT)
    if rest.value is None:
        return _without(drop, "insufficient_data", None, "none: no item is left when corrected")
    # An item with both marks counts half for each mark, so no part is counted twice.
    weights = np.where(mark, np.where(both, 0.5, 1.0), 0.0)
    n = int((~np.isnan(remaining)).sum())
    share = float(weights.sum()) / n
    mean = float((weights * np.nan_to_num(remaining)).sum() / weights.sum())
    value = share * (mean - rest.value)
    basis = Basis(estimand="", items=n, conditions=2, clusters=drop.clusters, level=drop.level)
    if rest.low is None or rest.high is None or drop.low is None:
        return replace(basis.estimate("", value, no_interval(drop.level)), excluded=drop.excluded)
    # MOVER assumes roughly normal interval ends; with a handful of items they are not normal.
    few = int(mark.sum()) < MIN_TOUCHED_ITEMS
    ends = _share_of_items(mark & ~np.isnan(remaining), ~np.isnan(remaining), few=few, **options)
    touched = _paired_mean(np.where(mark, remaining, np.nan), {"level": drop.level})
    if options["clusters"] is not None:
        touched = _widened(touched, _paired_mean(np.where(mark, remaining, np.nan), options))
    low = -1.0 if touched.low is None else touched.low
    high = 1.0 if touched.high is None else touched.high
    delta = mean - rest.value
    # MOVER: the distances to the ends of two independent means, added as squares.
    below = math.hypot(mean - low, rest.high - rest.value)
    above = math.hypot(high - mean, rest.value - rest.low)
    start, end = _product_ends(share, ends, delta, (delta - below, delta + above), few=few)
    method = "exact ends of the share" if few else "Wilson and MOVER, product"
    interval = Interval(low=start, high=end, level=drop.level, method=method)
    return replace(basis.estimate("", value, interval), excluded=drop.excluded)


def _widened(one: Estimate, other: Estimate) -> Estimate:
    """Return the first estimate, its interval widened to contain the second's.

    The result has no interval unless both have one.
    """
    if other.low is None or other.high is None or one.low is None or one.high is None:
        return replace(one, low=None, high=None)
    return replace(one, low=min(one.low, other.low), high=max(one.high, other.high))


def _share_of_items(
    mark: Bools, kept: Bools, *, few: bool, clusters: Clusters, level: float
) -> tuple[float, float]:
    """Return the ends of the interval for the share of touched items."""
    count, n = int(mark.sum()), int(kept.sum())
    interval = (clopper_pearson if few else wilson_interval)(count, n, level=level)
    if clusters is not None:
        of_clusters = accuracy(np.where(kept, mark, np.nan), clusters=clusters, level=level)
        known = of_clusters.low is not None
        wide = Interval(
            low=of_clusters.low if known else 0.0,
            high=of_clusters.high if known else 1.0,
            level=level,
            method="",
        )
        interval = outer(interval, wide)
    return interval.low or 0.0, 1.0 if interval.high is None else interval.high


def _product_ends(
    share: float,
    ends: tuple[float, float],
    delta: float,
    reach: tuple[float, float],
    *,
    few: bool,
) -> tuple[float, float]:
    """Return the ends of the interval of a share times a difference, from both intervals."""
    if few:
        corners: NDArray[np.float64] = np.outer(ends, reach)
        return float(corners.min()), float(corners.max())
    # For a negative difference the larger share leads to the lower end.
    nearer, farther = ends if delta > 0.0 else ends[::-1]
    low = share * delta - math.hypot(delta * (share - nearer), share * (delta - reach[0]))
    high = share * delta + math.hypot(delta * (farther - share), share * (reach[1] - delta))
    return low, high
