"""Some cells of a table: averages over all samples are the truth, and intervals cover."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from falter.core.errors import InvalidValue
from falter.measures import variance_components
from falter.stats import (
    ProbitModel,
    agresti_coull,
    balanced_mask,
    clopper_pearson,
    masked_components,
    masked_drop,
    poststratified_drop,
    simulate_outcomes,
    simulated_truth,
    tango,
)
from falter.stats._masked_rows import MaskedRows

NAN = float("nan")
RIGHT = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], dtype=float)
REAL = np.array([[0.1, 2.0, -1.0, 0.4], [0.0, 0.3, 0.3, 5.0], [1.0, -2.0, 0.7, 0.6]])
BRITTLE = ProbitModel(ability=0.3, effects=(0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6), interaction=0.8)
ROBUST = ProbitModel(ability=1.3, effects=(0, 0, 0, 0, 0.1, 0.1, 0.2, 0.3), interaction=0.2)
RUNS = 200


def truths(table):
    """The plug-in components of the whole table, by numpy."""
    return {
        "mean": table.mean(),
        "pert": table.var(axis=1).mean(),
        "total": table.var(),
        "brittleness": table.var(axis=1).mean() / table.var(),
    }


def asked(table, rows, sets, baseline=None):
    cells = np.full(table.shape, NAN)
    for row, columns in zip(rows, sets, strict=True):
        chosen = list(columns) if baseline is None else [baseline, *columns]
        cells[row, chosen] = table[row, chosen]
    return cells


@pytest.mark.parametrize("table", [RIGHT, REAL], ids=["0/1", "real"])
@pytest.mark.parametrize("items", [2, 3])
@pytest.mark.parametrize("baseline", [None, 0])
def test_the_average_over_all_samples_is_the_truth(table, items, baseline):
    """Over every choice of items and of 2 conditions of each, three components are unbiased."""
    free = [j for j in range(4) if j != baseline]
    pairs = list(itertools.combinations(free, 2))
    found = {"mean": [], "pert": [], "total": [], "drop": []}
    for rows in itertools.combinations(range(3), items):
        for sets in itertools.product(pairs, repeat=items):
            cells = asked(table, rows, sets, baseline)
            result = masked_components(cells, baseline=baseline, target="finite")
            for name in ("mean", "pert", "total"):
                found[name].append(getattr(result, name).value)
            if baseline is not None:
                found["drop"].append(masked_drop(cells, baseline, target="finite").value)
    truth = truths(table) | {"drop": (table[:, [0]] - table[:, 1:]).mean()}
    for name, values in found.items():
        if values:
            assert np.mean(values) == pytest.approx(truth[name], abs=1e-12), name


@pytest.mark.parametrize("row", [(1, 0, 1, 1, 0, 0), (0, 0, 0, 0, 1, 0), (1, 1, 1, 1, 1, 1)])
@pytest.mark.parametrize("baseline", [None, 0, 1])
def test_the_masks_variance_is_that_over_all_masks(row, baseline):
    """4 of 6 cells (and a baseline): the mean over all 15 sets is their own variance, exactly."""
    cells = np.array([row] * 15, dtype=float)
    for place, chosen in enumerate(itertools.combinations(range(6), 4)):
        cells[place, [j for j in range(6) if j not in chosen]] = NAN
    if baseline is not None:
        cells = np.column_stack([np.full(15, float(baseline)), cells])
    first = None if baseline is None else 0
    rows = MaskedRows.read(cells, first, None, least=2, target="finite", level=0.95)
    for weights in ((0.0, 0.0, 1.0), (-0.7, 0.9, 4.0)):
        values = weights[0] * rows.square + weights[1] * rows.mean + weights[2] * rows.pert
        assert rows.quadratic_mask(*weights) == pytest.approx(np.var(values), abs=1e-12)
    share = rows.width / rows.conditions
    assert rows.linear_mask(0.0, share) == pytest.approx(np.var(rows.mean), abs=1e-12)


def test_by_hand():
    """2 of 3 right and 1 of 3 right in 4 conditions: pert 3/4 x 1/3 each, mean 1/2."""
    cells = [[1, 1, 0, NAN], [NAN, 0, 1, 0], [NAN] * 4, [1, NAN, NAN, NAN]]
    found = masked_components(cells)
    assert found.pert.value == pytest.approx(0.75 / 3)
    assert (found.mean.value, found.mean.items, found.mean.excluded) == (0.5, 2, 1)
    # p(1 - p) + s^2/n, with s^2 of 2/3 and 1/3.
    assert found.total.value == pytest.approx(0.25 + (1 / 36 + 1 / 36) / 2)
    assert found.brittleness.value == pytest.approx(0.25 / (0.25 + 1 / 36))
    drop = masked_drop([[1, 1, 0, NAN], [0, 0, 1, 0], [NAN, 0, 1, 0], [1, NAN, NAN, NAN]], 0)
    assert (drop.value, drop.items, drop.excluded) == (pytest.approx((1 / 2 - 1 / 3) / 2), 2, 2)


def test_a_complete_table_is_the_plug_in():
    """Every cell: finite is exact, super-population has the plug-in values and their widths."""
    table = simulate_outcomes(BRITTLE, 300, seed=1)
    finite = masked_components(table, target="finite")
    for name, value in truths(table).items():
        found = getattr(finite, name)
        assert found.value == pytest.approx(value)
        assert (found.interval.low, found.interval.high) == (found.value, found.value)
        assert found.standard_error == 0.0
    wide, theirs = masked_components(table), variance_components(table)
    for name in ("pert", "brittleness"):
        ours, jackknifed = getattr(wide, name), getattr(theirs, name)
        assert ours.value == pytest.approx(jackknifed.value, rel=0.01)
        width = jackknifed.high - jackknifed.low
        assert ours.interval.high - ours.interval.low == pytest.approx(width, rel=0.05)
    drops = (table[:, :1] - table[:, 1:]).mean(axis=1)
    drop = masked_drop(table, 0)
    low, high = ttest_1samp(drops, 0).confidence_interval()
    assert (drop.interval.low, drop.interval.high) == pytest.approx((low, high), abs=0.003)
    with_baseline = masked_components(table, baseline=3, target="finite")
    assert with_baseline.pert.value == pytest.approx(finite.pert.value)


def test_the_centre_is_the_jackknifes():
    """On the log odds, a skewed complete table has the jackknife's bias-corrected middle."""
    model = ProbitModel(ability=1.6, effects=(0,) * 6, interaction=0.5)
    for seed in range(4):
        table = simulate_outcomes(model, 400, seed=seed)
        ours = masked_components(table).brittleness
        theirs = variance_components(table).brittleness
        ends = (ours.interval.low, ours.interval.high), (theirs.low, theirs.high)
        middles = [sum(math.log(x / (1 - x)) for x in pair) / 2 for pair in ends]
        assert middles[0] == pytest.approx(middles[1], abs=0.0015)
        assert middles[0] < math.log(ours.value / (1 - ours.value)) - 0.004


