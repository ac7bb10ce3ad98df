"""Agreement of raters: by hand, against scikit-learn and krippendorff, and their coverage."""

from __future__ import annotations

import itertools
import math

import krippendorff
import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from falter.records.errors import DuplicateName, InvalidValue, UnknownName
from falter.stats.agreement import (
    exact_agreement,
    krippendorff_alpha,
    round_half_up,
    spearman,
    weighted_kappa,
)
from falter.stats.intervals import wilson_interval

NAN = float("nan")
FIVE = [1, 2, 3, 4, 5]
# The worked example of Krippendorff (2011): four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def drawn(seed: int, *, items: int = 60, raters: int = 3, missing: float = 0.2) -> np.ndarray:
    """Ratings 1 to 5 around a quality of the item, with gaps."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(items, 1)) * 1.2 + 3.4
    ratings = np.clip(np.round(quality + rng.normal(size=(items, raters)) * 0.7), 1, 5)
    return np.where(rng.random(ratings.shape) < missing, NAN, ratings)


def test_kappa_by_hand():
    """20, 5, 10 and 15 of 50: .7 observed and .5 expected; a near miss costs a quarter."""
    ratings = [[0, 0]] * 20 + [[0, 1]] * 5 + [[1, 0]] * 10 + [[1, 1]] * 15
    found = weighted_kappa(ratings, [0, 1])
    assert (found.value, found.items, found.excluded) == (pytest.approx(0.4), 50, 0)
    assert found.value in found.interval
    assert found == weighted_kappa(ratings, [0, 1])
    # Observed 1/4 x 2 + 1 of 4; expected over margins (2, 1, 1) and (1, 1, 2) of 16: 1/4 x 7 + 4.
    three = [[1, 1], [1, 2], [2, 3], [3, 3]]
    assert weighted_kappa(three, [1, 2, 3]).value == pytest.approx(1 - (0.5 / 4) / (6.5 / 16))
    # The set of labels is fixed: one that nobody used still counts as a place in between.
    assert weighted_kappa(three, [1, 2, 2.5, 3]).value != weighted_kappa(three, [1, 2, 3]).value


@pytest.mark.parametrize("weights", ["quadratic", "linear"])
@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_the_mean_of_scikit_learns(weights, seed):
    """Each pair on its co-rated items, labels 1 to 5 whether used or not, then the mean."""
    ratings = drawn(seed)
    theirs = []
    for i, j in itertools.combinations(range(3), 2):
        both = ~np.isnan(ratings[:, i] + ratings[:, j])
        x, y = ratings[both][:, [i, j]].astype(int).T
        theirs.append(cohen_kappa_score(x, y, labels=FIVE, weights=weights))
    found = weighted_kappa(ratings, FIVE, weights=weights, replications=50)
    assert found.value == pytest.approx(np.mean(theirs))
    assert found.items + found.excluded == 60


def test_kappa_edges():
    """No expected disagreement has no kappa; what is unknown is refused."""
    same = weighted_kappa([[5, 5], [5, 5], [5, 5]], FIVE)
    assert (same.value, same.status) == (None, "undefined_zero_variance")
    assert same.interval.low is None
    part = weighted_kappa([[5, 5, 1], [5, 5, 2], [5, 5, 5]], FIVE, replications=20)
    assert part.value == 0.0
    for ratings, status in (
        ([[1], [2]], "not_identified"),
        ([[1, 2], [NAN, 3]], "insufficient_data"),
        ([[None, 2], [1, None]], "insufficient_data"),
    ):
        found = weighted_kappa(ratings, FIVE)
        assert (found.value, found.status) == (None, status)
    text = weighted_kappa([["A", "A"], ["B", "B"], ["A", None]], ["A", "B"])
    assert (text.value, text.items, text.excluded) == (1.0, 2, 1)
    with pytest.raises(UnknownName, match=r"Unknown label '6\.0'"):
        weighted_kappa([[1.0, 6.0]], FIVE)
    with pytest.raises(DuplicateName, match="twice"):
        weighted_kappa([[1, 2]], [1, 1])
    with pytest.raises(InvalidValue, match="labels is"):
        weighted_kappa([[1, 1]], [1])
    with pytest.raises(InvalidValue, match="weights is 'square'"):
        weighted_kappa([[1, 2]], FIVE, weights="square")
    with pytest.raises(InvalidValue, match="ratings is"):
        weighted_kappa([1, 2], FIVE)


@pytest.mark.parametrize(
    ("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_as_krippendorff_prints_it(metric, printed):
    """The published example, whose last unit has one rating only, to three digits."""
    found = krippendorff_alpha(np.transpose(OBSERVERS), metric)
    assert found.value == pytest.approx(printed, abs=5e-4)
    assert (found.items, found.excluded) == (11, 1)
    assert found.value in found.interval


def test_alpha_by_hand():
    """Pairs 11, 12, 22: o(1,2) is 1 twice, n is (3, 3): 1 - 5 x 2/18 whatever the metric."""
    for metric in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha([[1, 1], [1, 2], [2, 2], [2, None]], metric, replications=20)
        assert found.value == pytest.approx(1 - 10 / 18)
        assert (found.items, found.excluded) == (3, 1)
    # Ordinal places of 1, 2, 9 with counts 2, 3, 1 are 1, 3.5, 5.5: gaps 6.25, 20.25 and 4.
    found = krippendorff_alpha([[1, 1], [2, 2], [2, 9]], replications=20)
    expected = 2 * (6 * 6.25 + 2 * 20.25 + 3 * 4)
    assert found.value == pytest.approx(1 - 5 * (2 * 4) / expected)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_that_of_the_package_krippendorff(metric, seed):
    """Five raters with many gaps and units of one rating or none agree to every digit."""
    ratings = drawn(seed, raters=5, missing=0.5)
    theirs = krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=metric)
    assert krippendorff_alpha(ratings, metric, replications=20).value == pytest.approx(theirs)


def test_alpha_edges():
    """All the same has no alpha, too little has none, and words have no distance."""
    same = krippendorff_alpha([[4, 4], [4, 4], [4, NAN]])
    assert (same.value, same.status, same.excluded) == (None, "undefined_zero_variance", 1)
    few = krippendorff_alpha([[1, 2], [3, NAN]])
    assert (few.value, few.status, few.items) == (None, "insufficient_data", 1)
    assert krippendorff_alpha([[NAN, NAN]]).status == "insufficient_data"
    words = [["yes", "yes"], ["no", "no"], ["yes", "no"]]
    assert krippendorff_alpha(words, "nominal").value == pytest.approx(1 - 10 / 18)
    with pytest.raises(InvalidValue, match="ratings is 'no'"):
        krippendorff_alpha(words, "ordinal")
    with pytest.raises(InvalidValue, match="infinite"):
        krippendorff_alpha([[1.0, math.inf], [1.0, 2.0]])
    for of_mixed_types in (exact_agreement, krippendorff_alpha):
        with pytest.raises(InvalidValue, match=r"ratings is \['int', 'str'\]; .* one type"):
            of_mixed_types([[1, "no"], ["no", "no"]])
    with pytest.raises(InvalidValue, match="metric is 'ratio'"):
        krippendorff_alpha([[1, 2]], "ratio")


def test_exact_agreement_says_of_what():
    """Three raters: two of four items all equal, and 8 of 12 pairs."""
    ratings = [[5, 5, 5], [4, 4, 4], [4, 5, 4], [3, 3, 2], [1, NAN, NAN]]
    items, pairs = exact_agreement(ratings), exact_agreement(ratings, over="pairs")
    assert (items.value, items.items, items.excluded) == (0.5, 4, 1)
    assert (pairs.value, pairs.items) == (pytest.approx(8 / 12), 4)
    expected = wilson_interval(2, 4)
    assert items.interval == expected
    assert pairs.interval.low < 8 / 12 <= pairs.interval.high
    nothing = exact_agreement([[1, NAN]])
    assert (nothing.value, nothing.status, nothing.interval.low) == (
        None,
        "insufficient_data",
        None,
    )
    with pytest.raises(InvalidValue, match="over is 'raters'"):
        exact_agreement(ratings, over="raters")


def test_skewed_ratings_agree_often_and_hardly_beyond_chance():
    """98 % fives from both raters: nearly all equal, and a kappa of about zero."""
    ratings = [[5, 5]] * 96 + [[4, 5]] * 2 + [[5, 4]] * 2
    assert exact_agreement(ratings).value == pytest.approx(0.96)
    assert weighted_kappa(ratings, FIVE, replications=20).value == pytest.approx(-1 / 49)


def test_a_judge_is_compared_with_the_mean_rounded_half_up():
    """Raters at 2 and 3 stand for 3, at 4 and 5 for 5: banker's rounding would say 2 and 4."""
    assert list(round_half_up([2.5, 4.5, 3.49, 0.5, -0.5])) == [3, 5, 3, 1, 0]
    assert math.isnan(round_half_up([NAN])[0])
    raters = np.array([[2, 3], [4, 5], [5, 5], [1, 1], [4, 4], [3, 4]])
    judge = np.array([3, 5, 5, 1, 3, 4])
    label = round_half_up(raters.mean(axis=1))
    both = np.column_stack([judge, label])
    assert exact_agreement(both).value == pytest.approx(5 / 6)
    even = np.column_stack([judge, np.round(raters.mean(axis=1))])
    assert exact_agreement(even).value == pytest.approx(3 / 6)
    kappa = weighted_kappa(both, FIVE, replications=20)
    assert kappa.value == pytest.approx(
        cohen_kappa_score(judge, label.astype(int), labels=FIVE, weights="quadratic")
    )
    assert np.abs(judge - raters.mean(axis=1)).mean() == pytest.approx((3 * 0.5 + 1) / 6)
    assert spearman(judge, raters.mean(axis=1)).value > 0.8


