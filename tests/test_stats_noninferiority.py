"""Exact limits of a paired difference: by hand, by summing every outcome, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multinomial

from falter.core.errors import InvalidValue
from falter.stats import (
    noninferiority_critical_z,
    noninferiority_p,
    noninferiority_power,
    noninferiority_z,
    paired_upper_limit,
    tango,
)


def summed(z: float, pairs: int, margin: float, rose: float) -> float:
    """P(score >= z), every outcome of the trinomial one by one."""
    chances = [rose + margin, rose, 1.0 - margin - 2.0 * rose]
    return sum(
        float(multinomial.pmf([b, c, pairs - b - c], pairs, chances))
        for b in range(pairs + 1)
        for c in range(pairs - b + 1)
        if noninferiority_z(b, c, pairs, margin) >= z - 1e-9
    )


def test_without_a_change_the_limit_is_the_rule_of_three() -> None:
    """1 − .05^(1/n), which is about 3/n."""
    for pairs in (20, 100, 300):
        limit = paired_upper_limit(0, 0, pairs, error=0.05)
        assert limit == pytest.approx(1.0 - 0.05 ** (1.0 / pairs), abs=3e-4)
        assert limit >= 1.0 - 0.05 ** (1.0 / pairs)


@pytest.mark.parametrize(("fell", "rose", "pairs", "margin"), [(0, 0, 12, 0.2), (2, 1, 20, 0.25)])
def test_p_is_the_largest_sum_over_what_is_not_known(
    fell: int, rose: int, pairs: int, margin: float
) -> None:
    """A second route: every outcome of the trinomial, for many values of p01."""
    z = float(noninferiority_z(fell, rose, pairs, margin))
    largest = max(summed(z, pairs, margin, q) for q in np.linspace(0.0, (1 - margin) / 2, 25))
    assert noninferiority_p(fell, rose, pairs, margin) == pytest.approx(largest, abs=0.004)


def test_the_score_is_tangos() -> None:
    """At Tango's limit it is the normal quantile."""
    for fell, rose, pairs in ((9, 2, 200), (3, 9, 80), (40, 30, 500)):
        high = tango(fell, rose, pairs, level=0.9).high
        if high is not None and high > 0:
            assert float(noninferiority_z(fell, rose, pairs, high)) == pytest.approx(
                1.645, abs=1e-3
            )


@pytest.mark.parametrize(("pairs", "margin"), [(30, 0.1), (60, 0.05), (200, 0.02), (487, 0.05)])
def test_at_the_margin_it_passes_in_at_most_five_per_cent(pairs: int, margin: float) -> None:
    """Summed exactly, whatever the share of answers that flip; where Wald's passes up to 12.5 %."""
    for rose in (0.0, 0.005, 0.02, 0.1, 0.3):
        size = noninferiority_power(pairs, margin, fell=rose + margin, rose=rose, error=0.05)
        assert size <= 0.0505


def test_power_is_the_share_of_draws_that_pass() -> None:
    z = noninferiority_critical_z(150, 0.08, error=0.05)
    rng = np.random.Generator(np.random.PCG64(1))
    draws = rng.multinomial(150, [0.05, 0.05, 0.9], size=40_000)
    share = float((noninferiority_z(draws[:, 0], draws[:, 1], 150, 0.08) >= z).mean())
    power = noninferiority_power(150, 0.08, fell=0.05, rose=0.05, error=0.05)
    assert power == pytest.approx(share, abs=0.01)


def test_the_limit_and_the_p_value_agree() -> None:
    """The margin at which p reaches the error is the limit; larger ones are excluded."""
    for fell, rose, pairs in ((9, 2, 200), (1, 1, 60), (20, 22, 300)):
        limit = paired_upper_limit(fell, rose, pairs, error=0.05)
        assert noninferiority_p(fell, rose, pairs, limit) == pytest.approx(
            0.05, abs=3e-3
        )  # p jumps
        assert noninferiority_p(fell, rose, pairs, limit + 0.01) < 0.05
        assert limit > (fell - rose) / pairs


def test_edges() -> None:
    """A drop at the margin is no evidence against it; everything lost has no limit below 1."""
    assert noninferiority_p(5, 0, 100, 0.05) == 1.0
    assert paired_upper_limit(10, 0, 10, error=0.05) == 1.0
    assert paired_upper_limit(0, 60, 100, error=0.05) < -0.4
    assert noninferiority_power(3, 0.01, fell=0.0, rose=0.0, error=1e-6) == 0.0
    for wrong in (
        lambda: noninferiority_p(5, 6, 10, 0.1),
        lambda: noninferiority_p(0, 0, 10, 0.0),
        lambda: noninferiority_p(0, 0, 0, 0.1),
        lambda: paired_upper_limit(0, 0, 10, error=0.7),
    ):
        with pytest.raises(InvalidValue):
            wrong()
