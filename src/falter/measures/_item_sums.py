"""The plug-in decomposition as a function of sums over items, so that dropping one is cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stratum", "item_sums", "plugin"]

Floats = NDArray[np.float64]
WIDTH = 5


def item_sums(cells: Floats, *, centre: float | None = None) -> Floats:
    """Of every item: 1, variance over conditions, mean variance over runs, m and m^2 (centred)."""
    over_runs = cells.mean(axis=2)
    middle = float(over_runs.mean()) if centre is None else centre
    means = over_runs.mean(axis=1)
    within = np.square(over_runs - means[:, None]).mean(axis=1)
    within[np.ptp(over_runs, axis=1) == 0.0] = 0.0
    runs = cells.var(axis=2).mean(axis=1) if cells.shape[2] > 1 else np.zeros(len(cells))
    shifted = means - middle
    if len(means) and np.ptp(means) == 0.0:
        shifted = np.zeros(len(means))
    return np.column_stack([np.ones(len(cells)), within, runs, shifted, np.square(shifted)])


def plugin(sums: Floats) -> Floats:
    """(..., 5) sums to (..., 3): pert, data, run, all with ddof 0; NaN without an item."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums[..., 1:] / sums[..., :1]
    data = mean[..., 3] - np.square(mean[..., 2])
    # What rounding leaves of a difference is no variance.
    data = np.where(data <= 1e-12 * np.abs(mean[..., 3]), 0.0, data)
    return np.stack([mean[..., 0], data, mean[..., 1]], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Matrices that share their items: unit sums side by side, five columns a matrix."""

    names: tuple[str, ...]
    units: Floats
    weights: Floats
    items: int
    excluded: int
    conditions: int
    counts_only: bool

    def components(self, sums: Floats) -> Floats:
        """(..., 5 x matrices) sums to the weighted (..., 3) sums of pert, data and run."""
        apart = plugin(sums.reshape(*sums.shape[:-1], len(self.weights), WIDTH))
        return np.asarray((apart * self.weights[:, None]).sum(axis=-2))

    def whole(self) -> Floats:
        return self.components(self.units.sum(axis=0))

    def left_out(self) -> Floats:
        """Units x 3: the components without one unit after the other."""
        return self.components(self.units.sum(axis=0) - self.units)
