"""Numbers of items, conditions and requests that a planning goal needs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from falter.records.errors import InvalidValue, nearest
from falter.records.types import EstimateStatus
from falter.stats.goals import Goal, Spread
from falter.stats.intervals import check_level
from falter.stats.verdict_goals import VerdictGoal

Target = Literal["finite", "super-population"]
AnyGoal = Goal | VerdictGoal


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSize:
    """The number of items for a goal. `value` is None if the available items are not enough.

    `needed` is the number without the limit of available items; None if no number is enough, or if
    a finite population is too small. `calls` is the number of cells to request with `value` items.
    `best` is the half-width, margin or gap (named by `what`) that all available items reach; None
    without a limit.

    For simulated goals, `chance` is the share of studies in which the needed items reach the goal.
    `all_at_once` is the share in which every recipe reaches it. Both are None if not simulated.
    """

    value: int | None
    status: EstimateStatus
    attainable: bool
    needed: int | None
    calls: int | None
    available: int | None
    what: str
    best: float | None
    level: float
    estimand: str
    chance: float | None = None
    all_at_once: float | None = None


def sample_size(
    goal: AnyGoal,
    *,
    available: int | None = None,
    target: Target = "super-population",
    level: float = 0.95,
    design_effect: float = 1.0,
) -> SampleSize:
    """Return the smallest n that reaches the goal's standard error, or its probability.

        super-population: n = n0 = v/se²        finite: n = n0/(1 + n0/N)

    v is the variance of one item's number, and se the standard error that the goal needs. At least
    two items are returned.

    Parameters
    ----------
    goal : a goal of precision or order, or a `VerdictGoal`
    available : the number N of available items; None for no limit
    target : "super-population" or "finite"
        "finite" is about exactly the N available items. If every cell of an item is requested, they
        are always enough. Otherwise only the variance between items has the finite correction.
    level : the level of the panel; single recipes then have `recipe_level`
    design_effect : factor 1 + (m − 1)ρ for clusters of m items that are correlated by ρ
        It applies to a super-population. A finite target ignores it.

    Notes
    -----
    `DropDetection` and `EquivalencePower` are simulated for a super-population, and a finite target
    is refused. All other goals use a normal approximation. If fewer than about 20 items will
    change, plan more items.

    References
    ----------
    Cochran (1977).
    """
    check_level(level)
    known = get_args(Target)
    if target not in known:
        close = nearest(target, known)
        hint = f"did you mean {close!r}?" if close else None
        raise InvalidValue("target", target, " or ".join(map(repr, known)), hint=hint)
    if available is not None and available < 2:
        raise InvalidValue("available", available, "two items or more, or None for no limit")
    if available is None and target == "finite":
        raise InvalidValue("available", available, "the number of items of a finite target")
    if available is None and goal.spread.fixed > 0.0:
        raise InvalidValue("available", available, "the number of items with a baseline")
    if isinstance(goal, VerdictGoal):
        if target == "finite":
            raise InvalidValue("target", target, "'super-population' for a verdict's probability")
        return _simulated_size(goal, available, level, design_effect)
    spread, error = goal.spread, goal.error(level)
    if target == "super-population":
        spread = Spread(
            sampled=design_effect * spread.sampled,
            items=spread.items,
            fixed=design_effect * spread.fixed,
        )
    # The part of the variance that more of the available items do not change.
    constant = 0.0
    if available is not None:
        # For a finite target the part between items vanishes once all items are used, hence the
        # minus.
        constant = (spread.fixed if target == "super-population" else -spread.items) / available
    min_items = _min_items(spread.sampled, error**2 - constant)
    varies = spread.sampled > 0.0
    attainable = varies and min_items is not None and (available is None or min_items <= available)
    value = min_items if attainable else None
    needed = value
    if varies and not attainable and target == "super-population":
        # With more data N grows together with n, so `fixed` is divided by n too.
        needed = _min_items(spread.sampled + spread.fixed, error**2)
    best = None
    if available is not None and varies:
        error_of_all = math.sqrt(max(0.0, spread.sampled / available + constant))
        best = goal.best(error_of_all, level)
    status: EstimateStatus = "ok" if attainable else "insufficient_data"
    population = f"exactly these {available} items" if target == "finite" else "items like these"
    return SampleSize(
        value=value,
        status=status if varies else "undefined_zero_variance",
        attainable=attainable,
        needed=needed,
        calls=None if value is None else goal.calls(value, available),
        available=available,
        what=goal.what,
        best=best,
        level=level,
        estimand=f"{goal.about}, these conditions, {population}",
    )


def _simulated_size(
    goal: VerdictGoal, available: int | None, level: float, design_effect: float
) -> SampleSize:
    """Return the size for a goal whose probability is simulated; `best` is scaled by 1/√n."""
    varies = goal.discordance > 0.0
    independent_items = goal.least_items(level) if varies else 0
    needed = math.ceil(independent_items * design_effect)
    attainable = varies and (available is None or needed <= available)
    chance, at_once = goal.shares(independent_items, level) if varies else (math.nan, math.nan)
    best = goal.asked * math.sqrt(needed / available) if available and varies else None
    status: EstimateStatus = "ok" if attainable else "insufficient_data"
    return SampleSize(
        value=needed if attainable else None,
        status=status if varies else "undefined_zero_variance",
        attainable=attainable,
        needed=needed if varies else None,
        calls=goal.calls(needed, available) if attainable else None,
        available=available,
        what=goal.what,
        best=best,
        level=level,
        estimand=f"{goal.about}, these conditions, items like these",
        chance=None if math.isnan(chance) else chance,
        all_at_once=None if math.isnan(at_once) else at_once,
    )


def cheapest_design(
    goals: Iterable[AnyGoal],
    *,
    available: int | None = None,
    target: Target = "super-population",
    level: float = 0.95,
    design_effect: float = 1.0,
) -> tuple[AnyGoal, SampleSize]:
    """Return the goal that needs the fewest cells, with its size, of goals that differ in design.

    The goals may differ in `per_item`, for example. If none is attainable, return the goal with the
    smallest half-width, margin or gap for all available items.
    """
    sizes = [
        (g, sample_size(g, available=available, target=target, level=level,
                        design_effect=design_effect))
        for g in goals
    ]  # fmt: skip
    if not sizes:
        raise InvalidValue("goals", sizes, "one goal or more")

    def cost(design: tuple[object, SampleSize]) -> tuple[bool, float]:
        _, size = design
        if size.calls is not None:
            return False, size.calls
        return True, math.inf if size.best is None else size.best

    return min(sizes, key=cost)


def _min_items(sampled: float, allowed: float) -> int | None:
    """Return the smallest n >= 2 with sampled/n <= allowed; None if no number is enough."""
    if allowed <= 0.0:
        return None
    # A rounding error must not add an item to a whole number.
    return max(2, math.ceil(sampled / allowed * (1.0 - 1e-12)))
