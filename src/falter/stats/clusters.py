"""Clusters: items that belong together, such as the questions about one passage."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import InvalidValue

Floats = NDArray[np.float64]
# With fewer clusters nothing says how far clusters differ: no interval and no test. Five signs have
# 32 arrangements, so that no two-sided test of them can reach 5 % (2/32).
FEWEST_CLUSTERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterParts:
    """The part of each cluster in the error of each column's mean (CR2), and its leverage.

    Both are clusters x columns: the sum over clusters of `parts` squared is the variance of a
    column's mean, and `leverage` is the share of a column's items that a cluster holds.
    """

    parts: Floats
    leverage: Floats

    def error(self, coefficients: Floats) -> float:
        """The standard error of a sum of column means."""
        return float(np.sqrt(np.square(self.parts @ coefficients).sum()))

    def freedom(self, coefficients: Floats, counts: NDArray[Any]) -> float:
        """Satterthwaite's degrees of freedom of `error`, for cells that vary alike.

            P = Σ_j c_j²/n_j (diag(h_j) − off-diagonal h_gj h_kj/√((1 − h_gj)(1 − h_kj)))
            df = (tr P)²/tr P²

        h_gj is the share of column j's n_j items that cluster g holds. G clusters of one size have
        G − 1. Where all items of a column lie in one cluster nothing says how far others differ: 0.
        """
        h = self.leverage[:, coefficients != 0.0]
        counts, coefficients = counts[coefficients != 0.0], coefficients[coefficients != 0.0]
        if (h >= 1.0 - 1e-12).any():
            return 0.0
        weight = np.square(coefficients) / np.maximum(1, counts)
        diagonal = (h / (1.0 - h)) @ weight
        root = h / np.sqrt(1.0 - h) * np.sqrt(weight)
        own = np.square(root).sum(axis=1)
        trace = float((diagonal - own).sum())
        square = float(np.square(diagonal).sum() - 2.0 * (diagonal * own).sum())
        square += float(np.square(root.T @ root).sum())
        return trace**2 / square if square > 0.0 else 0.0


def cluster_parts(residuals: Floats, present: NDArray[np.bool_], codes: Any) -> ClusterParts:
    """Items x columns of residuals from the column means, 0 where absent, as sums of clusters.

        part_gj = Σ_{i in g} e_ij / (n_j √(1 − h_gj))

    The root is Bell and McCaffrey's adjustment (CR2), which makes the variance unbiased where items
    do not depend on each other; clusters of one size get the G/(G − 1) of CR1. Source: Bell and
    McCaffrey (2002); Pustejovsky and Tipton (2018).
    """
    counts = np.maximum(1, present.sum(axis=0))
    leverage = cluster_table(present.astype(np.float64), codes) / counts
    rest = 1.0 - leverage
    sums = cluster_table(residuals, codes) / counts
    # All items of a column in one cluster: their residuals add up to 0.
    parts = np.where(rest > 1e-12, sums / np.sqrt(np.maximum(rest, 1e-12)), 0.0)
    return ClusterParts(parts=parts, leverage=leverage)


def too_few_clusters(count: int | None) -> str | None:
    """Return why so many clusters have no interval; None for enough of them, or for items."""
    if count is None or count >= FEWEST_CLUSTERS:
        return None
    return f"fewer than {FEWEST_CLUSTERS} clusters"


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


def cluster_table(columns: Floats, codes: NDArray[np.intp]) -> Floats:
    """The sums of every column within every cluster that occurs, one row per cluster."""
    numbers, present = np.unique(codes, return_inverse=True)
    sums = np.zeros((len(numbers), columns.shape[1]))
    np.add.at(sums, present, columns)
    return sums
