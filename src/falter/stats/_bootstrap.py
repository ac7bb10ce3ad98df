"""The bootstrap, over items or clusters of items."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._clusters import cluster_codes
from falter.stats._interval import Interval, check_level, no_interval

__all__ = ["bootstrap"]


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

    A row is an item with all its conditions; single cells are never drawn. With `clusters`, whole
    clusters are drawn. The default is BCa: percentiles shifted for median bias and for
    acceleration, the latter from leaving out one unit at a time; where either is undefined, and on
    request, plain percentiles. Draws whose statistic is NaN are left out. Fewer than two units, or
    a statistic that never varies: no interval. numpy's PCG64, so the same seed draws the same rows.
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
    drawn = _draws(table, members, statistic, replications, seed)
    if len(drawn) < 2 or np.ptp(drawn) == 0.0 or np.isnan(value):
        return no_interval(level)
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    used = f"{method} bootstrap of {'items' if clusters is None else 'clusters'}, PCG64"
    if method == "bca":
        shifted = _shifted(tails, value, drawn, _left_out(table, members, statistic))
        if shifted is None:
            used = used.replace("bca", "percentile")
        else:
            tails = shifted
    low, high = np.quantile(drawn, tails)
    return Interval(low=float(low), high=float(high), level=level, method=used)


def _draws(
    table: NDArray[Any],
    members: list[NDArray[np.intp]],
    statistic: Callable[[NDArray[Any]], float],
    replications: int,
    seed: int,
) -> NDArray[np.float64]:
    rng = np.random.Generator(np.random.PCG64(seed))
    units = len(members)
    values = np.empty(replications)
    alone = all(len(rows) == 1 for rows in members)
    for number in range(replications):
        chosen = rng.integers(units, size=units)
        rows = chosen if alone else np.concatenate([members[unit] for unit in chosen])
        values[number] = statistic(table[rows])
    return values[~np.isnan(values)]


def _left_out(
    table: NDArray[Any],
    members: list[NDArray[np.intp]],
    statistic: Callable[[NDArray[Any]], float],
) -> NDArray[np.float64]:
    return np.array([statistic(np.delete(table, rows, axis=0)) for rows in members], dtype=float)


def _shifted(
    tails: NDArray[np.float64],
    value: float,
    drawn: NDArray[np.float64],
    left_out: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """The percentiles that BCa reads instead, or None where they are not defined."""
    from scipy.special import ndtr, ndtri

    below = (np.sum(drawn < value) + np.sum(drawn <= value)) / (2.0 * len(drawn))
    gaps = left_out.mean() - left_out
    size = float(np.square(gaps).sum())
    if not 0.0 < below < 1.0 or not size > 0.0:
        return None
    acceleration = float((gaps**3).sum()) / (6.0 * size**1.5)
    bias = float(ndtri(below))
    moved = bias + ndtri(tails)
    return np.asarray(ndtr(bias + moved / (1.0 - acceleration * moved)), dtype=np.float64)


def _check(table: NDArray[Any], replications: int, method: str) -> None:
    if table.ndim == 0:
        raise InvalidValue("data", table, "an array whose rows are items")
    if replications < 2:
        raise InvalidValue("replications", replications, "two or more; 2000 is usual")
    if method not in ("bca", "percentile"):
        raise InvalidValue("method", method, "'bca' or 'percentile'")
