"""Rank coefficients: by hand, against scipy, and their expectations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from falter.records.errors import InvalidValue
from falter.stats.agreement import average_ranks, kendall_w, spearman

NAN = float("nan")


def test_by_hand():
    """Two swaps among six: 1 - 6 x 4/210; ties take the mean of their places."""
    first, second = [1, 2, 3, 4, 5, 6], [2, 1, 3, 5, 4, 6]
    assert spearman(first, second).value == pytest.approx(1 - 24 / 210)
    assert list(average_ranks([30, 10, 30, 20])) == [3.5, 1.0, 3.5, 2.0]
    # Ranks 1.5 1.5 3 and 1 2 3: covariance 1.5, squares 1.5 and 2.
    assert spearman([5, 5, 9], [1, 2, 3]).value == pytest.approx(1.5 / math.sqrt(3))
    assert spearman(first, first[::-1]).value == -1.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("digits", [1, 6])
def test_the_coefficient_is_that_of_scipy(seed, digits):
    """With and without ties, it agrees with scipy on three to forty pairs."""
    x, y = np.round(np.random.default_rng(seed).random((2, [3, 6, 9, 14, 25, 40][seed])), digits)
    assert spearman(x, y).value == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
    assert list(average_ranks(x)) == list(scipy.stats.rankdata(x))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_only_the_order_matters(pairs):
    """Stretching a vector changes nothing, swapping both neither, and turning one negates."""
    x, y = np.array(pairs, dtype=float).T
    found = spearman(x, y)
    assert spearman(np.exp(x), y) == found
    assert spearman(y, x).value == (found.value and pytest.approx(found.value))
    turned = spearman(-x, y).value
    assert turned == (None if found.value is None else pytest.approx(-found.value))
    assert (found.value is None) == (found.status != "ok")


def test_edges():
    """A constant vector, two pairs and no pairs have no coefficient; gaps are counted."""
    constant = spearman([0.7, 0.7, 0.7], [1, 2, 3])
    assert (constant.value, constant.status) == (None, "undefined_zero_variance")
    for x, y in (([1, 2], [1, 2]), ([], []), ([1, 2, NAN, 4], [1, 2, 3, NAN])):
        found = spearman(x, y)
        assert (found.value, found.status, found.interval.low) == (None, "insufficient_data", None)
    assert spearman([1, 2, NAN, 4], [1, 2, 3, 5]).excluded == 1
    with pytest.raises(InvalidValue, match="first, second is"):
        spearman([1, 2, 3], [1, 2])


def test_the_expectation_is_the_known_one():
    """Of normal pairs, Spearman's coefficient has Moran's expectation."""
    rng, rho, n = np.random.default_rng(51), 0.6, 8
    rhos = []
    for _ in range(2000):
        x = rng.normal(size=n)
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)
        rhos.append(spearman(x, y).value)
    expected = 6 / (math.pi * (n + 1)) * (math.asin(rho) + (n - 2) * math.asin(rho / 2))
    assert scipy.stats.ttest_1samp(rhos, expected).pvalue > 1e-3


def test_concordance_by_hand():
    """Rank sums 4, 5, 9 of three conditions: W = 12 x 14/(9 x 24); all alike is 1."""
    found = kendall_w([[1, 2, 1], [2, 1, 2], [3, 3, 3]])
    assert (found.value, found.chi2, found.freedom) == (
        pytest.approx(12 * 14 / 216), pytest.approx(3 * 2 * 12 * 14 / 216), 2,
    )  # fmt: skip
    assert kendall_w([[1, 10], [2, 20], [3, 30]]).value == 1.0
    # Ranks 1.5 1.5 3 twice: alike in full, and the ties corrected for.
    assert kendall_w([[1, 1], [1, 1], [2, 2]]).value == pytest.approx(1.0)
    assert kendall_w([[1, 3], [2, 2], [3, 1]]).value == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_concordance_is_scipys_friedman_and_the_mean_spearman(seed):
    """Ties included, chi2 and p are Friedman's; without ties the mean rho is (J W - 1)/(J - 1)."""
    scores = np.random.default_rng(seed).random((4 + seed, 5))
    tied = np.round(scores, 1)
    found, theirs = kendall_w(tied), scipy.stats.friedmanchisquare(*tied)
    assert (found.chi2, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    rhos = [spearman(scores[:, i], scores[:, j]).value for i in range(5) for j in range(i)]
    assert np.mean(rhos) == pytest.approx((5 * kendall_w(scores).value - 1) / 4)


def test_concordance_edges():
    """One condition, one thing and nothing but ties have no W; a row with a gap is counted."""
    for scores, status in (
        ([[1], [2], [3]], "not_identified"),
        ([[1, 2]], "insufficient_data"),
        ([[1, 2], [1, 2], [1, 2]], "undefined_zero_variance"),
    ):
        found = kendall_w(scores)
        assert (found.value, found.chi2, found.p_value, found.status) == (None, None, None, status)
    gap = kendall_w([[1, 2], [2, 1], [3, 3], [NAN, 4]])
    assert (gap.items, gap.excluded) == (3, 1)
    assert kendall_w([[1, 7], [2, 7], [3, 7]]).value == pytest.approx(12 * 2 / (4 * 24 - 2 * 24))
    with pytest.raises(InvalidValue, match="scores is"):
        kendall_w([1, 2, 3])


def test_unrelated_rankings_have_the_known_mean_and_error():
    """Of 20 random rankings of six models W is 1/20 on average, and 5 % are rejected."""
    rng = np.random.default_rng(52)
    found = [kendall_w(rng.random((6, 20))) for _ in range(600)]
    assert scipy.stats.ttest_1samp([w.value for w in found], 1 / 20).pvalue > 1e-3
    assert binomtest(sum(w.p_value < 0.05 for w in found), 600, 0.05).pvalue > 1e-3
