"""Limits of a loss against a margin: by hand, by summing every outcome, and by other programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, multinomial
from statsmodels.stats.weightstats import ttost_paired

from falter.records.errors import InvalidValue
from falter.stats.equivalence import (
    equivalence_p,
    noninferiority_critical_z,
    noninferiority_p,
    noninferiority_power,
    noninferiority_z,
    paired_upper_limit,
)
from falter.stats.intervals import tango
from falter.stats.mean import item_mean


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
        size = noninferiority_power(pairs, margin, p_fall=rose + margin, p_rise=rose, error=0.05)
        assert size <= 0.0505


def test_power_is_the_share_of_draws_that_pass() -> None:
    z = noninferiority_critical_z(150, 0.08, error=0.05)
    rng = np.random.Generator(np.random.PCG64(1))
    draws = rng.multinomial(150, [0.05, 0.05, 0.9], size=40_000)
    share = float((noninferiority_z(draws[:, 0], draws[:, 1], 150, 0.08) >= z).mean())
    power = noninferiority_power(150, 0.08, p_fall=0.05, p_rise=0.05, error=0.05)
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
    assert noninferiority_power(3, 0.01, p_fall=0.0, p_rise=0.0, error=1e-6) == 0.0
    for wrong in (
        lambda: noninferiority_p(5, 6, 10, 0.1),
        lambda: noninferiority_p(0, 0, 10, 0.0),
        lambda: noninferiority_p(0, 0, 0, 0.1),
        lambda: paired_upper_limit(0, 0, 10, error=0.7),
    ):
        with pytest.raises(InvalidValue):
            wrong()


def drops(b: int, c: int, same: int) -> list[float]:
    return [1.0] * b + [-1.0] * c + [0.0] * same


@pytest.mark.parametrize("seed", range(6))
def test_real_scores_are_statsmodels_two_one_sided_tests(seed: int) -> None:
    """The larger of both one-sided p-values of the paired t version."""
    rng = np.random.default_rng(seed)
    first = rng.random(60)
    second = first - 0.01 * seed + rng.normal(size=60) * 0.1
    larger = ttost_paired(first, second, -0.06, 0.06)[0]
    found = equivalence_p(item_mean(first - second), margin=0.06)
    assert found == pytest.approx(min(0.5, larger), rel=1e-6)


def test_equivalence_by_hand() -> None:
    """2,000 items: 20 against 18 is equivalent, 100 against 20 a loss, 70 against 64 neither."""
    same = equivalence_p(item_mean(drops(20, 18, 1962)), margin=0.02)
    open_ = equivalence_p(item_mean(drops(70, 64, 1866)), margin=0.012)
    assert same is not None and same < 1e-3
    assert open_ is not None and 0.05 < open_ < 0.5
    for b, c in ((100, 20), (20, 100)):
        assert equivalence_p(item_mean(drops(b, c, 1880)), margin=0.02) == 0.5
    # Thirty items without any change still do not show that at most 2 points are lost.
    few, many = (equivalence_p(item_mean(drops(0, 0, n)), margin=0.02) for n in (30, 300))
    assert few is not None and many is not None and many < 0.05 < few


def test_equivalence_is_where_the_interval_meets_the_margin() -> None:
    """At alpha = p the 1 - 2 alpha interval touches it, with and without clusters."""
    for clusters in (None, list(range(200)) * 2):
        mean = item_mean(drops(12, 10, 378), clusters=clusters)
        p = equivalence_p(mean, margin=0.03)
        assert p is not None and 1e-4 < p < 0.3
        for factor, inside in ((1.001, True), (0.999, False)):
            interval = mean.at(1.0 - 2.0 * factor * p)
            assert interval.low is not None and interval.high is not None
            assert (interval.low > -0.03 and interval.high < 0.03) is inside


def test_equivalence_of_too_little() -> None:
    """Without an interval there is no p-value."""
    assert equivalence_p(item_mean([np.nan, 1.0]), margin=0.02) is None
    assert equivalence_p(item_mean([0.25] * 3), margin=0.3) is None  # no spread at all
    few = item_mean([1.0, 0.0] * 10, clusters=[0, 1] * 10)
    assert equivalence_p(few, margin=0.02) is None


def test_a_loss_of_the_margin_is_rarely_called_equivalent() -> None:
    """Summed over the exact trinomial at a drop of just the margin, 5 % or less are."""
    n, p10, p01 = 100, 0.14, 0.04
    called = covered = 0.0
    for b in range(2, 31):
        for c in range(13):
            pmf = float(multinomial.pmf([b, c, n - b - c], n, [p10, p01, 1 - p10 - p01]))
            covered += pmf
            if pmf > 2e-5:
                p = equivalence_p(item_mean(drops(b, c, n - b - c)), margin=0.1)
                called += pmf * (p is not None and p < 0.05)
    assert covered > 0.998
    assert 0.02 < called <= 0.051


def test_real_scores_at_the_margin_err_in_five_percent() -> None:
    """Of 400 draws whose mean drop is the margin, 5 % are called equivalent."""
    rng = np.random.default_rng(31)
    called = 0
    for _ in range(400):
        p = equivalence_p(item_mean(0.1 - rng.normal(size=40) * 0.1), margin=0.1)
        called += p is not None and p < 0.05
    assert binomtest(called, 400, 0.05).pvalue > 1e-3
