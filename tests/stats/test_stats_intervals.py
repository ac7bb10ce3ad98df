"""Intervals and tests of stats: hand-worked cases, edges, and foreign programs."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar as foreign_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from falter.records.errors import InvalidValue
from falter.stats.intervals import (
    agresti_coull,
    bonett_price,
    clopper_pearson,
    paired_proportions_interval,
    quantile_interval,
    tango,
    wilson_interval,
)
from falter.stats.multiplicity import holm
from falter.stats.paired import mcnemar
from falter.stats.resampling import bootstrap, jackknife, jackknife_error

COUNTS = [(0, 7), (1, 7), (7, 7), (3, 40), (150, 300), (283, 300), (999, 1000)]


@pytest.mark.parametrize(("k", "n"), COUNTS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(wilson_interval, "wilson"), (clopper_pearson, "beta"), (agresti_coull, "agresti_coull")],
)
def test_proportion_intervals_are_those_of_statsmodels(ours, theirs, k, n):
    """The three intervals agree with statsmodels, whose Agresti-Coull is not cut to 0..1."""
    for level in (0.9, 0.95):
        found = ours(k, n, level=level)
        low, high = proportion_confint(k, n, alpha=1 - level, method=theirs)
        assert found.low == pytest.approx(max(0.0, low), abs=1e-12)
        assert found.high == pytest.approx(min(1.0, high), abs=1e-12)


def test_wilson_by_hand():
    """With z = 2, 1 of 4 gives (1/4 + 1/2 -+ ...)/(1 + 1); none of n ends at z^2/(n + z^2)."""
    level = 2 * scipy.stats.norm.cdf(2.0) - 1
    found = wilson_interval(1, 4, level=level)
    half = math.sqrt(0.25 * 0.75 / 4 + 1 / 16)
    assert (found.low, found.high) == pytest.approx((0.375 - half, 0.375 + half))
    assert wilson_interval(0, 12, level=level).high == pytest.approx(4 / 16)
    assert wilson_interval(0, 12).low == 0.0
    assert wilson_interval(12, 12).high == 1.0


@pytest.mark.parametrize("method", [wilson_interval, clopper_pearson, agresti_coull])
def test_no_trials_have_no_interval(method):
    """Nothing is known from nothing, and impossible counts are refused by name."""
    assert (method(0, 0).low, method(0, 0).high) == (None, None)
    assert 0.5 not in method(0, 0)
    with pytest.raises(InvalidValue, match="successes is 5"):
        method(5, 4)
    with pytest.raises(InvalidValue, match="level is 95"):
        method(1, 4, level=95)


@pytest.mark.parametrize(("n", "worst"), [(100, 0.939), (300, 0.942)])
def test_agresti_coull_covers_everywhere(n, worst):
    """Summed over the exact binomial, coverage stays close to 95 % for every truth on a grid."""
    k = np.arange(n + 1)
    found = [agresti_coull(int(x), n) for x in k]
    low, high = (np.array([getattr(i, end) for i in found]) for end in ("low", "high"))
    for p in np.linspace(0.01, 0.5, 99):
        assert scipy.stats.binom.pmf(k, n, p)[(low <= p) & (p <= high)].sum() > worst


def test_bonett_price_by_hand():
    """5 falls and 1 rise among 98: p = 6/100 and 2/100, half width z sqrt((.08 - .0016)/100)."""
    found = bonett_price(5, 1, 98)
    half = 1.959963984540054 * math.sqrt(0.0784 / 100)
    assert (found.low, found.high) == pytest.approx((0.04 - half, 0.04 + half))
    nothing = bonett_price(0, 0, 98)
    assert nothing.high == pytest.approx(1.959963984540054 * math.sqrt(0.02 / 100))
    assert nothing.low == -nothing.high
    assert 1.0 in bonett_price(10, 0, 10)
    assert paired_proportions_interval(0, 0, 0).low is None
    with pytest.raises(InvalidValue, match="pairs is 3"):
        paired_proportions_interval(2, 2, 3)


def test_tango_by_hand_and_by_maximising_the_likelihood():
    """Nothing discordant: -+z^2/(n + z^2); else scipy finds the constrained fit and the roots."""
    z2 = 1.959963984540054**2
    assert tango(0, 0, 50).high == pytest.approx(z2 / (50 + z2))
    assert tango(0, 0, 50).low == -tango(0, 0, 50).high
    found = tango(12, 2, 50)

    def score(d):
        top = (1.0 - abs(d)) / 2.0
        offset = max(0.0, -d)

        def loss(q):
            return -(12 * np.log(q + d) + 2 * np.log(q) + 36 * np.log(1 - 2 * q - d))

        bounds = (offset + 1e-12, offset + top - 1e-12)
        q = scipy.optimize.minimize_scalar(
            loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}
        ).x
        return (10 - 50 * d) ** 2 / (50 * (2 * q + d * (1 - d))) - z2

    roots = [scipy.optimize.brentq(score, *ends) for ends in ((-0.3, 0.19), (0.21, 0.6))]
    assert (found.low, found.high) == pytest.approx(roots, abs=1e-6)
    both, other = paired_proportions_interval(12, 2, 50), bonett_price(12, 2, 50)
    assert (both.low, both.high) == (min(found.low, other.low), max(found.high, other.high))
    assert tango(0, 0, 0).high is None


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("mean", [2, 5, 10, 20, 38])
@pytest.mark.parametrize("falls", [0.5, 0.8, 0.97])
def test_paired_interval_covers_where_discordance_is_rare(n, mean, falls):
    """Summed over the exact trinomial, coverage is at least 94 % where Wald's sinks to 74 %."""
    if mean > n / 2:
        mean = n / 2
    p10, p01 = mean / n * falls, mean / n * (1 - falls)
    top = int(mean + 8 * math.sqrt(mean) + 8)
    covered = 0.0
    for b in range(min(top, n) + 1):
        c = np.arange(min(top, n - b) + 1)
        chance = scipy.stats.multinomial.pmf(
            np.column_stack([np.full_like(c, b), c, n - b - c]), n, [p10, p01, 1 - p10 - p01]
        )
        hit = [p10 - p01 in paired_proportions_interval(b, int(x), n) for x in c]
        covered += float(chance[hit].sum())
    assert covered >= 0.945


