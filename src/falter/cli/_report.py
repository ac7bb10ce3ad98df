"""`falter report`: the results of a stored run or study, in the terminal or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.cli._forms import FILE, form_options, published_option, show
from falter.cli._options import store_option


@click.command()
@click.argument("run", required=False)
@store_option
@form_options
@click.option(
    "--scores", "scores_path", type=FILE, help="Write one row for each score: .parquet or .csv."
)
@click.option(
    "--export",
    "exports",
    type=(str, click.Path(path_type=Path)),
    multiple=True,
    metavar="FORM DIR",
    help="Write all answers for another tool to a new folder: inspect (logs), hf (a data set), "
    "otel (spans).",
)
@published_option
@click.option("--partial", is_flag=True, help="Report a run that has not been finished.")
def report(
    run: str | None,
    store_path: Path,
    scores_path: Path | None,
    exports: tuple[tuple[str, Path], ...],
    published: bool,
    partial: bool,
    **forms: Any,
) -> None:
    """Report RUN, the first digits of the id of a run or of a protocol's study; without it, the
    newest. Calls no model.

    \b
    Every form has the same numbers. 'falter report RUN --figure drops --csv' prints one figure.
    """
    from falter.analysis.export import write_scores
    from falter.engine.results import open_result
    from falter.report.escape import spreadsheet_cell
    from falter.report.exported import export_forms

    for form, _ in exports:
        export_forms.get(form)
    if not store_path.exists():
        raise click.UsageError(
            f"The store {store_path} does not exist; start a run, or name the store with --store"
        )
    result = open_result(store_path, run, incomplete=partial, published=published)
    for form, folder in exports:
        files = result.export(form, folder)
        written = f"{len(files):,} file{'' if len(files) == 1 else 's'}"
        click.echo(f"{form}: {written} in {folder}", err=True)
    if scores_path is not None:
        rows = result.scores()
        if scores_path.suffix.lower() == ".csv":
            rows = [{name: spreadsheet_cell(row[name]) for name in row} for row in rows]
        count = write_scores(rows, scores_path)
        click.echo(f"{count:,} scores: {scores_path}", err=True)
    if (scores_path or exports) and not any(forms.values()):
        return
    show(result.study, **forms)
