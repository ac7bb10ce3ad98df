"""Do the numbers of a report's first screen cover what they promise? One command, one table.

    python bench/coverage.py [--quick] [--studies 400] [--processes 2] [--markdown]
        [--save FILE] [--worlds WORDS ...] [--only table|null|power]

Every study draws items, asks them under a baseline and K perturbations (and again as they are), and
computes each number of the first screen as a report does. Items differ by a heavy-tailed difficulty
(Student's t, 4 degrees of freedom), clusters of unequal size share a part of it, and a third of the
items is vulnerable to two thirds of the perturbations, so that these worlds are none of those that
the rules were made on. `sharp` worlds answer nearly the same each time, `soft` ones do not. The
truth is the mean over 400,000 items of the chances to be right.

Passes: at least 93.5 % (of 95 promised; 1.5 points less than other promises), less 2.5 Monte Carlo
errors of the worst world. A number that a report does not show counts in `shown` and not in
coverage; `20 or more` is the mean (and the lowest) of the worlds in which nine of ten studies have
as many items that carry the number. Then: false claims of studies without any effect, one panel and
twelve, at most 5 %, and where a loss in one of twelve is named; power promised and had. Exit code 1
if a row fails.

`--save` appends each hundred studies of a world to a file as soon as they are done; the next run
goes on there. `--worlds` draws only the worlds whose names hold one of the words, the table shows
all that the file holds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.measures.averages import mean_score, micro_average
from falter.measures.drop_decomposition import STATES, drop_parts
from falter.measures.drops import accuracy
from falter.measures.flips import flip_rate, noise_floor
from falter.measures.missing import missing_bounds
from falter.measures.variance import prompt_share
from falter.measures.verdicts import recipe_verdicts
from falter.records.types import Estimate
from falter.stats.goals import DropPrecision
from falter.stats.intervals import INFORMATIVE_ITEMS
from falter.stats.multiplicity import average_level, panel_p, panels_rejected
from falter.stats.sample_size import sample_size
from falter.stats.verdict_goals import DropDetection, EquivalencePower

Floats = NDArray[np.float64]
POPULATION = 400_000
LEAST, SPAN = 0.935, 0.015
MARKED, LOST, UNREAD, RECOVERED = 0.1, 0.4, 0.1, 0.7
GONE = 0.08  # the chance that a wrong answer to a changed prompt goes missing


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The items and their model. `effect` is the largest loss, in units of the difficulty."""

    items: int
    accuracy: float
    recipes: int = 8
    runs: int = 1
    clusters: int = 0
    sharp: bool = True
    effect: float = 1.0

    @property
    def name(self) -> str:
        groups = f" in {self.clusters} clusters" if self.clusters else ""
        kind = "sharp" if self.sharp else "soft"
        return (
            f"n {self.items}{groups}, {self.accuracy:g}, {self.runs} runs, K {self.recipes}, {kind}"
        )

    @property
    def effects(self) -> Floats:
        """The loss of each perturbation where an item is vulnerable; a third costs nothing."""
        steps = np.linspace(0.0, 1.0, self.recipes) * self.effect
        return np.where(np.arange(self.recipes) < self.recipes / 3, 0.0, steps)


WORLDS = (
    *(World(items=n, accuracy=a) for n in (15, 60, 300) for a in (0.5, 0.8, 0.95)),
    *(World(items=n, accuracy=a) for n, a in ((100, 0.99), (300, 0.99), (1000, 0.997))),
    World(items=1000, accuracy=0.8),
    *(World(items=n, accuracy=0.8, runs=r, sharp=False) for n, r in ((15, 5), (60, 2), (300, 3))),
    *(World(items=n, accuracy=0.97, runs=r, sharp=False) for n, r in ((60, 3), (300, 5))),
    *(World(items=200, accuracy=0.7, recipes=k) for k in (4, 15)),
    *(
        World(items=g * m, accuracy=a, clusters=g)
        for g, m, a in ((6, 40, 0.7), (6, 15, 0.95), (10, 30, 0.9), (15, 8, 0.6), (25, 12, 0.8),
                        (40, 10, 0.97), (40, 5, 0.5))
    ),
    World(items=240, accuracy=0.8, clusters=12, runs=3, sharp=False),
)  # fmt: skip
QUICK = WORLDS[1::4]


