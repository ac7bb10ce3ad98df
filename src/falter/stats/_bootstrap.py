"""The bootstrap, over items or clusters of items."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._clusters import cluster_codes
from falter.stats._interval import Interval, check_level, no_interval

__all__ = ["MOST_SUMS", "bootstrap", "bootstrap_of_sums"]

Floats = NDArray[np.float64]
MOST_SUMS = 1_000  # columns; beyond, to draw rows takes less memory
BLOCK = 2_000_000  # as many sums are held at a time


def bootstrap(
    data: ArrayLike,
    statistic: Callable[[NDArray[Any]], float],
    *,
    clusters: Sequence[Hashable] | None = None,
    replications: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile"] = "bca",
    seed: int = 0,
) -> Interval:
    """An interval for `statistic(data)` from drawing the rows of `data` again, with replacement.

        z0 = Φ⁻¹(share of draws below the value)        l_i = ḡ − g_i
        a = Σ l³ / (6 (Σ l²)^(3/2))        tail = Φ(z0 + (z0 + z)/(1 − a (z0 + z)))

    The default is BCa: percentiles at these tails, with z the normal quantile of the plain tail,
    g_i the statistic without unit i and ḡ their mean; so they are shifted for median bias and for
    acceleration. Where either is undefined, and on request, plain percentiles. A row is an item
    with all its conditions; single cells are never drawn. With `clusters`, whole clusters are
    drawn. Draws whose statistic is NaN are left out. Fewer than two units, or a statistic that
    never varies: no interval. numpy's PCG64, so the same seed draws the same rows.
    Source: Efron (1987).
    """
    check_level(level)
    table = np.asarray(data)
    _check(table, replications, method)
    codes = cluster_codes(clusters, table.shape[0])
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max(initial=-1)) + 1)]
    if len(members) < 2:
        return no_interval(level)
    value = float(statistic(table))
    draws = _draws(table, members, statistic, replications, seed)

    def left_out() -> Floats:
        without = (np.delete(table, rows, axis=0) for rows in members)
        return np.array([statistic(rows) for rows in without], dtype=float)

    units = "items" if clusters is None else "clusters"
    return _interval(value, draws, left_out if method == "bca" else None, level, units)


def bootstrap_of_sums(
    columns: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    replications: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """`bootstrap` of items, for a statistic of the sums of some columns over them.

    The statistic takes rows of such sums, of as many draws at once, so nothing is done draw by
    draw; the draws are those of `bootstrap`.
    """
    check_level(level)
    _check(columns, replications, "bca")
    items = len(columns)
    if items < 2:
        return no_interval(level)
    rng = np.random.Generator(np.random.PCG64(seed))
    total, draws = columns.sum(axis=0), np.empty(replications)
    step = max(1, BLOCK // max(items, columns.shape[1]))
    for start in range(0, replications, step):
        count = min(step, replications - start)
        drawn = rng.integers(items, size=(count, items)) + items * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * items).reshape(count, items)
        draws[start : start + count] = statistic(counts @ columns)
    value = float(statistic(total[None])[0])
    return _interval(
        value, draws[~np.isnan(draws)], lambda: statistic(total - columns), level, "items"
    )


def _interval(
    value: float,
    draws: Floats,
    left_out: Callable[[], Floats] | None,
    level: float,
    units: str,
) -> Interval:
    """Percentiles of the draws; with the statistic without each unit, BCa's."""
    from scipy.special import ndtr, ndtri

    if len(draws) < 2 or np.ptp(draws) == 0.0 or np.isnan(value):
        return no_interval(level)
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    name = "percentile"
    if left_out is not None:
        without = left_out()
        below = (np.sum(draws < value) + np.sum(draws <= value)) / (2.0 * len(draws))
        influence = without.mean() - without
        squares = float(np.square(influence).sum())
        if 0.0 < below < 1.0 and squares > 0.0:
            acceleration = float((influence**3).sum()) / (6.0 * squares**1.5)
            bias = float(ndtri(below))
            shifted = bias + ndtri(tails)
            tails = np.asarray(ndtr(bias + shifted / (1.0 - acceleration * shifted)))
            name = "bca"
    low, high = np.quantile(draws, tails)
    return Interval(
        low=float(low), high=float(high), level=level, method=f"{name} bootstrap of {units}, PCG64"
    )


def _draws(
    table: NDArray[Any],
    members: list[NDArray[np.intp]],
    statistic: Callable[[NDArray[Any]], float],
    replications: int,
    seed: int,
) -> NDArray[np.float64]:
    """The statistic of rows drawn again, where it is defined."""
    rng = np.random.Generator(np.random.PCG64(seed))
    units = len(members)
    values = np.empty(replications)
    no_clusters = all(len(rows) == 1 for rows in members)
    for number in range(replications):
        chosen = rng.integers(units, size=units)
        rows = chosen if no_clusters else np.concatenate([members[unit] for unit in chosen])
        values[number] = statistic(table[rows])
    return values[~np.isnan(values)]


def _check(table: NDArray[Any], replications: int, method: str) -> None:
    if table.ndim == 0:
        raise InvalidValue("data", table, "an array whose rows are items")
    if replications < 2:
        raise InvalidValue("replications", replications, "two or more; 2000 is usual")
    if method not in ("bca", "percentile"):
        raise InvalidValue("method", method, "'bca' or 'percentile'")
