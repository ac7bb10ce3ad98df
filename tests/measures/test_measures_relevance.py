"""Relative change against its control, source positions, G-Eval, and what people prefer."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import binomtest, wasserstein_distance

from falter.measures.drops import accuracy, relative_change
from falter.measures.relevance import (
    arm_difference,
    best_arms,
    geval_score,
    human_evaluation,
    position_shift,
    score_change,
)
from falter.records.errors import InvalidValue
from falter.stats.resampling import bootstrap

NAN = float("nan")


def scores(rng, items=120, factor=0.9):
    """ROUGE-like scores before and after, and asked again."""
    level = rng.beta(4, 8, size=items)
    old, repeat = (np.clip(level + 0.05 * rng.normal(size=items), 0.01, 1) for _ in range(2))
    new = np.clip(factor * level + 0.05 * rng.normal(size=items), 0.01, 1)
    return old, new, repeat


def test_change_is_the_ratio_of_means():
    """(0.2 + 0.4)/(0.1 + 0.5) - 1 = 0, while the mean of ratios would say +40 %."""
    found = relative_change([0.1, 0.5], [0.2, 0.4], replications=50)
    assert found.value == pytest.approx(0.0)
    assert np.mean(np.array([0.2, 0.4]) / [0.1, 0.5] - 1) == pytest.approx(0.4)


def test_change_agrees_with_scipys_bootstrap():
    """The BCa ends are nearly those of scipy.stats.bootstrap and of our own row by row."""
    old, new, _ = scores(np.random.default_rng(1))

    def change(x, y, axis=-1):
        return y.mean(axis=axis) / x.mean(axis=axis) - 1

    theirs = scipy.stats.bootstrap(
        (old, new), change, paired=True, n_resamples=4000, rng=np.random.default_rng(2)
    ).confidence_interval
    found = relative_change(old, new, replications=4000)
    slack = 0.06 * (theirs.high - theirs.low)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=slack)
    rows = bootstrap(np.column_stack([old, new]), lambda r: change(r[:, 0], r[:, 1]))
    assert (found.low, found.high) == pytest.approx((rows.low, rows.high), abs=slack)


def test_change_edges():
    """An old mean of 0, one that may be 0, one item, missing items, clusters."""
    zero = relative_change([0.0, 0.0], [1.0, 1.0])
    assert (zero.value, zero.status) == (None, "undefined_zero_denominator")
    opposite = relative_change([0.1, -0.1], [1.0, 1.0])
    assert opposite.status == "undefined_zero_denominator"
    rng = np.random.default_rng(3)
    unsure = relative_change(rng.normal(size=30) + 0.1, rng.normal(size=30), replications=200)
    assert (unsure.status, unsure.low) == ("ok", None)
    assert relative_change([1.0], [0.5]).status == "insufficient_data"
    gone = relative_change([1.0, 1.0, NAN], [0.5, 0.5, 0.9], replications=50)
    assert (gone.value, gone.items, gone.excluded) == (-0.5, 2, 1)
    old, new, _ = scores(rng)
    once = relative_change(old, new)
    twice = relative_change(np.tile(old, 2), np.tile(new, 2), clusters=list(range(120)) * 2)
    assert (twice.value, twice.low) == (pytest.approx(once.value), pytest.approx(once.low))
    with pytest.raises(InvalidValue, match="old, new is"):
        relative_change([1.0], [1.0, 2.0])
    with pytest.raises(InvalidValue, match="replications is 1"):
        relative_change([1.0, 2.0], [1.0, 2.0], replications=1)


def test_a_score_change_is_a_log_ratio_that_never_passes_minus_one():
    """The ratio of means; a huge loss ends above -100 %; few changed articles have no interval."""
    old, new, _ = scores(np.random.default_rng(4))
    found = score_change(old, new)
    assert found.value == pytest.approx(new.mean() / old.mean() - 1)
    assert -1.0 < found.low < found.value < found.high
    steep = score_change(old, np.where(np.arange(len(old)) < 3, old, 0.001))
    assert -1.0 < steep.low < -0.5
    few = score_change(old, np.where(np.arange(len(old)) < 7, new, old))
    assert (few.low, few.method) == (None, "none: fewer than 8 articles changed")
    assert score_change([0.0, 0.0], [1, 1]).status == "undefined_zero_denominator"
    assert score_change([1.0], [0.5]).status == "insufficient_data"
    assert score_change(old, 0 * old).low is None
    twice = score_change(np.tile(old, 2), np.tile(new, 2), clusters=list(range(120)) * 2)
    assert (twice.low, twice.clusters) == (pytest.approx(found.low), 120)
    assert score_change(old, new, clusters=[n % 5 for n in range(120)]).low is None


def test_score_changes_cover():
    """A loss of a tenth in 60 articles: 95 %."""
    rng = np.random.default_rng(71)
    hits = 0
    for _ in range(200):
        old = rng.beta(4, 8, size=60) + 0.02
        found = score_change(old, 0.9 * old * np.exp(rng.normal(0, 0.2, 60) - 0.02))
        hits += found.low <= -0.1 <= found.high
    assert binomtest(hits, 200, 0.95).pvalue > 1e-3


def test_arms_without_an_effect_are_rarely_told_apart():
    """A null with 12 articles: at most 6 % of claims; fewer than 6 that differ: none at all."""
    rng = np.random.default_rng(12)
    claims = 0
    for _ in range(150):
        first, second, _ = scores(rng, items=12, factor=1.0)
        found = arm_difference(first, second)
        claims += found.difference.p_value <= 0.05
        few = arm_difference(first, np.where(np.arange(12) < 5, second, first))
        assert (few.differ, few.difference.p_value, few.difference.low) == (5, None, None)
    assert claims <= 0.06 * 150 + 6


def test_an_arm_difference_by_hand():
    """The mean of the differences, the exact share of sign flips, ends on the scale."""
    found = arm_difference([0.0] * 8, [0.1, 0.2] * 4)
    assert found.difference.value == pytest.approx(-0.15)
    assert (found.difference.p_value, found.differ) == (2 / 2**8, 8)
    assert -1.0 <= found.difference.low < found.difference.value
    same = arm_difference([0.5] * 9, [0.5] * 9)
    assert (same.differ, same.difference.value, same.difference.low) == (0, 0.0, None)


def test_positions_by_hand():
    """Sentences 0, 5 and 9 of 10, 2 of 3: bins 0, 5, 9 and 6; None is counted, not placed."""
    first, second = [[0, 5, None], [9], [2], []], [[0, 5, None], [9], [], [2]]
    shift = position_shift(first, second, [10, 10, 10, 3], replications=2)
    assert shift.before.counts == (1, 0, 1, 0, 0, 1, 0, 0, 0, 1)
    found = shift.after
    assert found.counts == (1, 0, 0, 0, 0, 1, 1, 0, 0, 1)
    assert (found.sentences, found.excluded, found.articles) == (4, 1, 4)
    assert found.shares == pytest.approx(np.array(found.counts) / 4)
    empty = position_shift([[None]], [[0]], [3], replications=2).before
    assert (empty.shares, empty.excluded) == (None, 1)
    with pytest.raises(InvalidValue, match="numbers below 3 in article 0"):
        position_shift([[3]], [[0]], [3])
    with pytest.raises(InvalidValue, match="the same articles"):
        position_shift([[0]], [[0]], [3, 4])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 11), max_size=3), st.lists(st.integers(0, 11), max_size=3)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_distances_are_scipys(rows):
    """Total variation, Jensen-Shannon and Wasserstein; overlap article by article with sets."""
    before, after = zip(*rows, strict=True)
    found = position_shift(before, after, [12] * len(rows), bins=4, replications=20)
    p, q = found.before.shares, found.after.shares
    if p is None or q is None:
        assert found.tv.status == found.jsd.status == "insufficient_data"
    else:
        assert found.tv.value == pytest.approx(0.5 * np.abs(np.subtract(p, q)).sum())
        assert found.jsd.value == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=1e-9)
        places = np.arange(4) / 4
        expected = wasserstein_distance(places, places, p, q)
        assert found.wasserstein.value == pytest.approx(expected, abs=1e-12)
    sets = [(set(a), set(b)) for a, b in rows if a and b]
    if sets:
        assert found.changed.value == pytest.approx(np.mean([a != b for a, b in sets]))
        overlap = np.mean([len(a & b) / len(a | b) for a, b in sets])
        assert found.jaccard.value == pytest.approx(overlap)
        assert found.changed.excluded == len(rows) - len(sets)
    else:
        assert found.changed.status == found.jaccard.status == "insufficient_data"


def test_equal_histograms_can_hide_that_every_article_changed():
    """Two articles swap their sources: distances 0, changed 1, Jaccard 0."""
    found = position_shift([[0], [9]], [[9], [0]], [10, 10], replications=50)
    assert (found.tv.value, found.jsd.value, found.wasserstein.value) == (0.0, 0.0, 0.0)
    assert (found.changed.value, found.jaccard.value) == (1.0, 0.0)
    assert found.changed.low == accuracy([1.0, 1.0]).low
    with pytest.raises(InvalidValue, match="the same articles"):
        position_shift([[0]], [[0], [1]], [10])


def test_swapping_within_articles_is_a_level_test():
    """Positions drawn alike: p below 0.1 in a tenth of the cases; moved ones: found."""
    rng = np.random.default_rng(72)
    low = 0
    for seed in range(200):
        before, after = (rng.integers(20, size=(40, 2)).tolist() for _ in range(2))
        found = position_shift(before, after, [20] * 40, replications=99, seed=seed)
        low += found.tv.p_value <= 0.1
    assert binomtest(low, 200, 0.1).pvalue > 1e-3
    early = rng.integers(8, size=(40, 2)).tolist()
    moved = position_shift(early, after, [20] * 40, replications=999)
    assert moved.jsd.p_value < 0.01
    assert moved.wasserstein.value > 0.2


def test_jaccard_covers():
    """Two of ten sentences drawn twice: the mean overlap is covered 95 %."""
    rng = np.random.default_rng(73)
    truth = (1 / 45) * 1 + (16 / 45) / 3
    hits = 0
    for _ in range(200):
        before, after = (rng.permuted(np.tile(np.arange(10), (80, 1)), axis=1)[:, :2] for _ in "ab")
        found = position_shift(before.tolist(), after.tolist(), [10] * 80, replications=2)
        hits += found.jaccard.low <= truth <= found.jaccard.high
    assert binomtest(hits, 200, 0.95).pvalue > 1e-3


def test_geval_by_hand():
    """80, 10, 5, 3 and 2 for 1 to 5 are 1.37; off 100: flagged."""
    found = geval_score([80, 10, 5, 3, 2])
    assert (found.value, found.renormalised, found.status) == (pytest.approx(1.37), False, "ok")
    short = geval_score([80, 10, 5, 3, 1])
    assert short.value == pytest.approx(np.average([1, 2, 3, 4, 5], weights=[80, 10, 5, 3, 1]))
    assert (short.renormalised, short.total) == (True, 99.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=5, max_size=5).filter(lambda p: sum(p) > 1e-3))
def test_geval_stays_in_range_and_mirrors(percentages):
    """Between 1 and 5; the other order is 6 minus the score."""
    up = geval_score(percentages).value
    assert 1 - 1e-9 <= up <= 5 + 1e-9
    assert geval_score(percentages[::-1]).value == pytest.approx(6 - up)


@pytest.mark.parametrize(
    ("percentages", "status"),
    [
        (None, "insufficient_data"),
        ([50, 50], "insufficient_data"),
        ([50, 50, 0, 0, NAN], "insufficient_data"),
        ([110, -10, 0, 0, 0], "insufficient_data"),
        ([0, 0, 0, 0, 0], "undefined_zero_denominator"),
    ],
)
def test_geval_refuses_what_is_no_distribution(percentages, status):
    """Not five numbers, one below 0, a sum of 0: None with a reason."""
    found = geval_score(percentages)
    assert (found.value, found.status) == (None, status)
    assert found.reason


def test_people_prefer_what_wins_most_criteria():
    """Two of three criteria win; on a tie the total decides; equal totals are both named."""
    table = {
        "gold": {"faithful": 0.5, "coherent": 3.0, "relevant": 2.0},
        "ours": {"faithful": 0.9, "coherent": 2.0, "relevant": 4.0},
    }
    assert best_arms(table) == ("ours",)
    tied = {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 2.0, "y": 1.5}}
    assert best_arms(tied) == ("b",)
    assert best_arms({"a": {"x": 1.0}, "b": {"x": 1.0}}) == ("a", "b")
    assert best_arms({}) == ()


def test_human_evaluation():
    """Means with t intervals, sds with ddof 1, what nobody rated, and the best arm."""
    ratings = {"a": {"x": [1.0, 2.0, 3.0, NAN]}, "b": {"x": [2.0]}, "c": {"x": [NAN]}}
    found = human_evaluation(ratings)
    t = scipy.stats.ttest_1samp([1, 2, 3], 0).confidence_interval()
    one = found.means["a"]["x"]
    assert (one.value, one.low, one.high) == pytest.approx((2.0, t.low, t.high))
    assert (found.sds["a"]["x"], found.sds["b"]["x"], one.excluded) == (1.0, None, 1)
    assert (found.means["b"]["x"].value, found.means["b"]["x"].low) == (2.0, None)
    assert found.means["c"]["x"].status == "insufficient_data"
    assert found.best == ("a", "b")
    with pytest.raises(InvalidValue, match="one number for every item"):
        human_evaluation({"a": {"x": [[1.0]]}})


def test_mean_ratings_cover():
    """Ratings from 1 to 5 of 40 items: 95 %."""
    rng = np.random.default_rng(74)
    hits = 0
    for _ in range(300):
        found = human_evaluation({"a": {"x": rng.integers(1, 6, size=40).astype(float)}})
        hits += found.means["a"]["x"].low <= 3.0 <= found.means["a"]["x"].high
    assert binomtest(hits, 300, 0.95).pvalue > 1e-3
