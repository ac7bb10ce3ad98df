"""Planned looks and fixed-width stopping: published boundaries, integrals, and simulated errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, multivariate_normal, norm

from falter.core.errors import InvalidValue
from falter.stats import (
    crossing_probabilities,
    fixed_width_stop,
    sequential_boundaries,
    spending,
)

NAN = float("nan")


@pytest.mark.parametrize(
    "z",
    [
        (1.9600,),
        (2.9626, 1.9686),
        (3.7103, 2.5114, 1.9930),
        (4.3326, 2.9631, 2.3590, 2.0141),
        (4.8769, 3.3569, 2.6803, 2.2898, 2.0310),
    ],
)
def test_boundaries_are_the_published_ones(z):
    """Lan and DeMets' O'Brien-Fleming-type boundaries, two-sided 5 %, evenly spaced looks."""
    found = sequential_boundaries(len(z))
    assert found.z == pytest.approx(z, abs=2e-4)
    assert found.spent[-1] == pytest.approx(0.05)
    assert crossing_probabilities(found.z, found.information).sum() == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("looks", "obrien_fleming", "pocock"),
    [(2, 1.977, 2.178), (3, 2.004, 2.289), (4, 2.024, 2.361), (5, 2.040, 2.413), (6, 2.053, 2.453)],
)
def test_classical_constants_have_their_level(looks, obrien_fleming, pocock):
    """The tabulated constants of O'Brien-Fleming's and Pocock's own tests spend 5 % in all."""
    times = [k / looks for k in range(1, looks + 1)]
    rising = [obrien_fleming / math.sqrt(t) for t in times]
    assert crossing_probabilities(rising, times).sum() == pytest.approx(0.05, abs=2e-4)
    assert crossing_probabilities([pocock] * looks, times).sum() == pytest.approx(0.05, abs=2e-4)


def test_integration_is_scipys_multivariate_normal():
    """The chance of crossing none of three unevenly spaced looks, with and without an effect."""
    times, z = np.array([0.2, 0.65, 1.0]), np.array([2.5, 2.2, 2.0])
    root = np.sqrt(times)
    cov = np.minimum.outer(times, times) / np.outer(root, root)
    for drift in (0.0, 1.5, -2.8):
        ends = multivariate_normal(drift * root, cov, abseps=1e-6, releps=1e-6)
        inside = ends.cdf(z, lower_limit=-z)
        found = crossing_probabilities(list(z), list(times), drift=drift)
        assert 1.0 - found.sum() == pytest.approx(inside, abs=1e-5)
        first = norm.sf(z[0] - drift * root[0]) + norm.cdf(-z[0] - drift * root[0])
        assert found[0] == pytest.approx(first)


def test_spending_by_hand():
    """All of alpha at the end, next to nothing early, and Pocock's type about evenly."""
    assert spending([1.0], alpha=0.01) == pytest.approx([0.01])
    early = 4 * norm.sf(norm.isf(0.0125) / math.sqrt(0.25))
    assert spending(0.25) == pytest.approx(early)
    assert spending([0.5, 1.0], kind="pocock") == pytest.approx(
        [0.05 * math.log(1 + (math.e - 1) / 2), 0.05]
    )
    one = sequential_boundaries(1, alpha=0.1)
    assert one.z == pytest.approx([norm.isf(0.05)])


def test_using_boundaries():
    """First crossings count from 1, intervals are z standard errors wide, power is one number."""
    plan = sequential_boundaries([0.25, 0.5, 1.0], kind="pocock")
    assert plan.first_crossing([0.1, -2.9]) == 2
    assert plan.first_crossing([NAN, 1.0]) is None
    assert plan.first_crossing([]) is None
    interval = plan.interval(3, 0.04, 0.01)
    assert interval.low == pytest.approx(0.04 - 0.01 * plan.z[2])
    assert (interval.level, 0.04 in interval) == (0.95, True)
    # Fixed at one look, 80 % power needs a drift of 1.96 + 0.84; five looks cost little of it.
    assert sequential_boundaries(1).power(2.801585, 1.0) == pytest.approx(0.8, abs=1e-4)
    assert 0.78 < sequential_boundaries(5).power(-2.801585, 1.0) < 0.8
    with pytest.raises(InvalidValue, match="look is 4"):
        plan.interval(4, 0.0, 1.0)
    with pytest.raises(InvalidValue, match="z is"):
        plan.first_crossing([0.0] * 4)


@pytest.mark.parametrize(
    ("looks", "name"),
    [(0, "looks"), (7, "looks"), ([0.5, 0.5, 1.0], "looks"), ([0.5, 0.9], "looks"), ([], "looks")],
)
def test_looks_that_make_no_sense(looks, name):
    """None, too many, not rising, or not up to the end: refused before anything is spent."""
    with pytest.raises(InvalidValue, match=f"{name} is"):
        sequential_boundaries(looks)


