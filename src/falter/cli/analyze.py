"""`falter analyze`: a report of other tools' results, in any form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from falter.cli.options import show, take_options, takes
from falter.records.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from falter.analysis.results import Analysis


COLUMN_ROLES = (
    "item", "condition", "model", "task", "run", "score", "output", "outcome", "cluster",
)  # fmt: skip


def read_as(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the reading options (columns, logs, scale, baseline) from `options`; return them."""
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
    """Return the analysis of files, with the reading options; raise InvalidValue if one is bad."""
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
@takes("analyze")
def analyze(paths: tuple[Path, ...], **options: Any) -> None:
    """Analyse results of other tools. Calls no model.

    PATH is a long or wide table of scores (.csv, .tsv or .parquet, also .gz), samples of
    lm-evaluation-harness (written with --log_samples), Inspect logs, promptfoo JSON, a HELM run
    folder, DOVE predictions, or a folder of these.

    Columns with usual names are recognised; notes report the use of each column. Instead of a
    column you can give =TEXT (the same value for all rows) or @file (the name of the file).

    \b
    falter analyze scores.csv --baseline original --html report.html
    falter analyze judged.csv --item subset,item --model judge --run swap --baseline Vanilla
    falter analyze results/plain results/shouted --baseline plain
    falter analyze logs/ --metric accuracy --condition-from args
    """
    from falter.engine.findings import shown_analysis

    if not paths:
        raise UsageError("Nothing to analyse", hint="falter analyze scores.csv; see --help")
    forms = take_options(options, "form options")
    show(shown_analysis(analyzed(paths, options)), **forms)
