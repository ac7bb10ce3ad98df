"""Rankings of models: agreement, how often they change and would anyway, what survives."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtr
from scipy.stats import binomtest, rankdata, spearmanr

from falter.measures.rankings import (
    average_ranks,
    rank_agreement,
    rank_correlation,
    rank_sets,
    ranking_changed,
    ranking_survival,
)
from falter.records.errors import InvalidValue
from falter.stats.agreement import spearman
from falter.stats.intervals import clopper_pearson
from falter.stats.paired import mcnemar

NAN = float("nan")
DATA = Path(__file__).parents[1] / "data"


def languages():
    """Real outcomes: 250 questions x six models x five languages."""
    with (DATA / "truthfulqa_multi_models.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[[float(bit) for bit in cell] for cell in row[1:]] for row in rows])


def exact(ranks, items=10):
    """Items x models x conditions whose accuracies are the given whole numbers over `items`."""
    ranks = np.asarray(ranks)
    return (np.arange(items)[:, None, None] < ranks[None]).astype(float)


def drawn(rng, items, ability, drop, difficulty=1.0, own=0.5):
    """Outcomes of a probit model, items x models x 2, and the true accuracies."""
    latent = difficulty * rng.normal(size=(items, 1, 1)) + own * rng.normal(
        size=(items, len(ability), 2)
    )
    level = np.stack([ability, np.asarray(ability) - drop], axis=-1)
    return (latent + level > 0).astype(float), ndtr(level / np.hypot(difficulty, own))


@settings(max_examples=60, deadline=None)
@given(
    arrays(float, (4, 6), elements=st.integers(0, 4)),
    arrays(float, (4, 6), elements=st.integers(0, 4)),
)
def test_ranks_and_coefficients_are_scipys(first, second):
    """Average ranks and rho row by row, with ties; None where a row is constant."""
    assert np.array_equal(average_ranks(first), rankdata(first, axis=1))
    rho = rank_correlation(first, second)
    for row in range(4):
        x, y = first[row], second[row]
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            assert np.isnan(rho[row])
            continue
        assert rho[row] == pytest.approx(spearmanr(x, y).statistic)
        assert rho[row] == pytest.approx(spearman(x, y).value)


def test_agreement_by_hand():
    """Ranks 1234 against 1243 and 2134 against themselves: rho 0.8 and 1, mean 0.9."""
    tasks = {
        "a": exact([[1, 1], [2, 2], [3, 4], [4, 3]]),
        "b": exact([[2, 2], [1, 1], [3, 3], [4, 4]]),
        "tied": exact([[3, 1], [3, 2], [3, 3], [3, 4]]),
    }
    found = rank_agreement(tasks, replications=200)
    (agreement,) = found.agreement
    assert agreement.value == pytest.approx(0.9)
    assert (agreement.items, agreement.excluded, found.conditions) == (30, 1, (1,))
    alone = rank_agreement({"tied": tasks["tied"]}, replications=200)
    assert (alone.agreement[0].value, alone.noise[0].value) == (None, None)
    three = rank_agreement({"a": tasks["a"][:, :3]}, replications=200)
    assert three.agreement[0].status == three.noise[0].status == "insufficient_data"
    assert three.agreement[0].method == "none: fewer than four models"


def test_agreement_of_real_outcomes_is_scipys():
    """Every language against English: the mean over three tasks of scipy's rho."""
    table = languages()
    tasks = {"a": table[:80], "b": table[80:150], "c": table[150:]}
    found = rank_agreement(tasks, replications=300)
    for place, language in enumerate(found.conditions):
        rhos = [
            spearmanr(cells.mean(axis=0)[:, 0], cells.mean(axis=0)[:, language]).statistic
            for cells in tasks.values()
        ]
        assert found.agreement[place].value == pytest.approx(np.mean(rhos))
        assert found.agreement[place].low <= np.mean(rhos) <= found.agreement[place].high <= 1.0


def test_missing_cells():
    """Accuracies skip what is missing."""
    table = languages()
    gone = table.copy()
    gone[:20, 0, 1] = NAN
    found = rank_agreement({"a": gone}, replications=100)
    assert found.conditions == (1, 2, 3, 4)
    scores = table.mean(axis=0)
    scores[0, 1] = table[20:, 0, 1].mean()
    expected = [spearmanr(scores[:, 0], scores[:, j]).statistic for j in range(1, 5)]
    assert [a.value for a in found.agreement] == pytest.approx(expected)