def test_spending_refuses():
    """Shares, levels, kinds and boundaries are checked by name."""
    for call, name in (
        (lambda: spending([0.0]), "information"),
        (lambda: spending([0.5], kind="obf"), "kind"),
        (lambda: spending([0.5], alpha=1.0), "level"),
        (lambda: crossing_probabilities([1.0], [0.5, 1.0]), "z"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            call()


def test_five_looks_keep_their_level_and_one_at_a_time_does_not():
    """Differences of 0/1 outcomes, no true drop: 5 % reject at planned looks, 3 times that naively.

    With rare changes the z of the first look is coarse, and its boundary far out.
    """
    rng, runs, times = np.random.default_rng(7), 4000, np.array([200, 400, 600, 800, 1000])
    x = rng.choice([1.0, -1.0, 0.0], size=(runs, 1000), p=[0.05, 0.05, 0.9])
    sums, squares = x.cumsum(axis=1)[:, times - 1], (x**2).cumsum(axis=1)[:, times - 1]
    z = sums / np.sqrt(squares - sums**2 / times)
    plan = sequential_boundaries(5)
    rejected = sum(plan.first_crossing(row) is not None for row in z)
    assert binomtest(rejected, runs, 0.05).pvalue > 1e-3
    assert (np.abs(z) > 1.96).any(axis=1).mean() > 0.12
    # The repeated interval covers at all looks at once.
    error = np.sqrt(squares - sums**2 / times) / times
    for k in range(5):
        half = plan.interval(k + 1, 0.0, 1.0).high
        assert (np.abs(sums / times)[:, k] <= half * error[:, k]).mean() > 0.95


def test_fixed_width_by_hand():
    """Alternating 0 and 1: stops at the first n with 1.96^2 (s^2 + 1/n) <= n h^2, not before."""
    x = np.tile([0.0, 1.0], 300)
    found = fixed_width_stop(x, 0.05, minimum=10)
    n = np.arange(2, 601)
    variance = np.array([x[:k].var(ddof=1) for k in n])
    expected = int(n[1.959964**2 * (variance + 1 / n) <= n * 0.05**2][0])
    assert (found.stop, found.items) == (expected, expected)
    half = 1.959964 * math.sqrt((x[:expected].var(ddof=1) + 1 / expected) / expected)
    assert found.interval.high - found.value == pytest.approx(half)
    assert fixed_width_stop(x, 0.05, minimum=450).stop == 450
    assert fixed_width_stop(x, 0.05, every=50).stop == 400
    never = fixed_width_stop(x, 0.01)
    assert (never.stop, never.items, never.status) == (None, 600, "ok")
    finite = fixed_width_stop(x, 0.05, population=600)
    assert finite.stop == pytest.approx(expected / (1 + expected / 600), abs=2)
    assert fixed_width_stop(x, 1e-6, population=600, every=7).stop == 600


def test_fixed_width_edges():
    """Equal values do not stop at once, one value is not enough, and nonsense is refused."""
    same = fixed_width_stop(np.zeros(500), 0.02, minimum=2)
    assert same.stop == 98
    assert (same.value, same.interval.low) == (0.0, pytest.approx(-1.959964 / 98))
    alone = fixed_width_stop([NAN, 1.0], 0.1)
    assert (alone.value, alone.status, alone.excluded) == (None, "insufficient_data", 1)
    whole = fixed_width_stop([0.0, 1.0] * 30, 0.001, population=60)
    assert (whole.stop, whole.interval.low, whole.interval.high) == (60, 0.5, 0.5)
    for wrong, name in (
        ({"half_width": 0.0}, "half_width"),
        ({"half_width": 0.1, "minimum": 0}, "minimum"),
        ({"half_width": 0.1, "every": 0}, "every"),
        ({"half_width": 0.1, "population": 1}, "population"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            fixed_width_stop([0.0, 1.0], **wrong)


@pytest.mark.parametrize(("fall", "rise"), [(0.05, 0.05), (0.2, 0.1), (0.03, 0.01)])
def test_fixed_width_covers(fall, rise):
    """Stopping at half-width 3 points covers the drop in at least 93 % of the runs."""
    rng, runs, hits = np.random.default_rng(8), 1000, 0
    for _ in range(runs):
        x = rng.choice([1.0, -1.0, 0.0], size=2000, p=[fall, rise, 1 - fall - rise])
        found = fixed_width_stop(x, 0.03)
        assert found.stop is not None
        hits += fall - rise in found.interval
    assert binomtest(hits, runs, 0.93, alternative="less").pvalue > 1e-3
