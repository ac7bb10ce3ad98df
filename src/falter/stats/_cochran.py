"""Cochran's Q: do any of several conditions differ in their 0/1 outcomes?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._checks import binary_table
from falter.stats._clusters import cluster_codes, cluster_table, too_few_clusters

__all__ = ["CochranQ", "cochran_q"]

Floats = NDArray[np.float64]
BLOCK = 500_000  # as many cells are shuffled at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class CochranQ:
    """Q, its p-value and what they rest on: only the `informative` items, right in one condition
    and wrong in another, say anything about the conditions.
    """

    value: float | None
    status: EstimateStatus
    p_value: float | None
    freedom: int
    items: int
    excluded: int
    conditions: int
    informative: int
    clusters: int | None
    method: str
    estimand: str = "equal accuracy in these conditions, items like these"


def cochran_q(
    outcomes: ArrayLike,
    *,
    method: Literal["chi2", "permutation"] = "chi2",
    clusters: Sequence[Hashable] | None = None,
    replications: int = 9999,
    seed: int = 0,
) -> CochranQ:
    """Whether the accuracies of J conditions on the same items differ at all.

        Q = (J − 1)(J Σ_j C_j² − N²) / (J N − Σ_i R_i²)

    with C_j right answers in a condition, R_i to an item, and N in all; with two conditions it is
    McNemar's uncorrected chi-square. p-value: chi-square on J − 1 degrees of freedom, good from
    about 24/J informative items on; below that take `permutation`, which shuffles each item's
    outcomes m = `replications` times and gives (k + 1)/(m + 1). With `clusters` it is always that
    of a permutation, of the conditions of whole clusters at once; fewer than 6: too_few_clusters,
    no p-value. An item with a NaN is left out and counted. Every item right, or wrong, throughout:
    undefined_zero_variance. One condition: not_identified; fewer than two items:
    insufficient_data. Source: Cochran (1950).
    """
    from scipy.special import chdtrc

    if method not in ("chi2", "permutation"):
        raise InvalidValue("method", method, "'chi2' or 'permutation'")
    if replications < 1:
        raise InvalidValue("replications", replications, "one or more; 9999 is usual")
    table = binary_table(
        outcomes, hint="for scores on a scale, anova(scores, factors, block=items)"
    )
    complete = ~np.isnan(table).any(axis=1)
    codes = cluster_codes(clusters, len(table))[complete]
    table, excluded = table[complete], int((~complete).sum())
    items, conditions = table.shape
    varies = np.ptp(table, axis=1) > 0.0 if conditions else np.zeros(items, dtype=bool)
    varying = table[varies]
    count = None if clusters is None else len(np.unique(codes))
    status: EstimateStatus = "ok"
    if conditions < 2:
        status = "not_identified"
    elif items < 2:
        status = "insufficient_data"
    elif len(varying) == 0:
        status = "undefined_zero_variance"
    elif too_few_clusters(count):
        status = "too_few_clusters"
    value = p_value = None
    if status in ("ok", "too_few_clusters"):
        value = float(_q(varying))
    if status == "ok" and value is not None:
        rng = np.random.Generator(np.random.PCG64(seed))
        least = value - 1e-9 * max(1.0, value)
        if clusters is None and method == "chi2":
            p_value = float(chdtrc(conditions - 1, value))
        else:
            sums = varying if clusters is None else cluster_table(varying, codes[varies])
            as_large = _as_large(varying, sums, least, replications, rng)
            p_value = (as_large + 1) / (replications + 1)
    how = "permutation" if clusters is None else "permutation of whole clusters"
    is_chi2 = method == "chi2" and clusters is None
    return CochranQ(
        value=value,
        status=status,
        p_value=p_value,
        freedom=max(0, conditions - 1),
        items=items,
        excluded=excluded,
        conditions=conditions,
        informative=len(varying),
        clusters=count,
        method=method if is_chi2 else f"{how}, {replications} draws, PCG64",
    )


def _as_large(
    table: Floats,
    sums: Floats,
    least: float,
    replications: int,
    rng: np.random.Generator,
) -> int:
    """How many permutations of the conditions within items or whole clusters have a Q of `least`.

    Only the sums C_j of the conditions change, and these are made of the rows of `sums`.
    """
    width, right = table.shape[1], float(table.sum())
    scale = (width - 1) / (width * right - float(np.square(table.sum(axis=1)).sum()))
    as_large, step = 0, max(1, BLOCK // max(1, sums.size))
    for start in range(0, replications, step):
        count = min(step, replications - start)
        shuffled = rng.permuted(np.tile(sums, (count, 1)), axis=1)
        columns = shuffled.reshape(count, *sums.shape).sum(axis=1)
        between = width * np.square(columns).sum(axis=1) - right**2
        as_large += int((scale * between >= least).sum())
    return as_large


def _q(table: Floats) -> Floats:
    """Q of a table; items that are right, or wrong, throughout cancel out of it."""
    width = table.shape[-1]
    columns, rows = table.sum(axis=-2), table.sum(axis=-1)
    right = rows.sum(axis=-1)
    between = width * np.square(columns).sum(axis=-1) - right**2
    return np.asarray((width - 1) * between / (width * right - np.square(rows).sum(axis=-1)))
