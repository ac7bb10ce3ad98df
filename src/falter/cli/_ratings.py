"""`falter ratings`: summaries that people rate, on a sheet that does not say whose they are."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from falter.cli._options import store_option
from falter.engine import summary_ratings, summary_sheet
from falter.measures import HumanEvaluation
from falter.records import numbers as n
from falter.records.codec import to_json
from falter.records.errors import InvalidValue, UsageError
from falter.records.types import Estimate

__all__ = ["ratings"]


@click.group()
def ratings() -> None:
    """Summaries that people rate: a sheet out, and what they wrote in.

    For a run of the protocol 'relevance'. Neither command asks a model.
    """


def _drawn(command: Any) -> Any:
    """Add the options that say which summaries a sheet has."""
    articles = click.option(
        "--articles", type=click.IntRange(min=1), default=30, show_default=True,
        help="So many articles of each model and data set, drawn with the seed.",
    )  # fmt: skip
    seed = click.option(
        "--seed", type=int, default=0, show_default=True, help="The seed of draw and order."
    )
    return articles(seed(store_option(command)))


@ratings.command("export")
@click.argument("run", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here, not to stdout.")
@_drawn
def export_command(
    run: str | None, output: Path | None, articles: int, seed: int, store_path: Path
) -> None:
    """Write the sheet: three summaries of each article, in an order that says nothing.

    \b
    falter ratings export -o sheet.csv
    falter ratings import ann.csv bob.csv

    The expected summary, that of the article as it stands, and that of the article with its
    relevant sentences reworded. Give each rater a copy, to fill in faithfulness (0 or 1), coherence
    and relevance (1 to 5); what is left empty is not rated. RUN is a run or study, else the latest.
    """
    text = summary_sheet(store_path, run, articles=articles, seed=seed)
    rows = f"{sum(1 for _ in csv.reader(io.StringIO(text))) - 1:,} summaries to rate"
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
@click.argument("paths", metavar="FILE…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--run", help="The run or study that the sheet was made of  [default: the latest]")
@_drawn
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_command(
    paths: tuple[Path, ...],
    run: str | None,
    articles: int,
    seed: int,
    store_path: Path,
    as_json: bool,
) -> None:
    """Read filled-in sheets, one rater a file, and print how each kind of summary was rated.

    With the run, the articles and the seed that the sheet was made with. Several raters of a
    summary are averaged; intervals are over articles. Nothing is stored: keep the files.
    """
    if not paths:
        raise UsageError("No file is named", hint="the sheets that people filled in")
    for path in paths:
        if not path.is_file():
            raise UsageError(f"There is no file {path}", hint="name the filled-in sheets")
    found = summary_ratings(store_path, paths, run, articles=articles, seed=seed)
    if as_json:
        rows = [
            {"model": model, "task": task, **to_json(evaluation)}
            for (model, task), evaluation in found.items()
        ]
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo("\n".join(_lines(found)))


def _lines(found: Mapping[tuple[str, str], HumanEvaluation]) -> Iterator[str]:
    """For every model and data set: how each kind of summary was rated, and which is best."""
    for (model, task), evaluation in found.items():
        yield f"{model} on {task}"
        for arm, means in evaluation.means.items():
            yield f"  {arm}"
            for criterion, mean in means.items():
                sd = n.decimal(evaluation.sds[arm][criterion], 2)
                rated = f"{n.whole(mean.items)} rated"
                yield f"    {criterion:<13} {_mean(mean):<20} sd {sd}  {rated}"
        yield f"  best: {' and '.join(evaluation.best) or 'nothing was rated'}"


def _mean(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    low, high = (n.decimal(bound, 2) for bound in (estimate.low, estimate.high))
    return f"{n.decimal(estimate.value, 2)} [{low}, {high}]"
