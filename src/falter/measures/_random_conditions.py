"""The average drop where the perturbations are a sample of perturbations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._tables import Table
from falter.stats import Interval, no_interval

__all__ = ["random_conditions_average"]


def random_conditions_average(drops: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The mean drop with an interval for other items *and* other perturbations of the kind.

        se² = max(MS_I + MS_J − MS_E, MS_J)/(I J)
        freedom = (I J se²)² / (MS_J²/(J − 1) + MS_I²/(I − 1) + MS_E²/((I − 1)(J − 1)))

    with the mean squares of I items, J conditions and the rest; only MS_J enters the freedom where
    it is the maximum. `drops` is items x conditions of baseline - perturbed; items with a missing
    cell are left out. With few perturbations the interval is wide, and it should be:
    `micro_average` is about the very perturbations that were run. One condition: not_identified;
    fewer than two whole items: insufficient_data. Source: Satterthwaite (1946) for the freedom.
    """
    from scipy.special import stdtrit

    table = Table.read(drops, level)
    items, width, _ = table.cells.shape
    basis = Basis(
        estimand="mean drop, conditions like these, items like these",
        items=items,
        conditions=width,
        excluded=table.excluded,
        level=level,
    )
    if table.status != "ok":
        why = "fewer than two items or conditions"
        return basis.undefined("random_conditions_average", table.status, why)
    cells = table.cells.mean(axis=2)
    value = float(cells.mean())
    rows, columns = cells.mean(axis=1), cells.mean(axis=0)
    ms_items = width * float(rows.var(ddof=1))
    ms_conditions = items * float(columns.var(ddof=1))
    rest = cells - rows[:, None] - columns + value
    ms_rest = float(np.square(rest).sum()) / ((items - 1) * (width - 1))
    of_both = ms_items + ms_conditions - ms_rest
    # I J se²
    variance = max(of_both, ms_conditions)
    if not variance > 1e-26 * cells.size * float(np.square(cells).max()):
        return basis.estimate("random_conditions_average", value, no_interval(level))
    squares = ms_conditions**2 / (width - 1)
    if of_both >= ms_conditions:
        squares += ms_items**2 / (items - 1) + ms_rest**2 / ((items - 1) * (width - 1))
    freedom = max(1.0, variance**2 / squares) if squares > 0.0 else float(items - 1)
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * float(np.sqrt(variance / cells.size))
    method = f"t, crossed items and conditions, {freedom:.1f} degrees of freedom"
    interval = Interval(low=value - half, high=value + half, level=level, method=method)
    return basis.estimate("random_conditions_average", value, interval)
