"""Of a drop, how much is real: parts by hand, by brute force over orders, and their coverage."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from falter.measures.drop_decomposition import DropParts, drop_parts
from falter.measures.drops import accuracy_drop
from falter.measures.flips import churn
from falter.records.errors import InvalidValue
from falter.records.types import Estimate

NAN = float("nan")
Floats = NDArray[np.float64]


def values(split: DropParts) -> list[float]:
    return [part.value if part.value is not None else NAN for part in split.parts]


# --- by hand --------------------------------------------------------------------------------------


def test_a_reading_failure_is_the_readings_part() -> None:
    """Ten items, four unread when changed; the second reader reads two right and cannot two."""
    before = np.ones(10)
    after = np.array([1.0] * 5 + [0.0] * 5)
    again = np.array([1.0] * 5 + [1.0, 1.0, NAN, NAN, 0.0])
    split = drop_parts(before, after, reread=(before, again))
    assert split.drop.value == 0.5
    assert values(split)[0] == pytest.approx(0.5 - 1 / 8)
    assert split.wording.value == pytest.approx(1 / 8)
    assert split.corrected == (4, 0, 0)


def test_a_part_with_nothing_to_correct_is_zero_and_says_so() -> None:
    """It has no interval, and where nothing is corrected the wording part is the drop itself."""
    before, after = np.array([1.0] * 20), np.array([1.0] * 14 + [0.0] * 6)
    nothing = np.zeros(20, bool)
    split = drop_parts(
        before, after, reread=(before, after), meaning_fails=nothing, served_differently=nothing
    )
    for part in split.parts[:3]:
        assert (part.value, part.status, part.low, part.high) == (0.0, "ok", None, None)
        assert part.method == "none: nothing to correct"
    drop = accuracy_drop(before, after)
    assert (split.wording.value, split.wording.low, split.wording.high) == (
        drop.value, drop.low, drop.high,
    )  # fmt: skip


def test_what_was_not_looked_at_is_never_zero() -> None:
    """It is not identified, and the wording part holds it."""
    split = drop_parts([1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0])
    assert [part.status for part in split.parts[:3]] == ["not_identified"] * 3
    assert [part.value for part in split.parts[:3]] == [None] * 3
    assert split.wording.value == split.drop.value == 0.5


def test_no_item_left_when_corrected_is_too_few() -> None:
    """Where every cell came from another server, neither that part nor the wording's is known."""
    split = drop_parts([1.0, 1.0], [0.0, 1.0], served_differently=[True, True])
    assert split.drop.value == 0.5
    assert (split.serving.status, split.wording.status) == ("insufficient_data",) * 2


@pytest.mark.parametrize("items", [0, 1])
def test_too_few_items(items: int) -> None:
    """Fewer than two items have no drop, and so no parts."""
    split = drop_parts(np.ones(items), np.zeros(items), meaning_fails=np.ones(items, bool))
    assert split.drop.value is None
    assert split.meaning.status == split.wording.status == "insufficient_data"


def test_shapes_that_do_not_fit_are_refused() -> None:
    """The same items on both sides, the same cells read twice, masks of the changed cells."""
    with pytest.raises(InvalidValue, match="the same items twice"):
        drop_parts([1.0, 0.0], [1.0])
    with pytest.raises(InvalidValue, match="the cells that were read"):
        drop_parts([1.0, 0.0], [1.0, 0.0], reread=([1.0], [1.0]))
    with pytest.raises(InvalidValue, match="the cells of after"):
        drop_parts([1.0, 0.0], [1.0, 0.0], meaning_fails=[True] * 3)
    with pytest.raises(InvalidValue, match="items x times asked"):
        drop_parts(np.ones((2, 2, 2)), [1.0, 0.0])


# --- by brute force -------------------------------------------------------------------------------


def corrected_drop(cells: dict[str, Floats], order: tuple[str, ...]) -> float:
    """The drop after some corrections, item by item in plain loops."""
    drops = []
    for i in range(len(cells["before"])):
        read = "reread_" if "reading" in order else ""
        before = [v for v in cells[f"{read}before"][i] if not np.isnan(v)]
        after = [
            v
            for k, v in enumerate(cells[f"{read}after"][i])
            if not np.isnan(v)
            and not ("meaning" in order and cells["meaning"][i, k])
            and not ("serving" in order and cells["serving"][i, k])
        ]
        if before and after:
            drops.append(np.mean(before) - np.mean(after))
    return float(np.mean(drops))


def cells_of(seed: int, items: int = 25) -> dict[str, Floats]:
    rng = np.random.default_rng(seed)

    def scores(times: int) -> Floats:
        drawn = rng.integers(0, 2, size=(items, times)).astype(float)
        return np.where(rng.random((items, times)) < 0.1, NAN, drawn)

    before, after = scores(2), scores(3)
    return {
        "before": before,
        "after": after,
        "reread_before": np.where(np.isnan(before), NAN, scores(2)),
        "reread_after": np.where(np.isnan(after), NAN, scores(3)),
        "meaning": rng.random((items, 3)) < 0.2,
        "serving": rng.random((items, 3)) < 0.3,
    }


