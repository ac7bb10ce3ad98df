"""Variance components of an items x conditions table, with every leave-one-item-out value.

A table enters through six sums over its items, so that leaving one item out is a subtraction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.stats._incomplete import PairMoments, pair_moments

__all__ = ["Components", "components"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Unbiased mean squares and plug-in variances: place 0 is the whole table, the others leave
    one item out. `within` is the variance between runs of a cell, divided by their number and by
    one less. `mean` is that of the condition means and `spread` their variance (ddof 0);
    `single` is the variance within items of single outcomes, one draw and one run (ddof 1).
    """

    mean: Floats
    spread: Floats
    data: Floats
    pert: Floats
    item: Floats
    condition: Floats
    interaction: Floats
    oneway_item: Floats
    oneway_pert: Floats
    run: Floats
    run_plugin: Floats
    single: Floats


def components(table: Floats, codes: NDArray[np.intp] | None = None) -> Components:
    """All components of an items x conditions x runs array with 2+ items and conditions.

    With y_ij the mean over R runs of item i of I in condition j of J, s²_ij the variance between
    those runs (ddof 1), and a dot for a mean:

        MS_item = J Σ_i (y_i. − y_..)²/(I − 1)
        MS_condition = I Σ_j (y_.j − y_..)²/(J − 1)
        MS_rest = Σ_ij (y_ij − y_i. − y_.j + y_..)²/((I − 1)(J − 1))
        MS_within = Σ_ij (y_ij − y_i.)²/(I (J − 1))

        plug-in: data = Var_i(y_i.), pert = mean_i Var_j(y_ij), ddof 0, and run with ddof 0
        two-way: item = (MS_item − MS_rest)/J, condition = (MS_condition − MS_rest)/I,
                 interaction = MS_rest − run/R
        one-way: item = (MS_item − MS_within)/J, pert = MS_within − run/R
        run = mean_ij s²_ij

    With fixed conditions the two-way ones estimate without bias the mean covariance of two
    conditions, the variance of the accuracies (ddof 1) and the mean variance less that
    covariance, whatever the distribution of the items. With cells missing (NaN), or items in the
    clusters `codes`, they are estimated from `pair_moments`; then a cluster is left out at a time.
    Source: Searle, Casella and McCulloch (1992), the two-way layout without replication.
    """
    if codes is not None or np.isnan(table).any():
        rows = np.arange(len(table)) if codes is None else codes
        return _of_pairs(pair_moments(table, rows), table.shape[1])
    runs = table.shape[2]
    cells = table.mean(axis=2)
    between_runs = np.square(table - cells[..., None]).sum(axis=2).mean(axis=1)
    # No component depends on the grand mean; without it the squares below lose fewer digits.
    centre = cells.mean()
    cells = cells - centre
    items, width = cells.shape
    means = cells.mean(axis=1)
    within = np.square(cells - means[:, None]).sum(axis=1)
    within[np.ptp(cells, axis=1) == 0.0] = 0.0

    # Every sum I + 1 times: over all items, then without item 1, 2, ...
    n = np.concatenate(([items], np.full(items, items - 1.0)))
    sum_within, sum_means = _left_out(within), _left_out(means)
    sum_squares, sum_between_runs = _left_out(np.square(means)), _left_out(between_runs)
    # Σ_j (Σ_i y_ij)², and |c − y_i|² = |c|² − 2 c·y_i + |y_i|² without item i
    columns = cells.sum(axis=0)
    all_items = columns @ columns
    without = all_items - 2.0 * cells @ columns + np.square(cells).sum(axis=1)
    column_squares = np.concatenate(([all_items], without))

    # Σ_i (y_i. − y_..)², and the sums of squares of conditions and of what both leave over
    ss_means = _positive(sum_squares - sum_means**2 / n, sum_squares)
    ss_condition = _positive(column_squares / n - width * sum_means**2 / n, column_squares / n)
    ss_rest = _positive(sum_within - ss_condition, sum_within)
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
            oneway_item=_difference(ms_item, ms_within) / width,
            oneway_pert=_difference(ms_within, cell_error),
            run=run,
            run_plugin=run_plugin,
            single=ms_within - cell_error + run,
        )


def _of_pairs(m: PairMoments, width: int) -> Components:
    """The components that a table with gaps, or with clusters, shows."""
    pert = m.within * (width - 1) / width
    return Components(
        mean=m.mean,
        spread=m.spread,
        data=np.maximum(_difference(m.square, pert), 0.0),
        pert=pert,
        item=m.item,
        condition=m.condition,
        interaction=_difference(m.within - m.condition, m.cell_error),
        oneway_item=_difference(m.item, m.condition / width),
        oneway_pert=_difference(m.within, m.cell_error),
        run=m.run,
        run_plugin=np.maximum(_difference(m.single, m.square), 0.0),
        single=m.within_single,
    )


def _left_out(values: Floats) -> Floats:
    """The sum over all items, then the sums without item 1, 2, ..."""
    total = values.sum()
    return np.concatenate(([total], total - values))


def _difference(larger: Floats, smaller: Floats) -> Floats:
    """A difference of mean squares, exactly 0 where only rounding is left of it."""
    difference = larger - smaller
    return np.where(np.abs(difference) <= 1e-12 * np.abs(larger), 0.0, difference)


def _positive(values: Floats, scale: Floats) -> Floats:
    """A sum of squares that came from a subtraction, 0 where only rounding is left of it."""
    return np.where(values <= 1e-12 * np.abs(scale), 0.0, values)
