"""What a condition does to the odds of being right, from the pairs that changed alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._interval import Interval, check_level, no_interval
from falter.stats._proportions import clopper_pearson

__all__ = ["ConditionalLogOdds", "conditional_log_odds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalLogOdds:
    """log(c/b), below 0 for a loss; `fell` is b/(b + c), the share of changed pairs that fell.

    An end of `interval` is None where it is infinite; `fell_interval` always has both.
    """

    value: float | None
    status: EstimateStatus
    interval: Interval
    standard_error: float | None
    fell: float | None
    fell_interval: Interval
    b: int
    c: int
    estimand: str = "log odds ratio of perturbed to baseline within an item"

    @property
    def odds_ratio(self) -> float | None:
        """c/b: how many times the odds of being right change, the same for every item."""
        return None if self.value is None else self.c / self.b


def conditional_log_odds(b: int, c: int, *, level: float = 0.95) -> ConditionalLogOdds:
    """The log odds ratio of matched pairs, from b pairs that fell and c that rose: log(c/b).

        logit P(item i is right in condition j) = β_j + a_i

    Given that a pair changed, it rose with odds exp(β_1 − β_0): this estimate of β_1 − β_0 assumes
    nothing about the items' a_i. Its sign is that of an odds ratio, below 0 for a loss, where a
    drop is above 0. Interval: Clopper and Pearson's for b/(b + c), turned into log odds, so exact
    given b + c. Error: √(1/b + 1/c). One of the counts 0: undefined_zero_denominator, with the one
    end that is finite; both 0: insufficient_data.
    Source: Breslow and Day (1980), chapter 5.
    """
    check_level(level)
    for name, count in (("b", b), ("c", c)):
        if not 0 <= count < math.inf or count != int(count):
            raise InvalidValue(name, count, "a count of discordant pairs, zero or more")

    def log_odds_of_rising(fell: float | None) -> float | None:
        # log((1 - fell)/fell); None where there is no share, or the log odds are infinite.
        if fell is None or not 0.0 < fell < 1.0:
            return None
        return math.log1p(-fell) - math.log(fell)

    total = b + c
    share = clopper_pearson(b, total, level=level) if total else no_interval(level)
    both = b > 0 and c > 0
    return ConditionalLogOdds(
        value=math.log(c / b) if both else None,
        status="ok" if both else "undefined_zero_denominator" if total else "insufficient_data",
        interval=Interval(
            low=log_odds_of_rising(share.high),
            high=log_odds_of_rising(share.low),
            level=level,
            method="clopper-pearson, given b + c" if total else share.method,
        ),
        standard_error=math.sqrt(1.0 / b + 1.0 / c) if both else None,
        fell=b / total if total else None,
        fell_interval=share,
        b=int(b),
        c=int(c),
    )
