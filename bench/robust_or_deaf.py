"""Words for six kinds of models, drawn anew: how often `keeps_and_reads` says the wrong one.

python bench/robust_or_deaf.py [--seeds 200] [--items 60]
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from falter.measures.keeps_and_reads import keeps_and_reads

KINDS: dict[str, tuple[tuple[float, ...], tuple[float, ...], float, str]] = {
    # Chances to keep under each change, to notice each control, to stay when asked again.
    "exact router": ((0.995,) * 3, (0.99,) * 4, 1.0, "robust"),
    "constant": ((1.0,) * 3, (0.0,) * 4, 1.0, "deaf"),
    "gives up at new tools": ((0.1, 0.1, 1.0), (0.99,) * 4, 1.0, "brittle"),
    "die of eight": ((0.125,) * 3, (0.875, 0.875, 0.125, 0.125), 0.125, "erratic"),
    "bound to old names": ((1.0, 0.0, 1.0), (0.95, 0.95, 0.95, 0.0), 1.0, "erratic"),
    "hears half the controls": ((1.0,) * 3, (0.99, 0.0, 0.99, 0.0), 1.0, "deaf"),
    # On a line any word but "undecided" is wrong.
    "keeps 90 %": ((0.9,) * 3, (0.99,) * 4, 1.0, "undecided"),
    "notices 80 %": ((1.0,) * 3, (0.8,) * 4, 1.0, "undecided"),
}
UNKNOWN = np.array([0, 1, 0, 1], dtype=bool)
"""The controls after which the answer is only known to be another one."""


def word(kind: str, items: int, rng: np.random.Generator) -> str:
    keep, notice, stay, _ = KINDS[kind]

    def drawn(chance: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return (rng.random(items) < chance).astype(float)

    return keeps_and_reads(
        {f"change {n}": drawn(chance) for n, chance in enumerate(keep)},
        {f"control {n}": drawn(chance) for n, chance in enumerate(notice)},
        np.full(items, UNKNOWN.mean()),
        drawn(stay),
    ).word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--items", type=int, default=60)
    asked = parser.parse_args()
    for kind, (*_, right) in KINDS.items():
        words = Counter(
            word(kind, asked.items, np.random.default_rng(seed)) for seed in range(asked.seeds)
        )
        wrong = sum(n for w, n in words.items() if w not in (right, "undecided"))
        print(f"{kind:26} {right:10} wrong {100 * wrong / asked.seeds:4.1f} %  {dict(words)}")


if __name__ == "__main__":
    main()
