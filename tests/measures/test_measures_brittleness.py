"""Brittleness over benchmarks and models, and averages over recipes like these."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from falter.measures.averages import micro_average, random_conditions_average
from falter.measures.brittleness import brittleness_by_model, brittleness_by_task
from falter.measures.variance import variance_components
from falter.records.errors import InvalidValue
from probit import ProbitModel, simulate_outcomes, simulated_truth

NAN = float("nan")
DATA = Path(__file__).parents[1] / "data"


def languages():
    """Real outcomes: model -> 250 questions x five languages."""
    with (DATA / "truthfulqa_multi_models.csv").open() as file:
        rows = list(csv.DictReader(file))
    models = [name for name in rows[0] if name != "item"]
    return {m: np.array([[float(bit) for bit in row[m]] for row in rows]) for m in models}


def ratio(parts):
    """Sum of pert over sum of total, from `variance_components`."""
    found = [variance_components(cells) for cells in parts]
    return sum(f.pert.value for f in found) / sum(f.total.value for f in found)


def test_components_are_summed_before_the_ratio_is_taken():
    """By hand: pert 1/12 and 1/8, total 1/4 and 1/4: 5/12, not the mean of ratios, not pooled."""
    first = np.array([[1, 1], [1, 0], [0, 0]])
    second = np.array([[1, 0], [1, 0], [1, 1], [0, 0]])
    found = brittleness_by_model({"m": {"a": first, "b": second}})["m"]
    assert found.brittleness.value == pytest.approx((1 / 12 + 1 / 8) / (1 / 2))
    assert (found.pert.value, found.run.value) == (pytest.approx(5 / 24), 0.0)
    assert (found.brittleness.items, found.brittleness.conditions) == (7, 2)


def test_both_directions_agree_with_single_matrices():
    """On real outcomes both sums are those of `variance_components`, matrix by matrix."""
    real = languages()
    names = list(real)
    tables = {
        "one": {"a": real[names[0]][:120], "b": real[names[1]][:90]},
        "two": {"a": real[names[2]][:120], "b": real[names[3]][:90]},
    }
    by_model, by_task = brittleness_by_model(tables), brittleness_by_task(tables)
    for model, row in tables.items():
        assert by_model[model].brittleness.value == pytest.approx(ratio(row.values()))
        assert by_model[model].pooled == ("a", "b")
    for name in "ab":
        column = [row[name] for row in tables.values()]
        assert by_task[name].brittleness.value == pytest.approx(ratio(column))
        assert by_task[name].pooled == ("one", "two")


def test_one_matrix_has_the_interval_of_its_own_components():
    """A pool of one is `variance_components`: value and jackknife interval."""
    cells = languages()["gemma-2-9b-it"]
    pool = brittleness_by_model({"m": {"a": cells}})["m"]
    alone = variance_components(cells)
    for one, two in ((pool.brittleness, alone.brittleness), (pool.pert, alone.pert)):
        assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))


def test_matrices_without_variance_or_without_a_decomposition_are_named():
    """All right adds 0 to both sums and is listed; one condition or item is left out and listed."""
    table = np.array([[1, 1], [1, 0], [0, 0]])
    found = brittleness_by_model(
        {"m": {"a": table, "full": np.ones((5, 2)), "one": np.ones((5, 1)), "few": np.ones((1, 2))}}
    )["m"]
    assert found.brittleness.value == pytest.approx(1 / 3)
    assert (found.pooled, found.null) == (("a", "full"), ("full",))
    assert found.left_out == {"one": "not_identified", "few": "insufficient_data"}
    nothing = brittleness_by_model({"m": {"full": np.ones((5, 2))}})["m"].brittleness
    assert (nothing.value, nothing.status) == (None, "undefined_zero_variance")
    nowhere = brittleness_by_model({"m": {"one": np.ones((5, 1))}})["m"].brittleness
    assert (nowhere.value, nowhere.status) == (None, "insufficient_data")


def test_extremes_keep_an_interval():
    """No item varies: 0 with an upper limit; every item mean equal: 1."""
    still = np.repeat([[1.0], [0.0]] * 40, 3, axis=1)
    found = brittleness_by_model({"m": {"a": still, "b": still}})["m"].brittleness
    assert (found.value, found.low) == (0.0, 0.0)
    assert 0.0 < found.high < 0.1
    swapped = np.array([[1, 0], [0, 1]] * 20)
    assert brittleness_by_model({"m": {"a": swapped}})["m"].brittleness.value == 1.0


def test_items_with_a_missing_cell_are_left_out_of_one_model_only():
    """A row of NaN in one model changes nothing for the other; both counts are kept."""
    real = list(languages().values())
    gone = real[1].copy()
    gone[:7] = NAN
    found = brittleness_by_task({"one": {"a": real[0]}, "two": {"a": gone}})["a"]
    assert found.brittleness.value == pytest.approx(ratio([real[0], real[1][7:]]))
    assert found.brittleness.excluded == 7
    with pytest.raises(InvalidValue, match="same items for every model"):
        brittleness_by_task({"one": {"a": real[0]}, "two": {"a": real[1][7:]}})


def test_clusters_count_as_one():
    """Every item twice, named by its cluster: the interval of the items once."""
    cells = languages()["gemma-2-9b-it"]
    once = brittleness_by_model({"m": {"a": cells}})["m"].brittleness
    doubled = {"m": {"a": np.vstack([cells, cells])}}
    codes = {"a": list(range(len(cells))) * 2}
    twice = brittleness_by_model(doubled, clusters=codes)["m"].brittleness
    ignored = brittleness_by_model(doubled)["m"].brittleness
    assert twice.design_effect == pytest.approx(2.0, rel=0.02)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), abs=1e-6)
    assert ignored.high - ignored.low < 0.75 * (twice.high - twice.low)


def test_pooled_intervals_cover():
    """Two benchmarks of different difficulty and size, 200 times: 95 % of the intervals hold."""
    models = {
        "a": ProbitModel(ability=0.6, effects=(0, 0.1, 0.3, 0.4), interaction=0.7),
        "b": ProbitModel(ability=1.4, effects=(0, 0, 0.2, 0.3), interaction=0.4),
    }
    truth = [simulated_truth(m).plugin for m in models.values()]
    target = sum(t["pert"] for t in truth) / sum(t["total"] for t in truth)
    rng = np.random.default_rng(21)
    hits = {"model": 0, "task": 0}
    for _ in range(200):
        tables = {
            name: simulate_outcomes(model, 80 if name == "a" else 140, seed=rng)
            for name, model in models.items()
        }
        low, high = _ends(brittleness_by_model({"m": tables})["m"])
        hits["model"] += low <= target <= high
        one = np.random.default_rng(rng.integers(2**32))
        shared = {
            "x": {"t": tables["b"]},
            "y": {"t": simulate_outcomes(models["b"], 140, seed=one)},
        }
        low, high = _ends(brittleness_by_task(shared)["t"])
        hits["task"] += low <= truth[1]["brittleness"] <= high
    for name, count in hits.items():
        assert binomtest(count, 200, 0.95).pvalue > 1e-3, (name, count)


def _ends(found):
    return found.brittleness.low, found.brittleness.high


def test_hardly_varying_items_are_covered():
    """Two benchmarks in which two or three items vary: at least 95 %."""
    model = ProbitModel(ability=1.0, effects=(0,) * 4, interaction=0.05)
    truth = simulated_truth(model).plugin["brittleness"]
    rng = np.random.default_rng(22)
    hits = 0
    for _ in range(200):
        tables = {"m": {"a": simulate_outcomes(model, 60, seed=rng)}}
        tables["m"]["b"] = simulate_outcomes(model, 60, seed=rng)
        low, high = _ends(brittleness_by_model(tables)["m"])
        hits += low <= truth <= high
    assert binomtest(hits, 200, 0.95, alternative="less").pvalue > 1e-3


def test_random_conditions_cover_where_fixed_ones_do_not():
    """Six perturbations drawn from many: the crossed interval covers, that of items not."""
    rng = np.random.default_rng(24)
    hits = naive = 0
    for _ in range(400):
        drops = 0.2 * rng.normal(size=6) + 0.5 * rng.normal(size=(100, 1))
        drops = drops + rng.normal(size=(100, 6))
        found = random_conditions_average(drops)
        hits += found.low <= 0.0 <= found.high
        half = 1.96 * drops.mean(axis=1).std(ddof=1) / 10
        naive += abs(drops.mean()) <= half
    assert binomtest(hits, 400, 0.95, alternative="less").pvalue > 1e-3
    assert naive < 0.85 * 400


def test_random_conditions_by_hand():
    """2 x 2 drops: MS_I 4.5, MS_J 0.5, MS_E 0.5 give a variance of 4.5/4; edges have a status."""
    found = random_conditions_average([[0.0, 0.0], [1.0, 3.0]])
    assert found.value == 1.0
    ms_i, ms_j, ms_e = 4.0, 1.0, 1.0
    freedom = (ms_i + ms_j - ms_e) ** 2 / (ms_i**2 + ms_j**2 + ms_e**2)
    assert f"{max(1.0, freedom):.1f} degrees" in found.method
    assert random_conditions_average([[0.1], [0.2]]).status == "not_identified"
    assert random_conditions_average([[0.1, NAN], [0.2, 0.1]]).status == "insufficient_data"
    constant = random_conditions_average(np.full((4, 3), 0.1))
    assert (constant.value, constant.low) == (pytest.approx(0.1), None)


def test_pooled_brittleness_uses_every_cell():
    """One table with gaps gives its own plug-in share, and an interval about as wide."""
    cells = languages()["gemma-2-9b-it"].copy()
    cells[np.random.default_rng(25).random(cells.shape) < 0.1] = NAN
    found = brittleness_by_model({"m": {"a": cells}})["m"].brittleness
    own = variance_components(cells).brittleness
    assert found.value == pytest.approx(own.value, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((own.low, own.high), abs=0.01)
    assert found.items == own.items > 0.9 * len(cells)
    by_task = brittleness_by_task({"m": {"a": cells}})["a"].brittleness
    assert by_task.value == pytest.approx(own.value, abs=1e-9)


def test_an_empty_table_has_a_status():
    """No items, no conditions, or nothing at all: insufficient_data, and the parts are not 0."""
    for empty in ([], np.zeros((0, 3)), np.full((4, 3), NAN)):
        for function in (brittleness_by_model, brittleness_by_task):
            (found,) = function({"m": {"a": empty}}).values()
            assert (found.brittleness.value, found.pert.value) == (None, None)
            assert found.brittleness.status == "insufficient_data"
            assert set(found.left_out.values()) == {"insufficient_data"}


def test_pooled_brittleness_needs_six_clusters():
    """With five the value stands without an interval; the clusters are counted."""
    cells = languages()["gemma-2-9b-it"]
    few, enough = ({"a": list(np.arange(len(cells)) % count)} for count in (5, 40))
    found = brittleness_by_model({"m": {"a": cells}}, clusters=few)["m"].brittleness
    assert (found.status, found.low, found.clusters) == ("too_few_clusters", None, 5)
    found = brittleness_by_model({"m": {"a": cells}}, clusters=enough)["m"].brittleness
    assert (found.status, found.clusters) == ("ok", 40)


def test_recipes_like_these_stand_beside_these_recipes():
    """The same value, and the wider interval says how little a dozen recipes tell about others."""
    rng = np.random.default_rng(27)
    drops = 0.097 + 0.06 * rng.normal(size=11) + 0.25 * rng.normal(size=(685, 1))
    drops = drops + 0.3 * rng.normal(size=(685, 11))
    these, like = micro_average(drops), random_conditions_average(drops)
    assert like.value == pytest.approx(these.value)
    assert 1.5 < (like.high - like.low) / (these.high - these.low) < 3.0
    gaps = np.where(rng.random(drops.shape) < 0.1, NAN, drops)
    found = random_conditions_average(gaps)
    assert (found.items, found.excluded) == (685, 0)
    assert found.value == pytest.approx(micro_average(gaps).value)
    assert (found.low, found.high) == pytest.approx((like.low, like.high), abs=0.01)


def test_items_with_equal_drops_keep_the_interval_over_conditions():
    """`micro_average` has no interval then, so a baseline leaves that over conditions as it is."""
    drops, baseline = np.tile([0.1, 0.3, 0.2], (10, 1)), np.full(10, 0.5)
    assert micro_average(drops, baseline=baseline).low is None
    alone = random_conditions_average(drops)
    assert alone.low is not None
    assert random_conditions_average(drops, baseline=baseline) == alone


def test_random_conditions_by_cluster():
    """Copies of every item, named by their cluster, tell no more than the items once."""
    drops = np.random.default_rng(28).normal(0.1, 1.0, (40, 5))
    once = random_conditions_average(drops)
    codes = list(np.arange(40).repeat(3))
    found = random_conditions_average(np.repeat(drops, 3, axis=0), clusters=codes)
    assert (found.low, found.high) == pytest.approx((once.low, once.high), abs=1e-6)
    assert (found.clusters, found.design_effect) == (40, pytest.approx(3.0, rel=0.05))
    few = random_conditions_average(drops, clusters=list(np.arange(40) % 5))
    assert (few.status, few.low, few.value) == ("too_few_clusters", None, once.value)
