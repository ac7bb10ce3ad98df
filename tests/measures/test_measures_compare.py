"""A against B: by hand, against brute force, coverage and the error of a family."""

from __future__ import annotations

import numpy as np
import pytest

from falter.measures.averages import micro_average
from falter.measures.comparison import Answers, compare_family, compare_pair
from falter.measures.drops import accuracy_drop
from falter.measures.flips import flip_rate, noise_floor
from falter.measures.variance import prompt_share
from falter.records.errors import InvalidValue

NAN = float("nan")


def answers(rng, item, *, spread=0.5, fall=0.1, width=5, skill=0.4):
    """A model on given items: `spread` is how much prompts matter, `fall` what they cost."""
    liability = skill + item[:, None] - fall * (np.arange(width + 1) > 0)
    outcomes = (liability + spread * rng.normal(size=(len(item), width + 1)) > 0).astype(float)
    return Answers(baseline=outcomes[:, 0], perturbed=outcomes[:, 1:])


def share(side):
    table = np.column_stack([side.baseline, np.asarray(side.perturbed)])
    return prompt_share(table).share.value


def test_each_difference_is_that_of_the_two_numbers():
    """Accuracy, average drop, share and flips of each side, one less the other."""
    rng = np.random.default_rng(0)
    item = rng.normal(size=300)
    one, other = answers(rng, item), answers(rng, item, spread=1.0, fall=0.3)
    found = compare_pair(one, other, names=("a", "b"), replications=200)
    assert found.accuracy.value == pytest.approx(one.baseline.mean() - other.baseline.mean())
    drops = [micro_average(s.baseline[:, None] - s.perturbed).value for s in (one, other)]
    assert found.drop.value == pytest.approx(drops[0] - drops[1])
    flips = [flip_rate(s.baseline, s.perturbed).rate.value for s in (one, other)]
    assert found.flip_rate.value == pytest.approx(flips[0] - flips[1])
    # The comparison's share keeps a bias of order 1/items, which is the same on both sides.
    assert found.prompt_share.value == pytest.approx(share(one) - share(other), abs=0.003)
    assert found.prompt_share.high < 0.0
    assert found.prompt_share.p_value < 0.02
    assert (found.first, found.second, found.drop.items) == ("a", "b", 300)


def test_a_model_against_itself_is_exactly_nothing():
    """Every draw has the difference 0: no interval, since nothing can vary."""
    one = answers(np.random.default_rng(1), np.random.default_rng(2).normal(size=80))
    found = compare_pair(one, one, replications=100)
    for name in ("accuracy", "drop", "prompt_share", "flip_rate"):
        estimate = getattr(found, name)
        assert (estimate.value, estimate.low, estimate.p_value) == (0.0, None, None)


def test_a_model_without_an_answer_yet_gives_no_number_and_no_warning():
    one, none = (Answers(baseline=[score], perturbed=[[score]]) for score in (1.0, NAN))
    assert compare_pair(one, none, replications=100).accuracy.status == "insufficient_data"
    nothing = np.empty((0, 1))
    assert noise_floor(nothing, nothing).value is None


def test_only_cells_that_both_have_count():
    """A gap on one side is a gap on both; an item that one lacks is excluded."""
    rng = np.random.default_rng(3)
    item = rng.normal(size=120)
    one, other = answers(rng, item), answers(rng, item, fall=0.5)
    gaps = one.perturbed.copy()
    gaps[:30, 2] = NAN
    gaps[7] = NAN
    found = compare_pair(Answers(baseline=one.baseline, perturbed=gaps), other, replications=100)
    both = Answers(
        baseline=other.baseline, perturbed=np.where(np.isnan(gaps), NAN, other.perturbed)
    )
    again = compare_pair(Answers(baseline=one.baseline, perturbed=gaps), both, replications=100)
    assert found.drop.value == again.drop.value
    assert (found.drop.items, found.drop.excluded) == (119, 1)


def test_conditions_may_differ_in_number():
    """Five conditions against two: each side is its own table."""
    rng = np.random.default_rng(4)
    item = rng.normal(size=400)
    cells = (0.4 + item[:, None] + 0.5 * rng.normal(size=(400, 5)) > 0).astype(float)
    baseline = (0.4 + item + 0.5 * rng.normal(size=400) > 0).astype(float)
    one = Answers(baseline=baseline, perturbed=cells)
    other = Answers(baseline=baseline, perturbed=cells[:, :2])
    found = compare_pair(one, other, replications=200)
    assert found.prompt_share.value == pytest.approx(share(one) - share(other), abs=0.003)
    assert found.prompt_share.low < found.prompt_share.value < found.prompt_share.high