@pytest.mark.parametrize(("b", "c"), [(5, 1), (10, 10), (0, 4), (40, 21), (300, 120), (1, 0)])
def test_mcnemar_is_that_of_statsmodels(b, c):
    """Statistic and p agree."""
    found = mcnemar(b, c)
    table = [[50, b], [c, 50]]
    plain = foreign_mcnemar(table, exact=False, correction=False)
    assert found.chi2 == pytest.approx(plain.statistic)
    assert found.chi2_p == pytest.approx(plain.pvalue)


def test_mcnemar_by_hand():
    """5 against 1: mid-p (2 (1 + 6) - 6)/64; chi2 16/6."""
    found = mcnemar(5, 1)
    assert found.mid_p == pytest.approx(8 / 64)
    assert found.chi2 == pytest.approx(16 / 6)
    # P(T > 0) + P(T = 0)/2 = 1 - 70/256/2
    assert mcnemar(4, 4).mid_p == pytest.approx(1.0 - 35 / 256)
    assert round(mcnemar(4, 4).mid_p, 3) == 0.863


def test_mcnemar_as_brittlebench_prints_it():
    """3,413 gained and 1,454 lost: chi2 788.51, p = 10^-172.8."""
    found = mcnemar(3413, 1454)
    assert found.chi2 == pytest.approx(788.51, abs=0.005)
    assert math.log10(found.chi2_p) == pytest.approx(-172.8, abs=0.05)


def test_mcnemar_where_nothing_differs():
    """No discordant pair: no chi-square, and certainty that nothing was seen."""
    found = mcnemar(0, 0)
    assert (found.chi2, found.chi2_p, found.mid_p) == (None, None, 1.0)
    with pytest.raises(InvalidValue, match="c is -1"):
        mcnemar(1, -1)


