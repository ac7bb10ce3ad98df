"""The mean over tasks: by hand, at its edges, against other programs, and its coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t, ttest_1samp
from statsmodels.stats.proportion import confint_proportions_2indep

from falter.measures.averages import mean_over_tasks
from falter.measures.drops import accuracy, accuracy_drop
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.intervals import wilson_interval

NAN = float("nan")
SIZES = (60, 150, 400, 40, 250, 90, 800)
REPLICATIONS = 120


def part(value, low, high, **more):
    return Estimate(measure="drop", value=value, low=low, high=high, items=10, **more)


def ends(estimate):
    return estimate.low, estimate.high


def test_by_hand():
    """Means 0.2 and 0; down √(0.1² + 0.3²)/2, up √(0.2² + 0.1²)/2, from 0.1."""
    found = mean_over_tasks([part(0.2, 0.1, 0.4, conditions=2), part(0.0, -0.3, 0.1)])
    assert found.value == pytest.approx(0.1)
    assert ends(found) == pytest.approx((0.1 - 0.1**0.5 / 2, 0.1 + 0.05**0.5 / 2))
    assert (found.measure, found.status) == ("mean_over_tasks", "ok")
    assert (found.items, found.conditions, found.excluded) == (20, 2, 0)
    assert found.p_value is None and found.level == 0.95 and "MOVER" in found.method


def test_every_task_counts_the_same():
    """However many items it has, in whatever order."""
    small = accuracy_drop([1.0] * 10, [0.0] * 5 + [1.0] * 5)
    large = accuracy_drop([1.0] * 1000, [1.0] * 1000)
    found, turned = mean_over_tasks([small, large]), mean_over_tasks([large, small])
    assert found == turned
    assert found.value == pytest.approx(0.25)
    assert found.items == 1010


def test_no_task():
    found = mean_over_tasks([])
    assert (found.value, found.status, ends(found)) == (None, "insufficient_data", (None, None))
    assert (found.items, found.conditions, found.excluded) == (0, 0, 0)


@pytest.mark.parametrize(
    "one", [accuracy_drop([1, 1, 0, 1], [0, 1, 0, 1], level=0.9), accuracy_drop([1], [NAN])]
)
def test_one_task_is_its_own_mean(one):
    """Also with another level, and where it has no value."""
    assert mean_over_tasks([one]) is one


def test_a_task_without_a_value_is_left_out_and_counted():
    """What stays has its own value and ends, but is not said to be that task's own estimate."""
    drop = accuracy_drop([1, 1, 0, 1], [0, 1, 0, 1])
    nothing = accuracy_drop([1, NAN], [NAN, 1])
    found = mean_over_tasks([nothing, drop, nothing])
    assert (found.value, found.items, found.excluded) == (drop.value, 4, 2)
    assert ends(found) == pytest.approx(ends(drop))
    gone = mean_over_tasks([nothing, nothing])
    assert (gone.value, gone.status, gone.excluded) == (None, "insufficient_data", 2)


def test_a_task_without_an_interval_leaves_the_mean_without_one():
    """The value is known all the same; and a task with one end is one without an interval."""
    found = mean_over_tasks([part(0.25, None, None), part(0.35, 0.3, 0.5)])
    assert found.value == pytest.approx(0.3)
    assert (found.status, ends(found)) == ("ok", (None, None))
    half = mean_over_tasks([part(0.1, None, 0.2), part(0.2, 0.1, 0.3)])
    assert (half.value, ends(half)) == (pytest.approx(0.15), (None, None))


def test_levels_must_agree():
    parts = [part(0.1, 0.0, 0.2), part(0.1, 0.0, 0.2, level=0.9)]
    with pytest.raises(InvalidValue, match=r"estimates is \[0.9, 0.95\]; expected intervals of"):
        mean_over_tasks(parts)
    found = mean_over_tasks([replace(p, level=0.9) for p in parts])
    assert found.level == 0.9


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_it_is_exact_where_the_parts_are_normal(level):
    """SciPy's interval of a mean of independent normal estimates with known errors."""
    rng = np.random.default_rng(1)
    values, errors = rng.normal(size=5), rng.uniform(0.1, 2.0, size=5)
    parts = [
        part(v, *norm.interval(level, v, e), level=level)
        for v, e in zip(values, errors, strict=True)
    ]
    expected = norm.interval(level, values.mean(), np.sqrt((errors**2).sum()) / 5)
    assert ends(mean_over_tasks(parts)) == pytest.approx(expected)


