"""The number of items that a gate needs if nothing changed, computed before anything is sent."""

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
"""Probability that the whole gate passes at the planned number of items if nothing changed.

One point above 95 %, in case the share of flips is a little larger than planned.
"""
EXACT_SUM_MAX_ITEMS = 3_000
"""Largest number of items with exact sums; above it, the normal approximation is as accurate."""
MAX_ITEMS = 10_000_000
"""Number of items at which the search for a planned number of items gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCriterion:
    """A criterion before anything is sent: its number of items and its share of flipped responses.

    - `discordance` is the share of items whose outcome flips although nothing changed. An average
      has this share in each of its `conditions`.
    - `source` says in words where that share is known from.
    - `score` is the expected score of a criterion of the kind `score`; None counts as 1.
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
        """The expected score's distance to the margin; for other kinds, the margin itself."""
        return self.expected_score - self.margin if self.kind == "score" else self.margin

    @property
    def expected_score(self) -> float:
        """The expected score; 1.0 if no score is known."""
        return 1.0 if self.score is None else self.score

    @property
    def variance(self) -> float:
        """The variance of one item's value; the conditions of an item correlate with ρ = 1/2."""
        if self.kind == "score":
            return self.expected_score * (1.0 - self.expected_score)
        # All k differences contain the same baseline, so two of them have the correlation ρ = 1/2:
        # the variance of their mean is d (1 + (k − 1) ρ)/k.
        k = self.conditions
        return self.discordance * (1.0 + (k - 1) / 2.0) / k


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionPlan:
    """A planned criterion with the result that its items allow.

    - `needed` is the number of items for 80 % power, or None if no number is enough.
    - `best` is the smallest margin that the present items can show with 80 % power. For a score it
      is the highest margin.
    - `chance` is the probability that the criterion passes if nothing changed.
    """

    criterion: PlannedCriterion
    needed: int | None
    best: float
    chance: float

    @property
    def feasible(self) -> bool:
        """True if there are at least as many items as the criterion needs."""
        return self.needed is not None and self.needed <= self.criterion.items


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """All planned criteria, and the number of items that the whole gate needs.

    - `planned` is the smallest number of items at which the gate passes with `PLANNED_POWER` if
      nothing changed, or None if there is none.
    - `chance` is a lower bound of the probability that all criteria pass with the present items.
    """

    criteria: tuple[CriterionPlan, ...]
    planned: int | None
    chance: float

    @property
    def refused(self) -> tuple[CriterionPlan, ...]:
        """The criteria with too few items, sorted by the items that they need, most first."""
        refused = [plan for plan in self.criteria if not plan.feasible]
        return tuple(sorted(refused, key=lambda plan: -(plan.needed or MAX_ITEMS)))


def plan_gate(criteria: Sequence[PlannedCriterion], schedule: Schedule, *, items: int) -> GatePlan:
    """Plan a gate with `items` items, assuming no drop and responses that flip by chance.

        needed = (z(error) + z(80 %))² d/δ²,  and at least log(error)/log(1 − δ)

    Here d is the share of responses that flip, δ the margin, and `error` the one-sided error of the
    last interim analysis. With a single analysis at 95 % the factor is 6.2. The second number is
    the minimum of an exact limit if nothing flips.

    The whole gate is planned for 96 %: each of L criteria may miss with a probability of 4 %/L. For
    one criterion the factor is then 11.5. Probabilities are exact sums up to `EXACT_SUM_MAX_ITEMS`
    items.
    """
    error = schedule.pass_errors[-1]
    plans = tuple(
        CriterionPlan(
            criterion=each,
            needed=_items_needed(each, error, POWER),
            best=_best_margin(each, error),
            chance=_pass_chance(each, each.items, error),
        )
        for each in criteria
    )
    chance = max(0.0, 1.0 - sum(1.0 - plan.chance for plan in plans))
    planned = _items_for_all(criteria, error, items)
    return GatePlan(criteria=plans, planned=planned, chance=chance)


