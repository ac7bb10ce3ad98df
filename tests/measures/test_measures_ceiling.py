"""Averages of drops from one baseline that is nearly always right: no loss where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from falter.measures.averages import (
    group_average,
    macro_average,
    micro_average,
    random_conditions_average,
)
from falter.measures.comparison import Answers, compare_pair
from falter.stats.mean import item_mean
from falter.stats.rates import mean_drop

RECIPES = 11


def right(rng: np.random.Generator, items: int, ability: float, loss: float = 0.0) -> np.ndarray:
    """Answers to the clean prompt and under each recipe, which cost `loss` on the probit scale."""
    score = ability + 0.5 * rng.normal(size=(items, 1)) + rng.normal(size=(items, RECIPES + 1))
    score[:, 1:] -= loss
    return np.asarray(score > 0.0, dtype=np.float64)


@pytest.mark.parametrize(("items", "ability"), [(15, 1.5), (40, 2.2), (60, 0.5)])
def test_without_an_effect_no_average_claims_one(items: int, ability: float) -> None:
    """80 studies each, at most 5 % of which may claim; the drops alone do in up to 40 %."""
    rng = np.random.default_rng(items)
    claims = dict.fromkeys(("micro", "macro", "group", "like these", "drops alone"), 0)
    for _ in range(80):
        scores = right(rng, items, ability)
        clean, drops = scores[:, 0], scores[:, :1] - scores[:, 1:]
        found = {
            "micro": micro_average(drops, baseline=clean),
            "macro": macro_average(drops, ["a"] * 5 + ["b"] * 6, baseline=clean),
            "group": group_average(drops[:, :5], baseline=clean),
            "like these": random_conditions_average(drops, baseline=clean),
            "drops alone": micro_average(drops),
        }
        for name, e in found.items():
            if e.low is not None and e.high is not None:
                claims[name] += e.low > 0.0 or e.high < 0.0
                if name == "micro" and e.p_value is not None:
                    assert (e.p_value < 0.05) == (e.low > 0.0 or e.high < 0.0) or abs(
                        e.p_value - 0.05
                    ) < 0.03
    alone = claims.pop("drops alone")
    assert max(claims.values()) <= 7, claims
    if ability == 2.2:
        assert alone > 20


def test_a_real_loss_is_still_found() -> None:
    """Ten points off 90 %, 200 items: claimed nearly always, with the same value."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(40):
        scores = right(rng, 200, 1.5, loss=0.45)
        drops = scores[:, :1] - scores[:, 1:]
        with_it, without = micro_average(drops, baseline=scores[:, 0]), micro_average(drops)
        assert with_it.value == without.value
        assert with_it.low is not None and without.low is not None
        assert with_it.low <= without.low
        found += with_it.low > 0.0
    assert found >= 36


def test_what_has_no_baseline_in_the_unit_interval_is_left_as_it_is() -> None:
    """Other scores, one condition, and a baseline of another length."""
    drops = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], [1.0, 0.0]])
    same = mean_drop(drops, baseline=[4.0, 4.0, 5.0, 3.0]).interval
    assert same == item_mean(drops).interval
    one = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    assert mean_drop(one[:, None], baseline=np.ones(5)).interval == item_mean(one).interval
    with pytest.raises(Exception, match="a score for each of 4 items"):
        mean_drop(drops, baseline=[1.0])


def test_copies_of_items_in_clusters_are_not_surer() -> None:
    """Ten copies of each of twelve items: about as wide as the twelve."""
    rng = np.random.default_rng(4)
    twelve = right(rng, 12, 1.0)
    alone = micro_average(twelve[:, :1] - twelve[:, 1:], baseline=twelve[:, 0])
    copies = np.repeat(twelve, 10, axis=0)
    copied = micro_average(
        copies[:, :1] - copies[:, 1:],
        baseline=copies[:, 0],
        clusters=np.repeat(np.arange(12), 10).tolist(),
    )
    assert copied.low is not None and copied.high is not None
    assert alone.low is not None and alone.high is not None
    assert copied.high - copied.low > 0.8 * (alone.high - alone.low)


def test_two_models_that_are_alike_are_not_told_apart() -> None:
    """100 pairs near 97 %: neither accuracy nor the drop nor the flip rate is said to differ."""
    rng = np.random.default_rng(7)
    claims = dict.fromkeys(("accuracy", "drop", "flip_rate"), 0)
    for _ in range(100):
        ease = 0.5 * rng.normal(size=(40, 1))
        sides = [(2.2 + ease + rng.normal(size=(40, RECIPES + 1)) > 0).astype(float) for _ in "ab"]
        first, second = (Answers(baseline=y[:, 0], perturbed=y[:, 1:]) for y in sides)
        found = compare_pair(first, second, replications=400)
        for name in claims:
            e = getattr(found, name)
            if e.low is not None and e.high is not None:
                claims[name] += e.low > 0.0 or e.high < 0.0
                assert e.p_value is not None
                if e.p_value > 0.06:
                    assert e.low <= 0.0 <= e.high
    assert claims["accuracy"] <= 8 and claims["drop"] <= 8 and claims["flip_rate"] <= 12


@pytest.mark.parametrize("items", [2, 3, 7, 30])
def test_few_items_without_a_difference_have_a_p_value(items: int) -> None:
    """The search for the level at which zero is left out ends, whatever the answers are."""
    rng = np.random.default_rng(items)
    for _ in range(40):
        scores = (rng.random((items, 3)) < rng.choice([0.1, 0.5, 0.9])).astype(float)
        found = micro_average(scores[:, :1] - scores[:, 1:], baseline=scores[:, 0])
        assert found.p_value is None or 0.0 <= found.p_value <= 1.0
