"""False "better" of `falter compare` where nobody is, and its coverage of a known difference.

    python bench/compare.py [--runs 400]

Two sides answer the same items under a clean prompt and eleven recipes. Their latent scores share
the item's difficulty; one is shifted. The truth is the mean over a million items.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from falter.measures.comparison import compare_conditions

RECIPES = 11
NAMES = ("clean", *(f"recipe {n}" for n in range(RECIPES)))


def _right(latent: NDArray[np.float64]) -> NDArray[np.float64]:
    return (latent > 0.0).astype(np.float64)


def sides(rng: np.random.Generator, items: int, shift: float) -> dict[str, NDArray[np.float64]]:
    """Scores of both sides: 1 where skill, item and chance add up to more than 0."""
    item = rng.normal(size=(items, 1))
    costs = np.append(0.0, np.linspace(0.0, 0.4, RECIPES))
    return {
        name: _right(0.5 + more - costs + item + 0.7 * rng.normal(size=(items, RECIPES + 1)))
        for name, more in (("A", 0.0), ("B", shift))
    }


def truth(shift: float) -> NDArray[np.float64]:
    """The difference over all recipes, and under each condition."""
    large = sides(np.random.default_rng(1), 200_000, shift)
    each = (large["B"] - large["A"]).mean(axis=0)
    return np.append(each[1:].mean(), each)


def counted(runs: int, items: int, shift: float) -> tuple[int, int, int, int]:
    """Runs: any better, overall better, the overall interval covers, all intervals cover."""
    real = truth(shift) if shift else np.zeros(RECIPES + 2)
    counts = np.zeros(4, dtype=int)
    for seed in range(runs):
        scores = sides(np.random.default_rng(1000 + seed), items, shift)
        (pair,) = compare_conditions(
            scores, names=NAMES, averaged=NAMES[1:], replications=1000, seed=seed
        )
        rows = [pair.overall, *pair.conditions]
        better = [row.better in ("later", "earlier") for row in rows]
        inside = [
            row.together.low is None
            or row.together.high is None
            or row.together.low <= value <= row.together.high
            for row, value in zip(rows, real, strict=True)
        ]
        own = pair.overall.difference
        covers = own.low is None or own.high is None or own.low <= real[0] <= own.high
        counts += [any(better), better[0], covers, all(inside)]
    return tuple(int(count) for count in counts)  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    print("items  shift  any better  overall better  own interval covers  all cover at once")
    for items in (72, 300):
        for shift in (0.0, 0.3):
            row = counted(runs, items, shift)
            print(f"{items:5}  {shift:5.1f}  " + "  ".join(f"{c / runs:13.1%}" for c in row))


if __name__ == "__main__":
    main()
