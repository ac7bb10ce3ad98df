"""Decompose a drop: by the state of the replies, and into answer extraction, meaning and serving.

Both views add up to the drop exactly. What is left after the corrections is the wording's part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.drops import accuracy_drop
from falter.measures.estimates import Basis, Bools, Clusters, Floats, items_by_times
from falter.measures.resample import unit_codes
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import cluster_parts, too_few_clusters
from falter.stats.intervals import (
    Interval,
    clopper_pearson,
    no_interval,
    outer,
    student_quantile,
    wilson_interval,
)
from falter.stats.mean import item_mean
from falter.stats.rates import rate

CORRECTIONS = ("reading", "meaning", "serving")
STATES = ("another answer", "refused", "cut off", "unreadable")
_ESTIMANDS = {
    "reading": "what of the drop goes away when a second reader reads the unread answers, items "
    "like these",
    "meaning": "what of the drop goes away without the items whose meaning check fails, items "
    "like these",
    "serving": "what of the drop goes away without the items that were served differently from "
    "their baseline, items like these",
    "wording": "what of the drop is left after all corrections, items like these",
}
NOTHING = "none: nothing to correct"
# With fewer touched items MOVER fell to 86.6 %, so that exact limits are multiplied.
FEW_TOUCHED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DropParts:
    """A drop and the parts that add up to it; `corrected` says how many items each one touched."""

    drop: Estimate
    reading: Estimate
    meaning: Estimate
    serving: Estimate
    wording: Estimate
    corrected: tuple[int, ...]

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """The four parts, in the order in which they are shown."""
        return self.reading, self.meaning, self.serving, self.wording

    @property
    def leaves_out_zero(self) -> bool:
        """Return True if the drop's interval excludes zero."""
        return _leaves_out_zero(self.drop) is True

    @property
    def wording_known(self) -> bool:
        """Return True if the part of the wording has an interval."""
        return _leaves_out_zero(self.wording) is not None

    @property
    def shown(self) -> tuple[Estimate, ...]:
        """The parts that are shown to be there: their interval lies above 0."""
        return tuple(part for part in self.parts if part.low is not None and part.low > 0.0)

    @property
    def not_the_wording(self) -> bool:
        """Return True if the drop is shown, its wording part is not, and another part is."""
        return self.leaves_out_zero and bool(self.shown) and self.wording not in self.shown


