"""AIPW means and Neyman's chances: exhaustive unbiasedness, a second route, coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from scipy.stats import binomtest, ttest_1samp

from falter.core.errors import InvalidValue
from falter.stats import (
    ProbitModel,
    aipw_mean,
    neyman_probabilities,
    simulate_outcomes,
)

NAN = float("nan")


@pytest.mark.parametrize(
    "predictions", [(0.0,) * 5, (0.9, 0.2, 0.5, 0.99, 0.4), (5.0, -3.0, 0.1, 0.2, 7.0)]
)
def test_the_average_over_all_samples_is_the_truth(predictions):
    """Over all 2^4 draws, weighted by their chance, value and squared error are exactly right.

    One cell is certain; the predictions are none, good, and absurd.
    """
    y = np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    pi = np.array([0.3, 0.8, 1.0, 0.05, 0.5])
    value = squared = variance = 0.0
    for draw in itertools.product((False, True), repeat=4):
        drawn = np.insert(draw, 2, True)
        chance = np.prod(np.where(drawn, pi, 1 - pi))
        found = aipw_mean(np.where(drawn, y, NAN), predictions, pi)
        value += chance * found.value
        squared += chance * (found.value - y.mean()) ** 2
        variance += chance * (found.standard_error or 0.0) ** 2 if drawn.sum() > 2 else 0.0
        if drawn.sum() <= 2:
            rest = (drawn * (1 - pi) / pi**2 * (y - np.array(predictions)) ** 2).sum()
            variance += chance * rest / 25
    assert value == pytest.approx(y.mean())
    assert variance == pytest.approx(squared)


def test_by_hand():
    """Seen 1 for sure, drawn 0 against .5 at 1/4, predicted .25: (1 + .5 - 2 + .25)/3."""
    found = aipw_mean([1.0, 0.0, NAN], [0.2, 0.5, 0.25], [1.0, 0.25, 0.5])
    assert found.value == pytest.approx((1.0 + 0.5 - 0.5 / 0.25 + 0.25) / 3)
    assert (found.items, found.excluded, found.interval.low) == (3, 0, None)
    assert "exactly these 3 items" in found.estimand


def test_known_extremes():
    """All certain: the mean, exactly or with its t interval; no predictions: Horvitz-Thompson."""
    y = np.random.default_rng(1).random(40)
    finite = aipw_mean(y, np.zeros(40), np.ones(40))
    assert (finite.interval.low, finite.interval.high) == (finite.value, finite.value)
    assert finite.value == pytest.approx(y.mean())
    wide = aipw_mean(y, np.zeros(40), np.ones(40), target="super-population")
    low, high = ttest_1samp(y, 0).confidence_interval()
    assert (wide.interval.low, wide.interval.high) == pytest.approx((low, high))
    drawn = np.random.default_rng(2).random(40) < 0.5
    plain = aipw_mean(np.where(drawn, y, NAN), np.zeros(40), np.full(40, 0.5))
    assert plain.value == pytest.approx(y[drawn].sum() / 0.5 / 40)
    assert plain.standard_error == pytest.approx(math.sqrt((2 * y[drawn] ** 2).sum()) / 40)


def test_edges():
    """Nothing is nothing, a lost certain cell is excluded, and impossible chances are refused."""
    none = aipw_mean([NAN], [0.5], [1.0])
    assert (none.value, none.status, none.excluded) == (None, "insufficient_data", 1)
    for target in ("finite", "super-population"):
        alone = aipw_mean([1.0, NAN], [0.5, 0.5], [0.5, 0.5], target=target)
        assert alone.status == "ok"
    unseen = aipw_mean([NAN, NAN], [0.5, 0.7], [0.5, 0.5])
    assert (unseen.value, unseen.interval.low, unseen.standard_error) == (0.6, None, None)
    for wrong, name in (
        (([1.0], [0.5], [0.0]), "probabilities"),
        (([1.0], [0.5], [1.5]), "probabilities"),
        (([1.0], [NAN], [0.5]), "predictions"),
        (([1.0, 0.0], [0.5], [0.5]), "values, predictions, probabilities"),
        (([math.inf], [0.5], [0.5]), "values"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            aipw_mean(*wrong)
    with pytest.raises(InvalidValue, match="target is"):
        aipw_mean([1.0], [0.5], [1.0], target="all")


def test_neyman_by_hand():
    """.5 and .9 have spreads .5 and .3; the floor lifts 1.0; what exceeds 1 is certain."""
    pi = neyman_probabilities([0.5, 0.9, 1.0], 1.0, floor=0.25)
    floor = 0.25 * 0.8 / 3
    assert pi == pytest.approx(np.array([0.5, 0.3, floor]) / (0.8 + floor))
    assert neyman_probabilities([0.5, 0.001, 0.001, 0.001], 2.0)[0] == 1.0
    assert neyman_probabilities([0.0, 1.0], 1.0) == pytest.approx([0.5, 0.5])
    assert neyman_probabilities([0.3, 0.6], 2.0) == pytest.approx([1.0, 1.0])
    for wrong, name in (
        (([0.5], 0.0), "expected"),
        (([0.5], 2.0), "expected"),
        (([1.5], 1.0), "predictions"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            neyman_probabilities(*wrong)
    with pytest.raises(InvalidValue, match="floor is"):
        neyman_probabilities([0.5], 1.0, floor=0.0)


@pytest.mark.parametrize("seed", range(5))
def test_neyman_is_what_an_optimiser_finds(seed):
    """Without a floor in effect no chances of the same sum have a smaller expected variance."""
    rng = np.random.default_rng(seed)
    m = rng.uniform(0.1, 0.9, 6)
    m[0] = 0.5
    pi = neyman_probabilities(m, 4.0 + 0.3 * seed)

    def variance(p):
        return float((m * (1 - m) * (1 / p - 1)).sum())

    theirs = scipy.optimize.minimize(
        variance,
        np.full(6, pi.mean()),
        bounds=[(0.01, 1.0)] * 6,
        constraints={"type": "eq", "fun": lambda p: p.sum() - pi.sum()},
        options={"ftol": 1e-12},
    )
    assert pi.sum() == pytest.approx(4.0 + 0.3 * seed)
    assert variance(pi) == pytest.approx(theirs.fun, rel=1e-5)


@pytest.mark.parametrize("target", ["finite", "super-population"])
def test_coverage_and_bias(target):
    """Predictions from another condition, Neyman's chances: no bias, 95 % coverage, less error."""
    model = ProbitModel(ability=0.5, effects=(0, 0.1, 0.3), interaction=0.5)
    rng, runs = np.random.default_rng(12), 800
    table = simulate_outcomes(model, 400, seed=rng)
    truth = simulate_outcomes(model, 400_000, seed=13)[:, 2].mean()
    truth = table[:, 2].mean() if target == "finite" else truth
    values, hits = [], 0
    for _ in range(runs):
        if target != "finite":
            table = simulate_outcomes(model, 400, seed=rng)
        m = 0.1 + 0.7 * table[:, :2].mean(axis=1)
        pi = neyman_probabilities(m, 150)
        y = np.where(rng.random(400) < pi, table[:, 2], NAN)
        found = aipw_mean(y, m, pi, target=target)
        values.append(found.value)
        hits += truth in found.interval
    assert binomtest(hits, runs, 0.95).pvalue > 1e-3
    error = np.std(values, ddof=1)
    assert abs(np.mean(values) - truth) < 4 * error / math.sqrt(runs) + 0.001
    if target == "finite":
        assert error < 0.9 * math.sqrt(truth * (1 - truth) / 150 * (1 - 150 / 400))