@pytest.mark.parametrize("seed", range(5))
def test_parts_are_the_mean_over_all_orders_and_add_up(seed: int) -> None:
    """Six orders of three corrections, each applied one after the other, with repeats and holes."""
    cells = cells_of(seed)
    split = drop_parts(
        cells["before"],
        cells["after"],
        reread=(cells["reread_before"], cells["reread_after"]),
        meaning_fails=cells["meaning"],
        served_differently=cells["serving"],
        replications=50,
    )
    names = ("reading", "meaning", "serving")
    wanted = dict.fromkeys(names, 0.0)
    for order in permutations(names):
        for at, name in enumerate(order):
            step = corrected_drop(cells, order[:at]) - corrected_drop(cells, order[: at + 1])
            wanted[name] += step / 6
    assert values(split)[:3] == pytest.approx([wanted[name] for name in names], abs=1e-12)
    assert split.wording.value == pytest.approx(corrected_drop(cells, names), abs=1e-12)
    assert sum(values(split)) == pytest.approx(split.drop.value, abs=1e-12)


def test_the_same_seed_gives_the_same_intervals() -> None:
    """Another seed gives others."""
    cells = cells_of(1)

    def meaning(seed: int) -> Estimate:
        masks = {"meaning_fails": cells["meaning"], "served_differently": cells["serving"]}
        return drop_parts(cells["before"], cells["after"], seed=seed, **masks).meaning

    assert meaning(3) == meaning(3)
    assert (meaning(3).low, meaning(3).seed) != (meaning(4).low, meaning(4).seed)


def test_copied_items_in_clusters_widen_nothing_and_narrow_nothing() -> None:
    """Each item four times in a cluster of its own has nearly the interval of the single items."""
    rng = np.random.default_rng(2)
    before, after = np.ones(80), (rng.random(80) < 0.7).astype(float)
    fails = rng.random(80) < 0.2
    one = drop_parts(before, after, meaning_fails=fails)
    four = drop_parts(
        np.repeat(before, 4),
        np.repeat(after, 4),
        meaning_fails=np.repeat(fails, 4),
        clusters=[n // 4 for n in range(320)],
    )
    assert four.meaning.value == pytest.approx(one.meaning.value)
    for end in ("low", "high"):
        assert getattr(four.meaning, end) == pytest.approx(getattr(one.meaning, end), abs=0.01)


# --- the sentence ---------------------------------------------------------------------------------


def test_a_drop_that_is_all_reading_is_not_the_wordings() -> None:
    """The drop's interval leaves out zero, that of its wording part does not."""
    before = np.array([1.0] * 40 + [0.0] * 10)
    after = np.where(np.arange(50) % 3 == 0, 0.0, before)
    split = drop_parts(before, after, reread=(before, np.where(np.arange(50) == 4, 0.0, before)))
    assert split.not_the_wording
    assert not drop_parts(before, after, reread=(before, after)).not_the_wording


def test_a_wording_part_without_any_variation_has_the_drops_interval() -> None:
    """Forty corrected items that are all alike: as wide as the drop of forty items without one."""
    before, after = np.ones(60), np.repeat([1.0, 0.0], [40, 20])
    split = drop_parts(before, after, meaning_fails=after == 0.0)
    plain = accuracy_drop(before[:40], after[:40])
    assert (split.wording.value, split.wording.low, split.wording.high) == (
        0.0, plain.low, plain.high,
    )  # fmt: skip
    assert split.not_the_wording


def test_parts_without_an_interval_say_nothing_about_the_wording() -> None:
    """Neither a missing drop nor a missing wording part makes the sentence."""
    assert not drop_parts([1.0], [0.0]).not_the_wording
    left = drop_parts(np.ones(30), np.zeros(30), served_differently=np.ones(30, bool))
    assert not left.not_the_wording


# --- coverage -------------------------------------------------------------------------------------


def simulated(rng: np.random.Generator, items: int) -> tuple[Floats, ...]:
    """Known reading failures, meaning losses and a second host, all independent of each other.

    Of 80 % right answers 10 % turn wrong by the wording. 12 % of the items lost their meaning, and
    half of their right answers; 25 % were served by a host that loses a quarter of them. 10 % of
    the changed answers are unread, which the second reader reads in seven of ten.
    """
    right = rng.random(items) < 0.8
    meaning, serving = rng.random(items) < 0.12, rng.random(items) < 0.25
    still = right & (rng.random(items) >= 0.1)
    still &= ~(meaning & (rng.random(items) < 0.5)) & ~(serving & (rng.random(items) < 0.25))
    unread, readable = rng.random(items) < 0.1, rng.random(items) < 0.7
    after = np.where(unread, 0.0, still)
    again = np.where(unread & ~readable, NAN, still.astype(float))
    return right.astype(float), after, again, meaning, serving


def true_parts() -> list[float]:
    """From the formula: 0.8 less what every step leaves, averaged over the orders."""

    def drop(order: tuple[str, ...]) -> float:
        kept = 0.8 * 0.9
        kept *= 1.0 if "meaning" in order else 1.0 - 0.12 * 0.5
        kept *= 1.0 if "serving" in order else 1.0 - 0.25 * 0.25
        return 0.8 - kept * (1.0 if "reading" in order else 0.9)

    names = ("reading", "meaning", "serving")
    parts = dict.fromkeys(names, 0.0)
    for order in permutations(names):
        for at, name in enumerate(order):
            parts[name] += (drop(order[:at]) - drop(order[: at + 1])) / 6
    return [*parts.values(), drop(names)]


def test_each_part_lies_in_its_interval_as_often_as_its_level_says() -> None:
    """400 replications of 150 items with known parts: 95 % ± three standard errors."""
    truth, replications = true_parts(), 400
    hits = np.zeros(4)
    for seed in range(replications):
        before, after, again, meaning, serving = simulated(np.random.default_rng(seed), 150)
        split = drop_parts(
            before,
            after,
            reread=(before, again),
            meaning_fails=meaning,
            served_differently=serving,
            replications=400,
            seed=seed,
        )
        hits += [
            part.low is not None and part.high is not None and part.low <= true <= part.high
            for part, true in zip(split.parts, truth, strict=True)
        ]
    assert (np.abs(hits / replications - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / replications)).all()


# --- churn ----------------------------------------------------------------------------------------


def test_churn_by_hand() -> None:
    """Of ten items three are lost and one gained; asking again turns two, so one each way."""
    before = np.array([1.0] * 6 + [0.0] * 4)
    after = np.array([0.0] * 3 + [1.0] * 3 + [1.0] + [0.0] * 3)
    repeat = np.array([0.0] + [1.0] * 5 + [0.0] * 3 + [1.0])
    found = churn(before, after, np.stack([before, repeat], axis=1))
    assert (found.lost, found.gained, found.items) == (3.0, 1.0, 10)
    assert found.again.value == 1.0
    assert found.ratio.value == 2.0
    assert found.ratio.low is not None and found.ratio.low < 2.0


def test_more_repeats_calm_neither_side() -> None:
    """Askings are compared one by one: copies of the columns change no number."""
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, 2, 60).astype(float), rng.integers(0, 2, 60).astype(float)
    once = churn(before, after, np.stack([before, after], axis=1))
    many = churn(np.stack([before] * 3, 1), np.stack([after] * 2, 1), np.stack([before, after], 1))
    assert (many.lost, many.gained) == (once.lost, once.gained)
    assert many.ratio.value == once.ratio.value


