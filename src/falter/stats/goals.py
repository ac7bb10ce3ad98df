"""Planning goals for the precision of drops and brittleness, and for the order of models.

A goal gives `sample_size` the standard error that reaches it, and the variance of its estimate as a
function of the number of items.
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
    """The variance of an estimate as a function of n requested items out of N available ones:

        super-population: sampled/n + fixed/N        finite: sampled/n − items/N

    `sampled` is the variance of one item's number if only some of its cells are requested. `items`
    is the part of it between whole items. `fixed` is a part that only a larger N can lower.
    """

    sampled: float
    items: float
    fixed: float = 0.0


class Goal(Protocol):
    """A goal of `sample_size`.

    `about` names the estimate, `what` the quantity that the goal limits.
    """

    about: ClassVar[str]
    what: ClassVar[str]

    @property
    def spread(self) -> Spread:
        """The variance of the estimate as a function of the requested items."""

    def error(self, level: float) -> float:
        """Return the largest standard error that reaches the goal at this confidence level."""

    def best(self, error: float, level: float) -> float:
        """Return the half-width, margin or gap that a given standard error reaches."""

    def calls(self, items: int, available: int | None) -> int:
        """Return the number of cells to request for `items` items out of `available` ones."""


@dataclass(frozen=True, kw_only=True)
class _HalfWidth:
    """A goal of a two-sided interval of value ± `half_width` at the given level."""

    half_width: float
    about: ClassVar[str] = "value"
    what: ClassVar[str] = "half-width"

    def error(self, level: float) -> float:
        return self.half_width / normal_quantile(level)

    def best(self, error: float, level: float) -> float:
        return error * normal_quantile(level)


@dataclass(frozen=True, kw_only=True)
class Drops:
    """Paired drops of 0/1 scores under each of `conditions`, all on the requested items."""

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
            # d = 2 p (1 − p)(1 − φ), so a larger d would need a correlation φ of baseline and
            # condition below −1.
            if self.discordance > 4.0 * self.accuracy * (1.0 - self.accuracy):
                expected = f"at most 4 p (1 - p) at accuracy {self.accuracy}"
                raise InvalidValue("discordance", self.discordance, expected)

    @property
    def spread(self) -> Spread:
        whole = self.discordance - self.drop**2
        if self.accuracy is None:
            return Spread(sampled=whole, items=whole)
        # 2 p (1 − p)(1 − φ) becomes p (1 − p)(1 − φ²): the part that the baseline predicts is
        # subtracted.
        factor = 1.0 - self.discordance / (4.0 * self.accuracy * (1.0 - self.accuracy))
        within = min(whole, self.discordance * factor)
        # The part that the baseline predicts still varies from one set of N items to another.
        return Spread(sampled=within, items=within, fixed=whole - within)

    def calls(self, items: int, available: int | None) -> int:
        # Post-stratification needs the baseline of all available items, not only of the requested
        # ones.
        baseline = items if self.accuracy is None or available is None else available
        return baseline + items * self.conditions


@dataclass(frozen=True, kw_only=True)
class DropPrecision(_HalfWidth, Drops):
    """Each of `conditions` drops within ±`half_width`, by simultaneous intervals.

        half-width = c_K se, with c_K from `simultaneous_quantile`
        variance of an item's difference: discordance − drop²
        post-stratified: discordance (1 − discordance/(4 p (1 − p)))

    `discordance` is the share of items whose outcome the perturbation changes. If the `accuracy` p
    is given, the baseline is requested for all available items, and the drop is post-stratified on
    it. The variance is then proportional to 1 − φ² instead of 2 (1 − φ), φ being the correlation of
    both.
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
    """Return c_K: the half-width of one of K simultaneous intervals in standard errors.

        (2Φ(c) − 1)^K = `recipe_level`(level)

    This assumes recipes with independent errors. For correlated errors, `max_t` has narrower
    intervals.
    """
    return normal_quantile(recipe_level(level) ** (1.0 / recipes))


@dataclass(frozen=True, kw_only=True)
class _MeanOverConditions:
    """The mean difference of an item over `per_item` of `conditions` conditions.

        variance of an item's mean difference over k conditions: discordance (ρ + (1 − ρ)/k)

    `discordance` is the average over conditions. `correlation` ρ is the correlation of two
    conditions' differences on one item.
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
    """The average of `conditions` drops within ±`half_width`, from `per_item` random ones per item.

        variance of an item's mean difference: discordance (ρ + (1 − ρ)/k), k perturbations

    Every item also has the baseline. `discordance` is the average over perturbations. `correlation`
    ρ is the correlation of two perturbations' differences from the baseline on one item. It is 1/2
    if the baseline is like any other condition, since both differences contain it.
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

    This is the linear influence of an item with k of its J conditions requested. y_i is its share
    of right answers, and v_i = (J − 1)/J · k y_i (k − k y_i)/(k (k − 1)) its U-statistic. The
    number of right answers is taken as beta-binomial with mean `accuracy` p and correlation 1 − B
    J/(J − 1). This correlation gives the brittleness B. `conditions` includes the baseline, and
    `accuracy` is the mean over all of them.
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
        """Return the variance of the influence of an item with k requested cells."""
        p, share = self.accuracy, 1.0 - 1.0 / self.conditions
        right = np.arange(k + 1.0)
        chance = _beta_binomial_probabilities(k, p, max(0.0, 1.0 - self.brittleness / share))
        v = share * right * (k - right) / (k * (k - 1.0))
        # The denominator p (1 − p) is estimated from the same items; its derivative is 1 − 2p.
        influence = v - self.brittleness * (1.0 - 2.0 * p) * right / k
        variance = float(chance @ influence**2 - (chance @ influence) ** 2)
        return max(0.0, variance) / (p * (1.0 - p)) ** 2


@dataclass(frozen=True, kw_only=True)
class RankingPower(_MeanOverConditions):
    """The probability `power` that `models` models, each `gap` above the next, come out in order.

        se = gap/z(1 − (1 − power)/(models − 1)), so that each neighbouring pair may fail with
        (1 − power)/(models − 1)

    All models answer the same `per_item` of `conditions` conditions per item. `discordance` is the
    share of cells in which two neighbours differ. `correlation` is the correlation of their
    differences in two conditions of an item.
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
        # Only one tail puts a pair into the wrong order, and `normal_quantile` is two-sided.
        return normal_quantile(1.0 - 2.0 * (1.0 - self.power) / (self.models - 1))


def _beta_binomial_probabilities(trials: int, share: float, correlation: float) -> Floats:
    """Return the probabilities of c = 0 … n successes in n trials with a correlation ρ from 0 to 1.

        (n over c) Π_{i<c} (s(1 − ρ) + iρ) Π_{i<n−c} ((1 − s)(1 − ρ) + iρ) / Π_{i<n} (1 − ρ + iρ)

    This is Pólya's urn with the share s. Unlike a formula with gamma functions it also takes ρ = 0
    and ρ = 1.
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
    """Raise InvalidValue unless a share lies between 0 and 1; `ends` also allows 0 and 1."""
    if not (0.0 <= value <= 1.0 if ends else 0.0 < value < 1.0):
        raise InvalidValue(name, value, "a share between 0 and 1", hint="2 points are 0.02")
