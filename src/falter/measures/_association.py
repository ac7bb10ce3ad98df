"""What goes together: two numbers per cell, over all items and within them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._resample import sums_interval, unit_codes, unit_sums

__all__ = ["Association", "association"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """Correlation over all cells, and within items: whether better reasoning goes with being right
    on the same item.
    """

    overall: Estimate
    within: Estimate


def association(
    quality: ArrayLike,
    scores: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Association:
    """Pearson's correlation of two numbers per cell, such as reasoning quality and correctness.

        overall: r of x_ij and y_ij        within: r of x_ij − x̄_i and y_ij − ȳ_i

    over the cells of items i and conditions j that have both; `quality` x and `scores` y are items
    x conditions, NaN where missing. `overall` mixes easy items, which are reasoned about well and
    answered well, with what a prompt does; `within` first subtracts each item's means. BCa
    bootstrap of items (or clusters). Something is constant: undefined_zero_variance. Fewer than two
    items: insufficient_data.
    """
    x, y = np.asarray(quality, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape:
        raise InvalidValue("quality, scores", (x.shape, y.shape), "two tables items x conditions")
    present = ~np.isnan(x + y)
    rows = present.any(axis=1)
    codes = unit_codes(clusters, len(x))[rows]
    x, y = np.where(present, x, 0.0)[rows], np.where(present, y, 0.0)[rows]
    present = present[rows]
    counts = present.sum(axis=1)
    basis = Basis(
        estimand="correlation over cells, items like these",
        items=len(x),
        conditions=present.shape[1],
        excluded=int((~rows).sum()),
        level=level,
        seed=seed,
    )

    def correlation(measure: str, centre_x: Floats, centre_y: Floats) -> Estimate:
        a, b = np.where(present, x - centre_x, 0.0), np.where(present, y - centre_y, 0.0)
        columns = [counts, a.sum(axis=1), b.sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1)]
        units = unit_sums(np.column_stack([*columns, (a * b).sum(axis=1)]), codes)
        if len(units) < 2:
            return basis.undefined(measure, "insufficient_data", "fewer than two items")
        value = float(_pearson(units.sum(axis=0)))
        if np.isnan(value):
            why = "the quality or the score never varies"
            return basis.undefined(measure, "undefined_zero_variance", why)
        interval = sums_interval(units, _pearson, level=level, replications=replications, seed=seed)
        return basis.estimate(measure, value, interval)

    total = max(1, int(counts.sum()))
    item_x = (x.sum(axis=1) / np.maximum(counts, 1))[:, None]
    item_y = (y.sum(axis=1) / np.maximum(counts, 1))[:, None]
    mean_x, mean_y = np.full((1, 1), x.sum() / total), np.full((1, 1), y.sum() / total)
    return Association(
        overall=correlation("association.overall", mean_x, mean_y),
        within=correlation("association.within", item_x, item_y),
    )


def _pearson(sums: Floats) -> Floats:
    """(mean xy − mean x mean y)/√(Var x Var y) from the sums of 1, x, y, x², y² and xy."""
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y, xx, yy, xy = np.moveaxis(sums[..., 1:] / sums[..., :1], -1, 0)
        var_x, var_y = xx - np.square(x), yy - np.square(y)
        r = (xy - x * y) / np.sqrt(var_x * var_y)
    varies = (var_x > 1e-14 * xx) & (var_y > 1e-14 * yy)
    return np.asarray(np.where(varies, np.clip(r, -1.0, 1.0), np.nan))
