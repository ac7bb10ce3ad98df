"""The plug-in decomposition as a function of sums over items, so that dropping one is cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["WIDTH", "Stratum", "gapped_item_sums", "item_sums", "plugin"]

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


def gapped_item_sums(cells: Floats) -> Floats:
    """`item_sums` of items x conditions x runs with cells missing; their means are the components.

        within_i = I (J − 1)/J mean over j ≠ k of (y_ij − y_ik)²/(2 n_jk)
        m_i = I mean_j y_ij/n_j

    over the cells that item i of I has, with n_j items in condition j and n_jk in both. The last
    column is I mean_j y_ij²/n_j − within_i, which is m_i² without gaps.
    """
    seen = ~np.isnan(cells)
    counts = seen.sum(axis=2)
    has = (counts > 0).astype(np.float64)
    y = np.where(seen, cells, 0.0).sum(axis=2) / np.maximum(counts, 1)
    off = np.where(seen, cells - y[..., None], 0.0)
    between_runs = np.square(off).sum(axis=2) / np.maximum(counts, 1)
    items, width = has.shape
    n, common = has.sum(axis=0), has.T @ has
    np.fill_diagonal(common, 0.0)
    pair = common > 0.0
    weight = np.where(pair, 1.0 / np.maximum(common, 1.0), 0.0) / max(1, int(pair.sum()))
    y = (y - float((y.sum(axis=0) / n).mean())) * has
    square = np.square(y)
    # Σ over pairs of (y_j − y_k)²/2 = Σ y_j² − Σ y_j y_k
    within = ((square @ weight) * has).sum(axis=1) - ((y @ weight) * y).sum(axis=1)
    within = items * (width - 1) / width * np.where(within <= 1e-15, 0.0, within)
    mean, squares, runs = (items * (x / n).mean(axis=1) for x in (y, square, between_runs))
    return np.column_stack([np.ones(items), within, runs, mean, squares - within])


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

    units: Floats
    items: int
    excluded: int
    conditions: int
    counts_only: bool

    def components(self, sums: Floats) -> Floats:
        """(..., 5 x matrices) sums to the (..., 3) sums of pert, data and run."""
        return np.asarray(plugin(sums.reshape(*sums.shape[:-1], -1, WIDTH)).sum(axis=-2))

    def whole(self) -> Floats:
        """The components of all units."""
        return self.components(self.units.sum(axis=0))

    def left_out(self) -> Floats:
        """Units x 3: the components without one unit after the other."""
        return self.components(self.units.sum(axis=0) - self.units)
