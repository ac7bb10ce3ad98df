"""The logistic model with item intercepts: by hand, against other fits, and its coverage."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
import scipy.optimize
import statsmodels.api as sm
from scipy.integrate import quad_vec
from scipy.special import expit
from scipy.stats import binomtest
from statsmodels.discrete.conditional_models import ConditionalLogit

from falter.records.errors import InvalidValue
from falter.stats.logistic import logistic_mixed

NAN = float("nan")
Z = 1.959963984540054


def draw(beta, sigma: float, items: int, seed):
    """Outcomes from the model itself."""
    rng = np.random.default_rng(seed)
    log_odds = np.asarray(beta) + sigma * rng.standard_normal((items, 1))
    return (rng.random(log_odds.shape) < expit(log_odds)).astype(float)


def normal(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def by_quadrature(table):
    """The likelihood, one item and one integral each, of beta and sigma."""
    there = ~np.isnan(table)
    signs = np.where(table == 1.0, 1.0, -1.0)

    def likelihood(point):
        def one(z):
            chances = expit(signs * (point[:-1] + point[-1] * z))
            return np.where(there, chances, 1.0).prod(axis=1) * normal(z)

        return float(np.log(quad_vec(one, -9, 9, epsabs=1e-13, epsrel=1e-11)[0]).sum())

    return likelihood


def hessian(function, point, step=1e-3):
    """Second differences."""
    axes = step * np.eye(len(point))
    return np.array(
        [
            [
                function(point + a + b) - function(point + a - b)
                - function(point - a + b) + function(point - a - b)
                for b in axes
            ]
            for a in axes
        ]
    ) / (4 * step**2)  # fmt: skip


def odds(found, place: int):
    """The log odds ratio of a condition to the first, and its error."""
    v = np.array(found.covariance)
    error = math.sqrt(v[0, 0] + v[place, place] - 2 * v[0, place])
    return found.log_odds[place] - found.log_odds[0], error


def numbers(found):
    """Every float in a result."""
    queue = [asdict(found)]
    while queue:
        value = queue.pop()
        if isinstance(value, dict):
            queue.extend(value.values())
        elif isinstance(value, tuple | list):
            queue.extend(value)
        elif isinstance(value, float):
            yield value


def test_two_conditions_by_hand():
    """Three parameters fit the 2 x 2 table exactly: its odds ratio, with its error."""
    both, b, c, neither = 50, 14, 6, 30
    table = np.array([[1, 1]] * both + [[1, 0]] * b + [[0, 1]] * c + [[0, 0]] * neither)
    found = logistic_mixed(table)
    ratio, error = odds(found, 1)
    assert math.exp(ratio) == pytest.approx(c / b, rel=1e-6)
    assert error == pytest.approx(math.sqrt(1 / b + 1 / c), rel=1e-5)
    counts = np.array([both, b, c, neither])
    assert found.log_likelihood == pytest.approx(counts @ np.log(counts / 100), abs=1e-8)
    assert (found.status, found.items, found.excluded) == ("ok", 100, 0)
    assert found.message == "converged"


def test_items_as_unlike_as_can_be():
    """Ten changes among 1,000 items: sigma above 50, and still the integral is exact."""
    counts = np.array([600, 5, 5, 390])
    table = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0)
    found = logistic_mixed(table)
    assert found.sigma > 50
    assert found.log_likelihood == pytest.approx(counts @ np.log(counts / 1000), abs=1e-6)
    assert odds(found, 1)[0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_is_the_maximum_of_the_likelihood(gaps):
    """Estimates, errors and both ends of sigma are those of one integral an item."""
    table = draw([1.0, 0.2, 0.6], 1.6, 40, 3)
    table[np.random.default_rng(4).random(table.shape) < gaps] = NAN
    likelihood = by_quadrature(table)
    best = scipy.optimize.minimize(lambda x: -likelihood(x), [0.5, 0.0, 0.3, 1.0])
    found = logistic_mixed(table)
    betas = list(found.log_odds)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-6)
    assert [*betas, found.sigma] == pytest.approx(best.x, abs=2e-3)
    point = np.array([*betas, found.sigma])
    covariance = np.linalg.inv(-hessian(likelihood, point))
    assert np.array(found.covariance) == pytest.approx(covariance[:-1, :-1], rel=1e-3, abs=1e-5)
    for end in (found.sigma_interval.low, found.sigma_interval.high):
        held = scipy.optimize.minimize(lambda x, s=end: -likelihood(np.append(x, s)), betas)
        assert found.log_likelihood + held.fun == pytest.approx(Z**2 / 2, abs=2e-3)


def test_conditional_slopes_of_statsmodels():
    """The odds ratios are nearly those that assume nothing about the items."""
    table = draw([0.8, 0.0, 0.5, -0.6], 1.5, 500, 5)
    # Items that are all right or all wrong say nothing to it.
    varied = table[np.ptp(table, axis=1) > 0]
    items = np.repeat(np.arange(len(varied)), 4)
    columns = np.tile(np.eye(4)[:, 1:], (len(varied), 1))
    theirs = ConditionalLogit(varied.ravel(), columns, groups=items).fit(disp=False)
    found = logistic_mixed(table)
    ratios, errors = zip(*(odds(found, place) for place in (1, 2, 3)), strict=True)
    assert ratios == pytest.approx(theirs.params, abs=0.02)
    assert errors == pytest.approx(theirs.bse, rel=0.02)


def test_without_item_differences_it_is_a_plain_logit():
    """Outcomes less alike than chance: sigma 0, and statsmodels' logit of a column each."""
    table = np.repeat([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]], [20, 18, 25, 6], axis=0)
    found = logistic_mixed(table)
    columns = np.tile(np.eye(3), (len(table), 1))
    theirs = sm.Logit(table.ravel(), columns).fit(disp=False)
    assert (found.sigma, found.sigma_interval.low) == (0.0, 0.0)
    assert found.message == "converged, sigma at its boundary 0"
    assert found.log_odds == pytest.approx(theirs.params, abs=1e-6)
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(theirs.bse, rel=1e-5)
    assert found.log_likelihood == pytest.approx(theirs.llf)


