"""The interval that every method returns, and the two quantiles that most of them need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

from falter.core.errors import InvalidValue

__all__ = ["Interval", "check_level", "no_interval", "normal_quantile", "outer", "student_quantile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval and how it was computed; both ends are None where there is none."""

    low: float | None
    high: float | None
    level: float
    method: str

    def __contains__(self, value: float) -> bool:
        """Whether a value lies in the interval; nothing lies in an interval that is not there."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    def mapped(self, increasing: Callable[[float], float]) -> Interval:
        """The interval of an increasing function of the quantity; no end stays no end."""
        return replace(
            self,
            low=None if self.low is None else increasing(self.low),
            high=None if self.high is None else increasing(self.high),
        )

    def clipped(self, lowest: float, highest: float) -> Interval:
        """The part of the interval that the quantity can reach."""
        return replace(
            self,
            low=None if self.low is None else max(lowest, self.low),
            high=None if self.high is None else min(highest, self.high),
        )


def no_interval(level: float, why: str = "too few items, or all alike") -> Interval:
    """What is returned where there is no saying how sure a number is."""
    return Interval(low=None, high=None, level=level, method=f"none: {why}")


def outer(one: Interval, other: Interval) -> Interval:
    """The first interval, widened to hold the second; an end that either lacks stays none."""
    if None in (one.low, one.high, other.low, other.high):
        return replace(one, low=None, high=None)
    low, high = min(one.low or 0.0, other.low or 0.0), max(one.high or 0.0, other.high or 0.0)
    return replace(one, low=low, high=high)


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise InvalidValue("level", level, "a number between 0 and 1", hint="95 % is 0.95")


_NORMAL = NormalDist()


def normal_quantile(level: float) -> float:
    """The two-sided standard normal quantile: 1.96 at 0.95."""
    check_level(level)
    return _NORMAL.inv_cdf(0.5 + level / 2.0)


@lru_cache(maxsize=1024)
def student_quantile(level: float, freedom: float) -> float:
    """The two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    check_level(level)
    return float(stdtrit(freedom, 0.5 + level / 2.0))
