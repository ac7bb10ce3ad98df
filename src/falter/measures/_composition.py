"""One perturbation after another: is their drop the sum of both, and does the order matter?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy_drop
from falter.measures._contrast import contrast
from falter.measures._estimates import Basis

__all__ = ["ComposedPair", "composition"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedPair:
    """First one perturbation, then the other.

    `interaction` is drop(AB) - drop(A) - drop(B): above 0 they make each other worse. `asymmetry`
    is drop(AB) - drop(BA).
    """

    first: str
    second: str
    drop: Estimate
    interaction: Estimate
    asymmetry: Estimate


def composition(
    baseline: ArrayLike,
    singles: Mapping[str, ArrayLike],
    pairs: Mapping[tuple[str, str], ArrayLike | None],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> tuple[ComposedPair, ...]:
    """Drop, interaction and asymmetry of every ordered pair of perturbations.

    `baseline` and each of `singles` and `pairs` are one score an item, NaN where missing; a pair is
    (first, second). A pair whose second step overwrites the first is None in `pairs`; one that was
    not run, such as the diagonal, is absent. Both come out as not_identified, with the reason, and
    so does an asymmetry whose reverse is either. All three are paired over the items that have
    every score they need: t intervals, except for the drop, which is `accuracy_drop`.
    """
    clean = _vector("baseline", baseline, None)
    alone = {name: _vector(name, scores, len(clean)) for name, scores in singles.items()}
    _check_names(alone, pairs)
    both = {
        pair: None if scores is None else _vector(" then ".join(pair), scores, len(clean))
        for pair, scores in pairs.items()
    }
    return tuple(
        _pair(first, second, clean, alone, both, clusters, level)
        for first in alone
        for second in alone
    )


def _pair(
    first: str,
    second: str,
    clean: Floats,
    alone: Mapping[str, Floats],
    both: Mapping[tuple[str, str], Floats | None],
    clusters: Sequence[Hashable] | None,
    level: float,
) -> ComposedPair:
    basis = Basis(
        estimand="fixed perturbations in this order, super-population of items",
        items=0,
        conditions=2,
        level=level,
    )
    there, back = both.get((first, second)), both.get((second, first))
    why = _reason((first, second), both)
    if there is None:
        none = [
            basis.undefined(f"composition.{part}", "not_identified", why)
            for part in ("drop", "interaction", "asymmetry")
        ]
        return ComposedPair(
            first=first, second=second, drop=none[0], interaction=none[1], asymmetry=none[2]
        )
    drop = replace(
        accuracy_drop(clean, there, clusters=clusters, level=level), measure="composition.drop"
    )
    table = np.column_stack([alone[first], alone[second], clean, there])
    interaction = _contrast("interaction", table, [1, 1, -1, -1], basis, clusters)
    if back is None:
        reason = _reason((second, first), both)
        asymmetry = basis.undefined("composition.asymmetry", "not_identified", reason)
    else:
        asymmetry = replace(
            accuracy_drop(back, there, clusters=clusters, level=level),
            measure="composition.asymmetry",
            estimand="drop(first, then second) - drop(second, then first)",
        )
    return ComposedPair(
        first=first, second=second, drop=drop, interaction=interaction, asymmetry=asymmetry
    )


def _contrast(
    part: str,
    table: Floats,
    coefficients: list[int],
    basis: Basis,
    clusters: Sequence[Hashable] | None,
) -> Estimate:
    lacking = np.isnan(table).any(axis=1, keepdims=True)
    whole = np.where(lacking, np.nan, table)
    found = contrast(whole, coefficients, clusters=clusters, level=basis.level)
    own = replace(basis, items=found.items, excluded=found.excluded, conditions=table.shape[1])
    if found.value is None:
        return own.undefined(f"composition.{part}", "insufficient_data", "fewer than two items")
    return own.estimate(f"composition.{part}", found.value, found.interval)


def _reason(pair: tuple[str, str], both: Mapping[tuple[str, str], Floats | None]) -> str:
    if pair in both and both[pair] is None:
        return f"'{pair[1]}' overwrites '{pair[0]}'"
    return f"'{pair[0]}' then '{pair[1]}' was not run"


def _check_names(
    alone: Mapping[str, Floats], pairs: Mapping[tuple[str, str], ArrayLike | None]
) -> None:
    for pair in pairs:
        for name in pair:
            if name not in alone:
                raise InvalidValue(
                    "pairs", pair, "pairs of names that are in singles", hint=f"no single '{name}'"
                )


def _vector(name: str, scores: ArrayLike, length: int | None) -> Floats:
    vector = np.asarray(scores, dtype=np.float64)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        expected = "one score an item" if length is None else f"one score an item, {length}"
        raise InvalidValue(f"scores of '{name}'", vector.shape, expected)
    return vector