def _z(error: float) -> float:
    """Return the standard normal quantile with the upper tail `error`."""
    return normal_quantile(1.0 - 2.0 * error)


def _power_z(power: float) -> float:
    """Return the standard normal quantile of `power`."""
    return normal_quantile(2.0 * power - 1.0)


def _items_needed(criterion: PlannedCriterion, error: float, power: float) -> int | None:
    """Return the number of items for a power, or None if the expected value misses the margin."""
    distance = criterion.distance
    if distance <= 0.0:
        return None
    count = (_z(error) + _power_z(power)) ** 2 * criterion.variance / distance**2
    return max(math.ceil(count * (1.0 - 1e-12)), _min_items(criterion.kind, distance, error))


@lru_cache(maxsize=256)
def _min_items(kind: CriterionKind, distance: float, error: float) -> int:
    """Return the smallest number of items at which a criterion without any flip passes."""
    if distance >= 1.0:
        return 2
    # Without a flip among n items the exact limit x solves (1 − x)^n = error. The test of pairs
    # needs a few more items, because its nuisance parameter p01 is unknown too.
    count = max(2, math.ceil(math.log(error) / math.log1p(-distance)))
    while kind not in ("score", "average") and noninferiority_p(0, 0, count, distance) >= error:
        count += 1
    return count


def _best_margin(criterion: PlannedCriterion, error: float) -> float:
    """Return the smallest margin (of a score: the highest) that the items show with 80 % power."""
    n = max(1, criterion.items)
    distance = (_z(error) + _power_z(POWER)) * math.sqrt(criterion.variance / n)
    # Without a flip among n items the exact limit is 1 − error^(1/n): no margin below is possible.
    distance = min(1.0, max(distance, 1.0 - math.exp(math.log(error) / n)))
    if criterion.kind == "score":
        return max(0.0, criterion.expected_score - distance)
    return distance


def _pass_chance(criterion: PlannedCriterion, items: int, error: float) -> float:
    """Return the probability of a pass at the last interim analysis.

    The earlier analyses can only add to it.
    """
    distance, variance = criterion.distance, criterion.variance
    if distance <= 0.0 or items < _min_items(criterion.kind, distance, error):
        return 0.0
    if variance == 0.0:
        return 1.0
    # Scores and averages are not counts of pairs, so they have no exact sum.
    if criterion.kind in ("score", "average") or items > EXACT_SUM_MAX_ITEMS:
        z = distance / math.sqrt(variance / items) - _z(error)
        return math.erfc(-z / math.sqrt(2.0)) / 2.0
    flips = criterion.discordance / 2.0
    return noninferiority_power(items, criterion.margin, p_fall=flips, p_rise=flips, error=error)


def _items_for_all(criteria: Sequence[PlannedCriterion], error: float, items: int) -> int | None:
    """Return the smallest number of items at which all criteria pass with `PLANNED_POWER`.

    Each criterion keeps its share of the items. The result is None if no number up to `MAX_ITEMS`
    is enough.
    """
    if not criteria or any(each.distance <= 0.0 or not each.items for each in criteria):
        return None
    shares = [each.items / items for each in criteria]
    allowed_miss = (1.0 - PLANNED_POWER) / len(criteria)
    count = max(
        math.ceil((_items_needed(each, error, 1.0 - allowed_miss) or 0) / share)
        for each, share in zip(criteria, shares, strict=True)
    )
    # The formula is only the start of the search. The exact probability is not monotone in n, so
    # the search does not bisect: it moves up in steps of 1 %.
    n = max(2, count)
    while n <= MAX_ITEMS:
        misses = sum(
            1.0 - _pass_chance(each, max(1, math.floor(n * share)), error)
            for each, share in zip(criteria, shares, strict=True)
        )
        if misses <= 1.0 - PLANNED_POWER:
            return n
        n = max(n + 1, math.ceil(1.01 * n))
    return None
