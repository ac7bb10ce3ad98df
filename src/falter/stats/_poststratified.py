"""A drop from a complete baseline and perturbed outcomes of some items."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._checks import is_binary, paired_vectors
from falter.stats._interval import Interval, check_level, no_interval, normal_quantile
from falter.stats._proportions import agresti_coull
from falter.stats._target import SampleEstimate, Target, check_target, estimand

__all__ = ["poststratified_drop"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stratum:
    """The items that were right, or wrong, at the baseline; `losses` are the baseline - perturbed
    of those asked.
    """

    right: bool
    share: float
    items: int
    losses: Floats

    @property
    def mean(self) -> float:
        return float(self.losses.mean())

    def factor(self, target: Target) -> float:
        """1, or for a finite target 1 − n_h/N_h, the share of its items that were not asked."""
        return 1.0 - len(self.losses) / self.items if target == "finite" else 1.0

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

        d = Σ_h W_h d_h
        finite: Var d = Σ_h W_h² (1 − n_h/N_h) s_h²/n_h
        super-population: Var d = Σ_h W_h² s_h²/n_h + Σ_h W_h (d_h − d)²/N

    W_h is the share of the N items that were right, or wrong, at the baseline, N_h their number;
    d_h and s_h² are the mean and variance of the differences of the n_h asked among them. d is
    unbiased however the sample fell into the two, and costs 1 − φ² instead of the 2 (1 − φ) of
    paired differences. `baseline` is 0/1, `perturbed` NaN where it was not asked.

    Interval for 0/1 outcomes: the two strata's Agresti-Coull intervals, whose distances from d_h
    are added in squares, so that no change seen among few does not pass for certainty; else normal.
    A baseline that is NaN is counted as excluded. No item of a stratum that exists was asked:
    not_identified. Fewer than two items asked: insufficient_data.
    Source: Holt and Smith (1979); Zou and Donner (2008) for the interval.
    """
    before, after = paired_vectors(baseline, perturbed)
    if np.isinf(after).any():
        raise InvalidValue("perturbed", "an infinite score", "finite numbers, NaN where not asked")
    present = ~np.isnan(before)
    excluded = int((~present).sum())
    before, after = before[present], after[present]
    if not is_binary(before):
        raise InvalidValue("baseline", "a score that is not 0 or 1", "right or wrong, 1 or 0")
    check_level(level)
    check_target(target)
    strata = []
    for right in (True, False):
        members = before == float(right)
        losses = (before - after)[members]
        if members.any():
            strata.append(
                _Stratum(
                    right=right,
                    share=float(members.mean()),
                    items=int(members.sum()),
                    losses=losses[~np.isnan(losses)],
                )
            )
    asked = sum(len(s.losses) for s in strata)
    about = estimand("score(baseline) - score(condition)", target, len(before))
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
        between = sum(s.share * (s.mean - value) ** 2 for s in strata) / len(before)
    binary = is_binary(after[~np.isnan(after)])
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


def _interval(
    strata: list[_Stratum],
    value: float,
    between: float,
    target: Target,
    level: float,
    binary: bool,
) -> tuple[Interval, float | None]:
    """The interval, and the standard error; None where a stratum has too few items to know it."""
    if not binary and any(len(s.losses) < 2 and s.factor(target) > 0.0 for s in strata):
        return no_interval(level), None
    within = (s.share**2 * s.factor(target) * s.variance / len(s.losses) for s in strata)
    error = math.sqrt(sum(within) + between)
    z = normal_quantile(level)
    if binary:
        distances = [_distances(s, s.factor(target), level) for s in strata]
        below, above = (
            math.sqrt(sum(d**2 for d in side) + z**2 * between)
            for side in zip(*distances, strict=True)
        )
        low, high = max(-1.0, value - below), min(1.0, value + above)
        method = "agresti-coull by stratum"
    else:
        low, high = value - z * error, value + z * error
        method = "normal by stratum"
    return Interval(low=low, high=high, level=level, method=method), error


def _distances(stratum: _Stratum, factor: float, level: float) -> tuple[float, float]:
    """How far a stratum's part of the drop can lie below and above its value.

    The finite `factor` makes n items count as n/factor.
    """
    if factor == 0.0:
        return 0.0, 0.0
    asked = len(stratum.losses) / factor
    changed = abs(stratum.mean)
    interval = agresti_coull(changed * asked, asked, level=level)
    low, high = interval.low or 0.0, 1.0 if interval.high is None else interval.high
    below, above = stratum.share * (changed - low), stratum.share * (high - changed)
    # Those wrong at the baseline can only gain, which is a negative loss.
    return (below, above) if stratum.right else (above, below)
