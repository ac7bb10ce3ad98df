"""Relative loss of performance, in the conventions that are called performance drop rate."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue, UnknownName
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._resample import sums_interval, unit_codes, unit_sums
from falter.stats import item_mean

__all__ = ["PerformanceDropRate", "performance_drop_rate"]

Floats = NDArray[np.float64]
Convention = Literal["promptbench", "paper", "item", "pairwise"]
CONVENTIONS = ("promptbench", "paper", "item", "pairwise")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceDropRate:
    """The rate; `skipped` counts the item ratios that would have divided by 0."""

    rate: Estimate
    skipped: int


def performance_drop_rate(
    original: ArrayLike,
    perturbed: ArrayLike,
    *,
    convention: Convention = "promptbench",
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> PerformanceDropRate:
    """How much of the original performance is lost: `original` is items, `perturbed` items x V.

    promptbench: 1 - sum_i perturbed/sum_i original, then the mean over V; positive is a loss.
    paper: mean_i mean_v (1 - original/perturbed), as printed. It divides by the perturbed score, so
    a 0/1 failure is undefined and skipped, an improvement counts +100 %, and a loss is negative:
    for comparison only, reported as `pdr_doc003`.
    item: mean_i mean_v (1 - perturbed/original) over items with an original above 0; for real
    scores. pairwise: every configuration, the original among them, is the reference once; the mean
    of |1 - A_v/A_o| over ordered pairs. (Signed, these average to 0 in points and to at most 0 as
    rates, whatever the model does.)

    promptbench and pairwise use the items that have every score, a BCa bootstrap, and are
    undefined_zero_denominator if an original sum is 0; the others have t intervals over items and
    are so if no ratio is left. Source: Zhu et al. (2023) for the first.
    """
    if convention not in CONVENTIONS:
        raise UnknownName("convention", convention, CONVENTIONS)
    base, others = _read(original, perturbed)
    codes = unit_codes(clusters, len(base))
    basis = Basis(
        estimand=f"relative loss, {convention} convention, fixed conditions, super-population of "
        "items",
        items=0,
        conditions=others.shape[1] + 1,
        level=level,
    )
    if convention in ("promptbench", "pairwise"):
        statistic = _promptbench if convention == "promptbench" else _pairwise
        table = np.column_stack([np.ones(len(base)), base, others])
        whole = np.logical_not(np.isnan(table).any(axis=1))
        own = replace(basis, items=int(whole.sum()), excluded=int((~whole).sum()), seed=seed)
        if whole.sum() < 2:
            none = own.undefined(
                "performance_drop_rate", "insufficient_data", "fewer than two items"
            )
            return PerformanceDropRate(rate=none, skipped=0)
        units = unit_sums(table[whole], codes[whole])
        value = float(statistic(units.sum(axis=0)))
        if np.isnan(value):
            none = own.undefined(
                "performance_drop_rate", "undefined_zero_denominator", "a reference scores 0"
            )
            return PerformanceDropRate(rate=none, skipped=0)
        interval = sums_interval(
            units, statistic, level=level, replications=replications, seed=seed
        )
        found = own.estimate("performance_drop_rate", value, interval)
        return PerformanceDropRate(rate=found, skipped=0)
    return _by_item(base, others, convention, basis, clusters)


def _by_item(
    base: Floats,
    others: Floats,
    convention: str,
    basis: Basis,
    clusters: Sequence[Hashable] | None,
) -> PerformanceDropRate:
    measure = "pdr_doc003" if convention == "paper" else "performance_drop_rate"
    above, below = base[:, None] + 0.0 * others, others + 0.0 * base[:, None]
    if convention == "item":
        above, below = below, above
    usable = below > 0.0 if convention == "item" else below != 0.0
    usable &= ~np.isnan(below)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(usable, 1.0 - above / below, np.nan)
    skipped = int((~usable & ~np.isnan(below)).sum())
    count = usable.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = np.where(usable, ratios, 0.0).sum(axis=1) / count
    own = replace(basis, items=int((count > 0).sum()), excluded=int((count == 0).sum()))
    if not own.items:
        why = "every ratio divides by 0"
        none = own.undefined(measure, "undefined_zero_denominator", why)
        return PerformanceDropRate(rate=none, skipped=skipped)
    mean = item_mean(rho, clusters=clusters, level=basis.level)
    if mean.value is None:
        none = own.undefined(measure, mean.status, "fewer than two items")
        return PerformanceDropRate(rate=none, skipped=skipped)
    found = own.estimate(measure, mean.value, mean.interval)
    return PerformanceDropRate(rate=found, skipped=skipped)


def _promptbench(sums: Floats) -> Floats:
    """From the sums of 1, the original and every perturbed score."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1.0 - sums[..., 2:].mean(axis=-1) / sums[..., 1]
    return np.asarray(np.where(sums[..., 1] != 0.0, found, np.nan))


def _pairwise(sums: Floats) -> Floats:
    scores = sums[..., 1:]
    count = scores.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.abs(1.0 - scores[..., None, :] / scores[..., :, None])
    found = change.sum(axis=(-1, -2)) / (count * (count - 1))
    return np.asarray(np.where((scores != 0.0).all(axis=-1), found, np.nan))


def _read(original: ArrayLike, perturbed: ArrayLike) -> tuple[Floats, Floats]:
    base, others = np.asarray(original, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    others = others[:, None] if others.ndim == 1 else others
    if base.ndim != 1 or others.ndim != 2 or len(base) != len(others) or not others.shape[1]:
        raise InvalidValue(
            "original, perturbed", (base.shape, others.shape), "items, and items x configurations"
        )
    return base, others
