"""Confidence sequences: by hand, against a second implementation, and by how often they fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
from scipy.stats import binomtest

from falter.core.errors import InvalidValue
from falter.stats import confidence_sequence

NAN = float("nan")


def drawn(rng, items, fall, rise):
    """Differences of 0/1 outcomes: 1 with chance `fall`, -1 with chance `rise`."""
    return rng.choice([1.0, -1.0, 0.0], size=items, p=[fall, rise, 1 - fall - rise])


def test_by_hand():
    """0, 1, 0, 1 has variance 1/3 at n = 4: half-width sqrt(1/3 (v + 1)/v log((v + 1)/a^2)/4)."""
    found = confidence_sequence([0, 1, NAN, 0, 1], tightest_at=4, first=3)
    assert (found.value, found.items, found.excluded, found.status) == (0.5, 4, 1, "ok")
    assert np.isnan(found.low[:2]).all()
    v = scipy.optimize.minimize_scalar(
        lambda v: (v + 1) / v * math.log((v + 1) / 0.05**2), bounds=(1, 40), method="bounded"
    ).x
    half = math.sqrt(1 / 3 * (v + 1) / v * math.log((v + 1) / 0.05**2) / 4)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.5 - half, 0.5 + half))


def test_narrowest_where_asked():
    """After `tightest_at` items no other tuning is narrower, and the price is 1.55 times."""
    x = drawn(np.random.default_rng(1), 1000, 0.1, 0.05)
    at = {t: confidence_sequence(x, tightest_at=t) for t in (100, 250, 400, 1000)}
    for n in (100, 400):
        widths = {t: s.high[n - 1] - s.low[n - 1] for t, s in at.items()}
        assert min(widths, key=widths.get) == n
    ordinary = 1.959964 * x[:400].std(ddof=1) / 20
    ratio = (at[400].high[399] - at[400].low[399]) / 2 / ordinary
    assert ratio == pytest.approx(1.55, abs=0.005)


def test_a_loop_over_the_published_formulas_agrees():
    """Item by item, from the definitions: both methods give the same ends."""
    rng = np.random.default_rng(2)
    x = drawn(rng, 120, 0.2, 0.1)
    alpha = 0.1
    asymptotic = confidence_sequence(x, level=0.9, tightest_at=60, first=10)
    bounded = confidence_sequence(x, level=0.9, method="bounded")
    rho2 = scipy.optimize.minimize_scalar(
        lambda r: (60 * r + 1) / r * math.log((60 * r + 1) / alpha**2),
        bounds=(1e-3, 1),
        method="bounded",
        options={"xatol": 1e-12},
    ).x
    seen, bets, weighted, cost = [], 0.0, 0.0, 0.0
    means, squares = 0.5, 0.25
    for t, value in enumerate(x, start=1):
        unit = (value + 1) / 2
        bet = min(0.5, math.sqrt(2 * math.log(2 / alpha) / (squares * t * math.log(t + 1))))
        bets, weighted = bets + bet, weighted + bet * unit
        cost += 4 * (unit - means) ** 2 * (-math.log(1 - bet) - bet) / 4
        half = (math.log(2 / alpha) + cost) / bets
        assert bounded.low[t - 1] == pytest.approx(max(-1, 2 * (weighted / bets - half) - 1))
        assert bounded.high[t - 1] == pytest.approx(min(1, 2 * (weighted / bets + half) - 1))
        seen.append(unit)
        means = (0.5 + sum(seen)) / (t + 1)
        squares = (squares * t + (unit - means) ** 2) / (t + 1)
        if t >= 10:
            y = x[:t]
            v = t * rho2
            half = y.std(ddof=1) * math.sqrt(
                2 * (v + 1) / (t * v) * math.log(math.sqrt(v + 1) / alpha)
            )
            assert asymptotic.high[t - 1] == pytest.approx(y.mean() + half, abs=1e-6)


def test_edges():
    """Nothing is nothing, equal values have no asymptotic interval, nonsense is refused."""
    none = confidence_sequence([NAN, NAN])
    assert (none.value, none.status, none.interval.low) == (None, "insufficient_data", None)
    assert (none.first_outside(), none.excluded) == (None, 2)
    flat = confidence_sequence([0.1] * 100)
    assert (flat.value, flat.interval.low) == (pytest.approx(0.1), None)
    assert np.isnan(flat.low).all()
    sure = confidence_sequence([0.0] * 1000, method="bounded")
    assert -0.05 < sure.interval.low < 0.0 < sure.interval.high < 0.05
    for wrong, name in (
        ({"method": "exact"}, "method"),
        ({"tightest_at": 0}, "tightest_at"),
        ({"first": 0}, "first"),
        ({"level": 95}, "level"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"method": "bounded", "bounds": (0, 0.5)}, "bounds"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            confidence_sequence([0.0, 1.0], **wrong)
    with pytest.raises(InvalidValue, match="values is"):
        confidence_sequence([[1.0]])


def test_answers_are_the_first_ones():
    """A drop is seen, and equivalence is, at the first item where the interval says so."""
    x = drawn(np.random.default_rng(3), 4000, 0.12, 0.02)
    found = confidence_sequence(x)
    seen = found.first_outside(0.0)
    assert found.low[seen - 1] > 0.0
    assert not (found.low[24 : seen - 1] > 0.0).any()
    assert found.first_above(0.0) == seen
    assert found.first_within(-0.02, 0.02) is None
    none = confidence_sequence(drawn(np.random.default_rng(4), 20000, 0.02, 0.02))
    assert none.first_within(-0.02, 0.02) < 8000
    assert none.first_above(0.0) is None


@pytest.mark.parametrize(
    ("fall", "rise", "method"),
    [(0.05, 0.05, "asymptotic"), (0.16, 0.1, "asymptotic"), (0.012, 0.004, "bounded")],
)
def test_the_truth_is_hardly_ever_excluded(fall, rise, method):
    """Looking after each of 1,000 items, at most 5 % of the runs ever exclude the true drop."""
    rng, runs = np.random.default_rng(5), 600
    failed = 0
    for _ in range(runs):
        found = confidence_sequence(drawn(rng, 1000, fall, rise), method=method)
        failed += found.first_outside(fall - rise) is not None
    assert binomtest(failed, runs, 0.05, alternative="greater").pvalue > 1e-3


def test_a_clear_drop_is_seen_early():
    """A 6-point drop among 10 % that change needs fewer than half of 1,000 items, on average."""
    rng = np.random.default_rng(6)
    stops = [confidence_sequence(drawn(rng, 1000, 0.08, 0.02)).first_above() for _ in range(300)]
    assert None not in stops
    assert 150 < np.mean(stops) < 450
