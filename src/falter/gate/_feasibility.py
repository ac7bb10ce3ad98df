"""Can a gate decide? How many items it needs where nothing changed, before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from falter.gate._lines import LineKind
from falter.gate._schedule import Schedule
from falter.stats import noninferiority_p, noninferiority_power, normal_quantile

__all__ = ["GatePlan", "LinePlan", "PlannedLine", "plan_gate"]

LEAST_POWER = 0.8
"""A line that passes less often than this where nothing changed is refused."""
PLANNED_POWER = 0.96
"""How often the whole gate is to pass at the planned number of items where nothing changed: 95 %,
and one more for a share of flips that is a little larger than planned."""
WIDER = 1.55
"""How much wider a confidence sequence is than the interval of one look."""
LARGE = 3_000
"""Beyond so many items the normal approximation is as good as the exact sum."""
MOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLine:
    """A line before it is asked: how many of the items it has, and how many answers flip.

    `discordance` is the share of items whose outcome is another although nothing changed; of an
    average, `conditions` of them. `score` is the score that is expected, where the line is one.
    """

    name: str
    kind: LineKind
    margin: float
    items: int
    discordance: float
    source: str
    conditions: int = 1
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlan:
    """What a line can decide: `needed` items for 80 % power, the `best` margin that `line.items`
    can show with it, and the `chance` that it passes where nothing changed.
    """

    line: PlannedLine
    needed: int | None
    best: float
    chance: float

    @property
    def feasible(self) -> bool:
        """Whether the items are enough."""
        return self.needed is not None and self.needed <= self.line.items


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """All lines, the items there are, and the number at which the gate passes 95 % of the time.

    `chance` is at least the chance that all lines pass with the items there are.
    """

    lines: tuple[LinePlan, ...]
    items: int
    planned: int | None
    chance: float

    @property
    def refused(self) -> tuple[LinePlan, ...]:
        """The lines that cannot pass, the one that needs most first."""
        lines = [line for line in self.lines if not line.feasible]
        return tuple(sorted(lines, key=lambda line: -(line.needed or MOST)))


def plan_gate(lines: Sequence[PlannedLine], looks: Schedule, *, items: int) -> GatePlan:
    """What can be decided with so many items where nothing changed: no drop, and answers that flip.

        needed = (z(error) + z(80 %))² d/δ²,  and at least log(error)/log(1 − δ)

    d is the share of answers that flip, δ the margin, and the error that of the last look; with one
    look at 95 % the factor is 6.2. The second number is what an exact limit takes where nothing
    flips. The whole gate is planned for 96 %: each of L lines may miss with the chance 4 %/L, which
    makes the factor 11.5 for one line; chances are exact sums up to 3,000 items.
    """
    plans = tuple(_planned(line, looks) for line in lines)
    chance = max(0.0, 1.0 - sum(1.0 - plan.chance for plan in plans))
    return GatePlan(lines=plans, items=items, planned=_all_pass(lines, looks, items), chance=chance)


def _planned(line: PlannedLine, looks: Schedule) -> LinePlan:
    return LinePlan(
        line=line,
        needed=_needed(line, looks, LEAST_POWER),
        best=_best(line, looks),
        chance=_chance(line, line.items, looks),
    )


def _variance(line: PlannedLine) -> float:
    """Of one item's number; conditions of one item hang together by one half."""
    if line.kind == "score":
        return 0.0 if line.score is None else line.score * (1.0 - line.score)
    k = line.conditions
    return line.discordance * (1.0 + (k - 1) / 2.0) / k


def _room(line: PlannedLine) -> float:
    """How far what is expected lies from the margin."""
    if line.kind == "score":
        return (1.0 if line.score is None else line.score) - line.margin
    return line.margin


def _z(looks: Schedule) -> float:
    z = normal_quantile(1.0 - 2.0 * looks.pass_errors[-1])
    return WIDER * z if looks.anytime else z


def _power_z(power: float) -> float:
    return normal_quantile(2.0 * power - 1.0)


def _needed(line: PlannedLine, looks: Schedule, power: float) -> int | None:
    room = _room(line)
    if room <= 0.0:
        return None
    count = (_z(looks) + _power_z(power)) ** 2 * _variance(line) / room**2
    return max(math.ceil(count * (1.0 - 1e-12)), _least_items(line.kind, room, looks))


@lru_cache(maxsize=256)
def _least_items(kind: LineKind, room: float, looks: Schedule) -> int:
    """With fewer, not even a line without a single flip would pass."""
    if looks.anytime:  # the bounded sequence: log(2/error) over bets of one half, of a width of 2
        return math.ceil(8.0 * math.log(4.0 / looks.pass_errors[-1]) / room)
    if room >= 1.0:
        return 2
    error = looks.pass_errors[-1]
    least = max(2, math.ceil(math.log(error) / math.log1p(-room)))
    while kind not in ("score", "average") and noninferiority_p(0, 0, least, room) >= error:
        least += 1
    return least


def _best(line: PlannedLine, looks: Schedule) -> float:
    """The least margin that the items can show with 80 % power; of a score the highest."""
    n = max(1, line.items)
    room = (_z(looks) + _power_z(LEAST_POWER)) * math.sqrt(_variance(line) / n)
    error = looks.pass_errors[-1]
    none = 8.0 * math.log(4.0 / error) / n if looks.anytime else 1.0 - math.exp(math.log(error) / n)
    room = min(1.0, max(room, none))
    if line.kind == "score":
        return max(0.0, (1.0 if line.score is None else line.score) - room)
    return room


def _chance(line: PlannedLine, items: int, looks: Schedule) -> float:
    """The chance that a line passes at the last look; earlier ones only add to it."""
    room, variance = _room(line), _variance(line)
    if room <= 0.0 or items < _least_items(line.kind, room, looks):
        return 0.0
    if variance == 0.0:
        return 1.0
    if line.kind in ("score", "average") or looks.anytime or items > LARGE:
        z = room / math.sqrt(variance / items) - _z(looks)
        return math.erfc(-z / math.sqrt(2.0)) / 2.0
    flips = line.discordance / 2.0
    return noninferiority_power(
        items, line.margin, fell=flips, rose=flips, error=looks.pass_errors[-1]
    )


def _all_pass(lines: Sequence[PlannedLine], looks: Schedule, items: int) -> int | None:
    """The least number of items at which all lines pass with 96 %, where they have their share."""
    if not lines or any(_room(line) <= 0.0 or not line.items for line in lines):
        return None
    shares = [line.items / items for line in lines]
    miss = (1.0 - PLANNED_POWER) / len(lines)
    starts = [_needed(line, looks, 1.0 - miss) or 0 for line in lines]
    count = max(math.ceil(n / share) for n, share in zip(starts, shares, strict=True))

    def misses(n: int) -> float:
        return sum(
            1.0 - _chance(line, max(1, math.floor(n * share)), looks)
            for line, share in zip(lines, shares, strict=True)
        )

    return _first(lambda n: misses(n) <= 1.0 - PLANNED_POWER, count)


def _first(holds: Callable[[int], bool], start: int) -> int | None:
    """The first of start, 1 % more, and so on, at which it holds."""
    n = max(2, start)
    while n <= MOST:
        if holds(n):
            return n
        n = max(n + 1, math.ceil(1.01 * n))
    return None