def test_agreement_interval_holds_the_truth():
    """Models well apart and close together: at least 90 % of the intervals hold the true rho."""
    rng = np.random.default_rng(31)
    for ability, drop, floor in (
        ([0.0, 0.2, 0.4, 0.8, 1.2, 1.6], [0.9, 0.0, 0.1, 0.5, 0.0, 0.9], 0.95),
        ([0.3, 0.32, 0.34, 0.36, 0.38, 0.4], [0.0, 0.05, 0.0, 0.05, 0.0, 0.05], 0.9),
    ):
        hits = 0
        for seed in range(50):
            outcomes, truth = drawn(rng, 200, ability, drop)
            rho = spearmanr(truth[:, 0], truth[:, 1]).statistic
            found = rank_agreement({"t": outcomes}, replications=200, seed=seed).agreement[0]
            hits += found.low <= rho + 1e-9 and rho - 1e-9 <= found.high
        assert binomtest(hits, 50, floor, alternative="less").pvalue > 1e-3


def test_swapping_gives_a_level_test():
    """A condition that is the baseline asked again: p below 0.1 in a tenth of the cases at most."""
    rng = np.random.default_rng(32)
    low = 0
    for seed in range(150):
        outcomes, _ = drawn(rng, 60, [0.1, 0.2, 0.3, 0.4], np.zeros(4))
        noise = rank_agreement({"t": outcomes}, replications=99, seed=seed).noise[0]
        low += noise.p_value is not None and noise.p_value <= 0.1
    assert binomtest(low, 150, 0.1, alternative="greater").pvalue > 1e-3


def test_changed_by_hand():
    """Of four cases two change the average ranks; ties count as such; the repeat is no case."""
    table = exact([[1, 1, 1, 2, 1], [2, 3, 3, 2, 2], [3, 2, 4, 2, 3]])
    found = ranking_changed({"a": table}, repeats=(4,), replications=200)
    assert (found.share.value, found.share.conditions) == (pytest.approx(2 / 3), 3)
    assert found.null_repeat.value == 0.0
    assert (found.share.low, found.share.method) == (None, "none: exact for these items")
    none = ranking_changed({"a": table}, replications=200)
    assert none.null_repeat.status == "insufficient_data"
    alone = ranking_changed({"a": table[:, :1]}, replications=200)
    assert alone.share.status == alone.null_items.status == "insufficient_data"


def test_changed_nulls_are_what_a_loop_gives():
    """Item and swap nulls agree with plain loops over resamples of real outcomes."""
    table = languages()[:120]
    found = ranking_changed({"a": table}, replications=600)
    rng = np.random.default_rng(7)
    own = rankdata(table[:, :, 0].mean(axis=0).round(12))
    items = swaps = 0.0
    for _ in range(600):
        again = table[rng.integers(120, size=120), :, 0].mean(axis=0).round(12)
        items += not np.array_equal(rankdata(again), own)
        flip = rng.random((120, 1)) < 0.5
        for j in range(1, 5):
            first = np.where(flip, table[:, :, j], table[:, :, 0]).mean(axis=0).round(12)
            second = np.where(flip, table[:, :, 0], table[:, :, j]).mean(axis=0).round(12)
            swaps += (not np.array_equal(rankdata(first), rankdata(second))) / 4
    assert found.null_items.value == pytest.approx(items / 600, abs=0.08)
    assert found.null_swap.value == pytest.approx(swaps / 600, abs=0.08)


def test_most_changes_of_close_models_are_noise():
    """Six equal models: the share is as high as its null; six apart that drop alike: low."""
    rng = np.random.default_rng(33)
    shares, nulls = [], []
    for seed in range(20):
        outcomes, _ = drawn(rng, 300, np.full(6, 0.4), np.zeros(6))
        found = ranking_changed({"t": outcomes}, replications=50, seed=seed)
        shares.append(found.share.value)
        nulls.append(found.null_swap.value)
    assert np.mean(shares) > 0.8
    assert np.mean(nulls) == pytest.approx(np.mean(shares), abs=0.15)
    apart, _ = drawn(rng, 400, np.arange(6) * 0.5 - 1, np.full(6, 0.1))
    assert ranking_changed({"t": apart}, replications=50).share.value == 0.0


