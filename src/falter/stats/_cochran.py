"""Cochran's Q: do any of several conditions differ in their 0/1 outcomes?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus

__all__ = ["CochranQ", "cochran_q"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CochranQ:
    """Q, its p-value and what it rests on: only the `informative` items, right here and wrong
    there, say anything about the conditions.
    """

    value: float | None
    status: EstimateStatus
    p_value: float | None
    freedom: int
    items: int
    excluded: int
    conditions: int
    informative: int
    method: str
    estimand: str = "equal accuracy in these conditions, items like these"


def cochran_q(
    outcomes: ArrayLike,
    *,
    method: Literal["chi2", "permutation"] = "chi2",
    replications: int = 9999,
    seed: int = 0,
) -> CochranQ:
    """Whether the accuracies of J conditions on the same items differ at all.

    Q = (J - 1) (J sum C_j^2 - N^2) / (J N - sum R_i^2) with column sums C, row sums R and N right
    answers in all; with two conditions it is McNemar's uncorrected chi-square. p-value: chi-square
    on J - 1 degrees of freedom, good from about 24/J informative items on; below that take
    `permutation`, which shuffles each item's outcomes and gives (k + 1)/(m + 1). An item with a
    NaN is left out and counted. Every item right, or wrong, throughout: undefined_zero_variance.
    One condition: not_identified; fewer than two items: insufficient_data. Source: Cochran (1950).
    """
    _check_method(method, replications)
    table, excluded = _table(outcomes)
    items, conditions = table.shape
    varying = table[np.ptp(table, axis=1) > 0.0] if conditions else table[:0]
    status: EstimateStatus = "ok"
    if conditions < 2:
        status = "not_identified"
    elif items < 2:
        status = "insufficient_data"
    elif len(varying) == 0:
        status = "undefined_zero_variance"
    value = p_value = None
    if status == "ok":
        value = float(_q(varying))
        shuffled = method == "permutation"
        p_value = _shuffled(varying, value, replications, seed) if shuffled else _tail(value, table)
    return CochranQ(
        value=value,
        status=status,
        p_value=p_value,
        freedom=max(0, conditions - 1),
        items=items,
        excluded=excluded,
        conditions=conditions,
        informative=len(varying),
        method=method if method == "chi2" else f"permutation, {replications} draws, PCG64",
    )


def _q(tables: Floats) -> Floats:
    """Q of one table, or of a stack of them; constant rows cancel out of it."""
    width = tables.shape[-1]
    columns, rows = tables.sum(axis=-2), tables.sum(axis=-1)
    right = rows.sum(axis=-1)
    between = width * np.square(columns).sum(axis=-1) - right**2
    return np.asarray((width - 1) * between / (width * right - np.square(rows).sum(axis=-1)))


def _tail(value: float, table: Floats) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(table.shape[1] - 1, value))


def _shuffled(varying: Floats, value: float, replications: int, seed: int) -> float:
    rng = np.random.Generator(np.random.PCG64(seed))
    as_large = 0
    for _ in range(replications):
        as_large += bool(_q(rng.permuted(varying, axis=1)) >= value - 1e-9 * max(1.0, value))
    return (as_large + 1) / (replications + 1)


def _table(outcomes: ArrayLike) -> tuple[Floats, int]:
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions")
    strange = table[~np.isnan(table) & ~np.isin(table, (0.0, 1.0))]
    if strange.size:
        raise InvalidValue(
            "outcomes",
            float(strange[0]),
            "0, 1, or NaN where missing",
            hint="for scores on a scale, anova(scores, factors, block=items)",
        )
    whole = ~np.isnan(table).any(axis=1)
    return table[whole], int((~whole).sum())


def _check_method(method: str, replications: int) -> None:
    if method not in ("chi2", "permutation"):
        raise InvalidValue("method", method, "'chi2' or 'permutation'")
    if replications < 1:
        raise InvalidValue("replications", replications, "one or more; 9999 is usual")
