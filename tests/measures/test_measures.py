"""The measures: hand-worked matrices, every edge, and foreign analyses of variance."""

from __future__ import annotations

import csv
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score
from statsmodels.formula.api import ols

from falter.measures.averages import group_average, macro_average, micro_average
from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.flips import noise_floor
from falter.measures.variance import variance_components
from falter.records.errors import InvalidValue, UnknownName
from falter.stats.resampling import bootstrap

NAN = float("nan")
METHODS = ("plugin", "crossed")
LANGUAGES = Path(__file__).parents[1] / "data" / "truthfulqa_multi_languages.csv"


def named(result):
    """The estimates of a result by field name."""
    return {field.name: getattr(result, field.name) for field in fields(result)}


def languages():
    """Real outcomes: one model, 817 questions in five languages, one cell missing."""
    with LANGUAGES.open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[float(cell) if cell else NAN for cell in row[1:]] for row in rows])


def two_way(table):
    """Mean squares of items, conditions and the rest, by statsmodels."""
    items, width = table.shape
    frame = pd.DataFrame(
        {
            "y": table.ravel(),
            "item": np.repeat(np.arange(items), width).astype(str),
            "condition": np.tile(np.arange(width), items).astype(str),
        }
    )
    found = sm.stats.anova_lm(ols("y ~ C(item) + C(condition)", frame).fit())
    return (found["sum_sq"] / found["df"]).tolist()


@pytest.mark.parametrize("real", [False, True])
def test_crossed_is_statsmodels_two_way_anova(real):
    """All three components and both ratios follow from statsmodels' mean squares."""
    rng = np.random.default_rng(8)
    table = rng.normal(size=(30, 1)) + 0.4 * np.arange(5) + rng.normal(size=(30, 5))
    table = table if real else (table > 0.8).astype(float)
    item, condition, rest = two_way(table)
    sigma = ((item - rest) / 5, (condition - rest) / 30, rest)
    found = named(variance_components(table, "crossed"))
    assert [found[k].value for k in ("item", "condition", "interaction")] == pytest.approx(sigma)
    assert found["brittleness_main"].value == pytest.approx(sigma[1] / sum(sigma))
    assert found["brittleness_interaction"].value == pytest.approx(rest / sum(sigma))


def test_plugin_by_hand():
    """Rows 11, 10, 00: item means 1, 1/2, 0; data 1/6, pert 1/12, total 1/4, brittleness 1/3."""
    found = named(variance_components([[1, 1], [1, 0], [0, 0]]))
    values = [found[k].value for k in ("data", "pert", "total", "brittleness")]
    assert values == pytest.approx([1 / 6, 1 / 12, 1 / 4, 1 / 3])
    assert (found["run"].status, found["run"].value) == ("not_identified", None)


