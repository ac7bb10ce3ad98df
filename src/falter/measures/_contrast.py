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
    """The value and its interval; None where a condition has no item or there are too few."""

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
    """sum_j c_j mean_j over items x conditions with NaN for missing, with a t interval.

    An item counts through its linear influence sum_j c_j (y_ij - mean_j)/n_j; with `clusters` the
    variance is CR1 on clusters minus one degrees of freedom. With no cell missing this is the
    one-sample t interval of sum_j c_j y_ij.
    """
    from scipy.special import stdtrit

    c = np.asarray(coefficients, dtype=np.float64)
    codes = unit_codes(clusters, len(matrix))
    seen = ~np.isnan(matrix) & (c != 0.0)
    rows = seen.any(axis=1)
    seen, y, codes = seen[rows], np.where(seen, matrix, 0.0)[rows], codes[rows]
    counts = seen.sum(axis=0)
    items, excluded = int(rows.sum()), int((~rows).sum())
    units = items if clusters is None else len(np.unique(codes))
    if units < 2 or (counts[c != 0.0] == 0).any():
        return Contrast(
            value=None, interval=no_interval(level), error=0.0, items=items, excluded=excluded
        )
    counts = np.maximum(counts, 1)
    means = y.sum(axis=0) / counts
    influence = np.where(seen, y - means, 0.0) @ (c / counts)
    sums = unit_sums(influence[:, None], None if clusters is None else codes)[:, 0]
    error = float(np.sqrt(units / (units - 1) * np.square(sums).sum()))
    value = float(means @ c)
    if error <= 1e-14 * float(np.abs(means * c).max()):
        interval = no_interval(level)
    else:
        half = float(stdtrit(units - 1, 0.5 + level / 2.0)) * error
        method = "t over items" if clusters is None else "t over clusters, CR1"
        interval = Interval(low=value - half, high=value + half, level=level, method=method)
    return Contrast(value=value, interval=interval, error=error, items=items, excluded=excluded)
