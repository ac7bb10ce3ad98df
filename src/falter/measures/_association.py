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
    """Correlation over all cells, and within items: whether better goes with right for one item."""

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

    Both are items x conditions, NaN where missing; a cell counts if it has both. `overall` mixes
    easy items, which are reasoned about well and answered well, with what a prompt does; `within`
    first takes each item's means off. BCa bootstrap of items (or clusters). Something is constant:
    undefined_zero_variance. Fewer than two items: insufficient_data.
    """
    x, y = np.asarray(quality, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape:
        raise InvalidValue("quality, scores", (x.shape, y.shape), "two tables items x conditions")
    seen = ~np.isnan(x + y)
    rows = seen.any(axis=1)
    codes = unit_codes(clusters, len(x))[rows]
    seen, x, y = seen[rows], np.where(seen, x, 0.0)[rows], np.where(seen, y, 0.0)[rows]
    count = seen.sum(axis=1)
    basis = Basis(
        estimand="correlation over cells, super-population of items",
        items=len(x),
        conditions=seen.shape[1],
        excluded=int((~rows).sum()),
        level=level,
        seed=seed,
    )

    def one(part: str, centre_x: Floats, centre_y: Floats) -> Estimate:
        a, b = np.where(seen, x - centre_x, 0.0), np.where(seen, y - centre_y, 0.0)
        columns = [count, a.sum(axis=1), b.sum(axis=1), (a * a).sum(axis=1), (b * b).sum(axis=1)]
        units = unit_sums(np.column_stack([*columns, (a * b).sum(axis=1)]), codes)
        return _correlated(f"association.{part}", units, basis, replications)

    own_x = (x.sum(axis=1) / np.maximum(count, 1))[:, None]
    own_y = (y.sum(axis=1) / np.maximum(count, 1))[:, None]
    total = max(1, int(count.sum()))
    return Association(
        overall=one("overall", np.full((1, 1), x.sum() / total), np.full((1, 1), y.sum() / total)),
        within=one("within", own_x, own_y),
    )


def _correlated(measure: str, units: Floats, basis: Basis, replications: int) -> Estimate:
    if len(units) < 2:
        return basis.undefined(measure, "insufficient_data", "fewer than two items")
    value = float(_pearson(units.sum(axis=0)))
    if np.isnan(value):
        return basis.undefined(measure, "undefined_zero_variance", "one of them never varies")
    interval = sums_interval(
        units, _pearson, level=basis.level, replications=replications, seed=basis.seed or 0
    )
    return basis.estimate(measure, value, interval)


def _pearson(sums: Floats) -> Floats:
    """From the sums of 1, x, y, x^2, y^2 and xy over cells."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums[..., 1:] / sums[..., :1]
        var_x = mean[..., 2] - np.square(mean[..., 0])
        var_y = mean[..., 3] - np.square(mean[..., 1])
        found = (mean[..., 4] - mean[..., 0] * mean[..., 1]) / np.sqrt(var_x * var_y)
    varies = (var_x > 1e-14 * mean[..., 2]) & (var_y > 1e-14 * mean[..., 3])
    return np.asarray(np.where(varies, np.clip(found, -1.0, 1.0), np.nan))