@given(arrays(float, st.tuples(st.integers(2, 12), st.integers(2, 6)), elements=st.floats(-9, 9)))
def test_plugin_identity_is_exact_and_every_record_is_filled(table):
    """total = data + pert is the variance of all cells; no field is NaN, no interval excludes."""
    plugin = named(variance_components(table))
    total = plugin["data"].value + plugin["pert"].value
    assert plugin["total"].value == total == pytest.approx(table.var(), abs=1e-9)
    for method in METHODS:
        for name, estimate in named(variance_components(table, method)).items():
            assert estimate.measure == f"{method}.{name}"
            assert estimate.estimand
            assert estimate.method
            assert (estimate.items, estimate.conditions) == table.shape
            assert (estimate.excluded, estimate.level, estimate.signature) == (0, 0.95, "")
            assert (estimate.value is None) == (estimate.status != "ok")
            if estimate.low is not None:
                assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.parametrize(
    ("table", "status"),
    [
        (np.ones((5, 1)), "not_identified"),
        (np.ones((1, 4)), "insufficient_data"),
        (np.ones((0, 4)), "insufficient_data"),
        (np.array([[1, NAN], [1, 0]]), "insufficient_data"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_decompose(table, status, method):
    """One condition is not identified, fewer than two whole items are insufficient."""
    for estimate in named(variance_components(table, method)).values():
        assert (estimate.value, estimate.low, estimate.status) == (None, None, status)


@pytest.mark.parametrize("constant", [0.0, 0.3, 1.0])
def test_no_variance_leaves_the_ratios_undefined(constant):
    """All right or all wrong: components 0, ratios undefined, and never a number for them."""
    for method in METHODS:
        found = named(variance_components(np.full((6, 3), constant), method))
        for name, estimate in found.items():
            if "brittleness" in name:
                assert (estimate.value, estimate.status) == (None, "undefined_zero_variance")
            elif estimate.status == "ok":
                assert estimate.value == 0.0


def test_constant_rows_and_equal_means():
    """Rows that never vary: 0, with an upper bound; items all alike in the mean: 1."""
    still = np.repeat([[1.0], [0.0], [1.0], [0.0]] * 20, 3, axis=1)
    for method, name in (
        ("plugin", "brittleness"),
        ("crossed", "brittleness_main"),
        ("crossed", "brittleness_interaction"),
    ):
        found = named(variance_components(still, method))[name]
        assert (found.value, found.low) == (0.0, 0.0)
        assert 0.0 < found.high < 0.08
    swapped = named(variance_components([[1, 0], [0, 1], [1, 0], [0, 1]]))
    assert (swapped["data"].value, swapped["brittleness"].value) == (0.0, 1.0)
    assert swapped["brittleness"].low is None


def test_negative_components_are_reported_raw_and_cut_in_ratios():
    """By hand: 10, 01 has MS_item 0 and MS_rest 1, so item = -1/2 and condition = -1/2."""
    found = named(variance_components([[1, 0], [0, 1]], "crossed"))
    assert [found[k].value for k in ("item", "condition", "interaction")] == [-0.5, -0.5, 1.0]
    assert (found["brittleness_main"].value, found["brittleness_interaction"].value) == (0.0, 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_items_with_a_missing_cell_count_with_the_cells_they_have(method):
    """Near the result of the whole rows, closer to the complete table; only empty rows are out."""
    table = languages()[:300]
    whole = named(variance_components(table[~np.isnan(table).any(axis=1)], method))
    table[::3, 2] = table[9, :] = NAN
    found = named(variance_components(table, method))
    for name, estimate in found.items():
        assert (estimate.items, estimate.excluded, estimate.conditions) == (299, 1, 5)
        if estimate.value is not None:
            assert estimate.value == pytest.approx(whole[name].value, abs=0.02)
            assert estimate.low < whole[name].value < estimate.high


def test_runs_by_hand():
    """Cells with two runs give up what differs between them: total = data + pert + run."""
    table = np.array([[[1, 1], [1, 0]], [[0, 0], [0, 1.0]]])
    found = named(variance_components(table))
    assert found["run"].value == pytest.approx(0.125)
    assert found["data"].value == pytest.approx(np.var([0.75, 0.25]))
    assert found["pert"].value == pytest.approx(np.mean([np.var([1, 0.5]), np.var([0, 0.5])]))
    assert found["total"].value == pytest.approx(table.var())
    assert named(variance_components(table, "crossed"))["run"].value == pytest.approx(0.25)


def test_runs_are_statsmodels_three_mean_squares():
    """Run and interaction follow from MS_E and MS_IJ of the replicated two-way layout."""
    table = np.random.default_rng(3).normal(size=(12, 4, 3))
    table += np.random.default_rng(4).normal(size=(12, 4, 1))
    frame = pd.DataFrame(
        [(y, f"i{i}", f"c{j}") for (i, j, _), y in np.ndenumerate(table)], columns=["y", "i", "c"]
    )
    anova = sm.stats.anova_lm(ols("y ~ C(i) * C(c)", frame).fit())
    item, condition, both, error = (anova["sum_sq"] / anova["df"]).tolist()
    found = named(variance_components(table, "crossed"))
    expected = ((item - both) / 12, (condition - both) / 36, (both - error) / 3, error)
    names = ("item", "condition", "interaction", "run")
    assert [found[k].value for k in names] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("method", "names"),
    [("plugin", ("brittleness", "pert")), ("crossed", ("brittleness_interaction",))],
)
def test_intervals_agree_with_the_bootstrap_of_items(method, names):
    """On real outcomes the jackknife interval is that of 250 BCa draws of items, nearly.

    Of every third item: BCa leaves each out in turn, so its cost grows with their square.
    """
    table, drawn = languages(), {}
    table = table[~np.isnan(table).any(axis=1)][::3]

    def value(rows, name):
        """The same draws give each name its value."""
        key = rows.tobytes()
        if key not in drawn:
            found = named(variance_components(rows, method))
            drawn[key] = {each: found[each].value for each in names}
        return drawn[key][name]

    for name in names:
        ours = named(variance_components(table, method))[name]
        theirs = bootstrap(table, lambda rows, name=name: value(rows, name), replications=250)
        slack = 0.25 * (ours.high - ours.low)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=slack)


def test_wrong_arguments_are_named():
    """A shape or method that cannot be is refused, with the nearest method."""
    with pytest.raises(InvalidValue, match="outcomes is"):
        variance_components([1, 0, 1])
    with pytest.raises(UnknownName, match="did you mean 'crossed'"):
        variance_components([[1, 0], [0, 1]], "crosed")
    with pytest.raises(InvalidValue, match="infinite"):
        variance_components([[1, np.inf], [0, 1]])
    with pytest.raises(InvalidValue, match="groups is"):
        macro_average([[1.0, 0.0]], ["a"])


def test_accuracy():
    """0/1 scores are the share that scikit-learn counts; of no known scale: Student's t."""
    scores = [1, 0, 1, 1, NAN]
    found = accuracy(scores)
    assert found.value == accuracy_score([1, 1, 1, 1], [1, 0, 1, 1])
    assert (found.items, found.excluded, found.method) == (4, 1, "agresti-coull")
    real = accuracy([5, 7, 9])
    low, high = scipy.stats.ttest_1samp([5, 7, 9], 0).confidence_interval()
    assert (real.value, real.low, real.high) == pytest.approx((7, low, high))
    assert accuracy([NAN]).status == accuracy([0.4]).status == "insufficient_data"
    few = accuracy([1.0, 0.0], clusters=["a", "a"])
    assert (few.value, few.status, few.low, few.clusters) == (0.5, "too_few_clusters", None, 1)
    with pytest.raises(InvalidValue, match="scores is"):
        accuracy([[1.0]])


def test_accuracy_drop_fills_the_record():
    """A loss is positive, in fractions, with its test and both counts."""
    found = accuracy_drop([1, 1, 1, 0, NAN], [0, 1, 0, 0, 1])
    assert (found.value, found.items, found.excluded, found.conditions) == (0.5, 4, 1, 2)
    assert found.p_value == pytest.approx(0.25)
    assert (found.measure, found.signature) == ("accuracy_drop", "")
    assert accuracy_drop([1], [0]).status == "insufficient_data"


def test_averages_weigh_conditions_and_groups():
    """Drops of 10, 20 and 60 %: micro 30 %, macro over (10, 20) and (60) 37.5 %."""
    drops = np.zeros((10, 3))
    drops[:1, 0] = drops[:2, 1] = drops[:6, 2] = 1.0
    assert group_average(drops[:, :2]).value == pytest.approx(0.15)
    assert micro_average(drops).value == pytest.approx(0.3)
    macro = macro_average(drops, ["a", "a", "b"])
    assert (macro.value, macro.conditions) == (pytest.approx(0.375), 3)
    gone = np.column_stack([drops, np.full(10, NAN)])
    assert macro_average(gone, ["a", "a", "b", "c"]).value == pytest.approx(0.375)
    assert micro_average(gone).conditions == 3
    nothing = macro_average(np.full((4, 2), NAN), ["a", "b"])
    assert (nothing.value, nothing.status, nothing.excluded) == (None, "insufficient_data", 4)


def test_average_is_narrower_than_its_worst_and_knows_clusters():
    """One interval from one number an item; together-sampled items widen it."""
    table = languages()
    drops = table[:, :1] - table[:, 1:]
    average = micro_average(drops)
    single = accuracy_drop(table[:, 0], table[:, 1])
    assert average.high - average.low < single.high - single.low
    doubled = np.concatenate([drops, drops])
    clusters = list(range(len(drops))) * 2
    wide = micro_average(doubled, clusters=clusters)
    assert wide.high - wide.low == pytest.approx(average.high - average.low, rel=0.02)


def test_noise_floor():
    """2 of 8 differ; the interval is that of a rate; nothing asked twice is insufficient."""
    found = noise_floor([1, 1, 0, 0, 1, 0, 1, 0, NAN], [1, 0, 0, 1, 1, 0, 1, 0, 1])
    plain = accuracy([1.0] * 2 + [0.0] * 6)
    assert (found.value, found.low, found.high) == (0.25, plain.low, plain.high)
    assert (found.items, found.excluded) == (8, 1)
    assert noise_floor([NAN], [1.0]).status == "insufficient_data"
    with pytest.raises(InvalidValue, match="again is"):
        noise_floor([1.0], [1.0, 0.0])
