"""How much the scores of one item spread over configurations."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import Estimate
from falter.measures._accuracy import accuracy
from falter.measures._estimates import Basis
from falter.measures._tables import Table, outcome_array
from falter.stats import item_mean

__all__ = ["ItemStd", "item_std"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStd:
    """Standard deviations (ddof 0) of the items in `items`, their mean, and what those of 0 are.

    An item that never varies is all right, all wrong, or `steady` at a score in between.
    """

    items: NDArray[np.intp]
    values: NDArray[np.float64]
    mean: Estimate
    all_correct: Estimate
    all_wrong: Estimate
    steady: Estimate


def item_std(
    scores: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ItemStd:
    """The standard deviation of every item's scores over a fixed set of configurations.

    `scores` is items x configurations; ddof 0, since the set is no sample. Items with a missing
    cell are left out and counted. All correct is a score of 1, all wrong of 0. The mean
    has a t interval, the shares of all items have Agresti and Coull's. One configuration:
    not_identified.
    """
    table = Table.read(scores, level)
    array = outcome_array(scores)
    whole = np.logical_not(np.isnan(array).any(axis=tuple(range(1, array.ndim))))
    cells = table.cells[:, :, 0]
    basis = Basis(
        estimand="standard deviation of an item's scores over these configurations, items like "
        "these",
        items=len(cells),
        conditions=cells.shape[1],
        excluded=table.excluded,
        level=level,
    )
    if not len(cells) or cells.shape[1] < 2:
        status, why = table.status, "one configuration" if len(cells) else "no whole item"
        undefined = {
            part: basis.undefined(f"item_std.{part}", status, why)
            for part in ("mean", "all_correct", "all_wrong", "steady")
        }
        return ItemStd(items=np.zeros(0, dtype=np.intp), values=np.zeros(0), **undefined)
    if clusters is not None:
        clusters = [c for c, w in zip(clusters, whole, strict=True) if w]
    values = cells.std(axis=1)
    is_constant = np.ptp(cells, axis=1) == 0.0
    values[is_constant] = 0.0
    score = cells[:, 0]

    def share(part: str, is_so: NDArray[np.bool_]) -> Estimate:
        return replace(
            accuracy(is_so.astype(float), clusters=clusters, level=level),
            measure=f"item_std.{part}",
            estimand=f"share of items with the same score in all these configurations, "
            f"{part.replace('_', ' ')}, items like these",
            conditions=cells.shape[1],
            excluded=table.excluded,
        )

    mean = item_mean(values, clusters=clusters, level=level)
    return ItemStd(
        items=np.flatnonzero(whole),
        values=values,
        mean=basis.undefined("item_std.mean", mean.status, "fewer than two items")
        if mean.value is None
        else replace(basis, clusters=mean.clusters, design_effect=mean.design_effect).estimate(
            "item_std.mean", mean.value, mean.interval.clipped(0.0, math.inf), status=mean.status
        ),
        all_correct=share("all_correct", is_constant & (score == 1.0)),
        all_wrong=share("all_wrong", is_constant & (score == 0.0)),
        steady=share("steady", is_constant & (score != 1.0) & (score != 0.0)),
    )
