"""The prompt's share of the variance and the flip rate: by hand, simulated, at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from falter.measures.flips import churn, flip_rate, noise_floor, turn_threshold
from falter.measures.variance import prompt_share, variance_components
from falter.records.errors import InvalidValue

NAN = float("nan")


def drawn(seed, items=400, width=12, draws=1, noise=0.75, gap=0.05):
    """Outcomes of items under prompts, each prompt drawn anew as often as asked."""
    rng = np.random.default_rng(seed)
    liability = 0.25 + 1.2 * rng.normal(size=(items, 1, 1)) - gap * np.arange(width)[:, None]
    liability = liability + 0.5 * rng.normal(size=(items, width, 1))
    return (liability + noise * rng.normal(size=(items, width, draws)) > 0.0).astype(float)


def only_runs(seed, items=400, width=12, runs=3):
    """No prompt has an effect; each cell is asked three times and items differ in difficulty."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / (1.0 + np.exp(-3.5 * rng.normal(size=(items, 1, 1)) - 0.5))
    return (rng.random((items, width, runs)) < chance).astype(float)


def test_the_share_by_hand():
    """Of 80 items with two prompts a quarter turn: half a squared gap of 1 in each of these."""
    table = np.tile([[1, 0], [1, 1], [0, 0], [0, 0]], (20, 1))
    found = prompt_share(table)
    within = 1 / 8
    first, second = table.T
    across = (first.sum() * second.sum() - (first * second).sum()) / (80 * 79)
    item = (2 / 4 + 1 / 4) / 2 - within - across
    assert found.item.value == pytest.approx(item)
    assert found.share.value == pytest.approx(within / (within + item))
    assert found.label == "prompt and run"
    assert "prompt and run" in found.share.estimand


def test_averaging_draws_first_lowers_the_plugin_and_not_the_share():
    """The plug-in fell from 30 to 17 % at 1, 5 and 20 draws; the share stays where it is."""
    table = drawn(1, items=800, draws=20)
    plugin = [
        variance_components(table[:, :, :d].mean(axis=2), draws=d).brittleness for d in (1, 5, 20)
    ]
    share = [prompt_share(table[:, :, :d]).share for d in (1, 5, 20)]
    assert plugin[0].value > 1.5 * plugin[1].value > 1.7 * plugin[2].value
    assert "as in the paper (J = 12, draws 20, n = 800)" in plugin[2].estimand
    assert max(s.value for s in share) - min(s.value for s in share) < 0.02
    assert all(s.low < share[2].value < s.high for s in share)


def test_the_share_does_not_grow_with_the_number_of_conditions():
    """The plug-in of 4 of 16 conditions is much lower than that of all, the share is the same."""
    table = drawn(2, items=1500, width=16, gap=0.0)
    few, many = table[:, :4], table[:, :]
    assert prompt_share(few).share.value == pytest.approx(prompt_share(many).share.value, abs=0.02)
    short, long = (variance_components(t).brittleness.value for t in (few, many))
    assert short < long - 0.05


def test_run_noise_is_not_the_prompts():
    """Where no prompt has an effect the plug-in says 10 % and more of three runs; the share, 0."""
    table = only_runs(3)
    assert variance_components(table).brittleness.value > 0.1
    found = prompt_share(table, repeats=3)
    assert found.label == "prompt"
    assert (found.share.low, found.share.value) == (0.0, pytest.approx(0.0, abs=0.02))
    assert found.share.high < 0.04
    once = prompt_share(table[:, :, :1], again=table[:, 0, :])
    assert once.label == "prompt"
    assert once.share.low == 0.0
    mixed = prompt_share(table[:, :, :1])
    assert mixed.label == "prompt and run"
    assert mixed.share.low > 0.2
    assert mixed.run.status == "not_identified"


def test_idle_cells_share_their_run_with_the_baseline():
    """Half of the cells carry the baseline: nothing of the noise that they do not have is taken."""
    table = only_runs(11, items=2000)
    idle = np.zeros(table.shape[:2], dtype=bool)
    idle[:, 1:7] = True
    for runs in (1, 3):
        carried = np.where(idle[:, :, None], table[:, :1], table)[:, :, :runs]
        again = table[:, 0] if runs == 1 else None
        found = prompt_share(carried, repeats=runs, again=again, idle=idle)
        assert found.share.value == pytest.approx(0.0, abs=0.03)
        assert found.interaction.value == pytest.approx(0.0, abs=0.004)
        unaware = prompt_share(carried, repeats=runs, again=again)
        assert unaware.interaction.value < found.interaction.value - 0.005
    with pytest.raises(InvalidValue, match="idle"):
        prompt_share(table, idle=idle[:5])


