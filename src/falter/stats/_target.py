"""What an estimate from a sample of cells is about, and what it carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from falter.core.errors import InvalidValue, nearest
from falter.core.records import EstimateStatus
from falter.stats._interval import Interval

__all__ = ["SampleEstimate", "Target", "check_target", "check_unit", "estimand"]

Target = Literal["finite", "super-population"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEstimate:
    """A number estimated from some of the cells, from `items`; `excluded` could not be used.

    Without an `ok` status the value is None, and the interval has no ends.
    """

    value: float | None
    status: EstimateStatus
    interval: Interval
    standard_error: float | None
    items: int
    excluded: int
    estimand: str


def check_target(target: str) -> None:
    """Refuse a target that is neither of the two."""
    known = get_args(Target)
    if target not in known:
        close = nearest(target, known)
        raise InvalidValue(
            "target",
            target,
            " or ".join(map(repr, known)),
            hint=f"did you mean {close!r}?" if close else None,
        )


def check_unit(name: str, value: float, *, ends: bool = False) -> None:
    """Refuse a share that is not between 0 and 1; with `ends`, 0 and 1 themselves are allowed."""
    if not (0.0 <= value <= 1.0 if ends else 0.0 < value < 1.0):
        raise InvalidValue(name, value, "a share between 0 and 1", hint="2 points are 0.02")


def estimand(what: str, target: Target, items: int | None) -> str:
    """The sentence that says what a number is about."""
    if target == "finite":
        return f"{what}, these conditions, exactly these {items} items"
    return f"{what}, these conditions, items like these"
