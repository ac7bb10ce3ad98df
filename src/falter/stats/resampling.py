"""Bootstrap (BCa) and jackknife intervals over items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.stats.intervals import Interval, check_level, no_interval, student_quantile

Floats = NDArray[np.float64]
Transform = Literal["identity", "log", "logit"]
MAX_SUMS = 1_000  # columns; for more columns, drawing rows takes less memory
BLOCK_COUNTS = 2_000_000  # number of counts or sums in memory at a time


def bootstrap(
    data: ArrayLike,
    statistic: Callable[[NDArray[Any]], float],
    *,
    replications: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the two-sided BCa interval of `statistic(data)` by resampling rows with replacement.

    `data` is (items, ...): a row is an item with all its conditions, and single cells are never
    drawn. The ends are `bca_interval`'s. Fewer than two rows, or a statistic that never varies: no
    interval. The draws come from numpy's PCG64, so one seed always draws the same rows.
    """
    table = np.asarray(data)
    _check_draws(table, replications, level)
    items = table.shape[0]
    if items < 2:
        return no_interval(level)
    rng = np.random.Generator(np.random.PCG64(seed))
    draws = np.array(
        [statistic(table[rng.integers(items, size=items)]) for _ in range(replications)],
        dtype=np.float64,
    )

    without = (np.delete(table, row, axis=0) for row in range(items))
    # BCa's acceleration needs the influence of each item, which the draws do not show.
    left_out = np.array([statistic(rows) for rows in without], dtype=float)
    return bca_interval(float(statistic(table)), draws, [left_out], level=level)


