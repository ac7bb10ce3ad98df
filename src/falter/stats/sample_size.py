"""Numbers of items, conditions and requests that a goal needs."""

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
    """A number of items: `value`, None if those available are not enough.

    `chance` is the share of studies in which the goal is reached with the needed items, and
    `all_at_once` that in which it is for every recipe, both None where they are not simulated.
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
    """The least n at which the goal's standard error, or its chance, is reached.

        super-population: n = n0 = v/se²        finite: n = n0/(1 + n0/N)

    with v the variance of one item's number and se the standard error that the goal needs. Finite
    is about exactly the N `available` items, so all of them are always enough if every cell of an
    item is asked. Otherwise the part of the variance that comes from asking some cells of an item
    stays, and only the part between items has the finite correction. `level` is that of the panel,
    so that single recipes have the `recipe_level`. Items in clusters of m that are alike by ρ count
    as 1/(1 + (m − 1)ρ), the inverse of `design_effect`, in a super-population.

    `DropDetection` and `EquivalencePower` are simulated, the others a normal approximation: below
    some 20 items that change, plan more. Source: Cochran (1977).
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
        return _simulated_size(goal, available, level, design_effect)
    spread, error = goal.spread, goal.error(level)
    if target == "super-population":
        spread = Spread(
            sampled=design_effect * spread.sampled,
            items=spread.items,
            fixed=design_effect * spread.fixed,
        )
    # The part of the variance that asking more of the available items does not change.
    constant = 0.0
    if available is not None:
        # Of a finite target the part between items vanishes as all of them are asked, hence the
        # minus.
        constant = (spread.fixed if target == "super-population" else -spread.items) / available
    least = _least_items(spread.sampled, error**2 - constant)
    varies = spread.sampled > 0.0
    attainable = varies and least is not None and (available is None or least <= available)
    value = least if attainable else None
    needed = value
    if varies and not attainable and target == "super-population":
        # With more data N grows along with n, so that `fixed` is divided by n too.
        needed = _least_items(spread.sampled + spread.fixed, error**2)
    best = None
    if available is not None and varies:
        error_of_all = math.sqrt(max(0.0, spread.sampled / available + constant))
        best = goal.best(error_of_all, level)
    status: EstimateStatus = "ok" if attainable else "insufficient_data"
    of = f"exactly these {available} items" if target == "finite" else "items like these"
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
        estimand=f"{goal.about}, these conditions, {of}",
    )


def _simulated_size(
    goal: VerdictGoal, available: int | None, level: float, design_effect: float
) -> SampleSize:
    """Return the size of a goal whose chance is simulated; the best of fewer items goes as 1/√n."""
    varies = goal.discordance > 0.0
    alone = goal.least_items(level) if varies else 0
    needed = math.ceil(alone * design_effect)
    attainable = varies and (available is None or needed <= available)
    chance, at_once = goal.shares(alone, level) if varies else (math.nan, math.nan)
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
    """Of goals that differ in their design, as `per_item`, the one that asks the fewest cells.

    If none is attainable, the one that comes closest with all available items.
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


def _least_items(sampled: float, allowed: float) -> int | None:
    """Return the least n with sampled/n <= allowed, two at least; None if no number is enough."""
    if allowed <= 0.0:
        return None
    # Rounding must not make a whole number of items one more.
    return max(2, math.ceil(sampled / allowed * (1.0 - 1e-12)))
