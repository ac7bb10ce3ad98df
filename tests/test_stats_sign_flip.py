"""Sign flips and the worst of several: by hand, against scipy, and their promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from scipy.stats import binomtest

from falter.core.errors import DuplicateName, InvalidValue
from falter.stats import (
    ProbitModel,
    item_mean,
    max_t,
    mcnemar,
    paired_difference,
    sign_flip_test,
    simulate_outcomes,
    simulated_truth,
    split_worst,
)

NAN = float("nan")
UNEVEN = ProbitModel(ability=0.8, effects=(0.0, 0.0, 0.05, 0.1, 0.3, 0.35))


def test_by_hand():
    """Differences 1, 2, 3 and 0: of 8 arrangements one is as large, two count both ways."""
    first, second = [3.0, 4.0, 5.0, 1.0], [2.0, 2.0, 2.0, 1.0]
    found = sign_flip_test(first, second)
    assert (found.value, found.p_value, found.flips, found.exact) == (1.5, 2 / 8, 8, True)
    assert sign_flip_test(first, second, alternative="loss").p_value == 1 / 8
    assert sign_flip_test(first, second, alternative="gain").p_value == 1.0
    # Two clusters of differences 3 and 3: two arrangements of four are as large.
    together = sign_flip_test(first, second, clusters=["a", "a", "b", "b"])
    assert (together.p_value, together.clusters) == (2 / 4, 2)


@pytest.mark.parametrize(("b", "c"), [(5, 1), (9, 2), (0, 6), (4, 4)])
def test_outcomes_are_mcnemars_exact_test(b, c):
    """For 0/1 scores the full list of arrangements is the binomial."""
    found = sign_flip_test([1.0] * b + [0.0] * c + [1.0] * 9, [0.0] * b + [1.0] * c + [1.0] * 9)
    assert found.p_value == pytest.approx(mcnemar(b, c).exact_p)


@pytest.mark.parametrize("alternative", ["two-sided", "loss", "gain"])
def test_full_list_is_that_of_scipy(alternative):
    """Every arrangement of eleven tied differences gives scipy's p-value."""
    rng = np.random.default_rng(3)
    first, second = np.round(rng.random((2, 11)), 1)
    theirs = scipy.stats.permutation_test(
        (first - second,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative={"two-sided": "two-sided", "loss": "greater", "gain": "less"}[alternative],
    )
    found = sign_flip_test(first, second, alternative=alternative)
    assert found.exact
    assert found.p_value == pytest.approx(theirs.pvalue)


def test_draws_come_near_the_t_test_and_are_never_zero():
    """Beyond 16 differences draws are seeded, near Student's p, and 1/(m + 1) at least."""
    rng = np.random.default_rng(4)
    first = rng.random(100)
    second = first - 0.03 + 0.15 * rng.normal(size=100)
    found = sign_flip_test(first, second)
    assert found.p_value == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue, abs=0.02)
    assert (found.exact, found.flips) == (False, 9999)
    assert found == sign_flip_test(first, second)
    assert found.p_value != sign_flip_test(first, second, seed=1).p_value
    assert sign_flip_test(first, first - 1.0, replications=99).p_value == 1 / 100


def test_sign_flip_edges():
    """No difference is no evidence; too little is said; impossible requests are refused."""
    assert sign_flip_test([0.5, 0.7], [0.5, 0.7]).p_value == 1.0
    for first, second, clusters in (([1.0, NAN], [0.5, 1.0], None), ([1, 2], [0, 0], ["a", "a"])):
        found = sign_flip_test(first, second, clusters=clusters)
        assert (found.value, found.p_value, found.status) == (None, None, "insufficient_data")
    assert sign_flip_test([1.0, NAN, 2.0], [0.5, 1.0, 0.0]).excluded == 1
    with pytest.raises(InvalidValue, match="alternative is 'greater'"):
        sign_flip_test([1.0], [1.0], alternative="greater")
    with pytest.raises(InvalidValue, match="replications is 0"):
        sign_flip_test([1.0], [1.0], replications=0)
    with pytest.raises(InvalidValue, match="baseline, perturbed is"):
        sign_flip_test([1.0, 2.0], [1.0])
    with pytest.raises(InvalidValue, match="infinite"):
        sign_flip_test([1.0, np.inf], [1.0, 1.0])


