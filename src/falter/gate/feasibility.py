"""The number of items that a gate needs where nothing changed, known before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from falter.gate.decision import POWER, CriterionKind, Schedule
from falter.stats.equivalence import noninferiority_p, noninferiority_power
from falter.stats.intervals import normal_quantile

# A gate that fails to pass one time in five although nothing changed is soon loosened by somebody.
PLANNED_POWER = 0.96
"""Probability that the whole gate passes at the planned number of items if nothing changed: 95 %,
and one more for a share of flips that is a little larger than planned."""
EXACT_SUM_MAX_ITEMS = 3_000
"""Beyond so many items the normal approximation is as good as the exact sum."""
MAX_ITEMS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCriterion:
    """A criterion before anything is sent: its number of items and the share of flipped answers.

    `discordance` is the share of items whose outcome is another although nothing changed; of an
    average, `conditions` of them. `score` is the score that is expected, of a criterion about one.
    """

    name: str
    kind: CriterionKind
    margin: float
    items: int
    discordance: float
    source: str
    conditions: int = 1
    score: float | None = None

    @property
    def distance(self) -> float:
        """The distance from the value that is expected to the margin."""
        return self.expected_score - self.margin if self.kind == "score" else self.margin

    @property
    def expected_score(self) -> float:
        return 1.0 if self.score is None else self.score

    @property
    def variance(self) -> float:
        """The variance of one item's number; conditions of one item are correlated by one half."""
        if self.kind == "score":
            return self.expected_score * (1.0 - self.expected_score)
        # All k differences contain the same baseline, so two of them have the correlation ρ = 1/2:
        # the variance of their mean is d (1 + (k − 1) ρ)/k.
        k = self.conditions
        return self.discordance * (1.0 + (k - 1) / 2.0) / k


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionPlan:
    """A criterion's reach: `needed` items for 80 % power, the `best` margin that its items
    can show with it, and the `chance` that it passes where nothing changed.
    """

    criterion: PlannedCriterion
    needed: int | None
    best: float
    chance: float

    @property
    def feasible(self) -> bool:
        """True if the items are enough."""
        return self.needed is not None and self.needed <= self.criterion.items


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """All criteria, and the number of items at which the gate passes 95 % of the time.

    `chance` is at least the chance that all criteria pass with the items there are.
    """

    criteria: tuple[CriterionPlan, ...]
    planned: int | None
    chance: float

    @property
    def refused(self) -> tuple[CriterionPlan, ...]:
        """The criteria that cannot pass, sorted by the items that they need, largest first."""
        refused = [plan for plan in self.criteria if not plan.feasible]
        return tuple(sorted(refused, key=lambda plan: -(plan.needed or MAX_ITEMS)))


def plan_gate(criteria: Sequence[PlannedCriterion], looks: Schedule, *, items: int) -> GatePlan:
    """Plan with so many items where nothing changed: no drop, and answers that flip.

        needed = (z(error) + z(80 %))² d/δ²,  and at least log(error)/log(1 − δ)

    d is the share of answers that flip, δ the margin, and the error that of the last look; with one
    look at 95 % the factor is 6.2. The second number is what an exact limit takes where nothing
    flips. The whole gate is planned for 96 %: each of L criteria may miss with the chance 4 %/L,
    which makes the factor 11.5 for one; chances are exact sums up to 3,000 items.
    """
    error = looks.pass_errors[-1]
    plans = tuple(
        CriterionPlan(
            criterion=each,
            needed=_needed(each, error, POWER),
            best=_best(each, error),
            chance=_chance(each, each.items, error),
        )
        for each in criteria
    )
    chance = max(0.0, 1.0 - sum(1.0 - plan.chance for plan in plans))
    planned = _all_pass(criteria, error, items)
    return GatePlan(criteria=plans, planned=planned, chance=chance)


def _z(error: float) -> float:
    return normal_quantile(1.0 - 2.0 * error)


def _power_z(power: float) -> float:
    return normal_quantile(2.0 * power - 1.0)


def _needed(criterion: PlannedCriterion, error: float, power: float) -> int | None:
    distance = criterion.distance
    if distance <= 0.0:
        return None
    count = (_z(error) + _power_z(power)) ** 2 * criterion.variance / distance**2
    return max(math.ceil(count * (1.0 - 1e-12)), _least_items(criterion.kind, distance, error))


@lru_cache(maxsize=256)
def _least_items(kind: CriterionKind, distance: float, error: float) -> int:
    """Return the number of items below which even a criterion without a flip fails to pass."""
    if distance >= 1.0:
        return 2
    # Without a flip among n items the exact limit x solves (1 − x)^n = error. The test of pairs
    # needs a few more, since its p01 is not known either.
    least = max(2, math.ceil(math.log(error) / math.log1p(-distance)))
    while kind not in ("score", "average") and noninferiority_p(0, 0, least, distance) >= error:
        least += 1
    return least


def _best(criterion: PlannedCriterion, error: float) -> float:
    """The least margin that the items can show with 80 % power; of a score the highest."""
    n = max(1, criterion.items)
    distance = (_z(error) + _power_z(POWER)) * math.sqrt(criterion.variance / n)
    distance = min(1.0, max(distance, 1.0 - math.exp(math.log(error) / n)))
    if criterion.kind == "score":
        return max(0.0, criterion.expected_score - distance)
    return distance


def _chance(criterion: PlannedCriterion, items: int, error: float) -> float:
    """The chance that a criterion passes at the last look; earlier ones only add to it."""
    distance, variance = criterion.distance, criterion.variance
    if distance <= 0.0 or items < _least_items(criterion.kind, distance, error):
        return 0.0
    if variance == 0.0:
        return 1.0
    # Scores and averages are no counts of pairs, so that there is nothing to sum exactly.
    if criterion.kind in ("score", "average") or items > EXACT_SUM_MAX_ITEMS:
        z = distance / math.sqrt(variance / items) - _z(error)
        return math.erfc(-z / math.sqrt(2.0)) / 2.0
    flips = criterion.discordance / 2.0
    return noninferiority_power(items, criterion.margin, fell=flips, rose=flips, error=error)


def _all_pass(criteria: Sequence[PlannedCriterion], error: float, items: int) -> int | None:
    """The least number of items at which all criteria pass with 96 %, each with its share."""
    if not criteria or any(each.distance <= 0.0 or not each.items for each in criteria):
        return None
    shares = [each.items / items for each in criteria]
    miss = (1.0 - PLANNED_POWER) / len(criteria)
    count = max(
        math.ceil((_needed(each, error, 1.0 - miss) or 0) / share)
        for each, share in zip(criteria, shares, strict=True)
    )
    # The formula is only where to start. The exact chance is not monotone in n, so that the search
    # goes up, in steps of 1 %, and does not bisect.
    n = max(2, count)
    while n <= MAX_ITEMS:
        misses = sum(
            1.0 - _chance(each, max(1, math.floor(n * share)), error)
            for each, share in zip(criteria, shares, strict=True)
        )
        if misses <= 1.0 - PLANNED_POWER:
            return n
        n = max(n + 1, math.ceil(1.01 * n))
    return None