def test_survival_by_hand():
    """A beats B at the baseline and in two of four conditions, one tie: 1/2, Clopper-Pearson's."""
    table = exact([[5, 6, 6, 3, 2], [3, 5, 3, 3, 3], [3, 1, 1, 1, 1]])
    found = ranking_survival(table, replications=100)
    first, second, third = found.pairs
    expected = clopper_pearson(2, 4)
    assert (first.better, first.worse, first.tied) == (0, 1, 1)
    assert (first.survival.value, first.survival.low) == (0.5, expected.low)
    assert first.survival.high == expected.high
    assert (second.survival.value, second.survival.conditions) == (1.0, 4)
    assert third.survival.status == "not_identified"
    nothing = ranking_survival(table[:, :, :1], replications=100).pairs[0].survival
    assert nothing.status == "insufficient_data"


def test_survival_of_real_rankings():
    """Six models in five languages, by a plain loop over the pairs."""
    table = languages()
    scores = table.mean(axis=0).round(12)
    for pair in ranking_survival(table, replications=200).pairs:
        a, b = pair.better, pair.worse
        assert scores[a, 0] >= scores[b, 0]
        if scores[a, 0] > scores[b, 0]:
            kept = sum(scores[a, j] > scores[b, j] for j in range(1, 5))
            assert pair.survival.value == kept / 4


def test_survival_covers_random_perturbations():
    """Perturbations drawn from many, each of which reverses a pair one time in five: 95 %."""
    rng = np.random.default_rng(35)
    hits = 0
    for _ in range(300):
        # Ten items; the second model is ahead of the first under a fifth of the perturbations.
        ahead = rng.random(12) < 0.2
        table = exact([[6] * 13, [5, *np.where(ahead, 7, 5)]])
        found = ranking_survival(table, replications=2).pairs[0].survival
        hits += found.low <= 0.8 <= found.high
    assert binomtest(hits, 300, 0.95, alternative="less").pvalue > 1e-3


def test_rank_sets_by_hand():
    """Two models far apart, two alike: 1, then 2 to 3 twice, then 4; nothing known: all ranks."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(400, 1)) + rng.normal(size=(400, 4)) + np.array([3, 0, 0.01, -3])
    found = [(r.best, r.worst) for r in rank_sets(scores, replications=400)]
    assert found == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert [(r.best, r.worst) for r in rank_sets(scores[:1])] == [(1, 4)] * 4
    steady = np.column_stack([np.ones(30), np.zeros(30)])
    assert [(r.best, r.worst) for r in rank_sets(steady)] == [(1, 1), (2, 2)]
    assert [(r.best, r.worst) for r in rank_sets(steady[:4])] == [(1, 2)] * 2
    gone = scores.copy()
    gone[0, 0] = NAN
    assert rank_sets(gone, replications=400) == rank_sets(scores[1:], replications=400)


def test_two_models_are_told_apart_as_by_mcnemar():
    """With one pair the test is nearly McNemar's: the same verdict on either side of 5 %."""
    for b, c in ((40, 20), (33, 27)):
        first = np.array([1.0] * b + [0.0] * c + [1.0] * 140)
        second = np.array([0.0] * b + [1.0] * c + [1.0] * 140)
        sets = rank_sets(np.column_stack([first, second]))
        told = (sets[0].best, sets[0].worst) == (1, 1)
        assert told == (mcnemar(b, c).mid_p < 0.05)


def test_rank_sets_hold_all_true_ranks():
    """Five models, two of them equal: 95 % of the time every set holds its true rank."""
    rng = np.random.default_rng(34)
    ability = [0.0, 0.15, 0.3, 0.3, 0.6]
    hits = 0
    for seed in range(200):
        outcomes, _ = drawn(rng, 150, ability, np.zeros(5))
        found = rank_sets(outcomes[:, :, 0], replications=200, seed=seed)
        spans = [(r.best, r.worst) for r in found]
        truth = [(5, 5), (4, 4), (2, 3), (2, 3), (1, 1)]
        hits += all(lo <= t[0] and t[1] <= hi for (lo, hi), t in zip(spans, truth, strict=True))
    assert binomtest(hits, 200, 0.95, alternative="less").pvalue > 1e-3


def test_wrong_arguments_are_named():
    """Shapes and names that cannot be are refused."""
    table = languages()[:10]
    with pytest.raises(InvalidValue, match="items x models x conditions"):
        rank_agreement({"a": table[:, :, 0]})
    with pytest.raises(InvalidValue, match="outcomes is"):
        rank_agreement({})
    with pytest.raises(InvalidValue, match="same models and conditions"):
        ranking_changed({"a": table, "b": table[:, :, :3]})
    with pytest.raises(InvalidValue, match="replications is 1"):
        rank_agreement({"a": table}, replications=1)
    with pytest.raises(InvalidValue, match="scores is"):
        rank_sets(table[:, 0, 0])
