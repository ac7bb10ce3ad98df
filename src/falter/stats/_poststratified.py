"""A drop from a complete baseline and perturbed outcomes of some items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._interval import Interval, check_level, no_interval, normal_quantile
from falter.stats._proportions import agresti_coull
from falter.stats._target import SampleEstimate, Target, check_target, estimand

__all__ = ["poststratified_drop"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stratum:
    """The items that were right, or wrong, at the baseline; `losses` are those asked, baseline
    - perturbed."""

    right: bool
    share: float
    items: int
    losses: Floats

    @property
    def mean(self) -> float:
        return float(self.losses.mean())

    @property
    def left(self) -> float:
        """The share of its items that were not asked."""
        return 1.0 - len(self.losses) / self.items

    @property
    def variance(self) -> float:
        return float(self.losses.var(ddof=1)) if len(self.losses) > 1 else 0.0


def poststratified_drop(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    target: Target = "super-population",
    level: float = 0.95,
) -> SampleEstimate:
    """Baseline - perturbed over all items with a baseline, from a random part of them perturbed.

    `baseline` is 0/1, `perturbed` NaN where it was not asked. With W_h the share of the items right
    or wrong at the baseline and d_h the mean difference of those asked among them, the drop is
    sum W_h d_h: unbiased however the sample fell into the two. Its variance is sum W_h^2 s_h^2/n_h,
    with the factor 1 - n_h/N_h for exactly these items (finite), or with + sum W_h (d_h - d)^2/N
    for the super-population. That is 1 - phi^2 instead of the 2 (1 - phi) of paired differences.

    Interval for 0/1 outcomes: the two strata's Agresti-Coull intervals, whose distances from d_h
    are added in squares, so that no change seen among few does not pass for certainty; else normal.
    A baseline that is NaN is counted as excluded. No item of a stratum that exists was asked:
    not_identified. Fewer than two items asked: insufficient_data.
    Source: Holt and Smith (1979); Zou and Donner (2008) for the interval.
    """
    first, second, excluded = _vectors(baseline, perturbed)
    check_level(level)
    check_target(target)
    strata = _strata(first, second)
    asked = sum(len(s.losses) for s in strata)
    about = estimand("score(baseline) - score(condition)", target, len(first))
    if asked < 2 or any(len(s.losses) == 0 for s in strata):
        return SampleEstimate(
            value=None,
            status="insufficient_data" if asked < 2 else "not_identified",
            interval=no_interval(level),
            standard_error=None,
            items=asked,
            excluded=excluded,
            estimand=about,
        )
    value = sum(s.share * s.mean for s in strata)
    between = 0.0
    if target == "super-population":
        between = sum(s.share * (s.mean - value) ** 2 for s in strata) / len(first)
    binary = bool(np.isin(second[~np.isnan(second)], (0.0, 1.0)).all())
    interval, error = _interval(strata, value, between, target, level, binary)
    return SampleEstimate(
        value=value,
        status="ok",
        interval=interval,
        standard_error=error,
        items=asked,
        excluded=excluded,
        estimand=about,
    )


def _strata(first: Floats, second: Floats) -> list[_Stratum]:
    """The strata that exist."""
    found = []
    for right in (1.0, 0.0):
        members = first == right
        losses = (first - second)[members]
        if members.any():
            found.append(
                _Stratum(
                    right=right == 1.0,
                    share=float(members.mean()),
                    items=int(members.sum()),
                    losses=losses[~np.isnan(losses)],
                )
            )
    return found


def _interval(
    strata: list[_Stratum],
    value: float,
    between: float,
    target: Target,
    level: float,
    binary: bool,
) -> tuple[Interval, float | None]:
    finite = target == "finite"
    kept = [s.left if finite else 1.0 for s in strata]
    if any(len(s.losses) < 2 and k > 0.0 for s, k in zip(strata, kept, strict=True)) and not binary:
        return no_interval(level), None
    parts = (s.share**2 * k * s.variance / len(s.losses) for s, k in zip(strata, kept, strict=True))
    variance = sum(parts) + between
    error = math.sqrt(variance)
    z = normal_quantile(level)
    if binary:
        reach = [_reach(s, k, level) for s, k in zip(strata, kept, strict=True)]
        low, high = (math.sqrt(sum(r[e] ** 2 for r in reach) + z**2 * between) for e in (0, 1))
        low, high = max(-1.0, value - low), min(1.0, value + high)
        method = "agresti-coull by stratum"
    else:
        low, high = value - z * error, value + z * error
        method = "normal by stratum"
    return Interval(low=low, high=high, level=level, method=method), error


def _reach(stratum: _Stratum, kept: float, level: float) -> tuple[float, float]:
    """How far a stratum's part can lie below and above its value.

    `kept`, 1 less the share of a finite stratum that was asked, makes n count as n/kept.
    """
    if kept == 0.0:
        return 0.0, 0.0
    asked = len(stratum.losses) / kept
    changed = abs(stratum.mean)
    found = agresti_coull(changed * asked, asked, level=level)
    low, high = found.low or 0.0, 1.0 if found.high is None else found.high
    below, above = stratum.share * (changed - low), stratum.share * (high - changed)
    # Those wrong at the baseline can only gain, which is a negative loss.
    return (below, above) if stratum.right else (above, below)


def _vectors(baseline: ArrayLike, perturbed: ArrayLike) -> tuple[Floats, Floats, int]:
    first = np.asarray(baseline, dtype=np.float64)
    second = np.asarray(perturbed, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        expected = "two vectors with one score an item, in the same order"
        raise InvalidValue("baseline, perturbed", (first.shape, second.shape), expected)
    there = ~np.isnan(first)
    if not np.isin(first[there], (0.0, 1.0)).all():
        raise InvalidValue("baseline", "a score that is not 0 or 1", "right or wrong, 1 or 0")
    if np.isinf(second).any():
        raise InvalidValue("perturbed", "an infinite score", "finite numbers, NaN where not asked")
    return first[there], second[there], int((~there).sum())
