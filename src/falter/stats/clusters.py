"""Clusters of items, such as the questions about one passage, and the CR2 variance of means."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import InvalidValue

Floats = NDArray[np.float64]
# Fewer clusters do not show how much clusters differ, so there is no interval and no test. Five
# signs have 32 arrangements, so no two-sided test of them can reach 5 % (2/32).
FEWEST_CLUSTERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterParts:
    """Each cluster's contribution to the CR2 variance of each column's mean, and its leverage.

    Both arrays are clusters x columns. The squares of `parts`, summed over clusters, are the
    variance of a column's mean. `leverage` is the share of a column's items that a cluster
    contains.
    """

    parts: Floats
    leverage: Floats

    def error(self, coefficients: Floats) -> float:
        """Return the standard error of Σ_j c_j times the mean of column j."""
        return float(np.sqrt(np.square(self.parts @ coefficients).sum()))

    def freedom(self, coefficients: Floats, counts: NDArray[Any]) -> float:
        """Return Satterthwaite's degrees of freedom of `error`, if all cells vary equally.

            P = Σ_j c_j²/n_j (diag(h_j) − off-diagonal h_gj h_kj/√((1 − h_gj)(1 − h_kj)))
            df = (tr P)²/tr P²

        h_gj is the share of column j's n_j items in cluster g (`counts` are the n_j). G clusters of
        one size have G − 1. The result is 0 if one cluster contains all items of a column, because
        nothing then shows how clusters differ.
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
    """Return each cluster's part in the CR2 variance of the column means, and its leverage.

        part_gj = Σ_{i in g} e_ij / (n_j √(1 − h_gj))

    `residuals` e_ij are items x columns, each less its column's mean, 0 where not `present`.
    `codes` has the cluster of each item. The square root is Bell and McCaffrey's adjustment (CR2).
    It makes the variance unbiased for independent items; clusters of one size get the G/(G − 1) of
    CR1. Source: Bell and McCaffrey (2002); Pustejovsky and Tipton (2018).
    """
    counts = np.maximum(1, present.sum(axis=0))
    leverage = cluster_table(present.astype(np.float64), codes) / counts
    rest = 1.0 - leverage
    sums = cluster_table(residuals, codes) / counts
    # If one cluster contains all items of a column, their residuals add up to 0.
    parts = np.where(rest > 1e-12, sums / np.sqrt(np.maximum(rest, 1e-12)), 0.0)
    return ClusterParts(parts=parts, leverage=leverage)


def too_few_clusters(count: int | None) -> str | None:
    """Return the reason for having no interval if `count` is below 6; None otherwise.

    A `count` of None means independent items, for which the result is None.
    """
    if count is None or count >= FEWEST_CLUSTERS:
        return None
    return f"fewer than {FEWEST_CLUSTERS} clusters"


def cluster_codes(clusters: Sequence[Hashable] | None, rows: int) -> NDArray[np.intp]:
    """Return the number of each row's cluster, counted from 0 in order of appearance.

    Without clusters every row is its own cluster. Raise InvalidValue unless there is a label per
    row.
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
    """Return clusters x columns: the column sums within each cluster that occurs in `codes`."""
    numbers, present = np.unique(codes, return_inverse=True)
    sums = np.zeros((len(numbers), columns.shape[1]))
    np.add.at(sums, present, columns)
    return sums
