"""The balanced mask: its promises as properties, every set equally likely, few changes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from falter.records.errors import InvalidValue
from falter.stats.layout import balanced_mask


def keys(count):
    return [f"item {n}" for n in range(count)]


@given(st.data(), st.integers(0, 40), st.integers(1, 9), st.integers(0, 2**32), st.booleans())
def test_promises(data, items, conditions, seed, with_baseline):
    """k an item, conditions within one of each other, the baseline always, order of no matter."""
    per_item = data.draw(st.integers(1, conditions))
    baseline = data.draw(st.integers(0, conditions - 1)) if with_baseline else None
    names = keys(items)
    mask = balanced_mask(names, conditions, per_item, seed=seed, baseline=baseline)
    assert mask.shape == (items, conditions)
    assert mask.dtype == np.bool_
    assert (mask.sum(axis=1) == per_item).all()
    others = [j for j in range(conditions) if j != baseline]
    if others:
        assert np.ptp(mask[:, others].sum(axis=0)) <= 1
    if baseline is not None:
        assert mask[:, baseline].all()
    order = data.draw(st.permutations(range(items)))
    again = balanced_mask(
        [names[i] for i in order], conditions, per_item, seed=seed, baseline=baseline
    )
    assert (again == mask[list(order)]).all()


def test_small_masks_by_hand():
    """All of three is all; one of one condition too; nobody's mask is empty."""
    assert balanced_mask(["a", "b"], 3, 3).all()
    assert balanced_mask(["a"], 1, 1, baseline=0).tolist() == [[True]]
    assert balanced_mask([], 4, 2).shape == (0, 4)
    assert balanced_mask(keys(4), 4, 1).sum(axis=0).tolist() == [1, 1, 1, 1]
    assert balanced_mask(keys(5), 3, 1, baseline=1)[:, 1].sum() == 5


def test_every_set_is_equally_likely():
    """Over 3,000 seeds, one item's pair of 4 conditions, and two items' shared condition.

    Balance leaves each item's own set uniform; two items share less than if they were independent:
    with 6 items and 3 a condition, the chance of a given condition in both is 1/2 (3 - 1)/(6 - 1).
    """
    seen, shared = Counter(), 0
    for seed in range(3000):
        mask = balanced_mask(keys(6), 4, 2, seed=seed)
        seen[tuple(np.flatnonzero(mask[2]))] += 1
        shared += int((mask[0] & mask[5]).sum())
    counts = [seen[pair] for pair in combinations(range(4), 2)]
    assert chisquare(counts).pvalue > 1e-3
    assert shared / 3000 / 4 == pytest.approx(0.5 * 2 / 5, abs=0.008)


def test_an_added_item_changes_little():
    """Of 3,000 cells, an added item moves a few; the draws of an item depend on its key alone."""
    moved = []
    for seed in range(10):
        mask = balanced_mask(keys(1000), 16, 3, seed=seed)
        more = balanced_mask([*keys(1000), "new"], 16, 3, seed=seed)
        moved.append(int((mask & ~more[:-1]).sum()))
    assert np.mean(moved) <= 16
    assert max(moved) <= 32


def test_masks_stay_as_they_are():
    """A stored run must be resumable years later, so one mask is pinned; seeds differ."""
    mask = balanced_mask(["a", "b", "c", "d"], 4, 2, seed=7)
    assert [np.flatnonzero(row).tolist() for row in mask] == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert (mask != balanced_mask(["a", "b", "c", "d"], 4, 2, seed=8)).any()


@pytest.mark.parametrize(
    ("given_", "name"),
    [
        ({"items": ["a", "b", "a"]}, "items is 'a'"),
        ({"items": "abc"}, "items is 'abc'"),
        ({"conditions": 0}, "conditions is 0"),
        ({"per_item": 0}, "per_item is 0"),
        ({"per_item": 5}, "per_item is 5"),
        ({"baseline": 4}, "baseline is 4"),
    ],
)
def test_errors_name_the_argument(given_, name):
    """Keys twice, and counts that do not fit."""
    arguments = {"items": ["a", "b"], "conditions": 4, "per_item": 2} | given_
    with pytest.raises(InvalidValue, match=name):
        balanced_mask(**arguments)
