"""`falter rescore`: the same stored answers, read by another scorer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.cli._forms import form_options, show
from falter.cli._options import store_option
from falter.engine.answers import rescored_study


@click.command()
@click.argument("run", required=False)
@click.option("--scorer", "-s", metavar="NAME", required=True, help="Who reads the answers again.")
@click.option(
    "--labels", metavar="A,B,C", help="The labels to read, for a scorer of labels  "
    "[default: the run's, or the different targets]",
)  # fmt: skip
@store_option
@click.option("--part", metavar="NAME", help="The part of a protocol's study.")
@click.option("--partial", is_flag=True, help="Read a run that has not been finished.")
@form_options
def rescore(
    run: str | None,
    scorer: str,
    labels: str | None,
    store_path: Path,
    part: str | None,
    partial: bool,
    **forms: Any,
) -> None:
    """Read the stored answers of RUN with another scorer, and show both readings.

    Calls no model and changes nothing: RUN keeps its scorer. Without RUN, the newest.

    \b
    falter rescore --scorer label
    falter rescore 3f1c --scorer includes --json
    """
    study = rescored_study(
        store_path,
        run,
        scorer,
        part=part,
        labels=[label.strip() for label in (labels or "").split(",") if label.strip()],
        incomplete=partial,
    )
    show(study, **forms)
