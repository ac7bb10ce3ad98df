"""`falter compare`: runs, models or prompts side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.cli.analyze import read_as
from falter.cli.options import show, taken_out, takes


@click.command()
@takes("compare")
def compare(
    runs: tuple[str, ...],
    store_path: Path,
    models: tuple[str, ...],
    tasks: tuple[str, ...],
    part: str | None,
    margin: float,
    partial: bool,
    **options: Any,
) -> None:
    """Compare RUNs, paired by item and recipe: who is better, under what, and how sure that is.

    Every model of a run is a side, and every template where it was run with several, so that one
    RUN can be enough; without any, the newest. NAME is what the report calls a run. Calls no model.

    FILE holds results of another tool, as 'falter analyze' takes them: a log of Inspect, samples of
    lm-evaluation-harness, JSON of promptfoo, or a table. Sides without a shared item are compared
    unpaired. The options about columns, --metric, --filter, --baseline and --scale are for files.

    \b
    falter compare 3f1c 9ab2
    falter compare short=3f1c long=9ab2@other.db --html compared.html
    falter compare before.eval after.eval
    """
    from falter.engine.comparison import ComparedRun, compared_study

    forms = taken_out(options, "form options")
    named = [ComparedRun.parse(run, store_path) for run in runs]
    study = compared_study(
        named or [ComparedRun(run=None, store=store_path)],
        models=models,
        tasks=tasks,
        part=part,
        margin=margin,
        incomplete=partial,
        **read_as(options),
    )
    show(study, **forms)
