"""Drops all at once, composed, by dose, beyond the noise, between arms; and judges corrected."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import trapezoid
from scipy.stats import binomtest

from falter.measures.doses import composition, intensity_curve
from falter.measures.drops import accuracy, accuracy_drop, differential_failure, paired_drops
from falter.measures.flips import excess_change, noise_floor
from falter.measures.regression import association
from falter.measures.relevance import corrected_rate
from falter.records.errors import InvalidValue
from falter.stats.intervals import paired_proportions_interval
from falter.stats.multiplicity import max_t
from falter.stats.paired import mcnemar, paired_difference
from falter.stats.resampling import bootstrap
from probit import ProbitModel, simulate_outcomes, simulated_truth

NAN = float("nan")
LANGUAGES = Path(__file__).parents[1] / "data" / "truthfulqa_multi_languages.csv"


def languages():
    """Real outcomes: one model, 817 questions in five languages, one cell missing."""
    with LANGUAGES.open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[float(cell) if cell else NAN for cell in row[1:]] for row in rows])


def ends(estimate):
    return estimate.low, estimate.high


def test_drops_of_real_outcomes():
    """Every value is `accuracy_drop`'s; the intervals are wider, and those of stats' max-T."""
    table = languages()
    found = paired_drops(table, replications=4000)
    other = max_t(table[:, :1] - table[:, 1:], replications=4000)
    for drop, column, theirs in zip(found, table.T[1:], other.members, strict=True):
        alone = accuracy_drop(table[:, 0], column)
        assert (drop.value, drop.items, drop.excluded) == (
            pytest.approx(alone.value),
            alone.items,
            alone.excluded,
        )
        assert drop.low < alone.low and alone.high < drop.high
        assert ends(drop) == (theirs.together.low, theirs.together.high)


def test_drops_edges():
    """Rare changes, no change at all, nothing in common, equal losses, and no table."""
    first = np.ones(100)
    second = np.array([0.0] * 3 + [1.0] * 97)
    table = np.column_stack([first, second, first, np.full(100, NAN)])
    rare, none, gone = paired_drops(table, replications=50)
    expected = paired_proportions_interval(3, 0, 100, level=1 - 0.05 / 2)
    assert ends(rare) == pytest.approx((expected.low, expected.high))
    assert (none.value, none.p_value) == (0.0, 1.0) and none.low < 0.0 < none.high
    assert (gone.value, gone.status, gone.excluded) == (None, "insufficient_data", 100)
    steady = paired_drops(np.array([[0.5, 0.25]] * 30), replications=50)[0]
    assert (steady.value, steady.low, steady.p_value) == (0.25, None, None)
    with pytest.raises(InvalidValue, match="outcomes is"):
        paired_drops(first)


def test_drops_of_clusters_are_wider():
    """Every item three times is no more than the item once."""
    table = languages()[:200]
    codes = list(range(200)) * 3
    once = paired_drops(table, replications=1000)
    thrice = paired_drops(np.vstack([table] * 3), clusters=codes, replications=1000)
    for one, three in zip(once, thrice, strict=True):
        assert ends(three) == pytest.approx(ends(one), abs=0.01)


def test_drops_hold_all_at_once_and_the_worst_is_covered():
    """All five intervals hold 95 % of the time; the largest ends hold the true worst drop."""
    model = ProbitModel(ability=0.6, effects=(0, 0, 0, 0.02, 0.05, 0.05), interaction=0.6)
    truth = simulated_truth(model).drops
    rng = np.random.default_rng(41)
    together = worst = pointwise = 0
    for seed in range(300):
        found = paired_drops(simulate_outcomes(model, 200, seed=rng), replications=200, seed=seed)
        inside = [d.low <= t <= d.high for d, t in zip(found, truth, strict=True)]
        together += all(inside)
        pointwise += sum(inside)
        worst += max(d.low for d in found) <= truth.max() <= max(d.high for d in found)
    assert binomtest(together, 300, 0.95).pvalue > 1e-3
    assert binomtest(worst, 300, 0.95, alternative="less").pvalue > 1e-3
    assert pointwise / 1500 > 0.97


def test_composition_by_hand():
    """Drops 1/4, 1/4 and together 3/4: interaction 1/4; the other order 1/4: asymmetry 1/2."""
    clean = np.ones(8)
    a, b = np.array([0, 0, 1, 1, 1, 1, 1, 1]), np.array([1, 1, 0, 0, 1, 1, 1, 1])
    ab, ba = np.array([0] * 6 + [1] * 2), np.array([1, 1, 1, 1, 1, 1, 0, 0])
    pairs = {("a", "b"): ab, ("b", "a"): ba, ("b", "c"): None}
    found = {(p.first, p.second): p for p in composition(clean, {"a": a, "b": b, "c": b}, pairs)}
    pair = found["a", "b"]
    assert (pair.drop.value, pair.interaction.value, pair.asymmetry.value) == (0.75, 0.25, 0.5)
    t = scipy.stats.ttest_1samp(a + b - clean - ab, 0.0).confidence_interval()
    assert ends(pair.interaction) == pytest.approx((t.low, t.high))
    assert found["b", "a"].asymmetry.value == -0.5
    assert ends(pair.asymmetry) == ends(accuracy_drop(ba, ab))
    assert (found["a", "a"].drop.status, found["a", "a"].drop.value) == ("not_identified", None)
    assert "overwrites 'b'" in found["b", "c"].interaction.method
    assert "was not run" in found["c", "a"].drop.method


def test_composition_edges():
    """A missing reverse leaves the drop; missing items are paired; unknown names are refused."""
    clean = np.array([1.0, 1.0, 1.0, NAN, 1.0])
    single = {"a": np.array([1, 0, 1, 1, 1]), "b": np.array([0, NAN, 1, 1, 1])}
    (pair,) = (
        p
        for p in composition(clean, single, {("a", "b"): np.zeros(5)})
        if (p.first, p.second) == ("a", "b")
    )
    assert (pair.drop.value, pair.drop.items, pair.interaction.items) == (1.0, 4, 3)
    assert pair.asymmetry.status == "not_identified"
    with pytest.raises(InvalidValue, match="no single 'c'"):
        composition(clean, single, {("a", "c"): np.zeros(5)})
    with pytest.raises(InvalidValue, match="a vector of 5 scores"):
        composition(clean, {"a": np.zeros(4)}, {})


def test_interaction_covers():
    """Two independent losses and one shared: 95 % of the intervals hold the interaction."""
    rng = np.random.default_rng(42)
    hits = 0
    for _ in range(300):
        clean = (rng.random(120) < 0.8).astype(float)
        a, b = (clean * (rng.random(120) < 0.9) for _ in range(2))
        both = a * b * (rng.random(120) < 0.95)
        truth = 0.8 * (0.9 + 0.9 - 1 - 0.81 * 0.95)
        found = composition(clean, {"a": a, "b": b}, {("a", "b"): both})[1].interaction
        hits += found.low <= truth <= found.high
    assert binomtest(hits, 300, 0.95).pvalue > 1e-3


def test_curve_by_hand():
    """Means 1, 1/2, 1/2 at doses 0, 1, 3: by scipy's regression and rank correlation, and numpy."""
    table = np.array([[1, 1, 0], [1, 0, 1.0]])
    found = intensity_curve([0, 1, 3], table, replications=100)
    line = scipy.stats.linregress([0, 1, 3], [1, 0.5, 0.5])
    assert found.slope.value == pytest.approx(line.slope)
    expected = scipy.stats.spearmanr([0, 1, 3], [1, 0.5, 0.5]).statistic
    assert found.spearman.value == pytest.approx(expected)
    assert found.auc.value == pytest.approx(trapezoid([1, 0.5, 0.5], [0, 1, 3]) / 3)
    assert (found.retained.value, found.largest_step.value) == (0.5, 0.5)
    assert found.steepest == (0.0, 1.0)
    shuffled = intensity_curve([3, 0, 1], table[:, [2, 0, 1]], replications=100)
    assert shuffled == found


