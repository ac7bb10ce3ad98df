"""Of a drop: its parts by hand, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from falter.measures.drop_decomposition import DropParts, drop_parts, shown
from falter.measures.drops import accuracy_drop
from falter.measures.flips import churn
from falter.records.errors import InvalidValue

NAN = float("nan")
Floats = NDArray[np.float64]


def values(split: DropParts) -> list[float]:
    return [part.value if part.value is not None else NAN for part in split.parts]


# --- by hand --------------------------------------------------------------------------------------


def test_a_reading_failure_is_the_readings_part() -> None:
    """Ten items, four unparsed when changed; the second reader finds two right answers there.

    What it cannot read stays wrong, and so does an answer that was read.
    """
    before = np.ones(10)
    after = np.array([1.0] * 5 + [0.0] * 5)
    again = np.array([1.0] * 5 + [1.0, 1.0, NAN, NAN, 1.0])
    states = np.zeros(10), np.array([0] * 5 + [1, 2, 1, 1, 0])
    split = drop_parts(before, after, states=states, reread=(before, again))
    assert split.drop.value == 0.5
    assert values(split)[0] == pytest.approx(2 / 10)
    assert split.wording.value == pytest.approx(3 / 10)
    assert split.corrected == (2, 0, 0)
    assert {name: part.value for name, part in split.states.items()} == pytest.approx(
        {"another": 0.1, "unparsed": 0.3, "truncated": 0.1, "refused": 0.0}
    )


def test_a_refusal_is_the_wordings_and_its_state_says_so() -> None:
    """A perturbation that makes the model refuse costs points; nothing acquits it."""
    before = np.array([1.0] * 90 + [0.0] * 10)
    after = np.where(np.arange(100) < 20, 0.0, before)
    states = np.zeros(100), np.where(np.arange(100) < 20, 3, 0)
    split = drop_parts(before, after, states=states, reread=(before, np.ones(100)))
    assert shown(split.wording) and split.blamed is None
    assert shown(split.states["refused"])
    assert (split.wording.value, split.reading.value) == (0.2, 0.0)


def test_an_item_with_both_marks_counts_half_in_each() -> None:
    """By hand: ten of forty items are touched, two of them twice; the parts add up."""
    before = np.ones(40)
    after = np.where(np.arange(40) < 9, 0.0, 1.0)
    meaning, serving = np.arange(40) < 6, (np.arange(40) >= 4) & (np.arange(40) < 10)
    split = drop_parts(before, after, meaning_fails=meaning, served_differently=serving)
    assert split.meaning.value == pytest.approx(5 / 40)
    assert split.serving.value == pytest.approx(4 / 40)
    assert split.wording.value == 0.0
    assert split.blamed == "meaning"


def test_three_touched_items_say_little() -> None:
    """Three of a hundred items: the part's interval is some points wide to either side."""
    before = np.ones(100)
    after = np.where(np.arange(100) < 12, 0.0, 1.0)
    split = drop_parts(before, after, meaning_fails=np.arange(100) < 3)
    low, high = split.meaning.low, split.meaning.high
    assert low is not None and high is not None
    assert low < 0.027 < high and 0.05 < high - low < 0.15


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


# --- coverage -------------------------------------------------------------------------------------


def simulated(rng: np.random.Generator, items: int) -> dict[str, object]:
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
    before = right.astype(float)
    return {
        "before": before,
        "after": np.where(unread, 0.0, still),
        "states": (np.zeros(items), unread.astype(int)),
        "reread": (before, np.where(unread & ~readable, NAN, still.astype(float))),
        "meaning_fails": meaning,
        "served_differently": serving,
    }


def true_parts() -> list[float]:
    """From the formulas: what is read of 0.8 right answers, with and without each mark."""
    kept, both = 0.72 * 0.97, 0.12 * 0.25
    meaning = (0.12 - both) * kept * 0.5 + both / 2 * kept * (1 - 0.5 * 0.75)
    serving = (0.25 - both) * kept * 0.25 + both / 2 * kept * (1 - 0.5 * 0.75)
    reading = 0.07 * 0.72 * (1 - 0.12 * 0.5) * (1 - 0.25 * 0.25)
    return [reading, meaning, serving, 0.8 - kept]


def test_each_part_lies_in_its_interval_as_often_as_its_level_says() -> None:
    """300 replications of 150 items with known parts: at least 95 % less three standard errors."""
    truth, replications = true_parts(), 300
    hits = np.zeros(4)
    for seed in range(replications):
        split = drop_parts(**simulated(np.random.default_rng(seed), 150))  # type: ignore[arg-type]
        hits += [
            part.low is not None and part.high is not None and part.low <= true <= part.high
            for part, true in zip(split.parts, truth, strict=True)
        ]
    assert (hits / replications >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / replications)).all()


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
