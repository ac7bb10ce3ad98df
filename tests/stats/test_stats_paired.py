"""Paired differences and item means: hand-worked cases, edges, and foreign programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from falter.records.errors import InvalidValue
from falter.stats.intervals import paired_proportions_interval
from falter.stats.mean import item_mean
from falter.stats.paired import mcnemar, paired_difference

NAN = float("nan")


def test_real_scores_are_scipys_paired_t():
    """Interval and p-value of real scores are those of scipy's paired t test."""
    rng = np.random.default_rng(1)
    first, second = rng.random(50), rng.random(50) - 0.1
    found = paired_difference(first, second)
    theirs = scipy.stats.ttest_rel(first, second)
    low, high = theirs.confidence_interval()
    assert (found.value, found.p_value) == pytest.approx(((first - second).mean(), theirs.pvalue))
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert (found.test, found.b, found.clusters) == ("t", None, None)


def test_clusters_of_one_size_are_statsmodels_cr1():
    """There CR2 is CR1: standard error, interval and p-value are those of statsmodels' OLS."""
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(60), 5)
    shared = np.repeat(rng.normal(size=60), 5)
    first, second = shared + rng.normal(size=(2, 300))
    found = paired_difference(first, second, clusters=list(codes))
    fit = sm.OLS(first - second, np.ones(300)).fit(
        cov_type="cluster", cov_kwds={"groups": codes}, use_t=True
    )
    assert found.standard_error == pytest.approx(fit.bse[0])
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(fit.conf_int()[0]))
    assert found.p_value == pytest.approx(fit.pvalues[0])
    assert (found.clusters, found.interval.method) == (60, "t over clusters, CR2")


def test_binary_scores_by_hand():
    """5 fall, 1 rises, 94 stay: 4 points, mid-p of McNemar, and 3 items without a pair."""
    first = [1.0] * 5 + [0.0] + [1.0] * 94 + [1.0, NAN, NAN]
    second = [0.0] * 5 + [1.0] + [1.0] * 94 + [NAN, 0.0, NAN]
    found = paired_difference(first, second)
    assert (found.value, found.b, found.c) == (pytest.approx(0.04), 5, 1)
    assert (found.items, found.excluded) == (100, 3)
    assert found.p_value == mcnemar(5, 1).mid_p
    expected = paired_proportions_interval(5, 1, 100)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))


@given(st.lists(st.sampled_from([0.0, 1.0, NAN]), min_size=2, max_size=30), st.randoms())
def test_swapping_the_arms_mirrors_everything(first, random):
    """Drop and gain are the same number with another sign, at every count of missing items."""
    second = list(first)
    random.shuffle(second)
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert (there.status, there.p_value, there.items) == (back.status, back.p_value, back.items)
    if there.value is None:
        assert there.items < 2
        assert there.interval.low is None
        return
    assert there.value == pytest.approx(-back.value)
    assert there.interval.low == pytest.approx(-back.interval.high)
    assert there.value in there.interval


def test_edges():
    """Too little is insufficient; equal arms keep an honest width; equal losses have no t test."""
    for first, second in (([1.0], [0.0]), ([], []), ([1.0, NAN], [NAN, 1.0])):
        found = paired_difference(first, second)
        assert (found.status, found.value, found.p_value) == ("insufficient_data", None, None)
        assert found.interval.low is None
    same = paired_difference([1.0] * 50, [1.0] * 50)
    assert (same.value, same.p_value) == (0.0, 1.0)
    assert same.interval.low < -0.03
    gone = paired_difference([1.0] * 50, [0.0] * 50)
    assert gone.value == 1.0
    assert gone.interval.low < 0.96
    steady = paired_difference([0.5, 0.75, 1.0], [0.25, 0.5, 0.75])
    assert (steady.value, steady.p_value, steady.test) == (0.25, None, "t")
    assert steady.interval.method == "none: no variation between items, an interval cannot be had"
    with pytest.raises(InvalidValue, match="baseline, perturbed is"):
        paired_difference([1.0, 0.0], [1.0])
    with pytest.raises(InvalidValue, match="infinite"):
        paired_difference([np.inf, 0.0], [1.0, 1.0])


def test_rare_discordance_in_clusters_counts_clusters():
    """20 clusters of 10 equal items are not 200 items."""
    first, second = np.ones(200), np.ones(200)
    second[:10] = 0.0
    codes = list(np.repeat(np.arange(20), 10))
    found = paired_difference(first, second, clusters=codes)
    once = paired_proportions_interval(1, 0, 20)
    assert (
        once.high - once.low
        < found.interval.high - found.interval.low
        < 1.2 * (once.high - once.low)
    )
    assert (found.clusters, found.status) == (20, "ok")
    assert found.design_effect == pytest.approx(10.47, abs=0.01)


def test_item_mean_of_complete_conditions_is_one_t_interval():
    """Mean over conditions within items, then a one-sample t over items."""
    drops = np.random.default_rng(4).normal(size=(40, 5))
    found = item_mean(drops)
    theirs = scipy.stats.ttest_1samp(drops.mean(axis=1), 0.0)
    low, high = theirs.confidence_interval()
    assert (found.value, found.p_value) == pytest.approx((drops.mean(), theirs.pvalue))
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert (found.items, found.excluded, found.conditions) == (40, 0, 5)


def test_item_mean_with_missing_cells_keeps_the_conditions_equal():
    """By hand: columns (1, 3) and (5, -, -) average to 2 and 5, together 3.5."""
    found = item_mean([[1.0, 5.0], [3.0, NAN], [NAN, NAN]])
    assert (found.value, found.items, found.excluded) == (3.5, 2, 1)
    # Influences: (1 - 2)/2/2 = -1/4 and +1/4; n/(n - 1) times their squares is 1/4.
    assert found.standard_error == pytest.approx(0.5)
    gone = item_mean([[1.0, NAN], [3.0, NAN]])
    assert (gone.value, gone.conditions) == (2.0, 1)
    weighted = item_mean([[1.0, 5.0], [3.0, 5.0]], weights=[3, 1])
    assert weighted.value == pytest.approx(0.75 * 2 + 0.25 * 5)
    with pytest.raises(InvalidValue, match="weights is"):
        item_mean([[1.0, 5.0]], weights=[0, 0])


def test_missing_cells_have_the_standard_error_of_the_bootstrap():
    """The linear influence agrees with resampling items through the mean of column means."""
    rng = np.random.default_rng(6)
    table = rng.normal(size=(200, 4)) + rng.normal(size=(200, 1))
    table[rng.random(table.shape) < 0.3] = NAN
    means = [np.nanmean(table[rng.integers(200, size=200)], axis=0).mean() for _ in range(2000)]
    assert item_mean(table).standard_error == pytest.approx(np.std(means), rel=0.06)
