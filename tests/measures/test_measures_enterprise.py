"""Content delta, quality delta, robustness score, and tables over runs, models and languages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from falter.measures.drops import accuracy
from falter.measures.enterprise import (
    RatedPairs,
    category_difficulty,
    content_delta,
    quality_delta,
    robustness_score,
    run_summary,
    spread,
    table_summary,
)
from falter.records.errors import InvalidValue

NAN = float("nan")


def ratings(n3, n2, n1, unread=0):
    return [3.0] * n3 + [2.0] * n2 + [1.0] * n1 + [NAN] * unread


def pairs(similarity, moved, **more):
    """Rated pairs with one metric that falls from 3 to 2 where `moved`."""
    original = np.full((len(similarity), 1), 3.0)
    return RatedPairs(
        similarity=similarity, original=original, perturbed=original - np.c_[moved], **more
    )


def test_content_delta_by_hand():
    """The paper's example: 30 twos and 20 ones of 100 are 0.5; the interval is `accuracy`'s."""
    found = content_delta(ratings(50, 30, 20))
    assert found.strict.value == found.valid.value == 0.5
    assert (found.valid.low, found.valid.high) == (
        accuracy([1.0] * 50 + [0.0] * 50).low,
        accuracy([1.0] * 50 + [0.0] * 50).high,
    )


def test_what_could_not_be_read_is_changed_or_left_out_but_never_hidden():
    """Of 8 pairs 2 are unread and 1 never asked: strict (2 + 2)/7, valid 2/5, with the counts."""
    similarity = [3, 3, 3, 2, 1, NAN, NAN, 3]
    missing = [False] * 7 + [True]
    found = content_delta(similarity, missing=missing)
    assert (found.strict.value, found.strict.items) == (pytest.approx(4 / 7), 7)
    assert (found.valid.value, found.valid.items, found.valid.excluded) == (0.4, 5, 2)
    nothing = content_delta([NAN])
    assert (nothing.valid.status, nothing.strict.value) == ("insufficient_data", 1.0)
    assert content_delta([]).strict.status == "insufficient_data"


def test_quality_delta_by_hand():
    """Five changed pairs: one falls, one rises, one does both, one stays, one is not decidable."""
    similarity = [1, 2, 2, 1, 2, 3]
    original = np.array([[3, 3], [1, 1], [2, 2], [3, 3], [3, NAN], [3, 3]])
    perturbed = np.array([[2, 3], [1, 2], [1, 3], [3, 3], [3, 2], [1, 1]])
    found = quality_delta(similarity, original, perturbed)
    assert (found.valid.value, found.valid.items, found.valid.excluded) == (0.75, 4, 1)
    assert (found.strict.value, found.strict.items) == (0.8, 5)
    for part in ("worse", "better", "mixed", "unchanged"):
        assert getattr(found, part).value == 0.25, part
    assert found.worse.measure == "quality_delta.worse"


def test_a_moved_metric_decides_whatever_else_is_missing():
    """A pair that lacks one metric counts as changed if another moved."""
    found = quality_delta([1], [[3, NAN]], [[2, 2]])
    assert (found.valid.value, found.worse.value) == (1.0, 1.0)


def test_quality_delta_edges():
    """No changed content, tolerance for real-valued metrics, and unread similarity."""
    none = quality_delta([3, 3], [[1], [1]], [[2], [2]])
    assert (none.valid.value, none.valid.status) == (None, "insufficient_data")
    near = quality_delta([1], [[0.7]], [[0.7 + 1e-12]])
    assert near.valid.value == 0.0
    assert quality_delta([1], [[0.7]], [[0.75]], tolerance=0.1).unchanged.value == 1.0
    unread = quality_delta([NAN, 1], [[3], [3]], [[3], [3]])
    assert (unread.strict.value, unread.strict.items, unread.valid.items) == (0.0, 2, 1)
    vector = quality_delta([1, 2], [3, 3], [3, 2])
    assert vector.valid.value == 0.5


@pytest.mark.parametrize(
    ("similarity", "original", "perturbed", "match"),
    [
        ([4], [[1]], [[1]], "1, 2 or 3"),
        ([[1]], [[1]], [[1]], "one number for every item"),
        ([1], [[1], [1]], [[1], [1]], "1 pairs x metrics"),
        ([1], [[1]], [[1, 2]], "1 pairs x metrics"),
    ],
)
def test_wrong_ratings_are_refused(similarity, original, perturbed, match):
    """A rating that is no rating, and shapes that do not fit, are named."""
    with pytest.raises(InvalidValue, match=match):
        quality_delta(similarity, original, perturbed)


def test_robustness_by_hand():
    """dC 1/2 and dQ 3/10 are 0.85, which is one minus the share of pairs with both changed."""
    similarity = ratings(50, 30, 20)
    moved = [0] * 50 + [1] * 15 + [0] * 35
    found = robustness_score({"general": pairs(similarity, moved)})
    overall = found.categories["general"].overall
    assert overall.strict.value == overall.valid.value == pytest.approx(0.85)
    assert found.categories["general"].quality.valid.value == pytest.approx(0.3)
    assert found.strict.overall_formula.value == pytest.approx(0.85)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.booleans()), min_size=3, max_size=40))
def test_robustness_is_one_minus_the_share_that_changed_in_both(rows):
    """With nothing missing, whatever the ratings; 1 where no content changed."""
    similarity, moved = zip(*rows, strict=True)
    overall = robustness_score({"a": pairs(list(similarity), list(moved))}).categories["a"].overall
    both = np.mean([s < 3 and m for s, m in rows])
    for found in (overall.strict, overall.valid):
        assert found.value == pytest.approx(1 - both)
        if found.low is not None:
            assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_no_changed_content_is_robust_and_no_known_quality_is_unknown():
    """dC = 0 gives 1 although dQ is not defined; changed content of unknown quality gives None."""
    still = robustness_score({"a": pairs([3, 3, 3], [0, 0, 0])})
    assert still.categories["a"].overall.valid.value == 1.0
    assert still.categories["a"].quality.valid.status == "insufficient_data"
    unknown = RatedPairs(similarity=[1, 1, 3], original=np.full((3, 1), NAN), perturbed=[[1]] * 3)
    found = robustness_score({"a": unknown, "b": pairs([3, 3, 3], [0, 0, 0])})
    assert found.categories["a"].overall.valid.status == "insufficient_data"
    assert found.categories["a"].overall.strict.value == pytest.approx(1 / 3)
    assert found.valid.mean_excl_baseline.status == "insufficient_data"
    empty = robustness_score({"a": pairs([NAN, NAN], [0, 0])})
    assert (empty.categories["a"].overall.valid.value, empty.valid.overall_formula.value) == (
        None,
        None,
    )
    assert robustness_score({}).strict.overall_formula.status == "insufficient_data"


def test_overall_three_ways():
    """Baseline 1, categories 0.9 and 0.6: means 5/6 and 3/4, formula over all pairs together."""
    categories = {
        "baseline": pairs([3] * 10, [0] * 10),
        "general": pairs([1] * 4 + [3] * 6, [1] + [0] * 9),
        "format": pairs([1] * 5 + [3] * 5, [1] * 4 + [0] * 6),
    }
    found = robustness_score(categories).valid
    assert found.mean_incl_baseline.value == pytest.approx((1 + 0.9 + 0.6) / 3)
    assert found.mean_excl_baseline.value == pytest.approx(0.75)
    assert found.overall_formula.value == pytest.approx(1 - 9 / 20 * 5 / 9)
    assert [getattr(found, f).conditions for f in found.__slots__] == [2, 3, 2]


def test_categories_share_their_items():
    """The same item in all categories is one item: the mean's interval knows their correlation."""
    rng = np.random.default_rng(51)
    level = rng.normal(size=200)
    columns = [(level + 0.3 * rng.normal(size=200) > 0.5).astype(int) for _ in range(4)]
    aligned = {str(k): pairs(3 - 2 * c, c) for k, c in enumerate(columns)}
    apart = {
        str(k): pairs(3 - 2 * c, c, items=[(k, i) for i in range(200)])
        for k, c in enumerate(columns)
    }
    one, other = (robustness_score(x).valid.mean_excl_baseline for x in (aligned, apart))
    assert one.value == other.value
    assert one.high - one.low > 1.6 * (other.high - other.low)