def test_a_handful_of_wrong_cells_is_not_informative():
    """Five wrong cells in 3,000 gave 66.7 %; now the share says why it says nothing."""
    table = np.ones((200, 15))
    table[0, :5] = 0
    assert variance_components(table).brittleness.value == pytest.approx(0.667, abs=0.001)
    share = prompt_share(table).share
    assert (share.value, share.low, share.status) == (None, None, "not_informative")
    assert "0.998, is above 0.98" in share.method
    assert prompt_share(1 - table).share.status == "not_informative"
    flips = flip_rate(table[:, 0], table[:, 1:])
    assert flips.rate.value == pytest.approx(10 / 2800)
    assert flips.rate.high < 0.03


def test_all_cells_count_and_an_empty_condition_is_named():
    """275 of 1,000 items are whole; all are used, and the condition without outcomes is named."""
    table = drawn(4, items=1000, width=16)[:, :, 0]
    full = prompt_share(table).share
    table[np.random.default_rng(5).random(table.shape) < 0.08] = NAN
    table[:, 7] = NAN
    table[11] = NAN
    found = prompt_share(table).share
    assert (found.items, found.conditions, found.excluded) == (999, 15, 1)
    assert "without 7 (no outcome)" in found.estimand
    assert found.value == pytest.approx(full.value, abs=0.02)
    assert found.high - found.low == pytest.approx(full.high - full.low, rel=0.1)
    for method in ("plugin", "crossed"):
        brittleness = variance_components(table, method)
        item = brittleness.data if method == "plugin" else None
        assert item is None or (item.items, item.excluded) == (999, 1)


def test_every_item_twice_in_clusters_is_every_item_once():
    """Copies add nothing: the interval is as wide, the design effect near two."""
    table = drawn(6, items=60)
    once = prompt_share(table).share
    twice = prompt_share(np.repeat(table, 2, axis=0), clusters=list(np.arange(60).repeat(2))).share
    naive = prompt_share(np.repeat(table, 2, axis=0)).share
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), abs=0.01)
    assert naive.high - naive.low < 0.8 * (twice.high - twice.low)
    assert (twice.clusters, once.clusters) == (60, None)
    assert twice.design_effect == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("method", ["plugin", "crossed"])
def test_fewer_than_six_clusters_have_no_interval(method):
    """The value is there, the status says why it has no interval."""
    table = drawn(7, items=60)
    few = variance_components(table, method, clusters=list(np.arange(60) % 5))
    share = few.brittleness if method != "crossed" else few.brittleness_interaction
    assert (share.status, share.low, share.clusters) == ("too_few_clusters", None, 5)
    assert share.value is not None
    six = variance_components(table, method, clusters=list(np.arange(60) % 6))
    share = six.brittleness if method != "crossed" else six.brittleness_interaction
    assert share.status == "ok"
    assert share.low is not None
    assert prompt_share(table, clusters=list(np.arange(60) % 5)).share.status == "too_few_clusters"


