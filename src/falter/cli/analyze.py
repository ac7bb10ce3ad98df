"""`falter analyze`: a report of results from elsewhere, in any form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from falter.cli.options import FORM_NAMES, form_options, show
from falter.readers.results import CONDITION_FROM
from falter.records.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from falter.analysis.results import Analysis


_COLUMN = "COLUMN"
F = TypeVar("F", bound=Callable[..., Any])

_NAMES = (
    click.option(
        "--model", multiple=True, metavar=_COLUMN,
        help="The column of models; with logs, the models to use.",
    ),
    click.option(
        "--task", multiple=True, metavar=_COLUMN,
        help="The column of tasks; with logs, the tasks to use, e.g. 'mmlu*'.",
    ),
    click.option("--run", "run_", multiple=True, metavar=_COLUMN, help="The column of runs."),
)  # fmt: skip
_FILE_COLUMNS = (
    click.option("--item", multiple=True, metavar=_COLUMN, help="The column that names the items."),
    click.option("--condition", multiple=True, metavar=_COLUMN, help="The column of conditions."),
    click.option(
        "--score", multiple=True, metavar=_COLUMN,
        help="The column of scores; several make a wide table, each a condition.",
    ),
    click.option("--output", multiple=True, metavar=_COLUMN, help="The column of answers."),
    click.option(
        "--outcome", multiple=True, metavar=_COLUMN,
        help="The column of outcomes: scored, unparsed, truncated, refused, failed, missing.",
    ),
    click.option(
        "--cluster", multiple=True, metavar=_COLUMN,
        help="The column that says which items belong together, e.g. to the same passage.",
    ),
    click.option(
        "--wide", is_flag=True, help="Each row is an item, and every other column a condition."
    ),
    click.option(
        "--metric", metavar="NAME", help="With logs: the score to use  [default: acc, or the first]"
    ),
    click.option(
        "--filter", "filter_", metavar="NAME", help="With lm-eval logs: the filter to use."
    ),
    click.option(
        "--condition-from", type=click.Choice(CONDITION_FROM), default="auto",
        show_default=True,
        help="With logs: what tells conditions apart.",
    ),
    click.option(
        "--scale", metavar="NUMBER",
        help="The scale of the scores: 100 for 0 to 100, 1,5 for 1 to 5  [default: 0 to 1]",
    ),
)  # fmt: skip
_COLUMNS = (*_NAMES, *_FILE_COLUMNS)
_READING = (
    click.option("--baseline", metavar="NAME", help="The condition that drops are measured from."),
    *_COLUMNS,
    click.option("--unparsed", default="wrong", show_default=True,
                 help="How unreadable answers count: wrong or excluded."),
    click.option("--margin", type=float, default=2.0, show_default=True,
                 help="A drop within so many points counts as equivalent."),
    click.option("--level", type=float, default=0.95, show_default=True,
                 help="The level of the intervals."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
                 help="The seed of everything random."),
)  # fmt: skip


COLUMN_ROLES = (
    "item", "condition", "model", "task", "run", "score", "output", "outcome", "cluster",
)  # fmt: skip
COLUMN_NAMES = (
    *("run_" if role == "run" else role for role in COLUMN_ROLES),
    "wide",
    "metric",
    "filter_",
    "condition_from",
    "scale",
)


def reading_options(command: F) -> F:
    """Add the options that say how results from elsewhere are read."""
    for option in reversed(_READING):
        command = option(command)
    return command


def column_options(command: F) -> F:
    """Add those that say which column holds what."""
    for option in reversed(_COLUMNS):
        command = option(command)
    return command


def file_reading_options(command: F) -> F:
    """Add those that a command takes whose own options choose models and tasks."""
    for option in reversed((_READING[0], *_FILE_COLUMNS)):
        command = option(command)
    return command


def result_options(command: F) -> F:
    """Add all that say how results are read, without those that say how they are analysed."""
    return _READING[0](column_options(command))


def read_as(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options about reading out of `options`: columns, logs, scale, baseline."""
    from falter.readers.cells import scale_of
    from falter.readers.results import LogChoice
    from falter.readers.tables import ColumnMap

    columns = {role: options.pop("run_" if role == "run" else role, ()) for role in COLUMN_ROLES}
    wide, scale = options.pop("wide", False), options.pop("scale")
    return {
        "columns": ColumnMap(**columns, layout="wide" if wide else "auto"),
        "choice": LogChoice(
            metric=options.pop("metric"),
            filter=options.pop("filter_"),
            condition_from=options.pop("condition_from"),
            tasks=columns["task"],
            models=columns["model"],
        ),
        "scale": None if scale is None else scale_of(scale),
        "baseline": options.pop("baseline"),
    }


def analyzed(paths: tuple[Path, ...], options: dict[str, Any]) -> Analysis:
    """Analyse files with the options of `reading_options`."""
    from falter.engine.analyze import analyze_files

    if options["unparsed"] not in ("wrong", "excluded"):
        raise InvalidValue("--unparsed", options["unparsed"], "'wrong' or 'excluded'")
    if not 0.0 < options["margin"] < 100.0:
        raise InvalidValue("--margin", options["margin"], "points, above 0 and below 100")
    return analyze_files(
        paths,
        **read_as(options),
        unparsed=options["unparsed"],
        level=options["level"],
        margin=options["margin"] / 100.0,
        seed=options["seed"],
    )


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH…")
@reading_options
@form_options
def analyze(paths: tuple[Path, ...], **options: Any) -> None:
    """Analyse results from elsewhere. Calls no model.

    PATH is a table of scores (.csv, .tsv, .parquet, also .gz), long or wide; the samples that
    lm-evaluation-harness writes with --log_samples; logs of Inspect; JSON results of promptfoo; run
    folders of HELM; predictions of DOVE; or a folder of these.
    Columns with usual names are recognised, and the notes say which column was used for what. A
    column can also be =TEXT (the same for all rows) or @file (the name of the file).

    \b
    falter analyze scores.csv --baseline original --html report.html
    falter analyze judged.csv --item subset,item --model judge --run swap --baseline Vanilla
    falter analyze results/plain results/shouted --baseline plain
    falter analyze logs/ --metric accuracy --condition-from args
    """
    from falter.engine.findings import shown_analysis

    if not paths:
        raise UsageError("Nothing to analyse", hint="falter analyze scores.csv; see --help")
    forms = {name: options.pop(name) for name in FORM_NAMES}
    show(shown_analysis(analyzed(paths, options)), **forms)
