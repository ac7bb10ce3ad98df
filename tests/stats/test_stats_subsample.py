"""Some cells of a table: averages over all samples are the truth, and intervals cover."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from falter.records.errors import InvalidValue
from falter.stats.intervals import clopper_pearson, tango
from falter.stats.layout import balanced_mask
from falter.stats.subsample import MaskedRows, masked_brittleness, masked_drop
from probit import ProbitModel, simulate_outcomes

NAN = float("nan")
RIGHT = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], dtype=float)
REAL = np.array([[0.1, 2.0, -1.0, 0.4], [0.0, 0.3, 0.3, 5.0], [1.0, -2.0, 0.7, 0.6]])
BRITTLE = ProbitModel(ability=0.3, effects=(0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6), interaction=0.8)
ROBUST = ProbitModel(ability=1.3, effects=(0, 0, 0, 0, 0.1, 0.1, 0.2, 0.3), interaction=0.2)
RUNS = 200


def truths(table):
    """The plug-in components of the whole table, by numpy."""
    return {
        "mean": table.mean(),
        "pert": table.var(axis=1).mean(),
        "total": table.var(),
        "brittleness": table.var(axis=1).mean() / table.var(),
    }


def rows_of(cells, baseline=None, population=None):
    return MaskedRows.from_outcomes(cells, baseline, population, least=2, level=0.95)


def asked(table, rows, sets, baseline=None):
    cells = np.full(table.shape, NAN)
    for row, columns in zip(rows, sets, strict=True):
        chosen = list(columns) if baseline is None else [baseline, *columns]
        cells[row, chosen] = table[row, chosen]
    return cells


@pytest.mark.parametrize("table", [RIGHT, REAL], ids=["0/1", "real"])
@pytest.mark.parametrize("items", [2, 3])
@pytest.mark.parametrize("baseline", [None, 0])
def test_the_average_over_all_samples_is_the_truth(table, items, baseline):
    """Over every choice of items and of 2 conditions of each, three components are unbiased."""
    free = [j for j in range(4) if j != baseline]
    pairs = list(itertools.combinations(free, 2))
    found = {"mean": [], "pert": [], "total": [], "drop": []}
    for rows in itertools.combinations(range(3), items):
        for sets in itertools.product(pairs, repeat=items):
            cells = asked(table, rows, sets, baseline)
            result = rows_of(cells, baseline)
            found["mean"].append(result.mean.mean())
            found["pert"].append(result.pert.mean())
            found["total"].append(result.total)
            if baseline is not None:
                found["drop"].append(masked_drop(cells, baseline).value)
    truth = truths(table) | {"drop": (table[:, [0]] - table[:, 1:]).mean()}
    for name, values in found.items():
        if values:
            assert np.mean(values) == pytest.approx(truth[name], abs=1e-12), name


@pytest.mark.parametrize("row", [(1, 0, 1, 1, 0, 0), (0, 0, 0, 0, 1, 0), (1, 1, 1, 1, 1, 1)])
@pytest.mark.parametrize("baseline", [None, 0, 1])
def test_the_masks_variance_is_that_over_all_masks(row, baseline):
    """4 of 6 cells (and a baseline): the mean over all 15 sets is their own variance, exactly."""
    cells = np.array([row] * 15, dtype=float)
    for place, chosen in enumerate(itertools.combinations(range(6), 4)):
        cells[place, [j for j in range(6) if j not in chosen]] = NAN
    if baseline is not None:
        cells = np.column_stack([np.full(15, float(baseline)), cells])
    first = None if baseline is None else 0
    rows = rows_of(cells, first)
    for weights in ((0.0, 0.0, 1.0), (-0.7, 0.9, 4.0)):
        values = weights[0] * rows.square + weights[1] * rows.mean + weights[2] * rows.pert
        assert rows.quadratic_mask(*weights) == pytest.approx(np.var(values), abs=1e-12)
    share = rows.width / rows.conditions
    assert rows.linear_mask(0.0, share) == pytest.approx(np.var(rows.mean), abs=1e-12)


def test_by_hand():
    """2 of 3 right and 1 of 3 right in 4 conditions: pert 3/4 x 1/3 each, mean 1/2."""
    cells = [[1, 1, 0, NAN], [NAN, 0, 1, 0], [NAN] * 4, [1, NAN, NAN, NAN]]
    rows, found = rows_of(cells), masked_brittleness(cells)
    assert rows.pert.mean() == pytest.approx(0.75 / 3)
    assert (rows.mean.mean(), found.items, found.excluded) == (0.5, 2, 1)
    # p(1 - p) and Var p: half of s^2 of 2/3 and 1/3, and half of the 1/36 of asking 3 of 4 cells.
    assert rows.total == pytest.approx(0.25 + (0.5 / 18 + 0.5 / 36) / 2)
    assert found.value == pytest.approx(0.25 / rows.total)
    drop = masked_drop([[1, 1, 0, NAN], [0, 0, 1, 0], [NAN, 0, 1, 0], [1, NAN, NAN, NAN]], 0)
    assert (drop.value, drop.items, drop.excluded) == (pytest.approx((1 / 2 - 1 / 3) / 2), 2, 2)


def test_a_complete_table_is_the_plug_in():
    """Every cell: the number of the table itself, with an interval of no width."""
    table = simulate_outcomes(BRITTLE, 300, seed=1)
    truth = truths(table)
    for baseline in (None, 3):
        found = masked_brittleness(table, baseline=baseline)
        assert found.value == pytest.approx(truth["brittleness"])
        assert (found.interval.low, found.interval.high) == (found.value, found.value)
        assert found.standard_error == 0.0
    rows = rows_of(table)
    assert (rows.pert.mean(), rows.total) == pytest.approx((truth["pert"], truth["total"]))
    assert masked_drop(table, 0).value == pytest.approx((table[:, :1] - table[:, 1:]).mean())


def test_too_little():
    """Too few conditions, cells or items, nothing that varies: None and the reason."""
    for cells, baseline, status in (
        ([[1.0], [0.0]], None, "not_identified"),
        ([[1.0, NAN, NAN], [NAN, 0.0, NAN]], None, "not_identified"),
        ([[1.0, 0.0, NAN], [1.0, NAN, 0.0]], 0, "not_identified"),
        ([[1.0, 0.0, NAN]], None, "insufficient_data"),
        ([[NAN, NAN]], None, "insufficient_data"),
        ([[1.0, 1.0, NAN]] * 30, None, "undefined_zero_variance"),
    ):
        found = masked_brittleness(cells, baseline=baseline)
        assert (found.value, found.status, found.interval.low) == (None, status, None)
    # No item disagrees with itself, although items differ.
    cells = np.array([[1.0, 1.0, NAN]] * 20 + [[0.0, 0.0, NAN]] * 10)
    low = masked_brittleness(cells)
    limit = clopper_pearson(0, 30).high / 3 / rows_of(cells).total
    assert (low.value, low.interval.high) == (0.0, pytest.approx(limit))
    none = masked_drop([[1.0, NAN, NAN]] * 3, 0)
    assert (none.value, none.status, none.excluded) == (None, "not_identified", 3)
    for wrong, name in (
        ({"outcomes": [1.0]}, "outcomes"),
        ({"outcomes": [[math.inf, 1.0]]}, "outcomes"),
        ({"baseline": 2}, "baseline"),
        ({"population": 1}, "population"),
        ({"level": 0.0}, "level"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            masked_brittleness(**({"outcomes": [[1.0, 0.0], [0.0, 0.0]]} | wrong))


def test_one_condition_is_the_paired_drop():
    """Of 50 items of very many, one condition's drop has Tango's interval on b and c."""
    pairs = [[1, 0]] * 12 + [[0, 1]] * 3 + [[1, 1]] * 35
    found = masked_drop(np.array(pairs, dtype=float), 0, population=10**12)
    theirs = tango(12, 3, 50)
    assert found.value == pytest.approx(9 / 50)
    assert (found.interval.low, found.interval.high) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize(
    ("model", "per_item", "baseline"), [(BRITTLE, 4, None), (BRITTLE, 5, 0), (ROBUST, 4, None)]
)
def test_masks_cover_and_are_not_biased(model, per_item, baseline):
    """Balanced masks on 200 of 300 items."""
    rng, keys = np.random.default_rng(20), [str(i) for i in range(200)]
    table = simulate_outcomes(model, 300, seed=21)
    truth = {
        "brittleness": truths(table)["brittleness"],
        "drop": (table[:, :1] - table[:, 1:]).mean(),
    }
    results = {name: [] for name in truth}
    for seed in range(RUNS):
        mask = balanced_mask(keys, 8, per_item, seed=seed, baseline=baseline)
        rows = rng.choice(300, 200, replace=False)
        cells = np.full(table.shape, NAN)
        cells[rows] = np.where(mask, table[rows], NAN)
        results["brittleness"].append(masked_brittleness(cells, baseline=baseline))
        if baseline is not None:
            results["drop"].append(masked_drop(cells, baseline))
    for name, kept in results.items():
        if not kept:
            continue
        hits = sum(truth[name] in e.interval for e in kept)
        side = "less" if name == "drop" else "two-sided"
        assert binomtest(hits, RUNS, 0.95, alternative=side).pvalue > 1e-3, (name, hits)
        values = np.array([e.value for e in kept])
        known = 1.5 * truth[name] / 200 if name == "brittleness" else 0.0
        error = values.std(ddof=1) / math.sqrt(RUNS)
        assert abs(values.mean() - truth[name]) < 4 * error + known, name


def test_three_cells_an_item_are_too_wide_and_never_too_narrow():
    """Fewer than four random cells do not show the mask's share: coverage is above 95 %."""
    table, keys = simulate_outcomes(ROBUST, 300, seed=22), [str(i) for i in range(300)]
    truth, hits = truths(table)["brittleness"], 0
    for seed in range(RUNS):
        mask = balanced_mask(keys, 8, 3, seed=seed)
        found = masked_brittleness(np.where(mask, table, NAN))
        hits += truth in found.interval
    assert hits >= 0.97 * RUNS