def test_unchanged_cells_do_not_flip_and_are_no_prompt():
    """Where a recipe did nothing the flip rate and the share do not look."""
    rng = np.random.default_rng(5)
    one = answers(rng, rng.normal(size=100))
    changed = np.ones((100, 5), dtype=bool)
    changed[:, 4] = False
    masked = Answers(baseline=one.baseline, perturbed=one.perturbed, changed=changed)
    found = compare_pair(masked, one, replications=50)
    rate = flip_rate(one.baseline, one.perturbed, changed=changed).rate.value
    expected = rate - flip_rate(one.baseline, one.perturbed).rate.value
    assert found.flip_rate.value == pytest.approx(expected)


def test_the_p_value_and_the_interval_agree():
    """At the level 1 − p the interval ends at 0, within what draws resolve."""
    rng = np.random.default_rng(6)
    item = rng.normal(size=150)
    one, other = answers(rng, item), answers(rng, item, fall=0.5)
    p = compare_pair(one, other).drop.p_value
    assert 1e-3 < p < 0.5
    found = compare_pair(one, other, level=1.0 - p).drop
    assert min(abs(found.low), abs(found.high)) < 0.003


def test_intervals_cover_for_items_and_for_clusters():
    """The drop's and the share's true difference, in at least 85 % of 40 tables."""
    for groups in (None, 12):
        hits = {"drop": 0, "prompt_share": 0, "flip_rate": 0}
        for seed in range(40):
            rng = np.random.default_rng((7, seed))
            size = 120
            codes = None if groups is None else np.arange(size) % groups
            item = rng.normal(size=size)
            if groups is not None:
                item = 0.9 * item + 0.45 * rng.normal(size=groups)[codes]
            one, other = answers(rng, item), answers(rng, item)
            found = compare_pair(one, other, clusters=codes, replications=400, seed=seed)
            for name in hits:
                estimate = getattr(found, name)
                hits[name] += estimate.low <= 0.0 <= estimate.high
        assert all(count > 0.85 * 40 for count in hits.values()), (groups, hits)


def test_a_family_adjusts_over_its_pairs():
    """Three models make three pairs, and each number has Holm's p-values of three."""
    rng = np.random.default_rng(8)
    item = rng.normal(size=200)
    family = {"a": answers(rng, item), "b": answers(rng, item), "c": answers(rng, item, fall=0.6)}
    found = compare_family(family, replications=300)
    assert [(p.first, p.second) for p in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    single = sorted(p.drop.p_value for p in found)
    assert min(p.adjusted["drop"] for p in found) == pytest.approx(min(1.0, 3 * single[0]))
    assert all(p.adjusted["drop"] >= p.drop.p_value for p in found)
    with pytest.raises(InvalidValue, match="two or more"):
        compare_family({"a": family["a"]})


def test_edges_have_a_status():
    """Nearly all right: the share is not informative; few clusters, few items: no interval."""
    rng = np.random.default_rng(9)
    easy = Answers(baseline=np.ones(60), perturbed=np.ones((60, 3)))
    one = answers(rng, rng.normal(size=60), width=3)
    found = compare_pair(easy, one, replications=50)
    assert (found.prompt_share.status, found.prompt_share.value) == ("not_informative", None)
    assert found.flip_rate.status == "ok"
    few = compare_pair(easy, one, replications=50, clusters=list(np.arange(60) % 5))
    assert (few.drop.status, few.drop.low, few.drop.clusters) == ("too_few_clusters", None, 5)
    single = Answers(baseline=[1.0], perturbed=[[1.0, 0.0]])
    assert compare_pair(single, single, replications=50).drop.status == "insufficient_data"
    with pytest.raises(InvalidValue, match="same items"):
        compare_pair(easy, single)
    with pytest.raises(InvalidValue, match="baseline outcome"):
        compare_pair(Answers(baseline=[1.0], perturbed=np.ones((2, 2))), single)


def test_an_accuracy_difference_is_near_the_paired_one():
    """The bootstrap and the score interval of the same pairs agree where changes are common."""
    rng = np.random.default_rng(10)
    item = rng.normal(size=300)
    one, other = answers(rng, item, spread=1.0), answers(rng, item, spread=1.0, skill=0.2)
    found = compare_pair(one, other).accuracy
    paired = accuracy_drop(one.baseline, other.baseline)
    assert (found.low, found.high) == pytest.approx((paired.low, paired.high), abs=0.012)