@pytest.mark.parametrize("seed", range(8))
def test_holm_is_that_of_statsmodels(seed):
    """The adjusted values agree in every order and with ties."""
    rng = np.random.default_rng(seed)
    p_values = list(np.round(rng.random(1 + seed) ** 3, 2))
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_holm_by_hand():
    """Three times the least, then the larger of two times the next; None passes through."""
    assert holm([0.02, None, 0.01, 0.9]) == pytest.approx([0.04, None, 0.03, 0.9])
    assert holm([0.04, 0.03, 0.02]) == pytest.approx([0.06, 0.06, 0.06])
    assert holm([]) == []
    assert holm([None]) == [None]
    with pytest.raises(InvalidValue, match=r"p_values is 1\.5"):
        holm([1.5])


def test_jackknife_of_a_mean_is_the_t_interval():
    """Untransformed, leaving one out of a mean gives exactly Student's interval."""
    x = np.random.default_rng(3).normal(size=40)
    found = jackknife(x.mean(), (x.sum() - x) / 39)
    theirs = scipy.stats.ttest_1samp(x, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert jackknife_error((x.sum() - x) / 39) == pytest.approx(scipy.stats.sem(x))


def test_jackknife_scales_and_edges():
    """Log intervals are positive, logit ones inside 0..1; what does not vary has none."""
    left = np.array([0.08, 0.1, 0.12, 0.1])
    assert jackknife(0.1, left, transform="log").low > 0.0
    logit = jackknife(0.9, 1.0 - left, transform="logit")
    assert 0.0 < logit.low < 0.9 < logit.high < 1.0
    at_zero = jackknife(0.0, [0.0, 0.1, 0.0, 0.0], transform="log")
    assert "identity (no log at the boundary)" in at_zero.method
    assert jackknife(0.3, [0.3, 0.3, 0.3]).low is None
    assert jackknife(0.3, [0.2, 0.4]).low is None
    with pytest.raises(InvalidValue, match="not finite"):
        jackknife(0.3, [math.nan, 0.2, 0.3])


def test_bootstrap_is_that_of_scipy():
    """Two programs with different draws agree to Monte Carlo error on a skewed mean."""
    x = np.random.default_rng(5).exponential(size=80)
    ours = bootstrap(x, np.mean, replications=4000, seed=1)
    theirs = scipy.stats.bootstrap(
        (x,), np.mean, n_resamples=8000, method="bca", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_bootstrap_draws_rows():
    """Rows stay whole, a seed repeats itself, and edges have no interval."""
    rng = np.random.default_rng(0)
    table = rng.random((30, 4))
    whole = {tuple(row) for row in table}

    def check(rows):
        assert {tuple(row) for row in rows} <= whole
        return float(rows.mean())

    first = bootstrap(table, check, replications=50, seed=7)
    assert first == bootstrap(table, check, replications=50, seed=7)
    assert first != bootstrap(table, check, replications=50, seed=8)
    assert "bca bootstrap of items, 50 draws, PCG64" in first.method
    assert bootstrap(np.ones(9), np.mean).low is None
    assert bootstrap([1.0], np.mean).low is None


def test_import_leaves_scipy_alone():
    """A run that only asks and stores never pays for SciPy."""
    code = (
        "import sys; from falter.measures import measures; measures(); "
        "sys.exit('scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("n", "share"), [(12, 0.5), (40, 0.9), (100, 0.9), (300, 0.75)])
def test_a_quantiles_interval_covers_exactly(n, share):
    """By the binomial alone: the chance that either order statistic is on the wrong side."""
    found = quantile_interval(list(range(1, n + 1)), share)
    missed_low = scipy.stats.binom.cdf(found.low - 1, n, share)
    missed_high = scipy.stats.binom.sf(found.high - 1, n, share)
    assert missed_low <= 0.025 and missed_high <= 0.025
    assert binom.cdf(found.low, n, share) > 0.025 and binom.sf(found.high - 2, n, share) > 0.025
    assert quantile_interval(list(range(35)), 0.9).high is None
    assert quantile_interval([], 0.9).low is None
