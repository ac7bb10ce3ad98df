"""The log odds ratio of matched pairs: by hand, against other fits, and its coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, binomtest
from statsmodels.discrete.conditional_models import ConditionalLogit

from falter.core.errors import InvalidValue
from falter.stats import conditional_log_odds, logistic_mixed, mcnemar


def pairs(b: int, c: int, both: int, neither: int):
    """A table of baseline and perturbed outcomes with these four counts."""
    rows = [[1, 0]] * b + [[0, 1]] * c + [[1, 1]] * both + [[0, 0]] * neither
    return np.array(rows, dtype=float)


def test_by_hand():
    """Four fell and two rose: the odds halve, and 4 of 6 is 22 to 96 %."""
    found = conditional_log_odds(4, 2)
    assert (found.value, found.odds_ratio) == (pytest.approx(-math.log(2)), 0.5)
    assert (found.status, found.fell) == ("ok", pytest.approx(2 / 3))
    assert found.standard_error == pytest.approx(math.sqrt(3 / 4))
    assert found.fell_interval.low == pytest.approx(0.2227781, abs=1e-6)
    assert found.fell_interval.high == pytest.approx(0.9567281, abs=1e-6)
    assert found.interval.low == pytest.approx(math.log(0.0432719 / 0.9567281), abs=1e-5)
    assert found.interval.high == pytest.approx(math.log(0.7772219 / 0.2227781), abs=1e-5)
    assert found.value in found.interval


def test_conditions_turned_around_turn_the_sign():
    """With b and c exchanged, value and interval are mirrored at 0."""
    one, other = conditional_log_odds(9, 3, level=0.9), conditional_log_odds(3, 9, level=0.9)
    assert one.value == pytest.approx(-other.value)
    assert one.interval.low == pytest.approx(-other.interval.high)
    assert one.interval.high == pytest.approx(-other.interval.low)
    assert conditional_log_odds(5, 5).value == 0.0


def test_a_count_of_zero_leaves_one_end():
    """Nothing rose: no ratio, but a limit from above; no changed pair: nothing at all."""
    fell = conditional_log_odds(6, 0)
    assert (fell.value, fell.odds_ratio, fell.standard_error) == (None, None, None)
    assert (fell.status, fell.fell) == ("undefined_zero_denominator", 1.0)
    # 0.025 = P(no rise in 6) = fell^6 at the lower limit of the share that falls.
    least = 0.025 ** (1 / 6)
    assert fell.interval.low is None
    assert fell.interval.high == pytest.approx(math.log((1 - least) / least))
    assert (fell.fell_interval.low, fell.fell_interval.high) == (pytest.approx(least), 1.0)
    rose = conditional_log_odds(0, 6)
    assert rose.interval.low == pytest.approx(-fell.interval.high)
    assert (rose.interval.high, rose.status) == (None, fell.status)
    none = conditional_log_odds(0, 0)
    assert (none.value, none.fell, none.status) == (None, None, "insufficient_data")
    assert (none.interval.low, none.interval.high, none.fell_interval.low) == (None, None, None)


@pytest.mark.parametrize(("b", "c", "name"), [(-1, 2, "b"), (2, 1.5, "c"), (2, math.inf, "c")])
def test_what_is_no_count_is_refused(b, c, name):
    """Negative, broken and endless counts are named with their value."""
    with pytest.raises(InvalidValue, match=f"{name} is"):
        conditional_log_odds(b, c)
    with pytest.raises(InvalidValue, match="level is"):
        conditional_log_odds(1, 1, level=95)


@pytest.mark.parametrize(("b", "c"), [(4, 2), (30, 12), (7, 19)])
def test_is_the_conditional_logit_of_statsmodels(b, c):
    """Value and error are those of a conditional logit with one stratum an item."""
    # Pairs that did not change say nothing to it.
    table = pairs(b, c, 0, 0)
    items = np.repeat(np.arange(len(table)), 2)
    perturbed = np.tile([0.0, 1.0], len(table))[:, None]
    theirs = ConditionalLogit(table.ravel(), perturbed, groups=items).fit(disp=False)
    found = conditional_log_odds(b, c)
    assert found.value == pytest.approx(theirs.params[0], abs=1e-4)
    assert found.standard_error == pytest.approx(theirs.bse[0], rel=1e-3)


def test_is_the_mixed_model_of_two_conditions():
    """Normal item intercepts fit any 2 x 2 table of alike pairs, with this very odds ratio."""
    drop = logistic_mixed(pairs(14, 6, 50, 30)).drops[0]
    found = conditional_log_odds(14, 6)
    assert drop.log_odds_ratio == pytest.approx(found.value, abs=1e-6)
    half = 1.959963984540054 * found.standard_error
    assert drop.odds_interval.low == pytest.approx(math.exp(found.value - half), rel=1e-5)


def test_the_interval_is_the_exact_test_inverted():
    """It leaves 0 out exactly where McNemar's exact p is below 5 %."""
    for b in range(26):
        for c in range(26):
            ends = conditional_log_odds(b, c).interval
            low = -math.inf if ends.low is None else ends.low
            high = math.inf if ends.high is None else ends.high
            assert (not low <= 0.0 <= high) == (mcnemar(b, c).exact_p < 0.05)


@pytest.mark.parametrize("total", [5, 12, 40])
@pytest.mark.parametrize("truth", [-2.0, -0.4, 0.0, 1.1])
def test_coverage_is_at_least_the_level(total, truth):
    """Summed over all counts, nothing simulated: never below 95 %."""
    covered = 0.0
    for b in range(total + 1):
        ends = conditional_log_odds(b, total - b).interval
        low = -math.inf if ends.low is None else ends.low
        high = math.inf if ends.high is None else ends.high
        covered += binom.pmf(b, total, expit(-truth)) * (low <= truth <= high)
    assert covered >= 0.95


def test_unlike_items_do_not_bias_it():
    """Items of very unequal difficulty: the mean estimate is the truth, which intervals hold."""
    rng = np.random.default_rng(17)
    values, held = [], 0
    for _ in range(400):
        ability = np.where(rng.random(400) < 0.3, 3.0, -0.5) + rng.normal(size=400)
        first, second = (rng.random(400) < expit(ability + beta) for beta in (0.4, -0.2))
        found = conditional_log_odds(int((first & ~second).sum()), int((second & ~first).sum()))
        values.append(found.value)
        held += -0.6 in found.interval
    error = np.std(values) / math.sqrt(len(values))
    assert abs(np.mean(values) + 0.6) < 4 * error
    assert binomtest(held, 400, 0.95, alternative="less").pvalue > 1e-3
