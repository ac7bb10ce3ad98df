"""Do falter's intervals cover what they say? One command; exit code 1 if one does not.

    python bench/coverage.py [--replications 4000] [--rows clusters] [--processes 2]

`--rows` picks: `clusters` (or a part of a row's name), `null studies`, `items`. The replications of
every row are shared out among three seeds, whose results stand side by side.

Clusters (see `_cluster_rows.py`): 95 % intervals of 300 to 400 items in 6 to 40 clusters that are
alike by ICC, beside the plain cluster t (CR1 on clusters minus one; for simultaneous intervals at
Bonferroni's level). Passes: 93 % or more, and 90 % or more for rare events at ICC 0.2 with fewer
than ten clusters, all less three Monte Carlo errors; `wide` says that it is more than 97 %, so that
the interval errs on the careful side. Null studies: at most 5 % have a false verdict.

Items: a model whose every number is known by integration answers 300 items under 12 conditions.
Fixed conditions, a super-population of items, 95 % intervals. `known` is the bias of order
1/items that a plug-in or a ratio has by definition, also integrated; `z` is the rest of the bias in
Monte Carlo standard errors. Passes: |z| <= 3.5, and coverage within 95 +- 1.5 %, or at least 94 %
for the conservative kinds (Agresti-Coull; Tango with Bonett-Price at rare discordance).
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from falter.measures.averages import group_average, macro_average, mean_score, micro_average
from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.variance import variance_components
from falter.records.types import Estimate
from probit import ProbitModel, simulate_outcomes, simulated_truth

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _cluster_rows import DESIGNS, NULL_STUDIES, ROWS, Design, Outcome, false_verdict

Floats = NDArray[np.float64]

SEEDS = (0, 1, 2)
GROUPS = ("words",) * 5 + ("padding",) * 3 + ("paraphrase",) * 3
SCENARIOS = {
    # Half of the variance is within items; drops from 0 to 12 points.
    "brittle": ProbitModel(
        ability=0.55,
        effects=(0, 0, 0.03, 0.06, 0.09, 0.13, 0.17, 0.22, 0.27, 0.32, 0.38, 0.44),
        difficulty=1.0,
        interaction=0.5,
        noise=0.2,
    ),
    # Outcomes hardly change; the conditions without effect disagree on about 2 % of the items.
    "robust": ProbitModel(
        ability=1.2,
        effects=(0, 0, 0, 0.02, 0.04, 0.06, 0.1, 0.14, 0.2, 0.27, 0.36, 0.5),
        difficulty=1.0,
        interaction=0.1,
    ),
    # Nearly everything is right.
    "saturated": ProbitModel(
        ability=1.75,
        effects=(0, 0, 0, 0.02, 0.04, 0.06, 0.1, 0.14, 0.2, 0.27, 0.36, 0.5),
        difficulty=1.0,
        interaction=0.3,
    ),
}
SPAN, RARE_PAIRS, MAX_Z = 1.5, 40.0, 3.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What is estimated, its true value, its known bias, and the rule its coverage must meet."""

    name: str
    truth: float
    bias: float = 0.0
    conservative: bool = False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=4000, help="of every row")
    parser.add_argument("--rows", action="append", help="clusters, null studies, items, or a name")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), action="append")
    given = parser.parse_args(arguments)
    wanted = given.rows or ["clusters", "null studies", "items"]
    rows = [name for name in ROWS if "clusters" in wanted or any(w in name for w in wanted)]
    failed, started = 0, time.monotonic()
    with ProcessPoolExecutor(given.processes) as pool:
        if rows:
            failed += cluster_table(pool, rows, given.replications)
        if "null studies" in wanted:
            failed += null_table(pool, max(3, given.replications // 4))
        if "items" in wanted:
            scenarios = given.scenario or list(SCENARIOS)
            failed += item_tables(pool, scenarios, given.items, given.replications)
    minutes = (time.monotonic() - started) / 60.0
    print("every row passes" if not failed else f"{failed} rows fail", f"({minutes:.1f} minutes)")
    return 1 if failed else 0


def seeds_of(seed: int, replications: int) -> list[np.random.SeedSequence]:
    """A third of the replications, one child of the seed each."""
    return np.random.SeedSequence(seed).spawn(max(1, round(replications / len(SEEDS))))


def cluster_table(pool: ProcessPoolExecutor, rows: list[str], replications: int) -> int:
    """Print the rows of clustered items; how many fail."""
    marks = "".join(f"{f'seed {seed}':>8}" for seed in SEEDS)
    print(f"Clusters: coverage of 95 % intervals, {replications} replications a row")
    print(f"{'quantity':28}{'clusters':>9}{'ICC':>6}{marks}{'all':>8}{'width':>8}{'plain t':>9}")
    failed = 0
    for name, design in itertools.product(rows, DESIGNS):
        results = [
            np.array(list(pool.map(partial(_one, name, design), seeds, chunksize=100)))
            for seeds in (seeds_of(seed, replications) for seed in SEEDS)
        ]
        together, size = np.concatenate(results), f"{design.clusters} x {design.size}"
        if np.isnan(together[:, 0]).all():
            print(f"{name:28}{size:>9}{design.icc:6.2f}  not by clusters yet")
            continue
        shown = "".join(f"{100.0 * part[:, 0].mean():8.1f}" for part in results)
        covered, width, plain = np.nanmean(together[:, 0]), np.nanmean(together[:, 1]), math.nan
        if not np.isnan(together[:, 2]).all():
            plain = float(np.nanmean(together[:, 2]))
        least = 0.90 if name.startswith("rare") and design.rare_is_hard else 0.93
        slack = 3.0 * math.sqrt(least * (1.0 - least) / len(together))
        verdict = "pass" if covered >= least - slack else "FAIL"
        verdict = "wide" if covered > 0.97 + slack else verdict
        failed += verdict == "FAIL"
        print(
            f"{name:28}{size:>9}{design.icc:6.2f}{shown}{100.0 * covered:8.1f}{width:8.3f}"
            f"{100.0 * plain:9.1f}  {verdict}",
            flush=True,
        )
    print()
    return failed


def _one(name: str, design: Design, seed: np.random.SeedSequence) -> Outcome:
    return ROWS[name](np.random.default_rng(seed), design)


def null_table(pool: ProcessPoolExecutor, replications: int) -> int:
    """Print the share of studies without any effect that have a false verdict; how many fail."""
    print(f"Null studies: any recipe falsely degraded or improved, {replications} studies a row")
    failed = 0
    for name, (items, recipes) in NULL_STUDIES.items():
        one = partial(_null, items, recipes)
        shares = [list(pool.map(one, seeds_of(seed, replications), chunksize=10)) for seed in SEEDS]
        together = [x for part in shares for x in part]
        share = float(np.mean(together))
        passed = share <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / len(together))
        failed += not passed
        shown = "".join(f"{100.0 * float(np.mean(part)):8.1f}" for part in shares)
        print(f"{name:28}{shown}{100.0 * share:8.1f} %  {'pass' if passed else 'FAIL'}", flush=True)
    print()
    return failed


def _null(items: int, recipes: int, seed: np.random.SeedSequence) -> float:
    return false_verdict(np.random.default_rng(seed), items, recipes)


def item_tables(
    pool: ProcessPoolExecutor, scenarios: list[str], items: int, replications: int
) -> int:
    """Print a table for every scenario of independent items; how many rows fail."""
    failed = 0
    for name in scenarios:
        model = SCENARIOS[name]
        print(headline(name, model, items, replications), flush=True)
        one = partial(replicate, model, items)
        seeds = [seed for of in SEEDS for seed in seeds_of(of, replications)]
        # One row a replication, one column a quantity: value, low, high.
        results = np.array(list(pool.map(one, seeds, chunksize=50)))
        quantities = expected(model, items)
        failed += sum(not report(q, results[:, k]) for k, q in enumerate(quantities))
        print()
    return failed


def replicate(
    model: ProbitModel, items: int, seed: np.random.SeedSequence
) -> list[tuple[float, float, float]]:
    """All estimates from one sample of items, as value, low and high."""
    outcomes = simulate_outcomes(model, items, seed=np.random.default_rng(seed))
    return [
        tuple(math.nan if x is None else x for x in (e.value, e.low, e.high))  # type: ignore[misc]
        for e in estimates(outcomes)
    ]


def estimates(outcomes: Floats) -> Iterable[Estimate]:
    """In the order of `expected`."""
    for column in outcomes.T:
        yield accuracy(column)
    baseline = outcomes[:, 0]
    for column in outcomes[:, 1:].T:
        yield accuracy_drop(baseline, column)
    drops = baseline[:, None] - outcomes[:, 1:]
    for group in dict.fromkeys(GROUPS):
        yield group_average(drops[:, [name == group for name in GROUPS]])
    yield micro_average(drops, baseline=baseline)
    yield macro_average(drops, GROUPS, baseline=baseline)
    yield mean_score(outcomes)
    plugin = variance_components(outcomes, "plugin")
    yield from (plugin.data, plugin.pert, plugin.total, plugin.brittleness)
    crossed = variance_components(outcomes, "crossed")
    yield from (crossed.item, crossed.condition, crossed.interaction)
    yield from (crossed.brittleness_main, crossed.brittleness_interaction)


def expected(model: ProbitModel, items: int) -> list[Quantity]:
    """Every quantity with its truth, none of it simulated."""
    truth = simulated_truth(model)
    bias = ratio_biases(model, items)
    found = [
        Quantity(name=f"accuracy {j}", truth=float(p), conservative=True)
        for j, p in enumerate(truth.accuracy)
    ]
    found += [
        Quantity(name=f"drop {j}", truth=float(drop), conservative=items * rate < RARE_PAIRS)
        for j, (drop, rate) in enumerate(zip(truth.drops, truth.discordance, strict=True), 1)
    ]
    means = {
        group: float(np.mean([d for d, g in zip(truth.drops, GROUPS, strict=True) if g == group]))
        for group in dict.fromkeys(GROUPS)
    }
    found += [Quantity(name=f"group {g}", truth=d) for g, d in means.items()]
    found.append(Quantity(name="micro-average", truth=float(truth.drops.mean())))
    found.append(Quantity(name="macro-average", truth=float(np.mean(list(means.values())))))
    found.append(Quantity(name="mean score", truth=float(np.mean(truth.accuracy))))
    for kind, values in (("plugin", truth.plugin), ("crossed", truth.crossed)):
        found += [
            Quantity(name=f"{kind} {key}", truth=value, bias=bias.get(f"{kind} {key}", 0.0))
            for key, value in values.items()
        ]
    return found


def ratio_biases(model: ProbitModel, items: int) -> dict[str, float]:
    """The 1/items bias of the plug-ins and ratios, from the distribution of an item's outcomes.

    A ratio N/D is biased by [-Cov(N, D)/D^2 + N Var(D)/D^3]/items with the variances those of the
    influence functions, plus what its parts are biased by; variances with ddof 0 by -1/items.
    """
    patterns, weights = outcome_distribution(model)
    truth = simulated_truth(model)
    p, width = truth.accuracy, truth.conditions
    off = patterns - p
    means = patterns.mean(axis=1)
    data = np.square(means - p.mean()) - truth.plugin["data"]
    pert = patterns.mean(axis=1) - np.square(means) - truth.plugin["pert"]
    interaction = np.square(off - off.mean(axis=1, keepdims=True)).sum(axis=1) / (width - 1)
    interaction -= truth.crossed["interaction"]
    condition = 2.0 * off @ (p - p.mean()) / (width - 1)
    item = (np.square(off.sum(axis=1)) - np.square(off).sum(axis=1)) / (width * (width - 1))
    item -= truth.crossed["item"]

    def ratio(part: float, part_influence: Floats, whole: float, whole_influence: Floats) -> float:
        own = float(weights @ (whole_influence * whole_influence))
        both = float(weights @ (part_influence * whole_influence))
        return (part * own / whole - both) / whole**2 / items

    shrink = -truth.plugin["data"] / items
    plugin, crossed = truth.plugin, truth.crossed
    total = crossed["item"] + crossed["condition"] + crossed["interaction"]
    total_influence = item + condition + interaction
    return {
        "plugin data": shrink,
        "plugin total": shrink,
        "plugin brittleness": ratio(plugin["pert"], pert, plugin["total"], data + pert)
        - plugin["brittleness"] / plugin["total"] * shrink,
        "crossed brittleness_main": ratio(crossed["condition"], condition, total, total_influence),
        "crossed brittleness_interaction": ratio(
            crossed["interaction"], interaction, total, total_influence
        ),
    }


def outcome_distribution(model: ProbitModel) -> tuple[Floats, Floats]:
    """All 2^J outcomes of an item and their probabilities, integrated over its difficulty."""
    from scipy.special import log_ndtr

    width = len(model.effects)
    patterns = (np.arange(2**width)[:, None] >> np.arange(width) & 1).astype(np.float64)
    difficulty = np.linspace(-9.0, 9.0, 2401)
    density = np.exp(-np.square(difficulty) / 2.0)
    own = math.hypot(model.interaction, model.noise)
    latent = model.ability + model.difficulty * difficulty[:, None] - np.asarray(model.effects)
    log_wrong = log_ndtr(-latent / own)
    log_right = log_ndtr(latent / own)
    chances = np.exp(log_right @ patterns.T + log_wrong @ (1.0 - patterns.T))
    return patterns, density @ chances / density.sum()


def headline(name: str, model: ProbitModel, items: int, replications: int) -> str:
    truth = simulated_truth(model)
    return (
        f"{name}: {items} items x {truth.conditions} conditions, {replications} replications; "
        f"baseline accuracy {truth.accuracy[0]:.3f}, drops {100 * truth.drops.min():.1f} to "
        f"{100 * truth.drops.max():.1f} points, discordance {100 * truth.discordance.min():.1f} to "
        f"{100 * truth.discordance.max():.1f} %, brittleness {truth.plugin['brittleness']:.3f}\n"
        f"{'quantity':32}{'truth':>10}{'bias':>10}{'known':>10}{'z':>7}{'coverage':>10}"
        f"{'width':>9}  {'rule':9}verdict"
    )


def report(quantity: Quantity, results: Floats) -> bool:
    """Print one row; whether it passes."""
    values, low, high = results.T
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    bias = float(values.mean()) - quantity.truth
    z = (bias - quantity.bias) / error if error else 0.0
    # An interval that is not there covers nothing.
    coverage = 100.0 * float(((low <= quantity.truth) & (quantity.truth <= high)).mean())
    in_range = coverage >= 94.0 if quantity.conservative else abs(coverage - 95.0) <= SPAN
    passed = in_range and abs(z) <= MAX_Z
    shown: Callable[[float], str] = lambda x: f"{x:10.5f}"  # noqa: E731
    print(
        f"{quantity.name:32}{shown(quantity.truth)}{shown(bias)}{shown(quantity.bias)}{z:7.2f}"
        f"{coverage:9.2f}%{np.nanmean(high - low):9.4f}  "
        f"{'>= 94' if quantity.conservative else '95 +- 1.5':10}"
        f"{'pass' if passed else 'FAIL'}",
        flush=True,
    )
    return passed


if __name__ == "__main__":
    sys.exit(main())
