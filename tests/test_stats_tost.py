"""Equivalence tests: by hand, against statsmodels, and at the margin itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.weightstats import ttost_paired

from falter.core.errors import InvalidValue
from falter.stats import paired_difference, tost

NAN = float("nan")


def outcomes(b: int, c: int, same: int) -> tuple[list[float], list[float]]:
    return [1.0] * b + [0.0] * c + [1.0] * same, [0.0] * b + [1.0] * c + [1.0] * same


@pytest.mark.parametrize("seed", range(6))
def test_real_scores_are_statsmodels(seed):
    """Both one-sided p-values and their larger one agree with the paired t version."""
    rng = np.random.default_rng(seed)
    first = rng.random(60)
    second = first - 0.01 * seed + rng.normal(size=60) * 0.1
    larger, low, high = ttost_paired(first, second, -0.06, 0.06)
    found = tost(first, second, margin=0.06)
    assert found.p_value == pytest.approx(min(0.5, larger), rel=1e-6)
    assert (found.verdict == "equivalent") == (larger < 0.05)
    one = tost(first, second, margin=0.06, side="loss")
    assert one.p_value == pytest.approx(min(0.5, high[1]), rel=1e-6)
    assert larger == max(low[1], high[1])


def test_three_verdicts_by_hand():
    """2,000 items: 20 against 18 is equivalent, 100 against 20 a loss, 70 against 64 neither."""
    same = tost(*outcomes(20, 18, 1962))
    lost = tost(*outcomes(100, 20, 1880))
    open_ = tost(*outcomes(70, 64, 1866), margin=0.012)
    assert [x.verdict for x in (same, lost, open_)] == ["equivalent", "degraded", "undecided"]
    assert same.interval == paired_difference(*outcomes(20, 18, 1962), level=0.9).interval
    assert same.p_value < 1e-3 and lost.p_value == 0.5 and 0.05 < open_.p_value < 0.5
    # A loss that is real but inside the margin is equivalent: the margin says what matters.
    small = tost(*outcomes(30, 5, 1965))
    assert (small.verdict, small.interval.low > 0) == ("equivalent", True)
    # A large gain is no loss; only non-inferiority can say so.
    gain = outcomes(20, 100, 1880)
    assert tost(*gain).verdict == "undecided"
    assert tost(*gain, side="loss").verdict == "equivalent"


def test_the_p_value_is_where_the_interval_meets_the_margin():
    """At alpha = p the verdict flips, for 0/1 scores with and without clusters."""
    first, second = outcomes(12, 10, 378)
    for clusters in (None, list(range(200)) * 2):
        found = tost(first, second, margin=0.03, clusters=clusters)
        assert 1e-4 < found.p_value < 0.3
        for factor, verdict in ((1.001, True), (0.999, False)):
            again = tost(
                first, second, margin=0.03, clusters=clusters, alpha=found.p_value * factor
            )
            assert (again.verdict == "equivalent") is verdict


def test_not_seeing_a_loss_is_not_equivalence():
    """Thirty items without any change still do not show that at most 2 points are lost."""
    found = tost([1.0] * 30, [1.0] * 30)
    assert (found.value, found.verdict) == (0.0, "undecided")
    assert tost([1.0] * 300, [1.0] * 300).verdict == "equivalent"


def test_edges():
    """Too little has no verdict; missing items are counted; impossible requests are refused."""
    nothing = tost([1.0, NAN], [NAN, 1.0])
    assert (nothing.value, nothing.verdict, nothing.p_value) == (None, None, None)
    assert (nothing.status, nothing.items, nothing.excluded) == ("insufficient_data", 0, 2)
    steady = tost([0.5, 0.75, 1.0], [0.25, 0.5, 0.75], margin=0.3)
    assert (steady.value, steady.verdict, steady.p_value) == (0.25, None, None)  # no spread at all
    with pytest.raises(InvalidValue, match="margin is 0"):
        tost([1.0], [1.0], margin=0)
    with pytest.raises(InvalidValue, match=r"alpha is 0\.5"):
        tost([1.0], [1.0], alpha=0.5)
    with pytest.raises(InvalidValue, match="side is 'gain'"):
        tost([1.0], [1.0], side="gain")


def test_a_loss_of_the_margin_is_rarely_called_equivalent():
    """Summed over the exact trinomial at a drop of just the margin, 5 % or less are."""
    n, p10, p01 = 100, 0.14, 0.04
    called = covered = 0.0
    for b in range(2, 31):
        for c in range(13):
            pmf = scipy.stats.multinomial.pmf([b, c, n - b - c], n, [p10, p01, 1 - p10 - p01])
            covered += pmf
            if pmf > 2e-5:
                called += pmf * (
                    tost(*outcomes(b, c, n - b - c), margin=0.1).verdict == "equivalent"
                )
    assert covered > 0.998
    assert 0.02 < called <= 0.051


def test_real_scores_at_the_margin_err_in_five_percent():
    """Of 400 draws whose mean drop is the margin, 5 % are called equivalent."""
    rng = np.random.default_rng(31)
    called = 0
    for _ in range(400):
        first = rng.random(40)
        second = first - 0.1 + rng.normal(size=40) * 0.1
        called += tost(first, second, margin=0.1).verdict == "equivalent"
    assert scipy.stats.binomtest(called, 400, 0.05).pvalue > 1e-3
    assert math.isclose(tost(first, second, margin=0.1).alpha, 0.05)
