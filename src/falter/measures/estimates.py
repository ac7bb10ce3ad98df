"""Filling the record: a value with its interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate, EstimateStatus
from falter.stats import Interval

Floats = NDArray[np.float64]
Clusters = Sequence[Hashable] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What the estimates of one result have in common: what they are about, and the counts."""

    estimand: str
    items: int
    conditions: int = 1
    excluded: int = 0
    clusters: int | None = None
    design_effect: float | None = None
    level: float = 0.95
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise InvalidValue("level", self.level, "a number between 0 and 1", hint="95 % is 0.95")

    def estimate(
        self,
        measure: str,
        value: float,
        interval: Interval,
        *,
        p_value: float | None = None,
        status: EstimateStatus = "ok",
    ) -> Estimate:
        """The value with its interval, which is widened to hold the value where it did not."""
        low, high = interval.low, interval.high
        return Estimate(
            measure=measure,
            value=float(value),
            status=status,
            estimand=self.estimand,
            low=None if low is None else min(float(low), float(value)),
            high=None if high is None else max(float(high), float(value)),
            level=self.level,
            p_value=p_value,
            method=interval.method,
            items=self.items,
            conditions=self.conditions,
            excluded=self.excluded,
            clusters=self.clusters,
            design_effect=self.design_effect,
            seed=self.seed,
        )

    def undefined(self, measure: str, status: EstimateStatus, why: str) -> Estimate:
        """No value, and why."""
        return Estimate(
            measure=measure,
            value=None,
            status=status,
            estimand=self.estimand,
            level=self.level,
            method=f"none: {why}",
            items=self.items,
            conditions=self.conditions,
            excluded=self.excluded,
            clusters=self.clusters,
            design_effect=self.design_effect,
            seed=self.seed,
        )
