"""`falter compare`: comparison of runs, models or prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.cli.analyze import read_as
from falter.cli.options import show, take_options, takes


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
    """Compare models, prompts or runs, paired by item and perturbation. Calls no model.

    Shows which system is better, under which perturbation, and with what confidence. A system is a
    model of a run, with one of its templates if it has several, so a single RUN can be enough.
    Without RUN, the newest run is used. The report calls a run NAME.

    FILE holds results of another tool, as 'falter analyze' reads them: an Inspect log, samples of
    lm-evaluation-harness, promptfoo JSON, or a table. Systems without a shared item are compared
    unpaired. The column options, --metric, --filter, --baseline and --scale apply to files only.

    \b
    falter compare 3f1c 9ab2
    falter compare short=3f1c long=9ab2@other.db --html compared.html
    falter compare before.eval after.eval
    """
    from falter.engine.comparison import ComparedRun, compared_study

    forms = take_options(options, "form options")
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
