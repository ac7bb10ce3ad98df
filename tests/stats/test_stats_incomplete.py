"""Variance components with gaps and clusters, against brute force and the mean squares."""

from __future__ import annotations

import itertools
from dataclasses import fields

import numpy as np
import pytest

from falter.stats.condition import condition_intervals
from falter.stats.variance import components

NAN = float("nan")


def outcomes(seed, items=12, width=4, runs=1):
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(items, 1, 1)) + rng.normal(size=(items, width, 1))
    return (drawn + 0.5 * rng.normal(size=(items, width, runs)) > 0.2).astype(float)


@pytest.mark.parametrize("runs", [1, 3])
def test_without_gaps_pairs_give_the_mean_squares(runs):
    """Every component and every leave-one-out value is that of the complete layout."""
    table = outcomes(0, runs=runs)
    by_pairs = components(table, np.arange(len(table)))
    whole = components(table)
    for field in fields(whole):
        found, expected = getattr(by_pairs, field.name), getattr(whole, field.name)
        assert found == pytest.approx(expected, abs=1e-12), field.name


def brute(table, codes):
    """Item covariance, condition variance and variance within, by loops over pairs of cells."""
    items, width = table.shape
    there = ~np.isnan(table)
    table = table - np.mean([table[there[:, j], j].mean() for j in range(width)])
    within, condition, across = [], [], []
    for j, k in itertools.permutations(range(width), 2):
        both = [i for i in range(items) if there[i, j] and there[i, k]]
        within.append(np.mean([(table[i, j] - table[i, k]) ** 2 / 2 for i in both]))
        gap = {i: table[i, j] - table[i, k] for i in both}
        products = [gap[g] * gap[h] for g in both for h in both if codes[g] != codes[h]]
        condition.append(np.mean(products) / 2)
        products = [
            table[g, j] * table[h, k]
            for g in range(items)
            for h in range(items)
            if codes[g] != codes[h] and there[g, j] and there[h, k]
        ]
        across.append(np.mean(products))
    square = np.mean([np.square(table[there[:, j], j]).mean() for j in range(width)])
    return (
        square - np.mean(within) - np.mean(across),
        np.mean(condition),
        np.mean(within),
    )


@pytest.mark.parametrize("clustered", [False, True])
def test_gaps_and_clusters_are_brute_force(clustered):
    """Sums over units give what loops over pairs of cells give, also without a unit."""
    table = outcomes(1)
    table[[0, 3, 5], [1, 2, 1]] = NAN
    codes = np.arange(12) // 3 if clustered else np.arange(12)
    found = components(table, codes)
    for place in (0, 2):
        keep = np.ones(12, bool) if place == 0 else codes != place - 1
        item, condition, within = brute(table[keep][:, :, 0], codes[keep])
        assert found.condition[place] == pytest.approx(condition)
        assert found.oneway_pert[place] == pytest.approx(within)
        # Where the centre of the whole table is used, only the item component may tell.
        if place == 0:
            assert found.item[place] == pytest.approx(item)


def test_the_average_over_all_gaps_is_the_complete_table():
    """Each single missing cell in turn: the mean over all of them hardly moves."""
    table = outcomes(2, items=8, width=3)
    whole = components(table)
    found = []
    for i, j in np.ndindex(8, 3):
        gap = table.copy()
        gap[i, j] = NAN
        found.append(components(gap))
    for name in ("item", "condition", "interaction", "pert"):
        mean = np.mean([getattr(parts, name)[0] for parts in found])
        assert mean == pytest.approx(getattr(whole, name)[0], abs=0.01), name


def test_groups_of_units_are_left_out_where_there_are_many(monkeypatch):
    """The value is that of groups as units, and there are as many others as groups."""
    monkeypatch.setattr("falter.stats.variance.MAX_UNITS", 5)
    table = outcomes(3)
    found = components(table, np.arange(12))
    expected = components(table, np.arange(12) % 5)
    assert found.item.shape == (6,)
    assert found.item == pytest.approx(expected.item)


def test_small_blocks_give_the_same(monkeypatch):
    """Units are read a few at a time without a difference."""
    table = outcomes(4)
    table[3, 1] = NAN
    expected = components(table, np.arange(12) // 2)
    monkeypatch.setattr("falter.stats.variance.BLOCK_CELLS", 40)
    assert components(table, np.arange(12) // 2).item == pytest.approx(expected.item)


def test_condition_intervals_of_single_item_clusters_are_those_of_items():
    """A gap of nothing and clusters of one leave the means, residuals and variance alone."""
    cells = outcomes(5, items=400)[:, :, 0]
    rest = np.full(401, 0.2)
    plain = condition_intervals(cells, 0.2, rest[1:])
    own = condition_intervals(cells, 0.2, rest[1:], codes=np.arange(400))
    for one, other in zip(plain, own, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=0.02, abs=1e-5)
