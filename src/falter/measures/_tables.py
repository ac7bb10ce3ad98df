"""The items x conditions x runs table that the variance measures work on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate, EstimateStatus
from falter.stats import Interval, clopper_pearson

__all__ = ["Table"]

FEW = 10.0
ESTIMAND = "fixed conditions, super-population of items"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The items that have every cell, and how many had not."""

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

    def _record(self, measure: str, **given: Any) -> Estimate:
        return Estimate(
            measure=measure,
            estimand=ESTIMAND,
            level=self.level,
            items=self.cells.shape[0],
            conditions=self.cells.shape[1],
            excluded=self.excluded,
            **given,
        )

    def few_vary(self) -> Interval | None:
        """An interval for the variance within items (ddof 1) when hardly a 0/1 item varies.

        Item variances v behave like k = (sum v)^2/(sum v^2) items of the size s = sum v^2/sum v
        among the rest that have none: s times Clopper and Pearson's interval for k of I. If not
        one varies, s is the largest variance an item can have. None from k = FEW or
        k > I/4 on, for scores other than 0/1, for more runs, and where all items are the same.
        """
        items, width, runs = self.cells.shape
        if runs > 1 or not self.binary or np.ptp(self.cells.mean(axis=(1, 2))) == 0.0:
            return None
        own = self.cells[:, :, 0].var(axis=1, ddof=1)
        total, squares = float(own.sum()), float(np.square(own).sum())
        count = total * total / squares if squares > 0.0 else 0.0
        largest = (width // 2) * ((width + 1) // 2) / (width * (width - 1))
        size = squares / total if total > 0.0 else largest
        if count >= FEW or count > items / 4.0:
            return None
        share = clopper_pearson(count, items, level=self.level)
        return Interval(
            low=None if share.low is None else share.low * size,
            high=None if share.high is None else share.high * size,
            level=self.level,
            method="scaled clopper-pearson, few items vary",
        )
