"""The interval for a mean of scores over several conditions, against what it has to contain."""

from __future__ import annotations

import numpy as np
import pytest

from falter.records.errors import InvalidValue
from falter.stats.intervals import agresti_coull
from falter.stats.mean import item_mean
from falter.stats.rates import mean_rate

# How likely an item's answers are right: its distribution over items, by Beta(a, b).
WORLDS = {
    "items differ": (2.0, 2.0),
    "items are alike": (20.0, 20.0),
    "mostly right": (9.0, 1.0),
    "items are all or nothing": (0.3, 0.3),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("items", [4, 12, 40])
def test_it_contains_the_truth_as_often_as_it_says(world: str, items: int) -> None:
    """400 samples of 24 answers an item; 92.5 to 100 %, and neither end misses much oftener.

    As a mean of differences, which it is not, the same answers were covered in 58 to 95 %.
    """
    a, b = WORLDS[world]
    rng, truth = np.random.default_rng(items), a / (a + b)
    below = above = 0
    for _ in range(400):
        right = rng.beta(a, b, items)[:, None]
        interval = mean_rate(rng.random((items, 24)) < right).interval
        assert interval.low is not None and interval.high is not None
        below += truth < interval.low
        above += truth > interval.high
    assert below + above <= 30
    assert max(below, above) <= 22


def test_one_condition_is_a_proportion_of_items() -> None:
    """The same as Agresti and Coull's, however it is given."""
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    wanted = agresti_coull(5, 7)
    for values in (scores, np.array(scores)[:, None]):
        found = mean_rate(values)
        assert (found.interval.low, found.interval.high) == (wanted.low, wanted.high)
        assert found.p_value is None


def test_items_that_do_not_differ_count_once_each() -> None:
    """96 answers of four items, all right, say no more than four."""
    wanted = agresti_coull(4, 4)
    found = mean_rate(np.ones((4, 24))).interval
    assert (found.low, found.high) == (pytest.approx(wanted.low), wanted.high)


def test_copies_of_items_in_clusters_say_nothing_more() -> None:
    """Ten copies of each of twelve items, as clusters: about the interval of the twelve."""
    rng = np.random.default_rng(3)
    twelve = (rng.random((12, 6)) < rng.beta(2, 2, 12)[:, None]).astype(float)
    clusters = np.repeat(np.arange(12), 10).tolist()
    alone = mean_rate(twelve).interval
    copied = mean_rate(np.repeat(twelve, 10, axis=0), clusters=clusters).interval
    assert copied.low == pytest.approx(alone.low, abs=0.02)
    assert copied.high == pytest.approx(alone.high, abs=0.02)
    assert "CR2" in copied.method


def test_scores_in_between_keep_to_the_unit_interval() -> None:
    """Near the middle it is Student's interval; near an end it stays inside."""
    rng = np.random.default_rng(5)
    middle = rng.uniform(0.3, 0.7, (60, 3))
    found, student = mean_rate(middle).interval, item_mean(middle).interval
    assert found.low == pytest.approx(student.low, abs=0.002)
    assert found.high == pytest.approx(student.high, abs=0.002)
    few = mean_rate([[0.0], [0.0], [0.0], [0.5]]).interval
    assert few.low is not None and few.low >= 0.0
    with pytest.raises(InvalidValue, match="between 0 and 1"):
        mean_rate([1.0, 2.0, 0.5])
