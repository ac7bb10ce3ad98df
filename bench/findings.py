"""Findings on real models that run here, each a question with its figure. One command:

    python bench/findings.py NAME [--store FILE] [--to FOLDER] [--model MODEL] [--limit N]

NAME is drop, remedies or everyday.

Runs the experiment into a store of its own (`findings-*.db`; what is stored is not asked again),
prints the tables, and writes NAME.svg and NAME.json, the numbers of the figure, to docs/findings.
The pages there say what the numbers mean and what cannot be concluded. `drop` and `remedies` ask
SmolLM2, which is fetched once; `everyday` asks the model that `bench/real_models.py 0.5b` brings.
The time counted is that of this process, asking and analysing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

import falter  # noqa: E402
from falter.engine.results import Result  # noqa: E402
from falter.perturbations.recipes import NOISE_FLOOR, RECIPE_SETS  # noqa: E402
from falter.records.figures import Breakdown, Forest, ForestRow, Grid, Unit  # noqa: E402
from falter.records.numbers import shown  # noqa: E402
from falter.records.types import Estimate  # noqa: E402
from falter.report.drawing.pictures import picture  # noqa: E402
from falter.stats.paired import paired_difference  # noqa: E402

AS_IT_COMES = "smollm2"
DROP = {
    "task": "basics",
    "limit": 120,
    "models": [{"name": AS_IT_COMES, "concurrency": 1}],
    "recipes": ["typos", "word_split", "casing", "pad_newlines", "persona"],
}
REMEDIES = {
    "protocol": "mend",
    "task": "basics",
    "limit": 140,
    "models": [{"name": AS_IT_COMES, "concurrency": 1}],
    "recipes": ["typos", "pad_newlines"],
    "remedies": [
        "tidy_lines",
        "correct_spelling",
        "mention_slips",
        "restate",
        "delimiters",
        "examples",
        "vote",
    ],
}
# How people write, and the stressors of the published tables; what both have counts for neither.
PEOPLE = tuple(r for r in RECIPE_SETS["everyday"] if r != NOISE_FLOOR)
STRESSORS = tuple(r for r in RECIPE_SETS["brittlebench"] if r != NOISE_FLOOR)
EVERYDAY = {
    "task": "basics",
    "limit": 30,
    "models": [{"name": "gguf:Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf", "concurrency": 1}],
    "recipes": [*PEOPLE, *STRESSORS],
}


# Figures


def parts(result: Result) -> Breakdown:
    """Each recipe's drop in its parts, for the model as it comes."""
    figure = result.figure("parts")
    assert isinstance(figure, Breakdown)
    return figure


def gains(result: Result) -> Forest:
    """Return the gain of each remedy under perturbation."""
    grid = _grid(result, "remedies")
    named = {str(row[2]): row[3] for row in grid.rows}
    return _forest(named, "Gain", "remedy", "gain", grid.title)


def costs(result: Result) -> Forest:
    """Return the costs of people's noise and of the stressors, and the difference, paired by item.

    An item's value is the mean over the recipes of a set that apply to it; a prompt that a recipe
    left as it was counts as it is.
    """
    values: dict[str, dict[str, float]] = {}
    for row in result.scores():
        if row["value"] is not None and row["status"] != "not_applicable":
            values.setdefault(row["item"], {})[row["recipe"]] = row["value"]

    def means(recipes: Sequence[str]) -> list[float]:
        known = ([found[r] for r in recipes if r in found] for found in values.values())
        return [fmean(each) if each else nan for each in known]

    clean, people, stressed = means(["baseline"]), means(PEOPLE), means(STRESSORS)
    named = {
        "how people write": _cost(clean, people),
        "stressors": _cost(clean, stressed),
        "stressors less how people write": _cost(people, stressed),
    }
    title = "What people's noise costs, and what stressors cost"
    return _forest(named, "Drop", "prompts", "points", title)


