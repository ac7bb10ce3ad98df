"""What is missing: bounds and test by hand, against scipy, and under simulated reasons."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from falter.measures.averages import micro_average
from falter.measures.drops import accuracy_drop
from falter.measures.missing import missing_bounds, missingness
from falter.records.errors import InvalidValue
from falter.stats.intervals import paired_proportions_interval

NAN = float("nan")


def test_bounds_by_hand():
    """Two of four pairs known: (1 − 0) and (0 − 0); the others could add −1 to 1 and 0 to 1."""
    found = missing_bounds([1, 0, NAN, 1], [0, 0, 1, NAN])
    # lowest: 0 - 1 and 1 - 1; highest: 1 - 1 and 1 - 0
    assert (found.low.value, found.high.value) == ((1 + 0 - 1 + 0) / 4, (1 + 0 + 0 + 1) / 4)
    assert found.low.low < found.low.value < found.high.value < found.high.high
    assert found.low.items == 4


def test_bounds_hold_whatever_was_missing():
    """Any completion of a table with gaps has its drop between the bounds."""
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 2, (60, 4)).astype(float)
    gaps = np.where(rng.random(whole.shape) < 0.2, NAN, whole)
    bounds = missing_bounds(gaps[:, 0], gaps[:, 1:])
    drop = micro_average(whole[:, :1] - whole[:, 1:]).value
    assert bounds.low.value < drop < bounds.high.value
    none = missing_bounds(whole[:, 0], whole[:, 1])
    assert none.low.value == none.high.value == accuracy_drop(whole[:, 0], whole[:, 1]).value


def test_pairs_outside_the_plan_are_not_missing():
    """A recipe that does not apply to an item leaves no gap there."""
    planned = [True, True, False, True]
    found = missing_bounds([1, 0, 1, 1], [0, 0, NAN, 1], planned=planned)
    assert found.low.value == found.high.value == pytest.approx(1 / 3)
    assert missingness([1, 0, 1, 1], [0, 0, NAN, 1], planned=planned).share.value == 0.0


def test_other_scales_have_other_bounds():
    """Scores of 1 to 5: a missing one is 1 or 5."""
    found = missing_bounds([3.0, 4.0], [2.0, NAN], lowest=1, highest=5)
    assert (found.low.value, found.high.value) == ((1 - 1) / 2, (1 + 3) / 2)
    with pytest.raises(InvalidValue, match="lowest"):
        missing_bounds([1], [1], lowest=1, highest=0)


def test_the_test_is_fishers():
    """Ten of fifty are missing where the baseline was right, one of fifty where it was wrong."""
    baseline = np.repeat([1.0, 0.0], 50)
    perturbed = np.ones(100)
    perturbed[:10] = perturbed[50] = NAN
    found = missingness(baseline, perturbed)
    expected = scipy.stats.fisher_exact([[10, 40], [1, 49]]).pvalue
    assert found.p_value == pytest.approx(expected)
    assert (found.right, found.wrong, found.share.value) == (0.2, 0.02, 0.11)
    assert found.suspicious
    assert found.reasons[0] == "11.0 % of the pairs are missing"
    assert "where the baseline was right" in found.reasons[1]


@pytest.mark.parametrize("counts", [(10, 50, 1, 50), (0, 7, 3, 3), (5, 9, 5, 9), (90, 3000, 4, 7)])
def test_its_p_is_scipys(counts: tuple[int, int, int, int]):
    """Of any margins, also where tables at either end are as unlikely as the one at hand."""
    gone, right, missed, wrong = counts
    baseline, perturbed = np.repeat([1.0, 0.0], [right, wrong]), np.ones(right + wrong)
    perturbed[:gone] = perturbed[right : right + missed] = NAN
    table = [[gone, right - gone], [missed, wrong - missed]]
    expected = scipy.stats.fisher_exact(table).pvalue
    assert missingness(baseline, perturbed).p_value == pytest.approx(expected, rel=1e-9)


def test_an_arm_that_lacks_more_is_suspicious():
    """Eight of 500 are missing with the perturbation, none without: 1.6 %, and no chance."""
    baseline, perturbed = np.tile([1.0, 0.0], 250), np.ones(500)
    perturbed[:8] = NAN
    found = missingness(baseline, perturbed)
    assert (found.arms, found.arms_p) == ((8, 0), pytest.approx(2**-8))
    assert found.reasons == ("more is missing with the perturbation (p = 0.0039)",)


def test_the_worst_case_of_one_recipe_is_a_paired_interval():
    """Five of a hundred are missing: at worst five more fell, at the panel's level."""
    baseline, perturbed = np.ones(100), np.repeat([1.0, 0.0, NAN], [85, 10, 5])
    found = missing_bounds(baseline, perturbed, level=0.99)
    plain = paired_proportions_interval(15, 0, 100, level=0.99)
    assert (found.high.high, found.low.value) == (pytest.approx(plain.high), 0.1)


def test_little_missing_at_random_is_not_suspicious():
    """One of a hundred pairs, and nothing at all."""
    perturbed = np.ones(100)
    perturbed[3] = NAN
    found = missingness(np.tile([1.0, 0.0], 50), perturbed)
    assert (found.suspicious, found.reasons) == (False, ())
    assert found.p_value == pytest.approx(1.0)
    whole = missingness(np.tile([1.0, 0.0], 50), np.ones(100))
    assert (whole.p_value, whole.suspicious, whole.share.value) == (None, False, 0.0)
    alike = missingness(np.ones(100), perturbed)
    assert (alike.p_value, alike.wrong) == (None, None)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_test_keeps_its_level_and_finds_what_is_there(clustered):
    """Missing whole passages at random is rejected in 9 % at most, missing answers mostly."""
    rng = np.random.default_rng(1)
    codes = np.arange(200) // 5
    rejected = {False: 0, True: 0}
    for _ in range(150):
        passage = rng.normal(size=40)[codes]
        baseline = (passage + rng.normal(size=200) > 0).astype(float)
        gone = (rng.random(40) < 0.1)[codes] if clustered else rng.random(200) < 0.1
        for real in (False, True):
            lost = gone | ((baseline == 1) & (rng.random(200) < 0.2)) if real else gone
            cells = np.where(lost[:, None], NAN, np.ones((200, 2)))
            labels = codes if clustered else None
            p = missingness(baseline, cells, clusters=labels).p_value
            rejected[real] += p is not None and p < 0.05
    assert rejected[False] / 150 < 0.09
    assert rejected[True] / 150 > 0.6


def test_arguments_are_checked():
    """Tables of other items are named."""
    with pytest.raises(InvalidValue, match="baseline, perturbed"):
        missingness([1, 0], [1, 0, 1])
