"""Chance agreement of items of unequal difficulty: by hand, against scipy, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binomtest

from falter.core.errors import InvalidValue
from falter.stats import (
    ProbitModel,
    all_alike,
    item_correlation,
    simulate_outcomes,
    simulated_truth,
)

NAN = float("nan")


def test_all_alike_by_hand():
    """Uniform success rates: 1/(n + 1); equal ones: p^n; two sorts of items: p."""
    assert all_alike(0.5, 1 / 3, 9).right == pytest.approx(1 / 10)
    assert all_alike(0.5, 1 / 3, 9).either == pytest.approx(2 / 10)
    assert all_alike(0.8, 0.0, 3).right == pytest.approx(0.512)
    assert all_alike(0.8, 0.0, 3).wrong == pytest.approx(0.008)
    assert (all_alike(0.8, 1.0, 24).right, all_alike(1.0, 0.3, 24).right) == (0.8, 1.0)
    assert all_alike(0.3, 0.4, 1).right == pytest.approx(0.3)


def test_a_baseline_of_equal_difficulty_is_too_low():
    """24 answers at .97: .48 if all items are equally hard, .89 with a correlation of one half."""
    assert all_alike(0.97, 0.0, 24).right == pytest.approx(0.48, abs=0.005)
    assert all_alike(0.97, 0.5, 24).right == pytest.approx(0.89, abs=0.005)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.97])
@pytest.mark.parametrize("correlation", [0.01, 0.3, 0.9])
def test_all_alike_is_scipys_beta_binomial(rate, correlation):
    """The chances of 0 and of n successes agree with scipy's distribution."""
    total = 1 / correlation - 1
    theirs = betabinom(24, rate * total, (1 - rate) * total)
    found = all_alike(rate, correlation, 24)
    assert (found.right, found.wrong) == pytest.approx((theirs.pmf(24), theirs.pmf(0)))


def test_correlation_by_hand():
    """Items 11, 11, 00 and 10: MS_B 11/24 and MS_W 3/24, so 8/14; gaps are weighed."""
    table = [[1, 1], [1, 1], [0, 0], [1, 0]]
    found = item_correlation(table)
    assert (found.value, found.rate) == (pytest.approx(8 / 14), 5 / 8)
    more = item_correlation([*table, [1, NAN]])
    assert (more.value, more.items, more.excluded) == (found.value, 4, 1)
    assert item_correlation([[1, 1, 1], [0, 0, 0]]).value == 1.0
    assert item_correlation([[1, 0], [0, 1], [1, 0]]).value == 0.0
    gaps = item_correlation([[1, 1, 1], [1, NAN, 1], [0, 0, 1]])
    # Sizes 3, 2 and 3: m = (8 - 22/8)/2, and 2/3 within over 8 - 3.
    mean = 6 / 8
    ms_b = (5 * (1 - mean) ** 2 + 3 * (1 / 3 - mean) ** 2) / 2
    ms_w, m = (2 / 3) / 5, (8 - 22 / 8) / 2
    assert gaps.value == pytest.approx((ms_b - ms_w) / (ms_b + (m - 1) * ms_w))


def test_correlation_edges():
    """One item and equal outcomes have none; scores on a scale are refused."""
    for table, status in (
        ([[1, 0]], "insufficient_data"),
        ([[1], [0], [1]], "not_identified"),
        ([], "insufficient_data"),
        (np.zeros((0, 3)), "insufficient_data"),
        ([[1, 1], [1, 1]], "undefined_zero_variance"),
        ([[NAN, 1], [0, NAN]], "insufficient_data"),
    ):
        found = item_correlation(table)
        assert (found.value, found.status) == (None, status)
    for call, name in (
        (lambda: item_correlation([[0.5, 1.0]]), "outcomes is 0.5"),
        (lambda: item_correlation([1.0]), "outcomes is"),
        (lambda: all_alike(1.2, 0.1, 3), "rate is 1.2"),
        (lambda: all_alike(0.2, -0.1, 3), "correlation is -0.1"),
        (lambda: all_alike(0.2, 0.1, 0), "count is 0"),
    ):
        with pytest.raises(InvalidValue, match=name):
            call()


def test_intervals_cover_and_the_model_predicts_agreement():
    """95 % of the intervals hold the known correlation, which then predicts all-right items."""
    model = ProbitModel(ability=0.7, effects=(0.0,) * 6, difficulty=1.2, interaction=0.8)
    truth = simulated_truth(model)
    known = float(truth.covariance[0, 1] / truth.covariance[0, 0])
    rng = np.random.default_rng(71)
    held = sum(
        known in item_correlation(simulate_outcomes(model, 80, seed=rng), replications=99).interval
        for _ in range(150)
    )
    assert binomtest(held, 150, 0.95).pvalue > 1e-3
    many = simulate_outcomes(model, 20_000, seed=rng)
    predicted = all_alike(truth.accuracy[0], known, 6).right
    assert many.all(axis=1).mean() == pytest.approx(predicted, abs=0.02)
    assert predicted > 2 * truth.accuracy[0] ** 6