def test_churn_without_a_repeat_and_without_a_change() -> None:
    """Nothing asked twice is not identified; asking again that turns nothing has no ratio."""
    before, after = np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0])
    once = churn(before, after, before)
    assert (once.again.status, once.ratio.status) == ("not_identified", "not_identified")
    calm = churn(before, after, np.stack([before, before], axis=1))
    assert (calm.again.value, calm.again.low) == (0.0, None)
    assert (calm.ratio.value, calm.ratio.status) == (None, "undefined_zero_denominator")


def test_churn_of_other_items_is_refused() -> None:
    """All three hold the same items."""
    with pytest.raises(InvalidValue, match="the same items in each"):
        churn([1.0, 0.0], [1.0, 0.0], [1.0])


def test_a_ratio_on_two_turning_items_has_no_upper_end() -> None:
    """Many draws hold neither of them."""
    before = np.ones(30)
    after, repeat = before.copy(), before.copy()
    after[:9], repeat[:2] = 0.0, 0.0
    found = churn(before, after, np.stack([before, repeat], axis=1))
    assert found.ratio.value == 4.5
    assert found.ratio.low is not None
    assert found.ratio.high is None


def test_the_churn_ratio_covers() -> None:
    """300 replications of 200 items: a recipe that turns 20 % where asking again turns 10 %."""
    inside, replications = 0, 300
    for seed in range(replications):
        rng = np.random.default_rng(seed)
        before = (rng.random(200) < 0.6).astype(float)
        after = np.where(rng.random(200) < 0.2, 1.0 - before, before)
        repeat = np.where(rng.random(200) < 0.1, 1.0 - before, before)
        ratio = churn(before, after, np.stack([before, repeat], axis=1), replications=400).ratio
        high = np.inf if ratio.high is None else ratio.high
        inside += ratio.low is not None and ratio.low <= 2.0 <= high
    assert abs(inside / replications - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / replications)
