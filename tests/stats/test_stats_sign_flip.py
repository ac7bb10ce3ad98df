"""Sign flips and several means at once: by hand, against scipy, and their promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.stats import binomtest

from falter.records.errors import InvalidValue
from falter.stats.mean import item_mean
from falter.stats.multiplicity import max_t
from falter.stats.paired import sign_flip_test
from probit import ProbitModel, simulate_outcomes

NAN = float("nan")
UNEVEN = ProbitModel(ability=0.8, effects=(0.0, 0.0, 0.05, 0.1, 0.3, 0.35))


def test_by_hand():
    """Differences 1, 2, 3 and 0: of 8 arrangements two are as large."""
    first, second = [3.0, 4.0, 5.0, 1.0], [2.0, 2.0, 2.0, 1.0]
    found = sign_flip_test(first, second)
    assert (found.value, found.p_value, found.flips, found.exact) == (1.5, 2 / 8, 8, True)
    # Six clusters of two halves: the same eight arrangements of what is not 0.
    halves = np.repeat([[1.0, 2.0, 3.0, 0.0, 0.0, 0.0]], 2) / 2
    together = sign_flip_test(halves, 0 * halves, clusters=[*"aabbccddeeff"])
    assert (together.p_value, together.clusters) == (2 / 8, 6)
    few = sign_flip_test(first, second, clusters=["a", "a", "b", "b"])
    assert (few.value, few.p_value, few.status) == (1.5, None, "too_few_clusters")


@pytest.mark.parametrize(("b", "c"), [(5, 1), (9, 2), (0, 6), (4, 4)])
def test_outcomes_are_mcnemars_exact_test(b, c):
    """For 0/1 scores the full list of arrangements is the binomial."""
    found = sign_flip_test([1.0] * b + [0.0] * c + [1.0] * 9, [0.0] * b + [1.0] * c + [1.0] * 9)
    assert found.p_value == pytest.approx(binomtest(b, b + c).pvalue)


def test_full_list_is_that_of_scipy():
    """Every arrangement of eleven tied differences gives scipy's p-value."""
    rng = np.random.default_rng(3)
    first, second = np.round(rng.random((2, 11)), 1)
    theirs = scipy.stats.permutation_test(
        (first - second,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    found = sign_flip_test(first, second)
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
    found = sign_flip_test([1.0, NAN], [0.5, 1.0])
    assert (found.value, found.p_value, found.status) == (None, None, "insufficient_data")
    assert sign_flip_test([1.0, NAN, 2.0], [0.5, 1.0, 0.0]).excluded == 1
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


def test_max_t_pays_only_for_what_differs():
    """Five copies cost nothing; five independent columns cost about what Bonferroni asks."""
    rng = np.random.default_rng(7)
    column = rng.normal(size=(80, 1)) + 0.2
    alone = item_mean(column[:, 0])
    copies = max_t(np.repeat(column, 5, axis=1), replications=999)
    assert copies.tail == pytest.approx(0.05, rel=0.25)
    for member in copies.members:
        assert member.adjusted_p == pytest.approx(alone.p_value, rel=0.3)
        assert member.together.low == pytest.approx(alone.interval.low, abs=0.02)
    several = max_t(np.hstack([column, rng.normal(size=(80, 4))]), replications=999)
    assert several.tail == pytest.approx(1 - 0.95 ** (1 / 5), rel=0.3)
    assert several.members[0].together.low < alone.interval.low
    one = max_t(column).members[0]
    assert one.adjusted_p == pytest.approx(alone.p_value)
    assert one.together.low == pytest.approx(alone.interval.low)


def test_max_t_of_normal_columns_is_scipys_multivariate_normal():
    """With many items the tail is that of the largest of correlated normal variables."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(3000, 4)) + rng.normal(size=(3000, 1))
    found = max_t(table, replications=4000)
    q = scipy.stats.norm.isf(found.tail / 2)
    inside = scipy.stats.multivariate_normal(cov=np.corrcoef(table.T)).cdf(
        np.full(4, q), lower_limit=np.full(4, -q)
    )
    assert inside == pytest.approx(0.95, abs=0.015)


def test_max_t_intervals_are_those_of_0_1_scores():
    """An interval together is `item_mean`'s at a wider level, and agrees with its own test."""
    outcomes = simulate_outcomes(UNEVEN, 200, seed=8)
    gaps = outcomes[:, :1] - outcomes[:, 1:]
    found = max_t(gaps)
    for column, member in zip(gaps.T, found.members, strict=True):
        expected = item_mean(column, level=1.0 - found.tail).interval
        assert (member.together.low, member.together.high) == (expected.low, expected.high)
        assert (member.adjusted_p < 0.05) == (0.0 not in member.together)
    assert found == max_t(gaps)
    assert 0.05 / gaps.shape[1] * 0.999 <= found.tail <= 0.05


def test_max_t_edges():
    """Missing cells are no differences; what has no items has no p; rare changes: Bonferroni's."""
    rng = np.random.default_rng(9)
    gaps = rng.normal(size=(40, 3)) + 0.4
    gaps[::4, 0] = NAN
    gaps[:, 2] = NAN
    found = max_t(gaps)
    assert [m.mean.items for m in found.members] == [30, 40, 0]
    assert found.members[2].mean.status == "insufficient_data"
    assert (found.members[2].adjusted_p, found.members[2].together.low) == (None, None)
    assert found.largest() is None
    few = max_t(np.repeat(gaps[:5, :2], 8, axis=0), clusters=list(np.arange(40) // 8))
    assert [m.mean.status for m in few.members] == ["too_few_clusters"] * 2
    assert few.largest()[1].low is None
    unchanged = max_t(np.zeros((30, 2)))
    assert [m.adjusted_p for m in unchanged.members] == [1.0, 1.0]
    assert unchanged.tail == pytest.approx(0.025)
    assert 0.0 in unchanged.members[0].together
    with pytest.raises(InvalidValue, match="differences is"):
        max_t([1.0])
    with pytest.raises(InvalidValue, match="replications is"):
        max_t(gaps, replications=0)
    with pytest.raises(InvalidValue, match="infinite"):
        max_t(gaps * np.inf)


@pytest.mark.parametrize("clusters", [0, 6, 12])
def test_max_t_errs_in_five_percent_of_families(clusters):
    """Of 200 families of five columns without any effect, 5 % or fewer have one that differs."""
    rng = np.random.default_rng(42)
    codes = np.arange(72) % clusters if clusters else None
    lost = 0
    for seed in range(200):
        gaps = rng.normal(size=(72, 5)) + rng.normal(size=(72, 1))
        if codes is not None:
            gaps += rng.normal(size=(clusters, 5))[codes]
        found = max_t(
            gaps, clusters=None if codes is None else codes.tolist(), replications=199, seed=seed
        )
        lost += min(m.adjusted_p for m in found.members) < 0.05
    assert binomtest(lost, 200, 0.05, alternative="greater").pvalue > 1e-3
