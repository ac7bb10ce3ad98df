"""How a number of requests is laid out over items and conditions, and what that promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.core.ids import step_seed
from falter.core.rng import Rng
from falter.stats._goals import BrittlenessPrecision, DropPrecision, Goal, MicroPrecision
from falter.stats._mask import balanced_mask

__all__ = ["Layout", "budget_layout", "planned_half_widths", "promised_half_width"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST = 4
"""Random cells of an item, with which all of its variance from asking only some is known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Which cells are asked: items x conditions, and the order in which items are asked.

    `order` holds the places of the items that have any cell. The first of them are a random part
    of all items, however many they are, so that one may stop after any of them.
    """

    mask: Mask
    order: tuple[int, ...]
    requests: int

    @property
    def items(self) -> int:
        """How many items have a cell."""
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
    `masked_components`). Every set of so many conditions is equally likely, and what an item is
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


def promised_half_width(
    half_width: float,
    items: int,
    planned: int,
    *,
    population: int | None = None,
    mask_share: float = 1.0,
) -> float:
    """The half-width that n `planned` items will have, from that h of the first m `items` of them.

        super-population: h √(m/n)
        finite: h √(m/n · g(n)/g(m)), g(n) = 1 − n/N + f n/N

    f, the `mask_share`, is the part of an item's variance that comes from asking only some of its
    conditions; of a finite `population` N it stays when all items are asked.
    """
    if items < 1 or planned < 1:
        raise InvalidValue("items", (items, planned), "one item or more, now and as planned")
    ratio = items / planned
    if population is not None:
        now, then = items / population, planned / population
        ratio *= (1.0 - then + then * mask_share) / (1.0 - now + now * mask_share)
    return half_width * math.sqrt(max(0.0, ratio))


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
