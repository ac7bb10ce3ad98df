"""Do the intervals of how much the prompt matters cover? One command, one table.

    python bench/prompt_coverage.py [--replications 4000] [--seed 0] [--processes 2]

Items come in passages that are alike (intraclass correlation .05 and .2), a tenth of the cells may
be missing, and a second run of every cell may split the noise of asking off. Every row is a design,
every column the share of 95 % intervals that hold the truth, which is a sample of 200,000 items.
Exit code 1 if one is below 91 or above 99.7 %. `bench/coverage.py` has the other quantities.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from falter.measures.averages import micro_average
from falter.measures.comparison import Answers, compare_pair
from falter.measures.flips import flip_rate
from falter.measures.variance import prompt_share, variance_components
from falter.records.types import Estimate

Floats = NDArray[np.float64]

EFFECTS = np.array([0.0, 0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45])
LEAST, MOST = 0.91, 0.997


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """`clusters` passages of `size` items; `correlation` is the passage's part of an item."""

    clusters: int
    size: int
    correlation: float
    missing: float = 0.0
    runs: int = 1

    def __str__(self) -> str:
        return (
            f"{self.clusters:4d} x {self.size:3d}  icc {self.correlation:.2f}  "
            f"missing {self.missing:.1f}  runs {self.runs}"
        )


def designs() -> Iterator[Design]:
    """The designs of the table."""
    for correlation in (0.05, 0.2):
        for clusters, size in ((6, 50), (10, 30), (20, 20), (40, 10), (300, 1)):
            yield Design(clusters=clusters, size=size, correlation=correlation)
    yield Design(clusters=20, size=20, correlation=0.2, missing=0.1)
    yield Design(clusters=300, size=1, correlation=0.2, missing=0.1)
    yield Design(clusters=300, size=1, correlation=0.2, runs=2)
    yield Design(clusters=20, size=20, correlation=0.2, missing=0.1, runs=2)


def outcomes(design: Design, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
    """Items x conditions x runs, and the passage of every item."""
    g, m, c = design.clusters, design.size, design.correlation
    passage = np.sqrt(c) * rng.standard_normal((g, 1, 1, 1))
    passage = passage + 0.25 * np.sqrt(c) * rng.standard_normal((g, 1, len(EFFECTS), 1))
    own = np.sqrt(1.0 - c) * rng.standard_normal((g, m, 1, 1))
    cell = 0.5 * rng.standard_normal((g, m, len(EFFECTS), 1))
    run = 0.33 * rng.standard_normal((g, m, len(EFFECTS), design.runs))
    table = (0.5 + passage + own + cell + run > EFFECTS[:, None]).astype(float)
    table = table.reshape(g * m, len(EFFECTS), design.runs)
    table[rng.random(table.shape[:2]) < design.missing] = np.nan
    return table, np.repeat(np.arange(g), m)


def measured(
    table: Floats, runs: int, clusters: NDArray[np.intp] | None, seed: int, *, pair: bool = True
) -> dict[str, Estimate]:
    """Return the estimates of one table, by name; its two halves of conditions are compared."""
    labels = None if clusters is None else clusters.tolist()
    first = table[:, :, 0]
    plugin = variance_components(first, "plugin", clusters=labels)
    crossed = variance_components(first, "crossed", clusters=labels)
    found = {
        "share": prompt_share(table, repeats=runs, clusters=labels).share,
        "plug-in": plugin.brittleness,
        "main": crossed.brittleness_main,
        "interaction": crossed.brittleness_interaction,
        "flips": flip_rate(first[:, 0], first[:, 1:], clusters=labels).rate,
        "average": micro_average(first[:, :1] - first[:, 1:], clusters=labels),
    }
    if pair:
        sides = [
            Answers(baseline=first[:, 0], perturbed=first[:, j]) for j in ([1, 2, 3], [5, 6, 7])
        ]
        both = compare_pair(*sides, clusters=labels, replications=500, seed=seed)
        found |= {"A - B drop": both.drop, "A - B flips": both.flip_rate}
        found |= {"A - B share": both.prompt_share}
    return found


def truths(design: Design, seed: int) -> dict[str, float]:
    """The mean of every number over samples of 20,000 passages of one item."""
    wide = Design(clusters=20_000, size=1, correlation=design.correlation, runs=design.runs)
    found: dict[str, list[float]] = {}
    for part in range(10):
        table, _ = outcomes(wide, np.random.default_rng((seed, part, 7)))
        for name, estimate in measured(table, design.runs, None, part).items():
            found.setdefault(name, []).append(estimate.value or 0.0)
    return {name: float(np.mean(values)) for name, values in found.items()}


def hits(design: Design, truth: dict[str, float], seed: int) -> dict[str, bool]:
    """Return the intervals of one sample that hold the truth."""
    table, clusters = outcomes(design, np.random.default_rng((seed, design.clusters)))
    labels = None if design.size == 1 else clusters
    found = measured(table, design.runs, labels, seed)
    return {
        name: e.low is not None and e.high is not None and e.low <= truth[name] <= e.high
        for name, e in found.items()
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    failed = 0
    with ProcessPoolExecutor(given.processes) as pool:
        for number, design in enumerate(designs()):
            truth = truths(design, given.seed)
            seeds = [given.seed * 1_000_003 + n for n in range(given.replications)]
            rows = list(pool.map(partial(hits, design, truth), seeds, chunksize=20))
            if number == 0:
                print(" " * 42 + "".join(f"{name:>13}" for name in truth), flush=True)
            covered = {name: float(np.mean([row[name] for row in rows])) for name in truth}
            print(
                f"{design!s:42}" + "".join(f"{100 * c:13.1f}" for c in covered.values()), flush=True
            )
            failed += sum(not LEAST <= c <= MOST for c in covered.values())
    print("every row passes" if not failed else f"{failed} numbers fail")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
