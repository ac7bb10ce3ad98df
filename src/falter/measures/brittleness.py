"""Brittleness of a model over benchmarks, and of a benchmark over models."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.estimates import Basis, Clusters, Floats, with_clusters
from falter.measures.resample import unit_sums
from falter.measures.tables import RARE_EVENT_LIMIT, Table, share_of_few
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Interval, no_interval

# The plug-in decomposition is a function of sums over items, so leaving out an item is cheap.
# The number of columns of `_item_sums`.
SUMS_PER_TABLE = 5


def _item_sums(cells: Floats) -> Floats:
    """Return a row per item: 1, variance over conditions, mean variance over runs, m and m².

    m is the item's mean less the mean of all items, so the squares lose fewer digits.
    """
    means_of_runs = cells.mean(axis=2)
    means = means_of_runs.mean(axis=1)
    within = np.square(means_of_runs - means[:, None]).mean(axis=1)
    within[np.ptp(means_of_runs, axis=1) == 0.0] = 0.0
    between_runs = cells.var(axis=2).mean(axis=1) if cells.shape[2] > 1 else np.zeros(len(cells))
    centred = means - float(means_of_runs.mean())
    if np.ptp(means) == 0.0:
        centred = np.zeros(len(means))
    return np.column_stack([np.ones(len(cells)), within, between_runs, centred, np.square(centred)])


def gapped_item_sums(cells: Floats) -> Floats:
    """Return `_item_sums` for items x conditions x runs with gaps; their means are the components.

        within_i = I (J − 1)/J mean over j ≠ k of (y_ij − y_ik)²/(2 n_jk)
        m_i = I mean_j y_ij/n_j

    The means are over the cells that item i of I has. n_j items have condition j, and n_jk items
    have both j and k. The last column is I mean_j y_ij²/n_j − within_i, which is m_i² without gaps.
    """
    seen = ~np.isnan(cells)
    counts = seen.sum(axis=2)
    has = (counts > 0).astype(np.float64)
    y = np.where(seen, cells, 0.0).sum(axis=2) / np.maximum(counts, 1)
    off = np.where(seen, cells - y[..., None], 0.0)
    between_runs = np.square(off).sum(axis=2) / np.maximum(counts, 1)
    items, width = has.shape
    n, common = has.sum(axis=0), has.T @ has
    np.fill_diagonal(common, 0.0)
    pair = common > 0.0
    weight = np.where(pair, 1.0 / np.maximum(common, 1.0), 0.0) / max(1, int(pair.sum()))
    y = (y - float((y.sum(axis=0) / n).mean())) * has
    square = np.square(y)
    # Σ over pairs of (y_j − y_k)²/2 = Σ y_j² − Σ y_j y_k
    within = ((square @ weight) * has).sum(axis=1) - ((y @ weight) * y).sum(axis=1)
    within = items * (width - 1) / width * np.where(within <= 1e-15, 0.0, within)
    mean, squares, runs = (items * (x / n).mean(axis=1) for x in (y, square, between_runs))
    return np.column_stack([np.ones(items), within, runs, mean, squares - within])


def _plugin(sums: Floats) -> Floats:
    """Map (..., 5) sums to (..., 3): pert, data = mean m² − (mean m)², run; NaN without an item."""
    with np.errstate(invalid="ignore", divide="ignore"):
        pert, run, mean, square = np.moveaxis(sums[..., 1:] / sums[..., :1], -1, 0)
    data = square - np.square(mean)
    # A rounding error left by the difference is no variance.
    data = np.where(data <= 1e-12 * np.abs(square), 0.0, data)
    return np.stack([pert, data, run], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stratum:
    """Tables that share their items: the sums of their units in one row, five columns per table."""

    units: Floats
    items: int
    excluded: int
    conditions: int
    counts_only: bool

    def components(self, sums: Floats) -> Floats:
        """Map (..., 5 x tables) sums to (..., 3): pert, data and run, each summed over tables."""
        return np.asarray(_plugin(sums.reshape(*sums.shape[:-1], -1, SUMS_PER_TABLE)).sum(axis=-2))

    def total(self) -> Floats:
        """Return the components of all units."""
        return self.components(self.units.sum(axis=0))

    def left_out(self) -> Floats:
        """Return units x 3: the components without each unit in turn."""
        return self.components(self.units.sum(axis=0) - self.units)


# Intervals for sums of variance components over strata with different items.


def _shares(strata: Sequence[_Stratum]) -> tuple[float, list[Floats]]:
    """Return Σ pert / Σ total, and its values without each unit of each stratum."""
    wholes = np.stack([s.total() for s in strata])
    total = wholes.sum(axis=0)
    left_out = [
        _share(total - whole + s.left_out()) for s, whole in zip(strata, wholes, strict=True)
    ]
    return float(_share(total)), left_out


def _share_variance(strata: Sequence[_Stratum]) -> float:
    """Return the stratified jackknife variance of Σ pert / Σ total."""
    return sum(
        (len(x) - 1) / len(x) * float(np.square(x - x.mean()).sum()) for x in _shares(strata)[1]
    )


def _part_interval(strata: Sequence[_Stratum], place: int, level: float) -> Interval:
    """Return an interval for one of the summed components by a stratified jackknife of its log.

    A variance of 0/1 scores is at most 1/4 per table, and so is the upper end.
    """
    wholes = np.array([s.total()[place] for s in strata])
    total = float(wholes.sum())
    left_out = [
        total - whole + s.left_out()[:, place] for s, whole in zip(strata, wholes, strict=True)
    ]
    interval = _stratified_jackknife(total, left_out, "log", level)
    if all(s.counts_only for s in strata):
        # A stratum of several models has several tables, and each may add up to 1/4.
        most = sum(0.25 * s.units.shape[1] / SUMS_PER_TABLE for s in strata)
        interval = interval.clipped(0.0, most)
    return interval


def _rare_event_interval(strata: Sequence[_Stratum], level: float) -> Interval | None:
    """Return Fay and Feuer's gamma interval for a share to which hardly any 0/1 item contributes.

        y = Σ x        v = Σ x²        low = v/2y χ²(2y²/v, α/2)
        high = v'/2y' χ²(2y'²/v', 1 − α/2)   with y' = y + k, v' = v + k²

    Every varying unit adds x to y = Σ pert, a weighted count with variance v. k is the largest x
    that a unit can add. An end e becomes the share e/(Σ pert + Σ data), see `share_of_few`. None if
    y²/v, the effective number of units, is at least ten or a quarter of all units. None also for
    other scores, for several runs, and for items with equal means. Source: Fay and Feuer (1997).
    """
    from scipy.special import gammaincinv

    if not all(s.counts_only for s in strata):
        return None
    y = v = k = 0.0
    for s in strata:
        columns = s.units.reshape(len(s.units), -1, SUMS_PER_TABLE)
        counts = columns[:, :, 0].sum(axis=0)
        x = (columns[:, :, 1] / counts).sum(axis=1)
        y, v = y + float(x.sum()), v + float(np.square(x).sum())
        # The largest variance of a 0/1 item, and the unit with the largest share of the items.
        most = (s.conditions // 2) * ((s.conditions + 1) // 2) / s.conditions**2
        largest_unit = float((columns[:, :, 0].max(axis=0) / counts).sum())
        k = max(k, most * largest_unit)
    units = sum(len(s.units) for s in strata)
    # In a small table a quarter of the units is enough for the jackknife.
    if v > 0.0 and y * y / v >= min(RARE_EVENT_LIMIT, units / 4.0):
        return None
    pert, data, _ = sum((s.total() for s in strata), np.zeros(3))
    # Items do not differ, so the share is 1 or undefined, whatever Σ pert may be.
    if data == 0.0:
        return None
    # χ²(2a, p)/2 is the gamma quantile of shape a.
    tail = (1.0 - level) / 2.0
    low = v / y * float(gammaincinv(y * y / v, tail)) if v > 0.0 else 0.0
    y_most, v_most = y + k, v + k * k
    high = v_most / y_most * float(gammaincinv(y_most * y_most / v_most, 1.0 - tail))
    few = Interval(low=low, high=high, level=level, method="fay-feuer gamma, few items vary")
    return share_of_few(few, float(pert), float(data))


def _share(components: Floats) -> Floats:
    """Return pert/(pert + data + run) of (..., 3) components, NaN if nothing varies."""
    total = components.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0.0, components[..., 0] / total, np.nan))


def _stratified_jackknife(
    value: float, left_out: Sequence[Floats], scale: Literal["log", "logit"], level: float
) -> Interval:
    """Return a two-sided t interval from the leave-one-out values of all strata, on the scale g.

        v_h = (n − 1)/n Σ_i (g_i − ḡ)²        bias = Σ_h (n − 1)(ḡ − g)
        g − bias ± t(f) √(Σ_h v_h)            f = (Σ_h v_h)² / Σ_h (v_h²/(n − 1))

    g_i is g of the value without unit i of the n units of stratum h, and ḡ is the stratum's mean of
    the g_i. If g is infinite anywhere, the value itself is used instead. No interval if nothing
    varies, or for a NaN. Source: Efron and Stein (1981); Satterthwaite (1946) for f.
    """
    from scipy.special import logit, stdtrit

    left_out = [values for values in left_out if len(values) > 1]
    everything = np.concatenate([*left_out, [value]])
    top = 1.0 if scale == "logit" else math.inf
    if np.isnan(everything).any() or not left_out:
        return no_interval(level)
    method = f"stratified jackknife t, {scale}"
    # One leave-one-out value at the boundary would make the interval infinite on that scale.
    is_finite = everything.min() > 0.0 and everything.max() < top
    if is_finite:
        to_scale = np.log if scale == "log" else logit
        centre = float(to_scale(np.array([value]))[0])
        strata = [np.asarray(to_scale(values)) for values in left_out]
    else:
        method = method.replace(scale, f"identity (no {scale} at the boundary)")
        centre, strata = value, left_out
    variances = [(len(g) - 1) / len(g) * float(np.square(g - g.mean()).sum()) for g in strata]
    variance = sum(variances)
    # Also false for NaN, which `<=` would let through.
    if not variance > 1e-26 * max(1.0, centre * centre):
        return no_interval(level)
    bias = sum((len(g) - 1) * (float(g.mean()) - centre) for g in strata)
    freedom = variance**2 / sum(
        v * v / (len(g) - 1) for v, g in zip(variances, strata, strict=True)
    )
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * math.sqrt(variance)
    ends = np.array([centre - bias - half, centre - bias + half])
    if is_finite:
        ends = np.exp(ends) if scale == "log" else 0.5 * (1.0 + np.tanh(ends / 2.0))
    low, high = np.clip(ends, 0.0, top)
    return Interval(low=float(low), high=float(high), level=level, method=method)


PARTS = ("pert", "data", "run")
Tables = Mapping[str, Mapping[str, ArrayLike]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledBrittleness:
    """Variance components summed over tables, and the one ratio of these sums.

    `pooled` names the tables that were summed. `null` names those of them with equal outcomes only,
    which add 0 to both sums. `left_out` has the tables without a decomposition, with their status.
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
    clusters: Mapping[str, Sequence[Hashable]] | None = None,
    level: float = 0.95,
) -> dict[str, PooledBrittleness]:
    """For every model the share of its variance, over all benchmarks, that is within items.

    The value is Σ_b pert_b / Σ_b total_b over benchmarks b, with plug-in variances. It is neither a
    mean of ratios nor the ratio of one long table.

    Parameters
    ----------
    outcomes : `outcomes[model][benchmark]` is (items, conditions) or (items, conditions, runs)
        NaN where missing: all other cells count, by pairs of conditions. Every table counts
        equally.
    clusters : `clusters[benchmark]` names the passage of each item; None for independent items

    Returns
    -------
    dict of PooledBrittleness
        The two-sided interval is about items, not benchmarks: a jackknife within every benchmark,
        on the logit scale. If fewer than ten effective 0/1 units vary, it is Fay and Feuer's, see
        `_rare_event_interval`. If a benchmark has fewer than six clusters: too_few_clusters.
    """
    results = {}
    for model, tables in outcomes.items():
        pool = _Pool(level=level, clustered=clusters is not None)
        for name, cells in tables.items():
            labels = None if clusters is None else clusters[name]
            pool.add(name, cells, labels)
        results[model] = pool.result("brittleness_by_model", pool.strata)
    return results


