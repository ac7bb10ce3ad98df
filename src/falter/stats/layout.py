"""The cells that a request budget covers: a balanced random mask of items x conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import InvalidValue
from falter.records.ids import step_seed
from falter.records.rng import Rng
from falter.stats.goals import BrittlenessPrecision, DropPrecision, Goal, MicroPrecision

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# The variance of an estimated variance is a fourth moment. It needs at least four cells.
MIN_RANDOM_CELLS = 4
"""The smallest number of random cells per item that shows the variance due to the mask."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The requested cells, with the order in which the items are sent.

    `mask` is items x conditions, True for a requested cell. `order` has the indices of the items
    with any cell. Every initial part of `order` is a random sample of all items, so a run may stop
    after any item.
    """

    mask: Mask
    order: tuple[int, ...]
    requests: int

    @property
    def items(self) -> int:
        """The number of items that have a requested cell."""
        return len(self.order)

    @property
    def per_item(self) -> tuple[int, int]:
        """The smallest and the largest number of requested conditions per item."""
        counts = self.mask[list(self.order)].sum(axis=1)
        return (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)


def budget_layout(
    items: Sequence[str], costs: Sequence[float], budget: float, *, seed: int = 0
) -> Layout:
    """Return a balanced random mask of items x conditions that costs at most `budget` requests.

        b >= I · cost(k), k > 4: every item in k conditions, some in k + 1
        else: the first ⌊b/cost(5)⌋ items of a random order, each in 5 conditions

    Parameters
    ----------
    items : distinct keys, one per item
    costs : the requests per cell of each condition
        Condition 0 is the baseline, which every used item gets.
    budget : the number of requests
        A budget for all cells gives the whole table. One for fewer than two items is refused.

    Notes
    -----
    The 5 conditions are the baseline and 4 others. With fewer random cells per item, no interval
    for exactly these items can be estimated (see `masked_brittleness`). Every set of that many
    conditions is equally likely. The conditions of an item depend on no outcome and on no model.
    """
    spend = np.asarray(costs, dtype=np.float64)
    _check_budget(items, spend, budget)
    count, width = len(items), len(spend)
    order = sorted(range(count), key=lambda i: (_uniform_draw(items[i], seed), items[i]))
    if budget >= count * spend.sum():
        return Layout(
            mask=np.ones((count, width), dtype=np.bool_),
            order=tuple(order),
            requests=round(count * float(spend.sum())),
        )
    first, other = float(spend[0]), float(spend[1:].mean())
    min_cells = min(width, 1 + MIN_RANDOM_CELLS)
    # 1e-9: a budget that is exact for k conditions must not lose one of them to rounding.
    per_item = 1 + math.floor((budget / count - first) / other + 1e-9)
    if per_item < min_cells:
        used, per_item, extra = math.floor(budget / (first + (min_cells - 1) * other)), min_cells, 0
    else:
        used, per_item = count, min(per_item, width - 1)
        extra = math.floor((budget - count * (first + (per_item - 1) * other)) / other)
    mask = np.zeros((count, width), dtype=np.bool_)
    # A separate draw decides which items get one more condition, independent of `order`.
    ranked = sorted(order[:used], key=lambda i: (_uniform_draw(items[i], seed, "more"), items[i]))
    for group, conditions in ((ranked[:extra], per_item + 1), (ranked[extra:], per_item)):
        keys = [items[i] for i in sorted(group)]
        if keys:
            mask[sorted(group)] = balanced_mask(keys, width, conditions, seed=seed, baseline=0)
    order = order[:used]
    # The mask is balanced in cells, so conditions of different costs can exceed the budget.
    while order and float((mask @ spend).sum()) > budget:
        mask[order.pop()] = False
    return Layout(mask=mask, order=tuple(order), requests=round(float((mask @ spend).sum())))


def planned_half_widths(
    *,
    items: int,
    population: int,
    conditions: int,
    per_item: int,
    discordance: float = 0.1,
    accuracy: float = 0.7,
    level: float = 0.95,
) -> dict[str, float]:
    """Return the half-widths that a layout is expected to give for exactly these items.

    The keys are `average` (the mean drop), `recipe` (the drop of one recipe) and `brittleness`. The
    last is missing if it cannot be planned. `items` of the `population` are used, each in the
    baseline and in `per_item` of the other `conditions`. Two assumptions are made: a change of the
    prompt flips the share `discordance` of the answers, and the share `accuracy` is right. Two
    cells of an item then differ that often, so brittleness is the corresponding share of p (1 - p).
    """
    others = conditions - 1
    share = discordance * others / conditions / (2.0 * accuracy * (1.0 - accuracy))
    goals: dict[str, tuple[Goal, float]] = {
        "average": (
            MicroPrecision(
                half_width=0.02, discordance=discordance, conditions=others, per_item=per_item
            ),
            items,
        ),
        "recipe": (
            DropPrecision(half_width=0.02, discordance=discordance),
            items * per_item / others,
        ),
    }
    if per_item > 1 and 0.0 < share <= others / conditions:
        goals["brittleness"] = (
            BrittlenessPrecision(
                half_width=0.03,
                brittleness=share,
                accuracy=accuracy,
                conditions=conditions,
                per_item=per_item,
            ),
            items,
        )
    widths = {}
    for name, (goal, count) in goals.items():
        variance = goal.spread.sampled / count - goal.spread.items / population
        widths[name] = goal.best(math.sqrt(max(0.0, variance)), level)
    return widths


def _uniform_draw(key: str, seed: int, name: str = "order") -> float:
    return Rng(step_seed(seed, f"layout {name}", 1, 0, key, 0)).random()


def _check_budget(items: Sequence[str], costs: Floats, budget: float) -> None:
    if costs.ndim != 1 or len(costs) < 2 or not (costs > 0.0).all():
        raise InvalidValue("costs", costs, "a number above 0 for two conditions or more")
    if len(set(items)) < len(items) or not items:
        raise InvalidValue("items", list(items)[:5], "keys that occur once, one or more")
    min_cells = min(len(costs), 1 + MIN_RANDOM_CELLS)
    min_cost = float(costs[0]) + (min_cells - 1) * float(costs[1:].mean())
    if not budget >= 2 * min_cost:
        raise InvalidValue(
            "budget", budget, f"{math.ceil(2 * min_cost)} requests or more",
            hint="with fewer there are no two items with enough conditions",
        )  # fmt: skip


def balanced_mask(
    items: Sequence[str],
    conditions: int,
    per_item: int,
    *,
    seed: int = 0,
    baseline: int | None = None,
) -> Mask:
    """Return items x conditions, True for a requested cell, balanced over the conditions.

    Each item has `per_item` cells, and the numbers of items of two conditions differ by at most
    one. `items` are distinct keys. `baseline` is the index of a condition that every item gets; it
    counts towards `per_item`. No model enters, so all models get the same cells.

    Each item ranks the conditions by draws from the seed and its key, and takes the first ones.
    Then conditions with too many items give some to conditions with too few. Each time this is the
    item for which the exchange matters least. So the order of the items has no effect, and every
    item is equally likely to get any set of conditions. `masked_brittleness` needs this property.

    A mask that depends on the item alone cannot be exactly balanced. Balance has priority, because
    it is guaranteed for every condition. An added item changes itself and at most about
    `conditions` cells of other items.
    """
    _check_mask(items, conditions, per_item, baseline)
    others = [j for j in range(conditions) if j != baseline]
    # Uniform draws that depend on the seed, the item's key and the condition's place alone.
    generators = [Rng(step_seed(seed, "mask", 1, 0, key, 0)) for key in items]
    rows = [[rng.random() for _ in range(conditions)] for rng in generators]
    draws = np.array(rows, dtype=np.float64).reshape(len(items), conditions)[:, others]
    # Every item takes the conditions with its smallest draws.
    order = np.argsort(draws, axis=1, kind="stable")
    chosen = np.zeros(draws.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order[:, : per_item - (baseline is not None)], True, axis=1)
    mask = np.zeros((len(items), conditions), dtype=np.bool_)
    if baseline is not None:
        mask[:, baseline] = True
    mask[:, others] = _balance_conditions(chosen, draws)
    return mask


def _balance_conditions(mask: Mask, draws: Floats) -> Mask:
    """Exchange cells until the counts of all conditions differ by one at most.

    The counts of the items stay unchanged.
    """
    mask = mask.copy()
    counts = mask.sum(axis=0)
    least, remainder = divmod(int(counts.sum()), len(counts)) if len(counts) else (0, 0)
    most = least + (remainder > 0)
    while counts.max(initial=least) > most or counts.min(initial=least) < least:
        over = np.flatnonzero(counts > most if (counts > most).any() else counts > least)
        under = np.flatnonzero(counts < least if (counts < least).any() else counts < most)
        # The item whose draws for two conditions lie closest gives one up for the other.
        given = np.where(mask[:, over], draws[:, over], -np.inf)
        taken = np.where(mask[:, under], np.inf, draws[:, under])
        cost = taken[:, None, :] - given[:, :, None]
        item, source, sink = np.unravel_index(int(np.argmin(cost)), cost.shape)
        mask[item, over[source]], mask[item, under[sink]] = False, True
        counts[over[source]] -= 1
        counts[under[sink]] += 1
    return mask


def _check_mask(items: Sequence[str], conditions: int, per_item: int, baseline: int | None) -> None:
    if isinstance(items, str):
        raise InvalidValue("items", items, "a sequence of item keys")
    if len(set(items)) < len(items):
        repeated = next(key for key in items if list(items).count(key) > 1)
        raise InvalidValue("items", repeated, "keys that occur once")
    if conditions < 1:
        raise InvalidValue("conditions", conditions, "one condition or more")
    if not 1 <= per_item <= conditions:
        raise InvalidValue("per_item", per_item, f"1 to conditions, {conditions}")
    if baseline is not None and not 0 <= baseline < conditions:
        raise InvalidValue("baseline", baseline, f"a condition from 0 to {conditions - 1}, or None")