def _cost(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Return the mean drop of the second scores: Student's t over items."""
    difference = paired_difference(before, after)
    return Estimate(
        measure="drop",
        value=difference.value,
        status=difference.status,
        low=difference.interval.low,
        high=difference.interval.high,
        p_value=difference.p_value,
        method=difference.interval.method,
        items=difference.items,
        excluded=difference.excluded,
    )


def _grid(result: Result, name: str) -> Grid:
    figure = result.figure(name)
    assert isinstance(figure, Grid)
    return figure


def _forest(named: dict[str, Any], measured: str, of: str, unit: Unit, title: str) -> Forest:
    rows = tuple(
        ForestRow(label=label, kind="member", estimate=estimate)
        for label, estimate in named.items()
    )
    return Forest(name=of, title=title, measured=measured, of=of, rows=rows, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A question, what is run for it, its figure, and the tables that are printed."""

    question: str
    store: str
    settings: dict[str, Any]
    figure: Callable[[Result], Forest | Breakdown]
    tables: tuple[str, ...]


FINDINGS = {
    "drop": Finding(
        question="Of this drop, how much is real?",
        store="drop",
        settings=DROP,
        figure=parts,
        tables=("parts", "drops"),
    ),
    "remedies": Finding(
        question="Which remedy helps?",
        store="remedies",
        settings=REMEDIES,
        figure=gains,
        tables=("remedies-answer", "remedies", "remedies-halves"),
    ),
    "everyday": Finding(
        question="Does the noise that people make cost less than stressors?",
        store="everyday",
        settings=EVERYDAY,
        figure=costs,
        tables=("drops-1", "meaning"),
    ),
}


def numbers(figure: Forest | Breakdown) -> dict[str, str]:
    """The numbers of a figure as its page has to say them, by row."""
    if isinstance(figure, Breakdown):
        return {row.label: shown(row.whole, figure.unit).text for row in figure.rows}
    rows = [(row.label, row.estimate) for row in figure.rows]
    return {label: shown(e, figure.unit).text for label, e in rows if e is not None}


def minutes_before(folder: Path, run: str) -> float | None:
    """Return the minutes that the answers of this run took, when they were asked for."""
    for path in sorted(folder.glob("*.json")):
        known = json.loads(path.read_text("utf-8"))
        if known["run"] == run:
            return float(known["processor_minutes"])
    return None


def processor_minutes() -> float:
    return sum(os.times()[:4]) / 60


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=FINDINGS)
    parser.add_argument("--store", type=Path, help="by default one of its own here")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "findings")
    parser.add_argument("--model", help="another model, for a finding that asks one")
    parser.add_argument("--limit", type=int, help="another number of items")
    options = parser.parse_args(arguments)
    finding = FINDINGS[options.name]
    settings = dict(finding.settings)
    if options.limit:
        settings["limit"] = options.limit
    if options.model:
        settings["models"] = [{"name": options.model, "concurrency": 1}]
    store = options.store or Path(f"findings-{finding.store}.db")
    sent = [0]

    def watch(progress: Sequence[Any]) -> None:
        sent[0] = max(sent[0], sum(lane.sent for lane in progress))

    result = falter.run(settings, store=store, watch=watch)
    figure = finding.figure(result)
    drawn = picture(figure)
    print(finding.question, result.summary(*finding.tables, width=150), sep="\n\n")
    for label, number in numbers(figure).items():
        print(f"{label}: {number}")
    run = result.study.id
    before = minutes_before(options.to, run)
    spent = processor_minutes() if sent[0] or before is None else before
    facts = {
        "question": finding.question,
        "run": run,
        "processor_minutes": round(spent, 1),
        "numbers": numbers(figure),
    }
    options.to.mkdir(parents=True, exist_ok=True)
    (options.to / f"{options.name}.svg").write_text(f"{drawn}\n", encoding="utf-8")
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    (options.to / f"{options.name}.json").write_text(f"{text}\n", encoding="utf-8")
    print(f"{spent:.1f} minutes of processor; wrote {options.name}.svg and {options.name}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
