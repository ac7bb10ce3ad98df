"""Two perturbations in a row: is their drop the sum of both, and does the order matter?"""

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
    """The perturbation `first`, and `second` applied to its result.

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

    `baseline` and each of `singles` and `pairs` are one score per item, NaN where missing; a pair
    is (first, second). A pair whose second step overwrites the first is None in `pairs`; one that
    was not run, such as the diagonal, is absent. Both come out as not_identified, with the reason,
    and so does an asymmetry whose reverse is either. All three are paired over the items that have
    every score they need: t intervals, except for the drop, which is `accuracy_drop`.
    """
    clean = _vector("baseline", baseline, None)
    single = {name: _vector(name, scores, len(clean)) for name, scores in singles.items()}
    for pair in pairs:
        for name in pair:
            if name not in single:
                raise InvalidValue(
                    "pairs", pair, "pairs of names that are in singles", hint=f"no single '{name}'"
                )
    composed = {
        pair: None if scores is None else _vector(" then ".join(pair), scores, len(clean))
        for pair, scores in pairs.items()
    }
    return tuple(
        _pair(first, second, clean, single, composed, clusters, level)
        for first in single
        for second in single
    )


def _pair(
    first: str,
    second: str,
    clean: Floats,
    single: Mapping[str, Floats],
    composed: Mapping[tuple[str, str], Floats | None],
    clusters: Sequence[Hashable] | None,
    level: float,
) -> ComposedPair:
    basis = Basis(
        estimand="these perturbations in this order, items like these",
        items=0,
        conditions=2,
        level=level,
    )

    def not_run(part: str, pair: tuple[str, str]) -> Estimate:
        why = f"'{pair[0]}' then '{pair[1]}' was not run"
        if pair in composed and composed[pair] is None:
            why = f"'{pair[1]}' overwrites '{pair[0]}'"
        return basis.undefined(f"composition.{part}", "not_identified", why)

    scores, reverse = composed.get((first, second)), composed.get((second, first))
    if scores is None:
        drop, interaction, asymmetry = (
            not_run(part, (first, second)) for part in ("drop", "interaction", "asymmetry")
        )
        return ComposedPair(
            first=first, second=second, drop=drop, interaction=interaction, asymmetry=asymmetry
        )
    drop = replace(
        accuracy_drop(clean, scores, clusters=clusters, level=level), measure="composition.drop"
    )
    # drop(AB) − drop(A) − drop(B) = A + B − baseline − AB, over the items that have all four.
    table = np.column_stack([single[first], single[second], clean, scores])
    table = np.where(np.isnan(table).any(axis=1, keepdims=True), np.nan, table)
    excess = contrast(table, [1, 1, -1, -1], clusters=clusters, level=level)
    four = replace(
        basis,
        items=excess.items,
        excluded=excess.excluded,
        clusters=excess.clusters,
        design_effect=excess.design_effect,
        conditions=4,
    )
    if excess.value is None:
        why = "fewer than two items"
        interaction = four.undefined("composition.interaction", "insufficient_data", why)
    else:
        interaction = four.estimate(
            "composition.interaction", excess.value, excess.interval, status=excess.status
        )
    if reverse is None:
        asymmetry = not_run("asymmetry", (second, first))
    else:
        asymmetry = replace(
            accuracy_drop(reverse, scores, clusters=clusters, level=level),
            measure="composition.asymmetry",
            estimand="drop(first, then second) - drop(second, then first), items like these",
        )
    return ComposedPair(
        first=first, second=second, drop=drop, interaction=interaction, asymmetry=asymmetry
    )


def _vector(name: str, scores: ArrayLike, length: int | None) -> Floats:
    vector = np.asarray(scores, dtype=np.float64)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        count = "" if length is None else f"{length} "
        expected = f"a vector of {count}scores, one for every item"
        raise InvalidValue(f"scores of '{name}'", vector.shape, expected)
    return vector