def drop_parts(
    before: ArrayLike,
    after: ArrayLike,
    *,
    reread: tuple[ArrayLike, ArrayLike] | None = None,
    meaning_fails: ArrayLike | None = None,
    served_differently: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> DropParts:
    """Return the parts of a drop that a misread answer, a changed meaning or another server made.

        y' = max(y, second reader's score)        reading = D − D'
        wording = D'_R        meaning + serving = D' − D'_R = s (D'_T − D'_R)

    D is the drop of the scores y, D' that of y'. T are the items whose meaning check fails or that
    were served differently, R the other items, s = |T|/n. An item with both marks counts half in
    each part. So D = reading + meaning + serving + wording.

    `before` and `after` are items, or items x times asked: what is observed, with unread answers as
    0 and NaN only for what failed. `reread` are a second reader's scores where the first could not
    read the answer, NaN elsewhere and where the second cannot either: such an answer stays wrong.
    The masks are of the cells of `after`, or its items; an item is marked if any of its cells is.
    What is None was not looked at: its part is `not_identified`, and the wording part holds it. A
    correction that touches nothing is 0 and has no interval. No item left in R: insufficient_data.

    Reading and wording have the interval of a paired difference. A part s δ, δ = D'_T − D'_R, has

        low = sδ − √((δ(s − s_δ))² + (s(δ − δ_l))²)

    with δ by MOVER, s_δ Wilson's lower end if δ > 0 and else the upper, and the upper limit
    likewise. Of fewer than 10 touched items it is the least and largest product of the ends of
    Clopper and Pearson's interval of s and those of δ. In clusters every interval is at least as
    wide as the CR2 t interval; a T that lies in one cluster can have any drop.
    Source: Zou and Donner (2008).
    """
    sides = items_by_times("before", before), items_by_times("after", after)
    if len(sides[0]) != len(sides[1]):
        raise InvalidValue("before, after", (len(sides[0]), len(sides[1])), "the same items twice")
    again = _reread(sides, reread)
    shape = sides[1].shape
    marks = [
        _mask(name, mask, shape)
        for name, mask in (
            ("meaning_fails", meaning_fails),
            ("served_differently", served_differently),
        )
    ]
    plain, corrected = (np.subtract(*map(_mean, pair)) for pair in (sides, again))
    items = ~np.isnan(plain)
    seen = ~np.isnan(sides[1])
    marked = np.stack([(mark & seen).any(axis=1) & items for mark in marks], axis=1)
    found_again = (plain != corrected) & items
    codes = None if clusters is None else unit_codes(clusters, len(plain))[items]
    basis = Basis(
        estimand="",
        items=int(items.sum()),
        conditions=2,
        excluded=int((~items).sum()),
        clusters=None if codes is None else len(np.unique(codes)),
        level=level,
    )
    work = _Work(basis=basis, drops=corrected[items], marked=marked[items], codes=codes)
    looked_at = (reread is not None, meaning_fails is not None, served_differently is not None)
    touched = (int(found_again.sum()), *map(int, marked.sum(axis=0)))
    drop = accuracy_drop(_mean(sides[0]), _mean(sides[1]), clusters=clusters, level=level)
    parts = {}
    for k, name in enumerate(CORRECTIONS):
        about = replace(basis, estimand=_ESTIMANDS[name])
        measure = f"drop_parts.{name}"
        if not looked_at[k]:
            parts[name] = about.undefined(measure, "not_identified", "it was not looked at")
        elif drop.value is None:
            parts[name] = about.undefined(measure, "insufficient_data", "fewer than two items")
        elif not touched[k]:
            none = replace(no_interval(level), method=NOTHING)
            parts[name] = about.estimate(measure, 0.0, none)
        elif name == "reading":
            parts[name] = work.plain(measure, about, (plain - corrected)[items])
        else:
            parts[name] = work.of_marked(measure, about, k - 1)
    about = replace(basis, estimand=_ESTIMANDS["wording"])
    if any(touched) and drop.value is not None:
        wording = work.of_the_rest("drop_parts.wording", about)
    else:
        wording = replace(drop, measure="drop_parts.wording", estimand=about.estimand)
    return DropParts(drop=drop, corrected=touched, wording=wording, **parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The corrected drops of the items, the marks of each, and their clusters."""

    basis: Basis
    drops: Floats
    marked: Bools
    codes: NDArray[np.intp] | None

    @property
    def rest(self) -> Bools:
        return np.asarray(~self.marked.any(axis=1))

    def plain(self, measure: str, about: Basis, values: Floats) -> Estimate:
        """Return the mean of one number per item as a part."""
        return about.estimate(
            measure,
            float(values.mean()),
            self._interval(values, self.codes),
            status=self._status(),
        )

    def of_the_rest(self, measure: str, about: Basis) -> Estimate:
        """Return the drop of the items without a mark."""
        rest = self.rest
        if rest.sum() < 2:
            return about.undefined(measure, "insufficient_data", "no item is left when corrected")
        values, codes = self.drops[rest], None if self.codes is None else self.codes[rest]
        interval = self._interval(values, codes)
        return about.estimate(measure, float(values.mean()), interval, status=self._status())

    def of_marked(self, measure: str, about: Basis, k: int) -> Estimate:
        """Return the part of one mark; an item with both counts half in each."""
        rest, level = self.rest, about.level
        if rest.sum() < 2:
            return about.undefined(measure, "insufficient_data", "no item is left when corrected")
        touched = self.marked[:, k]
        weight = touched / np.maximum(1, self.marked.sum(axis=1))
        share = float(weight.mean())
        codes_t, codes_r = (None if self.codes is None else self.codes[x] for x in (touched, rest))
        drop_t = float((weight * self.drops).sum() / weight.sum())
        drop_r = float(self.drops[rest].mean())
        delta = drop_t - drop_r
        if self._status() != "ok":
            why = too_few_clusters(about.clusters) or ""
            none = no_interval(level, why)
            return about.estimate(measure, share * delta, none, status="too_few_clusters")
        one = _ends(self._interval(self.drops[touched], codes_t), drop_t)
        two = _ends(self._interval(self.drops[rest], codes_r), drop_r)
        low = delta - math.hypot(drop_t - one[0], two[1] - drop_r)
        high = delta + math.hypot(one[1] - drop_t, drop_r - two[0])
        shares = self._shares(weight, share)
        if touched.sum() < FEW_TOUCHED:
            products = [s * d for s in shares for d in (low, high)]
            ends, method = (min(products), max(products)), "clopper-pearson times MOVER"
        else:
            ends, method = _product(share, shares, delta, (low, high)), "MOVER of share and drop"
        interval = Interval(low=max(-1.0, ends[0]), high=min(1.0, ends[1]), level=level,
                            method=method)  # fmt: skip
        return about.estimate(measure, share * delta, interval)

    def _shares(self, weight: Floats, share: float) -> tuple[float, float]:
        """Return both ends of the share of marked items."""
        level, count, items = self.basis.level, float(weight.sum()), len(weight)
        exact = (weight > 0.0).sum() < FEW_TOUCHED
        interval = (clopper_pearson if exact else wilson_interval)(count, items, level=level)
        if self.codes is not None:
            clustered = rate(weight, clusters=self.codes.tolist(), level=level).interval
            interval = interval if clustered.low is None else outer(interval, clustered)
        return _ends(interval, share)

    def _interval(self, values: Floats, codes: NDArray[np.intp] | None) -> Interval:
        """Return the wider of the paired interval and, in clusters, of CR2's t interval."""
        level = self.basis.level
        paired = item_mean(values, level=level).interval
        if codes is None:
            return paired.clipped(-1.0, 1.0)
        if self._status() != "ok":
            return no_interval(level, too_few_clusters(self.basis.clusters) or "")
        value, present = float(values.mean()), np.ones((len(values), 1), np.bool_)
        parts, one = cluster_parts((values - value)[:, None], present, codes), np.ones(1)
        freedom = parts.freedom(one, np.array([len(values)]))
        half = student_quantile(level, freedom) * parts.error(one) if freedom > 0.0 else 2.0
        method = "wider of the paired interval and t over clusters, CR2"
        by_cluster = Interval(low=value - half, high=value + half, level=level, method=method)
        whole = by_cluster if paired.low is None else outer(by_cluster, paired)
        return whole.clipped(-1.0, 1.0)

    def _status(self) -> EstimateStatus:
        return "too_few_clusters" if too_few_clusters(self.basis.clusters) else "ok"


def _product(
    share: float, shares: tuple[float, float], delta: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Return MOVER's limits of share times difference, from the limits of both."""
    nearer, farther = shares if delta > 0.0 else shares[::-1]
    low = math.hypot(delta * (share - nearer), share * (delta - ends[0]))
    high = math.hypot(delta * (farther - share), share * (ends[1] - delta))
    return share * delta - low, share * delta + high


def _ends(interval: Interval, value: float) -> tuple[float, float]:
    """Return both ends around the value; any drop where nothing is known, as of one item."""
    if interval.low is None or interval.high is None:
        return -1.0, 1.0
    return min(interval.low, value), max(interval.high, value)


def drop_by_state(
    before: ArrayLike,
    after: ArrayLike,
    states: tuple[ArrayLike, ArrayLike],
    *,
    names: tuple[str, ...] = STATES,
    clusters: Clusters = None,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Return where the points of a drop went: for each state of a reply its part of the drop.

    `states` are the places in `names` of the replies before and after, one for each item. A lost
    item has the state of its perturbed reply, a gained item that of its baseline's reply:

        part = (lost in the state − gained from it)/n

    The parts add up to the drop. Each has the interval of a paired difference.
    """
    first, then = (np.asarray(x, dtype=np.float64) for x in (before, after))
    was, is_now = (np.asarray(x) for x in states)
    if not first.shape == then.shape == was.shape == is_now.shape or first.ndim != 1:
        shapes = (first.shape, then.shape, was.shape, is_now.shape)
        raise InvalidValue("before, after, states", shapes, "one of each for every item")
    lost, gained = np.maximum(first - then, 0.0), np.maximum(then - first, 0.0)
    return {
        name: replace(
            accuracy_drop(
                np.where(np.isnan(lost) | (is_now == k), lost, 0.0),
                np.where(np.isnan(gained) | (was == k), gained, 0.0),
                clusters=clusters,
                level=level,
            ),
            measure="drop_by_state",
            estimand=f"part of the drop whose replies are: {name}, items like these",
        )
        for k, name in enumerate(names)
    }


def _leaves_out_zero(estimate: Estimate) -> bool | None:
    """Return True if the interval lies on one side of zero; None where there is none."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return None
    return low > 0.0 or high < 0.0


def _reread(
    sides: tuple[Floats, Floats], reread: tuple[ArrayLike, ArrayLike] | None
) -> tuple[Floats, Floats]:
    """Return the scores with the right answers that the second reader recovers."""
    if reread is None:
        return sides
    again = []
    for side, second in zip(sides, (items_by_times("reread", x) for x in reread), strict=True):
        if side.shape != second.shape:
            raise InvalidValue("reread", second.shape, f"the cells that were read, {side.shape}")
        again.append(np.where(np.isnan(side), np.nan, np.fmax(side, second)))
    return again[0], again[1]


def _mask(name: str, mask: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    if mask is None:
        return np.zeros(shape, np.bool_)
    cells = np.asarray(mask, dtype=np.bool_)
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.shape not in (shape, (shape[0], 1)):
        raise InvalidValue(name, cells.shape, f"the cells of after, {shape}, or its items")
    return np.broadcast_to(cells, shape)


def _mean(cells: Floats) -> Floats:
    """The mean of every row; NaN where a row has nothing."""
    present = ~np.isnan(cells)
    count = present.sum(axis=1)
    total = np.where(present, cells, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