def test_robustness_covers():
    """Content changes 40 %, quality 30 % of it, a tenth unreadable: 95 % of the intervals hold."""
    rng = np.random.default_rng(52)
    hits = {"one": 0, "mean": 0, "content": 0, "quality": 0}
    for _ in range(120):  # of so many a true level below 82 % fails 19 times in 20
        categories = {}
        for name, rate in (("baseline", 0.1), ("a", 0.4), ("b", 0.6)):
            content, quality = rng.random(150) < rate, rng.random(150) < 0.3
            similarity = np.where(content, 2.0, 3.0)
            similarity[rng.random(150) < 0.1] = NAN
            categories[name] = pairs(similarity, quality)
        found = robustness_score(categories)
        own = found.categories["a"]
        hits["one"] += own.overall.valid.low <= 1 - 0.12 <= own.overall.valid.high
        hits["content"] += own.content.valid.low <= 0.4 <= own.content.valid.high
        hits["quality"] += own.quality.valid.low <= 0.3 <= own.quality.valid.high
        mean = found.valid.mean_excl_baseline
        hits["mean"] += mean.low <= 1 - 0.15 <= mean.high
    for name, count in hits.items():
        # Agresti and Coull's interval covers more than it says.
        side = "less" if name in ("content", "quality") else "two-sided"
        assert binomtest(count, 120, 0.95, alternative=side).pvalue > 1e-3, (name, count)


