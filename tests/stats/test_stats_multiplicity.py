"""Families of p-values: against statsmodels, and how a panel shares out its error rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from falter.stats.multiplicity import (
    average_level,
    benjamini_hochberg,
    holm,
    max_t,
    panel_p,
    panels_rejected,
    recipe_level,
)


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


def test_benjamini_hochberg_is_that_of_statsmodels():
    """Also with tests that could not be done, which stay None."""
    p_values = (np.random.default_rng(1).random(40) ** 3).tolist()
    expected = multipletests(p_values, method="fdr_bh")[1]
    found = benjamini_hochberg([None, *p_values])
    assert found[0] is None and found[1:] == pytest.approx(expected)
    assert benjamini_hochberg([None]) == [None]


def test_a_panel_shares_its_error_between_recipes_and_average():
    """4 % for the recipes, 1 % for the average, and neither where no p-value is known."""
    assert panel_p([0.04, 0.3, None], 0.5) == pytest.approx(0.05)
    assert panel_p([0.041], 0.01) == pytest.approx(0.05)
    assert panel_p([None], None) is None and panel_p([0.9], None) == 1.0
    assert (recipe_level(0.95), average_level(0.95)) == pytest.approx((0.96, 0.99))


def test_panels_are_tested_all_at_once():
    """Of twelve panels the smallest p must be below .05/12; one that cannot be tested is none."""
    rest = [0.5] * 11
    assert panels_rejected([0.0041, *rest]) == [True, *[False] * 11]
    assert not any(panels_rejected([0.0043, *rest]))
    assert panels_rejected([0.05, None]) == [True, False]


def test_a_panels_p_is_continuous_far_below_its_number_of_draws():
    """A clear loss among 12 panels is found with 2,000 draws: its p is no 1/2001."""
    rng = np.random.default_rng(0)
    losses = (rng.random((300, 5)) < [0.3, 0.02, 0.02, 0.02, 0.02]).astype(float)
    found = max_t(losses, level=recipe_level(0.95))
    assert panel_p([m.adjusted_p for m in found.members], None) < 1e-8
