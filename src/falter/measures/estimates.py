"""Build `Estimate` records: a value with its interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import too_few_clusters
from falter.stats.intervals import Interval, no_interval
from falter.stats.mean import ItemMean

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Clusters = Sequence[Hashable] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The common fields of the estimates of one result: estimand, counts, level and seed."""

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
        """Return the value with its interval, widened if necessary to contain the value.

        Fewer than 6 clusters: too_few_clusters, without an interval and a p-value.
        """
        if status == "ok" and (few := too_few_clusters(self.clusters)):
            status, interval, p_value = "too_few_clusters", no_interval(self.level, few), None
        # An interval around a corrected centre, such as a jackknife's, may miss the plain value.
        low, high, value = interval.low, interval.high, float(value)
        return self._record(
            measure,
            value=value,
            status=status,
            low=None if low is None else min(float(low), value),
            high=None if high is None else max(float(high), value),
            p_value=p_value,
            method=interval.method,
        )

    def undefined(self, measure: str, status: EstimateStatus, why: str) -> Estimate:
        """Return an estimate without a value, with the reason as its method."""
        return self._record(measure, value=None, status=status, method=f"none: {why}")

    def all_undefined(
        self, measure: str, parts: Iterable[str], status: EstimateStatus, why: str
    ) -> dict[str, Estimate]:
        """Return an undefined estimate for each part of a measure."""
        return {part: self.undefined(f"{measure}.{part}", status, why) for part in parts}

    def of_mean(
        self,
        measure: str,
        mean: ItemMean,
        interval: Interval | None = None,
        *,
        p_value: float | None = None,
        why: str = "fewer than two items",
    ) -> Estimate:
        """Return the estimate of a mean over items; `interval` replaces the mean's own interval.

        Without a value the estimate is undefined, with `why` as the reason.
        """
        if mean.value is None:
            return self.undefined(measure, mean.status, why)
        basis = replace(self, clusters=mean.clusters, design_effect=mean.design_effect)
        interval = interval or mean.interval
        return basis.estimate(measure, mean.value, interval, p_value=p_value, status=mean.status)

    def counting(self, mean: ItemMean) -> Basis:
        """Return this basis with the counts of items and clusters of a mean."""
        return replace(
            self,
            items=mean.items,
            excluded=mean.excluded,
            clusters=mean.clusters,
            design_effect=mean.design_effect,
        )

    def _record(self, measure: str, **values: Any) -> Estimate:
        return Estimate(
            measure=measure,
            estimand=self.estimand,
            level=self.level,
            items=self.items,
            conditions=self.conditions,
            excluded=self.excluded,
            clusters=self.clusters,
            design_effect=self.design_effect,
            seed=self.seed,
            **values,
        )


def of_rate(measure: str, what: str, mean: ItemMean) -> Estimate:
    """Return a mean over items as an estimate.

    `what` describes the value; the estimand adds "items like these".
    """
    basis = Basis(
        estimand=f"{what}, items like these",
        items=0,
        conditions=mean.conditions,
        level=mean.interval.level,
    ).counting(mean)
    found = basis.of_mean(measure, mean, p_value=mean.p_value)
    return replace(found, informative=mean.informative)


_SHARED_FIELDS = (
    "value", "status", "estimand", "low", "high", "p_value", "items", "conditions", "excluded",
    "clusters", "design_effect",
)  # fmt: skip


def of_result(measure: str, result: Any, **more: Any) -> Estimate:
    """Return the result of a test or a mean as an estimate; fields in `more` take precedence."""
    values = {name: getattr(result, name) for name in _SHARED_FIELDS if hasattr(result, name)}
    interval = getattr(result, "interval", None)
    if interval is not None:
        values |= {name: getattr(interval, name) for name in ("low", "high", "level", "method")}
    return Estimate(measure=measure, **{**values, **more})


def with_clusters(estimate: Estimate, clusters: int, *, fewest: int | None = None) -> Estimate:
    """Return the estimate with its number of clusters; fewer than 6 remove interval and p-value.

    If the estimate has several parts, `fewest` is the smallest number of clusters of a part.
    """
    estimate = replace(estimate, clusters=clusters)
    few = too_few_clusters(clusters if fewest is None else fewest)
    if estimate.status != "ok" or few is None:
        return estimate
    none: dict[str, Any] = dict.fromkeys(("low", "high", "p_value"))
    return replace(estimate, status="too_few_clusters", method=f"none: {few}", **none)


def vectors(names: str, *values: ArrayLike) -> list[Floats]:
    """Return float vectors; raise InvalidValue unless all are one-dimensional with one length."""
    arrays = [np.asarray(vector, dtype=np.float64) for vector in values]
    shapes = [array.shape for array in arrays]
    if len(set(shapes)) > 1 or arrays[0].ndim != 1:
        raise InvalidValue(names, tuple(shapes), "one number for every item, of the same items")
    return arrays


def matrix(name: str, values: ArrayLike, expected: str, *, columns: int = 1) -> Floats:
    """Return `values` as items x conditions; raise, saying `expected`, for fewer columns."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < columns:
        raise InvalidValue(name, array.shape, expected)
    return array


def items_by_times(name: str, scores: ArrayLike) -> Floats:
    """Return items x repeats, also from one score for each item."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    return matrix(name, table, "a score for each item, or items x times asked", columns=0)