def test_a_finite_drop_is_drawn_in():
    """200 of 300 items: the ends come nearer by what the standard error loses."""
    table = simulate_outcomes(BRITTLE, 300, seed=25)
    cells = np.where(balanced_mask([str(i) for i in range(300)], 8, 4, baseline=0), table, NAN)
    cells[200:] = NAN
    wide, finite = masked_drop(cells, 0), masked_drop(cells, 0, target="finite")
    ratio = finite.standard_error / wide.standard_error
    assert 0.4 < ratio < 0.9
    for end in ("low", "high"):
        reach = [getattr(e.interval, end) - e.value for e in (finite, wide)]
        assert reach[0] == pytest.approx(ratio * reach[1])


def test_too_little():
    """Too few conditions, cells or items, nothing that varies: None and the reason."""
    for cells, baseline, status in (
        ([[1.0], [0.0]], None, "not_identified"),
        ([[1.0, NAN, NAN], [NAN, 0.0, NAN]], None, "not_identified"),
        ([[1.0, 0.0, NAN], [1.0, NAN, 0.0]], 0, "not_identified"),
        ([[1.0, 0.0, NAN]], None, "insufficient_data"),
        ([[NAN, NAN]], None, "insufficient_data"),
    ):
        found = masked_components(cells, baseline=baseline)
        for part in (found.mean, found.pert, found.total, found.brittleness):
            assert (part.value, part.status, part.interval.low) == (None, status, None)
    same = masked_components([[1.0, 1.0, NAN]] * 30)
    assert same.brittleness.status == "undefined_zero_variance"
    assert (same.pert.value, same.total.value) == (0.0, 0.0)
    limit = clopper_pearson(0, 30).high / 3
    assert same.pert.interval.high == pytest.approx(limit)
    assert same.mean.interval.low == pytest.approx(agresti_coull(30, 30).low)
    none = masked_drop([[1.0, NAN, NAN]] * 3, 0)
    assert (none.value, none.status, none.excluded) == (None, "not_identified", 3)
    for wrong, name in (
        ({"outcomes": [1.0]}, "outcomes"),
        ({"outcomes": [[math.inf, 1.0]]}, "outcomes"),
        ({"baseline": 2}, "baseline"),
        ({"population": 1}, "population"),
        ({"target": "rows"}, "target"),
        ({"level": 0.0}, "level"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            masked_components(**({"outcomes": [[1.0, 0.0], [0.0, 0.0]]} | wrong))


def test_one_condition_is_the_paired_drop():
    """With one condition beside the baseline the drop has Tango's interval on b and c."""
    pairs = [[1, 0]] * 12 + [[0, 1]] * 3 + [[1, 1]] * 35
    found = masked_drop(np.array(pairs, dtype=float), 0)
    theirs = tango(12, 3, 50)
    assert found.value == pytest.approx(9 / 50)
    assert (found.interval.low, found.interval.high) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize(
    ("model", "per_item", "baseline", "target"),
    [
        (BRITTLE, 4, None, "finite"),
        (BRITTLE, 3, None, "super-population"),
        (BRITTLE, 5, 0, "finite"),
        (ROBUST, 4, None, "finite"),
        (ROBUST, 3, 0, "super-population"),
    ],
)
def test_masks_cover_and_are_not_biased(model, per_item, baseline, target):
    """Balanced masks on 200 items: finite from 300, or new ones each time."""
    rng, keys = np.random.default_rng(20), [str(i) for i in range(200)]
    table = simulate_outcomes(model, 300, seed=21)
    exact = simulated_truth(model)
    truth = truths(table) | {"drop": (table[:, :1] - table[:, 1:]).mean()}
    if target != "finite":
        plugin = {name: exact.plugin[name] for name in ("pert", "total", "brittleness")}
        truth = plugin | {"mean": exact.accuracy.mean(), "drop": exact.drops.mean()}
    results = {name: [] for name in truth}
    for seed in range(RUNS):
        if target != "finite":
            table = simulate_outcomes(model, 300, seed=rng)
        mask = balanced_mask(keys, 8, per_item, seed=seed, baseline=baseline)
        rows = rng.choice(300, 200, replace=False)
        cells = np.full(table.shape, NAN)
        cells[rows] = np.where(mask, table[rows], NAN)
        found = masked_components(cells, baseline=baseline, target=target)
        for name in ("mean", "pert", "total", "brittleness"):
            results[name].append(getattr(found, name))
        if baseline is not None:
            results["drop"].append(masked_drop(cells, baseline, target=target))
    for name, kept in results.items():
        if not kept:
            continue
        hits = sum(truth[name] in e.interval for e in kept)
        # m(1 - m) is flat at 1/2, where its interval is too wide.
        side = "less" if name in ("total", "drop") else "two-sided"
        assert binomtest(hits, RUNS, 0.95, alternative=side).pvalue > 1e-3, (name, hits)
        values = np.array([e.value for e in kept])
        known = 1.5 * truth[name] / 200 if name == "brittleness" else 0.0
        error = values.std(ddof=1) / math.sqrt(RUNS)
        assert abs(values.mean() - truth[name]) < 4 * error + known, name


def test_three_cells_an_item_are_too_wide_and_never_too_narrow():
    """Fewer than four random cells do not show the mask's share: coverage is above 95 %."""
    table, keys = simulate_outcomes(ROBUST, 300, seed=22), [str(i) for i in range(300)]
    truth, hits = truths(table)["brittleness"], 0
    for seed in range(RUNS):
        mask = balanced_mask(keys, 8, 3, seed=seed)
        found = masked_components(np.where(mask, table, NAN), target="finite").brittleness
        hits += truth in found.interval
    assert hits >= 0.97 * RUNS


def test_poststratified_average_over_all_samples():
    """Whatever number of each stratum was asked, the average over all such samples is the drop."""
    first = np.array([1, 1, 1, 0, 0, 1], dtype=float)
    second = np.array([1, 0, 1, 1, 0, 0], dtype=float)
    found = {}
    for size in range(2, 7):
        for chosen in itertools.combinations(range(6), size):
            part = np.full(6, NAN)
            part[list(chosen)] = second[list(chosen)]
            result = poststratified_drop(first, part, target="finite")
            split = (int(first[list(chosen)].sum()), size)
            found.setdefault(split, []).append(result)
    for (right, size), results in found.items():
        if right in (0, size):
            assert {r.status for r in results} == {"not_identified"}
            continue
        values = [r.value for r in results]
        assert np.mean(values) == pytest.approx((first - second).mean())
        if right >= 2 and size - right >= 2:
            squares = np.mean([r.standard_error**2 for r in results])
            assert squares == pytest.approx(np.var(values))


def test_poststratified_by_hand():
    """6 of 10 right; of those 1 of 3 asked fell, of the wrong 0 of 2 rose: .6/3 = 20 points."""
    first = [1.0] * 6 + [0.0] * 4 + [NAN]
    second = [0.0, 1.0, 1.0, NAN, NAN, NAN, 0.0, 0.0, NAN, NAN, 1.0]
    finite = poststratified_drop(first, second, target="finite")
    assert (finite.value, finite.items, finite.excluded) == (pytest.approx(0.2), 5, 1)
    assert finite.standard_error == pytest.approx(math.sqrt(0.36 * 0.5 * (1 / 3) / 3))
    fell, rose = agresti_coull(1 / 3 * 6, 6), agresti_coull(0, 4)
    assert finite.interval.low == pytest.approx(
        0.2 - math.hypot(0.6 * (1 / 3 - fell.low), 0.4 * rose.high)
    )
    wide = poststratified_drop(first, second)
    between = (0.6 * (1 / 3 - 0.2) ** 2 + 0.4 * 0.2**2) / 10
    assert wide.standard_error == pytest.approx(math.sqrt(0.36 / 3 / 3 + between))
    whole = poststratified_drop([1, 1, 0, 0], [1, 0, 0, 0], target="finite")
    assert (whole.interval.low, whole.interval.high) == (0.25, 0.25)


def test_poststratified_edges():
    """An unseen stratum is not identified, real scores have a normal interval, errors name it."""
    unseen = poststratified_drop([1, 1, 1, 0], [1, 0, NAN, NAN])
    assert (unseen.value, unseen.status) == (None, "not_identified")
    few = poststratified_drop([1, 1], [1, NAN])
    assert (few.value, few.status) == (None, "insufficient_data")
    one_sided = poststratified_drop([1, 1, 1], [1, 1, NAN])
    assert (one_sided.value, one_sided.interval.high > 0.3) == (0.0, True)
    real = poststratified_drop([1, 1, 0, 0], [0.5, 0.7, 0.1, NAN])
    assert real.interval.low is None
    real = poststratified_drop([1, 1, 0, 0], [0.5, 0.7, 0.1, 0.3])
    assert real.interval.method == "normal by stratum"
    with pytest.raises(InvalidValue, match="baseline is"):
        poststratified_drop([0.5, 1.0], [1.0, 0.0])
    with pytest.raises(InvalidValue, match="baseline, perturbed is"):
        poststratified_drop([1.0], [1.0, 0.0])


def test_poststratification_saves_what_theory_says():
    """Equal accuracies and correlation phi: variance 1 - phi^2 against 2 (1 - phi) paired."""
    rng = np.random.default_rng(23)
    model = ProbitModel(ability=0.6, effects=(0, 0), interaction=0.7)
    table = simulate_outcomes(model, 4000, seed=rng)
    first, second = table.T
    p, phi = table.mean(), np.corrcoef(first, second)[0, 1]
    post, paired = [], []
    for _ in range(1500):
        chosen = rng.choice(4000, 200, replace=False)
        part = np.full(4000, NAN)
        part[chosen] = second[chosen]
        post.append(poststratified_drop(first, part, target="finite").value)
        paired.append((first - second)[chosen].mean())
    scale = p * (1 - p) / 200 * (1 - 200 / 4000)
    assert np.var(post) == pytest.approx(scale * (1 - phi**2), rel=0.12)
    assert np.var(paired) == pytest.approx(scale * 2 * (1 - phi), rel=0.12)


@pytest.mark.parametrize("target", ["finite", "super-population"])
@pytest.mark.parametrize("model", [BRITTLE, ROBUST], ids=["brittle", "robust"])
def test_poststratified_covers(model, target):
    """100 of 300 items: at least 95 % coverage, and no bias, also where little changes."""
    rng, runs = np.random.default_rng(24), 800
    exact = simulated_truth(model).drops[-1]
    table = simulate_outcomes(model, 300, seed=rng)
    values, hits = [], 0
    for _ in range(runs):
        if target != "finite":
            table = simulate_outcomes(model, 300, seed=rng)
        first, second = table[:, 0], table[:, -1]
        truth = (first - second).mean() if target == "finite" else exact
        part = np.full(300, NAN)
        chosen = rng.choice(300, 100, replace=False)
        part[chosen] = second[chosen]
        found = poststratified_drop(first, part, target=target)
        values.append(found.value - truth)
        hits += truth in found.interval
    assert binomtest(hits, runs, 0.95, alternative="less").pvalue > 1e-3
    assert hits < 0.99 * runs
    assert abs(np.mean(values)) < 4 * np.std(values, ddof=1) / math.sqrt(runs)
