"""Do the parts of a drop lie in their intervals? One command, one table, exit code 1 if not.

    python bench/parts.py [--replications 2000] [--seed 0]

Items with known reading failures, known losses of meaning and a known second host, independent of
each other: of 80 % right answers 10 % turn wrong by the wording; 12 % of the items lose their
meaning and half of their right answers; 25 % are served by a host that loses a quarter of them;
10 % of the changed answers are unread, of which the second reader reads seven in ten. The true
parts follow from the formulas. In clusters, items share half of their difficulty. `few` and `rare`
have a tenth and a third of the failures. A part without an interval has touched nothing. Passes: at
least 93 % of every part.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.measures.drop_decomposition import drop_parts

NAMES = ("reading", "meaning", "serving")
SCENARIOS = {
    "60 items": (60, 1, 1.0),
    "150 items": (150, 1, 1.0),
    "150 items, few": (150, 1, 0.1),
    "400 items": (400, 1, 1.0),
    "400 items, rare": (400, 1, 1 / 3),
    "40 clusters of 10": (400, 10, 1.0),
    "10 clusters of 20": (200, 20, 1.0),
}
RIGHT, WORDING, MEANING, SERVING, UNREAD, READABLE = 0.8, 0.1, 0.12, 0.25, 0.1, 0.7
EASE = 0.8416212335729143  # the normal quantile of RIGHT


def drawn(
    rng: np.random.Generator, items: int, size: int, share: float
) -> tuple[NDArray[Any], ...]:
    """Baseline, observed, what was unread, read again, and the two masks."""
    groups = rng.normal(size=items // size).repeat(size)
    right = np.sqrt(0.5) * groups + np.sqrt(0.5) * rng.normal(size=items) < EASE
    meaning, serving = rng.random(items) < MEANING * share, rng.random(items) < SERVING * share
    still = right & (rng.random(items) >= WORDING)
    still &= ~(meaning & (rng.random(items) < 0.5)) & ~(serving & (rng.random(items) < 0.25))
    unread, readable = rng.random(items) < UNREAD * share, rng.random(items) < READABLE
    again = np.where(unread & ~readable, np.nan, still.astype(float))
    return right.astype(float), np.where(unread, 0.0, still), unread, again, meaning, serving


def true_parts(share: float) -> list[float]:
    """What is read of the right answers that are left, with and without each mark."""
    m, s = MEANING * share, SERVING * share
    left = RIGHT * (1 - WORDING)
    read = left * (1 - UNREAD * share * (1 - READABLE))
    half = m * s / 2 * read * (1 - 0.5 * 0.75)
    reading = UNREAD * share * READABLE * left * (1 - m * 0.5) * (1 - s * 0.25)
    return [
        reading,
        m * (1 - s) * read * 0.5 + half,
        s * (1 - m) * read * 0.25 + half,
        RIGHT - read,
    ]


def row(name: str, replications: int, seed: int) -> bool:
    """Print one scenario; whether every part covers."""
    items, size, share = SCENARIOS[name]
    truth = true_parts(share)
    hits, widths, known = np.zeros(4), np.zeros(4), np.zeros(4)
    clusters = None if size == 1 else [n // size for n in range(items)]
    for replication in range(replications):
        rng = np.random.default_rng((seed, replication))
        before, after, unread, again, meaning, serving = drawn(rng, items, size, share)
        split = drop_parts(
            before,
            after,
            states=(np.zeros(items), unread.astype(int)),
            reread=(before, again),
            meaning_fails=meaning,
            served_differently=serving,
            clusters=clusters,
        )
        for k, (part, true) in enumerate(zip(split.parts, truth, strict=True)):
            if part.low is None or part.high is None:
                continue
            known[k] += 1
            hits[k] += part.low <= true <= part.high
            widths[k] += part.high - part.low
    covered = hits / known
    cells = "".join(
        f"  {100 * t:5.1f} {100 * c:5.1f} % ±{50 * w:4.1f}"
        for t, c, w in zip(truth, covered, widths / known, strict=True)
    )
    print(f"{name:18}{cells}  {int(4 * replications - known.sum()):5}", flush=True)
    return bool((covered[known > 0] >= 0.93).all())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("true part in points, share of replications that cover it, mean half width")
    print(" " * 18 + "".join(f"  {name:20}" for name in (*NAMES, "wording")) + "  no interval")
    passed = [row(name, given.replications, given.seed) for name in SCENARIOS]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
