"""How many requests does thrift save, and are its intervals right? One command.

    python bench/thrift.py [--csv SPEC …] [--store FILE …] [--seeds 400] [--shares 0.1,0.2,…]

Complete tables of items × conditions are replayed: a `budget` is laid out over them, as a run does
it, all other cells are hidden, and what is estimated is held against the complete table. Nothing is
tuned here: the layout and the estimators are those of `falter.stats` that a run uses.

Tables: three drawn ones (`ProbitModel`: easy and hard items, prompts that break different items);
a run of the `simulated` model, asked through falter; and what is named:

    --csv "FILE,item=COLUMN,condition=COLUMN+COLUMN,score=COLUMN[,COLUMN=VALUE …][,baseline=NAME]"
    --store FILE        every panel of the last run in a store, unchanged prompts as the baseline's

Beside the budget's layout (`mask`) stand as many requests spent on whole rows of some items
(`items`), and on cells drawn without any order (`cells`). `within` is the error that 95 % of the
seeds stay below; `cover` how often a 95 % interval for exactly these items holds the truth. `worst
recipe` is the recipe whose interval does worst; `by luck` is what the worst of so many would show
if all covered 95 %.

`--parts curve` prints brittleness and average drop alone, for every share, as a table in Markdown:
how far 95 % of the seeds stay from the whole table, the coverage, and the requests that an error
below `BOUNDS` takes, read off between the shares.

Then the measures of a report about items like these, on tables drawn anew for each seed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.stats.layout import budget_layout
from falter.stats.subsample import SampleEstimate, masked_brittleness, masked_drop

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "support")]
from probit import ProbitModel, simulate_outcomes, simulated_truth  # noqa: E402

Floats = NDArray[np.float64]

SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.33, 0.5, 0.7)
PARTS = ("all", "replay", "curve", "report")
BOUNDS = {"brittleness": 0.03, "average drop": 0.02}
EFFECTS = (0, 0, 0.03, 0.06, 0.09, 0.13, 0.17, 0.22, 0.27, 0.32, 0.0, 0.02, 0.05, 0.1, 0.14, 0.2)
DRAWN = {
    "drawn, brittle": ProbitModel(ability=0.3, effects=EFFECTS, interaction=0.9),
    "drawn, sturdy": ProbitModel(ability=0.9, effects=EFFECTS, difficulty=1.2, interaction=0.35),
    "drawn, nearly all right": ProbitModel(ability=2.0, effects=EFFECTS, interaction=0.3),
}


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A complete table of outcomes: items × conditions, the baseline first."""

    name: str
    outcomes: Floats
    real: bool

    @property
    def calls(self) -> int:
        return int(self.outcomes.size)


@dataclass(kw_only=True)
class Tally:
    """Errors and coverage of one number over the seeds."""

    truth: float
    errors: list[float] = field(default_factory=list)
    covered: list[bool] = field(default_factory=list)

    def add(self, estimate: SampleEstimate) -> None:
        low, high = estimate.interval.low, estimate.interval.high
        if estimate.value is None:
            return
        self.errors.append(abs(estimate.value - self.truth))
        if low is None or high is None:
            return
        self.covered.append(low - 1e-9 <= self.truth <= high + 1e-9)

    @property
    def within(self) -> float:
        return float(np.quantile(self.errors, 0.95)) if self.errors else math.nan

    @property
    def coverage(self) -> float:
        return float(np.mean(self.covered)) if self.covered else math.nan


# The tables


def drawn() -> Iterator[Matrix]:
    for name, model in DRAWN.items():
        yield Matrix(name=name, outcomes=simulate_outcomes(model, 1000, seed=7), real=False)


