"""Whether more outputs cannot be read under a perturbation than without it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy_drop

__all__ = ["differential_failure"]


def differential_failure(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The share of outputs that cannot be read, condition less baseline; positive where more fail.

    One 0/1 number for every item, 1 where the output was unparsed, cut off or refused, NaN where
    the request was never answered. Interval and p-value (McNemar's mid-p) as in `accuracy_drop`.
    Where p is small, numbers over the readable outputs compare different items.
    """
    before, after = np.asarray(baseline, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    for name, flags in (("baseline", before), ("perturbed", after)):
        if not np.isin(flags[~np.isnan(flags)], (0.0, 1.0)).all():
            raise InvalidValue(name, "other numbers", "1 (failed), 0 (read) or NaN for every item")
    return replace(
        accuracy_drop(after, before, clusters=clusters, level=level),
        measure="differential_failure",
        estimand="unreadable(condition) - unreadable(baseline), items like these",
    )
