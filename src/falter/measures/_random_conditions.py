"""The average drop where the perturbations are a sample of perturbations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import Estimate
from falter.measures._averages import micro_average
from falter.measures._tables import Table
from falter.stats import Interval, no_interval, outer

__all__ = ["random_conditions_average"]

Floats = NDArray[np.float64]


def random_conditions_average(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean drop with an interval for other items *and* other perturbations of the kind.

        a = Var_j(ȳ_j)/J        b = Var(mean_j ȳ_j) over items        e = a − condition/J
        se² = max(a + b − e, a)
        freedom = se⁴ / (a²/(J − 1) + b²/(G − 1) + e²/((G − 1)(J − 1)))

    `drops` is items x conditions of baseline - perturbed, NaN where missing; ȳ_j is the mean of one
    of J conditions over the items it has, and `condition` their variance less that from sampling
    items. b is over G units, items or `clusters`. Where a is the maximum, only it enters the
    freedom. Without gaps se² is (MS_I + MS_J − MS_E)/(I J). With few perturbations the interval is
    wide, and it should be: `micro_average` is about the very perturbations that were run. One
    condition: not_identified; fewer than two items: insufficient_data; fewer than six clusters:
    too_few_clusters. With the scores of the `baseline` the interval holds that of `micro_average`:
    other perturbations are not surer than those that were run. Source: Satterthwaite (1946) for the
    freedom.
    """
    measure = "random_conditions_average"
    table = Table.read_all(drops, level, clusters)
    if table.status != "ok":
        why = "fewer than two items or conditions"
        return _about(table.undefined(measure, table.status, why), table)
    cells, width = table.means, table.cells.shape[1]
    value = float(_columns(cells).mean())
    of_items, units = _item_variance(cells, table.codes)
    of_columns = float(_columns(cells).var(ddof=1))
    of_columns /= width
    rest = of_columns - float(table.parts.condition[0]) / width
    both = of_columns + of_items - rest
    variance = max(both, of_columns)
    largest = float(np.nanmax(np.square(cells)))
    if not variance > 1e-26 * largest:
        return _about(table.estimate(measure, value, no_interval(level)), table)
    interval = _interval(value, (of_columns, of_items, rest), (width, units), level)
    if baseline is not None:
        these = micro_average(drops, baseline=baseline, clusters=clusters, level=level)
        interval = outer(interval, replace(interval, low=these.low, high=these.high))
    effect = None
    if table.codes is not None:
        plain, _ = _item_variance(cells, None)
        effect = of_items / plain if plain > 0.0 else None
    return _about(table.estimate(measure, value, interval, design_effect=effect), table)


def _interval(
    value: float, parts: tuple[float, float, float], counts: tuple[int, int], level: float
) -> Interval:
    from scipy.special import stdtrit

    (columns, items, rest), (width, units) = parts, counts
    both = columns + items - rest
    variance = max(both, columns)
    squares = columns**2 / (width - 1)
    if both >= columns:
        squares += items**2 / (units - 1) + rest**2 / ((units - 1) * (width - 1))
    freedom = max(1.0, variance**2 / squares) if squares > 0.0 else float(units - 1)
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * float(np.sqrt(variance))
    method = f"t, crossed items and conditions, {freedom:.1f} degrees of freedom"
    return Interval(low=value - half, high=value + half, level=level, method=method)


def _columns(cells: Floats) -> Floats:
    return np.asarray(np.nanmean(cells, axis=0))


def _item_variance(cells: Floats, codes: NDArray[np.intp] | None) -> tuple[float, int]:
    """The variance of the mean of the condition means over units of items, and their number."""
    seen = ~np.isnan(cells)
    parts = np.where(seen, cells - _columns(cells), 0.0) / seen.sum(axis=0)
    influence = parts.mean(axis=1)
    if codes is not None:
        influence = np.bincount(codes, weights=influence)
    units = len(influence)
    return float(units / (units - 1) * np.square(influence).sum()), units


def _about(estimate: Estimate, table: Table) -> Estimate:
    conditions = "conditions like these"
    if table.empty:
        conditions += f" without {', '.join(str(j) for j in table.empty)} (no outcome)"
    return replace(estimate, estimand=f"mean drop, {conditions}, items like these")
