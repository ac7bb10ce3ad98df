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
    ones. Conditions with too many items then give some to those with too few, each time the item
    to which that matters least. So the order of the items plays no part, and every item is equally
    likely to have any set of conditions, which is what `masked_components` needs. Exact balance and
    a mask that depends on the item alone cannot both be had: balance wins, because it is promised
    for every condition, and stability gives way for as few cells as one exchange at a time needs.
    An added item changes itself and about `conditions` cells of other items, or fewer.
    """
    _check(items, conditions, per_item, baseline)
    free = [j for j in range(conditions) if j != baseline]
    mask = np.zeros((len(items), conditions), dtype=np.bool_)
    if baseline is not None:
        mask[:, baseline] = True
    taken = per_item - (baseline is not None)
    ranks = _draws(items, conditions, seed)[:, free]
    mask[:, free] = _even(_first(ranks, taken), ranks)
    return mask


def _draws(items: Sequence[str], conditions: int, seed: int) -> Floats:
    """Uniform draws that depend on the seed, the item's key and the condition's place alone."""
    rows = (Rng(step_seed(seed, "mask", 1, 0, key, 0)) for key in items)
    draws = [[rng.random() for _ in range(conditions)] for rng in rows]
    return np.array(draws, dtype=np.float64).reshape(len(items), conditions)


def _first(ranks: Floats, taken: int) -> Mask:
    order = np.argsort(ranks, axis=1, kind="stable")
    mask = np.zeros(ranks.shape, dtype=np.bool_)
    np.put_along_axis(mask, order[:, :taken], True, axis=1)
    return mask


def _even(mask: Mask, ranks: Floats) -> Mask:
    """The same number of cells an item, and no condition more than one item ahead of another."""
    mask = mask.copy()
    counts = mask.sum(axis=0)
    least, rest = divmod(int(counts.sum()), len(counts)) if len(counts) else (0, 0)
    most = least + (rest > 0)
    while counts.max(initial=least) > most or counts.min(initial=least) < least:
        over = counts > most if (counts > most).any() else counts > least
        under = counts < least if (counts < least).any() else counts < most
        item, source, sink = _cheapest(mask, ranks, np.flatnonzero(over), np.flatnonzero(under))
        mask[item, source], mask[item, sink] = False, True
        counts[source] -= 1
        counts[sink] += 1
    return mask


def _cheapest(
    mask: Mask, ranks: Floats, over: NDArray[np.intp], under: NDArray[np.intp]
) -> tuple[int, int, int]:
    """The item whose draws for two conditions lie closest, out of the fuller into the emptier."""
    given = np.where(mask[:, over], ranks[:, over], -np.inf)
    wanted = np.where(mask[:, under], np.inf, ranks[:, under])
    cost = wanted[:, None, :] - given[:, :, None]
    item, source, sink = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return int(item), int(over[source]), int(under[sink])


def _check(items: Sequence[str], conditions: int, per_item: int, baseline: int | None) -> None:
    if isinstance(items, str):
        raise InvalidValue("items", items, "a sequence of item keys")
    if len(set(items)) < len(items):
        twice = next(key for key in items if list(items).count(key) > 1)
        raise InvalidValue("items", twice, "keys that are there once")
    if conditions < 1:
        raise InvalidValue("conditions", conditions, "one condition or more")
    if not 1 <= per_item <= conditions:
        raise InvalidValue("per_item", per_item, f"1 to conditions, {conditions}")
    if baseline is not None and not 0 <= baseline < conditions:
        raise InvalidValue("baseline", baseline, f"a condition from 0 to {conditions - 1}, or None")
