"""Which conditions each item is asked in, when not all of them are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.core.ids import step_seed
from falter.core.rng import Rng

__all__ = ["balanced_mask"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


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
    likely to have any set of conditions, which is what `masked_components` needs. A mask that
    depends on the item alone cannot be exactly balanced: balance wins, because it is promised for
    every condition, and stability gives way for as few cells as one exchange at a time needs. An
    added item changes itself and about `conditions` cells of other items, or fewer.
    """
    _check(items, conditions, per_item, baseline)
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
    """The same number of cells per item, and no condition more than one item ahead of another."""
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


def _check(items: Sequence[str], conditions: int, per_item: int, baseline: int | None) -> None:
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
