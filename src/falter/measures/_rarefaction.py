"""Brittleness at another number of conditions, without drawing any."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._tables import Table
from falter.stats import Components, jackknife, no_interval

__all__ = ["rarefied_brittleness"]

Floats = NDArray[np.float64]


def rarefied_brittleness(
    outcomes: ArrayLike,
    conditions: int,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Plug-in brittleness as k of the J conditions would give it, averaged over all choices.

        E pert = (k − 1)/k · J/(J − 1) · pert
        E total = total − (J − k)/(k (J − 1)) Var_j(mean_i y_ij)

    and the ratio of the two. Plug-in brittleness grows with the number of conditions; this makes
    lists of different length comparable. One condition has no variance within items: k is 2 to J. A
    jackknife over items, or clusters, of the logit; gaps and edges as in `variance_components`.
    """
    table = Table.read_all(outcomes, level, clusters)
    width = table.cells.shape[1]
    measure = "rarefied_brittleness"
    if table.status != "ok":
        why = "fewer than two items or conditions"
        estimate = table.undefined(measure, table.status, why)
        return _about(estimate, table, conditions)
    if table.runs > 1:
        raise InvalidValue("outcomes", f"{table.runs} runs", "one run; average over runs first")
    if not 2 <= conditions <= width:
        raise InvalidValue("conditions", conditions, f"a number from 2 to {width}")
    ratio = partial(_ratio, k=conditions, width=width)
    values = ratio(table.parts)
    if np.isnan(values[0]):
        why = "every outcome is the same"
        estimate = table.undefined(measure, "undefined_zero_variance", why)
        return _about(estimate, table, conditions)
    interval = no_interval(level)
    if not np.isnan(values).any():
        interval = jackknife(float(values[0]), values[1:], transform="logit", level=level)
    return _about(table.quantity(measure, ratio, interval), table, conditions)


def _about(estimate: Estimate, table: Table, conditions: int) -> Estimate:
    what = f"plug-in brittleness of {conditions} random ones of {table.estimand}"
    return replace(estimate, estimand=what)


def _ratio(parts: Components, *, k: int, width: int) -> Floats:
    """E pert/E total, of the whole table and without each unit; NaN where nothing varies."""
    pert = (k - 1) / k * width / (width - 1) * parts.pert
    total = parts.data + parts.pert - (width - k) / (k * (width - 1)) * parts.spread
    varies = total > 1e-12 * (parts.data + parts.pert)
    return np.asarray(
        np.where(varies, np.minimum(pert / np.where(varies, total, 1.0), 1.0), np.nan)
    )
