"""A rating as the mean of what a judge thinks each score's chance is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from falter.core.records import EstimateStatus

__all__ = ["GevalScore", "geval_score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GevalScore:
    """The weighted score, or None with the reason; `renormalised` if the sum was not 100."""

    value: float | None
    status: EstimateStatus
    total: float | None
    renormalised: bool
    reason: str


def geval_score(percentages: Sequence[float] | None) -> GevalScore:
    """Σ s p_s / Σ p_s over the scores s = 1 to 5, from five percentages p.

    The chance of a score of 1 comes first. A sum
    that differs from 100 by more than 0.5 is renormalised and flagged; not five finite numbers, one
    below 0, or a sum of 0: None. Source: Liu et al. (2023), G-Eval.
    """
    p = [] if percentages is None else [float(percentage) for percentage in percentages]
    reason = ""
    if len(p) != 5:
        reason = f"{len(p)} numbers instead of five"
    elif not all(math.isfinite(percentage) for percentage in p):
        reason = "a number that is not finite"
    elif min(p) < 0.0:
        reason = "a percentage below 0"
    if reason:
        return GevalScore(
            value=None, status="insufficient_data", total=None, renormalised=False, reason=reason
        )
    total = math.fsum(p)
    if total == 0.0:
        return GevalScore(
            value=None,
            status="undefined_zero_denominator",
            total=0.0,
            renormalised=False,
            reason="the percentages sum to 0",
        )
    value = math.fsum(s * p_s for s, p_s in enumerate(p, start=1)) / total
    return GevalScore(
        value=value, status="ok", total=total, renormalised=abs(total - 100.0) > 0.5, reason=""
    )
