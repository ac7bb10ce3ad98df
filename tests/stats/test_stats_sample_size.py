"""Planning: closed forms, statsmodels, the printed planning figures, and simulated precision."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom, norm

from falter.measures.verdicts import recipe_verdicts
from falter.records.errors import InvalidValue
from falter.stats.equivalence import equivalence_p
from falter.stats.goals import (
    BrittlenessPrecision,
    DropPrecision,
    MicroPrecision,
    RankingPower,
    simultaneous_quantile,
)
from falter.stats.layout import balanced_mask
from falter.stats.mean import item_mean
from falter.stats.sample_size import cheapest_design, sample_size
from falter.stats.subsample import masked_brittleness, masked_drop
from falter.stats.verdict_goals import DropDetection, EquivalencePower, equivalence_z
from probit import ProbitModel, simulate_outcomes

# The level of a panel at which a single recipe has its interval at 95 %.
SINGLE = 1 - 0.05 / 0.8
Z = 1.959963984540054
# Discordance, baseline accuracy, mean accuracy and brittleness, from brittle to saturated.
SCENARIOS = {
    "S1": (0.256, 0.48, 0.43, 0.50),
    "S2": (0.116, 0.64, 0.58, 0.24),
    "S3": (0.066, 0.78, 0.74, 0.19),
    "S4": (0.017, 0.90, 0.89, 0.11),
}


def test_drops_by_hand():
    """z^2 d/h^2 = 2401 items at d = 1/4 and 2 points; 1,000 of them give 3.1 points; 706 finite."""
    goal = DropPrecision(half_width=0.02, discordance=0.25)
    free = sample_size(goal, level=SINGLE)
    assert (free.value, free.status, free.best, free.calls) == (2401, "ok", None, 4802)
    few = sample_size(goal, available=1000, level=SINGLE)
    assert (few.value, few.status, few.attainable) == (None, "insufficient_data", False)
    assert (few.needed, few.calls) == (2401, None)
    assert few.best == pytest.approx(Z * math.sqrt(0.25 / 1000))
    finite = sample_size(goal, available=1000, target="finite", level=SINGLE)
    assert (finite.value, finite.best) == (math.ceil(2400.9 / (1 + 2400.9 / 1000)), 0.0)
    assert "exactly these 1000 items" in finite.estimand
    drop = sample_size(DropPrecision(half_width=0.02, discordance=0.25, drop=0.1), level=SINGLE)
    assert drop.value == math.ceil(Z**2 * 0.24 / 0.0004)


@pytest.mark.parametrize(
    ("name", "half", "brittle"),
    [("S1", 0.031, 0.023), ("S2", 0.021, 0.022), ("S3", 0.016, 0.023), ("S4", 0.008, 0.027)],
)
def test_what_1000_items_can_give(name, half, brittle):
    """Printed: the full 1000 x 16 table gives 3.1, 2.1, 1.6 and 0.8 points, and .023 to .028."""
    discordance, _, accuracy, brittleness = SCENARIOS[name]
    goal = DropPrecision(half_width=0.02, discordance=discordance)
    found = sample_size(goal, available=1000, level=SINGLE)
    assert found.best == pytest.approx(half, abs=5e-4)
    assert found.attainable == (half < 0.02)
    full = BrittlenessPrecision(
        half_width=0.03, brittleness=brittleness, accuracy=accuracy, conditions=16, per_item=16
    )
    assert sample_size(full, available=1000).best == pytest.approx(brittle, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "two", "three"), [("S1", 10674, 7742), ("S2", 8480, 5652), ("S3", 6689, 4293)]
)
def test_printed_calls_of_post_stratified_drops(name, two, three):
    """15 drops of these 1,000 items: the simulated calls, which average over unlike drops."""
    discordance, accuracy, _, _ = SCENARIOS[name]
    for half, calls in ((0.02, two), (0.03, three)):
        goal = DropPrecision(
            half_width=half, discordance=discordance, accuracy=accuracy, conditions=15
        )
        # each of the 15 by itself at 95 %, as printed
        level = 1 - (1 - 0.95**15) / 0.8
        found = sample_size(goal, available=1000, target="finite", level=level)
        assert found.calls == pytest.approx(calls, rel=0.06)


@pytest.mark.parametrize(
    ("name", "per_item", "half", "calls"),
    [
        ("S1", 2, 0.02, 2406),
        ("S1", 5, 0.01, 5673),
        ("S2", 2, 0.02, 1573),
        ("S2", 3, 0.01, 3542),
        ("S3", 2, 0.02, 1059),
    ],
)
def test_printed_calls_of_the_micro_average(name, per_item, half, calls):
    """With the correlation 1/2 of an exchangeable baseline, within 1 % of the simulated calls."""
    goal = MicroPrecision(
        half_width=half, discordance=SCENARIOS[name][0], conditions=15, per_item=per_item
    )
    assert sample_size(goal, available=1000, target="finite").calls == pytest.approx(
        calls, rel=0.01
    )


@pytest.mark.parametrize(
    ("name", "per_item", "calls"),
    [("S1", 4, 3037), ("S2", 3, 2193), ("S3", 3, 2263), ("S4", 3, 2441)],
)
def test_printed_calls_of_brittleness(name, per_item, calls):
    """Beta-binomial items come within 6 % of the calls simulated from another population."""
    _, _, accuracy, brittleness = SCENARIOS[name]
    goal = BrittlenessPrecision(
        half_width=0.03,
        brittleness=brittleness,
        accuracy=accuracy,
        conditions=16,
        per_item=per_item,
    )
    assert sample_size(goal, available=1000, target="finite").calls == pytest.approx(
        calls, rel=0.06
    )


def test_simultaneous_quantiles():
    """Of the largest of K |z| at 4 %: 2.054, 2.647 and 2.998."""
    found = [simultaneous_quantile(k, 0.95) for k in (1, 5, 15)]
    assert found == pytest.approx([2.054, 2.647, 2.998], abs=1e-3)


def test_the_score_of_equivalence_is_that_of_the_verdict():
    """Its tail is `equivalence_p`, whatever the counts."""
    rng = np.random.default_rng(4)
    fell, rose = rng.integers(0, 30, 40), rng.integers(0, 30, 40)
    scores = equivalence_z(fell, rose, 400, 0.05)
    for b, c, z in zip(fell, rose, scores, strict=True):
        drops = np.array([1.0] * b + [-1.0] * c + [0.0] * (400 - b - c))
        wanted = equivalence_p(item_mean(drops), margin=0.05)
        assert min(0.5, norm.sf(z)) == pytest.approx(wanted, rel=1e-5, abs=1e-11)


def test_planned_verdicts_are_had():
    """The tool's own verdicts on five recipes, with the planned number of items."""
    rng, names, studies = np.random.default_rng(9), list("abcde"), 60
    same = EquivalencePower(margin=0.1, discordance=0.1, conditions=5)
    worse = DropDetection(size=0.15, discordance=0.2, conditions=5)
    items = {goal: sample_size(goal).value for goal in (same, worse)}
    shown = found = 0.0
    for _ in range(studies):
        for goal, drop in ((same, 0.0), (worse, 0.15)):
            u = rng.random((items[goal], 5))
            drops = np.array([drop, 0.0, 0.0, 0.0, 0.0])
            fell = u < (goal.discordance + drops) / 2
            rose = u > 1 - (goal.discordance - drops) / 2
            # Every recipe against a baseline of its own, so that recipes do not hang together.
            verdicts = recipe_verdicts(
                1.0 - rose, 1.0 - fell, names=names, margin=0.1, replications=100
            )
            shown += verdicts.counts["equivalent"] / 5 if goal is same else 0.0
            found += goal is worse and verdicts["a"].verdict == "degraded"
    assert abs(shown / studies - 0.8) < 0.1 and abs(found / studies - 0.8) < 0.16