def test_the_share_is_shown_only_where_twenty_items_and_clusters_differ():
    """Below it covered 71 to 90 %: a dash with the reason, and the flip rate speaks."""
    rng = np.random.default_rng(3)
    table = np.tile((rng.random((400, 1)) < 0.5).astype(float), (1, 6))
    table[:19, 0] = 1.0 - table[:19, 0]
    few = prompt_share(table).share
    assert (few.value, few.status) == (None, "not_informative")
    assert "only 19 items differ between conditions, fewer than 20: see the flip rate" in few.method
    table[19, 0] = 1.0 - table[19, 0]
    assert prompt_share(table).share.status == "ok"
    together = prompt_share(table, clusters=[n // 20 for n in range(400)]).share
    assert "only 1 cluster has an item that differs" in together.method


def test_edges_of_the_share_have_a_status():
    """One condition, one item, nothing at all: a status and no exception."""
    statuses = [
        prompt_share(t).share.status
        for t in (np.ones((5, 1)), np.ones((1, 5)), np.zeros((0, 3)), [])
    ]
    assert statuses == [
        "not_identified",
        "insufficient_data",
        "insufficient_data",
        "insufficient_data",
    ]
    assert prompt_share(np.full((9, 3), 0.5)).share.status == "undefined_zero_variance"
    with pytest.raises(InvalidValue, match="repeats"):
        prompt_share(np.ones((5, 3, 4)), repeats=3)
    with pytest.raises(InvalidValue, match="again"):
        prompt_share(np.ones((5, 3)), again=np.ones((4, 2)))


def test_flips_by_hand():
    """Changed cells only: item 1 flips in one of two, item 2 in one of one, item 3 in none."""
    baseline = [1, 1, 0]
    cells = np.array([[1, 0], [0, 0], [0, 0.0]])
    changed = np.array([[1, 1], [1, 0], [1, 1]])
    found = flip_rate(baseline, cells, changed=changed, again=[1, 0, 0])
    # one of three in the first condition, one of two in the second
    assert found.rate.value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert [e.value for e in found.conditions] == pytest.approx([1 / 3, 1 / 2])
    assert found.again.value == pytest.approx(1 / 3)
    assert found.excess.value == pytest.approx((0 + 0.5) / 2)
    assert found.rate.items == 3


def test_flips_stay_between_0_and_1():
    """No flip has an upper limit, all flips a lower one, and neither end leaves the range."""
    none = flip_rate(np.ones(40), np.ones((40, 3))).rate
    every = flip_rate(np.ones(40), np.zeros((40, 3))).rate
    assert (none.value, none.low) == (0.0, 0.0)
    assert 0.0 < none.high < 0.12
    assert (every.value, every.high) == (1.0, 1.0)
    assert 0.8 < every.low < 1.0


def test_flips_of_asking_again():
    """Of the baseline's own repeats, of identity repeats, or not identified."""
    twice = np.array([[1, 1], [1, 0], [0, 0], [NAN, 1]])
    cells = np.zeros((4, 2))
    found = flip_rate(twice, cells)
    assert found.again.value == pytest.approx(noise_floor(twice[:, 0], twice[:, 1]).value)
    # A cell asked once against a baseline asked twice: half of its pairs differ.
    assert found.rate.value == pytest.approx(np.mean([1, 0.5, 0, 1]))
    once = flip_rate(twice[:, 1], cells)
    assert (once.again.status, once.excess.status) == ("not_identified", "not_identified")
    again = flip_rate(twice[:, 1], cells, again=np.array([[1, 0], [0, 0], [1, 1], [1, 1]]))
    assert again.again.value == pytest.approx((0.5 + 0 + 1 + 0) / 4)


def test_a_graded_score_turns_by_more_than_asking_again_moves_it():
    """Jitter turns nothing; with 20 repeat pairs the threshold is the 95 % point of their moves."""
    rng = np.random.default_rng(3)
    base = rng.random(60)
    jittered = base[:, None] + 5e-4 * rng.standard_normal((60, 3))
    found = flip_rate(base, jittered, again=base + 5e-4 * rng.standard_normal(60))
    assert (found.rate.value, found.threshold) == (0.0, 0.05)
    moves = 0.1 * rng.standard_normal(60)
    noisy = flip_rate(base, np.clip(base + moves, 0, 1)[:, None], again=base + moves)
    assert noisy.threshold == pytest.approx(np.sort(np.abs(moves))[57])
    assert noisy.excess.low < 0 < noisy.excess.high
    assert turn_threshold([0.0, 1.0, NAN], moves) == 1e-9
    assert turn_threshold(base, moves[:19]) == 0.05
    assert turn_threshold(base, [0.3] * 20, turn=0.1) == pytest.approx(0.3)


def test_lost_and_gained_are_the_flips():
    """Of graded scores too: a score that moves by .2 has turned, one that moves by .03 has not."""
    before, after = [0.9, 0.9, 0.5, 0.5], [0.7, 0.87, 0.7, 0.5]
    turned = churn(before, after, before)
    assert (turned.lost, turned.gained) == (1.0, 1.0)
    assert flip_rate(before, np.array(after)[:, None]).rate.value == 0.5


def test_flip_arguments_are_checked():
    """A mask or a repeat of another shape is named."""
    with pytest.raises(InvalidValue, match="changed"):
        flip_rate(np.ones(3), np.ones((3, 2)), changed=np.ones((3, 3)))
    with pytest.raises(InvalidValue, match="again"):
        flip_rate(np.ones(3), np.ones((3, 2)), again=np.ones(4))


def test_runs_that_are_no_repeats_give_no_share() -> None:
    """Two orders of a pair whose answers differ by the order: no prompt's share is below zero."""
    rng = np.random.Generator(np.random.PCG64(5))
    first = (rng.random((300, 6)) < 0.9).astype(float)
    table = np.stack([first, 1.0 - first], axis=2)
    table = np.where(rng.random(table.shape) < 0.1, 1.0 - table, table)
    share = prompt_share(table, repeats=2).share
    assert (share.value, share.status) == (None, "not_identified")
    assert "no repeats" in share.method
