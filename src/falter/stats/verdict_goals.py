"""Planning goals for verdicts, simulated by drawing counts and applying the verdict's own rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.stats.equivalence import noninferiority_z
from falter.stats.goals import Drops, check_unit, simultaneous_quantile

Floats = NDArray[np.float64]
SIMULATED_STUDIES = 4_000  # simulated studies: a Monte Carlo error of 0.6 points at a power of 80 %


@dataclass(frozen=True, kw_only=True)
class VerdictGoal(Drops):
    """A probability `power` of a verdict, found by simulation.

    Counts are drawn and judged by the verdict's rule.
    """

    power: float = 0.8
    about: ClassVar[str] = ""
    what: ClassVar[str] = ""

    @property
    def asked(self) -> float:
        """The drop or margin that the goal is about."""
        raise NotImplementedError

    def shares(self, items: int, level: float) -> tuple[float, float]:
        """Return two simulated probabilities for `items` items: per recipe, and for all recipes.

        The second is NaN if it is not simulated.
        """
        raise NotImplementedError

    def start(self, level: float) -> float:
        """Return a first guess at the number of items, from a normal approximation."""
        raise NotImplementedError

    def least_items(self, level: float) -> int:
        """Return the smallest number of items that reaches `power`, by bisection of its log."""
        low = high = max(2.0, self.start(level))
        # The start is an approximation: go up by halves, then down, until both ends bracket the
        # result.
        while self.shares(round(high), level)[0] < self.power:
            low, high = high, 1.5 * high
        while low > 2.0 and self.shares(round(low), level)[0] >= self.power:
            low, high = max(2.0, low / 1.5), low
        # Steps below 0.3 % would only follow the Monte Carlo error.
        while high / low > 1.003 and round(high) - round(low) > 1:
            middle = math.sqrt(low * high)
            enough = self.shares(round(middle), level)[0] >= self.power
            low, high = (low, middle) if enough else (middle, high)
        return round(high)

    def _counts(self, items: int, drop: float, studies: int, columns: int) -> tuple[Floats, Floats]:
        """Return studies x columns of the pairs that fell, and of the pairs that rose."""
        # A fixed seed: the same goal always has the same size.
        rng = np.random.Generator(np.random.PCG64(0))
        fall, rise = (self.discordance + drop) / 2.0, (self.discordance - drop) / 2.0
        fell = rng.binomial(items, fall, size=(studies, columns))
        # Multinomial in two steps: of the pairs that did not fall, some rose.
        rose = rng.binomial(items - fell, min(1.0, rise / (1.0 - fall)) if fall < 1.0 else 0.0)
        return fell.astype(np.float64), rose.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class DropDetection(VerdictGoal):
    """The probability `power` that a recipe with the drop `size` is detected among `conditions`.

    Counts are drawn with the probabilities (d + D)/2 of a fall and (d − D)/2 of a rise. The
    `discordance` d is at least the drop D. The recipe is detected if its simultaneous interval lies
    above 0.
    """

    size: float
    about: ClassVar[str] = "a drop of one recipe"
    what: ClassVar[str] = "drop"

    def __post_init__(self) -> None:
        check_unit("size", self.size)
        check_unit("power", self.power)
        self.check()
        if self.discordance < self.size:
            expected = f"at least the drop, {self.size:g}: so many answers have to change"
            raise InvalidValue("discordance", self.discordance, expected)

    @property
    def asked(self) -> float:
        return self.size

    def start(self, level: float) -> float:
        c, z = simultaneous_quantile(self.conditions, level), _upper_z(1.0 - self.power)
        d, drop = self.discordance, self.size
        return (c * math.sqrt(d) + z * math.sqrt(max(0.0, d - drop**2))) ** 2 / drop**2

    def shares(self, items: int, level: float) -> tuple[float, float]:
        fell, rose = self._counts(items, self.size, SIMULATED_STUDIES, 1)
        c = simultaneous_quantile(self.conditions, level)
        gap, wide = fell - rose, items + 2.0
        # Bonett and Price's standard error. The verdict's interval excludes 0 if their test and
        # Tango's both reject it, so a study must pass both tests.
        price = np.sqrt((fell + rose + 2.0) / wide - np.square(gap / wide)) / math.sqrt(wide)
        found = (gap > c * np.sqrt(fell + rose)) & (gap / wide > c * price)
        return float(found.mean()), math.nan


@dataclass(frozen=True, kw_only=True)
class EquivalencePower(VerdictGoal):
    """The mean share `power` of `conditions` recipes that are shown to lie inside ±`margin`.

    Each recipe is judged as the verdict does: by two one-sided tests with Holm's correction over
    all recipes at 1 − level. `drop` is the true drop of every recipe. Source: Schuirmann (1987).
    """

    margin: float
    about: ClassVar[str] = "equivalence of each drop"
    what: ClassVar[str] = "margin"

    def __post_init__(self) -> None:
        check_unit("margin", self.margin)
        check_unit("power", self.power)
        self.check()
        if abs(self.drop) >= self.margin:
            raise InvalidValue("drop", self.drop, f"a true drop inside the margin, {self.margin}")

    @property
    def asked(self) -> float:
        return self.margin

    def start(self, level: float) -> float:
        z = _upper_z((1.0 - level) / self.conditions) + _upper_z((1.0 - self.power) / 2.0)
        return z**2 * self.discordance / (self.margin - abs(self.drop)) ** 2

    def shares(self, items: int, level: float) -> tuple[float, float]:
        fell, rose = self._counts(items, self.drop, SIMULATED_STUDIES // 2, self.conditions)
        z = np.sort(equivalence_z(fell, rose, items, self.margin), axis=1)[:, ::-1]
        steps = [_upper_z((1.0 - level) / count) for count in range(self.conditions, 0, -1)]
        shown = np.logical_and.accumulate(z > np.array(steps), axis=1)
        return float(shown.mean()), float(shown.all(axis=1).mean())


def equivalence_z(fell: ArrayLike, rose: ArrayLike, pairs: int, margin: float) -> Floats:
    """Return the distance of counts to the ends of ±`margin` as a normal score.

    The upper tail of the score approximates `equivalence_p`. The score is the smallest of those of
    Tango and of Bonett and Price on both sides. `fell` and `rose` are arrays of counts among
    `pairs` pairs.
    """
    b, c = np.asarray(fell, dtype=np.float64), np.asarray(rose, dtype=np.float64)
    centre, wide = (b - c) / (pairs + 2.0), pairs + 2.0
    price = np.sqrt(((b + c + 2.0) / wide - np.square(centre)) / wide)
    tango = [noninferiority_z(x, y, pairs, margin) for x, y in ((b, c), (c, b))]
    sides = [*tango, (margin - centre) / price, (margin + centre) / price]
    return np.asarray(np.minimum.reduce(sides))


def _upper_z(tail: float) -> float:
    """Return the normal score that is exceeded with probability `tail`."""
    return NormalDist().inv_cdf(1.0 - tail)