def bootstrap_of_sums(
    columns: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    replications: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return `bootstrap` for a statistic of column sums over items.

    `columns` is (items, columns) without NaN. `statistic` maps draws x columns of sums to one value
    per draw, so no loop over draws is needed. The draws are `bootstrap`'s.
    """
    _check_draws(columns, replications, level)
    items = len(columns)
    if items < 2:
        return no_interval(level)
    rng = np.random.Generator(np.random.PCG64(seed))
    total, draws = columns.sum(axis=0), np.empty(replications)
    step = max(1, BLOCK_COUNTS // max(items, columns.shape[1]))
    for start in range(0, replications, step):
        count = min(step, replications - start)
        # One `bincount` for all draws: the items of draw k are numbered from k × items on.
        drawn = rng.integers(items, size=(count, items)) + items * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * items).reshape(count, items)
        draws[start : start + count] = statistic(counts @ columns)
    value = float(statistic(total[None])[0])
    return bca_interval(value, draws, [statistic(total - columns)], level=level)


def bca_interval(
    value: float, draws: Floats, left_out: Sequence[Floats], *, level: float
) -> Interval:
    """Return Efron's two-sided BCa interval from draws and leave-one-out values.

        z0 = Φ⁻¹(share of draws below the value)        l_i = (n − 1)/n (ḡ − g_i)
        a = Σ l³ / (6 (Σ l²)^(3/2))        tail = Φ(z0 + (z0 + z)/(1 − a (z0 + z)))

    `left_out` has one vector per stratum. g_i is the value without item i of the stratum's n items,
    ḡ their mean, and z the normal quantile of the plain tail. If z0 or a is undefined, the ends are
    plain percentiles. NaN draws are left out. There is no interval if more than one draw in twenty
    is NaN, if `value` is NaN, or if all draws are equal. Source: Efron (1987); Davison and Hinkley
    (1997) for strata.
    """
    from scipy.special import ndtr, ndtri

    known = draws[~np.isnan(draws)]
    few = len(known) < 0.95 * len(draws) or len(known) < 2
    if few or np.isnan(value) or np.ptp(known) == 0.0:
        return no_interval(level)
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    method = f"percentile bootstrap of items, {len(draws)} draws, PCG64"
    # Draws equal to the value count half: 0/1 scores tie often, which would bias z0 otherwise.
    below = float((np.sum(known < value) + np.sum(known <= value)) / (2.0 * len(known)))
    influences = [(len(g) - 1) / len(g) * (g.mean() - g) for g in left_out if len(g)]
    squares = sum(float(np.square(influence).sum()) for influence in influences)
    if 0.0 < below < 1.0 and 0.0 < squares < np.inf:
        cubes = sum(float((influence**3).sum()) for influence in influences)
        acceleration = cubes / (6.0 * squares**1.5)
        bias = float(ndtri(below))
        shifted = bias + ndtri(tails)
        tails = np.asarray(ndtr(bias + shifted / (1.0 - acceleration * shifted)))
        method = method.replace("percentile", "bca")
    low, high = np.quantile(known, tails)
    return Interval(low=float(low), high=float(high), level=level, method=method)


def _check_draws(table: NDArray[Any], replications: int, level: float) -> None:
    check_level(level)
    if table.ndim == 0:
        raise InvalidValue("data", table, "an array whose rows are items")
    if replications < 2:
        raise InvalidValue("replications", replications, "two or more; 2000 is usual")


def jackknife(
    value: float,
    leave_one_out: ArrayLike,
    *,
    transform: Transform = "identity",
    level: float = 0.95,
) -> Interval:
    """Return a two-sided t interval from n leave-one-out values, on the scale g and mapped back.

        bias = (n − 1)(ḡ − g)        se² = (n − 1)/n Σ_i (g_i − ḡ)²        g − bias ± t(n − 1) se

    g is the identity, the log (for variances) or the logit (for shares). g_i is g of the value
    without item i, and ḡ is their mean. If g is infinite anywhere, the identity is used.

    The bias correction moves the centre of the interval but not the reported value. The interval
    always contains the value. If nothing varies, or n < 3, it has no ends. A value that is not
    finite raises InvalidValue. Source: Tukey (1958); Efron and Stein (1981).
    """
    check_level(level)
    left_out = np.asarray(leave_one_out, dtype=np.float64)
    _check_left_out(value, left_out)
    n = left_out.size
    method = f"jackknife t, {transform}"
    lowest = min(value, float(left_out.min(initial=value)))
    highest = max(value, float(left_out.max(initial=value)))
    if transform != "identity" and not (lowest > 0.0 and (transform == "log" or highest < 1.0)):
        # At 0 or 1 the transform is infinite, so one such item would make the interval infinite.
        transform, method = "identity", f"jackknife t, identity (no {transform} at the boundary)"
    g, g_left_out = _to_scale(np.array([value]), transform)[0], _to_scale(left_out, transform)
    spread = float(g_left_out.max() - g_left_out.min()) if n else 0.0
    if n < 3 or spread <= 1e-13 * max(1.0, abs(float(g))):
        return no_interval(level)
    # g − bias ± t(n − 1) se, and back
    centre = g - (n - 1) * (float(g_left_out.mean()) - g)
    half = student_quantile(level, n - 1) * jackknife_error(g_left_out)
    low, high = _from_scale(np.array([centre - half, centre + half]), transform)
    return Interval(
        low=min(float(low), value), high=max(float(high), value), level=level, method=method
    )


def jackknife_error(leave_one_out: ArrayLike) -> float:
    """Return the jackknife standard error, √((n − 1)/n Σ_i (x_i − x̄)²); 0 for no items."""
    left_out = np.asarray(leave_one_out, dtype=np.float64)
    n = left_out.size
    if n == 0:
        return 0.0
    return float(np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum()))


def _to_scale(x: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    if transform == "log":
        return np.log(x)
    if transform == "logit":
        return np.log(x) - np.log1p(-x)
    return x


def _from_scale(x: NDArray[np.float64], transform: Transform) -> NDArray[np.float64]:
    if transform == "log":
        return np.exp(x)
    if transform == "logit":
        # 1/(1 + exp(-x)), which does not overflow this way
        return 0.5 * (1.0 + np.tanh(x / 2.0))
    return x


def _check_left_out(value: float, left_out: NDArray[np.float64]) -> None:
    if left_out.ndim != 1:
        raise InvalidValue(
            "leave_one_out", left_out.shape, "a vector, one value for every item left out"
        )
    if not (np.isfinite(value) and np.isfinite(left_out).all()):
        raise InvalidValue("leave_one_out", "a value that is not finite", "finite numbers")
