"""Planned looks: published boundaries, an integral by another route, and simulated errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, multivariate_normal, norm

from falter.records.errors import InvalidValue
from falter.stats.multiplicity import sequential_boundaries


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
    assert sequential_boundaries(len(z)).z == pytest.approx(z, abs=2e-4)


@pytest.mark.parametrize("alpha", [0.01, 0.1])
@pytest.mark.parametrize("looks", [1, 2, 3])
def test_what_is_spent_is_scipys_multivariate_normal(looks, alpha):
    """The chance of crossing none of the boundaries is 1 - alpha; the first has its own share."""
    found = sequential_boundaries(looks, alpha=alpha)
    times, z = np.array(found.information), np.array(found.z)
    root = np.sqrt(times)
    cov = np.minimum.outer(times, times) / np.outer(root, root)
    ends = multivariate_normal(np.zeros(looks), cov, abseps=1e-7, releps=1e-7)
    assert ends.cdf(z, lower_limit=-z) == pytest.approx(1.0 - alpha, abs=1e-5)
    first = 4 * norm.sf(norm.isf(alpha / 4) / root[0])
    assert 2 * norm.sf(z[0]) == pytest.approx(first)


@pytest.mark.parametrize("looks", [0, 7])
def test_looks_that_make_no_sense(looks):
    """None, or too many: refused before anything is spent."""
    with pytest.raises(InvalidValue, match="looks is"):
        sequential_boundaries(looks)
    with pytest.raises(InvalidValue, match="level is"):
        sequential_boundaries(2, alpha=1.0)


def test_five_looks_keep_their_level_and_one_at_a_time_does_not():
    """Differences of 0/1 outcomes, no true drop: 5 % reject at planned looks, 3 times that naively.

    With rare changes the z of the first look is coarse, and its boundary far out.
    """
    rng, runs, times = np.random.default_rng(7), 4000, np.array([200, 400, 600, 800, 1000])
    x = rng.choice([1.0, -1.0, 0.0], size=(runs, 1000), p=[0.05, 0.05, 0.9])
    sums, squares = x.cumsum(axis=1)[:, times - 1], (x**2).cumsum(axis=1)[:, times - 1]
    z = sums / np.sqrt(squares - sums**2 / times)
    rejected = int((np.abs(z) >= sequential_boundaries(5).z).any(axis=1).sum())
    assert binomtest(rejected, runs, 0.05).pvalue > 1e-3
    assert (np.abs(z) > 1.96).any(axis=1).mean() > 0.12
