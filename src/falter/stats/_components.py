"""Variance components of an items x conditions table, with every leave-one-item-out value.

A table enters through six sums over its items, so that leaving one item out is a subtraction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Components", "components"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Unbiased mean squares and plug-in variances: place 0 is the whole table, the others leave
    one item out. `within` is the variance between runs of a cell, divided by their number and by
    one less.
    """

    data: Floats
    pert: Floats
    item: Floats
    condition: Floats
    interaction: Floats
    oneway_item: Floats
    oneway_pert: Floats
    run: Floats
    run_plugin: Floats


def components(table: NDArray[np.float64]) -> Components:
    """All components of a complete items x conditions x runs array with 2+ items and conditions.

    From the cell means: MS_item, MS_condition and MS_rest of the two-way layout without
    replication; item = (MS_item - MS_rest)/J, condition = (MS_condition - MS_rest)/I, interaction
    = MS_rest less the variance of a cell mean between runs. With fixed conditions these estimate
    without bias the mean covariance of two conditions, the variance of the accuracies (ddof 1)
    and the mean variance less that covariance, whatever the distribution of the items.
    """
    runs = table.shape[2]
    cells, spread = _cells(table)
    items, width = cells.shape
    means = cells.mean(axis=1)
    within = np.square(cells - means[:, None]).sum(axis=1)
    within[np.ptp(cells, axis=1) == 0.0] = 0.0
    columns = cells.sum(axis=0)
    # Every sum twice over: for the table, then for the table without item 1, 2, ...
    n = np.concatenate(([items], np.full(items, items - 1.0)))
    sum_within, sum_means = _left_out(within), _left_out(means)
    sum_squares, sum_spread = _left_out(np.square(means)), _left_out(spread)
    own = columns @ columns
    without = own - 2.0 * cells @ columns + np.square(cells).sum(axis=1)
    column_squares = np.concatenate(([own], without))

    centred_means = _positive(sum_squares - sum_means**2 / n, sum_squares)
    ss_condition = _positive(column_squares / n - width * sum_means**2 / n, column_squares / n)
    ss_rest = _positive(sum_within - ss_condition, sum_within)
    with np.errstate(invalid="ignore", divide="ignore"):
        ms_item = width * centred_means / (n - 1)
        ms_rest = ss_rest / ((n - 1) * (width - 1))
        ms_condition = ss_condition / (width - 1)
        ms_within = sum_within / (n * (width - 1))
        run = sum_spread / n / (runs - 1) if runs > 1 else np.zeros_like(n)
        run_plugin = sum_spread / n / runs
        cell_error = run / runs
        return Components(
            data=centred_means / n,
            pert=sum_within / (n * width),
            item=_difference(ms_item, ms_rest) / width,
            condition=_difference(ms_condition, ms_rest) / n,
            interaction=_difference(ms_rest, cell_error),
            oneway_item=_difference(ms_item, ms_within) / width,
            oneway_pert=_difference(ms_within, cell_error),
            run=run,
            run_plugin=run_plugin,
        )


def _cells(table: Floats) -> tuple[Floats, Floats]:
    """Cell means less their grand mean, and each item's mean squared spread between runs."""
    cells = table.mean(axis=2)
    spread = np.square(table - cells[..., None]).sum(axis=2).mean(axis=1)
    return cells - cells.mean(), spread


def _left_out(values: Floats) -> Floats:
    total = values.sum()
    return np.concatenate(([total], total - values))


def _difference(first: Floats, second: Floats) -> Floats:
    """A difference of mean squares, exactly 0 where only rounding is left of it."""
    gap = first - second
    return np.where(np.abs(gap) <= 1e-12 * np.abs(first), 0.0, gap)


def _positive(values: Floats, scale: Floats) -> Floats:
    """A sum of squares without the rounding error of the subtraction that made it."""
    return np.where(values <= 1e-12 * np.abs(scale), 0.0, values)
