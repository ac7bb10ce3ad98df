"""Families of p-values: by hand, against statsmodels and scipy, and the errors they allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, false_discovery_control, norm
from statsmodels.stats.multitest import multipletests

from falter.core.errors import InvalidValue
from falter.stats import benjamini_hochberg, holm


def test_benjamini_hochberg_by_hand():
    """0.01, 0.02, 0.03 and 0.9 of four: 4 p/k, then the least from the largest downwards."""
    assert benjamini_hochberg([0.03, None, 0.01, 0.9, 0.02]) == pytest.approx(
        [0.04, None, 0.04, 0.9, 0.04]
    )
    assert benjamini_hochberg([0.001, 0.5]) == pytest.approx([0.002, 0.5])
    assert benjamini_hochberg([0.2]) == [0.2]
    assert benjamini_hochberg([]) == []
    assert benjamini_hochberg([None]) == [None]
    with pytest.raises(InvalidValue, match=r"p_values is -0\.1"):
        benjamini_hochberg([-0.1])


@pytest.mark.parametrize("seed", range(8))
def test_benjamini_hochberg_is_that_of_statsmodels_and_scipy(seed):
    """The adjusted values agree in every order and with ties."""
    p_values = np.round(np.random.default_rng(seed).random(1 + 2 * seed) ** 3, 2)
    found = benjamini_hochberg(list(p_values))
    assert found == pytest.approx(multipletests(p_values, method="fdr_bh")[1])
    assert found == pytest.approx(false_discovery_control(p_values))


@given(st.lists(st.none() | st.floats(0, 1), max_size=20))
def test_adjusting_keeps_order_and_never_helps(p_values):
    """No adjusted value is below its own, BH is below Holm, and None stays where it was."""
    screened, claimed = benjamini_hochberg(p_values), holm(p_values)
    for p, weak, strong in zip(p_values, screened, claimed, strict=True):
        if p is None:
            assert weak is None and strong is None
        else:
            assert p <= weak * (1 + 1e-12) and weak <= strong * (1 + 1e-12) and strong <= 1.0
    present = sorted((p, a) for p, a in zip(p_values, screened, strict=True) if p is not None)
    assert [a for _, a in present] == sorted(a for _, a in present)


def test_errors_are_those_promised():
    """With 15 of 20 hypotheses true: Holm errs in at most 5 %, BH's false share is 3.75 %."""
    rng = np.random.default_rng(21)
    draws, true = 1500, 15
    any_false, any_screened, shares = 0, 0, []
    for _ in range(draws):
        shifted = norm.sf(rng.normal(size=20) + np.repeat([0.0, 3.0], [true, 5]))
        any_false += min(holm(list(shifted))[:true]) <= 0.05
        found = np.array(benjamini_hochberg(list(shifted))) <= 0.05
        shares.append(found[:true].sum() / max(1, found.sum()))
        any_screened += min(benjamini_hochberg(list(rng.random(20)))) <= 0.05
    assert binomtest(any_false, draws, 0.05, alternative="greater").pvalue > 1e-3
    # With every hypothesis true, any discovery is false, and that happens in exactly 5 %.
    assert binomtest(any_screened, draws, 0.05).pvalue > 1e-3
    error = np.std(shares) / np.sqrt(draws)
    assert np.mean(shares) == pytest.approx(0.05 * true / 20, abs=3.3 * error)
