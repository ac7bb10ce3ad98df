"""The clustered mean: by hand, against the matrix formulas of CR2, and how often it covers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from falter.measures.averages import family_mean, mean_score, micro_average
from falter.measures.doses import contrast, intensity_curve
from falter.measures.drops import accuracy, accuracy_drop, performance_drop_rate, relative_change
from falter.measures.enterprise import RatedPairs, robustness_score
from falter.measures.flips import churn, excess_change, flip_rate, noise_floor
from falter.measures.rankings import rank_sets
from falter.measures.regression import association
from falter.measures.relevance import score_change
from falter.stats.intervals import agresti_coull
from falter.stats.mean import item_mean

LABELS = list(np.repeat(np.arange(10), 10))


def cr2_by_matrices(y, x, codes, c):
    """Bell and McCaffrey's variance of c'β and its degrees of freedom, from whole matrices."""
    bread = np.linalg.inv(x.T @ x)
    hat = x @ bread @ x.T
    rest = np.eye(len(y)) - hat
    parts, directions = [], []
    for g in np.unique(codes):
        own = codes == g
        values, vectors = np.linalg.eigh(rest[np.ix_(own, own)])
        roots = np.where(values > 1e-10, 1.0 / np.sqrt(np.maximum(values, 1e-10)), 0.0)
        adjusted = vectors @ np.diag(roots) @ vectors.T @ x[own] @ bread @ c
        directions.append(rest[:, own] @ adjusted)
        parts.append((rest @ y)[own] @ adjusted)
    p = np.array(directions)
    products = p @ p.T
    freedom = np.trace(products) ** 2 / np.square(products).sum()
    return np.sqrt(np.square(parts).sum()), freedom


def test_unequal_clusters_are_cr2_by_matrices():
    """Error, degrees of freedom, interval and p are those of the general formulas."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(9), [2, 30, 5, 5, 11, 1, 8, 3, 20])
    y = rng.normal(size=9)[codes] + rng.normal(size=len(codes)) + 0.3
    found = item_mean(y, clusters=codes.tolist())
    error, freedom = cr2_by_matrices(y, np.ones((len(y), 1)), codes, np.ones(1))
    assert (found.standard_error, found.freedom) == pytest.approx((error, freedom))
    half = student.ppf(0.975, freedom) * error
    assert found.interval.low == pytest.approx(y.mean() - half)
    assert found.interval.high == pytest.approx(y.mean() + half)
    assert found.p_value == pytest.approx(2 * student.sf(abs(y.mean() / error), freedom))
    assert (found.clusters, found.interval.method) == (9, "t over clusters, CR2")
    assert found.design_effect == pytest.approx(error**2 / (y.var(ddof=1) / len(y)))


def test_missing_cells_and_contrasts_are_cr2_by_matrices():
    """A weighted sum of condition means is a regression on conditions, cells as they are."""
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(8), [3, 4, 5, 6, 7, 8, 9, 10])
    table = rng.normal(size=(len(codes), 3)) + rng.normal(size=8)[codes][:, None]
    table[rng.random(table.shape) < 0.2] = np.nan
    rows, columns = np.nonzero(~np.isnan(table))
    c = np.array([0.5, 0.25, 0.25])
    y, x = table[rows, columns], np.eye(3)[columns]
    found = item_mean(table, weights=c, clusters=codes.tolist())
    error, freedom = cr2_by_matrices(y, x, codes[rows], c)
    assert (found.standard_error, found.freedom) == pytest.approx((error, freedom))
    gap = contrast(table, [1.0, -1.0, 0.0], clusters=codes.tolist())
    error, freedom = cr2_by_matrices(y, x, codes[rows], np.array([1.0, -1.0, 0.0]))
    assert gap.standard_error == pytest.approx(error)
    assert gap.interval.high - gap.value == pytest.approx(student.ppf(0.975, freedom) * error)
    assert (gap.clusters, gap.status) == (8, "ok")


def test_clusters_that_do_not_differ_leave_the_interval_of_items():
    """8 of 10 right in each of 10 clusters: 80 %, and not [35.6, 80.0]."""
    found = accuracy(([1.0] * 8 + [0.0] * 2) * 10, clusters=LABELS)
    plain = agresti_coull(80, 100)
    assert (found.value, found.clusters, found.design_effect) == (0.8, 10, pytest.approx(0.0))
    assert found.low == pytest.approx(plain.low, abs=0.02) and found.low <= plain.low
    assert found.high == pytest.approx(plain.high, abs=0.02) and found.high >= plain.high


def test_the_effective_number_of_items_by_hand():
    """Half of the clusters right, half wrong: deff is 11, and 100 items count as few."""
    scores = np.repeat([1.0, 0.0], 50)
    found = accuracy(scores, clusters=LABELS)
    # CR2 with equal sizes: 10/9 * sum (5/100)^2 over 10; items: 0.25/99.
    variance = 10 / 9 * 10 * 0.05**2
    items = 0.25 / variance * (norm.ppf(0.975) / student.ppf(0.975, 9)) ** 2
    expected = agresti_coull(items / 2, items)
    assert found.design_effect == pytest.approx(variance / (0.25 / 99))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_items_of_their_own_are_no_clusters():
    """A label for every item gives nearly the interval without labels, and never a narrower one."""
    scores = [1.0] * 150 + [0.0] * 50
    alone, labelled = accuracy(scores), accuracy(scores, clusters=list(range(200)))
    assert (labelled.low, labelled.high) == pytest.approx((alone.low, alone.high), abs=1e-3)
    assert labelled.low <= alone.low and alone.high <= labelled.high
    assert labelled.design_effect == pytest.approx(1.0)
    assert (alone.clusters, alone.design_effect) == (None, None)


