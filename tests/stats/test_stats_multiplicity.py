"""Families of p-values: against statsmodels, and the errors they allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from statsmodels.stats.multitest import multipletests

from falter.stats.multiplicity import holm


@pytest.mark.parametrize("seed", range(8))
def test_holm_is_that_of_statsmodels(seed):
    """The adjusted values agree in every order and with ties."""
    p_values = np.round(np.random.default_rng(seed).random(1 + 2 * seed) ** 3, 2)
    expected = multipletests(p_values, method="holm")[1]
    assert holm(list(p_values)) == pytest.approx(expected)


@given(st.lists(st.none() | st.floats(0, 1), max_size=20))
def test_adjusting_keeps_order_and_never_helps(p_values):
    """No adjusted value is below its own, and None stays where it was."""
    claimed = holm(p_values)
    for p, adjusted in zip(p_values, claimed, strict=True):
        if p is None:
            assert adjusted is None
        else:
            assert p <= adjusted * (1 + 1e-12) and adjusted <= 1.0
    present = sorted((p, a) for p, a in zip(p_values, claimed, strict=True) if p is not None)
    assert [a for _, a in present] == sorted(a for _, a in present)


def test_errors_are_those_promised():
    """With 15 of 20 hypotheses true, Holm errs in at most 5 %."""
    rng = np.random.default_rng(21)
    draws, true = 1500, 15
    false = 0
    for _ in range(draws):
        shifted = norm.sf(rng.normal(size=20) + np.repeat([0.0, 3.0], [true, 5]))
        false += min(holm(list(shifted))[:true]) <= 0.05
    assert binomtest(false, draws, 0.05, alternative="greater").pvalue > 1e-3
