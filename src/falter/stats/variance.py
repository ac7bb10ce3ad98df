"""Variance components of an items x conditions table, with all leave-one-item-out values.

For a complete table, six sums over the items are sufficient, so leaving one item out is a
subtraction. With gaps, every number is a mean over pairs of conditions of a mean over the items
that have both. So a missing cell costs that cell and not its item. A square of a mean contains the
sampling variance of items. Only products of different units (items, or clusters) are used, so this
variance does not enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import InvalidValue

Floats = NDArray[np.float64]

# Number of entries of one kind in memory at a time.
BLOCK_CELLS = 2_000_000
# More units than this are combined into this many groups, which are left out in turn.
MAX_UNITS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Unbiased components and plug-in variances of a table.

    In every vector the entry 0 is for the whole table. Each further entry leaves out one unit: an
    item, a cluster, or a group of these. `run` is the variance between runs of a cell with ddof 1,
    `run_plugin` with ddof 0. `mean` is the mean of the condition means, and `spread` their variance
    (ddof 0). `single` is the variance within items of single outcomes, one draw and one run (ddof
    1).
    """

    mean: Floats
    spread: Floats
    data: Floats
    pert: Floats
    item: Floats
    condition: Floats
    interaction: Floats
    oneway_pert: Floats
    run: Floats
    run_plugin: Floats
    single: Floats


def components(table: Floats, codes: NDArray[np.intp] | None = None) -> Components:
    """Return all components of an items x conditions x runs array with 2+ items and conditions.

    y_ij is the mean over R runs of item i of I in condition j of J. s²_ij is the variance between
    these runs (ddof 1). A dot stands for a mean:

        MS_item = J Σ_i (y_i. − y_..)²/(I − 1)
        MS_condition = I Σ_j (y_.j − y_..)²/(J − 1)
        MS_rest = Σ_ij (y_ij − y_i. − y_.j + y_..)²/((I − 1)(J − 1))
        MS_within = Σ_ij (y_ij − y_i.)²/(I (J − 1))

        plug-in: data = Var_i(y_i.), pert = mean_i Var_j(y_ij), ddof 0, and run with ddof 0
        two-way: item = (MS_item − MS_rest)/J, condition = (MS_condition − MS_rest)/I,
                 interaction = MS_rest − run/R
        one-way: item = (MS_item − MS_within)/J, pert = MS_within − run/R
        run = mean_ij s²_ij

    For fixed conditions the two-way components are unbiased for any distribution of the items. They
    estimate the mean covariance of two conditions (item) and the variance of the accuracies, ddof 1
    (condition). The interaction estimates the mean variance less that covariance. If cells are
    missing (NaN), or if `codes` puts the items into clusters, `_of_gapped` estimates them. One
    cluster is then left out at a time. Components can be below 0. Source: Searle, Casella and
    McCulloch (1992), the two-way layout without replication.
    """
    if codes is not None or np.isnan(table).any():
        rows = np.arange(len(table)) if codes is None else codes
        return _of_gapped(table, rows)
    return _of_complete(table)


def _of_complete(table: Floats) -> Components:
    """Return the components of a complete table; each item is left out by a subtraction."""
    runs = table.shape[2]
    cells = table.mean(axis=2)
    between_runs = np.square(table - cells[..., None]).sum(axis=2).mean(axis=1)
    # No component depends on the grand mean. Subtracting it saves digits in the squares below.
    centre = cells.mean()
    cells = cells - centre
    items, width = cells.shape
    means = cells.mean(axis=1)
    within = np.square(cells - means[:, None]).sum(axis=1)
    within[np.ptp(cells, axis=1) == 0.0] = 0.0

    # Every sum I + 1 times: over all items, then without item 1, 2, ...
    n = np.concatenate(([items], np.full(items, items - 1.0)))
    sum_within, sum_means = _without_each(within), _without_each(means)
    sum_squares, sum_between_runs = _without_each(np.square(means)), _without_each(between_runs)
    # Σ_j (Σ_i y_ij)², and |c − y_i|² = |c|² − 2 c·y_i + |y_i|² without item i
    columns = cells.sum(axis=0)
    all_items = columns @ columns
    without = all_items - 2.0 * cells @ columns + np.square(cells).sum(axis=1)
    # Leaving out by subtraction costs I × J once, and not for each of the I items.
    column_squares = np.concatenate(([all_items], without))

    # Σ_i (y_i. − y_..)², and the sums of squares of conditions and of the remainder
    ss_means = _not_negative(sum_squares - sum_means**2 / n, sum_squares)
    ss_condition = _not_negative(column_squares / n - width * sum_means**2 / n, column_squares / n)
    ss_rest = _not_negative(sum_within - ss_condition, sum_within)
    with np.errstate(invalid="ignore", divide="ignore"):
        ms_item = width * ss_means / (n - 1)
        ms_rest = ss_rest / ((n - 1) * (width - 1))
        ms_condition = ss_condition / (width - 1)
        ms_within = sum_within / (n * (width - 1))
        run = sum_between_runs / n / (runs - 1) if runs > 1 else np.zeros_like(n)
        run_plugin = sum_between_runs / n / runs
        cell_error = run / runs
        return Components(
            mean=centre + sum_means / n,
            spread=ss_condition / (n * width),
            data=ss_means / n,
            pert=sum_within / (n * width),
            item=_difference(ms_item, ms_rest) / width,
            condition=_difference(ms_condition, ms_rest) / n,
            interaction=_difference(ms_rest, cell_error),
            oneway_pert=_difference(ms_within, cell_error),
            run=run,
            run_plugin=run_plugin,
            single=ms_within - cell_error + run,
        )


