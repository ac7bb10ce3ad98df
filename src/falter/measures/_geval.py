"""A rating as the mean of what a judge thinks each score's chance is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from falter.core.errors import UnknownName
from falter.core.records import EstimateStatus

__all__ = ["GevalScore", "geval_score"]

Order = Literal["ascending", "descending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GevalScore:
    """The weighted score, or None with the reason; `renormalised` if the sum was not 100."""

    value: float | None
    status: EstimateStatus
    total: float | None
    renormalised: bool
    reason: str


def geval_score(percentages: Sequence[float] | None, *, order: Order) -> GevalScore:
    """sum s p_s / sum p_s over the scores 1 to 5, from five percentages.

    `order` says whether the prompt asked for the chance of 1 first (ascending) or of 5 first; it
    has no default, because the same five numbers read the other way are 6 minus the score. A sum
    off 100 by more than 0.5 is renormalised and flagged; not five finite numbers, one below 0, or
    a sum of 0: None.
    """
    if order not in ("ascending", "descending"):
        raise UnknownName("order of scores", order, ("ascending", "descending"))
    given = [] if percentages is None else [float(p) for p in percentages]
    reason = _wrong(given)
    total = math.fsum(given) if not reason else None
    if reason or total is None:
        return GevalScore(
            value=None, status="insufficient_data", total=None, renormalised=False, reason=reason
        )
    if total == 0.0:
        return GevalScore(
            value=None,
            status="undefined_zero_denominator",
            total=0.0,
            renormalised=False,
            reason="the percentages sum to 0",
        )
    scores = range(1, 6) if order == "ascending" else range(5, 0, -1)
    value = math.fsum(s * p for s, p in zip(scores, given, strict=True)) / total
    return GevalScore(
        value=value, status="ok", total=total, renormalised=abs(total - 100.0) > 0.5, reason=""
    )


def _wrong(given: Sequence[float]) -> str:
    if len(given) != 5:
        return f"{len(given)} numbers instead of five"
    if not all(math.isfinite(p) for p in given):
        return "a number that is not finite"
    return "a percentage below 0" if min(given) < 0.0 else ""