def chances(rng: np.random.Generator, world: World, items: int, codes: Any) -> Floats:
    """Items x (baseline and perturbations): the chance to be right."""
    scale = 6.0 if world.sharp else 1.2
    difficulty = rng.standard_t(4, items)
    if codes is not None:
        difficulty = 0.8 * difficulty + 0.6 * rng.standard_normal(int(codes.max()) + 1)[codes]
    vulnerable = rng.random(items) < 1.0 / 3.0
    own = 0.25 * rng.standard_normal((items, world.recipes + 1))
    shift = np.concatenate(([0.0], world.effects)) * np.where(vulnerable, 1.0, 0.15)[:, None]
    latent = ability(world) + difficulty[:, None] - shift + own
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scale * latent, -60.0, 60.0))))


@lru_cache(maxsize=64)
def ability(world: World) -> float:
    """The level at which the baseline has its accuracy."""
    rng = np.random.default_rng(1)
    t = rng.standard_t(4, POPULATION)
    if world.clusters:
        t = 0.8 * t + 0.6 * rng.standard_normal(POPULATION)
    t += 0.25 * rng.standard_normal(POPULATION)
    low, high, scale = -30.0, 30.0, 6.0 if world.sharp else 1.2
    for _ in range(50):
        middle = (low + high) / 2.0
        right = float((1.0 / (1.0 + np.exp(-np.clip(scale * (middle + t), -60.0, 60.0)))).mean())
        low, high = (middle, high) if right < world.accuracy else (low, middle)
    return low


@lru_cache(maxsize=64)
def truth(world: World) -> dict[str, Any]:
    """Return the value of every number in the long run."""
    codes = np.arange(POPULATION) if world.clusters else None
    p = chances(np.random.default_rng(2), world, POPULATION, codes)
    first, rest = p[:, 0], p[:, 1:]
    mean = p.mean(axis=0)
    flips = first[:, None] * (1.0 - rest) + (1.0 - first[:, None]) * rest
    again = 2.0 * first * (1.0 - first)
    within = [(p[:, j] * (1.0 - p[:, k]) + p[:, k] * (1.0 - p[:, j])).mean() / 2.0
              for j in range(p.shape[1]) for k in range(j)]  # fmt: skip
    joint = [(p[:, j] * p[:, k]).mean() - mean[j] * mean[k]
             for j in range(p.shape[1]) for k in range(j)]  # fmt: skip
    prompt, item = float(np.mean(within)), float(np.mean(joint))
    run = float((p * (1.0 - p)).mean())
    worst = float(mean[-1])
    return {
        "accuracy": float(mean[0]),
        "drops": mean[0] - mean[1:],
        "average": float(mean[0] - mean[1:].mean()),
        "last drop": float(mean[0]) - worst,
        "mean score": float(mean.mean()),
        "flip rate": float(flips.mean()),
        "noise floor": float(again.mean()),
        "excess": float(flips.mean() - again.mean()),
        "prompt share": (prompt - run) / (prompt - run + item) if world.runs > 1
        else prompt / (prompt + item),
        "wording part": float(mean[0]) - worst * (1.0 - UNREAD * (1.0 - RECOVERED)),
        "meaning part": MARKED * worst * LOST * (1.0 - UNREAD * (1.0 - RECOVERED)),
        "reading part": worst * (1.0 - MARKED * LOST) * UNREAD * RECOVERED,
    }  # fmt: skip


# A number, whether it is shown, whether its interval covers, and how many items carry it.
Outcome = tuple[str, bool, bool, float]


def study(world: World, seed: np.random.SeedSequence) -> list[Outcome]:
    """Every number of the first screen from one sample of items."""
    rng, true = np.random.default_rng(seed), truth(world)
    codes = None
    if world.clusters:
        sizes = rng.multinomial(
            world.items - 2 * world.clusters, rng.dirichlet(np.full(world.clusters, 2.0))
        )
        codes = np.repeat(np.arange(world.clusters), sizes + 2)
    p = chances(rng, world, world.items, codes)
    answers = (rng.random((*p.shape, world.runs)) < p[..., None]).astype(np.float64)
    again = (rng.random((world.items, world.runs)) < p[:, :1]).astype(np.float64)
    scores, labels = answers.mean(axis=2), None if codes is None else codes.tolist()
    with_clusters: dict[str, Any] = {"clusters": labels}
    return list(_outcomes(world, true, rng, answers, again, scores, with_clusters))


