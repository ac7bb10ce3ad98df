"""`falter analyze`: results that others produced, in every form of report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from falter.analysis import Analysis
from falter.core.errors import InvalidValue, UsageError
from falter.experiment import analyze_files
from falter.readers import CONDITION_FROM, ColumnMap, LogChoice
from falter.report import across_csv, as_csv, as_json, as_markdown, html, terminal

__all__ = ["analyze", "analyzed", "reading_options"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_COLUMN = "COLUMN"
F = TypeVar("F", bound=Callable[..., Any])

_READING = (
    click.option("--baseline", metavar="NAME", help="The condition drops are taken from."),
    click.option("--item", multiple=True, metavar=_COLUMN, help="The column that names the items."),
    click.option("--condition", multiple=True, metavar=_COLUMN, help="That of the conditions."),
    click.option(
        "--model", multiple=True, metavar=_COLUMN,
        help="That of the models; with logs, which models to use.",
    ),
    click.option(
        "--task", multiple=True, metavar=_COLUMN,
        help="That of the tasks; with logs, which tasks to use, e.g. 'mmlu*'.",
    ),
    click.option("--run", "run_", multiple=True, metavar=_COLUMN, help="That of the runs."),
    click.option(
        "--score", multiple=True, metavar=_COLUMN,
        help="That of the scores; several make a wide table, each a condition.",
    ),
    click.option("--output", multiple=True, metavar=_COLUMN, help="That of the answers."),
    click.option(
        "--outcome", multiple=True, metavar=_COLUMN,
        help="That of the outcomes: scored, unparsed, refused, failed, missing.",
    ),
    click.option("--cluster", multiple=True, metavar=_COLUMN, help="That of what items share."),
    click.option("--wide", is_flag=True, help="A row is an item, every other column a condition."),
    click.option("--metric", metavar="NAME", help="With logs: the score  [default: acc, or first]"),
    click.option("--filter", "filter_", metavar="NAME", help="With lm-eval logs: the filter."),
    click.option(
        "--condition-from", type=click.Choice(CONDITION_FROM), default="auto", show_default=True,
        help="With logs: what makes a condition.",
    ),
    click.option("--unparsed", default="wrong", show_default=True,
                 help="Unreadable answers count as wrong or are excluded."),
    click.option("--margin", type=float, default=2.0, show_default=True,
                 help="Points of drop that count as equivalent."),
    click.option("--level", type=float, default=0.95, show_default=True,
                 help="The level of the intervals."),
    click.option("--seed", type=int, default=0, show_default=True, help="The seed."),
)  # fmt: skip


def reading_options(command: F) -> F:
    """The options that say how results of others are read."""
    for option in reversed(_READING):
        command = option(command)
    return command


def analyzed(paths: tuple[Path, ...], given: dict[str, Any]) -> Analysis:
    """The analysis of files, by the options of `reading_options`."""
    if given["unparsed"] not in ("wrong", "excluded"):
        raise InvalidValue("--unparsed", given["unparsed"], "'wrong' or 'excluded'")
    if not 0.0 < given["margin"] < 100.0:
        raise InvalidValue("--margin", given["margin"], "points, above 0 and below 100")
    logs = {"tasks": given["task"], "models": given["model"]}
    columns = {
        role: given[name]
        for role, name in (("item", "item"), ("condition", "condition"), ("model", "model"),
                           ("task", "task"), ("run", "run_"), ("score", "score"),
                           ("output", "output"), ("outcome", "outcome"), ("cluster", "cluster"))
    }  # fmt: skip
    return analyze_files(
        paths,
        columns=ColumnMap(**columns, layout="wide" if given["wide"] else "auto"),
        choice=LogChoice(
            metric=given["metric"],
            filter=given["filter_"],
            condition_from=given["condition_from"],
            **logs,
        ),
        baseline=given["baseline"],
        unparsed=given["unparsed"],
        level=given["level"],
        margin=given["margin"] / 100.0,
        seed=given["seed"],
    )


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH…")
@reading_options
@click.option("--html", "html_path", type=_FILE, help="Write a self-contained HTML page.")
@click.option("--md", "md_path", type=_FILE, help="Write Markdown tables.")
@click.option(
    "--csv", "csv_path", type=_FILE,
    help="Write a row a recipe; what goes across panels beside it, as NAME_across.csv.",
)  # fmt: skip
@click.option("--json", "show_json", is_flag=True, help="Print everything as JSON.")
def analyze(
    paths: tuple[Path, ...],
    html_path: Path | None,
    md_path: Path | None,
    csv_path: Path | None,
    show_json: bool,
    **given: Any,
) -> None:
    """Analyse results that others produced. Calls no model.

    PATH is a table of scores (.csv, .tsv, .parquet, also .gz), long or wide; the samples that
    lm-evaluation-harness writes with --log_samples; logs of Inspect; or a folder of these.
    Columns with usual names are found; what was taken for what stands in the notes. A column can
    be given as =TEXT (the same everywhere) or @file (the name of the file).

    \b
    falter analyze scores.csv --baseline original --html report.html
    falter analyze judged.csv --item subset,item --model judge --run swap --baseline Vanilla
    falter analyze results/plain results/shouted --baseline plain
    falter analyze logs/ --metric accuracy --condition-from args
    """
    if not paths:
        raise UsageError("Nothing to analyse", hint="falter analyze scores.csv; see --help")
    found = analyzed(paths, given)
    written: dict[Path | None, Callable[[], str]] = {
        html_path: lambda: html(found),
        md_path: lambda: as_markdown(found),
        csv_path: lambda: as_csv(found),
    }
    if csv_path is not None:
        beside = csv_path.with_name(f"{csv_path.stem}_across.csv")
        written[beside] = lambda: across_csv(found)
    files = {path: render for path, render in written.items() if path is not None}
    for path, render in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(), "utf-8")
        click.echo(f"report: {path}", err=True)
    if show_json:
        click.echo(as_json(found).rstrip("\n"))
    elif not files:
        terminal(found, Console())
