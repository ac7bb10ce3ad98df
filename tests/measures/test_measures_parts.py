"""Of a drop, how much is real: parts by hand and in a loop, states of replies, and churn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from falter.measures.drop_decomposition import DropParts, drop_by_state, drop_parts
from falter.measures.drops import accuracy_drop
from falter.measures.flips import churn
from falter.records.errors import InvalidValue
from falter.stats.intervals import paired_proportions_interval

NAN = float("nan")
Floats = NDArray[np.float64]


def values(split: DropParts) -> list[float]:
    return [part.value if part.value is not None else NAN for part in split.parts]


# --- by hand --------------------------------------------------------------------------------------


def test_a_reading_failure_is_the_readings_part() -> None:
    """Ten items, four unread when changed; the second reader finds two of them right."""
    before = np.ones(10)
    after = np.array([1.0] * 5 + [0.0] * 5)
    again = np.array([NAN] * 5 + [1.0, 1.0, NAN, NAN, NAN])
    split = drop_parts(before, after, reread=(np.full(10, NAN), again))
    assert split.drop.value == 0.5
    assert values(split)[0] == pytest.approx(0.2)
    # What it cannot read stays wrong.
    assert split.wording.value == pytest.approx(0.3)
    assert split.corrected == (2, 0, 0)


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
    with pytest.raises(InvalidValue, match="one of each for every item"):
        drop_by_state([1.0, 0.0], [1.0, 0.0], ([0], [0, 1]))


def cells_of(seed: int, items: int = 40) -> dict[str, Floats]:
    """Scores of 0 and 1 with holes, unread answers read again, and both marks."""
    rng = np.random.default_rng(seed)

    def scores(times: int) -> Floats:
        drawn = rng.integers(0, 2, size=(items, times)).astype(float)
        return np.where(rng.random((items, times)) < 0.1, NAN, drawn)

    before, after = scores(1), scores(1)
    return {
        "before": before,
        "after": after,
        "reread_before": np.where(before == 0.0, scores(1), NAN),
        "reread_after": np.where(after == 0.0, scores(1), NAN),
        "meaning": rng.random((items, 1)) < 0.3,
        "serving": rng.random((items, 1)) < 0.3,
    }


@pytest.mark.parametrize("seed", range(5))
def test_parts_add_up_and_an_item_with_both_marks_counts_half(seed: int) -> None:
    """Item by item in a plain loop; every part lies in its interval, and none leaves [-1, 1]."""
    cells = cells_of(seed)
    split = drop_parts(
        cells["before"],
        cells["after"],
        reread=(cells["reread_before"], cells["reread_after"]),
        meaning_fails=cells["meaning"],
        served_differently=cells["serving"],
    )
    rows = []
    for i in range(40):
        before, after = cells["before"][i, 0], cells["after"][i, 0]
        if np.isnan(before) or np.isnan(after):
            continue
        again = [
            max(score, 0.0 if np.isnan(second) else second)
            for score, second in (
                (before, cells["reread_before"][i, 0]), (after, cells["reread_after"][i, 0])
            )
        ]  # fmt: skip
        marks = [bool(cells[name][i, 0]) for name in ("meaning", "serving")]
        rows.append((before - after, again[0] - again[1], *marks))
    rest = np.mean([corrected for _, corrected, m, s in rows if not m and not s])
    wanted = [np.mean([drop - corrected for drop, corrected, _, _ in rows])]
    for k in (2, 3):
        parts = [(row[1] - rest) / (row[2] + row[3]) for row in rows if row[k]]
        wanted.append(sum(parts) / len(rows))
    assert values(split)[:3] == pytest.approx(wanted, abs=1e-12)
    assert split.wording.value == pytest.approx(rest)
    assert sum(values(split)) == pytest.approx(split.drop.value, abs=1e-12)
    for part in split.parts:
        assert part.low is not None and part.high is not None and part.value is not None
        assert -1.0 <= part.low <= part.value <= part.high <= 1.0


def test_few_touched_items_have_wide_parts() -> None:
    """Three of a hundred, all lost: the exact limits of the share times those of the drops."""
    before, fails = np.ones(100), np.arange(100) < 3
    after = np.where(fails, 0.0, 1.0)
    part = drop_parts(before, after, meaning_fails=fails).meaning
    assert part.value == pytest.approx(0.03) and "clopper-pearson" in part.method
    assert part.low is not None and part.high is not None and part.high > 0.07


def test_clusters_never_narrow_a_part_and_too_few_have_none() -> None:
    """Beside the interval of items; fewer than six clusters have values alone."""
    rng = np.random.default_rng(2)
    before, after = np.ones(120), (rng.random(120) < 0.7).astype(float)
    marks = {"meaning_fails": rng.random(120) < 0.2}
    plain = drop_parts(before, after, **marks)
    clustered = drop_parts(before, after, **marks, clusters=[n // 10 for n in range(120)])
    for one, other in zip(plain.parts, clustered.parts, strict=True):
        if one.low is None or one.high is None:
            continue
        assert other.low is not None and other.high is not None
        assert other.low <= one.low + 1e-12 and one.high <= other.high + 1e-12
    few = drop_parts(before, after, **marks, clusters=[n // 30 for n in range(120)])
    assert few.meaning.status == few.wording.status == "too_few_clusters"
    assert (few.meaning.low, few.wording.low) == (None, None)


# --- the states of the replies --------------------------------------------------------------------


def test_the_states_of_replies_add_up_to_the_drop() -> None:
    """Of ten items four are lost, two of them refused, and one is gained from a cut-off reply."""
    before = np.array([1.0] * 6 + [0.0] * 3 + [NAN])
    after = np.array([0.0] * 4 + [1.0] * 3 + [0.0] * 3)
    was = np.array([0] * 6 + [2] * 4)
    becomes = np.array([1, 1, 0, 3, 0, 0, 0, 0, 0, 0])
    parts = drop_by_state(before, after, (was, becomes))
    assert {name: part.value for name, part in parts.items()} == pytest.approx(
        {"another answer": 1 / 9, "refused": 2 / 9, "cut off": -1 / 9, "unreadable": 1 / 9}
    )
    drop = accuracy_drop(before, after)
    assert sum(part.value or 0.0 for part in parts.values()) == pytest.approx(drop.value)
    plain = paired_proportions_interval(2, 0, 9)
    assert (parts["refused"].low, parts["refused"].high) == (plain.low, plain.high)


# --- the sentence ---------------------------------------------------------------------------------


def test_a_drop_that_is_all_reading_is_not_the_wordings() -> None:
    """The drop is shown and so is the reading's part; the wording's is not."""
    before = np.array([1.0] * 40 + [0.0] * 10)
    after = np.where(np.arange(50) % 3 == 0, 0.0, before)
    again = np.where((after == 0.0) & (before == 1.0), 1.0, NAN)
    split = drop_parts(before, after, reread=(np.full(50, NAN), again))
    assert split.not_the_wording and split.shown == (split.reading,)
    assert not drop_parts(before, after, reread=(before, after)).not_the_wording


def test_a_drop_is_not_acquitted_without_a_part_that_is_shown() -> None:
    """Nine lost of sixty, of which three are marked: neither the wording nor the mark is shown."""
    before, after = np.ones(60), np.repeat([1.0, 0.0], [51, 9])
    split = drop_parts(before, after, served_differently=np.arange(60) % 8 == 3)
    if split.wording.low is not None and split.wording.low <= 0.0:
        assert not split.not_the_wording
    assert not drop_parts([1.0], [0.0]).not_the_wording
    left = drop_parts(np.ones(30), np.zeros(30), served_differently=np.ones(30, bool))
    assert not left.not_the_wording


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