def _outcomes(
    world: World, true: dict[str, Any], rng: np.random.Generator, answers: Floats, again: Floats,
    scores: Floats, options: dict[str, Any],
) -> Iterator[Outcome]:  # fmt: skip
    baseline, drops = scores[:, 0], scores[:, :1] - scores[:, 1:]

    def covered(name: str, found: Estimate, key: str = "") -> Outcome:
        shown = found.low is not None and found.high is not None
        value = true[key or name]
        inside = shown and found.low - 1e-12 <= value <= found.high + 1e-12  # type: ignore[operator]
        carried = math.inf if found.informative is None else found.informative
        return name, shown, bool(inside), carried

    yield covered("accuracy", accuracy(baseline, **options))
    family = recipe_verdicts(
        baseline, scores[:, 1:], names=[str(j) for j in range(world.recipes)], replications=200,
        seed=int(rng.integers(2**31)), **options,
    )  # fmt: skip
    ends = [(r.together.low, r.together.high) for r in family.recipes]
    known = all(low is not None for low, _ in ends)
    held = known and all(
        low - 1e-12 <= d <= high + 1e-12  # type: ignore[operator]
        for d, (low, high) in zip(true["drops"], ends, strict=True)
    )
    yield "all drops at once (96 %)", known, held, math.inf
    if family.worst_name is not None:
        picked = {**true, "worst": true["drops"][int(family.worst_name)]}
        low, high = family.worst.low, family.worst.high
        inside = low is not None and high is not None and low <= picked["worst"] <= high
        yield "worst drop", low is not None, inside, math.inf
    level = average_level(0.95)
    sure = micro_average(drops, baseline=baseline, level=level, **options)
    yield covered("average drop (99 %)", sure, "average")
    yield covered("mean score", mean_score(scores, **options))
    rates = flip_rate(answers[:, 0], answers[:, 1:], again=again, **options)
    yield covered("flip rate", rates.rate)
    yield covered("flips minus repeating", rates.excess, "excess")
    yield covered("noise floor", noise_floor(answers[:, 0], again, **options))
    table = answers if world.runs > 1 else scores
    yield covered("prompt share", prompt_share(table, repeats=world.runs, **options).share)
    last = answers[:, -1, 0]
    marked, unread = (rng.random(world.items) < share for share in (MARKED, UNREAD))
    kept = last * ~(marked & (rng.random(world.items) < LOST))
    second = np.where(unread & (rng.random(world.items) < RECOVERED), kept, np.nan)
    nothing = np.full(world.items, np.nan)
    states = np.zeros(world.items), unread * float(STATES.index("unparsed"))
    parts = drop_parts(
        answers[:, 0, 0], np.where(unread, 0.0, kept), states=states, reread=(nothing, second),
        meaning_fails=marked, **options,
    )  # fmt: skip
    for name, part in (("reading", parts.reading), ("meaning", parts.meaning),
                       ("wording", parts.wording)):  # fmt: skip
        yield covered(f"{name} part", part)
    gone = (last == 0.0) & (rng.random(world.items) < GONE)
    bounds = missing_bounds(answers[:, 0, 0], np.where(gone, np.nan, last), **options)
    whole = replace(bounds.high, low=bounds.low.low)
    yield covered("worst case of missing answers", whole, "last drop")


Rows = dict[str, dict[str, list[tuple[bool, bool, float]]]]  # number, world: one a study
BLOCK = 100  # studies that are drawn, and saved, at once


def draw(
    pool: ProcessPoolExecutor, worlds: Sequence[World], studies: int, saved: Path | None
) -> Rows:
    """All studies of the worlds and of the file; those that the file lacks are drawn."""
    hits: Rows = {}
    done: set[tuple[str, int]] = set()

    def add(world: str, start: int, found: list[list[Any]]) -> None:
        done.add((world, start))
        for name, shown, inside, carried in found:
            count = math.inf if carried is None else carried
            hits.setdefault(name, {}).setdefault(world, []).append((shown, inside, count))

    if saved is not None and saved.exists():
        for line in saved.read_text("utf-8").splitlines():
            add(**json.loads(line))
    for start in range(0, studies, BLOCK):
        for world in worlds:
            if (world.name, start) in done:
                continue
            children = np.random.SeedSequence([7, WORLDS.index(world)]).spawn(start + BLOCK)
            seeds = children[start:]
            found = [
                [name, bool(shown), bool(inside), None if math.isinf(carried) else float(carried)]
                for outcomes in pool.map(partial(study, world), seeds, chunksize=10)
                for name, shown, inside, carried in outcomes
            ]
            add(world.name, start, found)
            if saved is not None:
                with saved.open("a", encoding="utf-8") as file:
                    row = {"world": world.name, "start": start, "found": found}
                    file.write(json.dumps(row) + "\n")
            print(f"  {world.name}, to {start + len(seeds)}", file=sys.stderr, flush=True)
    return hits


