"""Goals of a plan about precision, and about the order of models.

A goal gives `sample_size` the standard error that reaches it, and how the variance of its estimate
falls with the items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import InvalidValue
from falter.stats.intervals import normal_quantile
from falter.stats.multiplicity import recipe_level

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The variance of an estimate as a function of the n items asked of the N there are:

        super-population: sampled/n + fixed/N        finite: sampled/n − items/N

    `sampled` is the variance of one item's number when only some of its cells are asked, `items`
    the part of it between whole items, `fixed` what only a larger N can lower.
    """

    sampled: float
    items: float
    fixed: float = 0.0


class Goal(Protocol):
    """A goal of `sample_size`."""

    about: ClassVar[str]
    what: ClassVar[str]

    @property
    def spread(self) -> Spread:
        """The variance of its estimate as a function of the items asked."""

    def error(self, level: float) -> float:
        """The standard error that is needed."""

    def best(self, error: float, level: float) -> float:
        """The half-width, margin or gap that a standard error can give."""

    def calls(self, items: int, available: int | None) -> int:
        """The number of cells to ask with so many items."""


@dataclass(frozen=True, kw_only=True)
class _HalfWidth:
    """An interval of value ± `half_width` at the level."""

    half_width: float
    about: ClassVar[str] = "value"
    what: ClassVar[str] = "half-width"

    def error(self, level: float) -> float:
        return self.half_width / normal_quantile(level)

    def best(self, error: float, level: float) -> float:
        return error * normal_quantile(level)


@dataclass(frozen=True, kw_only=True)
class Drops:
    """Paired drops of 0/1 scores, one for each of `conditions`, every one on all items asked."""

    discordance: float
    drop: float = 0.0
    accuracy: float | None = None
    conditions: int = 1

    def check(self) -> None:
        check_unit("discordance", self.discordance, ends=True)
        _check_count("conditions", self.conditions, 1)
        if abs(self.drop) > self.discordance:
            expected = f"at most the discordance, {self.discordance}, either way"
            raise InvalidValue("drop", self.drop, expected)
        if self.accuracy is not None:
            check_unit("accuracy", self.accuracy)
            # With d = 2 p (1 − p)(1 − φ), more would need a correlation φ of baseline and condition
            # below −1.
            if self.discordance > 4.0 * self.accuracy * (1.0 - self.accuracy):
                expected = f"at most 4 p (1 - p) at accuracy {self.accuracy}"
                raise InvalidValue("discordance", self.discordance, expected)

    @property
    def spread(self) -> Spread:
        whole = self.discordance - self.drop**2
        if self.accuracy is None:
            return Spread(sampled=whole, items=whole)
        # 2 p (1 − p)(1 − φ) becomes p (1 − p)(1 − φ²): what the baseline predicts is taken off.
        factor = 1.0 - self.discordance / (4.0 * self.accuracy * (1.0 - self.accuracy))
        within = min(whole, self.discordance * factor)
        # The part that the baseline predicts still varies from one set of N items to another.
        return Spread(sampled=within, items=within, fixed=whole - within)

    def calls(self, items: int, available: int | None) -> int:
        # Post-stratification needs the baseline of every available item, not only of those asked.
        baseline = items if self.accuracy is None or available is None else available
        return baseline + items * self.conditions


@dataclass(frozen=True, kw_only=True)
class DropPrecision(_HalfWidth, Drops):
    """Each of `conditions` drops within ±`half_width`, all intervals holding at once.

        half-width = c_K se, c_K the 1 − α quantile of the largest of K independent |z|
        variance of an item's difference: discordance − drop²
        post-stratified: discordance (1 − discordance/(4 p (1 − p)))

    `discordance` is the share of items whose outcome the perturbation changes. With `accuracy` p,
    the baseline is asked on all items and the drop is post-stratified on it, which costs 1 − φ²
    instead of 2 (1 − φ).
    """

    about: ClassVar[str] = "each drop"

    def __post_init__(self) -> None:
        check_unit("half_width", self.half_width)
        self.check()

    def error(self, level: float) -> float:
        return self.half_width / simultaneous_quantile(self.conditions, level)

    def best(self, error: float, level: float) -> float:
        return error * simultaneous_quantile(self.conditions, level)


def simultaneous_quantile(recipes: int, level: float) -> float:
    """Return c_K: how many standard errors the interval of one of K recipes spans on each side.

        (2Φ(c) − 1)^K = `recipe_level`(level)

    for recipes whose errors are independent; `max_t` has narrower intervals for recipes whose
    errors hang together.
    """
    return normal_quantile(recipe_level(level) ** (1.0 / recipes))


@dataclass(frozen=True, kw_only=True)
class _MeanOverConditions:
    """Mean differences of items over `per_item` of `conditions` conditions.

        variance of an item's mean difference over k conditions: discordance (ρ + (1 − ρ)/k)

    `discordance` is the average one; `correlation` ρ is that of two conditions' differences on one
    item.
    """

    discordance: float
    conditions: int
    per_item: int
    correlation: float = 0.5

    def check(self) -> None:
        check_unit("discordance", self.discordance, ends=True)
        check_unit("correlation", self.correlation, ends=True)
        _check_count("per_item", self.per_item, 1, self.conditions)

    @property
    def spread(self) -> Spread:
        rho = self.correlation
        sampled, items = (
            self.discordance * (rho + (1.0 - rho) / k) for k in (self.per_item, self.conditions)
        )
        return Spread(sampled=sampled, items=items)


