"""How often an outcome changes when nothing was changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.stats import wilson_interval

__all__ = ["noise_floor"]

SAME = 1e-9


def noise_floor(baseline: ArrayLike, repeat: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The share of items whose score differs between two runs of the same prompt.

    Wilson's interval. Scores within 1e-9 are the same. Items that lack one of the runs are
    excluded; none left: insufficient_data.
    """
    first, second = np.asarray(baseline, dtype=float), np.asarray(repeat, dtype=float)
    if first.ndim != 1 or first.shape != second.shape:
        raise InvalidValue(
            "baseline, repeat", (first.shape, second.shape), "two vectors with one score an item"
        )
    gaps = np.abs(first - second)
    present = gaps[~np.isnan(gaps)]
    changed = int((present > SAME).sum())
    found = wilson_interval(changed, len(present), level=level)
    return Estimate(
        measure="noise_floor",
        value=changed / len(present) if len(present) else None,
        status="ok" if len(present) else "insufficient_data",
        estimand="share of items whose score differs on asking again, super-population of items",
        low=found.low,
        high=found.high,
        level=level,
        method=found.method,
        items=len(present),
        conditions=1,
        excluded=len(gaps) - len(present),
    )