def table(hits: Rows, markdown: bool) -> int:
    """Print the table of all numbers; how many fail."""
    heads = ("number", "promised", "mean", "lowest", "in the world", "20 or more", "shown")
    print(_row(heads, markdown))
    if markdown:
        print("|---|---|---|---|---|---|---|")
    failed = 0
    for name, by_world in hits.items():
        promised = 0.99 if "99" in name else 0.96 if "96" in name else 0.95
        covered, rich = {}, []
        shown_of = [shown for rows in by_world.values() for shown, _, _ in rows]
        for where, rows in by_world.items():
            known = [inside for shown, inside, _ in rows if shown]
            if len(known) >= 0.2 * len(rows):
                covered[where] = (float(np.mean(known)), len(known))
            # Of a world where this is luck, the lucky studies alone are no fair sample.
            many = float(np.mean([carried >= INFORMATIVE_ITEMS for _, _, carried in rows]))
            if where in covered and many >= 0.9:
                rich.append(covered[where][0])
        where, (lowest, count) = min(covered.items(), key=lambda pair: pair[1][0])
        least = promised - SPAN
        slack = 2.5 * math.sqrt(least * (1.0 - least) / count)
        passed = lowest >= least - slack
        failed += not passed
        mean = float(np.mean([share for share, _ in covered.values()]))
        cells = (
            name, f"{100 * promised:.0f} %", f"{100 * mean:.1f}", f"{100 * lowest:.1f}", where,
            f"{100 * float(np.mean(rich)):.1f} ({100 * min(rich):.1f})" if rich else "–",
            f"{100 * float(np.mean(shown_of)):.0f} %" + ("" if passed else " FAIL"),
        )  # fmt: skip
        print(_row(cells, markdown), flush=True)
    return failed


def _row(cells: Sequence[str], markdown: bool) -> str:
    if markdown:
        return f"| {' | '.join(cells)} |"
    name, promised, mean, lowest, where, rich, shown = cells
    return f"{name:31}{promised:>9}{mean:>7}{lowest:>8}  {where:46}{rich:>14}{shown:>7}"


def panels_shown(
    panels: int, items: int, loss: float, seed: np.random.SeedSequence
) -> tuple[list[bool], list[bool]]:
    """The panels that the first sentence names, and those of which the second line speaks.

    The panels share their items; the first recipe of the first panel costs `loss` points.
    """
    rng = np.random.default_rng(seed)
    difficulty, p_values = rng.standard_t(4, (items, 1)), []
    for panel in range(panels):
        latent = 1.0 + difficulty + 0.7 * rng.standard_normal((items, 9))
        scores = (latent > 0.0).astype(np.float64)
        if loss and panel == 0:
            scores[rng.random(items) < loss / scores[:, 1].mean(), 1] = 0.0
        names = [str(j) for j in range(8)]
        family = recipe_verdicts(scores[:, 0], scores[:, 1:], names=names, replications=400,
                                 seed=int(rng.integers(2**31)))  # fmt: skip
        average = micro_average(scores[:, :1] - scores[:, 1:], baseline=scores[:, 0])
        p_values.append(panel_p([r.together.p_value for r in family.recipes], average.p_value))
    found = panels_rejected(p_values)
    own = [
        p is not None and p <= 0.05 and not first for p, first in zip(p_values, found, strict=True)
    ]
    return found, own


