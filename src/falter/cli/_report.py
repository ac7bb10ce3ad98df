"""`falter report`: the results of a stored run or study, in the terminal or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.analysis import write_scores
from falter.cli._forms import FILE, form_options, published_option, show
from falter.cli._options import store_option
from falter.experiment import open_result

__all__ = ["report"]


@click.command()
@click.argument("run", required=False)
@store_option
@form_options
@click.option(
    "--scores", "scores_path", type=FILE, help="Write one row for each score: .parquet or .csv."
)
@published_option
@click.option("--partial", is_flag=True, help="Report a run that has not been finished.")
def report(
    run: str | None,
    store_path: Path,
    scores_path: Path | None,
    published: bool,
    partial: bool,
    **forms: Any,
) -> None:
    """Report RUN, the first digits of the id of a run or of a protocol's study; without it, the
    newest. Calls no model.

    \b
    Every form has the same numbers. 'falter report RUN --figure drops --csv' prints one figure.
    """
    if not store_path.exists():
        raise click.UsageError(
            f"The store {store_path} does not exist; start a run, or name the store with --store"
        )
    result = open_result(store_path, run, incomplete=partial, published=published)
    if scores_path is not None:
        count = write_scores(result.scores(), scores_path)
        click.echo(f"{count:,} scores: {scores_path}", err=True)
        if not any(forms.values()):
            return
    show(result.study, **forms)
