"""The logistic model with item intercepts: by hand, against other fits, and its coverage."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
import scipy.optimize
import statsmodels.api as sm
from scipy.integrate import quad_vec
from scipy.special import expit, logit
from scipy.stats import binomtest
from statsmodels.discrete.conditional_models import ConditionalLogit

from falter.core.errors import InvalidValue
from falter.stats import logistic_mixed, paired_difference

NAN = float("nan")
Z = 1.959963984540054


def draw(beta, sigma: float, items: int, seed):
    """Outcomes from the model itself."""
    rng = np.random.default_rng(seed)
    log_odds = np.asarray(beta) + sigma * rng.standard_normal((items, 1))
    return (rng.random(log_odds.shape) < expit(log_odds)).astype(float)


def truth(beta, sigma: float):
    """The marginal probabilities, by an integral of another kind."""
    return quad_vec(lambda z: expit(np.asarray(beta) + sigma * z) * normal(z), -9, 9)[0]


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
    """Three parameters fit the 2 x 2 table exactly: its drop, its odds ratio, its errors."""
    both, b, c, neither = 50, 14, 6, 30
    table = np.array([[1, 1]] * both + [[1, 0]] * b + [[0, 1]] * c + [[0, 0]] * neither)
    found = logistic_mixed(table)
    n, drop = 100, found.drops[0]
    assert [p.value for p in found.probabilities] == pytest.approx([0.64, 0.56])
    assert drop.value == pytest.approx((b - c) / n)
    error = math.sqrt(b + c - (b - c) ** 2 / n) / n
    assert drop.standard_error == pytest.approx(error, rel=1e-6)
    assert drop.interval.high == pytest.approx(0.08 + Z * error)
    assert drop.odds_ratio == pytest.approx(c / b, rel=1e-6)
    half = Z * math.sqrt(1 / b + 1 / c)
    assert drop.odds_interval.high == pytest.approx(math.exp(math.log(c / b) + half), rel=1e-5)
    counts = np.array([both, b, c, neither])
    assert found.log_likelihood == pytest.approx(counts @ np.log(counts / n), abs=1e-8)
    # A probability's interval is symmetric in log odds, with the binomial error.
    ends = found.probabilities[0].interval
    half = Z * math.sqrt(1 / (n * 0.64 * 0.36))
    assert (logit(ends.low), logit(ends.high)) == pytest.approx(
        (logit(0.64) - half, logit(0.64) + half), rel=1e-5
    )
    assert (found.status, found.converged, found.boundary) == ("ok", True, False)
    assert (found.items, found.excluded, found.message) == (100, 0, "converged")


def test_items_as_unlike_as_can_be():
    """Ten changes among 1,000 items: sigma above 50, and still the integral is exact."""
    counts = np.array([600, 5, 5, 390])
    table = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0)
    found = logistic_mixed(table)
    assert found.sigma > 50 and found.icc > 0.99
    assert found.log_likelihood == pytest.approx(counts @ np.log(counts / 1000), abs=1e-6)
    assert found.drops[0].value == pytest.approx(0.0, abs=1e-9)
    assert found.drops[0].standard_error == pytest.approx(math.sqrt(10) / 1000, rel=1e-4)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_is_the_maximum_of_the_likelihood(gaps):
    """Estimates, errors and both ends of sigma are those of one integral an item."""
    table = draw([1.0, 0.2, 0.6], 1.6, 40, 3)
    table[np.random.default_rng(4).random(table.shape) < gaps] = NAN
    likelihood = by_quadrature(table)
    best = scipy.optimize.minimize(lambda x: -likelihood(x), [0.5, 0.0, 0.3, 1.0])
    found = logistic_mixed(table)
    betas = [p.log_odds for p in found.probabilities]
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-6)
    assert [*betas, found.sigma] == pytest.approx(best.x, abs=2e-3)
    point = np.array([*betas, found.sigma])
    covariance = np.linalg.inv(-hessian(likelihood, point))
    means = truth(point[:-1], point[-1])
    assert [p.value for p in found.probabilities] == pytest.approx(means, abs=1e-7)
    slopes = np.array(
        [(truth((q := point + d)[:-1], q[-1]) - means) / 1e-5 for d in 1e-5 * np.eye(4)]
    ).T
    for place, drop in enumerate(found.drops, start=1):
        contrast = slopes[0] - slopes[place]
        assert drop.value == pytest.approx(means[0] - means[place], abs=1e-7)
        assert drop.standard_error == pytest.approx(
            math.sqrt(contrast @ covariance @ contrast), rel=1e-3
        )
        error = math.sqrt(np.array([1, -1]) @ covariance[np.ix_([0, place], [0, place])] @ [1, -1])
        assert math.log(drop.odds_interval.high) == pytest.approx(
            betas[place] - betas[0] + Z * error, abs=2e-3
        )
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
    ratios = [drop.log_odds_ratio for drop in found.drops]
    errors = [math.log(d.odds_interval.high / d.odds_ratio) / Z for d in found.drops]
    assert ratios == pytest.approx(theirs.params, abs=0.02)
    assert errors == pytest.approx(theirs.bse, rel=0.02)


def test_without_item_differences_it_is_a_plain_logit():
    """Outcomes less alike than chance: sigma 0, and statsmodels' logit of a column each."""
    table = np.repeat([[1, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]], [20, 18, 25, 6], axis=0)
    found = logistic_mixed(table)
    columns = np.tile(np.eye(3), (len(table), 1))
    theirs = sm.Logit(table.ravel(), columns).fit(disp=False)
    assert (found.sigma, found.icc, found.boundary) == (0.0, 0.0, True)
    assert (found.sigma_interval.low, found.icc_interval.low) == (0.0, 0.0)
    assert found.message == "converged, sigma at its boundary 0"
    assert [p.log_odds for p in found.probabilities] == pytest.approx(theirs.params, abs=1e-6)
    assert found.log_likelihood == pytest.approx(theirs.llf)
    p = table.mean(axis=0)
    errors = p * (1 - p) * theirs.bse
    for place, drop in enumerate(found.drops, start=1):
        assert drop.value == pytest.approx(p[0] - p[place])
        assert drop.standard_error == pytest.approx(math.hypot(errors[0], errors[place]), rel=1e-5)


