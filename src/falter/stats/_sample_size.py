"""How many items an answer needs, or that the available items cannot give it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._goals import Goal
from falter.stats._interval import check_level
from falter.stats._target import Target, check_target, estimand

__all__ = ["SampleSize", "cheapest_design", "sample_size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSize:
    """How many items: `value`, None if those available are not enough.

    `needed` is what it would take if there were more (None: no number of items is enough), `calls`
    the cells to ask with `value` items, `best` the half-width, margin or gap (`what`) that all
    available items give.
    """

    value: int | None
    status: EstimateStatus
    attainable: bool
    needed: int | None
    calls: int | None
    available: int | None
    what: str
    asked: float
    best: float | None
    level: float
    target: Target
    estimand: str

    @property
    def outcome(self) -> str:
        """The answer as a sentence."""
        if self.status == "undefined_zero_variance":
            return "undefined: the assumed outcomes do not vary"
        if self.attainable:
            of = "" if self.available is None else f" of {self.available}"
            return f"attainable with {self.value}{of} items"
        best = "" if self.best is None else f"; their best {self.what} is {self.best:.4f}"
        return f"not attainable with {self.available} items{best}"


def sample_size(
    goal: Goal,
    *,
    available: int | None = None,
    target: Target = "super-population",
    level: float = 0.95,
) -> SampleSize:
    """The least n at which the goal's standard error is reached.

        super-population: n = n0 = v/se²        finite: n = n0/(1 + n0/N)

    with v the variance of one item's number and se the standard error that the goal needs. Finite
    is about exactly the N `available` items, so all of them are always enough if every cell of an
    item is asked. Otherwise the part of the variance that comes from asking some cells of an item
    stays, and only the part between items has the finite correction. `level` is the interval's; for
    `EquivalencePower` it is 1 - alpha of each of the two tests.

    Normal approximation: below some 20 items that change, plan more. Source: Cochran (1977).
    """
    _check(goal, available, target, level)
    spread, error = goal.spread, goal.error(level)
    # The part of the variance that asking more of the available items does not change.
    constant = 0.0
    if available is not None:
        constant = (spread.fixed if target == "super-population" else -spread.items) / available
    least = _least_items(spread.sampled, error**2 - constant)
    varies = spread.sampled > 0.0
    attainable = varies and least is not None and (available is None or least <= available)
    value = least if attainable else None
    needed = value
    if varies and not attainable and target == "super-population":
        needed = _least_items(spread.sampled + spread.fixed, error**2)
    best = None
    if available is not None and varies:
        error_of_all = math.sqrt(max(0.0, spread.sampled / available + constant))
        best = goal.best(error_of_all, level)
    status: EstimateStatus = "ok" if attainable else "insufficient_data"
    return SampleSize(
        value=value,
        status=status if varies else "undefined_zero_variance",
        attainable=attainable,
        needed=needed,
        calls=None if value is None else goal.calls(value, available),
        available=available,
        what=goal.what,
        asked=goal.asked,
        best=best,
        level=level,
        target=target,
        estimand=estimand(goal.about, target, available),
    )


def cheapest_design(
    goals: Iterable[Goal],
    *,
    available: int | None = None,
    target: Target = "super-population",
    level: float = 0.95,
) -> tuple[Goal, SampleSize]:
    """Of goals that differ in their design, as `per_item`, the one that asks the fewest cells.

    If none is attainable, the one that comes closest with all available items.
    """
    sizes = [(g, sample_size(g, available=available, target=target, level=level)) for g in goals]
    if not sizes:
        raise InvalidValue("goals", sizes, "one goal or more")

    def cost(design: tuple[Goal, SampleSize]) -> tuple[bool, float]:
        _, size = design
        if size.calls is not None:
            return False, size.calls
        return True, math.inf if size.best is None else size.best

    return min(sizes, key=cost)


def _least_items(sampled: float, allowed: float) -> int | None:
    """The least n with sampled/n <= allowed, two at least; None where no number is enough."""
    if allowed <= 0.0:
        return None
    # Rounding must not make a whole number of items one more.
    return max(2, math.ceil(sampled / allowed * (1.0 - 1e-12)))


def _check(goal: Goal, available: int | None, target: str, level: float) -> None:
    check_level(level)
    check_target(target)
    if available is not None and available < 2:
        raise InvalidValue("available", available, "two items or more, or None for no limit")
    if available is None and target == "finite":
        raise InvalidValue("available", available, "the number of items of a finite target")
    if available is None and goal.spread.fixed > 0.0:
        raise InvalidValue("available", available, "the number of items with a baseline")