def test_right_and_wrong_exchanged_and_columns_reordered():
    """The fit does not depend on what is called right, nor on the order of items or conditions."""
    table = draw([1.0, 0.3, -0.2], 1.2, 120, 6)
    found, turned = logistic_mixed(table), logistic_mixed(1 - table)
    assert turned.sigma == pytest.approx(found.sigma, abs=1e-6)
    assert turned.log_odds == pytest.approx([-beta for beta in found.log_odds], abs=1e-6)
    assert np.array(turned.covariance) == pytest.approx(np.array(found.covariance), rel=1e-5)
    moved = logistic_mixed(table[::-1][:, [0, 2, 1]])
    assert odds(moved, 1) == pytest.approx(odds(found, 2), abs=1e-6)
    assert moved.log_likelihood == pytest.approx(found.log_likelihood)


@pytest.mark.parametrize(
    ("table", "status"),
    [
        (np.ones((5, 3)), "undefined_zero_variance"),
        (np.zeros((5, 3)), "undefined_zero_variance"),
        ([[1], [0], [1]], "not_identified"),
        (np.empty((4, 0)), "not_identified"),
        ([[1, 0]], "insufficient_data"),
        ([[1, 0], [NAN, NAN]], "insufficient_data"),
        (np.full((3, 2), NAN), "insufficient_data"),
        (np.empty((0, 2)), "insufficient_data"),
        # Every item all right or all wrong; an order that no item contradicts; nothing in common.
        ([[1, 1], [0, 0], [1, 1]], "not_identified"),
        ([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], "not_identified"),
        ([[1, NAN], [0, NAN], [NAN, 1], [NAN, 0]], "not_identified"),
        # One condition is left.
        ([[1, 1], [1, 0], [1, 1]], "not_identified"),
        # Two changes of 1,000: sigma is about 350.
        (np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [600, 1, 1, 398], axis=0), "not_identified"),
    ],
)
def test_where_there_is_no_fit(table, status):
    """The status says why, every value is None, and each condition has its place."""
    found = logistic_mixed(table)
    assert found.status == status
    assert (found.sigma, found.covariance, found.log_likelihood) == (None, None, None)
    assert found.message.startswith("not fitted: ")
    assert found.log_odds == (None,) * np.shape(table)[1]
    assert (found.sigma_interval.low, found.sigma_interval.high) == (None, None)


def test_a_condition_that_is_all_right_stands_aside():
    """It has no log odds, and the others are as if it were not there."""
    table = draw([1.0, 0.3, -0.2], 1.2, 80, 8)
    plain = logistic_mixed(table)
    more = logistic_mixed(np.column_stack([table, np.ones(80), np.full(80, NAN)]))
    assert (more.log_odds, more.covariance) == ((*plain.log_odds, None, None), plain.covariance)
    first = logistic_mixed(np.column_stack([np.zeros(80), table]))
    assert (first.status, first.log_odds) == ("ok", (None, *plain.log_odds))


def test_gaps_are_left_out_and_counted():
    """An item without outcomes is excluded, and what is no outcome is refused."""
    table = draw([1.0, 0.3], 1.2, 60, 9)
    more = logistic_mixed(np.vstack([table, [[NAN, NAN]]]))
    assert (more.items, more.excluded) == (60, 1)
    assert more.log_odds == logistic_mixed(table).log_odds
    with pytest.raises(InvalidValue, match=r"outcomes is 0\.5"):
        logistic_mixed([[0.5, 1.0]])
    with pytest.raises(InvalidValue, match="outcomes is"):
        logistic_mixed([1.0, 0.0])
    with pytest.raises(InvalidValue, match="level is"):
        logistic_mixed(table, level=95)


def test_small_tables_never_break_it():
    """Over 150 tiny tables with gaps: finite numbers, a maximum wherever there is a fit."""
    rng = np.random.default_rng(10)
    fitted = 0
    for _ in range(150):
        table = rng.integers(0, 2, size=(rng.integers(1, 9), rng.integers(1, 5))).astype(float)
        table[rng.random(table.shape) < 0.15] = NAN
        found = logistic_mixed(table)
        assert all(math.isfinite(x) for x in numbers(found))
        assert found.message.startswith("converged") == (found.status == "ok")
        fitted += found.status == "ok"
    assert fitted > 20


def test_intervals_cover_and_nothing_is_biased():
    """Of 100 studies 95 % hold the odds ratio and sigma."""
    beta, sigma, studies = np.array([1.2, 0.4, 0.9]), 1.5, 100
    found = [logistic_mixed(draw(beta, sigma, 150, 1000 + seed)) for seed in range(studies)]
    ratios, errors = np.array([odds(f, 1) for f in found]).T
    held = {
        "odds": int((np.abs(ratios + 0.8) <= Z * errors).sum()),
        "sigma": sum(sigma in f.sigma_interval for f in found),
    }
    for count in held.values():
        assert binomtest(count, studies, 0.95).pvalue > 1e-3
    for values, known in ((ratios, -0.8), ([f.sigma for f in found], sigma)):
        assert abs(np.mean(values) - known) < 4 * np.std(values) / math.sqrt(studies)
