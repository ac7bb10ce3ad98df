"""Bootstrap of statistics that are functions of sums over items.

Drawing n items n times with replacement gives each item a count. The sums over all resamples are a
product of counts and columns, so no row is ever copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.estimates import Basis, Clusters, Floats
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Interval, no_interval
from falter.stats.resampling import bca_interval

Seed = int | tuple[int, ...]
unit_codes = cluster_codes  # the unit of a row is its cluster, or the row itself

# More units than this are put at random into this many groups, which are drawn instead. The
# standard error of a sum over groups is known to 1/sqrt(2 * 20,000) = 0.5 %, which is less than the
# error of 2,000 draws.
MAX_UNITS = 20_000
# Number of counts in memory at a time, and the largest number of counts that is cached.
BLOCK_COUNTS = 2_000_000
MAX_CELLS = 40_000_000


def generator(seed: Seed) -> np.random.Generator:
    """Return numpy's PCG64 generator: one seed draws the same items everywhere."""
    return np.random.Generator(np.random.PCG64(seed))


def check_replications(replications: int) -> None:
    """Raise InvalidValue for fewer than two draws."""
    if replications < 2:
        raise InvalidValue("replications", replications, "two or more; 2000 is usual")


def unit_sums(columns: ArrayLike, codes: NDArray[np.intp] | None = None) -> Floats:
    """Return units x columns: the sums of every column within each unit that occurs in `codes`.

    Without `codes` every row is a unit.
    """
    table = np.asarray(columns, dtype=np.float64)
    if codes is None or len(table) == 0:
        return table
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.asarray(np.add.reduceat(table[order], starts, axis=0), dtype=np.float64)


def resampled_sums(units: Floats, replications: int, seed: Seed) -> Floats:
    """Return replications x columns: the column sums of units drawn with replacement.

    `units` is (units, columns) without NaN. More than 20,000 units are first put into groups.
    """
    check_replications(replications)
    rng, rows = generator(seed), len(units)
    if rows > MAX_UNITS:
        order = rng.permutation(rows)
        units = unit_sums(units[order], np.arange(rows) % MAX_UNITS)
    table = units.astype(_exact_type(units))
    counted: Iterable[NDArray[np.uint8]] = _count_blocks(rng, replications, len(units))
    if replications * len(units) <= MAX_CELLS:
        counted = _cached_counts(rows, replications, seed)
    sums, done = np.empty((replications, units.shape[1])), 0
    for counts in counted:
        sums[done : done + len(counts)] = counts.astype(table.dtype) @ table
        done += len(counts)
    return sums


@lru_cache(maxsize=4)
def _cached_counts(rows: int, replications: int, seed: Seed) -> tuple[NDArray[np.uint8], ...]:
    """Return the counts of all draws, cached for a study's other models and conditions."""
    rng = generator(seed)
    if rows > MAX_UNITS:
        rng.permutation(rows)  # keeps the generator in step with `resampled_sums`
    blocks = tuple(_count_blocks(rng, replications, min(rows, MAX_UNITS)))
    for counts in blocks:
        counts.flags.writeable = False
    return blocks


def _count_blocks(
    rng: np.random.Generator, replications: int, units: int
) -> Iterator[NDArray[np.uint8]]:
    """Yield the counts of all draws, a block of draws at a time."""
    for rows in _blocks(replications, units):
        yield _draw_counts(rng, len(rows), units)


def _draw_counts(rng: np.random.Generator, rows: int, units: int) -> NDArray[np.uint8]:
    """Return draws x units counts; a count above 255 does not occur in practice."""
    # bincount converts every other type to intp, which takes four times as long as the counting.
    drawn = rng.integers(units, size=(rows, units), dtype=np.intp)
    drawn += np.arange(rows)[:, None] * units
    return np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).astype(np.uint8)


def signed_sums(units: Floats, replications: int, seed: Seed) -> Floats:
    """Return replications x columns: the column sums with a random sign for every unit.

    `units` is (units, columns) without NaN.
    """
    check_replications(replications)
    rng = generator(seed)
    table = units.astype(_exact_type(units))
    sums = np.empty((replications, units.shape[1]))
    for rows in _blocks(replications, len(units)):
        signs = rng.integers(2, size=(len(rows), len(units)), dtype=np.int8)
        sums[rows.start : rows.stop] = (2 * signs - 1).astype(table.dtype) @ table
    return sums


def sums_interval(
    units: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    level: float,
    replications: int,
    seed: int,
) -> Interval:
    """Return the two-sided BCa interval of `statistic(column sums)`, a function of (..., columns).

    `units` is (units, columns) without NaN. NaN draws are left out. There is no interval if more
    than one draw in twenty is NaN, if nothing varies, or for fewer than two units.
    """
    value = float(statistic(units.sum(axis=0)))
    if len(units) < 2 or np.isnan(value):
        return no_interval(level)
    draws = statistic(resampled_sums(units, replications, seed))
    left_out = statistic(units.sum(axis=0) - units)
    return bca_interval(value, draws, [left_out], level=level)