def _of_gapped(table: Floats, codes: NDArray[np.intp]) -> Components:
    """Return the components of a table with gaps (NaN) or with clusters.

    y_ij is the mean of a cell, n_jk the number of items with conditions j and k, and Δ_jk = y_ij −
    y_ik. g and h are different units of items:

        within = mean over j ≠ k of Σ Δ_jk²/(2 n_jk)
        condition = mean over j ≠ k of ½ (Σ_gh Δ_g Δ_h)/(Σ_gh n_g n_h)
        item = mean_j mean y_j² − within − mean over j ≠ k of (Σ_gh y_gj y_hk)/(Σ_gh n_gj n_hk)

    Each is unbiased if cells are missing at random and units are drawn at random. Without gaps and
    with each item a unit, they equal the results of the mean squares. A pair of conditions that no
    two units have is left out of the mean. More than 1,000 units are combined into 1,000 groups.
    """
    width = table.shape[1]
    sums = _Sums.of(table, codes % MAX_UNITS)
    totals = sums.totals()
    parts = [_moments(totals, sums.centre)]
    parts += [_moments(without, sums.centre) for without in sums.left_out(totals)]
    # `square` and `single`: the mean squared cell and outcome less the squared mean. `within` and
    # `within_single`: the variance within an item of cells and of single outcomes (ddof 1).
    # `cell_error`: the part of `within` that comes from the runs of a cell.
    mean, spread, square, single, item, within, within_single, condition, run, cell_error = (
        np.concatenate(parts, axis=1)
    )
    pert = within * (width - 1) / width
    return Components(
        mean=mean,
        spread=spread,
        data=np.maximum(_difference(square, pert), 0.0),
        pert=pert,
        item=item,
        condition=condition,
        interaction=_difference(within - condition, cell_error),
        oneway_pert=_difference(within, cell_error),
        run=run,
        run_plugin=np.maximum(_difference(single, square), 0.0),
        single=within_single,
    )


def _without_each(values: Floats) -> Floats:
    """Return the sum over all items, followed by the sums without item 1, 2, ..."""
    total = values.sum()
    return np.concatenate(([total], total - values))


def _difference(larger: Floats, smaller: Floats) -> Floats:
    """Return a difference of mean squares, exactly 0 if only a rounding error is left."""
    difference = larger - smaller
    return np.where(np.abs(difference) <= 1e-12 * np.abs(larger), 0.0, difference)