def test_right_and_wrong_exchanged_and_columns_reordered():
    """The fit does not depend on what is called right, nor on the order of items or conditions."""
    table = draw([1.0, 0.3, -0.2], 1.2, 120, 6)
    found, turned = logistic_mixed(table), logistic_mixed(1 - table)
    assert turned.sigma == pytest.approx(found.sigma, abs=1e-6)
    for one, other in zip(found.drops, turned.drops, strict=True):
        assert one.value == pytest.approx(-other.value, abs=1e-7)
        assert one.log_odds_ratio == pytest.approx(-other.log_odds_ratio, abs=1e-6)
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-5)
    moved = logistic_mixed(table[::-1][:, [0, 2, 1]])
    assert moved.drops[0].value == pytest.approx(found.drops[1].value, abs=1e-7)
    assert moved.log_likelihood == pytest.approx(found.log_likelihood)


def test_icc_is_the_share_of_sigma():
    """The latent share of the items, and its interval the image of sigma's."""
    found = logistic_mixed(draw([0.5, 0.0], 1.5, 200, 7), level=0.9)
    for share, sigma in (
        (found.icc, found.sigma),
        (found.icc_interval.low, found.sigma_interval.low),
        (found.icc_interval.high, found.sigma_interval.high),
    ):
        assert share == pytest.approx(sigma**2 / (sigma**2 + math.pi**2 / 3))
    assert found.icc in found.icc_interval and found.icc_interval.level == 0.9


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
    assert (found.sigma, found.icc, found.log_likelihood) == (None, None, None)
    assert not found.converged and not found.boundary
    assert found.message.startswith("not fitted: ")
    assert len(found.probabilities) == np.shape(table)[1]
    for each in (*found.probabilities, *found.drops):
        assert each.value is None and each.status != "ok"
        assert (each.interval.low, each.interval.high) == (None, None)


def test_a_condition_that_is_all_right_stands_aside():
    """It has no value, the others are as if it were not there; as baseline it takes all drops."""
    table = draw([1.0, 0.3, -0.2], 1.2, 80, 8)
    plain = logistic_mixed(table)
    more = logistic_mixed(np.column_stack([table, np.ones(80), np.full(80, NAN)]))
    assert [d.status for d in more.drops] == ["ok", "ok", "not_identified", "insufficient_data"]
    assert (more.drops[:2], more.probabilities[:3]) == (plain.drops, plain.probabilities)
    assert (more.drops[2].value, more.drops[2].odds_ratio) == (None, None)
    assert [p.items for p in more.probabilities] == [80, 80, 80, 80, 0]
    first = logistic_mixed(np.column_stack([np.zeros(80), table]))
    assert first.status == "ok"
    assert {d.status for d in first.drops} == {"not_identified"}
    assert [p.value for p in first.probabilities[1:]] == [p.value for p in plain.probabilities]


def test_gaps_are_left_out_and_counted():
    """An item without outcomes is excluded, and what is no outcome is refused."""
    table = draw([1.0, 0.3], 1.2, 60, 9)
    more = logistic_mixed(np.vstack([table, [[NAN, NAN]]]))
    assert (more.items, more.excluded) == (60, 1)
    assert more.drops == logistic_mixed(table).drops
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
        assert found.converged == (found.status == "ok")
        fitted += found.converged
        for each in (*found.probabilities, *found.drops):
            assert (each.value is None) == (each.status != "ok")
    assert fitted > 20


def test_intervals_cover_and_nothing_is_biased():
    """Of 100 studies 95 % hold each drop, odds ratio, probability and sigma."""
    beta, sigma, studies = np.array([1.2, 0.4, 0.9]), 1.5, 100
    means = truth(beta, sigma)
    found = [logistic_mixed(draw(beta, sigma, 150, 1000 + seed)) for seed in range(studies)]
    held = {
        "drop": sum(means[0] - means[1] in f.drops[0].interval for f in found),
        "odds": sum(math.exp(-0.8) in f.drops[0].odds_interval for f in found),
        "probability": sum(means[2] in f.probabilities[2].interval for f in found),
        "sigma": sum(sigma in f.sigma_interval for f in found),
    }
    for count in held.values():
        assert binomtest(count, studies, 0.95).pvalue > 1e-3
    for values, known in (
        ([f.drops[0].value for f in found], means[0] - means[1]),
        ([f.drops[0].log_odds_ratio for f in found], -0.8),
        ([f.sigma for f in found], sigma),
    ):
        assert abs(np.mean(values) - known) < 4 * np.std(values) / math.sqrt(studies)


def test_odds_ratios_are_further_from_one_than_the_averages():
    """Averaging over unlike items shrinks log odds; the drop is still the paired difference."""
    table = draw([1.5, 0.5], 2.5, 2000, 12)
    found = logistic_mixed(table)
    p, q = (x.value for x in found.probabilities)
    assert found.drops[0].log_odds_ratio < logit(q) - logit(p) < 0
    assert found.drops[0].value == pytest.approx(paired_difference(*table.T).value, abs=1e-6)