def test_curve_intervals_are_those_of_one_number_an_item():
    """On real outcomes slope and auc have the t interval of each item's own slope and area."""
    table = languages()
    table = table[~np.isnan(table).any(axis=1)]
    doses = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    found = intensity_curve(doses, table, replications=400)
    slopes = table @ (doses - doses.mean()) / np.square(doses - doses.mean()).sum()
    areas = trapezoid(table, doses, axis=1) / 8.0
    for estimate, items in ((found.slope, slopes), (found.auc, areas)):
        t = scipy.stats.ttest_1samp(items, 0.0).confidence_interval()
        assert ends(estimate) == pytest.approx((t.low, t.high))
    retained = bootstrap(table, lambda rows: rows[:, 4].sum() / rows[:, 0].sum(), replications=400)
    assert ends(found.retained) == pytest.approx((retained.low, retained.high), abs=0.03)


def test_no_height_of_a_curve_lies_outside_what_a_score_can_be():
    """One right of ten: Student's t would go below 0, the interval of an accuracy does not."""
    table = np.zeros((10, 3))
    table[0] = 1.0
    table[1, 0] = 1.0
    found = intensity_curve([0, 1, 2], table, replications=50)
    t = scipy.stats.ttest_1samp(table[:, 1], 0.0).confidence_interval()
    assert t.low < 0.0
    own = [accuracy(column) for column in table.T]
    assert [ends(e) for e in found.means] == [ends(e) for e in own]
    for estimate in (*found.means, found.auc):
        low, high = ends(estimate)
        assert 0.0 <= low < estimate.value < high <= 1.0
    graded = intensity_curve([0, 1], [[0.0, 0.1], [0.9, 0.2], [0.0, 0.1]])
    assert all(ends(e)[0] >= 0.0 and ends(e)[1] <= 1.0 for e in graded.means)