def bootstrap_of_whole_rows(
    basis: Basis,
    measure: str,
    table: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    clusters: Clusters,
    replications: int,
    undefined: tuple[EstimateStatus, str],
    few: str = "fewer than two items",
) -> Estimate:
    """Return `statistic` of the sums of 1 and of each column, with a BCa interval.

    The sums are over the rows without a NaN. Fewer than two such rows: insufficient_data, with the
    reason `few`. Fewer than 6 clusters: too_few_clusters, without an interval. If the statistic is
    NaN, `undefined` has the status and the reason.
    """
    whole = ~np.isnan(table).any(axis=1)
    items = int(whole.sum())
    basis = replace(basis, items=items, excluded=int((~whole).sum()))
    if items < 2:
        return basis.undefined(measure, "insufficient_data", few)
    codes = cluster_codes(clusters, len(table))[whole]
    basis = replace(basis, clusters=None if clusters is None else len(np.unique(codes)))
    units = unit_sums(np.column_stack([np.ones(items), table[whole]]), codes)
    value = float(statistic(units.sum(axis=0)))
    if np.isnan(value):
        return basis.undefined(measure, *undefined)
    interval = sums_interval(
        units, statistic, level=basis.level, replications=replications, seed=basis.seed or 0
    )
    return basis.estimate(measure, value, interval)


def expanded_bca(
    value: float, draws: Floats, left_out: Floats, *, level: float
) -> tuple[Interval, float | None]:
    """Return `bca_interval` with tails for few units, and the two-sided p-value of 0.

        z = √(n/(n − 1)) t(tail; n − 1)        instead of the normal quantile of the tail

    for n units. `draws` has one value per draw, `left_out` the value without each unit in turn. The
    factor corrects the bootstrap's variance, which is too small by (n − 1)/n; t corrects its normal
    tails. The p-value is the smallest 1 − level at which the interval excludes 0; the share of
    draws beyond 0 counts as at least 1/(draws + 1). NaN draws are left out. There is no interval
    and no p-value if more than one draw in twenty is NaN, if nothing varies, or for fewer than two
    units. Source: Efron (1987); Hesterberg (2015) for the tails.
    """
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    known = draws[~np.isnan(draws)]
    units = len(left_out)
    if len(known) < 0.95 * len(draws) or len(known) < 2 or np.ptp(known) == 0.0 or units < 2:
        return no_interval(level), None
    # The variance of bootstrap means divides by n, not by n − 1.
    widening = float(np.sqrt(units / (units - 1)))
    influence = left_out.mean() - left_out
    squares, cubes = float(np.square(influence).sum()), float((influence**3).sum())
    a = cubes / (6.0 * squares**1.5) if 0.0 < squares < np.inf else 0.0
    below = float((np.sum(known < value) + np.sum(known <= value)) / (2.0 * len(known)))
    # A value outside all draws would have an infinite bias and no interval.
    bias = float(ndtri(np.clip(below, 1.0 / len(known), 1.0 - 1.0 / len(known))))
    z = widening * stdtrit(units - 1, np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0]))
    low, high = np.quantile(known, ndtr(bias + (bias + z) / (1.0 - a * (bias + z))))
    method = f"bca bootstrap, tails for {units} units, {len(draws)} draws, PCG64"
    interval = Interval(low=float(low), high=float(high), level=level, method=method)
    # The tail at which an end would be 0: the transformation of z above, inverted.
    share = float((np.sum(known < 0.0) + np.sum(known <= 0.0)) / (2.0 * len(known)))
    share = min(max(share, 1.0 / (len(known) + 1)), 1.0 - 1.0 / (len(known) + 1))
    shifted = float(ndtri(share)) - bias
    back = shifted / (1.0 + a * shifted) - bias
    tail = float(stdtr(units - 1, back / widening))
    return interval, float(min(1.0, 2.0 * min(tail, 1.0 - tail)))


def student_bca(
    value: float, draws: Floats, left_out: Floats, *, level: float, size: int
) -> Interval:
    """Return `bca_interval` with the tails of Student's t for `size` items, at least four.

    It is for a number that depends on only a few of the items, however many there are. Fewer than
    two units: no interval.
    """
    from scipy.special import ndtr, stdtrit

    if len(left_out) < 2:
        return no_interval(level)
    tail = stdtrit(max(3, size - 1), 0.5 + level / 2.0)
    interval = bca_interval(value, draws, [left_out], level=float(2.0 * ndtr(tail) - 1.0))
    return replace(interval, level=level)


def _exact_type(units: Floats) -> type[np.float32] | type[np.float64]:
    """Return single precision if every sum of counts is exact in it: whole numbers below 2^24."""
    is_whole = bool((units == np.rint(units)).all())
    # A resample may draw the largest unit many times: eight times the total is still below 2^24.
    largest_sum = float(np.abs(units).sum(axis=0).max(initial=0.0))
    return np.float32 if is_whole and largest_sum < 2**21 else np.float64


def _blocks(replications: int, units: int) -> Iterator[range]:
    step = max(1, BLOCK_COUNTS // max(1, units))
    for start in range(0, replications, step):
        yield range(start, min(start + step, replications))