def brittleness_by_task(
    outcomes: Tables,
    *,
    clusters: Mapping[str, Sequence[Hashable]] | None = None,
    level: float = 0.95,
) -> dict[str, PooledBrittleness]:
    """For every benchmark the share of variance, over all models, that is within items.

    The value is Σ_m pert_m / Σ_m total_m over models m; see `brittleness_by_model`. All models need
    the same items in the same order, because an item is left out for all models at once. An item
    that a model lacks is a row of NaN.
    """
    results = {}
    for name in dict.fromkeys(name for tables in outcomes.values() for name in tables):
        pool = _Pool(level=level, clustered=clusters is not None)
        labels = None if clusters is None else clusters[name]
        for model, tables in outcomes.items():
            if name in tables:
                pool.add(model, tables[name], labels)
        joined = [_join_tables(name, pool.strata)] if pool.strata else []
        # The design effect compares clusters with items, and both must be left out for all models.
        pool.by_item = [_join_tables(name, pool.by_item)] if pool.by_item else []
        results[name] = pool.result("brittleness_by_task", joined)
    return results


def _stratum(table: Table, codes: NDArray[np.intp] | None) -> _Stratum:
    """Return the sums of every unit of a table; an item without any cell is a row of zeros."""
    columns = np.zeros((len(table.rows), SUMS_PER_TABLE))
    # Without gaps the sums of pairs equal the plain variances, which need no products.
    columns[table.rows] = (_item_sums if table.is_complete else gapped_item_sums)(table.cells)
    return _Stratum(
        units=unit_sums(columns, codes),
        items=table.cells.shape[0],
        excluded=table.excluded,
        conditions=table.cells.shape[1],
        counts_only=table.runs == 1 and table.binary,
    )


