"""Brittleness of a model over benchmarks, and of a benchmark over models."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate, EstimateStatus
from falter.measures._estimates import Basis
from falter.measures._item_sums import Stratum, gapped_item_sums, item_sums
from falter.measures._pooled_intervals import (
    few_vary,
    part_interval,
    share_interval,
    share_variance,
)
from falter.measures._resample import unit_codes, unit_sums
from falter.measures._tables import Table, outcome_array
from falter.stats import too_few_clusters

__all__ = ["PooledBrittleness", "brittleness_by_model", "brittleness_by_task"]

Tables = Mapping[str, Mapping[str, ArrayLike]]
Clusters = Mapping[str, Sequence[Hashable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledBrittleness:
    """Components summed over matrices, and then one ratio.

    `pooled` names the matrices that were summed; `null` those of them in which every outcome is
    the same, which add 0 to both sums; `left_out` those that cannot be decomposed, with the reason.
    """

    brittleness: Estimate
    pert: Estimate
    data: Estimate
    run: Estimate
    pooled: tuple[str, ...]
    null: tuple[str, ...]
    left_out: Mapping[str, EstimateStatus]


def brittleness_by_model(
    outcomes: Tables,
    *,
    clusters: Clusters | None = None,
    level: float = 0.95,
) -> dict[str, PooledBrittleness]:
    """For every model the share of its variance, over all benchmarks, that is within items.

    Σ_b pert_b / Σ_b total_b over benchmarks b, all plug-in: not the mean of ratios, and not the
    ratio of one long matrix. `outcomes[model][benchmark]` is items x conditions (x runs). Every
    matrix counts the same; `clusters[benchmark]` names the passage of every item. The interval is
    about items, not benchmarks: a jackknife within every benchmark, on the logit scale. Fewer than
    ten varying 0/1 items: Fay and Feuer's interval of a weighted count. NaN is a missing cell: all others count, by pairs of conditions.
    A benchmark of fewer than six clusters: too_few_clusters.
    """
    _check(outcomes)
    results = {}
    for model, tables in outcomes.items():
        pool = _Pool(level=level, clustered=clusters is not None)
        for name, cells in tables.items():
            labels = None if clusters is None else clusters[name]
            pool.add(name, _Matrix.read(cells, labels, level))
        results[model] = pool.result("brittleness_by_model", pool.strata)
    return results


def brittleness_by_task(
    outcomes: Tables,
    *,
    clusters: Clusters | None = None,
    level: float = 0.95,
) -> dict[str, PooledBrittleness]:
    """For every benchmark the share of variance, over all models, that is within items.

    Σ_m pert_m / Σ_m total_m over models m; see `brittleness_by_model`. The models answered the same
    items, in the same order: an item is left out, or drawn, for all models at once. An item that a
    model lacks is a row of NaN.
    """
    _check(outcomes)
    results = {}
    for name in dict.fromkeys(name for tables in outcomes.values() for name in tables):
        pool = _Pool(level=level, clustered=clusters is not None)
        labels = None if clusters is None else clusters[name]
        for model, tables in outcomes.items():
            if name in tables:
                pool.add(model, _Matrix.read(tables[name], labels, level))
        joined = [_side_by_side(name, pool.strata)] if pool.strata else []
        pool.by_item = [_side_by_side(name, pool.by_item)] if pool.by_item else []
        results[name] = pool.result("brittleness_by_task", joined)
    return results


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matrix:
    """One items x conditions table, which of its rows have a cell, and their units."""

    table: Table
    used: NDArray[np.bool_]
    codes: NDArray[np.intp]

    @classmethod
    def read(cls, cells: ArrayLike, clusters: Sequence[Hashable] | None, level: float) -> _Matrix:
        array = outcome_array(cells)
        table = Table.read_all(array, level)
        used = np.asarray((~np.isnan(array)).any(axis=(1, 2)))
        return cls(table=table, used=used, codes=unit_codes(clusters, len(array)))

    def stratum(self, *, by_item: bool = False) -> Stratum:
        """The sums of every unit; an item without any cell is a row of zeros."""
        table = self.table
        items, width, _ = table.cells.shape
        columns = np.zeros((len(self.used), 5))
        sums = item_sums if table.whole else gapped_item_sums
        columns[self.used] = sums(table.cells)
        return Stratum(
            units=columns if by_item else unit_sums(columns, self.codes),
            items=items,
            excluded=table.excluded,
            conditions=width,
            counts_only=table.runs == 1 and table.binary,
        )


class _Pool:
    """The matrices of one model or benchmark, and the result of them together."""

    def __init__(self, *, level: float, clustered: bool) -> None:
        self.level, self.clustered = level, clustered
        self.strata: list[Stratum] = []
        self.by_item: list[Stratum] = []
        self.names: list[str] = []
        self.null: list[str] = []
        self.left_out: dict[str, EstimateStatus] = {}

    def add(self, label: str, matrix: _Matrix) -> None:
        """Add a matrix, or note why it cannot be decomposed."""
        if matrix.table.status != "ok":
            self.left_out[label] = matrix.table.status
            return
        self.strata.append(matrix.stratum())
        if self.clustered:
            self.by_item.append(matrix.stratum(by_item=True))
        self.names.append(label)
        if np.nanmax(matrix.table.cells) == np.nanmin(matrix.table.cells):
            self.null.append(label)

    def result(self, measure: str, strata: Sequence[Stratum]) -> PooledBrittleness:
        """The sums and their ratio, with intervals."""
        basis = Basis(
            estimand="sum of variances within items over sum of variances, these conditions, "
            "items like these",
            items=sum(s.items for s in strata),
            conditions=max((s.conditions for s in strata), default=0),
            excluded=sum(s.excluded for s in strata),
            level=self.level,
        )
        if not strata:
            return self._nothing(measure, basis)
        whole = sum((s.whole() for s in strata), np.zeros(3))
        pert, data, run = (
            basis.estimate(
                f"{measure}.{part}",
                float(whole[place]),
                part_interval(strata, place, self.level),
            )
            for place, part in enumerate(("pert", "data", "run"))
        )
        ratio = self._counted(self._ratio(measure, strata, whole, basis), strata)
        if ratio.low is not None and self.clustered and (plain := share_variance(self.by_item)):
            ratio = replace(ratio, design_effect=share_variance(strata) / plain)
        return PooledBrittleness(
            brittleness=ratio,
            pert=self._counted(pert, strata),
            data=self._counted(data, strata),
            run=self._counted(run, strata),
            pooled=tuple(self.names),
            null=tuple(self.null),
            left_out=self.left_out,
        )

    def _nothing(self, measure: str, basis: Basis) -> PooledBrittleness:
        why = "no table has two items and two conditions"
        brittleness, pert, data, run = (
            basis.undefined(name, "insufficient_data", why)
            for name in (measure, f"{measure}.pert", f"{measure}.data", f"{measure}.run")
        )
        return PooledBrittleness(
            brittleness=brittleness, pert=pert, data=data, run=run,
            pooled=(), null=(), left_out=self.left_out,
        )  # fmt: skip

    def _counted(self, estimate: Estimate, strata: Sequence[Stratum]) -> Estimate:
        """With its number of clusters, and without an interval where a matrix has too few."""
        if not self.clustered:
            return estimate
        counts = [int((s.units[:, 0::5].sum(axis=1) > 0.0).sum()) for s in strata]
        estimate = replace(estimate, clusters=sum(counts))
        few = too_few_clusters(min(counts))
        if estimate.status != "ok" or few is None:
            return estimate
        why = f"none: {few}"
        return replace(estimate, status="too_few_clusters", low=None, high=None, method=why)

    def _ratio(
        self,
        measure: str,
        strata: Sequence[Stratum],
        whole: NDArray[np.float64],
        basis: Basis,
    ) -> Estimate:
        if whole.sum() == 0.0:
            why = "in every table all outcomes are the same"
            return basis.undefined(measure, "undefined_zero_variance", why)
        interval = few_vary(strata, self.level) or share_interval(strata, self.level)
        return basis.estimate(measure, float(whole[0] / whole.sum()), interval)


def _side_by_side(name: str, strata: Sequence[Stratum]) -> Stratum:
    """One stratum of the matrices that share their items."""
    rows = {len(s.units) for s in strata}
    if len(rows) > 1:
        raise InvalidValue(
            f"outcomes of '{name}'",
            f"tables of {sorted(rows)} items",
            "the same items for every model",
            hint="give an item that a model lacks a row of NaN",
        )
    return Stratum(
        units=np.hstack([s.units for s in strata]),
        items=max(s.items for s in strata),
        excluded=max(s.excluded for s in strata),
        conditions=max(s.conditions for s in strata),
        counts_only=all(s.counts_only for s in strata),
    )


def _check(outcomes: Tables) -> None:
    if not outcomes:
        raise InvalidValue("outcomes", {}, "for every model, a table for every benchmark")
