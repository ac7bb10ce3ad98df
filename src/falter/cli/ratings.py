"""`falter ratings` and `falter judge`: human ratings, and their agreement with a judge."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from falter.cli.options import takes
from falter.cli.progress import Meter
from falter.measures.relevance import HumanEvaluation
from falter.records import numbers as n
from falter.records.codec import to_json
from falter.records.errors import InvalidValue, UsageError
from falter.records.types import Estimate
from falter.store.store import Store

if TYPE_CHECKING:
    from falter.engine.ratings import JudgeCalibration


@click.group()
def ratings() -> None:
    """Export summaries for human rating and import the ratings.

    For a run of the protocol 'relevance'. Neither command calls a model.
    """


@ratings.command("export")
@takes("ratings export")
def export_command(
    run: str | None, output: Path | None, articles: int, seed: int, store_path: Path
) -> None:
    """Write a rating sheet with three summaries of each article, in random order.

    \b
    falter ratings export -o sheet.csv
    falter ratings import ann.csv bob.csv

    The three are the expected summary, the model's summary of the unchanged article, and its
    summary with the relevant sentences reworded. Give each rater a copy, to fill in faithfulness
    (0 or 1), coherence and relevance (1 to 5). An empty cell is not rated.

    RUN is the id of a run or protocol run (its first digits are enough). The default is the newest.
    """
    from falter.engine.ratings import summary_sheet

    text = summary_sheet(store_path, run, articles=articles, seed=seed)
    # Without the header and the line of instructions
    rows = f"{sum(1 for _ in csv.reader(io.StringIO(text))) - 2:,} summaries to rate"
    if output is None:
        click.echo(text, nl=False)
        click.echo(rows, err=True)
        return
    if output.exists():
        raise InvalidValue("--output", str(output), "a file that is not there yet")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(text.encode("utf-8"))
    click.echo(f"{rows}: {output}", err=True)


@ratings.command("import")
@takes("ratings import")
def import_command(
    paths: tuple[Path, ...],
    run: str | None,
    articles: int,
    seed: int,
    store_path: Path,
    as_json: bool,
) -> None:
    """Read completed sheets, one file for each rater, and print the ratings of each summary type.

    Give the same run, --articles and --seed as for the export. Several ratings of a summary are
    averaged, and the intervals are over articles. Nothing is stored, so keep the files.
    """
    from falter.engine.ratings import summary_ratings

    if not paths:
        raise UsageError("No file is named", hint="name the sheets that people filled in")
    for path in paths:
        if not path.is_file():
            raise UsageError(f"There is no file {path}", hint="name the filled-in sheets")
    evaluations = summary_ratings(store_path, paths, run, articles=articles, seed=seed)
    if as_json:
        rows = [
            {"model": model, "task": task, **to_json(evaluation)}
            for (model, task), evaluation in evaluations.items()
        ]
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo("\n".join(_evaluation_lines(evaluations)))


def _evaluation_lines(evaluations: Mapping[tuple[str, str], HumanEvaluation]) -> Iterator[str]:
    """Yield, for every model and data set, the ratings of each type of summary and the best."""
    for (model, task), evaluation in evaluations.items():
        yield f"{model} on {task}"
        for arm, means in evaluation.means.items():
            yield f"  {arm}"
            for criterion, mean in means.items():
                sd = n.decimal(evaluation.sds[arm][criterion], 2)
                rated = f"{n.whole(mean.items)} rated"
                yield f"    {criterion:<13} {_mean_text(mean):<20} sd {sd}  {rated}"
        for criterion, alpha in evaluation.agreement.items():
            value, bounds = n.decimal(alpha.value, 2), alpha.interval
            ends = f"[{n.decimal(bounds.low, 2)}, {n.decimal(bounds.high, 2)}]"
            yield f"  raters agree on {criterion}: alpha {value} {ends}, {alpha.items} summaries"
        if evaluation.best:
            wins = ", ".join(f"{arm} {count}" for arm, count in evaluation.tally.items())
            yield f"  best, article by article: {wins}"
        yield f"  best: {' and '.join(evaluation.best) or 'nothing was rated'}"


def _mean_text(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    low, high = (n.decimal(bound, 2) for bound in (estimate.low, estimate.high))
    return f"{n.decimal(estimate.value, 2)} [{low}, {high}]"


# `falter judge`


@click.group()
def judge() -> None:
    """Measure how well an LLM judge agrees with human raters."""


@judge.command("calibrate")
@takes("judge calibrate")
def calibrate(
    model: str,
    limit: int | None,
    seed: int,
    swap: bool,
    store_path: Path,
    as_json: bool,
    **options: Any,
) -> int:
    """Let a judge rate pairs of texts that people have rated, and compare the ratings.

    \b
    falter judge calibrate --judge openai:NAME --limit 200
    falter judge calibrate mine.csv --judge openai:NAME --question similarity --ratings ann,bob

    FILE is CSV, JSON or JSONL. Without it, the 999 pairs of PandaLM's test set are used, with the
    preferences of three people. A preference is 1, 2, or 0 for neither; a similarity is 1 to 3.
    """
    from falter.engine.config import ModelSpec
    from falter.engine.ratings import BUNDLED_RATINGS, calibrate_judge

    told = ("path", "question", "first", "second", "context", "ratings")
    given = {name: options.pop(name) for name in told}
    rated = replace(BUNDLED_RATINGS, **{name: v for name, v in given.items() if v is not None})
    spec = ModelSpec(name=model, **options)
    meter = Meter(Console(stderr=True), {model: None})
    with Store(store_path) as store, meter:
        found = calibrate_judge(spec, rated, store, limit=limit, seed=seed, swap=swap, watch=meter)
    if as_json:
        click.echo(json.dumps(to_json(found), indent=2))
    else:
        click.echo("\n".join(_calibration_lines(found)))
    return 1 if found.failed else 0


def _calibration_lines(found: JudgeCalibration) -> Sequence[str]:
    lines = [
        f"{found.model} on {n.whole(found.pairs)} pairs, {found.question}",
        f"verdicts read at once {found.read:,}, at the second try {found.read_again:,}, "
        f"not read {found.unread:,}, failed {found.failed:,}",
    ]
    for title, figures in (
        ("people among themselves", found.people),
        ("the judge against people", found.judge),
        ("shares", (*filter(None, [found.swapped]), *found.rates)),
    ):
        if figures:
            lines += ["", title]
        for figure in figures:
            interval = ""
            if figure.low is not None and figure.high is not None:
                interval = f"  [{n.coefficient(figure.low)}, {n.coefficient(figure.high)}]"
            value = n.coefficient(figure.value)
            lines.append(f"  {figure.name:<42} {value:>5}{interval}  ({figure.items:,} pairs)")
    return lines