def test_with_students_intervals_it_is_the_t_interval_of_the_mean():
    """Parts of one size: the same quantile, on the root of the summed squared errors."""
    rng = np.random.default_rng(2)
    samples = rng.normal(size=(3, 12)) * np.array([[1.0], [2.0], [0.5]])
    drops = [accuracy_drop(sample, np.zeros(12)) for sample in samples]
    for drop, sample in zip(drops, samples, strict=True):
        known = ttest_1samp(sample, 0.0).confidence_interval()
        assert ends(drop) == pytest.approx((known.low, known.high))
    error = np.sqrt((samples.var(axis=1, ddof=1) / 12).sum()) / 3
    expected = t.interval(0.95, 11, samples.mean(), error)
    assert ends(mean_over_tasks(drops)) == pytest.approx(expected)


@pytest.mark.parametrize(("first", "second"), [((56, 70), (48, 80)), ((9, 10), (0, 25))])
def test_skewed_parts_give_newcombes_interval(first, second):
    """p − q from Wilson's ends is the method of the paper's own example; statsmodels has it."""
    (a, n), (b, m) = first, second
    p, q = wilson_interval(a, n), wilson_interval(b, m)
    found = mean_over_tasks([part(a / n, p.low, p.high), part(-b / m, -q.high, -q.low)])
    expected = confint_proportions_2indep(a, n, b, m, method="newcomb", compare="diff")
    assert [2 * end for end in ends(found)] == pytest.approx(expected)


def test_newcombes_printed_example():
    """56 of 70 against 48 of 80: 0.0524 to 0.3339 (Newcombe 1998, Table II, method 10)."""
    p, q = wilson_interval(56, 70), wilson_interval(48, 80)
    found = mean_over_tasks([part(0.8, p.low, p.high), part(-0.6, -q.high, -q.low)])
    assert [2 * end for end in ends(found)] == pytest.approx((0.0524, 0.3339), abs=5e-5)


def outcomes(rng, items, fell, rose):
    """Scores of items that fall with one probability and rise with another."""
    drawn = rng.random(items)
    baseline = np.where(drawn < fell, 1.0, np.where(drawn < fell + rose, 0.0, 1.0))
    perturbed = np.where(drawn < fell, 0.0, 1.0)
    return baseline, perturbed


CHANGES = {
    "common": [(0.2, 0.1)] * 7,
    "rare": [(0.02, 0.005)] * 7,
    "rare, one way": [(0.015, 0.0)] * 7,
    "mixed": [
        (0.25, 0.1),
        (0.01, 0),
        (0.05, 0.05),
        (0.02, 0),
        (0.3, 0.05),
        (0, 0.01),
        (4e-3, 1e-3),
    ],
}


@pytest.mark.parametrize("tasks", [2, 4, 7])
@pytest.mark.parametrize("kind", CHANGES)
def test_the_interval_covers(kind, tasks):
    """95 % or more, each side missed by 2.5 % or less; the parts are wide where changes are rare.

    Where they are common, the interval is not wider than it has to be.
    """
    rng = np.random.default_rng(21)
    changes = CHANGES[kind][:tasks]
    truth = np.mean([fell - rose for fell, rose in changes])
    below = above = 0
    for _ in range(REPLICATIONS):
        found = mean_over_tasks(
            [
                accuracy_drop(*outcomes(rng, items, fell, rose))
                for items, (fell, rose) in zip(SIZES, changes, strict=False)
            ]
        )
        below += truth > found.high
        above += truth < found.low
    missed = int(below + above)
    assert binomtest(missed, REPLICATIONS, 0.05, alternative="greater").pvalue > 1e-3
    for side in (int(below), int(above)):
        assert binomtest(side, REPLICATIONS, 0.025, alternative="greater").pvalue > 1e-3
    if kind == "common":
        assert binomtest(missed, REPLICATIONS, 0.03, alternative="less").pvalue > 1e-3


def test_the_mean_of_skewed_accuracies_covers():
    """Four rates near 1, each from less than a hundred items."""
    rng = np.random.default_rng(22)
    rates, sizes = (0.97, 0.9, 0.99, 0.85), (40, 60, 80, 50)
    missed = 0
    for _ in range(REPLICATIONS):
        scores = [rng.random(n) < rate for n, rate in zip(sizes, rates, strict=True)]
        found = mean_over_tasks([accuracy(s.astype(float)) for s in scores])
        missed += not found.low <= np.mean(rates) <= found.high
    assert binomtest(missed, REPLICATIONS, 0.05, alternative="greater").pvalue > 1e-3
