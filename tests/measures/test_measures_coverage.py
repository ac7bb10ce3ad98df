"""A small, seeded version of bench/coverage.py: bias and coverage against known truth."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy.stats import binomtest

from falter.measures.averages import micro_average
from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.variance import variance_components
from falter.stats.paired import paired_difference
from probit import ProbitModel, simulate_outcomes, simulated_truth

REPLICATIONS, ITEMS = 120, 150
BRITTLE = ProbitModel(ability=0.6, effects=(0, 0, 0.1, 0.25, 0.4), interaction=0.7)
ROBUST = ProbitModel(ability=1.0, effects=(0, 0, 0.05, 0.15, 0.35), interaction=0.15)
NULL = ProbitModel(ability=0.8, effects=(0,) * 5, interaction=0.5)


def simulated(model, seed):
    """Values, lows and highs of every quantity, a row a replication, with the truths."""
    truth = simulated_truth(model)
    truths = {"accuracy": truth.accuracy[0], "micro": truth.drops.mean()}
    truths |= {f"drop {j}": drop for j, drop in enumerate(truth.drops)}
    for method in ("plugin", "crossed"):
        truths |= {f"{method}.{k}": v for k, v in getattr(truth, method).items()}
    rows = {name: [] for name in truths}
    rng = np.random.default_rng(seed)
    for _ in range(REPLICATIONS):
        y = simulate_outcomes(model, ITEMS, seed=rng)
        found = {"accuracy": accuracy(y[:, 0]), "micro": micro_average(y[:, :1] - y[:, 1:])}
        found |= {f"drop {j}": accuracy_drop(y[:, 0], y[:, j + 1]) for j in range(y.shape[1] - 1)}
        for method in ("plugin", "crossed"):
            result = variance_components(y, method)
            found |= {f"{method}.{f.name}": getattr(result, f.name) for f in fields(result)}
        for name, kept in rows.items():
            kept.append((found[name].value, found[name].low, found[name].high))
    return truths, {name: np.array(kept, dtype=float) for name, kept in rows.items()}


@pytest.mark.parametrize("model", [BRITTLE, ROBUST], ids=["brittle", "robust"])
def test_every_interval_covers_and_no_number_is_biased(model):
    """Binomial test of coverage against 95 % (at least 95 % where counts are rare), bias by z."""
    truths, results = simulated(model, seed=11)
    for name, truth in truths.items():
        value, low, high = results[name].T
        hits = int(((low <= truth) & (truth <= high)).sum())
        rare = name.startswith(("drop", "accuracy", "micro"))
        side = "less" if rare else "two-sided"
        assert binomtest(hits, REPLICATIONS, 0.95, alternative=side).pvalue > 1e-3, (name, hits)
        error = value.std(ddof=1) / np.sqrt(REPLICATIONS)
        # Plug-ins with ddof 0, and ratios, are biased by the order of 1/items by definition.
        known = abs(truth) / ITEMS * (3.0 if "brittle" in name else 1.0) if "." in name else 0.0
        assert abs(value.mean() - truth) < 4.0 * error + known, name


def test_conditions_that_do_not_differ():
    """Without any effect the interval of the condition variance starts at 0, 97.5 % of the time."""
    truths, results = simulated(NULL, seed=12)
    for name in ("crossed.condition", "crossed.brittleness_main"):
        assert truths[name] == 0.0
        _, low, high = results[name].T
        hits = int(((low <= 0.0) & (high > 0.0)).sum())
        assert binomtest(hits, REPLICATIONS, 0.975).pvalue > 1e-3
    value = results["crossed.condition"][:, 0]
    assert abs(value.mean()) < 4.0 * value.std() / np.sqrt(REPLICATIONS)


def test_clusters_keep_their_level():
    """Forty clusters of five alike items: CR2 covers 95 %, ignoring them covers far less."""
    rng = np.random.default_rng(13)
    codes = np.repeat(np.arange(40), 5)
    hits = naive = 0
    for _ in range(REPLICATIONS):
        shared = np.repeat(rng.normal(size=(40, 1)), 5, axis=0)
        drops = shared[:, 0] + 0.5 * rng.normal(size=200)
        hits += 0.0 in paired_difference(drops, np.zeros(200), clusters=list(codes)).interval
        naive += 0.0 in paired_difference(drops, np.zeros(200)).interval
    assert binomtest(hits, REPLICATIONS, 0.95).pvalue > 1e-3
    assert naive < 0.75 * REPLICATIONS


def test_few_varying_items_are_covered():
    """Sixty items of which one or two vary, or none: the interval still covers."""
    model = ProbitModel(ability=1.0, effects=(0,) * 4, interaction=0.04)
    truth, rng = simulated_truth(model), np.random.default_rng(14)
    hits = 0
    for _ in range(REPLICATIONS):
        found = variance_components(simulate_outcomes(model, 60, seed=rng))
        low, high = found.brittleness.low, found.brittleness.high
        hits += low is not None and low <= truth.plugin["brittleness"] <= high
    assert binomtest(hits, REPLICATIONS, 0.95, alternative="less").pvalue > 1e-3