def test_curve_edges():
    """Two levels have a slope only; equal levels are an error; a start at 0 retains nothing."""
    two = intensity_curve([0, 2], [[1, 0], [1, 1.0], [1, 1]])
    assert two.slope.value == pytest.approx(-1 / 6)
    for field in ("spearman", "auc", "retained", "largest_step"):
        assert getattr(two, field).status == "insufficient_data"
    assert two.steepest is None
    flat = intensity_curve([0, 1, 2], np.zeros((5, 3)), replications=50)
    assert flat.spearman.status == "undefined_zero_variance"
    assert flat.retained.status == "undefined_zero_denominator"
    assert (flat.slope.value, flat.auc.value) == (0.0, 0.0)
    with pytest.raises(InvalidValue, match="all different"):
        intensity_curve([1, 1, 2], np.zeros((5, 3)))
    with pytest.raises(InvalidValue, match="two or more"):
        intensity_curve([1], np.zeros((5, 1)))
    with pytest.raises(InvalidValue, match="items x 3 levels"):
        intensity_curve([1, 2, 3], np.zeros((5, 2)))
    lacking = np.array([[1, NAN, 0], [NAN, 1, 0], [1, 1, NAN]])
    apart = intensity_curve([0, 1, 2], lacking, replications=50)
    assert apart.retained.status == "insufficient_data"
    assert apart.slope.value == pytest.approx(-0.5)


def test_curve_covers():
    """Slope, auc and retained share of a falling probit curve: 95 % each."""
    model = ProbitModel(ability=0.8, effects=(0, 0.1, 0.2, 0.5), interaction=0.6)
    p = simulated_truth(model).accuracy
    truth = {
        "slope": np.polyfit([0, 1, 2, 4], p, 1)[0],
        "auc": trapezoid(p, [0, 1, 2, 4]) / 4,
        "retained": p[3] / p[0],
    }
    rng = np.random.default_rng(43)
    hits = dict.fromkeys(truth, 0)
    for seed in range(200):
        outcomes = simulate_outcomes(model, 150, seed=rng)
        found = intensity_curve([0, 1, 2, 4], outcomes, replications=300, seed=seed)
        for name, value in truth.items():
            low, high = ends(getattr(found, name))
            hits[name] += low <= value <= high
    for name, count in hits.items():
        assert binomtest(count, 200, 0.95).pvalue > 1e-3, name


def test_excess_by_hand():
    """4 of 8 change, 1 of 8 by itself: excess 3/8, Abbott 3/7; the interval is the paired one."""
    perturbed = [1, 1, 1, 1, 0, 0, 0, 0, NAN]
    repeated = [1, 0, 0, 0, 0, 0, 0, 0, 1]
    found = excess_change(perturbed, repeated)
    assert (found.rate.value, found.noise.value) == (0.5, 0.125)
    assert found.noise.value == noise_floor(np.array(repeated)[:8], np.zeros(8)).value
    assert found.abbott.value == pytest.approx(3 / 7)
    alone = paired_difference(perturbed, repeated)
    assert (found.excess.value, ends(found.excess)) == (
        0.375,
        (alone.interval.low, alone.interval.high),
    )
    assert (found.excess.items, found.excess.excluded) == (8, 1)
    always = excess_change([1, 0, 1], [1, 1, 1])
    assert (always.abbott.status, always.excess.value) == (
        "undefined_zero_denominator",
        pytest.approx(-1 / 3),
    )
    assert excess_change([NAN], [1.0]).rate.status == "insufficient_data"


def test_abbott_is_the_share_of_stable_items_that_change():
    """Noise 20 %, and a third of the rest is changed: 1/3 on average, covered 95 %."""
    rng = np.random.default_rng(44)
    hits, values = 0, []
    for _ in range(300):
        repeated = rng.random(200) < 0.2
        perturbed = (rng.random(200) < 0.2) | (rng.random(200) < 1 / 3)
        found = excess_change(perturbed, repeated).abbott
        values.append(found.value)
        hits += found.low <= 1 / 3 <= found.high
    assert abs(np.mean(values) - 1 / 3) < 4 * np.std(values) / np.sqrt(300) + 1 / 400
    assert binomtest(hits, 300, 0.95).pvalue > 1e-3


