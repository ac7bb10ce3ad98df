"""Brittleness at another number of conditions, without drawing any."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._tables import Table
from falter.stats import jackknife, no_interval

__all__ = ["rarefied_brittleness"]

Floats = NDArray[np.float64]


def rarefied_brittleness(outcomes: ArrayLike, conditions: int, *, level: float = 0.95) -> Estimate:
    """Plug-in brittleness as k of the J conditions would give it, averaged over all choices.

        E pert = (k − 1)/k · J/(J − 1) · pert
        E total = total − (J − k)/(k (J − 1)) Var_j(mean_i y_ij)

    and the ratio of the two. Plug-in brittleness grows with the number of conditions; this makes
    lists of different length comparable. One condition has no variance within items: k is 2 to J. A
    jackknife over items of the logit; edges as in `variance_components`.
    """
    table = Table.read(outcomes, level)
    items, width, runs = table.cells.shape
    basis = Basis(
        estimand=f"plug-in brittleness of {conditions} random ones of these conditions, items "
        "like these",
        items=items,
        conditions=width,
        excluded=table.excluded,
        level=level,
    )
    if table.status != "ok":
        why = "fewer than two items or conditions"
        return basis.undefined("rarefied_brittleness", table.status, why)
    if runs > 1:
        raise InvalidValue("outcomes", f"{runs} runs", "one run; average over runs first")
    if not 2 <= conditions <= width:
        raise InvalidValue("conditions", conditions, f"a number from 2 to {width}")
    cells = table.cells[:, :, 0] - table.cells.mean()
    within = cells.var(axis=1)
    within[np.ptp(cells, axis=1) == 0.0] = 0.0
    # Sums over items of 1, the variance within, the mean square and every condition say it all.
    units = np.column_stack([np.ones(items), within, np.square(cells).mean(axis=1), cells])
    sums = units.sum(axis=0)
    value, left_out = float(_ratio(sums, conditions)), _ratio(sums - units, conditions)
    if np.ptp(table.cells) == 0.0 or np.isnan(value):
        why = "every outcome is the same"
        return basis.undefined("rarefied_brittleness", "undefined_zero_variance", why)
    interval = no_interval(level)
    if not np.isnan(left_out).any():
        interval = jackknife(value, left_out, transform="logit", level=level)
    return basis.estimate("rarefied_brittleness", value, interval)


def _ratio(sums: Floats, k: int) -> Floats:
    """E pert/E total from the sums over items of `units`."""
    means = sums[..., 1:] / sums[..., :1]
    within, square, conditions = means[..., 0], means[..., 1], means[..., 2:]
    width = conditions.shape[-1]
    pert = (k - 1) / k * width / (width - 1) * within
    total = square - np.square(conditions.mean(axis=-1))
    total = total - (width - k) / (k * (width - 1)) * conditions.var(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 1e-12 * square, np.minimum(pert / total, 1.0), np.nan))
