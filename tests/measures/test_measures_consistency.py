"""Output consistency and what luck gives, spread, drop rates, and the line through them."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import betabinom, binomtest

from falter.measures.consistency import (
    capability,
    consistency_curve,
    item_std,
    output_consistency,
    random_baseline,
    steadiness,
    steadiness_beside_others,
)
from falter.measures.drops import accuracy, performance_drop_rate
from falter.measures.regression import robustness_regression
from falter.records.errors import InvalidValue, UnknownName
from falter.stats.resampling import bootstrap

NAN = float("nan")
DATA = Path(__file__).parents[1] / "data"


def verdicts():
    """Real outputs: judge -> 100 items x 16 prompts ('1', '2' or None), and the better answer."""
    with (DATA / "llmbar_natural_verdicts.csv").open() as file:
        rows = list(csv.DictReader(file))
    judges = [name for name in rows[0] if name not in ("item", "better")]
    table = {j: [[None if v == "?" else v for v in row[j]] for row in rows] for j in judges}
    return table, [row["better"] for row in rows]


def right(outputs, better):
    return np.array([[v == b for v in row] for row, b in zip(outputs, better, strict=True)], float)


def ends(estimate):
    return estimate.low, estimate.high


def test_consistency_by_hand():
    """Alike after folding, different, one missing, both missing: 1/4 strict, 1/2 valid."""
    outputs = [[" Yes", "yes "], ["a", "b"], ["x", None], [None, None]]
    found = output_consistency(outputs, [[1, 1], [1, 0], [1, 0], [0, 0]])
    assert (found.strict.value, found.strict.items) == (0.25, 4)
    assert (found.valid.value, found.valid.items, found.valid.excluded) == (0.5, 2, 2)
    assert (found.correct.value, found.wrong.value) == (0.25, 0.0)
    three = output_consistency([["a", "a", None]])
    assert (three.strict.value, three.valid.value, three.correct) == (0.0, 1.0, None)
    assert (three.strict.conditions, three.strict.measure) == (3, "output_consistency.strict")


def test_consistency_edges():
    """One configuration, a cell never asked, no items; codes are as good as text."""
    one = output_consistency([["a"]], [[1]])
    assert one.strict.status == one.correct.status == "not_identified"
    assert output_consistency([["a"]]).wrong is None
    asked = output_consistency([["a", "a"], ["a", "b"]], missing=[[False, True], [False, False]])
    assert (asked.strict.value, asked.strict.items, asked.strict.excluded) == (0.0, 1, 1)
    empty = output_consistency(np.zeros((0, 3), dtype=int))
    assert empty.strict.status == "insufficient_data"
    text = [["a", "A", None], ["b", "b", "b"]]
    codes = np.array([[0, 0, -1], [5, 5, 5]])
    assert output_consistency(text) == output_consistency(codes)
    unscored = output_consistency([["a", "a"], ["b", "b"]], [[1, 1], [NAN, NAN]])
    assert (unscored.correct.value, unscored.correct.items) == (1.0, 1)


@pytest.mark.parametrize(
    ("outputs", "match"),
    [
        ([["a", 0.5]], "outputs is 0.5"),
        ([["a"], ["a", "b"]], "as many for every item"),
        (np.zeros(3, dtype=int), "items x configurations"),
    ],
)
def test_wrong_outputs_are_refused(outputs, match):
    """What is neither text nor a code, and rows of different length."""
    with pytest.raises(InvalidValue, match=match):
        output_consistency(outputs)
    with pytest.raises(InvalidValue, match="a score for every output"):
        output_consistency([["a", "b"]], [[1]])
    with pytest.raises(InvalidValue, match="a flag for every cell"):
        output_consistency([["a", "b"]], missing=[[True]])


def test_consistency_of_real_judges():
    """Four judges under 16 prompts: every number by a plain loop over the items."""
    table, better = verdicts()
    for outputs in table.values():
        scores = right(outputs, better)
        found = output_consistency(outputs, scores)
        strict = [len(set(row)) == 1 and row[0] is not None for row in outputs]
        valid = [len(set(row) - {None}) == 1 for row in outputs if len(row) - row.count(None) > 1]
        assert found.strict.value == pytest.approx(np.mean(strict))
        assert found.valid.value == pytest.approx(np.mean(valid))
        good = [s and row[0] == b for s, row, b in zip(strict, outputs, better, strict=True)]
        assert found.correct.value == pytest.approx(np.mean(good))
        assert found.correct.value + found.wrong.value == pytest.approx(found.strict.value)
        assert capability(scores).value == pytest.approx(scores.mean())


@settings(max_examples=25, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 6)), elements=st.integers(-1, 2))
)
def test_the_curve_is_the_average_over_all_choices(codes):
    """For every k the mean over all subsets of k configurations of strict consistency."""
    width = codes.shape[1]
    found = consistency_curve(codes)
    assert found.sizes == tuple(range(2, width + 1))
    for size, estimate in zip(found.sizes, found.consistency, strict=True):
        subsets = [codes[:, list(kept)] for kept in combinations(range(width), size)]
        strict = np.mean([output_consistency(s).strict.value for s in subsets])
        assert estimate.value == pytest.approx(strict, abs=1e-6)
    assert found.consistency[-1].value == pytest.approx(output_consistency(codes).strict.value)


def test_the_curve_of_real_judges_falls():
    """Pairs agree most, all sixteen least; the pairwise interval is that of each item's share."""
    table, _ = verdicts()
    codes = np.array([[-1 if v is None else int(v) for v in row] for row in table["ChatGPT"]])
    curve = consistency_curve(codes).consistency
    values = [c.value for c in curve]
    assert values == sorted(values, reverse=True)
    pairs = [np.mean([a == b != -1 for a, b in combinations(row, 2)]) for row in codes]
    t = scipy.stats.ttest_1samp(pairs, 0.0).confidence_interval()
    assert ends(curve[0]) == pytest.approx((t.low, t.high), abs=1e-6)
    gone = consistency_curve(codes, missing=codes < 0)
    assert gone.consistency[0].excluded == int((codes < 0).any(axis=1).sum())
    assert consistency_curve([["a", "b"]]).consistency[0].value == 0.0
    assert consistency_curve([["a", "b", "a"]]).consistency[0].status == "insufficient_data"


