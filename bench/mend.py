"""Does `falter mend` claim what is not there, and find what is? One command:

    python bench/mend.py [--studies 200] [--seed 1]

Each row is `--studies` simulated studies of 0/1 scores under two recipes, decided by the rule that
the command uses (`confirmed_remedy`). An item is answered rightly when its
difficulty, the condition's cost, what the pair of item and condition adds, and what the wording of
a request adds is above zero. The last of these is drawn anew for every remedy, since another
wording flips answers by itself: so a useless remedy turns answers both ways. In the rows that have
one, the remedy `good` takes part of the cost away. A study of several models decides for each of
them, and counts once whatever it says of them.

The columns: how often anything was claimed, how often something false was, and how often `good`
was. Wanted: without an effective remedy nothing is claimed in at least 95 % of the studies.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from falter.measures.remedies import ConfirmedRemedy, RemedyScores, confirmed_remedy  # noqa: E402

Floats = NDArray[np.float64]
RECIPES = 2


@dataclass(frozen=True, kw_only=True)
class Study:
    """A simulated study: costs and effects in standard deviations of the items' difficulty."""

    name: str
    items: int
    useless: int
    helps: float = 0.0
    cost: float = 1.0
    wording: float = 0.5
    clusters: int = 0
    hurts_clean: float = 0.0
    panels: int = 1


STUDIES = (
    Study(name="nothing helps, 24 items", items=24, useless=6),
    Study(name="nothing helps, 60 items", items=60, useless=6),
    Study(name="nothing helps, 200 items", items=200, useless=6),
    Study(name="nothing helps, 200 items, 30 remedies", items=200, useless=30),
    Study(name="nothing helps, prompts cost nothing", items=200, useless=6, cost=0.0),
    Study(name="nothing helps, wording matters much", items=200, useless=6, wording=1.5),
    Study(name="nothing helps, 20 passages of 10", items=200, useless=6, clusters=20),
    Study(name="nothing helps, 6 models, 120 items", items=120, useless=6, panels=6),
    Study(name="one helps fully, 24 items", items=24, useless=5, helps=1.0),
    Study(name="one helps fully, 60 items", items=60, useless=5, helps=1.0),
    Study(name="one helps fully, 200 items", items=200, useless=5, helps=1.0),
    Study(name="one helps by half, 60 items", items=60, useless=5, helps=0.5),
    Study(name="one helps by half, 200 items", items=200, useless=5, helps=0.5),
    Study(name="one helps fully, 6 models, 120 items", items=120, useless=5, helps=1.0, panels=6),
    Study(name="one helps and ruins clean prompts", items=200, useless=5, helps=1.0,
          hurts_clean=1.0),
)  # fmt: skip


def claims(study: Study, rng: np.random.Generator) -> list[str]:
    """The remedies that one simulated study says help, at most one for each model."""
    models = [drawn(study, rng) for _ in range(study.panels)]
    seeds = [int(rng.integers(2**31)) for _ in models]

    def decided(place: int, together: int = 1) -> ConfirmedRemedy:
        change, clusters = models[place]
        return confirmed_remedy(
            change, range(study.items), seed=seeds[place], clusters=clusters, together=together
        )

    picked = sum(decided(place).picked is not None for place in range(len(models)))
    results = [decided(place, max(picked, 1)) for place in range(len(models))]
    return [result.picked for result in results if result.helps and result.picked is not None]


def drawn(
    study: Study, rng: np.random.Generator
) -> tuple[dict[str, RemedyScores], list[int] | None]:
    """One model's scores with each remedy less those without it, and the items' clusters."""
    n = study.items
    clusters = [item * study.clusters // n for item in range(n)] if study.clusters else None
    ability = 0.6 + rng.standard_normal(n)
    if clusters is not None:
        ability += 0.5 * rng.standard_normal(study.clusters)[clusters]
    pair = 0.4 * rng.standard_normal((n, 1 + RECIPES))
    names = [f"useless {k}" for k in range(study.useless)] + ["good"] * bool(study.helps)

    def scores(name: str) -> Floats:
        cost = np.array([0.0, *[study.cost] * RECIPES])
        if name == "good":
            cost[1:] *= 1.0 - study.helps
            cost[0] = study.hurts_clean
        own = study.wording * rng.standard_normal((n, 1 + RECIPES))
        right: Floats = (ability[:, None] - cost + pair + own > 0).astype(np.float64)
        return right

    before = scores("")
    more = {name: scores(name) - before for name in names}
    change = {name: RemedyScores(gain=less[:, 1:], clean=less[:, 0]) for name, less in more.items()}
    return change, clusters


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    started, failed = time.process_time(), False
    print(f"{arguments.studies} studies a row, seed {arguments.seed}")
    print(f"{'':<44}{'claimed':>9}{'falsely':>9}{'found':>9}")
    for place, study in enumerate(STUDIES):
        rng = np.random.default_rng((arguments.seed, place))
        said = [claims(study, rng) for _ in range(arguments.studies)]
        true = {"good"} if study.helps and study.hurts_clean == 0.0 else set()
        found = sum("good" in names for names in said)
        claimed = sum(bool(names) for names in said)
        falsely = sum(bool(set(names) - true) for names in said)
        shares = [count / arguments.studies for count in (claimed, falsely, found)]
        failed |= shares[1] > 0.05
        shown = "".join(f"{100 * share:>8.1f}%" for share in shares)
        print(f"{study.name:<44}{shown}")
    print(f"{time.process_time() - started:.0f} s of processor time")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
