"""The items x conditions x runs table that the variance measures work on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.estimates import Basis, Bools, Clusters, Floats
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import cluster_codes, too_few_clusters
from falter.stats.intervals import Interval, clopper_pearson, no_interval
from falter.stats.mean import known_mean
from falter.stats.resampling import jackknife, jackknife_error
from falter.stats.variance import Components, components

# From this many varying items on, or a quarter of all, the jackknife is as good.
RARE_EVENT_LIMIT = 10.0
ESTIMAND = "these conditions, items like these"


def outcome_array(outcomes: ArrayLike) -> Floats:
    """Items x conditions x runs, also from items x conditions, or from nothing at all."""
    array = np.asarray(outcomes, dtype=np.float64)
    if array.ndim == 1 and array.size == 0:
        return np.zeros((0, 0, 1))
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] == 0:
        raise InvalidValue(
            "outcomes", array.shape, "items x conditions, or items x conditions x runs"
        )
    if np.isinf(array).any():
        raise InvalidValue("outcomes", "an infinite score", "finite numbers, NaN where missing")
    return array


@dataclass(frozen=True, kw_only=True)
class Table:
    """The items that are used, and which rows they are; `empty` are the conditions left out.

    `codes` is the cluster of every item, None without clusters.
    """

    cells: Floats
    rows: Bools
    level: float
    codes: NDArray[np.intp] | None = None
    empty: tuple[int, ...] = ()

    @classmethod
    def from_outcomes(cls, outcomes: ArrayLike, level: float) -> Table:
        """Items x conditions, or items x conditions x runs; rows with a NaN are left out."""
        array = outcome_array(outcomes)
        whole = np.asarray(~np.isnan(array).any(axis=(1, 2)))
        return cls(cells=array[whole], rows=whole, level=level)

    @classmethod
    def read_all(cls, outcomes: ArrayLike, level: float, clusters: Clusters = None) -> Table:
        """Every cell there is: only items and conditions without any are left out."""
        array = outcome_array(outcomes)
        seen = ~np.isnan(array)
        rows, columns = np.asarray(seen.any(axis=(1, 2))), seen.any(axis=(0, 2))
        empty = tuple(int(j) for j in np.flatnonzero(~columns)) if len(array) else ()
        codes = None
        if clusters is not None:
            codes = cluster_codes(clusters, len(array))[rows]
            codes = np.unique(codes, return_inverse=True)[1].astype(np.intp)
        cells = array[rows][:, columns] if len(array) else array
        return cls(cells=cells, rows=rows, level=level, codes=codes, empty=empty)

    @property
    def excluded(self) -> int:
        return int((~self.rows).sum())

    @property
    def runs(self) -> int:
        """The most outcomes that a cell has."""
        return int((~np.isnan(self.cells)).sum(axis=2).max(initial=1))

    @property
    def means(self) -> Floats:
        """Items x conditions: the mean over a cell's outcomes, NaN where it has none."""
        return known_mean(self.cells, axis=2)

    @property
    def is_complete(self) -> bool:
        """True if no cell is missing."""
        return not bool(np.isnan(self.cells).any())

    @property
    def clusters(self) -> int | None:
        return None if self.codes is None else int(self.codes.max(initial=-1)) + 1

    @property
    def binary(self) -> bool:
        return bool(np.isin(self.cells[~np.isnan(self.cells)], (0.0, 1.0)).all())

    @property
    def ceiling(self) -> float:
        """The largest variance component there can be."""
        width = self.cells.shape[1]
        return 0.25 * width / (width - 1) if self.binary else math.inf

    @property
    def status(self) -> EstimateStatus:
        """The reason that no component can be computed, or ok."""
        items, width = self.cells.shape[:2]
        if items and width < 2:
            return "not_identified"
        if items < 2 or self.clusters == 1:
            return "insufficient_data"
        has = (~np.isnan(self.means)).astype(np.float64)
        together = has.T @ has
        np.fill_diagonal(together, 0.0)
        return "ok" if together.max(initial=0.0) >= 2.0 else "insufficient_data"

    @cached_property
    def parts(self) -> Components:
        """The variance components, and without each item or cluster."""
        return components(self.cells, self.codes)

    @cached_property
    def parts_by_item(self) -> Components:
        """Return the components without each item in turn."""
        return self.parts if self.codes is None else components(self.cells)

    def quantity(
        self, measure: str, of: Callable[[Components], Floats], interval: Interval
    ) -> Estimate:
        """A function of the components, with its interval and its design effect."""
        values = of(self.parts)
        effect = None
        if self.codes is not None:
            by_item = jackknife_error(of(self.parts_by_item)[1:])
            by_cluster = jackknife_error(values[1:])
            effect = (by_cluster / by_item) ** 2 if by_item > 0.0 else None
        return self.estimate(measure, float(values[0]), interval, design_effect=effect)

    def estimate(
        self, measure: str, value: float, interval: Interval, design_effect: float | None = None
    ) -> Estimate:
        """The value with its interval, widened to the value where an estimate below 0 left it."""
        if few := too_few_clusters(self.clusters):
            none = no_interval(self.level, few)
            return self.basis.estimate(measure, value, none, status="too_few_clusters")
        basis = replace(self.basis, design_effect=design_effect)
        return basis.estimate(measure, value, interval)

    def undefined(self, measure: str, status: EstimateStatus, why: str) -> Estimate:
        return self.basis.undefined(measure, status, why)

    def all_undefined(self, measure: str, parts: Iterable[str]) -> dict[str, Estimate]:
        """The parts of a measure, where the table cannot be decomposed."""
        one_condition = self.status == "not_identified"
        why = "fewer than two conditions" if one_condition else "no two items with two conditions"
        return self.basis.all_undefined(measure, parts, self.status, why)

    @property
    def basis(self) -> Basis:
        return Basis(
            estimand=self.estimand,
            items=self.cells.shape[0],
            conditions=self.cells.shape[1],
            excluded=self.excluded,
            clusters=self.clusters,
            level=self.level,
        )

    @property
    def estimand(self) -> str:
        """The population that the numbers are about, the conditions that are left out named."""
        if not self.empty:
            return ESTIMAND
        numbers = ", ".join(str(j) for j in self.empty)
        return f"these conditions without {numbers} (no outcome), items like these"

    def few_vary(self, limit: float = RARE_EVENT_LIMIT, *, most: float = 0.25) -> Interval | None:
        """An interval for the variance within items (ddof 1) when hardly a 0/1 item varies.

            k = (Σ v)² / Σ v²        s = Σ v² / Σ v

        The items' variances v behave like k items of the size s among I − k that have none: the
        interval is s times Clopper and Pearson's for k of I. If not one item varies, s is the
        largest variance an item can have. Clusters divide k and I by the design effect of v, Σ_g
        (Σ_i v)²/Σ v²; if not one item varies, I is their number. None from k = `limit` or k >
        `most` · I on, for scores other than 0/1, for more runs, and where all items are the same.
        """
        if self.runs > 1 or not self.binary:
            return None
        cells = self.means
        counts = (~np.isnan(cells)).sum(axis=1)
        if np.ptp(np.nanmean(cells, axis=1)) == 0.0:
            return None
        pairs = counts >= 2
        width, items = cells.shape[1], float(pairs.sum())
        v = np.nanvar(cells[pairs], axis=1, ddof=1)
        total, squares = float(v.sum()), float(np.square(v).sum())
        k = total * total / squares if squares > 0.0 else 0.0
        if self.codes is not None:
            sums = np.bincount(self.codes[pairs], weights=v)
            effect = float(np.square(sums).sum()) / squares if squares > 0.0 else 1.0
            k, items = k / effect, items / effect if total > 0.0 else float(len(sums))
        largest = (width // 2) * ((width + 1) // 2) / (width * (width - 1))
        s = squares / total if total > 0.0 else largest
        if k >= limit or k > most * items:
            return None
        interval = clopper_pearson(k, items, level=self.level).mapped(lambda share: share * s)
        return replace(interval, method="scaled clopper-pearson, few items vary")


def share_of_few(interval: Interval, part: float, rest: float) -> Interval:
    """The interval of part/(part + rest) from that of a part which few items make.

    If more items varied, fewer would be left to make the rest: the whole stays about the same. So
    the ends are divided by the whole as it was seen, and not by themselves and the rest.
    """
    whole = part + rest
    return interval.mapped(lambda end: min(1.0, end / whole) if whole > 0.0 else 0.0)


# Which interval a variance component gets, and why.
#
# All of them are jackknives; `values` are the quantity of the whole table and then without item (or
# cluster) 1, 2, ... A mean of squares is skewed to the right, so the jackknife is of its log. A
# difference of mean squares, such as the item component, can be 0 or below: the log is of the first
# of the two, the other is held fixed. A share goes through the log of its odds, shifted in the same
# way. The total variance of 0/1 outcomes is m(1 − m), flat at m = 1/2: see `total_interval`.


def component_interval(table: Table, values: Floats, ceiling: float | None = None) -> Interval:
    """For a mean of squares: on the log scale, cut at the largest value it can have."""
    if len(values) < 4:
        return no_interval(table.level)
    interval = jackknife(float(values[0]), values[1:], transform="log", level=table.level)
    return interval.clipped(0.0, table.ceiling if ceiling is None else ceiling)


def difference_interval(table: Table, values: Floats, subtracted: float) -> Interval:
    """For a difference x − s of mean squares: the log interval of x = value + s, less s."""
    if len(values) < 4:
        return no_interval(table.level)
    s = max(0.0, subtracted)
    x = values + s
    interval = jackknife(float(x[0]), x[1:], transform="log", level=table.level)
    return interval.mapped(lambda end: end - s).clipped(-table.ceiling, table.ceiling)


def ratio_interval(table: Table, part: Floats, whole: Floats, shift: float = 0.0) -> Interval:
    """For a share part/whole = 1/(f + 1 − shift): through the log of f.

        f = (whole − part)/part + shift

    Without a shift that is the logit. With shift = 1/J and the residual as part, f is a ratio of
    mean squares, positive also where the item component is not.
    """
    if len(part) < 4 or not (whole > 0.0).all():
        return no_interval(table.level)
    if (part > 0.0).all() and ((whole - part) / part + shift > 0.0).all():
        f = (whole - part) / part + shift
        interval = jackknife(float(f[0]), f[1:], transform="log", level=table.level)
        if interval.low is None or interval.high is None:
            return interval
        # The share falls as f rises, so the ends change places; below f = shift - 1 it is 1.
        ends = (1.0 / (end + 1.0 - shift) for end in (interval.high, interval.low))
        low, high = (1.0 if end < 0.0 else end for end in ends)
        name = "jackknife t, log odds" if shift == 0.0 else "jackknife t, log ratio of mean squares"
        return Interval(low=low, high=high, level=table.level, method=name).clipped(0.0, 1.0)
    share = part / whole
    return jackknife(float(share[0]), share[1:], level=table.level).clipped(0.0, 1.0)


def total_interval(table: Table, total: Floats) -> Interval:
    """For the total variance: of 0/1 outcomes the image of the mean's interval under m(1 − m).

    The mean's interval is a jackknife on the logit scale. Where it contains 1/2 the image reaches
    up to 1/4, its largest value; a jackknife of the total itself fails there.
    """
    if not table.binary or len(total) < 4:
        return component_interval(table, total)
    means = table.parts.mean
    interval = jackknife(float(means[0]), means[1:], transform="logit", level=table.level)
    if interval.low is None or interval.high is None:
        return interval
    low, high = max(0.0, interval.low), min(1.0, interval.high)
    ends = (low * (1.0 - low), high * (1.0 - high))
    # The bounds contain the mean; the plug-in total differs from m(1 - m) by rounding alone.
    top = 0.25 if low <= 0.5 <= high else max(ends)
    return Interval(
        low=min(*ends, float(total[0])),
        high=max(top, float(total[0])),
        level=table.level,
        method=f"m(1 - m) of the mean's {interval.method}",
    )
