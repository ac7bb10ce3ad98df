"""Coverage of the consistency index, and false claims of the relevance protocol, in drawn studies.

python bench/papers.py --studies 400
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from falter.measures.consistency import steadiness
from falter.measures.relevance import arm_difference, score_change
from falter.records.types import Estimate

Floats = NDArray[np.float64]
CONFIGURATIONS = 24
STEADY = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
RATES = (0.1, 0.3, 0.6, 0.8, 0.9)


def mixture(rng: np.random.Generator, steady: float, rate: float, items: int) -> Floats:
    """Scores of items that never change, as a share of all; the others are independent coins."""
    never = rng.random(items) < steady
    fixed = rng.random((items, 1)) < rate
    coins = rng.random((items, CONFIGURATIONS)) < rate
    return np.where(never[:, None], fixed, coins).astype(float)


def index_rows(rng: np.random.Generator, studies: int) -> Iterator[str]:
    """Coverage and bias of the index for known mixtures; `left` studies were informative."""
    yield f"{'steady':>6} {'rate':>5} {'items':>5} {'left':>5} {'covered, %':>10} {'bias':>6}"
    for steady in STEADY:
        for rate in RATES:
            for items in (50, 100):
                drawn = (mixture(rng, steady, rate, items) for _ in range(studies))
                found = [e for e in (steadiness(s).index for s in drawn) if e.value is not None]
                if found:
                    hits = np.mean([covers(e, steady) for e in found])
                    bias = np.mean([e.value - steady for e in found if e.value is not None])
                    yield (
                        f"{steady:6.2f} {rate:5.2f} {items:5} {len(found):5} {100 * hits:10.1f} "
                        f"{bias:6.3f}"
                    )


def covers(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and low - 1e-9 <= truth <= high + 1e-9


def summary_scores(rng: np.random.Generator, articles: int, shape: str) -> tuple[Floats, Floats]:
    """Scores of two arms without an effect, in one of four shapes."""
    level = rng.beta(2, 5, articles)
    noise = {
        "normal": rng.normal(0, 0.1, (2, articles)),
        "some change": rng.normal(0, 0.15, (2, articles)) * (rng.random((2, articles)) < 0.6),
        "skewed": rng.exponential(0.1, (2, articles)) - 0.1,
        "all or nothing": -level * (rng.random((2, articles)) < 0.3),
    }[shape]
    return np.clip(level + noise[0], 0, 1), np.clip(level + noise[1], 0, 1)


def claim_rows(rng: np.random.Generator, studies: int) -> Iterator[str]:
    """The share of studies without an effect in which the p-value is at most .05."""
    yield f"{'articles':>8} {'shape':>15} {'false claims, %':>15}"
    for articles in (4, 5, 6, 8, 12, 25, 50, 100):
        for shape in ("normal", "some change", "skewed", "all or nothing"):
            p_values = [
                arm_difference(*summary_scores(rng, articles, shape)).difference.p_value
                for _ in range(studies)
            ]
            false = np.mean([p is not None and p <= 0.05 for p in p_values])
            yield f"{articles:8} {shape:>15} {100 * false:15.1f}"


def change_rows(rng: np.random.Generator, studies: int) -> Iterator[str]:
    """Coverage of a loss of a fifth by the log-ratio interval."""
    yield f"{'articles':>8} {'covered, %':>10}"
    for articles in (8, 12, 25, 50, 100):
        hits = []
        for _ in range(studies):
            old = rng.beta(2, 5, articles) + 0.02
            new = 0.8 * old * np.exp(rng.normal(-0.02, 0.2, articles))
            hits.append(covers(score_change(old, new), 0.8 * math.exp(-0.02 + 0.02) - 1.0))
        yield f"{articles:8} {100 * np.mean(hits):10.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    studies = parser.parse_args().studies
    rng = np.random.default_rng(0)
    print("The index of consistency")
    print("\n".join(index_rows(rng, studies)))
    print("\nRelevance without an effect")
    print("\n".join(claim_rows(rng, studies)))
    print("\nThe change of a score")
    print("\n".join(change_rows(rng, studies)))


if __name__ == "__main__":
    main()
