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
    run, rerun = np.asarray(baseline, dtype=float), np.asarray(repeat, dtype=float)
    if run.ndim != 1 or run.shape != rerun.shape:
        expected = "two vectors of the same items, one score for every item"
        raise InvalidValue("baseline, repeat", (run.shape, rerun.shape), expected)
    change = np.abs(run - rerun)
    present = change[~np.isnan(change)]
    changed = int((present > SAME).sum())
    interval = wilson_interval(changed, len(present), level=level)
    return Estimate(
        measure="noise_floor",
        value=changed / len(present) if len(present) else None,
        status="ok" if len(present) else "insufficient_data",
        estimand="share of items whose score differs when they are asked again, items like these",
        low=interval.low,
        high=interval.high,
        level=level,
        method=interval.method,
        items=len(present),
        conditions=1,
        excluded=len(change) - len(present),
    )