def test_intervals_cover_the_truth():
    """Three raters who copy the item's label with 7 in 10: kappa, alpha and pairs are known."""
    labels, rng, draws = 3, np.random.default_rng(61), 100
    copied, items = 0.7, 60
    # Copying makes two raters agree beyond chance with 0.7 x 0.7, whatever the weights.
    truth = copied**2
    expected = {"kappa": truth, "alpha": truth, "pairs": truth + (1 - truth) / labels}
    held = dict.fromkeys(expected, 0)
    values: dict[str, list[float]] = {name: [] for name in expected}
    for seed in range(draws):
        own, item = rng.integers(labels, size=(items, 3)), rng.integers(labels, size=(items, 1))
        ratings = np.where(rng.random((items, 3)) < copied, item, own)
        given = {"replications": 99, "seed": seed}
        for name, found in (
            ("kappa", weighted_kappa(ratings, [0, 1, 2], **given)),
            ("alpha", krippendorff_alpha(ratings, "interval", **given)),
            ("pairs", exact_agreement(ratings, over="pairs", **given)),
        ):
            held[name] += expected[name] in found.interval
            values[name].append(found.value)
    for name, hits in held.items():
        assert binomtest(hits, draws, 0.95).pvalue > 1e-3
        # No bias beyond the order of 1/items.
        error = np.std(values[name]) / math.sqrt(draws)
        assert np.mean(values[name]) == pytest.approx(expected[name], abs=1 / items + 3.3 * error)
