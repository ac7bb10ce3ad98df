"""The columns of a factorial design in sum contrasts, or an error that names what is aliased."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue

__all__ = ["Design", "Term", "design"]

Floats = NDArray[np.float64]
# An effect of which this share or less is left without the others cannot be told apart from them.
ALIASED = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A factor or a product of factors, and which columns of the design are its own."""

    name: str
    factors: tuple[str, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """`columns` begin with the intercept, or are centred within blocks; `raw` are neither."""

    columns: Floats
    raw: Floats
    terms: tuple[Term, ...]
    blocks: int

    @property
    def rank(self) -> int:
        return int(self.columns.shape[1]) + self.blocks


def design(
    factors: Mapping[str, Sequence[Hashable]], order: int, blocks: NDArray[np.intp] | None
) -> Design:
    """All products of up to `order` factors; blocks are taken out of every column.

    A sum contrast is 1 for its level, -1 for the last and 0 for the others. Levels are sorted where
    they can be. Raises where a cell that a product needs is empty, or an effect is a combination of
    earlier ones.
    """
    levels = {name: _levels(labels) for name, labels in factors.items()}
    for name, own_levels in levels.items():
        if len(own_levels) < 2:
            raise InvalidValue(f"factors[{name!r}]", own_levels, "two levels or more")
    places = {
        name: np.array([levels[name].index(label) for label in labels])
        for name, labels in factors.items()
    }
    products = [
        names
        for size in range(1, min(order, len(factors)) + 1)
        for names in combinations(factors, size)
    ]
    for names in products:
        _check_cells(names, levels, places)
    _check_aliases(products, levels, places, blocks)
    contrasts = {}
    for name in factors:
        count = len(levels[name]) - 1
        contrasts[name] = np.vstack([np.eye(count), -np.ones(count)])[places[name]]
    columns, terms, offset = [], [], 1 if blocks is None else 0
    for names in products:
        # Every product of one contrast of each factor.
        part = contrasts[names[0]]
        for name in names[1:]:
            part = (part[:, :, None] * contrasts[name][:, None, :]).reshape(len(part), -1)
        own = tuple(range(offset, offset + part.shape[1]))
        terms.append(Term(name=":".join(names), factors=names, places=own))
        columns.append(part)
        offset += part.shape[1]
    raw = np.hstack(columns)
    with_intercept = np.hstack([np.ones((len(raw), 1)), raw])
    return Design(
        columns=with_intercept if blocks is None else _within(raw, blocks),
        raw=raw,
        terms=tuple(terms),
        blocks=0 if blocks is None else int(blocks.max()) + 1,
    )


def _within(columns: Floats, blocks: NDArray[np.intp]) -> Floats:
    """The columns less their means within blocks."""
    sums = np.zeros((int(blocks.max()) + 1, columns.shape[1]))
    np.add.at(sums, blocks, columns)
    return np.asarray(columns - (sums / np.bincount(blocks)[:, None])[blocks])


def _check_cells(
    names: tuple[str, ...],
    levels: Mapping[str, list[Hashable]],
    places: Mapping[str, NDArray[np.intp]],
) -> None:
    """A product of factors needs a score in each of its cells."""
    scored = set(zip(*(places[name].tolist() for name in names), strict=True))
    empty = [
        cell
        for cell in product(*(range(len(levels[name])) for name in names))
        if cell not in scored
    ]
    if empty:
        raise InvalidValue(
            "factors",
            ", ".join(_effect_name(names, cell, levels) for cell in empty),
            f"a score in every cell of {':'.join(names)}; {len(empty)} are empty",
            hint="a lower order leaves the product out",
        )


def _check_aliases(
    products: Sequence[tuple[str, ...]],
    levels: Mapping[str, list[Hashable]],
    places: Mapping[str, NDArray[np.intp]],
    blocks: NDArray[np.intp] | None,
) -> None:
    """Go through the indicators of all levels but the first, and refuse one that adds nothing.

    Gram-Schmidt, each step twice: what the earlier effects leave of an indicator is a new one.
    """
    rows = len(next(iter(places.values())))
    effects, basis = ["the intercept"], np.ones((rows, 1)) / np.sqrt(rows)
    columns = np.ones((rows, 1))
    if blocks is not None:
        effects, basis, columns = [], np.empty((rows, 0)), np.empty((rows, 0))
    for names in products:
        for cell in product(*(range(1, len(levels[name])) for name in names)):
            column = np.all([places[n] == c for n, c in zip(names, cell, strict=True)], axis=0)
            column = column.astype(np.float64)[:, None]
            size = float(np.linalg.norm(column))
            column = column if blocks is None else _within(column, blocks)
            effect = _effect_name(names, cell, levels)
            rest = column - basis @ (basis.T @ column)
            rest = rest - basis @ (basis.T @ rest)
            if np.linalg.norm(rest) <= ALIASED * size:
                aliases = _aliases(column, columns, effects) + ["the block"] * (blocks is not None)
                raise InvalidValue(
                    "factors",
                    effect,
                    f"an effect that can be told apart from {', '.join(aliases or effects[:1])}",
                    hint="leave one of the aliased factors out, or add scores that separate them",
                )
            basis = np.hstack([basis, rest / np.linalg.norm(rest)])
            columns, effects = np.hstack([columns, column]), [*effects, effect]


def _aliases(column: Floats, columns: Floats, effects: list[str]) -> list[str]:
    """The earlier effects that a column is a combination of, the intercept aside."""
    if not effects:
        return []
    weights = np.linalg.lstsq(columns, column, rcond=None)[0][:, 0]
    return [
        effect
        for effect, weight in zip(effects, weights, strict=True)
        if abs(weight) > 1e-6 and effect != "the intercept"
    ]


def _effect_name(
    names: Sequence[str], cell: Sequence[int], levels: Mapping[str, list[Hashable]]
) -> str:
    return ":".join(f"{n}={levels[n][place]}" for n, place in zip(names, cell, strict=True))


def _levels(labels: Sequence[Hashable]) -> list[Hashable]:
    """The distinct labels, sorted where they can be compared."""
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct)  # type: ignore[type-var]
    except TypeError:
        return distinct