def test_runs_are_summed_up_with_ddof_one_and_flags():
    """Two whole runs and one that lacks a category: flagged, and in no mean over categories."""
    runs = [
        {"baseline": 0.9, "general": 0.8, "format": 0.7},
        {"baseline": 0.9, "general": 0.6, "format": 0.5},
        {"baseline": 0.8, "general": 0.7, "format": None},
    ]
    found = run_summary(runs)
    frame = pd.DataFrame(runs).astype(float)
    for name in frame:
        own = found.categories[name]
        assert (own.mean, own.sd) == pytest.approx((frame[name].mean(), frame[name].std()))
    assert found.flagged == {2: ("format",)}
    assert (found.mean_incl_baseline.mean, found.mean_incl_baseline.count) == (
        pytest.approx((0.8 + 2 / 3) / 2),
        2,
    )
    assert found.mean_excl_baseline.sd == pytest.approx(np.std([0.75, 0.55], ddof=1))
    single = run_summary(runs[:1])
    assert (single.mean_incl_baseline.mean, single.mean_incl_baseline.sd) == (
        pytest.approx(0.8),
        None,
    )
    assert (spread([None]).mean, spread([None]).count) == (None, 0)
    with pytest.raises(InvalidValue, match="finite numbers"):
        spread([NAN])


def test_run_sds_estimate_the_standard_deviation():
    """Five runs of sd 2, 400 times: the mean square of the sds is 4, as ddof 1 makes it."""
    rng = np.random.default_rng(53)
    squares = [spread(list(row)).sd ** 2 for row in 2 * rng.normal(size=(400, 5))]
    assert abs(np.mean(squares) - 4) < 4 * np.std(squares) / 20


def test_difficulty_keeps_three_spreads_apart():
    """Means and drops over models, with pandas; mean, root mean square and across-model sd."""
    scores = {"x": {"baseline": 95.0, "a": 80.0}, "y": {"baseline": 93.0, "a": 70.0}}
    sds = {"x": {"baseline": 0.5, "a": 1.0}, "y": {"baseline": 0.5, "a": 7.0}}
    found = category_difficulty(scores, sds)
    frame = pd.DataFrame(scores).T
    assert found["a"].mean == frame["a"].mean()
    assert found["a"].drop == pytest.approx(frame["baseline"].mean() - frame["a"].mean())
    assert (found["a"].mean_run_sd, found["a"].pooled_run_sd) == (4.0, 5.0)
    assert found["a"].sd_across_models == pytest.approx(frame["a"].std())
    assert (found["baseline"].drop, found["a"].models) == (None, 2)
    bare = category_difficulty({"x": {"a": 1.0}, "y": {"a": None}})["a"]
    assert (bare.drop, bare.mean_run_sd, bare.pooled_run_sd, bare.models) == (None, None, None, 1)


def test_tables_name_every_worst_column():
    """Ties are all named; a row without numbers has none."""
    table = {"x": {"de": 3.0, "ja": 3.0, "fr": 1.0}, "y": {"de": 1.0, "ja": 2.0, "fr": None}}
    found = table_summary({**table, "z": {"de": None}})
    assert found.worst == {"x": ("de", "ja"), "y": ("ja",), "z": ()}
    assert found.ranges == {"x": 2.0, "y": 1.0, "z": None}
    assert found.means == {"de": 2.0, "ja": 2.5, "fr": 1.0}
    assert found.times_worst == {"de": 1, "ja": 2, "fr": 0}
