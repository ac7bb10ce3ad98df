"""Sums of condition means with any coefficients, as one item-level quantity."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures._resample import unit_codes, unit_sums
from falter.stats import Interval, no_interval

__all__ = ["Contrast", "contrast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The value and its interval; None where a condition has no item, or items are too few."""

    value: float | None
    interval: Interval
    error: float
    items: int
    excluded: int


def contrast(
    matrix: NDArray[np.float64],
    coefficients: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Contrast:
    """A sum of condition means with coefficients c, over items x conditions, NaN for missing.

        v = Σ_j c_j ȳ_j        u_i = Σ_j c_j (y_ij − ȳ_j)/n_j
        se² = G/(G − 1) Σ_g (Σ_{i in g} u_i)²        v ± t(G − 1) se

    u_i is the linear influence of an item on v, n_j the items with condition j and G the number of
    clusters (CR1); without `clusters` every item is one of its own. With no cell missing this is
    the one-sample t interval of Σ_j c_j y_ij.
    """
    from scipy.special import stdtrit

    c = np.asarray(coefficients, dtype=np.float64)
    codes = unit_codes(clusters, len(matrix))
    present = ~np.isnan(matrix) & (c != 0.0)
    rows = present.any(axis=1)
    y, codes = np.where(present, matrix, 0.0)[rows], codes[rows]
    present = present[rows]
    counts = present.sum(axis=0)
    items, excluded = int(rows.sum()), int((~rows).sum())
    units = items if clusters is None else len(np.unique(codes))
    if units < 2 or (counts[c != 0.0] == 0).any():
        return Contrast(
            value=None, interval=no_interval(level), error=0.0, items=items, excluded=excluded
        )
    counts = np.maximum(counts, 1)
    means = y.sum(axis=0) / counts
    influence = np.where(present, y - means, 0.0) @ (c / counts)
    sums = unit_sums(influence[:, None], None if clusters is None else codes)[:, 0]
    error = float(np.sqrt(units / (units - 1) * np.square(sums).sum()))
    value = float(means @ c)
    # What rounding leaves of equal values is no standard error.
    if error <= 1e-14 * float(np.abs(means * c).max()):
        interval = no_interval(level)
    else:
        half = float(stdtrit(units - 1, 0.5 + level / 2.0)) * error
        method = "t over items" if clusters is None else "t over clusters, CR1"
        interval = Interval(low=value - half, high=value + half, level=level, method=method)
    return Contrast(value=value, interval=interval, error=error, items=items, excluded=excluded)
