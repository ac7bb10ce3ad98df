"""When a gate looks, and how much error each look may spend."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from falter.core.errors import InvalidValue
from falter.gate._looks import ANYTIME, STEPS
from falter.stats import sequential_boundaries

__all__ = ["Schedule", "schedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The share of the items at each look, and the one-sided error of its limits.

    `pass_errors` are for the upper limit of one line, `fail_errors` for the lower limits of all
    lines together. Of an `anytime` schedule both are those of a confidence sequence.
    """

    shares: tuple[float, ...]
    pass_errors: tuple[float, ...]
    fail_errors: tuple[float, ...]
    anytime: bool = False

    @property
    def looks(self) -> int:
        return len(self.shares)

    def items(self, look: int, most: int) -> int:
        """How many of `most` items there are at a look, counted from 1."""
        return most if look == self.looks else max(2, math.ceil(self.shares[look - 1] * most))


@lru_cache(maxsize=64)
def schedule(
    looks: int | Literal["anytime"], *, level: float = 0.95, fail_level: float = 0.995
) -> Schedule:
    """Evenly spaced looks with O'Brien and Fleming's spending of 1 - level, and of 1 - fail_level.

    One look spends all of it: an upper limit at 1.645 standard errors. `anytime` looks at every
    twentieth of the items, with intervals that hold at all of them.
    """
    for name, value in (("level", level), ("fail_level", fail_level)):
        if not 0.5 < value < 1.0:
            raise InvalidValue(name, value, "a number above 0.5 and below 1")
    if looks == ANYTIME:
        shares = tuple(k / STEPS for k in range(1, STEPS + 1))
        return Schedule(
            shares=shares,
            pass_errors=(1.0 - level,) * STEPS,
            fail_errors=(1.0 - fail_level,) * STEPS,
            anytime=True,
        )
    passing = sequential_boundaries(looks, alpha=2.0 * (1.0 - level))
    failing = sequential_boundaries(looks, alpha=2.0 * (1.0 - fail_level))
    return Schedule(
        shares=passing.information,
        pass_errors=tuple(map(_tail, passing.z)),
        fail_errors=tuple(map(_tail, failing.z)),
    )


def _tail(z: float) -> float:
    """The chance of a standard normal above z; never quite 0."""
    return max(math.erfc(z / math.sqrt(2.0)) / 2.0, 1e-12)
