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
ALONE = 1e-9


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
    they can be. Raises where a cell that a product needs is empty, or an effect is a combination
    of earlier ones.
    """
    levels = {name: _levels(labels) for name, labels in factors.items()}
    for name, found in levels.items():
        if len(found) < 2:
            raise InvalidValue(f"factors[{name!r}]", found, "two levels or more")
    places = {
        name: np.array([levels[name].index(label) for label in labels])
        for name, labels in factors.items()
    }
    wanted = [
        chosen
        for size in range(1, min(order, len(factors)) + 1)
        for chosen in combinations(factors, size)
    ]
    for chosen in wanted:
        _check_cells(chosen, levels, places)
    _check_aliases(wanted, levels, places, blocks)
    contrasts = {name: _contrasts(places[name], len(levels[name])) for name in factors}
    return _assemble(wanted, contrasts, blocks)


def _assemble(
    wanted: Sequence[tuple[str, ...]],
    contrasts: Mapping[str, Floats],
    blocks: NDArray[np.intp] | None,
) -> Design:
    parts, terms, offset = [], [], 1 if blocks is None else 0
    for chosen in wanted:
        part = _product([contrasts[name] for name in chosen])
        own = tuple(range(offset, offset + part.shape[1]))
        terms.append(Term(name=":".join(chosen), factors=chosen, places=own))
        parts.append(part)
        offset += part.shape[1]
    raw = np.hstack(parts)
    return Design(
        columns=np.hstack([np.ones((len(raw), 1)), raw])
        if blocks is None
        else _within(raw, blocks),
        raw=raw,
        terms=tuple(terms),
        blocks=0 if blocks is None else int(blocks.max()) + 1,
    )


def _contrasts(places: NDArray[np.intp], count: int) -> Floats:
    return np.vstack([np.eye(count - 1), -np.ones(count - 1)])[places]


def _product(parts: Sequence[Floats]) -> Floats:
    """Every product of one column of each part."""
    first, *others = parts
    for part in others:
        first = (first[:, :, None] * part[:, None, :]).reshape(len(first), -1)
    return first


def _within(columns: Floats, blocks: NDArray[np.intp]) -> Floats:
    sums = np.zeros((int(blocks.max()) + 1, columns.shape[1]))
    np.add.at(sums, blocks, columns)
    return np.asarray(columns - (sums / np.bincount(blocks)[:, None])[blocks])


def _check_cells(
    chosen: tuple[str, ...],
    levels: Mapping[str, list[Hashable]],
    places: Mapping[str, NDArray[np.intp]],
) -> None:
    """A product of factors needs a score in each of its cells."""
    there = set(zip(*(places[name].tolist() for name in chosen), strict=True))
    empty = [
        cell
        for cell in product(*(range(len(levels[name])) for name in chosen))
        if cell not in there
    ]
    if empty:
        shown = [_shown(chosen, cell, levels) for cell in empty]
        raise InvalidValue(
            "factors",
            ", ".join(shown),
            f"a score in every cell of {':'.join(chosen)}; {len(empty)} are empty",
            hint="a lower order leaves the product out",
        )


def _check_aliases(
    wanted: Sequence[tuple[str, ...]],
    levels: Mapping[str, list[Hashable]],
    places: Mapping[str, NDArray[np.intp]],
    blocks: NDArray[np.intp] | None,
) -> None:
    """Go through the indicators of all levels but the first, and name one that adds nothing."""
    rows = len(next(iter(places.values())))
    names, basis = ["the intercept"], np.ones((rows, 1)) / np.sqrt(rows)
    kept = np.ones((rows, 1))
    if blocks is not None:
        names, basis, kept = [], np.empty((rows, 0)), np.empty((rows, 0))
    for chosen in wanted:
        for cell in product(*(range(1, len(levels[name])) for name in chosen)):
            column = np.all([places[n] == c for n, c in zip(chosen, cell, strict=True)], axis=0)
            column = column.astype(np.float64)[:, None]
            size = float(np.linalg.norm(column))
            column = column if blocks is None else _within(column, blocks)
            name = _shown(chosen, cell, levels)
            rest = column - basis @ (basis.T @ column)
            rest = rest - basis @ (basis.T @ rest)
            if np.linalg.norm(rest) <= ALONE * size:
                _refuse(name, column, kept, names, blocks is not None)
            basis = np.hstack([basis, rest / np.linalg.norm(rest)])
            kept, names = np.hstack([kept, column]), [*names, name]


def _refuse(name: str, column: Floats, kept: Floats, names: list[str], blocked: bool) -> None:
    weights = np.linalg.lstsq(kept, column, rcond=None)[0][:, 0] if names else np.empty(0)
    partners = [n for n, w in zip(names, weights, strict=True) if abs(w) > 1e-6]
    partners = [n for n in partners if n != "the intercept"] + ["the block"] * blocked
    raise InvalidValue(
        "factors",
        name,
        f"an effect that can be told apart from {', '.join(partners) or 'the intercept'}",
        hint="leave one of the aliased factors out, or add scores that separate them",
    )


def _shown(chosen: Sequence[str], cell: Sequence[int], levels: Mapping[str, list[Hashable]]) -> str:
    return ":".join(f"{n}={levels[n][place]}" for n, place in zip(chosen, cell, strict=True))


def _levels(labels: Sequence[Hashable]) -> list[Hashable]:
    found = list(dict.fromkeys(labels))
    try:
        return sorted(found)  # type: ignore[type-var]
    except TypeError:
        return found
