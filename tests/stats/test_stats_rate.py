"""The interval for a mean of scores over several conditions, against what it has to contain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from falter.records.errors import InvalidValue
from falter.stats.intervals import agresti_coull
from falter.stats.mean import item_mean
from falter.stats.rates import rate


def test_the_rule_by_hand() -> None:
    """Four runs of ten items, three of which differ: k = 9/6.25 and so most of the floor 1/n."""
    means = np.array([0.5, 0.5, 0.25, *[1.0] * 7])
    runs = np.array([[1.0] * round(4 * m) + [0.0] * round(4 - 4 * m) for m in means])
    value = means.mean()
    k = (1.75**2) / (0.25 + 0.25 + 0.75**2)
    own = means.var(ddof=1) / 10 / (value * (1 - value))
    weight = k / 20
    ratio = norm.ppf(0.975) / student.ppf(0.975, 9)
    answers = ratio**2 / (weight * own + (1 - weight) / 10)
    wanted, found = agresti_coull(value * answers, answers), rate(runs)
    assert (found.interval.low, found.interval.high) == pytest.approx((wanted.low, wanted.high))
    assert found.informative == pytest.approx(k)


def test_clusters_by_hand() -> None:
    """Ten clusters of six, 30 items right: with 20 or more on each side CR2's variance alone."""
    scores = np.array([[1.0] * r + [0.0] * (6 - r) for r in (6, 5, 4, 3, 3, 3, 2, 2, 1, 1)]).ravel()
    codes = np.repeat(np.arange(10), 6).tolist()
    error = item_mean(scores, clusters=codes).standard_error
    assert error is not None
    answers = 0.25 / error**2 * (norm.ppf(0.975) / student.ppf(0.975, 9)) ** 2
    wanted, found = agresti_coull(answers / 2, answers), rate(scores, clusters=codes)
    assert (found.interval.low, found.interval.high) == pytest.approx((wanted.low, wanted.high))


def test_another_level_is_refused_where_only_one_is_known() -> None:
    """A rate's ends at 95 % are never labelled 99 %; without ends there is nothing to mislabel."""
    found = rate([1.0] * 12 + [0.0] * 8)
    assert found.at(0.95) == found.interval
    with pytest.raises(InvalidValue, match=r"level is 0\.99; expected 0\.95"):
        found.at(0.99)
    few = rate([0.5]).at(0.99)
    assert (few.low, few.high, few.level) == (None, None, 0.99)


def test_an_item_that_flips_once_in_twelve_hardly_counts() -> None:
    """A thousand items of which 40 flip once carry far fewer than 40 items' worth of flips."""
    flips = np.zeros((1000, 12))
    flips[:4] = 1.0
    flips[4:40, 0] = 1.0
    found = rate(flips)
    assert found.informative is not None and found.informative < 20.0


@given(
    hnp.arrays(float, st.tuples(st.integers(2, 25), st.integers(1, 4)), elements=st.floats(0, 1)),
    st.sampled_from([(0.0, 1.0), (1.0, 5.0), (-1.0, 1.0)]),
    st.booleans(),
)
def test_no_end_leaves_the_scale(
    scores: NDArray[np.float64], scale: tuple[float, float], clustered: bool
) -> None:
    """Whatever the scores, their scale and their clusters; a rating is a share mapped."""
    codes = (np.arange(len(scores)) % 7).tolist() if clustered else None
    low, high = scale
    found = rate(low + (high - low) * scores, clusters=codes, scale=scale)
    if found.interval.low is None or found.interval.high is None or found.value is None:
        return
    inside = low - 1e-9 <= found.interval.low <= found.value + 1e-9
    assert inside and found.value - 1e-9 <= found.interval.high <= high + 1e-9


def test_ratings_are_mapped_and_a_scale_that_is_not_known_is_named() -> None:
    """1 to 5 as 0 to 1; without a scale Student's t, which says so."""
    shares = np.random.default_rng(2).beta(2, 2, 40)
    found, plain = rate(1.0 + 4.0 * shares, scale=(1.0, 5.0)), rate(shares)
    assert plain.interval.low is not None and plain.standard_error is not None
    assert found.interval.low == pytest.approx(1.0 + 4.0 * plain.interval.low)
    assert found.standard_error == pytest.approx(4.0 * plain.standard_error)
    unknown = rate(1.0 + 4.0 * shares).interval
    assert unknown.method == "t, scale unknown, over items"
    with pytest.raises(InvalidValue, match="scores between 0 and 1"):
        rate(1.0 + shares, scale=(0.0, 1.0))


def test_one_condition_is_a_proportion_of_items() -> None:
    """The same as Agresti and Coull's, however it is given."""
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    wanted = agresti_coull(5, 7)
    for values in (scores, np.array(scores)[:, None]):
        found = rate(values)
        assert (found.interval.low, found.interval.high) == (wanted.low, wanted.high)
        assert found.p_value is None


def test_items_that_do_not_differ_count_once_each() -> None:
    """96 answers of four items, all right, say no more than four, of which Student knows three."""
    items = 4 * (norm.ppf(0.975) / student.ppf(0.975, 3)) ** 2
    wanted = agresti_coull(items, items)
    found = rate(np.ones((4, 24))).interval
    assert (found.low, found.high) == (pytest.approx(wanted.low), wanted.high)


def test_copies_of_items_in_clusters_say_nothing_more() -> None:
    """Ten copies of each of sixty items, as clusters: about the interval of the sixty."""
    rng = np.random.default_rng(3)
    few = (rng.random((60, 6)) < rng.beta(2, 2, 60)[:, None]).astype(float)
    clusters = np.repeat(np.arange(60), 10).tolist()
    alone = rate(few).interval
    copied = rate(np.repeat(few, 10, axis=0), clusters=clusters).interval
    assert copied.low == pytest.approx(alone.low, abs=0.02)
    assert copied.high == pytest.approx(alone.high, abs=0.02)
    assert "CR2" in copied.method


def test_scores_in_between_keep_to_the_unit_interval() -> None:
    """Near the middle of many it is Student's interval; near an end it stays inside."""
    rng = np.random.default_rng(5)
    middle = rng.uniform(0.3, 0.7, (60, 3))
    found, student = rate(middle).interval, item_mean(middle).interval
    assert found.low == pytest.approx(student.low, abs=0.002)
    assert found.high == pytest.approx(student.high, abs=0.002)
    few = rate([[0.0], [0.0], [0.0], [0.5]]).interval
    assert few.low is not None and few.low >= 0.0