def test_brittleness_by_scipys_beta_binomial():
    """The influence's variance summed over SciPy's beta-binomial; the chosen B comes out."""
    goal = BrittlenessPrecision(
        half_width=0.03, brittleness=0.3, accuracy=0.7, conditions=10, per_item=4
    )
    rho = 1 - 0.3 * 10 / 9
    scale = (1 - rho) / rho
    c = np.arange(5)
    chance = betabinom.pmf(c, 4, 0.7 * scale, 0.3 * scale)
    u = 0.9 * c * (4 - c) / 12
    assert chance @ u / 0.21 == pytest.approx(0.3)
    psi = (u + 0.3 * 0.4 * c / 4) / 0.21
    variance = chance @ psi**2 - (chance @ psi) ** 2
    assert goal.spread.sampled == pytest.approx(variance)
    # Items that do not differ at all: binomial, and the most brittleness there can be.
    most = replace(goal, brittleness=0.9)
    assert sample_size(most).value > 0
    with pytest.raises(InvalidValue, match="brittleness is"):
        replace(goal, brittleness=0.91)


def test_ranking_by_hand():
    """Two models: z(.95) standard errors of the gap; more models share the error."""
    goal = RankingPower(gap=0.02, discordance=0.3, conditions=16, per_item=16)
    expected = (norm.isf(0.05) / 0.02) ** 2 * 0.3 * (0.5 + 0.5 / 16)
    assert sample_size(goal).value == math.ceil(expected)
    eight = replace(goal, models=8)
    expected = (norm.isf(0.05 / 7) / 0.02) ** 2 * 0.3 * (0.5 + 0.5 / 16)
    assert sample_size(eight).value == math.ceil(expected)
    assert sample_size(eight).calls == math.ceil(expected) * 16 * 8
    few = sample_size(eight, available=300)
    assert (few.attainable, few.what) == (False, "gap")
    assert few.best == pytest.approx(0.02 * math.sqrt(expected / 300))


