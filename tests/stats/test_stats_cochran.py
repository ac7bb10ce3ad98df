"""Cochran's Q: by hand, against statsmodels, and how often it cries wolf."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import cochrans_q

from falter.records.errors import InvalidValue
from falter.stats.paired import cochran_q, mcnemar
from probit import ProbitModel, simulate_outcomes

NAN = float("nan")


def test_by_hand():
    """Columns 3, 3, 0 and rows 2, 1, 2, 1: Q = 2 (3 x 18 - 36)/(18 - 10) = 4.5."""
    table = [[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    found = cochran_q(table)
    assert (found.value, found.freedom) == (pytest.approx(4.5), 2)
    assert found.p_value == pytest.approx(math.exp(-2.25))
    more = cochran_q([*table, [1, 1, 1], [0, 0, 0], [1, NAN, 0]])
    assert more.value == pytest.approx(4.5)
    assert (more.items, more.excluded, more.informative) == (6, 1, 4)


def test_two_conditions_are_mcnemar():
    """Q of two columns is McNemar's uncorrected chi-square, and its shuffles the exact test."""
    table = [[1, 0]] * 6 + [[0, 1]] + [[1, 1]] * 20
    expected = mcnemar(6, 1)
    found = cochran_q(table)
    assert (found.value, found.p_value) == pytest.approx((expected.chi2, expected.chi2_p))
    shuffled = cochran_q(table, method="permutation", replications=4000, seed=1)
    # 2 (1 + 7)/2^7
    assert shuffled.p_value == pytest.approx(0.125, abs=0.02)
    assert shuffled == cochran_q(table, method="permutation", replications=4000, seed=1)


def test_as_brittlebench_prints_it():
    """83,870 questions, 3,413 right only with reasoning and 1,454 only without: Q is 788.51."""
    b, c = 3413, 1454
    table = np.zeros((83_870, 2))
    table[:b, 0] = table[b : b + c, 1] = 1.0
    table[b + c : 70_000] = 1.0
    found = cochran_q(table)
    assert (found.value, found.informative) == (pytest.approx(788.51, abs=0.005), b + c)
    assert math.log10(found.p_value) == pytest.approx(-172.8, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_is_that_of_statsmodels(seed):
    """Statistic and p-value agree on random tables of three to seven conditions."""
    table = (np.random.default_rng(seed).random((40, 3 + seed)) < 0.6).astype(float)
    found, theirs = cochran_q(table), cochrans_q(table)
    assert (found.value, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_edges():
    """Nothing that varies, one condition and one item have no Q and say why."""
    for table, status in (
        ([[1, 1], [0, 0], [1, 1]], "undefined_zero_variance"),
        ([[1], [0]], "not_identified"),
        ([[1, 0]], "insufficient_data"),
        ([[1, 0], [NAN, 1]], "insufficient_data"),
        (np.empty((0, 3)), "insufficient_data"),
    ):
        found = cochran_q(table)
        assert (found.value, found.p_value, found.status) == (None, None, status)
    with pytest.raises(InvalidValue, match=r"outcomes is 0\.5; expected 0, 1"):
        cochran_q([[0.5, 1.0], [1.0, 0.0]])
    with pytest.raises(InvalidValue, match="outcomes is \\(2,\\)"):
        cochran_q([1, 0])
    with pytest.raises(InvalidValue, match="method is 'exact'"):
        cochran_q([[1, 0]], method="exact")
    with pytest.raises(InvalidValue, match="replications is 0"):
        cochran_q([[1, 0]], replications=0)


def test_equal_conditions_are_rejected_as_often_as_promised():
    """Of 1,500 tables whose conditions are equally good, 5 % are rejected."""
    model = ProbitModel(ability=0.5, effects=(0.0,) * 5)
    rng = np.random.default_rng(11)
    rejected = sum(
        cochran_q(simulate_outcomes(model, 80, seed=rng)).p_value < 0.05 for _ in range(1500)
    )
    assert binomtest(rejected, 1500, 0.05).pvalue > 1e-3


def test_shuffles_do_not_cry_wolf_where_little_varies():
    """With a handful of informative items the permutation p-value still errs 5 % at most."""
    model = ProbitModel(ability=2.0, effects=(0.0,) * 4)
    rng = np.random.default_rng(12)
    rejected = tried = 0
    for _ in range(200):
        table = simulate_outcomes(model, 40, seed=rng)
        found = cochran_q(table, method="permutation", replications=199, seed=int(table.sum()))
        tried += found.p_value is not None
        rejected += found.p_value is not None and found.p_value <= 0.05
    assert tried > 150
    assert binomtest(rejected, tried, 0.05, alternative="greater").pvalue > 1e-3
