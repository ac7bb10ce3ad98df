"""The model with known truth, against SciPy's integrals and against its own draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from falter.records.errors import InvalidValue
from falter.stats.simulate import ProbitModel, simulate_outcomes, simulated_truth
from falter.stats.variance import components

MODEL = ProbitModel(ability=0.6, effects=(0.0, 0.0, 0.3, 0.7), interaction=0.6, noise=0.4)


def test_truth_is_scipys_bivariate_normal():
    """Joint probabilities agree with SciPy's, near-perfect correlation included."""
    for model in (MODEL, ProbitModel(ability=1.0, effects=(0.0, 0.1), interaction=0.02)):
        truth = simulated_truth(model)
        rho = model.difficulty**2 / model.spread**2
        h = (model.ability - np.array(model.effects)) / model.spread
        joint = multivariate_normal.cdf([h[0], h[-1]], cov=[[1, rho], [rho, 1]])
        ours = truth.covariance[0, -1] + truth.accuracy[0] * truth.accuracy[-1]
        assert ours == pytest.approx(joint, abs=1e-6)


def test_truth_is_what_many_items_show():
    """A hundred thousand items come within five standard errors of every truth."""
    truth = simulated_truth(MODEL)
    outcomes = simulate_outcomes(MODEL, 100_000, seed=3)
    assert outcomes.mean(axis=0) == pytest.approx(truth.accuracy, abs=0.008)
    assert np.cov(outcomes.T) == pytest.approx(truth.covariance, abs=0.005)
    changed = (outcomes[:, :1] != outcomes[:, 1:]).mean(axis=0)
    assert changed == pytest.approx(truth.discordance, abs=0.008)
    found = components(outcomes[:, :, None])
    for name, value in (
        ("data", truth.plugin["data"]),
        ("pert", truth.plugin["pert"]),
        ("oneway_item", truth.oneway["sigma2_item"]),
        ("item", truth.crossed["item"]),
        ("condition", truth.crossed["condition"]),
        ("interaction", truth.crossed["interaction"]),
    ):
        assert getattr(found, name)[0] == pytest.approx(value, abs=0.003)


def test_runs_differ_by_the_noise_alone():
    """The variance between two runs of a cell is the integrated one, and none without noise."""
    outcomes = simulate_outcomes(MODEL, 60_000, runs=2, seed=4)
    between = np.square(outcomes[..., 0] - outcomes[..., 1]).mean() / 2
    assert between == pytest.approx(simulated_truth(MODEL).run_variance, abs=0.003)
    still = ProbitModel(ability=0.0, effects=(0.0, 0.2))
    assert simulated_truth(still).run_variance == pytest.approx(0.0, abs=1e-3)
    twice = simulate_outcomes(still, 50, runs=2)
    assert (twice[..., 0] == twice[..., 1]).all()


def test_seed_repeats_and_errors_name_the_argument():
    """The same seed draws the same outcomes; a model without any spread is refused."""
    assert (simulate_outcomes(MODEL, 9, seed=1) == simulate_outcomes(MODEL, 9, seed=1)).all()
    with pytest.raises(InvalidValue, match="items is 0"):
        simulate_outcomes(MODEL, 0)
    with pytest.raises(InvalidValue, match="difficulty"):
        simulated_truth(ProbitModel(ability=0, effects=(0,), difficulty=0, interaction=0))
