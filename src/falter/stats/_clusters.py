"""Clusters: items that belong together, such as the questions about one passage."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue

__all__ = ["cluster_codes", "cluster_sums"]


def cluster_codes(clusters: Sequence[Hashable] | None, rows: int) -> NDArray[np.intp]:
    """The clusters numbered from 0 in order of appearance, one number per row.

    Without clusters every row is its own.
    """
    if clusters is None:
        return np.arange(rows)
    if len(clusters) != rows:
        raise InvalidValue(
            "clusters", f"{len(clusters)} labels", f"a label for each of {rows} items"
        )
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in clusters], dtype=np.intp)


def cluster_sums(values: NDArray[Any], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """The sum of a vector within every cluster that occurs."""
    _, present = np.unique(codes, return_inverse=True)
    return np.bincount(present, weights=values).astype(np.float64)