def test_cheapest_design():
    """Among designs that are enough the fewest cells; else the one that comes closest."""
    goals = [
        MicroPrecision(half_width=0.01, discordance=0.256, conditions=15, per_item=k)
        for k in range(1, 16)
    ]
    goal, size = cheapest_design(goals, available=1000, target="finite")
    all_ = [sample_size(g, available=1000, target="finite") for g in goals]
    assert size.calls == min(s.calls for s in all_ if s.calls is not None)
    assert goal.per_item == 4
    goal, size = cheapest_design(goals, available=1000)
    needed = math.ceil((Z / 0.01) ** 2 * 0.256 * (0.5 + 0.5 / 15))
    assert (goal.per_item, size.attainable, size.needed) == (15, False, needed)
    with pytest.raises(InvalidValue, match="goals is"):
        cheapest_design([])


def test_edges():
    """No discordance is undefined, a finite target needs its number, nonsense is refused."""
    none = sample_size(DropPrecision(half_width=0.02, discordance=0.0), available=50)
    assert (none.value, none.status, none.best) == (None, "undefined_zero_variance", None)
    partly = MicroPrecision(half_width=0.001, discordance=0.2, conditions=9, per_item=2)
    never = sample_size(partly, available=100, target="finite")
    assert (never.attainable, never.needed) == (False, None)
    assert never.best > 0.0
    goal = DropPrecision(half_width=0.02, discordance=0.2, accuracy=0.5)
    for wrong in ({}, {"target": "finite"}, {"available": 1}):
        with pytest.raises(InvalidValue, match="available is"):
            sample_size(goal, **wrong)
    with pytest.raises(InvalidValue, match="did you mean 'finite'"):
        sample_size(goal, available=9, target="finit")
    for verdict in (
        DropDetection(size=0.1, discordance=0.2),
        EquivalencePower(margin=0.1, discordance=0.2),
    ):
        with pytest.raises(InvalidValue, match="target is 'finite'; expected 'super-population'"):
            sample_size(verdict, available=400, target="finite")
    for wrong, name in (
        ({"half_width": 2}, "half_width"),
        ({"discordance": -0.1}, "discordance"),
        ({"discordance": 0.5, "accuracy": 0.9}, "discordance"),
        ({"drop": 0.3}, "drop"),
        ({"accuracy": 1.0}, "accuracy"),
        ({"conditions": 0}, "conditions"),
    ):
        with pytest.raises(InvalidValue, match=f"{name} is"):
            DropPrecision(**{"half_width": 0.02, "discordance": 0.2} | wrong)
    with pytest.raises(InvalidValue, match="per_item is 10"):
        replace(partly, per_item=10)
    with pytest.raises(InvalidValue, match=r"power is 0\.5"):
        RankingPower(gap=0.1, discordance=0.2, conditions=3, per_item=2, power=0.5)


def test_planned_precision_is_had():
    """A probit population, its own d, rho, p and B: planned errors are those of 50 masks."""
    model = ProbitModel(ability=0.7, effects=(0,) * 8, interaction=0.6)
    table = simulate_outcomes(model, 500, seed=10)
    rows, p = table.mean(axis=1), table.mean()
    drops = table[:, :1] - table[:, 1:]
    cov = np.cov(drops.T)
    rho = (cov.sum() - np.trace(cov)) / 6 / np.trace(cov)
    micro = MicroPrecision(
        half_width=0.03,
        discordance=(drops != 0).mean(),
        conditions=7,
        per_item=2,
        correlation=rho,
    )
    brittle = BrittlenessPrecision(
        half_width=0.03,
        brittleness=(rows * (1 - rows)).mean() / (p * (1 - p)),
        accuracy=p,
        conditions=8,
        per_item=4,
    )
    keys, rng = [str(i) for i in range(300)], np.random.default_rng(11)
    found = {"drop": [], "brittle": []}
    for seed in range(50):
        asked = rng.choice(500, 300, replace=False)
        for name, k, base in (("drop", 3, 0), ("brittle", 4, None)):
            cells = np.full(table.shape, np.nan)
            mask = balanced_mask(keys, 8, k, seed=seed, baseline=base)
            cells[asked] = np.where(mask, table[asked], np.nan)
            result = masked_drop(cells, 0) if name == "drop" else masked_brittleness(cells)
            found[name].append(result.value)
    for name, goal in (("drop", micro), ("brittle", brittle)):
        spread = goal.spread
        planned = math.sqrt(spread.sampled / 300 - spread.items / 500)
        assert np.std(found[name]) == pytest.approx(planned, rel=0.3)
