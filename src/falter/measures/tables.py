"""The items x conditions x runs table of the variance measures, with their intervals."""

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

# From this many varying items on, or a quarter of all, the jackknife is accurate enough.
RARE_EVENT_LIMIT = 10.0
ESTIMAND = "these conditions, items like these"


def outcome_array(outcomes: ArrayLike) -> Floats:
    """Return items x conditions x runs, also from items x conditions, or from an empty list.

    Raise InvalidValue for other shapes and for infinite scores. NaN is a missing outcome.
    """
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
    """The cells of the used items, with the rows that these items have in the input.

    `codes` has the cluster of every item, None without clusters. `empty` has the indices of the
    conditions without any outcome, which are left out.
    """

    cells: Floats
    rows: Bools
    level: float
    codes: NDArray[np.intp] | None = None
    empty: tuple[int, ...] = ()

    @classmethod
    def from_outcomes(cls, outcomes: ArrayLike, level: float) -> Table:
        """Return a table of the complete rows of items x conditions (x runs)."""
        array = outcome_array(outcomes)
        whole = np.asarray(~np.isnan(array).any(axis=(1, 2)))
        return cls(cells=array[whole], rows=whole, level=level)

    @classmethod
    def read_all(cls, outcomes: ArrayLike, level: float, clusters: Clusters = None) -> Table:
        """Return a table of all cells, without items and conditions that have no outcome."""
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
        """The largest number of outcomes of a cell."""
        return int((~np.isnan(self.cells)).sum(axis=2).max(initial=1))

    @property
    def means(self) -> Floats:
        """Items x conditions: the mean over a cell's outcomes, NaN where it has none."""
        return known_mean(self.cells, axis=2)

    @property
    def is_complete(self) -> bool:
        """Return True if no outcome is missing."""
        return not bool(np.isnan(self.cells).any())

    @property
    def clusters(self) -> int | None:
        return None if self.codes is None else int(self.codes.max(initial=-1)) + 1

    @property
    def binary(self) -> bool:
        return bool(np.isin(self.cells[~np.isnan(self.cells)], (0.0, 1.0)).all())

    @property
    def ceiling(self) -> float:
        """The largest possible variance component; infinite unless all outcomes are 0 or 1."""
        width = self.cells.shape[1]
        return 0.25 * width / (width - 1) if self.binary else math.inf

    @property
    def status(self) -> EstimateStatus:
        """The reason for which no component can be computed, or ok."""
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
        """The variance components of the whole table, and without each item or cluster in turn."""
        return components(self.cells, self.codes)

    @cached_property
    def parts_by_item(self) -> Components:
        """The components of the whole table, and without each item in turn."""
        return self.parts if self.codes is None else components(self.cells)

    def quantity(
        self, measure: str, of: Callable[[Components], Floats], interval: Interval
    ) -> Estimate:
        """Return a function of the components, with its interval and its design effect."""
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
        """Return the value with its interval, which is widened if necessary to contain the value.

        Fewer than 6 clusters: too_few_clusters, without an interval.
        """
        effect = None if too_few_clusters(self.clusters) else design_effect
        return replace(self.basis, design_effect=effect).estimate(measure, value, interval)

    def undefined(self, measure: str, status: EstimateStatus, why: str) -> Estimate:
        return self.basis.undefined(measure, status, why)

    def all_undefined(self, measure: str, parts: Iterable[str]) -> dict[str, Estimate]:
        """Return the undefined parts of a measure for a table that cannot be decomposed."""
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
        """The population that the numbers are about, naming the conditions that are left out."""
        if not self.empty:
            return ESTIMAND
        numbers = ", ".join(str(j) for j in self.empty)
        return f"these conditions without {numbers} (no outcome), items like these"

    def few_vary(self, limit: float = RARE_EVENT_LIMIT, *, most: float = 0.25) -> Interval | None:
        """Return an interval for the variance within items (ddof 1) if hardly any 0/1 item varies.

            k = (Σ v)² / Σ v²        s = Σ v² / Σ v

        The items' variances v behave like k items of size s among I items. The interval is s times
        Clopper and Pearson's for k of I. If no item varies, s is the largest variance that an item
        can have.

        Clusters divide k and I by the design effect of v, Σ_g (Σ_i v)²/Σ v². If no item varies, I
        is the number of clusters. The result is None if k >= `limit` or k > `most` · I. It is also
        None for other scores, for several runs, and if all items have one mean.
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
    """Return the interval of part/(part + rest) from the interval of a part that few items make.

    If more items varied, fewer would be left for the rest, and the whole would stay about constant.
    So the ends are divided by the observed whole.
    """
    whole = part + rest
    return interval.mapped(lambda end: min(1.0, end / whole) if whole > 0.0 else 0.0)


# The intervals of variance components, with reasons.
#
# All intervals are jackknives. `values` are the quantity of the whole table, then without item (or
# cluster) 1, 2, ... A mean of squares is skewed to the right, so the jackknife is of its log. A
# difference of mean squares, such as the item component, can be 0 or below. Then the log is of the
# first mean square, and the second is held fixed. A share uses the log of its odds, shifted in the
# same way. The total variance of 0/1 outcomes is m(1 − m), flat at m = 1/2: see `total_interval`.


def component_interval(table: Table, values: Floats, ceiling: float | None = None) -> Interval:
    """Return the interval of a mean of squares: a jackknife on the log scale.

    It is cut at `ceiling`, by default the table's. Fewer than three units: no interval.
    """
    if len(values) < 4:
        return no_interval(table.level)
    interval = jackknife(float(values[0]), values[1:], transform="log", level=table.level)
    return interval.clipped(0.0, table.ceiling if ceiling is None else ceiling)


def difference_interval(table: Table, values: Floats, subtracted: float) -> Interval:
    """Return the interval of a difference x − s of mean squares, with s = `subtracted`.

    It is the log interval of x = value + s, less s. Fewer than three units: no interval.
    """
    if len(values) < 4:
        return no_interval(table.level)
    s = max(0.0, subtracted)
    x = values + s
    interval = jackknife(float(x[0]), x[1:], transform="log", level=table.level)
    return interval.mapped(lambda end: end - s).clipped(-table.ceiling, table.ceiling)


def ratio_interval(table: Table, part: Floats, whole: Floats, shift: float = 0.0) -> Interval:
    """Return the interval of a share part/whole = 1/(f + 1 − shift), by a jackknife of log f.

        f = (whole − part)/part + shift

    Without a shift this is the logit. With shift = 1/J and the residual as part, f is a ratio of
    mean squares, which is positive even if the item component is not. If f is not positive
    everywhere, the jackknife is of the share itself.
    """
    if len(part) < 4 or not (whole > 0.0).all():
        return no_interval(table.level)
    if (part > 0.0).all() and ((whole - part) / part + shift > 0.0).all():
        f = (whole - part) / part + shift
        interval = jackknife(float(f[0]), f[1:], transform="log", level=table.level)
        if interval.low is None or interval.high is None:
            return interval
        # The share falls as f rises, so the ends change places; for f < shift - 1 the share is 1.
        ends = (1.0 / (end + 1.0 - shift) for end in (interval.high, interval.low))
        low, high = (1.0 if end < 0.0 else end for end in ends)
        name = "jackknife t, log odds" if shift == 0.0 else "jackknife t, log ratio of mean squares"
        return Interval(low=low, high=high, level=table.level, method=name).clipped(0.0, 1.0)
    share = part / whole
    return jackknife(float(share[0]), share[1:], level=table.level).clipped(0.0, 1.0)


def total_interval(table: Table, total: Floats) -> Interval:
    """Return the interval of the total variance; for 0/1 outcomes from the mean's under m(1 − m).

    The mean's interval is a jackknife on the logit scale. If it contains 1/2, the image reaches up
    to 1/4, its largest value. A jackknife of the total itself fails there.
    """
    if not table.binary or len(total) < 4:
        return component_interval(table, total)
    means = table.parts.mean
    interval = jackknife(float(means[0]), means[1:], transform="logit", level=table.level)
    if interval.low is None or interval.high is None:
        return interval
    low, high = max(0.0, interval.low), min(1.0, interval.high)
    ends = (low * (1.0 - low), high * (1.0 - high))
    # The bounds contain the mean, and the plug-in total differs from m(1 - m) only by rounding.
    top = 0.25 if low <= 0.5 <= high else max(ends)
    return Interval(
        low=min(*ends, float(total[0])),
        high=max(top, float(total[0])),
        level=table.level,
        method=f"m(1 - m) of the mean's {interval.method}",
    )
