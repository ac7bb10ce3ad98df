"""Resamples as weights: the draws they stand for, their seeds, and the arguments refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from falter.measures.consistency import item_std, output_consistency
from falter.measures.doses import composition, intensity_curve
from falter.measures.drops import paired_drops, relative_change
from falter.measures.enterprise import RatedPairs, content_delta, robustness_score
from falter.measures.relevance import corrected_rate
from falter.measures.resample import MAX_UNITS, bca_interval, resampled_sums, signed_sums, unit_sums
from falter.records.errors import InvalidValue
from falter.stats.resampling import bootstrap

NAN = float("nan")


def test_draws_are_resamples_of_rows():
    """Sums of whole rows, n of them in every draw, with the mean and error of the bootstrap."""
    table = np.column_stack([np.ones(50), np.random.default_rng(1).normal(size=50)])
    sums = resampled_sums(table, 4000, 7)
    assert (sums[:, 0] == 50).all()
    assert sums[:, 1].mean() == pytest.approx(table[:, 1].sum(), abs=0.5)
    assert sums[:, 1].std() == pytest.approx(table[:, 1].std() * np.sqrt(50), rel=0.05)
    naive = np.random.default_rng(2).integers(50, size=(4000, 50))
    assert scipy.stats.ks_2samp(sums[:, 1], table[:, 1][naive].sum(axis=1)).pvalue > 1e-3


def test_the_seed_decides():
    """The same seed gives the same draws, cut in blocks or not; another seed gives others."""
    table = np.arange(12.0)[:, None]
    one, two, other = (resampled_sums(table, 100, seed) for seed in (3, 3, 4))
    assert np.array_equal(one, two) and not np.array_equal(one, other)
    assert np.array_equal(signed_sums(table, 50, 3), signed_sums(table, 50, 3))
    assert set(np.unique(signed_sums(np.ones((1, 1)), 50, 3))) == {-1.0, 1.0}
    large = np.arange(3000.0)[:, None]
    assert np.array_equal(resampled_sums(large, 1500, (0, 1)), resampled_sums(large, 1500, (0, 1)))


def test_many_units_are_drawn_in_groups_with_the_same_error():
    """Beyond 20,000 units the standard error of a mean is still s / sqrt(n)."""
    rng = np.random.default_rng(5)
    column = rng.exponential(size=MAX_UNITS + 5000)
    sums = resampled_sums(np.column_stack([np.ones(len(column)), column]), 500, 1)
    means = sums[:, 1] / sums[:, 0]
    assert means.std() == pytest.approx(column.std() / np.sqrt(len(column)), rel=0.13)
    assert abs(means.mean() - column.mean()) < 4 * means.std() / np.sqrt(500)
    cells = (rng.random((MAX_UNITS + 3000, 2)) < [0.8, 0.7]).astype(float)
    (drop,) = paired_drops(cells, replications=500)
    t = scipy.stats.ttest_rel(*cells.T).confidence_interval()
    assert (drop.low, drop.high) == pytest.approx((t.low, t.high), abs=8e-4)


def test_units_are_summed_by_cluster():
    """In the order of the clusters' numbers, whatever the order of the rows."""
    sums = unit_sums(np.array([[1.0], [2.0], [4.0]]), np.array([1, 0, 1]))
    assert sums.tolist() == [[2.0], [5.0]]


def test_bca_is_that_of_stats_for_the_same_draws():
    """On a skewed mean the ends are those of `stats.bootstrap` up to chance; edges have none."""
    column = np.random.default_rng(6).exponential(size=80)
    draws = resampled_sums(column[:, None], 4000, 1)[:, 0] / 80
    left = (column.sum() - column) / 79
    ours = bca_interval(float(column.mean()), draws, [left], level=0.95)
    theirs = bootstrap(column, np.mean, replications=4000)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)
    assert ours.method.startswith("bca")
    undefined = np.where(np.arange(4000) % 10 == 0, NAN, draws)
    assert bca_interval(1.0, undefined, [left], level=0.95).low is None
    beyond = bca_interval(float(draws.max() + 1), draws, [left], level=0.95)
    assert beyond.method.startswith("percentile")


def test_clusters_widen_every_share():
    """Each item four times, named by its cluster, is worth no more than once."""
    rng = np.random.default_rng(8)
    codes = (rng.random((60, 3)) < 0.8).astype(int)
    similarity = rng.integers(1, 4, size=60).astype(float)
    names = list(range(60)) * 4

    def width(estimate):
        return estimate.high - estimate.low

    for once, ignored, known in (
        (
            output_consistency(codes).strict,
            output_consistency(np.tile(codes, (4, 1))).strict,
            output_consistency(np.tile(codes, (4, 1)), clusters=names).strict,
        ),
        (
            item_std(codes).mean,
            item_std(np.tile(codes, (4, 1))).mean,
            item_std(np.tile(codes, (4, 1)), clusters=names).mean,
        ),
        (
            content_delta(similarity).valid,
            content_delta(np.tile(similarity, 4)).valid,
            content_delta(np.tile(similarity, 4), clusters=names).valid,
        ),
    ):
        assert width(ignored) < 0.6 * width(once)
        assert width(known) == pytest.approx(width(once), rel=0.1)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: relative_change([1, 2], [1, 2], clusters=["a"]), "a label for each of 2 items"),
        (lambda: paired_drops(np.ones((3, 2)), replications=1), "two or more"),
        (lambda: relative_change([1, 2], [1, 2], level=95), "level is 95"),
        (lambda: content_delta([1, 2], missing=[True]), "a flag for each of 2 pairs"),
        (
            lambda: robustness_score(
                {"a": RatedPairs(similarity=[1], original=[[1]], perturbed=[[1]], items=["x", "y"])}
            ),
            "a label for each of 1 items",
        ),
    ],
)
def test_wrong_arguments_are_named(call, match):
    """The argument, its value and what would do."""
    with pytest.raises(InvalidValue, match=match):
        call()


def test_too_little_is_said_everywhere():
    """One whole item, levels without items, a single label: no number and a reason."""
    lone = composition([1, NAN], {"a": [0, 1], "b": [1, 0]}, {("a", "b"): [0, 0]})[1]
    assert lone.interaction.status == lone.drop.status == "insufficient_data"
    empty = intensity_curve([0, 1, 2], [[1, NAN, 1], [0, NAN, 1]], replications=20)
    assert empty.largest_step.status == empty.auc.status == "insufficient_data"
    assert (empty.steepest, empty.means[1].value) == (None, None)
    assert corrected_rate([1, 0, 1], [1, NAN, NAN]).status == "insufficient_data"