@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from([-1, 0, 1])), min_size=12))
def test_no_clusters_make_0_1_scores_surer(pairs):
    """Whatever the clusters: the interval holds that without clusters, and agrees with its test."""
    codes = [*range(6), *(g for g, _ in pairs)]
    drops = np.array([0.0] * 6 + [float(d) for _, d in pairs])
    first, second = (drops >= 0).astype(float), (drops <= 0).astype(float)
    clustered = accuracy_drop(first, second, clusters=codes)
    plain = accuracy_drop(first, second)
    assert clustered.low <= plain.low and plain.high <= clustered.high
    excluded = clustered.low > 0 or clustered.high < 0
    assert excluded == (clustered.p_value < 0.05)
    both = micro_average(np.column_stack([drops, np.zeros(len(drops))]), clusters=codes)
    alone = micro_average(np.column_stack([drops, np.zeros(len(drops))]))
    assert both.low <= alone.low and alone.high <= both.high


def test_fewer_than_six_clusters_have_no_interval():
    """The value stays, the status says why, and nothing is decided."""
    codes, before = list(np.repeat(np.arange(5), 20)), np.ones(100)
    after = np.tile([1.0, 0.0], 50)
    for found in (
        accuracy(after, clusters=codes),
        accuracy_drop(before, after, clusters=codes),
        micro_average(np.column_stack([before - after] * 2), clusters=codes),
        family_mean(after, ["a", "b"] * 50, clusters=codes),
        mean_score(np.column_stack([after, 1.0 - after]), clusters=codes),
        flip_rate(before, after[:, None], clusters=codes).rate,
        noise_floor(before, after, clusters=codes),
    ):
        assert (found.value, found.status) == (0.5, "too_few_clusters")
        assert (found.low, found.high, found.p_value, found.clusters) == (None, None, None, 5)
        assert found.method.startswith("none: fewer than 6 clusters")
    gap = contrast(np.column_stack([before, after]), [1.0, -1.0], clusters=codes)
    assert (gap.value, gap.status, gap.interval.low) == (0.5, "too_few_clusters", None)


@pytest.mark.parametrize("clusters", [2, 5, 6])
def test_resampled_and_jackknifed_numbers_need_six_clusters_too(clusters):
    """The value and the number of clusters, and below six neither an interval nor a p-value."""
    rng = np.random.default_rng(3)
    table = (rng.random((90, 5)) < (0.9, 0.8, 0.7, 0.6, 0.5)).astype(float)
    before, after = table[:, 0], table[:, 1]
    codes = (np.arange(90) % clusters).tolist()
    options = {"clusters": codes, "replications": 100}
    turns = churn(before, after, table[:, 2:4], **options)
    linked = association(table, table[::-1], **options)
    curve = intensity_curve(range(5), table, **options)
    parts = {"original": table[:, 1:2], "perturbed": table[:, 2:3]}
    rated = RatedPairs(similarity=1.0 + 2.0 * before, items=codes, **parts)
    overall = robustness_score({"a": rated}).valid
    for found in (
        relative_change(before, after, **options),
        *(performance_drop_rate(before, table[:, 1:], convention=name, **options).rate
          for name in ("promptbench", "pairwise")),
        turns.again, turns.ratio, linked.overall, linked.within, curve.spearman, curve.retained,
        excess_change(1.0 - before, 1.0 - after, clusters=codes).abbott,
        score_change(before, after, clusters=codes),
        overall.overall_formula, overall.mean_excl_baseline,
    ):  # fmt: skip
        enough = clusters >= 6
        assert found.value is not None, found
        assert found.clusters == clusters, found
        assert found.status == ("ok" if enough else "too_few_clusters"), found
        assert ((found.low is not None), (found.high is not None)) == (enough, enough), found
        assert enough or (found.p_value, found.method) == (None, "none: fewer than 6 clusters")
    ranks = rank_sets(table * [5.0, 1.0, 1.0, 1.0, 1.0], **options)
    assert ((ranks[0].best, ranks[0].worst) == (1, 5)) == (clusters < 6)


def test_scores_between_0_and_1_that_do_not_differ_between_clusters():
    """The error of items is used where that of clusters is 0."""
    drops = np.tile([0.1, 0.3], 50)
    found = item_mean(drops, clusters=LABELS)
    assert found.standard_error == 0.0
    half = student.ppf(0.975, 9) * drops.std(ddof=1) / 10
    assert found.interval.high - 0.2 == pytest.approx(half)
    assert found.interval.method == "t over items, as the clusters do not differ"


def test_a_condition_in_one_cluster_has_no_interval():
    """Nothing says how that condition would come out in other clusters."""
    table = np.full((70, 2), np.nan)
    table[:10, 0] = np.linspace(0.0, 1.0, 10)
    table[10:, 1] = np.linspace(0.0, 1.0, 60)
    codes = list(np.repeat(np.arange(7), 10))
    found = item_mean(table, clusters=codes)
    assert (found.status, found.value, found.interval.low) == ("ok", pytest.approx(0.5), None)
    assert found.interval.method == "none: all items of a condition in one cluster"
    assert item_mean(table[:, :1], clusters=codes).status == "too_few_clusters"