def test_consistency_and_its_curve_cover():
    """Items with rates of their own: 95 % for agreeing pairs, at least that for all eight."""
    rng = np.random.default_rng(61)
    pair = 1 - 2 * (2 * 1 / (3 * 4))
    alike = betabinom(8, 2, 1).pmf(8) + betabinom(8, 2, 1).pmf(0)
    hits = strict = 0
    for _ in range(300):
        codes = (rng.random((120, 8)) < rng.beta(2, 1, size=(120, 1))).astype(int)
        low, high = ends(consistency_curve(codes).consistency[0])
        hits += low <= pair <= high
        low, high = ends(output_consistency(codes).strict)
        strict += low <= alike <= high
    assert binomtest(hits, 300, 0.95).pvalue > 1e-3
    assert binomtest(strict, 300, 0.95, alternative="less").pvalue > 1e-3


def test_luck_is_the_capability_to_the_power_of_the_configurations():
    """p^V with ends between 0 and 1, also at the boundary, where a jackknife left the scale."""
    scores = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 0, 0]], dtype=float)
    found = random_baseline(scores)
    assert found.value == pytest.approx((8 / 12) ** 4)
    assert 0.0 <= found.low < found.value < found.high <= 1.0
    high = random_baseline(np.repeat((np.arange(100) < 97)[:, None], 24, axis=1))
    assert f"{high.value:.3f}" == "0.481"
    assert random_baseline(np.ones((40, 24))).value == pytest.approx(1.0)
    with pytest.raises(InvalidValue, match="0/1 scores"):
        random_baseline([[0.5, 0.2]] * 3)


def mixture(rng, steady, rate, items=60, width=24):
    """Scores of which a share never changes; the others are independent coins."""
    never = rng.random(items) < steady
    fixed, coins = rng.random((items, 1)) < rate, rng.random((items, width)) < rate
    return np.where(never[:, None], fixed, coins).astype(float)


def test_steadiness_of_known_models_is_covered():
    """Deterministic models at 1, coins at 0, mixtures at their share of steady items."""
    rng = np.random.default_rng(59)
    for truth in (0.0, 0.3, 0.7, 1.0):
        hits = 0
        for _ in range(60):
            found = steadiness(mixture(rng, truth, 0.6)).index
            hits += found.low - 1e-9 <= truth <= found.high + 1e-9
        assert binomtest(hits, 60, 0.95).pvalue > 1e-3 or hits == 60, truth
        if truth in (0.0, 1.0):
            assert found.value == pytest.approx(truth, abs=0.02)


