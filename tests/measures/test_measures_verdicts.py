"""One verdict a recipe: what each one takes, how rarely one is false, and the worst of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falter.measures.verdicts import recipe_verdicts
from falter.records.errors import DuplicateName, InvalidValue
from falter.stats.equivalence import equivalence_p
from falter.stats.intervals import paired_proportions_interval
from falter.stats.mean import item_mean
from falter.stats.multiplicity import holm

NAN = float("nan")
NAMES = ["loss", "gain", "same", "unclear"]


def study(n=2000):
    """A recipe that loses, one that gains, one that changes nothing, one that says nothing."""
    base = np.tile([1.0, 0.0], n // 2)
    loss, gain, unclear = base.copy(), base.copy(), base.copy()
    loss[:400] = 0.0
    gain[:400] = 1.0
    unclear[:700:2], unclear[1:720:2] = 0.0, 1.0
    return base, np.column_stack([loss, gain, base, unclear])


def null(rng, items, recipes, codes=None):
    """Outcomes of one item that hang together, none of whose conditions matters."""
    ability = rng.normal(size=(items, 1)) + 0.8
    if codes is not None:
        ability = ability + 0.7 * rng.normal(size=(codes.max() + 1, 1))[codes]
    return (ability + 0.8 * rng.normal(size=(items, recipes + 1)) > 0).astype(float)


def test_the_four_verdicts():
    """A loss, a gain, nothing, and neither; counted once each."""
    found = recipe_verdicts(*study(), names=NAMES)
    assert [r.verdict for r in found.recipes] == ["degraded", "improved", "equivalent", "undecided"]
    assert found.counts == {"degraded": 1, "improved": 1, "equivalent": 1, "undecided": 1}
    assert list(found.counts) == ["degraded", "improved", "equivalent", "undecided"]
    assert (found.worst_name, found.observed_worst.value) == ("loss", pytest.approx(0.1))
    assert found["same"].drop.value == 0.0
    base, others = study()
    raw = [equivalence_p(item_mean(base - column), margin=0.02) for column in others.T]
    assert [r.p_equivalent for r in found.recipes] == pytest.approx(holm(raw), rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(8, 120),
    st.booleans(),
    st.sampled_from([0.8, 0.9, 0.95]),
)
def test_verdict_interval_and_test_never_disagree(seed, recipes, items, clustered, level):
    """Degraded where the simultaneous interval is above 0, and only there p is below four fifths
    of 1 - level.
    """
    rng = np.random.default_rng(seed)
    base = (rng.random(items) < 0.8).astype(float)
    flips = rng.random((items, recipes)) < rng.random(recipes) * 0.6
    others = np.where(flips, rng.random((items, recipes)) < 0.5, base[:, None]).astype(float)
    others[rng.random(others.shape) < 0.05] = NAN
    codes = rng.integers(9, size=items).tolist() if clustered else None
    found = recipe_verdicts(
        base, others, names=[str(j) for j in range(recipes)], clusters=codes, level=level,
        replications=200,
    )  # fmt: skip
    for recipe in found.recipes:
        together = recipe.together
        if together.low is None:
            assert recipe.verdict == "undecided" and together.p_value is None
            continue
        outside = together.low > 0 or together.high < 0
        assert (recipe.verdict in ("degraded", "improved")) == outside
        assert outside == (together.p_value < 0.8 * (1 - level))
        assert together.level == pytest.approx(1 - 0.8 * (1 - level))
        assert recipe.verdict != "degraded" or together.low > 0
        if recipes > 1:  # of one recipe the simultaneous interval is at 96 %, its own at 95 %
            assert together.high - together.low > 0


def test_rarely_changed_recipes_count_as_bonferroni_has_it():
    """Three of 100 items changed, in a family of two: the interval at 1 - 0.04/2."""
    first, second = np.ones(100), np.array([0.0] * 3 + [1.0] * 97)
    found = recipe_verdicts(first, np.column_stack([second, first]), names=["a", "b"])
    expected = paired_proportions_interval(3, 0, 100, level=1 - 0.04 / 2)
    together = found["a"].together
    assert (together.low, together.high) == pytest.approx((expected.low, expected.high))


def test_equal_drops_and_too_little_are_undecided_and_say_why():
    """Every item falls by .2: no variation, which is not 'no drop'; too few clusters, no item."""
    base = np.full(30, 0.8)
    found = recipe_verdicts(base, np.column_stack([base - 0.2, base * NAN]), names=["even", "none"])
    even, none = found.recipes
    assert (even.drop.value, even.verdict) == (pytest.approx(0.2), "undecided")
    assert even.why == "no variation between items, an interval cannot be had"
    assert (even.together.low, even.together.p_value, even.p_equivalent) == (None, None, None)
    assert (none.drop.status, none.verdict, none.why) == (
        "insufficient_data",
        "undecided",
        "fewer than two items",
    )
    base, others = study()
    few = recipe_verdicts(base, others, names=NAMES, clusters=list(np.arange(2000) % 5))
    assert few.counts["undecided"] == 4
    assert few["loss"].why == "fewer than 6 clusters"
    assert (few["loss"].together.status, few["loss"].together.value) == (
        "too_few_clusters",
        pytest.approx(0.1),
    )


def test_a_copy_of_every_item_decides_nothing_more():
    """Each item ten times, as one cluster, has the verdicts of the items."""
    rng = np.random.default_rng(5)
    table = null(rng, 60, 5)
    names = [str(j) for j in range(5)]
    once = recipe_verdicts(table[:, 0], table[:, 1:], names=names)
    often = np.repeat(table, 10, axis=0)
    codes = np.repeat(np.arange(60), 10).tolist()
    ten = recipe_verdicts(often[:, 0], often[:, 1:], names=names, clusters=codes)
    assert ten.counts == once.counts
    for a, b in zip(once.recipes, ten.recipes, strict=True):
        assert b.together.p_value > 0.05
        assert b.together.high - b.together.low > 0.8 * (a.together.high - a.together.low)
        assert b.drop.design_effect == pytest.approx(10.0, rel=0.03)


def test_the_shrunken_worst_is_not_biased_by_the_pick():
    """Without any effect the worst of eleven looks points too high, the shrunken one hardly so."""
    rng = np.random.default_rng(9)
    observed, shrunken = [], []
    for _ in range(50):
        table = null(rng, 72, 11)
        found = recipe_verdicts(
            table[:, 0], table[:, 1:], names=[str(j) for j in range(11)], replications=50
        )
        # The true drops are 0, and so is the error of the common baseline over the studies.
        observed.append(found.observed_worst.value)
        shrunken.append(found.worst.value)
        assert found.worst.low <= found.worst.value <= found.worst.high
    assert np.mean(observed) > 0.05
    assert abs(np.mean(shrunken)) < 0.03


def test_bad_input_is_named():
    base, others = study()
    with pytest.raises(DuplicateName, match="'a' is named twice"):
        recipe_verdicts(base, others, names=["a", "b", "a", "c"])
    with pytest.raises(InvalidValue, match="names is"):
        recipe_verdicts(base, others, names=["a"])
    with pytest.raises(InvalidValue, match="margin is"):
        recipe_verdicts(base, others, names=NAMES, margin=0.0)
    with pytest.raises(InvalidValue, match="baseline, perturbed is"):
        recipe_verdicts(base, base, names=["a"])
