"""Tables of ratings, items x raters, turned into counts and numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue, UnknownName

__all__ = ["MISSING", "rating_codes", "rating_counts", "rating_numbers"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
MISSING = -1


def rating_counts(ratings: ArrayLike) -> tuple[Floats, list[Any], int, int]:
    """Units x values counts of the units with two ratings or more, and the values in order."""
    table = _table(ratings)
    values = sorted({value for value in table.ravel().tolist() if not _is_missing(value)})
    codes, raters = rating_codes(table, values)
    counts = (codes[:, :, None] == np.arange(len(values))).sum(axis=1).astype(np.float64)
    rated_twice = counts.sum(axis=1) >= 2
    return counts[rated_twice], values, int((~rated_twice).sum()), raters


def rating_codes(ratings: ArrayLike, labels: Sequence[Hashable]) -> tuple[Codes, int]:
    """Each rating's place among the labels, -1 where it is missing."""
    table = _table(ratings)
    places = {label: place for place, label in enumerate(labels)}
    codes = np.full(table.shape, MISSING, dtype=np.intp)
    for cell, value in np.ndenumerate(table):
        if not _is_missing(value):
            if value not in places:
                raise UnknownName("label", str(value), map(str, labels))
            codes[cell] = places[value]
    return codes, int(table.shape[1])


def _table(ratings: ArrayLike) -> NDArray[Any]:
    table = np.asarray(ratings, dtype=object)
    if table.ndim != 2:
        raise InvalidValue("ratings", table.shape, "items x raters")
    return table


def _is_missing(value: object) -> bool:
    """None, or NaN, which is unlike itself."""
    return value is None or value != value


def rating_numbers(values: Sequence[Any], metric: str) -> Floats:
    """The values as numbers, or an error that names one that is not."""
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        raise InvalidValue(
            "ratings", texts[0], f"numbers for the {metric} metric", hint="metric='nominal'"
        )
    numbers = np.array(values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise InvalidValue("ratings", "an infinite rating", "finite numbers, NaN where missing")
    return numbers