def test_steadiness_is_its_formula_and_says_where_it_says_nothing():
    """(O − L)/(1 − L) and its companion; few items, saturated models, one configuration."""
    scores = mixture(np.random.default_rng(1), 0.5, 0.6)
    p, right = scores.mean(), scores.all(axis=1).mean()
    same, luck = right + (~scores.any(axis=1)).mean(), p**24 + (1 - p) ** 24
    found = steadiness(scores)
    assert found.index.value == pytest.approx((same - luck) / (1 - luck))
    assert found.right.value == pytest.approx((right - p**24) / (p - p**24))
    clusters = [item // 6 for item in range(60)]
    assert steadiness(scores, clusters=clusters).index.clusters == 10
    few = steadiness(scores, clusters=[item // 20 for item in range(60)]).index
    assert (few.status, few.low) == ("too_few_clusters", None)
    assert steadiness(scores[:29]).index.status == "insufficient_data"
    assert steadiness(np.ones((60, 24))).index.status == "not_informative"
    assert steadiness(scores[:, :1]).index.status == "not_identified"
    whole = steadiness(np.repeat(scores[:, :1], 24, axis=1))
    assert whole.index.value == whole.right.value == 1.0
    assert whole.index.low > 0.9


def test_difficulty_from_others_tells_steady_from_easy():
    """Steady 1, coins with the others' difficulty near 0, half of each in between."""
    rng = np.random.default_rng(60)
    rates = rng.beta(1.5, 1.5, size=(100, 1))
    others = (rng.random((100, 5 * 24)) < rates).astype(float)
    coins = (rng.random((100, 24)) < rates).astype(float)
    steady = np.repeat((rng.random((100, 1)) < rates).astype(float), 24, axis=1)
    half = np.where((np.arange(100) % 2 == 0)[:, None], steady, coins)
    found = [steadiness_beside_others(s, others).value for s in (steady, half, coins)]
    assert found[0] > 0.99 and 0.3 < found[1] < 0.7 and found[2] < 0.1
    assert steadiness(coins).index.value > found[2]  # which calls easy items steady
    assert steadiness_beside_others(steady, others).low is None
    assert steadiness_beside_others(steady[:20], others[:20]).status == "insufficient_data"
    assert steadiness_beside_others(np.ones((40, 3)), others[:40]).status == "not_informative"
    with pytest.raises(InvalidValue, match="the same 100 items"):
        steadiness_beside_others(steady, others[:50])


def test_std_by_hand():
    """Zeros are told apart; ddof 0; items with a gap are left out and named."""
    scores = [[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0.5] * 4, [1, NAN, 1, 1]]
    found = item_std(scores)
    assert found.values.tolist() == [0.0, 0.0, 0.5, 0.0]
    assert (found.items.tolist(), found.mean.excluded) == ([0, 1, 2, 3], 1)
    assert (found.mean.value, found.all_correct.value) == (0.125, 0.25)
    assert (found.all_wrong.value, found.steady.value) == (0.25, 0.25)
    single = item_std([[1.0], [0.0]])
    assert (single.mean.status, len(single.values)) == ("not_identified", 0)
    assert item_std([[1.0, 0.0]]).mean.status == "insufficient_data"
    for empty in ([], np.zeros((0, 4)), np.full((3, 2), NAN)):
        nothing = item_std(empty)
        assert (nothing.mean.value, nothing.mean.status) == (None, "insufficient_data")
        assert nothing.steady.status == nothing.all_correct.status == "insufficient_data"


def test_std_of_real_scores_is_numpys():
    """Every value, and the t interval of their mean."""
    table, better = verdicts()
    scores = right(table["LLaMA2"], better)
    found = item_std(scores)
    assert found.values == pytest.approx(scores.std(axis=1))
    t = scipy.stats.ttest_1samp(scores.std(axis=1), 0.0).confidence_interval()
    assert ends(found.mean) == pytest.approx((t.low, t.high))
    assert found.all_correct.value == accuracy(scores.all(axis=1).astype(float)).value


def test_mean_std_covers():
    """The mean standard deviation of two fair answers is 1/4: covered 95 %."""
    rng = np.random.default_rng(63)
    hits = 0
    for _ in range(300):
        found = item_std((rng.random((80, 2)) < 0.5).astype(float)).mean
        hits += found.low <= 0.25 <= found.high
    assert binomtest(hits, 300, 0.95).pvalue > 1e-3


def test_drop_rate_by_hand():
    """Sums 4 against 3 and 1: (1/4 + 3/4)/2; never averaged over items."""
    original = [1, 1, 1, 1, 0]
    perturbed = [[1, 0], [1, 0], [0, 0], [1, 0], [0, 1]]
    found = performance_drop_rate(original, perturbed, replications=200)
    assert (found.rate.value, found.rate.items, found.skipped) == (0.5, 5, 0)
    relative = bootstrap(
        np.column_stack([original, perturbed]),
        lambda rows: 1 - rows[:, 1:].sum() / 2 / rows[:, 0].sum() if rows[:, 0].any() else NAN,
    )
    assert relative.low <= found.rate.value <= relative.high
    gain = performance_drop_rate([0.5, 0.5], [1.0, 1.0], replications=50)
    assert gain.rate.value == -1.0


def test_the_printed_formula_rewards_failure():
    """As printed a failure is skipped, an improvement is +100 %, a partial loss is negative."""
    found = performance_drop_rate([1, 0, 0.5], [[0], [1], [0.25]], convention="paper")
    assert (found.rate.measure, found.skipped) == ("pdr_doc003", 1)
    assert found.rate.value == pytest.approx((1.0 + -1.0) / 2)
    failure = performance_drop_rate([1, 1], [[0], [0]], convention="paper")
    assert (failure.rate.value, failure.skipped) == (None, 2)
    assert failure.rate.status == "undefined_zero_denominator"


def test_all_pairs():
    """Every configuration is the reference once."""
    means = np.array([0.5, 0.4, 0.8])
    table = np.tile(means, (4, 1))
    found = performance_drop_rate(table[:, 0], table[:, 1:], convention="pairwise", replications=50)
    pairs = [abs(1 - means[v] / means[o]) for o in range(3) for v in range(3) if o != v]
    assert found.rate.value == pytest.approx(np.mean(pairs))
    signed = [means[o] - means[v] for o in range(3) for v in range(3) if o != v]
    assert np.mean(signed) == pytest.approx(0.0)
    rates = [1 - means[v] / means[o] for o in range(3) for v in range(3) if o != v]
    assert np.mean(rates) < 0.0


def test_drop_rate_edges():
    """An original of 0, one item, a name that is none."""
    zero = performance_drop_rate([0, 0], [[1], [1]]).rate
    assert (zero.value, zero.status) == (None, "undefined_zero_denominator")
    assert performance_drop_rate([1], [[1]]).rate.status == "insufficient_data"
    assert performance_drop_rate([1.0, 1.0], [[0.0], [NAN]]).rate.status == "insufficient_data"
    one = performance_drop_rate([1.0, NAN], [[0.5], [0.5]], convention="paper").rate
    assert one.status == "insufficient_data"
    with pytest.raises(UnknownName, match="did you mean 'promptbench'"):
        performance_drop_rate([1, 1], [[1], [1]], convention="promptbnch")
    with pytest.raises(InvalidValue, match="original, perturbed"):
        performance_drop_rate([1, 1], [[1]])


def test_drop_rate_covers():
    """A drop of a quarter, BCa: 95 %."""
    rng = np.random.default_rng(64)
    hits = 0
    for seed in range(200):
        original = rng.random(150) < 0.7
        perturbed = original[:, None] & (rng.random((150, 2)) < [0.9, 0.6])
        found = performance_drop_rate(original, perturbed, replications=300, seed=seed).rate
        hits += found.low <= 0.25 <= found.high
    assert binomtest(hits, 200, 0.95).pvalue > 1e-3


def test_regression_is_statsmodels():
    """Slope, intercept, both intervals and R^2; a point without a number is left out."""
    rng = np.random.default_rng(65)
    x = rng.random(20)
    y = 1.05 * x - 0.2 + 0.05 * rng.normal(size=20)
    found = robustness_regression([*x, NAN], [*y, 0.5])
    fit = sm.OLS(y, sm.add_constant(x)).fit()
    assert (found.intercept.value, found.slope.value) == pytest.approx(tuple(fit.params))
    assert [ends(found.intercept), ends(found.slope)] == [
        pytest.approx(tuple(row)) for row in fit.conf_int()
    ]
    assert found.r_squared.value == pytest.approx(fit.rsquared)
    assert (found.slope.items, found.slope.excluded) == (20, 1)


def test_regression_edges():
    """Constant performance, too few points, constant robustness, and lists that do not fit."""
    flat = robustness_regression([0.5, 0.5, 0.5], [0.1, 0.2, 0.3])
    assert (flat.slope.value, flat.slope.status) == (None, "undefined_zero_variance")
    assert robustness_regression([0.5, 0.6], [0.1, 0.2]).slope.status == "insufficient_data"
    level = robustness_regression([0.1, 0.2, 0.3], [0.5, 0.5, 0.5])
    assert (level.slope.value, level.r_squared.status) == (
        pytest.approx(0.0),
        "undefined_zero_variance",
    )
    assert robustness_regression([0.1, None, 0.3], [0.1, 0.2, None]).slope.excluded == 2
