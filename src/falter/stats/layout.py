"""The cells that a budget asks: a balanced random mask of items x conditions, and its promises."""

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

# The variance of an estimated variance is a fourth moment, which four cells show and three do not.
LEAST = 4
"""Random cells of an item, with which all of its variance from asking only some is known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The cells that are asked: items x conditions, and the order in which items are asked.

    `order` holds the places of the items that have any cell. The first of them are a random part
    of all items, however many they are, so that one may stop after any of them.
    """

    mask: Mask
    order: tuple[int, ...]
    requests: int

    @property
    def items(self) -> int:
        """The number of items that have a cell."""
        return len(self.order)

    @property
    def per_item(self) -> tuple[int, int]:
        """The fewest and the most conditions of an item that has any."""
        counts = self.mask[list(self.order)].sum(axis=1)
        return (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)


def budget_layout(
    items: Sequence[str], costs: Sequence[float], budget: float, *, seed: int = 0
) -> Layout:
    """A balanced random mask of items x conditions that costs at most `budget` requests.

        b >= I · cost(k), k > 4: every item in k conditions, some in k + 1
        else: the first ⌊b/cost(5)⌋ items of a random order, each in 5 conditions

    `items` are keys, `costs` the requests of one cell of each condition; condition 0 is the
    baseline, in which every item that is asked is asked. The 5 are the baseline and 4 others: with
    fewer random cells of an item the interval for exactly these items cannot be told (see
    `masked_brittleness`). Every set of so many conditions is equally likely, and what an item is
    asked in depends on no outcome and no model. A budget for everything gives the whole table.
    """
    spend = np.asarray(costs, dtype=np.float64)
    _check(items, spend, budget)
    count, width = len(items), len(spend)
    order = sorted(range(count), key=lambda i: (_draw(items[i], seed), items[i]))
    if budget >= count * spend.sum():
        return Layout(
            mask=np.ones((count, width), dtype=np.bool_),
            order=tuple(order),
            requests=round(count * float(spend.sum())),
        )
    first, other = float(spend[0]), float(spend[1:].mean())
    least = min(width, 1 + LEAST)
    # 1e-9: a budget that is exact for k conditions must not lose one of them to rounding.
    per_item = 1 + math.floor((budget / count - first) / other + 1e-9)
    if per_item < least:
        asked, per_item, more = math.floor(budget / (first + (least - 1) * other)), least, 0
    else:
        asked, per_item = count, min(per_item, width - 1)
        more = math.floor((budget - count * (first + (per_item - 1) * other)) / other)
    mask = np.zeros((count, width), dtype=np.bool_)
    # Which items have one condition more is decided at random, and not by the place in `order`.
    ranked = sorted(order[:asked], key=lambda i: (_draw(items[i], seed, "more"), items[i]))
    for group, conditions in ((ranked[:more], per_item + 1), (ranked[more:], per_item)):
        keys = [items[i] for i in sorted(group)]
        if keys:
            mask[sorted(group)] = balanced_mask(keys, width, conditions, seed=seed, baseline=0)
    order = order[:asked]
    # Balanced to a cell, conditions of different costs can exceed the budget by a few requests.
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
    """The half-widths that a layout promises before anything is asked, for exactly these items.

    `brittleness`, the `average` drop and the drop of one `recipe`, of `items` of the `population`,
    each asked in the baseline and `per_item` of the other `conditions`. What it takes is assumed:
    a change of the prompt turns a share `discordance` of the answers, and so much is right. Then
    two cells of an item differ that often, and brittleness is that share of p (1 - p).
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


def _draw(key: str, seed: int, name: str = "order") -> float:
    return Rng(step_seed(seed, f"layout {name}", 1, 0, key, 0)).random()


def _check(items: Sequence[str], costs: Floats, budget: float) -> None:
    if costs.ndim != 1 or len(costs) < 2 or not (costs > 0.0).all():
        raise InvalidValue("costs", costs, "a number above 0 for two conditions or more")
    if len(set(items)) < len(items) or not items:
        raise InvalidValue("items", list(items)[:5], "keys that occur once, one or more")
    least = float(costs[0]) + (min(len(costs), 1 + LEAST) - 1) * float(costs[1:].mean())
    if not budget >= 2 * least:
        raise InvalidValue(
            "budget", budget, f"{math.ceil(2 * least)} requests or more",
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
    """Items x conditions, True where a cell is asked: `per_item` an item, conditions even to one.

    `items` are their keys. `baseline` is a condition that every item is asked in; it is one of the
    `per_item`, and the others share the rest evenly. No model enters, so all models are asked the
    same cells.

    Every item ranks the conditions by draws from the seed and its own key, and takes the first
    ones. Conditions with too many items then give some to those with too few, each time the item to
    which that matters least. So the order of the items plays no part, and every item is equally
    likely to have any set of conditions, which is what `masked_brittleness` needs. A mask that
    depends on the item alone cannot be exactly balanced: balance wins, because it is promised for
    every condition, and stability gives way for as few cells as one exchange at a time needs. An
    added item changes itself and about `conditions` cells of other items, or fewer.
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
    mask[:, others] = _balanced(chosen, draws)
    return mask


def _balanced(mask: Mask, draws: Floats) -> Mask:
    """Exchange cells until the conditions' counts differ by one at most; items keep theirs."""
    mask = mask.copy()
    counts = mask.sum(axis=0)
    least, remainder = divmod(int(counts.sum()), len(counts)) if len(counts) else (0, 0)
    most = least + (remainder > 0)
    while counts.max(initial=least) > most or counts.min(initial=least) < least:
        over = np.flatnonzero(counts > most if (counts > most).any() else counts > least)
        under = np.flatnonzero(counts < least if (counts < least).any() else counts < most)
        # The item whose draws for two conditions lie closest gives one up for the other.
        had = np.where(mask[:, over], draws[:, over], -np.inf)
        new = np.where(mask[:, under], np.inf, draws[:, under])
        cost = new[:, None, :] - had[:, :, None]
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
