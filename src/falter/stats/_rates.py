"""Means of scores between 0 and 1 as proportions, and the difference of two of the same items."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from falter.stats._interval import Interval, normal_quantile, outer, student_quantile
from falter.stats._proportions import agresti_coull

__all__ = ["Apart", "Between", "Ends", "Rate"]

METHOD = "agresti-coull, effective number of answers"
Ends = Callable[[float], tuple[float, float] | None]
"""Both ends of an interval of a level, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A mean of scores between 0 and 1 with what its interval is made of.

    `error` and `freedom` are those of independent items; `by_cluster` and `cluster_freedom` those
    of clusters, None without. `most` is how many answers 0/1 scores count as at most, None for
    other scores; `fixed` how many they count as whatever the error, None where it is estimated.
    """

    value: float
    error: float
    freedom: float
    most: float | None
    fixed: float | None
    by_cluster: float | None = None
    cluster_freedom: float = 0.0

    def interval(self, level: float) -> Interval | None:
        """Agresti and Coull's of as many independent answers as these are worth; None for none.

        n_eff = x̄(1 − x̄)/se² · (z/t)², with clusters never narrower than without.
        Source: Korn and Graubard (1998).
        """
        if self.fixed is None and self.error == 0.0:
            return None
        answers = self.fixed
        if answers is None:
            answers = self._effective(self.error, self.freedom, level)
            answers = answers if self.most is None else min(answers, self.most)
        interval = self._of(answers, level)
        if self.by_cluster is None or self.cluster_freedom <= 0.0:
            return interval
        if self.by_cluster > 0.0:
            fewer = self._effective(self.by_cluster, self.cluster_freedom, level)
            interval = outer(self._of(min(answers, fewer), level), interval)
        return replace(interval, method=f"{METHOD}, CR2")

    def ends(self, level: float) -> tuple[float, float] | None:
        """The ends of the interval."""
        interval = self.interval(level)
        if interval is None or interval.low is None or interval.high is None:
            return None
        return interval.low, interval.high

    def _effective(self, error: float, freedom: float, level: float) -> float:
        # At a level of next to nothing both quantiles are 0.
        student = student_quantile(level, freedom)
        ratio = normal_quantile(level) / student if student > 0.0 else 1.0
        return self.value * (1.0 - self.value) / error**2 * ratio**2

    def _of(self, answers: float, level: float) -> Interval:
        right = min(1.0, max(0.0, self.value)) * answers
        return replace(agresti_coull(right, answers, level=level), method=METHOD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A mean drop as one proportion less another of the same items, `correlation` between them.

        L = d − √((p − l₁)² + (u₂ − q)² − 2ρ(p − l₁)(u₂ − q))        and U the other way round

    Where nearly all answers to the baseline are right, few items can gain and many can lose: such
    drops are skewed, and a sample in which by luck none gains seems sure of a loss. The intervals
    of both proportions know how near they are to 1. Source: Zou and Donner (2008), "MOVER".
    """

    before: Rate
    after: Rate
    correlation: float

    def interval(self, value: float, level: float) -> tuple[float, float] | None:
        """Both ends at a level, around a value; None where one of the means has none."""
        between = Between(
            value=value,
            centres=(self.before.value, self.after.value),
            ends=(self.before.ends, self.after.ends),
            correlation=self.correlation,
        )
        return between.interval(level)

    def excludes_zero(self, value: float, level: float) -> bool:
        """Whether the interval does; without one it does not."""
        ends = self.interval(value, level)
        return ends is not None and not ends[0] <= 0.0 <= ends[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """A difference of two numbers of the same items, each with an interval of its own.

    L = d − √((p − l₁)² + (u₂ − q)² − 2ρ(p − l₁)(u₂ − q))        and U the other way round
    """

    value: float
    centres: tuple[float, float]
    ends: tuple[Ends, Ends]
    correlation: float

    def interval(self, level: float) -> tuple[float, float] | None:
        """Both ends at a level; None where one of the two has none."""
        one, two = (ends(level) for ends in self.ends)
        if one is None or two is None:
            return None
        p, q = self.centres
        low = self._both(p - one[0], two[1] - q)
        high = self._both(one[1] - p, q - two[0])
        return self.value - low, self.value + high

    def _both(self, first: float, second: float) -> float:
        product = 2.0 * self.correlation * first * second
        return math.sqrt(max(0.0, first * first + second * second - product))

    def excludes_zero(self, level: float) -> bool:
        """Whether the interval does; without one it does not."""
        ends = self.interval(level)
        return ends is not None and not ends[0] <= 0.0 <= ends[1]