@pytest.mark.parametrize(("items", "clusters"), [(12, 1), (60, 3)])
def test_no_effect_is_rejected_in_five_percent(items, clusters):
    """Heavy-tailed symmetric differences, in clusters or alone: 5 % at most, and near it."""
    rng = np.random.default_rng(41)
    labels = list(np.arange(items) // clusters)
    rejected = 0
    for seed in range(800):
        shared = np.repeat(rng.standard_t(3, size=items // clusters), clusters)
        gaps = shared + rng.standard_t(3, size=items)
        found = sign_flip_test(gaps, 0 * gaps, clusters=labels, replications=199, seed=seed)
        rejected += found.p_value <= 0.05
    assert binomtest(rejected, 800, 0.05).pvalue > 1e-3


def brute(gaps: np.ndarray) -> tuple[list[float], list[float]]:
    """Raw and step-down p-values from every arrangement, with plain loops."""
    size = np.sqrt((gaps**2).sum(axis=0))
    observed = gaps.sum(axis=0) / size
    order = sorted(range(gaps.shape[1]), key=lambda j: -observed[j])
    alone, among = np.zeros(len(order)), np.zeros(len(order))
    for signs in itertools.product((-1, 1), repeat=len(gaps)):
        flipped = np.array(signs) @ gaps / size
        alone += flipped >= observed - 1e-9
        for place, j in enumerate(order):
            among[j] += max(flipped[k] for k in order[place:]) >= observed[j] - 1e-9
    highest, adjusted = 0.0, np.zeros(len(order))
    for j in order:
        highest = adjusted[j] = max(highest, among[j] / 2 ** len(gaps))
    return list(alone / 2 ** len(gaps)), list(adjusted)


def test_max_t_is_every_arrangement_counted_by_hand():
    """Raw and adjusted p-values of nine items and four perturbations are those of plain loops."""
    rng = np.random.default_rng(5)
    gaps = rng.normal(size=(9, 4)) + rng.normal(size=(9, 1)) + [0.0, 0.3, 0.6, 0.9]
    found = max_t(np.zeros(9), -gaps, names=["a", "b", "c", "d"])
    alone, adjusted = brute(gaps)
    assert [c.p_value for c in found.conditions] == pytest.approx(alone)
    assert [c.adjusted_p for c in found.conditions] == pytest.approx(adjusted)
    assert [c.value for c in found.conditions] == pytest.approx(gaps.mean(axis=0))
    assert found.value == max(c.value for c in found.conditions)
    one = max_t(np.zeros(9), -gaps[:, :1])
    assert one.conditions[0].p_value == one.conditions[0].adjusted_p
    assert one.conditions[0].p_value == pytest.approx(
        sign_flip_test(gaps[:, 0], np.zeros(9), alternative="loss").p_value
    )


def test_max_t_of_the_worst_is_that_of_scipy():
    """The worst one's adjusted p-value is scipy's for the largest statistic under sign flips."""
    rng = np.random.default_rng(6)
    gaps = rng.normal(size=(10, 3)) + 0.5
    scaled = gaps / np.sqrt((gaps**2).sum(axis=0))
    theirs = scipy.stats.permutation_test(
        (np.ones(10),),
        lambda signs, axis: np.max(np.moveaxis(signs, axis, -1) @ scaled, axis=-1),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    found = max_t(np.zeros(10), -gaps)
    assert min(c.adjusted_p for c in found.conditions) == pytest.approx(theirs.pvalue)


def test_max_t_pays_only_for_what_differs():
    """Five copies cost nothing; five independent perturbations cost about what Bonferroni asks."""
    rng = np.random.default_rng(7)
    column = rng.normal(size=(80, 1)) + 0.2
    alone = paired_difference(column[:, 0], np.zeros(80), level=0.9).interval.low
    copies = max_t(np.zeros(80), -np.repeat(column, 5, axis=1))
    assert [c.adjusted_p for c in copies.conditions] == [c.p_value for c in copies.conditions]
    assert copies.low == pytest.approx(alone, abs=0.01)
    others = np.hstack([column, rng.normal(size=(80, 4))])
    several = max_t(np.zeros(80), -others)
    strict = paired_difference(column[:, 0], np.zeros(80), level=1 - 2 * 0.05 / 5).interval.low
    assert several.conditions[0].low == pytest.approx(strict, abs=0.015)
    assert several.conditions[0].adjusted_p >= several.conditions[0].p_value
    both = max_t(np.zeros(80), -others, alternative="two-sided").conditions[0]
    assert both.low < several.conditions[0].low < both.value < both.high
    assert several.conditions[0].high is None


def test_max_t_bounds_are_the_intervals_of_0_1_scores():
    """A bound is `item_mean`'s lower end at a wider level, so it survives rare changes."""
    outcomes = simulate_outcomes(UNEVEN, 200, seed=8)
    found = max_t(outcomes[:, 0], outcomes[:, 1:])
    for place, condition in enumerate(found.conditions):
        gaps = outcomes[:, 0] - outcomes[:, 1 + place]
        assert condition.low < item_mean(gaps, level=0.9).interval.low
        assert condition.low > item_mean(gaps, level=0.995).interval.low
    assert found.worst in ("3", "4")
    assert found.low == next(c.low for c in found.conditions if c.name == found.worst)
    assert found == max_t(outcomes[:, 0], outcomes[:, 1:])


def test_max_t_with_gaps_and_clusters():
    """Missing cells are no differences, clusters flip together, and what has no items has no p."""
    rng = np.random.default_rng(9)
    base, other = np.zeros(40), rng.normal(size=(40, 3)) - 0.4
    other[::4, 0] = NAN
    other[:, 2] = NAN
    other[3] = NAN
    found = max_t(base, other, names=["some", "all", "none"])
    assert [c.items for c in found.conditions] == [29, 39, 0]
    assert found.conditions[2].status == "insufficient_data"
    assert (found.conditions[2].adjusted_p, found.conditions[2].low) == (None, None)
    assert (found.items, found.excluded, found.status) == (39, 1, "ok")
    codes = list(np.arange(40) // 8)
    wide = max_t(base, np.repeat(other[:5], 8, axis=0), clusters=codes)
    assert wide.clusters == 4
    assert min(c.p_value for c in wide.conditions if c.p_value is not None) >= 1 / 16
    nothing = max_t([1.0, 1.0], [[NAN], [1.0]])
    assert (nothing.value, nothing.worst, nothing.status) == (None, None, "insufficient_data")
    unchanged = max_t(np.ones(30), np.ones((30, 2)))
    assert (unchanged.value, unchanged.conditions[0].adjusted_p) == (0.0, 1.0)
    assert unchanged.low < 0.0
    with pytest.raises(DuplicateName, match="'a' is named twice"):
        max_t(base, other, names=["a", "b", "a"])
    with pytest.raises(InvalidValue, match="names is"):
        max_t(base, other, names=["a"])
    with pytest.raises(InvalidValue, match="baseline, perturbed is"):
        max_t(base, base)
    with pytest.raises(InvalidValue, match="infinite"):
        max_t(base, other * np.inf)


def test_max_t_errs_in_five_percent_of_families():
    """Of 400 families of five perturbations that do nothing, 5 % or fewer lose one."""
    model = ProbitModel(ability=0.5, effects=(0.0,) * 6)
    rng = np.random.default_rng(42)
    lost = 0
    for seed in range(400):
        outcomes = simulate_outcomes(model, 80, seed=rng)
        found = max_t(outcomes[:, 0], outcomes[:, 1:], replications=199, seed=seed)
        lost += min(c.adjusted_p or 1.0 for c in found.conditions) <= 0.05
    assert binomtest(lost, 400, 0.05, alternative="greater").pvalue > 1e-3
    assert lost > 4


def test_the_worst_is_bounded_and_the_split_is_unbiased():
    """The picked drop is biased up; its bound holds in 95 %, and the other half is unbiased."""
    truth = simulated_truth(UNEVEN).drops
    rng = np.random.default_rng(43)
    held, picked, split = 0, [], []
    for seed in range(300):
        outcomes = simulate_outcomes(UNEVEN, 150, seed=rng)
        base, other = outcomes[:, 0], outcomes[:, 1:]
        found = max_t(base, other, replications=199, seed=seed)
        held += found.low <= truth[int(found.worst)]
        picked.append(found.value - truth[int(found.worst)])
        half = split_worst(base, other, seed=seed)
        split.append(half.difference.value - truth[int(half.worst)])
    assert binomtest(held, 300, 0.95, alternative="less").pvalue > 1e-3
    assert scipy.stats.ttest_1samp(picked, 0.0, alternative="greater").pvalue < 1e-3
    assert scipy.stats.ttest_1samp(split, 0.0).pvalue > 1e-3


def test_split_worst_by_hand():
    """Half of the items pick, whole clusters at a time, and none of them measures."""
    base = np.ones(40)
    other = np.ones((40, 2))
    other[:, 1] = 0.0
    found = split_worst(base, other, names=["kind", "cruel"])
    assert (found.worst, found.chosen_on, found.difference.items) == ("cruel", 20, 20)
    assert found.difference.value == 1.0
    together = split_worst(base, other, clusters=list(np.arange(40) // 10))
    assert (together.difference.items, together.difference.clusters) == (20, 2)
    nothing = split_worst([1.0, NAN], [[NAN], [1.0]])
    assert (nothing.worst, nothing.difference, nothing.status) == (None, None, "insufficient_data")