def own_run(items: int) -> Matrix:
    """The table of a run of the simulated model, asked through falter and read from its store."""
    import falter

    rows = [{"question": f"What is {n} plus {n % 17}?", "answer": str(n + n % 17)}
            for n in range(items)]  # fmt: skip
    recipes = ["typos", "drop_stop_words", "space_sequences", "word_split",
               "word_merge", "persona", "emotion", "pad_quotes", "pad_newlines", "pad_spaces",
               "punctuation_spaces"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "own.db"
        falter.run(data={"rows": rows, "target": "answer"}, template="{question}",
                   models=["simulated"], recipes=recipes, store=store)  # fmt: skip
        return next(stored(store))


def stored(path: Path) -> Iterator[Matrix]:
    """The panels of the last run in a store."""
    from falter.analysis.table import run_tables
    from falter.engine.scoring import run_scorers
    from falter.store.store import Store

    with Store(path, writes=False) as store:
        run = store.find_run().run
        for table in run_tables(store, run, run_scorers(run)):
            outcomes = table.carry(table.matrix())[:, [0, *table.columns]]
            whole = outcomes[~np.isnan(outcomes).any(axis=1)]
            name = f"{table.panel.model.label} on {table.panel.task}"
            yield Matrix(name=name, outcomes=whole, real=not table.panel.model.simulated)


def from_csv(spec: str) -> Matrix:
    """The table that a specification picks out of a file, without items that lack a cell."""
    path, *parts = spec.split(",")
    options = dict(part.split("=", 1) for part in parts)
    item, score = options.pop("item"), options.pop("score")
    names, baseline = options.pop("condition").split("+"), options.pop("baseline", None)
    data = Path(path).read_bytes()
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode()
    cells: dict[str, dict[str, float]] = {}
    with io.StringIO(text) as file:
        for row in csv.DictReader(file):
            if any(row[column] != value for column, value in options.items()):
                continue
            condition = " ".join(row[name] for name in names)
            keys = [row[name] for name in item.split("+")]
            value = row[score]
            cells.setdefault(condition, {})[" ".join(keys)] = float(value) if value else math.nan
    conditions = sorted(cells)
    if baseline is not None:
        conditions.sort(key=lambda name: name != baseline)
    items = sorted(set.intersection(*(set(column) for column in cells.values())))
    outcomes = np.array([[cells[c][i] for c in conditions] for i in items])
    outcomes = outcomes[~np.isnan(outcomes).any(axis=1)]
    label = " ".join([Path(path).name.split(".")[0], *options.values()])
    return Matrix(name=label, outcomes=outcomes, real=True)


# The replay


def replay(matrix: Matrix, share: float, seeds: int) -> dict[str, dict[str, Tally]]:
    """By number (brittleness, average drop, each recipe) and by way of asking: its tally."""
    y = matrix.outcomes
    items, width = y.shape
    keys = [str(i) for i in range(items)]
    truth = truths(y)
    tallies = {
        number: {way: Tally(truth=value) for way in ("mask", "items", "cells")}
        for number, value in truth.items()
    }
    for seed in range(seeds):
        layout = budget_layout(keys, [1.0] * width, share * y.size, seed=seed)
        hidden = np.where(layout.mask, y, np.nan)
        for number, estimate in estimates(hidden, items).items():
            tallies[number]["mask"].add(estimate)
        rng = np.random.default_rng(seed)
        rows = rng.permutation(items)[: max(2, layout.requests // width)]
        whole = np.full_like(y, np.nan)
        whole[rows] = y[rows]
        for number, estimate in estimates(whole, items).items():
            tallies[number]["items"].add(estimate)
        loose = np.full(y.size, np.nan)
        chosen = rng.permutation(y.size)[: layout.requests]
        loose[chosen] = y.ravel()[chosen]
        for number, value in of_cells(loose.reshape(y.shape)).items():
            tallies[number]["cells"].errors.append(abs(value - truth[number]))
    return tallies


def truths(y: Floats) -> dict[str, float]:
    return {number: e.value for number, e in estimates(y, len(y)).items() if e.value is not None}


def estimates(table: Floats, population: int) -> dict[str, SampleEstimate]:
    """Return a report's numbers about exactly these items, of a table with hidden cells."""
    found = {
        "brittleness": masked_brittleness(table, baseline=0, population=population),
        "average drop": masked_drop(table, 0, population=population),
    }
    for column in range(1, table.shape[1]):
        found[f"recipe {column}"] = masked_drop(table[:, [0, column]], 0, population=population)
    return found


def of_cells(table: Floats) -> dict[str, float]:
    """The plain estimates from cells without any order: column means, and pairs within items."""
    columns = [c[~np.isnan(c)] for c in table.T]
    means = [float(c.mean()) if len(c) else math.nan for c in columns]
    drops = {f"recipe {n}": means[0] - mean for n, mean in enumerate(means) if n}
    share = masked_brittleness(table).value
    drops = {name: value for name, value in drops.items() if not math.isnan(value)}
    average = {"average drop": float(np.mean(list(drops.values())))} if drops else {}
    return {"brittleness": math.nan if share is None else share, **average, **drops}


# The requests that a small error takes


def curve(matrix: Matrix, shares: Sequence[float], seeds: int) -> Iterator[str]:
    """Rows of a table: what comes of each share, and what share a small error takes."""
    y = matrix.outcomes
    items, width = y.shape
    keys, truth = [str(i) for i in range(items)], truths(y)
    tallies = {number: {share: Tally(truth=truth[number]) for share in shares} for number in BOUNDS}
    for share in shares:
        for seed in range(seeds):
            layout = budget_layout(keys, [1.0] * width, share * y.size, seed=seed)
            hidden = np.where(layout.mask, y, np.nan)
            found = masked_brittleness(hidden, baseline=0, population=items)
            tallies["brittleness"][share].add(found)
            tallies["average drop"][share].add(masked_drop(hidden, 0, population=items))
    for number, bound in BOUNDS.items():
        of_number = tallies[number]
        scale, digits = (1, 3) if number == "brittleness" else (100, 1)
        cells = " | ".join(f"{scale * of_number[share].within:.{digits}f}" for share in shares)
        covers = [100 * of_number[share].coverage for share in shares]
        taken = _taken([(share, of_number[share].within) for share in shares], bound)
        needs = "more" if taken is None else f"{taken * y.size:,.0f} ({taken:.0%})"
        yield (
            f"| {matrix.name} ({items:,} × {width}) | {number} | {cells} | "
            f"{min(covers):.1f}–{max(covers):.1f} % | {needs} |"
        )


def _taken(points: Sequence[tuple[float, float]], bound: float) -> float | None:
    """The share from which on the error stays within a bound: a line between logarithms."""
    above = [n for n, (_, error) in enumerate(points) if error > bound]
    if not above:
        return points[0][0]
    last = above[-1]
    if last == len(points) - 1:
        return None
    (low, more), (high, less) = points[last], points[last + 1]
    less = max(less, 1e-9)
    part = math.log(more / bound) / math.log(more / less)
    return float(low * (high / low) ** part)


# What a report says about items like these


def like_these(seeds: int) -> Iterator[str]:
    """The measures of a report on budgeted tables, beside what the drawn model implies."""
    from falter.measures.averages import micro_average
    from falter.measures.drops import accuracy_drop
    from falter.measures.flips import flip_rate
    from falter.measures.variance import prompt_share, variance_components

    keys = [str(i) for i in range(600)]
    for name, model in DRAWN.items():
        known = simulated_truth(model)
        found: dict[str, list[tuple[Any, ...]]] = {}
        crossed = known.crossed
        truth = {
            "average drop": known.drops.mean(),
            "one recipe": known.drops[9],
            "flip rate": known.discordance.mean(),
            "brittleness": known.plugin["brittleness"],
            "prompt share": crossed["brittleness_main"] + crossed["brittleness_interaction"],
        }
        for seed in range(seeds):
            layout = budget_layout(keys, [1.0] * 16, 0.2 * 600 * 16, seed=seed)
            y = simulate_outcomes(model, 600, seed=10_000 + seed)
            x = np.where(layout.mask, y, np.nan)[sorted(layout.order)]
            there = ~np.isnan(x[:, 1:])
            for number, e in {
                "average drop": micro_average(x[:, :1] - x[:, 1:]),
                "one recipe": accuracy_drop(x[:, 0], x[:, 10]),
                "flip rate": flip_rate(x[:, :1], x[:, 1:, None], changed=there).rate,
                "brittleness": variance_components(x).brittleness,
                "prompt share": prompt_share(x[:, :, None]).share,
            }.items():
                inside = e.low is not None and e.high is not None
                inside = inside and e.low <= truth[number] <= e.high
                found.setdefault(number, []).append((e.value, inside))
        for number, pairs in found.items():
            values = np.array([value for value, _ in pairs if value is not None])
            z = (values.mean() - truth[number]) / (values.std(ddof=1) / math.sqrt(len(values)))
            covered = 100 * np.mean([hit for _, hit in pairs])
            yield f"{name}, 20 %: {number} covers {covered:.1f} %, bias {z:+.1f} errors"


# The table of results


def report(matrix: Matrix, shares: Sequence[float], seeds: int) -> list[str]:
    """Print one matrix; the lines of the summary."""
    y = matrix.outcomes
    truth = truths(y)
    recipes = [number for number in truth if number.startswith("recipe")]
    kind = "real" if matrix.real else "simulated"
    drop, share = 100 * truth["average drop"], truth.get("brittleness", math.nan)
    print(f"\n{matrix.name} ({kind}): {len(y):,} items × {y.shape[1]} conditions = "
          f"{y.size:,} calls; baseline {100 * y[:, 0].mean():.1f} %, brittleness {share:.3f}, "
          f"average drop {drop:.2f} points")  # fmt: skip
    print(
        "         |  brittleness within         cover   |  average drop within, points"
        "   cover   | one recipe within   worst recipe"
    )
    print(
        "   calls |    mask   items   cells      mask   |    mask   items   cells  "
        "       mask   |   mask    items     covers"
    )
    lowest: dict[str, dict[str, float]] = {number: {} for number in BOUNDS}
    for part in shares:
        found = replay(matrix, part, seeds)
        calls = round(part * y.size)
        for number, bound in BOUNDS.items():
            for way in ("mask", "items", "cells"):
                if found[number][way].within <= bound:
                    lowest[number].setdefault(way, calls)
        worst = min(found[r]["mask"].coverage for r in recipes)
        typical = {
            way: 100 * float(np.median([found[r][way].within for r in recipes]))
            for way in ("mask", "items")
        }
        b, d = found["brittleness"], found["average drop"]
        print(f"{calls:8,} | {b['mask'].within:7.3f} {b['items'].within:7.3f} "
              f"{b['cells'].within:7.3f}   {100 * b['mask'].coverage:5.1f} %"
              f"  | {100 * d['mask'].within:7.2f} {100 * d['items'].within:7.2f} "
              f"{100 * d['cells'].within:7.2f}      {100 * d['mask'].coverage:5.1f} %"
              f"  | {typical['mask']:6.1f}  {typical['items']:6.1f}    "
              f"{100 * worst:5.1f} %", flush=True)  # fmt: skip
    counts = np.random.default_rng(0).binomial(seeds, 0.95, (4000, len(recipes)))
    luck = counts.min(axis=1) / seeds
    low, high = np.quantile(luck, (0.025, 0.975))
    print(f"  the worst of {len(recipes)} would cover {100 * low:.1f} to {100 * high:.1f} % "
          f"by luck in {seeds} seeds")  # fmt: skip
    return [*_reached(matrix, lowest)]


def _reached(matrix: Matrix, lowest: dict[str, dict[str, float]]) -> Iterator[str]:
    for number, bound in BOUNDS.items():
        unit = f"{bound:.2f}" if number == "brittleness" else f"{100 * bound:g} points"
        calls = lowest[number].get("mask")
        if calls is None:
            yield f"{matrix.name}: {number} within {unit} was reached at none of these budgets"
        else:
            plain = lowest[number].get("items")
            beside = f"{matrix.calls / plain:.1f} × by items" if plain else "not reached by items"
            yield (f"{matrix.name}: {number} within {unit} from {calls:,} calls on, "
                   f"{matrix.calls / calls:.1f} × fewer than all ({beside})")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", action="append", default=[], metavar="SPEC")
    parser.add_argument("--store", action="append", default=[], metavar="FILE")
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--shares", default=",".join(map(str, SHARES)))
    parser.add_argument("--only", action="store_true", help="only what --csv and --store name")
    parser.add_argument("--parts", choices=PARTS, default="all")
    parser.add_argument("--items", type=int, default=600, help="items of the run of our own")
    args = parser.parse_args()
    shares = [float(part) for part in args.shares.split(",")]
    matrices = [] if args.only else [*drawn(), own_run(args.items)]
    matrices += [from_csv(spec) for spec in args.csv]
    matrices += [m for path in args.store for m in stored(Path(path))]
    lines: list[str] = []
    if args.parts == "curve":
        shown = " | ".join(f"{share:.0%}" for share in shares)
        lines = [f"| table | within, for | {shown} | covers | within .03 or 2 points takes |",
                 "|---" * (len(shares) + 4) + "|"]  # fmt: skip
        lines += [line for matrix in matrices for line in curve(matrix, shares, args.seeds)]
    if args.parts in ("all", "replay"):
        lines += [line for matrix in matrices for line in report(matrix, shares, args.seeds)]
    if args.parts in ("all", "report"):
        lines += like_these(args.seeds)
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