def test_failures_are_mcnemars():
    """Nine more fail, two fewer: 7 %, mid-p of (9, 2); a request never answered does not count."""
    before = [0.0] * 9 + [1.0] * 2 + [0.0] * 88 + [1.0, NAN]
    after = [1.0] * 9 + [0.0] * 2 + [0.0] * 88 + [1.0, 1.0]
    found = differential_failure(before, after)
    assert (found.value, found.items, found.excluded) == (pytest.approx(0.07), 100, 1)
    assert found.p_value == mcnemar(9, 2).mid_p
    with pytest.raises(InvalidValue, match="0 \\(read\\)"):
        differential_failure([0.5], [1.0])


def test_association_is_numpys():
    """Overall the correlation of all cells, within that of cells less their item's mean."""
    rng = np.random.default_rng(47)
    quality = rng.normal(size=(40, 4)) + rng.normal(size=(40, 1))
    scores = (quality + rng.normal(size=(40, 4)) > 0).astype(float)
    quality[3, 1] = NAN
    found = association(quality, scores, replications=200)
    seen = ~np.isnan(quality)
    assert found.overall.value == pytest.approx(np.corrcoef(quality[seen], scores[seen])[0, 1])
    x = quality - np.nanmean(quality, axis=1, keepdims=True)
    y = np.where(seen, scores, NAN)
    y = y - np.nanmean(y, axis=1, keepdims=True)
    assert found.within.value == pytest.approx(np.corrcoef(x[seen], y[seen])[0, 1])
    assert found.within.low <= found.within.value <= found.within.high
    steady = association(np.ones((5, 2)), np.ones((5, 2)))
    assert steady.overall.status == steady.within.status == "undefined_zero_variance"
    assert association([[1, 2]], [[0, 1]]).overall.status == "insufficient_data"
    with pytest.raises(InvalidValue, match="two tables"):
        association([1, 2], [1, 2])


def test_association_covers():
    """A correlation of 0.5 within items and 0.8 in all: 95 % each."""
    rng = np.random.default_rng(48)
    hits = {"overall": 0, "within": 0}
    for seed in range(150):
        level = rng.normal(size=(100, 1)) * np.sqrt(1.5)
        x = rng.normal(size=(100, 5))
        y = 0.5 * x + np.sqrt(0.75) * rng.normal(size=(100, 5))
        found = association(x + level, y + level, replications=300, seed=seed)
        hits["overall"] += found.overall.low <= (0.5 + 1.5) / 2.5 <= found.overall.high
        hits["within"] += found.within.low <= 0.5 <= found.within.high
    for name, count in hits.items():
        assert binomtest(count, 150, 0.95).pvalue > 1e-3, (name, count)


def test_corrections_by_hand():
    """The labelled mean, moved by the judge's difference between the others and the labelled."""
    human = [1, 1, 1, 1, 0, 0, 0, 0] + [NAN] * 12
    judged = [1, 1, 1, 0, 1, 1, 0, 0] + [1] * 7 + [0] * 5
    n, more = 8, 12
    f = np.array(judged, dtype=float)
    weight = np.cov(human[:8], f[:8])[0, 1] / f.var(ddof=1) / (1 + n / more)
    expected = 0.5 + weight * (f[8:].mean() - f[:8].mean())
    found = corrected_rate(judged, human)
    assert found.value == pytest.approx(expected)
    assert (found.items, found.excluded) == (20, 0)


def test_correction_edges():
    """No labels, all labelled, a judge that never varies: a rule for each."""
    assert corrected_rate([1, 0], [NAN, NAN]).status == "insufficient_data"
    everyone = corrected_rate([1, 0, 1, 1], [1, 0, 0, 1])
    assert everyone.value == 0.5
    steady = corrected_rate([1, 1, 1, 1, 1], [1, 0, 0, NAN, NAN])
    assert steady.value == pytest.approx(1 / 3)
    with pytest.raises(InvalidValue, match="judged, human"):
        corrected_rate([1], [1, 0])


def test_correction_is_unbiased_and_covers():
    """A judge that is wrong one time in six: the correction finds 30 %, surer than the labels."""
    rng = np.random.default_rng(49)
    hits, values, labels = 0, [], []
    for _ in range(150):
        truth = rng.random(600) < 0.3
        judged = np.where(rng.random(600) < 1 / 6, ~truth, truth).astype(float)
        human = np.where(np.arange(600) < 150, truth, NAN)
        labels.append(np.nanmean(human))
        found = corrected_rate(judged, human)
        values.append(found.value)
        hits += found.low <= 0.3 <= found.high
    assert binomtest(hits, 150, 0.95).pvalue > 1e-3
    assert abs(np.mean(values) - 0.3) < 4 * np.std(values) / np.sqrt(150) + 0.002
    assert np.std(values) < np.std(labels)
