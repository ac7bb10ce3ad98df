"""Variance components of a table with gaps, by pairs of conditions; clusters are left out whole.

Every number is a mean over pairs of conditions of a mean over the items that have both, so that a
missing cell costs that cell and not its item. What a square of a mean owes to the sampling of items
is kept out by multiplying different units (items, or clusters) only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PairMoments", "pair_moments"]

Floats = NDArray[np.float64]

# As many numbers of one kind are held in memory at a time.
BLOCK = 2_000_000
# More units than this are put into this many groups, which are left out in turn.
GROUPS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMoments:
    """Place 0 is the whole table, the others leave one unit out.

    `mean` of the condition means and `spread`, their variance (ddof 0); `square` is the mean
    squared cell and `single` the mean squared outcome, both less the square of `mean`; `item` the
    covariance of two conditions; `within` the variance in an item of cells (ddof 1) and
    `within_single` that of single outcomes; `condition` the variance of the true condition means
    (ddof 1); `run` that between the realisations of a cell, `cell_error` its part in `within`.
    """

    mean: Floats
    spread: Floats
    square: Floats
    single: Floats
    item: Floats
    within: Floats
    within_single: Floats
    condition: Floats
    run: Floats
    cell_error: Floats


def pair_moments(table: Floats, codes: NDArray[np.intp]) -> PairMoments:
    """The moments of items x conditions x realisations, NaN where missing, and without each unit.

    With y_ij the mean of a cell, n_jk the items that have conditions j and k, Δ_jk = y_ij − y_ik,
    and g, h different units of items:

        within = mean over j ≠ k of Σ Δ_jk²/(2 n_jk)
        condition = mean over j ≠ k of ½ (Σ_gh Δ_g Δ_h)/(Σ_gh n_g n_h)
        item = mean_j mean y_j² − within − mean over j ≠ k of (Σ_gh y_gj y_hk)/(Σ_gh n_gj n_hk)

    Each is unbiased where cells are missing at random and units are drawn at random; without gaps,
    each item a unit, they are what the mean squares of `components` give. A pair of conditions that
    no two units have is left out of the mean.
    """
    sums = _Sums.of(table, codes % GROUPS)
    parts = [_moments(sums.whole(), sums.centre)]
    parts += [_moments(without, sums.centre) for without in sums.left_out()]
    names = [field.name for field in fields(PairMoments)]
    rows = np.concatenate(parts, axis=1)
    return PairMoments(**dict(zip(names, rows, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """What is summed over units: cells as vectors over conditions, pairs of cells as matrices."""

    cells: dict[str, Floats]
    codes: NDArray[np.intp]
    centre: float

    @classmethod
    def of(cls, table: Floats, codes: NDArray[np.intp]) -> _Sums:
        """The cells in the order of their units, centred at the mean of the condition means."""
        order = np.argsort(codes, kind="stable")
        table, codes = table[order], codes[order]
        seen = ~np.isnan(table)
        counts = seen.sum(axis=2)
        n = np.maximum(counts, 1)
        has = (counts > 0).astype(np.float64)
        mean = np.where(seen, table, 0.0).sum(axis=2) / n
        columns = mean.sum(axis=0)[has.any(axis=0)] / has.sum(axis=0)[has.any(axis=0)]
        centre = float(columns.mean()) if columns.size else 0.0
        off = np.where(seen, table - mean[..., None], 0.0)
        mean = (mean - centre) * has
        between = np.square(off).sum(axis=2)
        return cls(
            cells={
                "n": has,
                "total": mean,
                "squares": np.square(mean),
                "singles": np.square(mean) + between / n,
                "share": has / n,
                "between": between,
                "freedom": np.maximum(counts - 1, 0).astype(np.float64),
            },
            codes=codes,
            centre=centre,
        )

    def whole(self) -> dict[str, Floats]:
        """The sums over all units, with a leading axis of one."""
        totals: dict[str, Any] = {}
        for block in self._blocks():
            for name, values in self._of_units(block).items():
                totals[name] = totals.get(name, 0.0) + values.sum(axis=0, keepdims=True)
        return totals

    def left_out(self) -> Iterator[dict[str, Floats]]:
        """The sums without each unit, a block of units at a time."""
        totals = self.whole()
        for block in self._blocks():
            yield {name: totals[name] - own for name, own in self._of_units(block).items()}

    def _blocks(self) -> Iterator[slice]:
        """Stretches of rows that hold whole units."""
        width = self.cells["n"].shape[1]
        step = max(1, BLOCK // max(1, width * width))
        starts = np.flatnonzero(np.diff(self.codes, prepend=-1))
        start = 0
        for next_unit in [*starts[1:], len(self.codes)]:
            if next_unit - start >= step or next_unit == len(self.codes):
                yield slice(start, int(next_unit))
                start = int(next_unit)

    def _of_units(self, rows: slice) -> dict[str, Floats]:
        """Units x conditions and units x conditions x conditions, for the units of these rows."""
        starts = np.flatnonzero(np.diff(self.codes[rows], prepend=-1))
        x = {name: values[rows] for name, values in self.cells.items()}

        def unit(values: Floats) -> Floats:
            return np.asarray(np.add.reduceat(values, starts, axis=0), dtype=np.float64)

        def pairs(first: str, second: str) -> Floats:
            return unit(x[first][:, :, None] * x[second][:, None, :])

        sums = {name: unit(values) for name, values in x.items()}
        common, gap = pairs("n", "n"), pairs("total", "n")
        gap = gap - np.swapaxes(gap, 1, 2)
        product, square, single = (
            pairs("total", "total"),
            pairs("squares", "n"),
            pairs("singles", "n"),
        )
        total, n = sums["total"], sums["n"]
        sums |= {
            "common": common,
            "gap": gap,
            "gap2": square + np.swapaxes(square, 1, 2) - 2.0 * product,
            "single2": single + np.swapaxes(single, 1, 2) - 2.0 * product,
            "own_gap": np.square(gap),
            "own_common": np.square(common),
            "own_total": total[:, :, None] * total[:, None, :],
            "own_n": n[:, :, None] * n[:, None, :],
            "shares": pairs("share", "n"),
        }
        return sums


def _moments(s: dict[str, Floats], centre: float) -> Floats:
    """Moments x tables, from the sums over each table's units."""
    n, common = s["n"], s["common"]
    pair = ~np.eye(n.shape[1], dtype=bool) & (common > 0.0)
    there = n > 0.0
    columns = _ratio(s["total"], n)
    mean = _mean(columns, there)
    squares = _mean(_ratio(s["squares"], n), there)
    singles = _mean(_ratio(s["singles"], n), there)
    spread = _mean(np.square(columns - mean[:, None]), there)
    within = _mean(_ratio(s["gap2"], common), pair) / 2.0
    within_single = _mean(_ratio(s["single2"], common), pair) / 2.0
    units = np.square(common) - s["own_common"]
    gap = np.square(s["gap"]) - s["own_gap"]
    gap = _rounded(gap, np.square(s["gap"]))
    condition = _mean(_ratio(gap, units), pair & (units > 0.0)) / 2.0
    units = n[:, :, None] * n[:, None, :] - s["own_n"]
    product = s["total"][:, :, None] * s["total"][:, None, :] - s["own_total"]
    across = _mean(_ratio(product, units), pair & (units > 0.0))
    run, error = _run(s, pair)
    within, within_single = _rounded(within, squares), _rounded(within_single, singles)
    square = _rounded(squares - np.square(mean), squares)
    single = _rounded(singles - np.square(mean), singles)
    item = _rounded(squares - within - across, squares)
    spread, condition = _rounded(spread, squares), _rounded(condition, squares)
    found = (mean + centre, spread, square, single, item, within, within_single, condition)
    return np.stack([*found, run, error])


def _run(s: dict[str, Floats], pair: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The variance between the realisations of a cell, and its part in the variance within.

    A condition that was realised once is taken to have the mean variance of those that were not;
    none was: 0.
    """
    repeated = s["freedom"] > 0.0
    own = _ratio(s["between"], s["freedom"])
    run = np.where(repeated.any(axis=1), _mean(own, repeated), 0.0)
    own = np.where(repeated, own, run[:, None])
    error = _mean(own[:, :, None] * _ratio(s["shares"], s["common"]), pair)
    return run, error


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Their ratio, 0 where the whole is."""
    return np.asarray(np.where(whole > 0.0, part / np.where(whole > 0.0, whole, 1.0), 0.0))


def _mean(values: Floats, there: NDArray[np.bool_]) -> Floats:
    """The mean over all axes but the first of the values that are there; NaN where none is."""
    axes = tuple(range(1, values.ndim))
    count = there.sum(axis=axes)
    total = np.where(there, values, 0.0).sum(axis=axes)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _rounded(values: Floats, scale: Floats) -> Floats:
    """Exactly 0 where only rounding is left."""
    return np.asarray(np.where(np.abs(values) <= 1e-12 * np.abs(scale), 0.0, values))
