"""The plug-in decomposition as a function of sums over items, so that dropping one is cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["WIDTH", "Stratum", "item_sums", "plugin"]

Floats = NDArray[np.float64]
# The columns of `item_sums`.
WIDTH = 5


def item_sums(cells: Floats, *, centre: float | None = None) -> Floats:
    """A row per item: 1, variance over conditions, mean variance over runs, m and m².

    m is the item's mean less `centre` (the mean of all), so that squares lose fewer digits.
    """
    means_of_runs = cells.mean(axis=2)
    middle = float(means_of_runs.mean()) if centre is None else centre
    means = means_of_runs.mean(axis=1)
    within = np.square(means_of_runs - means[:, None]).mean(axis=1)
    within[np.ptp(means_of_runs, axis=1) == 0.0] = 0.0
    between_runs = cells.var(axis=2).mean(axis=1) if cells.shape[2] > 1 else np.zeros(len(cells))
    centred = means - middle
    if len(means) and np.ptp(means) == 0.0:
        centred = np.zeros(len(means))
    return np.column_stack([np.ones(len(cells)), within, between_runs, centred, np.square(centred)])


def plugin(sums: Floats) -> Floats:
    """(..., 5) sums to (..., 3): pert, data = mean m² − (mean m)², run; NaN without an item."""
    with np.errstate(invalid="ignore", divide="ignore"):
        pert, run, mean, square = np.moveaxis(sums[..., 1:] / sums[..., :1], -1, 0)
    data = square - np.square(mean)
    # What rounding leaves of a difference is no variance.
    data = np.where(data <= 1e-12 * np.abs(square), 0.0, data)
    return np.stack([pert, data, run], axis=-1)


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
        by_matrix = plugin(sums.reshape(*sums.shape[:-1], len(self.weights), WIDTH))
        return np.asarray((by_matrix * self.weights[:, None]).sum(axis=-2))

    def whole(self) -> Floats:
        """The components of all units."""
        return self.components(self.units.sum(axis=0))

    def left_out(self) -> Floats:
        """Units x 3: the components without one unit after the other."""
        return self.components(self.units.sum(axis=0) - self.units)