@dataclass(frozen=True, kw_only=True)
class MicroPrecision(_HalfWidth, _MeanOverConditions):
    """The average of `conditions` drops within ±`half_width`, from the baseline and `per_item`
    random perturbations per item.

        variance of an item's mean difference: discordance (ρ + (1 − ρ)/k), k perturbations

    `discordance` is the average one; `correlation` ρ is that of two perturbations' differences from
    the baseline on one item. It is 1/2 where the baseline is like any other condition, since both
    contain it.
    """

    about: ClassVar[str] = "micro-average drop"

    def __post_init__(self) -> None:
        check_unit("half_width", self.half_width)
        self.check()

    def calls(self, items: int, available: int | None) -> int:
        return items * (self.per_item + 1)


@dataclass(frozen=True, kw_only=True)
class BrittlenessPrecision(_HalfWidth):
    """Brittleness within ±`half_width`, from `per_item` of `conditions` conditions per item.

        the variance is that of (v_i − B (1 − 2p) y_i)/(p (1 − p))

    the linear influence of an item with k of its J conditions asked, its share y_i right and its
    U-statistic v_i = (J − 1)/J · k y_i (k − k y_i)/(k (k − 1)). The number of right answers is
    taken as beta-binomial with the `accuracy` p and the correlation 1 − B J/(J − 1), which gives
    the brittleness B. `conditions` includes the baseline, `accuracy` is the mean over all of them.
    """

    brittleness: float
    accuracy: float
    conditions: int
    per_item: int
    about: ClassVar[str] = "brittleness"

    def __post_init__(self) -> None:
        check_unit("half_width", self.half_width)
        check_unit("accuracy", self.accuracy)
        _check_count("per_item", self.per_item, 2, self.conditions)
        most = 1.0 - 1.0 / self.conditions
        if not 0.0 < self.brittleness <= most:
            expected = f"above 0 and at most 1 - 1/conditions, {most:.4g}"
            raise InvalidValue("brittleness", self.brittleness, expected)

    @property
    def spread(self) -> Spread:
        return Spread(
            sampled=self._influence(self.per_item), items=self._influence(self.conditions)
        )

    def calls(self, items: int, available: int | None) -> int:
        return items * self.per_item

    def _influence(self, k: int) -> float:
        """The variance of the influence of an item of which k cells are asked."""
        p, share = self.accuracy, 1.0 - 1.0 / self.conditions
        right = np.arange(k + 1.0)
        chance = _beta_binomial(k, p, max(0.0, 1.0 - self.brittleness / share))
        v = share * right * (k - right) / (k * (k - 1.0))
        # The denominator p (1 − p) is estimated from the same items; its derivative is 1 − 2p.
        influence = v - self.brittleness * (1.0 - 2.0 * p) * right / k
        variance = float(chance @ influence**2 - (chance @ influence) ** 2)
        return max(0.0, variance) / (p * (1.0 - p)) ** 2


@dataclass(frozen=True, kw_only=True)
class RankingPower(_MeanOverConditions):
    """The chance `power` that `models` models whose neighbours lie `gap` apart come out in order.

        se = gap/z(1 − (1 − power)/(models − 1)), so that each neighbouring pair may fail with
        (1 − power)/(models − 1)

    All are asked the same `per_item` of `conditions` conditions per item. `discordance` is the
    share of cells in which two neighbours differ, `correlation` that of their difference between
    two conditions of an item.
    """

    gap: float
    models: int = 2
    power: float = 0.95
    about: ClassVar[str] = "order of the models' accuracies"
    what: ClassVar[str] = "gap"

    def __post_init__(self) -> None:
        check_unit("gap", self.gap)
        self.check()
        if not 0.5 < self.power < 1.0:
            raise InvalidValue("power", self.power, "a chance above 0.5, below 1")
        _check_count("models", self.models, 2)

    def error(self, level: float) -> float:
        return self.gap / self._quantile

    def best(self, error: float, level: float) -> float:
        return error * self._quantile

    def calls(self, items: int, available: int | None) -> int:
        return items * self.per_item * self.models

    @property
    def _quantile(self) -> float:
        # A pair comes out in the wrong order on one side only, and `normal_quantile` has two.
        return normal_quantile(1.0 - 2.0 * (1.0 - self.power) / (self.models - 1))


def _beta_binomial(trials: int, share: float, correlation: float) -> Floats:
    """The chance of c = 0 … n successes in n trials with a correlation ρ from 0 to 1.

        (n over c) Π_{i<c} (s(1 − ρ) + iρ) Π_{i<n−c} ((1 − s)(1 − ρ) + iρ) / Π_{i<n} (1 − ρ + iρ)

    Pólya's urn with the share s: unlike gamma functions, it takes ρ = 0 and ρ = 1 too.
    """
    steps = np.arange(trials) * correlation
    # Entry c is the product over c successes; `wrong`, reversed, has the other n − c failures.
    right = np.concatenate(([1.0], np.cumprod(share * (1.0 - correlation) + steps)))
    wrong = np.concatenate(([1.0], np.cumprod((1.0 - share) * (1.0 - correlation) + steps)))
    ways = np.array([math.comb(trials, k) for k in range(trials + 1)], dtype=np.float64)
    return np.asarray(ways * right * wrong[::-1] / np.prod(1.0 - correlation + steps))


def _check_count(name: str, count: int, least: int, most: int | None = None) -> None:
    if count < least or (most is not None and count > most):
        expected = f"{least} or more" if most is None else f"{least} to conditions, {most}"
        raise InvalidValue(name, count, expected)


def check_unit(name: str, value: float, *, ends: bool = False) -> None:
    """Refuse a share that is not between 0 and 1; with `ends`, 0 and 1 themselves are allowed."""
    if not (0.0 <= value <= 1.0 if ends else 0.0 < value < 1.0):
        raise InvalidValue(name, value, "a share between 0 and 1", hint="2 points are 0.02")
