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
Convention = Literal["promptbench", "paper", "pairwise"]
CONVENTIONS = ("promptbench", "paper", "pairwise")


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

        promptbench: mean_v (1 − Σ_i perturbed_iv/Σ_i original_i)
        paper: mean_i mean_v (1 − original_i/perturbed_iv)
        pairwise: mean of |1 − A_v/A_o| over ordered pairs of all configurations

    promptbench: positive is a loss. paper: as printed. It divides by the perturbed score, so a 0/1
    failure is undefined and skipped, an improvement counts +100 %, and a loss is negative: for
    comparison only, reported as `pdr_doc003`. pairwise: every configuration,
    the original among them, is compared with once. (Signed, these average to 0 in points and to at
    most 0 as rates, whatever the model does.)

    promptbench and pairwise use the items that have every score, a BCa bootstrap, and are
    undefined_zero_denominator if an original sum is 0; paper has a t interval over items and is so
    if no ratio is left. Source: Zhu et al. (2023) for the first.
    """
    if convention not in CONVENTIONS:
        raise UnknownName("convention", convention, CONVENTIONS)
    base, others = np.asarray(original, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    others = others[:, None] if others.ndim == 1 else others
    if base.ndim != 1 or others.ndim != 2 or len(base) != len(others) or not others.shape[1]:
        raise InvalidValue(
            "original, perturbed", (base.shape, others.shape), "items, and items x configurations"
        )
    basis = Basis(
        estimand=f"relative loss, {convention} convention, these conditions, items like these",
        items=0,
        conditions=others.shape[1] + 1,
        level=level,
    )
    if convention == "paper":
        return _mean_of_ratios(base, others, basis, clusters)
    measure = "performance_drop_rate"
    statistic = _promptbench if convention == "promptbench" else _pairwise
    codes = unit_codes(clusters, len(base))
    table = np.column_stack([np.ones(len(base)), base, others])
    whole = np.logical_not(np.isnan(table).any(axis=1))
    basis = replace(basis, items=int(whole.sum()), excluded=int((~whole).sum()), seed=seed)
    units = unit_sums(table[whole], codes[whole])
    value = float(statistic(units.sum(axis=0)))
    if basis.items < 2:
        rate = basis.undefined(measure, "insufficient_data", "fewer than two items")
    elif np.isnan(value):
        why = "the sum of the scores to compare with is 0"
        rate = basis.undefined(measure, "undefined_zero_denominator", why)
    else:
        interval = sums_interval(
            units, statistic, level=level, replications=replications, seed=seed
        )
        rate = basis.estimate(measure, value, interval)
    return PerformanceDropRate(rate=rate, skipped=0)


def _mean_of_ratios(
    base: Floats,
    others: Floats,
    basis: Basis,
    clusters: Sequence[Hashable] | None,
) -> PerformanceDropRate:
    """mean_i mean_v (1 − original/perturbed), as printed in the paper."""
    # Adding 0 times the other takes over its missing cells.
    above, below = base[:, None] + 0.0 * others, others + 0.0 * base[:, None]
    usable = below != 0.0
    usable &= ~np.isnan(below)
    skipped = int((~usable & ~np.isnan(below)).sum())
    counts = usable.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(usable, 1.0 - above / below, np.nan)
        rates = np.where(usable, ratios, 0.0).sum(axis=1) / counts
    basis = replace(basis, items=int((counts > 0).sum()), excluded=int((counts == 0).sum()))
    if not basis.items:
        why = "every ratio divides by 0"
        rate = basis.undefined("pdr_doc003", "undefined_zero_denominator", why)
        return PerformanceDropRate(rate=rate, skipped=skipped)
    mean = item_mean(rates, clusters=clusters, level=basis.level)
    if mean.value is None:
        rate = basis.undefined("pdr_doc003", mean.status, "fewer than two items")
    else:
        basis = replace(basis, clusters=mean.clusters, design_effect=mean.design_effect)
        rate = basis.estimate("pdr_doc003", mean.value, mean.interval, status=mean.status)
    return PerformanceDropRate(rate=rate, skipped=skipped)


def _promptbench(sums: Floats) -> Floats:
    """1 − mean_v perturbed_v/original, from sums of 1, the original and every perturbed score."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = 1.0 - sums[..., 2:].mean(axis=-1) / sums[..., 1]
    return np.asarray(np.where(sums[..., 1] != 0.0, rate, np.nan))


def _pairwise(sums: Floats) -> Floats:
    """The mean of |1 − A_v/A_o| over ordered pairs of configurations v and o."""
    scores = sums[..., 1:]
    count = scores.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        changes = np.abs(1.0 - scores[..., None, :] / scores[..., :, None])
    rate = changes.sum(axis=(-1, -2)) / (count * (count - 1))
    return np.asarray(np.where((scores != 0.0).all(axis=-1), rate, np.nan))