def _not_negative(values: Floats, scale: Floats) -> Floats:
    """Return a sum of squares from a subtraction, 0 if only a rounding error is left."""
    return np.where(values <= 1e-12 * np.abs(scale), 0.0, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Sums over units: cells as vectors over conditions, pairs of cells as matrices."""

    cells: dict[str, Floats]
    codes: NDArray[np.intp]
    centre: float

    @classmethod
    def of(cls, table: Floats, codes: NDArray[np.intp]) -> _Sums:
        """Return the cells sorted by unit, centred at the mean of the condition means."""
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

    def totals(self) -> dict[str, Floats]:
        """Return the sums over all units, with a leading axis of length one."""
        totals: dict[str, Any] = {}
        for block in self._blocks():
            for name, values in self._of_units(block).items():
                totals[name] = totals.get(name, 0.0) + values.sum(axis=0, keepdims=True)
        return totals

    def left_out(self, totals: dict[str, Floats]) -> Iterator[dict[str, Floats]]:
        """Yield the sums without each unit, a block of units at a time."""
        for block in self._blocks():
            yield {name: totals[name] - own for name, own in self._of_units(block).items()}

    def _blocks(self) -> Iterator[slice]:
        """Yield ranges of rows that contain whole units."""
        width = self.cells["n"].shape[1]
        step = max(1, BLOCK_CELLS // max(1, width * width))
        starts = np.flatnonzero(np.diff(self.codes, prepend=-1))
        start = 0
        for next_unit in [*starts[1:], len(self.codes)]:
            if next_unit - start >= step or next_unit == len(self.codes):
                yield slice(start, int(next_unit))
                start = int(next_unit)

    def _of_units(self, rows: slice) -> dict[str, Floats]:
        """Return the sums of these rows by unit.

        They are units x conditions, and for pairs units x conditions x conditions.
        """
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
    """Return moments x tables, from the sums over each table's units."""
    n, common = s["n"], s["common"]
    pair = ~np.eye(n.shape[1], dtype=bool) & (common > 0.0)
    there = n > 0.0
    columns = _ratio(s["total"], n)
    mean = _masked_mean(columns, there)
    squares = _masked_mean(_ratio(s["squares"], n), there)
    singles = _masked_mean(_ratio(s["singles"], n), there)
    spread = _masked_mean(np.square(columns - mean[:, None]), there)
    within = _masked_mean(_ratio(s["gap2"], common), pair) / 2.0
    within_single = _masked_mean(_ratio(s["single2"], common), pair) / 2.0
    units = np.square(common) - s["own_common"]
    # A unit's product with itself contains the squared noise of its cells, a product of two units
    # does not.
    gap = np.square(s["gap"]) - s["own_gap"]
    gap = _rounded(gap, np.square(s["gap"]))
    condition = _masked_mean(_ratio(gap, units), pair & (units > 0.0)) / 2.0
    units = n[:, :, None] * n[:, None, :] - s["own_n"]
    product = s["total"][:, :, None] * s["total"][:, None, :] - s["own_total"]
    across = _masked_mean(_ratio(product, units), pair & (units > 0.0))
    run, error = _run_variance(s, pair)
    within, within_single = _rounded(within, squares), _rounded(within_single, singles)
    square = _rounded(squares - np.square(mean), squares)
    single = _rounded(singles - np.square(mean), singles)
    item = _rounded(squares - within - across, squares)
    spread, condition = _rounded(spread, squares), _rounded(condition, squares)
    found = (mean + centre, spread, square, single, item, within, within_single, condition)
    return np.stack([*found, run, error])


def _run_variance(s: dict[str, Floats], pair: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the variance between runs of a cell, and its part in the variance within items.

    A condition that was run once is given the mean variance of the other conditions. If all were
    run once, both are 0.
    """
    repeated = s["freedom"] > 0.0
    own = _ratio(s["between"], s["freedom"])
    run = np.where(repeated.any(axis=1), _masked_mean(own, repeated), 0.0)
    own = np.where(repeated, own, run[:, None])
    error = _masked_mean(own[:, :, None] * _ratio(s["shares"], s["common"]), pair)
    return run, error


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part/whole, 0 where the whole is 0."""
    return np.asarray(np.where(whole > 0.0, part / np.where(whole > 0.0, whole, 1.0), 0.0))


def _masked_mean(values: Floats, mask: NDArray[np.bool_]) -> Floats:
    """Return the mean over all axes but the first of the values marked `mask`, or NaN."""
    axes = tuple(range(1, values.ndim))
    count = mask.sum(axis=axes)
    total = np.where(mask, values, 0.0).sum(axis=axes)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _rounded(values: Floats, scale: Floats) -> Floats:
    """Return the values, exactly 0 where only a rounding error is left."""
    return np.asarray(np.where(np.abs(values) <= 1e-12 * np.abs(scale), 0.0, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceParts:
    """Variances of one score between 0 and 1, by source.

    The sources are items, conditions, items within a condition, draws of a condition on an item,
    and runs of a draw. `draw` and `run` are None if unknown. They are then part of the interaction,
    and more draws or repeats help more than `mean_error` says. A variance outside 0 to 1 raises
    InvalidValue.
    """

    item: float
    condition: float = 0.0
    interaction: float = 0.0
    draw: float | None = None
    run: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise InvalidValue(field.name, value, "a variance of scores, from 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A complete design: items, conditions, draws per condition, and repeats per draw.

    A number below one raises InvalidValue.
    """

    items: int
    conditions: int
    draws: int = 1
    repeats: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise InvalidValue(field.name, value, "one or more")

    @property
    def calls(self) -> int:
        """The number of answers."""
        return self.items * self.conditions * self.draws * self.repeats


def mean_error(parts: VarianceParts, design: Design, *, like_these: bool = False) -> float:
    """Return the standard error of the mean score of a complete design, for similar items.

        se² = item/I + (interaction + draw/D + run/(D R))/(I J)  [+ condition/J]

    for I items, J conditions, D draws and R repeats. The last term counts with `like_these`: the
    mean is then about a population of conditions, of which these are a sample. Otherwise the mean
    is about these conditions alone. Source: Brennan (2001), Generalizability Theory, chapter 4 (the
    D study, p x t and p x T).
    """
    run = (parts.run or 0.0) / design.repeats
    answers = ((parts.draw or 0.0) + run) / design.draws
    cells = (parts.interaction + answers) / (design.items * design.conditions)
    between = parts.condition / design.conditions if like_these else 0.0
    return math.sqrt(parts.item / design.items + cells + between)