class _Pool:
    """The tables of one model or benchmark, collected for a pooled result."""

    def __init__(self, *, level: float, clustered: bool) -> None:
        self.level, self.clustered = level, clustered
        self.strata: list[_Stratum] = []
        self.by_item: list[_Stratum] = []
        self.names: list[str] = []
        self.null: list[str] = []
        self.left_out: dict[str, EstimateStatus] = {}

    def add(self, label: str, cells: ArrayLike, clusters: Clusters) -> None:
        """Add a table, or record the status for which it cannot be decomposed."""
        table = Table.read_all(cells, self.level)
        codes = None if clusters is None else cluster_codes(clusters, len(table.rows))
        if table.status != "ok":
            self.left_out[label] = table.status
            return
        self.strata.append(_stratum(table, codes))
        if self.clustered:
            self.by_item.append(_stratum(table, None))
        self.names.append(label)
        if np.nanmax(table.cells) == np.nanmin(table.cells):
            self.null.append(label)

    def result(self, measure: str, strata: Sequence[_Stratum]) -> PooledBrittleness:
        """Return the summed components and their ratio, with intervals."""
        basis = Basis(
            estimand="sum of variances within items over sum of variances, these conditions, "
            "items like these",
            items=sum(s.items for s in strata),
            conditions=max((s.conditions for s in strata), default=0),
            excluded=sum(s.excluded for s in strata),
            level=self.level,
        )
        if not strata:
            why = "no table has two items and two conditions"
            return PooledBrittleness(
                brittleness=basis.undefined(measure, "insufficient_data", why),
                **basis.all_undefined(measure, PARTS, "insufficient_data", why),
                pooled=(),
                null=(),
                left_out=self.left_out,
            )
        whole = sum((s.total() for s in strata), np.zeros(3))
        parts = {
            part: basis.estimate(
                f"{measure}.{part}", float(whole[place]), _part_interval(strata, place, self.level)
            )
            for place, part in enumerate(PARTS)
        }
        ratio = self._clustered(self._ratio(measure, strata, whole, basis), strata)
        if ratio.low is not None and self.clustered and (plain := _share_variance(self.by_item)):
            ratio = replace(ratio, design_effect=_share_variance(strata) / plain)
        return PooledBrittleness(
            brittleness=ratio,
            **{part: self._clustered(estimate, strata) for part, estimate in parts.items()},
            pooled=tuple(self.names),
            null=tuple(self.null),
            left_out=self.left_out,
        )

    def _clustered(self, estimate: Estimate, strata: Sequence[_Stratum]) -> Estimate:
        """Return the estimate with its cluster count; no interval if a table has too few."""
        if not self.clustered:
            return estimate
        # The first of a table's five columns counts its items. A cluster without items does not
        # count.
        counts = [int((s.units[:, 0::5].sum(axis=1) > 0.0).sum()) for s in strata]
        return with_clusters(estimate, sum(counts), fewest=min(counts))

    def _ratio(
        self, measure: str, strata: Sequence[_Stratum], whole: Floats, basis: Basis
    ) -> Estimate:
        if whole.sum() == 0.0:
            why = "in every table all outcomes are the same"
            return basis.undefined(measure, "undefined_zero_variance", why)
        interval = _rare_event_interval(strata, self.level)
        interval = interval or _stratified_jackknife(*_shares(strata), "logit", self.level)
        return basis.estimate(measure, float(whole[0] / whole.sum()), interval)


def _join_tables(name: str, strata: Sequence[_Stratum]) -> _Stratum:
    """Return one stratum of tables with the same number of rows, which share their items."""
    rows = {len(s.units) for s in strata}
    if len(rows) > 1:
        raise InvalidValue(
            f"outcomes of '{name}'",
            f"tables of {sorted(rows)} items",
            "the same items for every model",
            hint="give an item that a model lacks a row of NaN",
        )
    return _Stratum(
        units=np.hstack([s.units for s in strata]),
        items=max(s.items for s in strata),
        excluded=max(s.excluded for s in strata),
        conditions=max(s.conditions for s in strata),
        counts_only=all(s.counts_only for s in strata),
    )
