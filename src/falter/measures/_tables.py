"""The items x conditions x runs table that the variance measures work on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate, EstimateStatus
from falter.stats import Interval, clopper_pearson

__all__ = ["Table"]

# From this many varying items on, or a quarter of all, the jackknife is as good.
FEW = 10.0
ESTIMAND = "these conditions, items like these"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The items that have every cell, and how many items have not."""

    cells: NDArray[np.float64]
    excluded: int
    level: float

    @classmethod
    def read(cls, outcomes: ArrayLike, level: float) -> Table:
        """Items x conditions, or items x conditions x runs; rows with a NaN are left out."""
        array = np.asarray(outcomes, dtype=np.float64)
        if array.ndim == 2:
            array = array[:, :, None]
        if array.ndim != 3 or array.shape[2] == 0:
            raise InvalidValue(
                "outcomes", array.shape, "items x conditions, or items x conditions x runs"
            )
        if np.isinf(array).any():
            raise InvalidValue("outcomes", "an infinite score", "finite numbers, NaN where missing")
        whole = ~np.isnan(array).any(axis=(1, 2))
        return cls(cells=array[whole], excluded=int((~whole).sum()), level=level)

    @property
    def runs(self) -> int:
        return int(self.cells.shape[2])

    @property
    def binary(self) -> bool:
        return bool(np.isin(self.cells, (0.0, 1.0)).all())

    @property
    def ceiling(self) -> float:
        """The largest variance component there can be."""
        width = self.cells.shape[1]
        return 0.25 * width / (width - 1) if self.binary else math.inf

    @property
    def status(self) -> EstimateStatus:
        """Why no component can be computed, or ok."""
        if self.cells.shape[1] < 2:
            return "not_identified"
        return "insufficient_data" if self.cells.shape[0] < 2 else "ok"

    def estimate(self, measure: str, value: float, interval: Interval) -> Estimate:
        """The value with its interval, widened to the value where an estimate below 0 left it."""
        low, high = interval.low, interval.high
        return self._record(
            measure,
            value=float(value),
            low=None if low is None else min(low, float(value)),
            high=None if high is None else max(high, float(value)),
            method=interval.method,
        )

    def undefined(self, measure: str, status: EstimateStatus, why: str) -> Estimate:
        return self._record(measure, value=None, status=status, method=f"none: {why}")

    def _record(self, measure: str, **rest: Any) -> Estimate:
        return Estimate(
            measure=measure,
            estimand=ESTIMAND,
            level=self.level,
            items=self.cells.shape[0],
            conditions=self.cells.shape[1],
            excluded=self.excluded,
            **rest,
        )

    def few_vary(self) -> Interval | None:
        """An interval for the variance within items (ddof 1) when hardly a 0/1 item varies.

            k = (Σ v)² / Σ v²        s = Σ v² / Σ v

        The items' variances v behave like k items of the size s among I − k that have none: the
        interval is s times Clopper and Pearson's for k of I. If not one item varies, s is the
        largest variance an item can have. None from k = FEW or k > I/4 on, for scores other than
        0/1, for more runs, and where all items are the same.
        """
        items, width, runs = self.cells.shape
        if runs > 1 or not self.binary or np.ptp(self.cells.mean(axis=(1, 2))) == 0.0:
            return None
        v = self.cells[:, :, 0].var(axis=1, ddof=1)
        total, squares = float(v.sum()), float(np.square(v).sum())
        k = total * total / squares if squares > 0.0 else 0.0
        largest = (width // 2) * ((width + 1) // 2) / (width * (width - 1))
        s = squares / total if total > 0.0 else largest
        if k >= FEW or k > items / 4.0:
            return None
        interval = clopper_pearson(k, items, level=self.level).mapped(lambda share: share * s)
        return replace(interval, method="scaled clopper-pearson, few items vary")
