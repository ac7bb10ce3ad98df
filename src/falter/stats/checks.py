"""Checks of scores that several functions share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue

Floats = NDArray[np.float64]


def paired_vectors(baseline: ArrayLike, perturbed: ArrayLike) -> tuple[Floats, Floats]:
    """Two scores of every item, NaN where one is missing."""
    before = np.asarray(baseline, dtype=np.float64)
    after = np.asarray(perturbed, dtype=np.float64)
    if before.ndim != 1 or before.shape != after.shape:
        raise InvalidValue(
            "baseline, perturbed",
            (before.shape, after.shape),
            "two vectors of the same items in the same order, one score for every item",
        )
    return before, after


def is_binary(values: NDArray[Any]) -> bool:
    """Return True if all are 0 or 1; none at all are, too."""
    return bool(((values == 0.0) | (values == 1.0)).all())


def binary_table(outcomes: ArrayLike, *, hint: str | None = None) -> Floats:
    """Items x conditions of 0 and 1, NaN where missing."""
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions")
    not_binary = table[~(np.isnan(table) | (table == 0.0) | (table == 1.0))]
    if not_binary.size:
        expected = "0, 1, or NaN where missing"
        raise InvalidValue("outcomes", float(not_binary[0]), expected, hint=hint)
    return table