def planned(goal: Any, items: int, seed: np.random.SeedSequence) -> float:
    """The share of the goal that one study of the planned size reaches."""
    rng, count = np.random.default_rng(seed), goal.conditions
    drops = np.zeros(count)
    if isinstance(goal, DropDetection):
        drops[0] = goal.size
    u = rng.random((items, count))
    fell, rose = u < (goal.discordance + drops) / 2, u > 1 - (goal.discordance - drops) / 2
    family = recipe_verdicts(
        1.0 - rose, 1.0 - fell, names=[str(j) for j in range(count)], replications=400,
        margin=getattr(goal, "margin", 0.02), seed=int(rng.integers(2**31)),
    )  # fmt: skip
    if isinstance(goal, DropDetection):
        return float(family["0"].verdict == "degraded")
    if isinstance(goal, EquivalencePower):
        return float(family.counts["equivalent"] / count)
    low, high = family["0"].together.low or 0.0, family["0"].together.high or 0.0
    return (high - low) / 2.0


def null_rows(pool: ProcessPoolExecutor, studies: int) -> int:
    """Print how often studies without any effect claim one; how many rows fail."""
    print("\nFalse claims of studies without any effect (at most 5 %)")
    failed = 0
    for panels in (1, 12):
        seeds = np.random.SeedSequence([11, panels]).spawn(studies if panels > 1 else 2 * studies)
        drawn = pool.map(partial(panels_shown, panels, 120, 0.0), seeds, chunksize=5)
        share = float(np.mean([any(found) for found, _ in drawn]))
        passed = share <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / len(seeds))
        failed += not passed
        print(f"  {panels:2} panels: {100 * share:.1f} %{'' if passed else '  FAIL'}", flush=True)
    seeds = np.random.SeedSequence([12]).spawn(studies)
    losing = list(pool.map(partial(panels_shown, 12, 200, 0.1), seeds, chunksize=5))
    first, own = (100 * float(np.mean([shown[k][0] for shown in losing])) for k in (0, 1))
    print(f"  A loss of 10 points at 200 items in one of 12 panels ({studies} studies):")
    print(
        f"  the first sentence names it in {first:.0f} %, the second line counts it in {own:.0f} %"
    )
    return failed


def power_rows(pool: ProcessPoolExecutor, studies: int) -> int:
    """Print what plans promise and what studies of the planned size have; how many rows fail."""
    print(f"\nPower promised and had, {studies} studies")
    failed = 0
    for count in (1, 5, 15):
        goals: dict[str, Any] = {
            "equivalence ± 5, d .1": EquivalencePower(
                margin=0.05, discordance=0.1, conditions=count
            ),
            "a drop of 5, d .15": DropDetection(size=0.05, discordance=0.15, conditions=count),
            "precision ± 5, d .1": DropPrecision(
                half_width=0.05, discordance=0.1, conditions=count
            ),
        }
        for name, goal in goals.items():
            items = sample_size(goal).needed or 0
            seeds = np.random.SeedSequence([13, count]).spawn(studies)
            found = float(np.mean(list(pool.map(partial(planned, goal, items), seeds))))
            passed = abs(found - 0.8) <= 0.05 + 2.5 * 0.4 / math.sqrt(studies)
            shown = f"80 % promised, {100 * found:.0f} % had"
            if name.startswith("precision"):
                passed, shown = found <= 0.055, f"± {100 * found:.2f} points had"
            failed += not passed
            print(f"  K {count:2}, {name}: {items} items, {shown}{'' if passed else '  FAIL'}")
    return failed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the worlds, 100 studies")
    parser.add_argument("--studies", type=int, default=400, help="of every world, in hundreds")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--save", type=Path, help="a file of the studies done, to go on from")
    parser.add_argument("--worlds", nargs="+", default=[""], help="words of the worlds to draw")
    parser.add_argument("--only", choices=("table", "null", "power"), help="a third of it")
    given = parser.parse_args(arguments)
    worlds, studies = (QUICK, 100) if given.quick else (WORLDS, given.studies)
    worlds = tuple(w for w in worlds if any(word in w.name for word in given.worlds))
    started = time.monotonic()
    with ProcessPoolExecutor(given.processes) as pool:
        print(f"{len(worlds)} worlds, {studies} studies each\n", flush=True)
        failed = 0
        if given.only in (None, "table"):
            failed += table(draw(pool, worlds, studies, given.save), given.markdown)
        if given.only in (None, "null"):
            failed += null_rows(pool, studies // 2)
        if given.only in (None, "power"):
            failed += power_rows(pool, studies // 2)
    minutes = (time.monotonic() - started) / 60.0
    verdict = f"{failed} rows fail" if failed else "every row passes"
    print(f"\n{verdict} ({minutes:.1f} minutes)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
