"""`falter report`: what a stored run says, in the terminal or as a file."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from falter.cli._options import store_option
from falter.cli._study import show_study
from falter.experiment import analyse_run, export_scores, findings
from falter.report import as_csv, as_json, as_markdown, html, run_latex, terminal
from falter.store import Store, find_study

__all__ = ["report"]

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("run", required=False)
@store_option
@click.option("--html", "html_path", type=_FILE, help="Write a self-contained HTML page.")
@click.option("--parquet", "parquet_path", type=_FILE, help="Write one row per score.")
@click.option("--json", "show_json", is_flag=True, help="Print everything as JSON.")
@click.option("--csv", "show_csv", is_flag=True, help="Print one row per model and recipe as CSV.")
@click.option("--md", "show_md", is_flag=True, help="Print Markdown tables.")
@click.option("--latex", "show_latex", is_flag=True, help="Print a LaTeX document.")
@click.option(
    "--figure", "figures", multiple=True, help="Of a protocol, print this figure; 'all' for all."
)
@click.option("--partial", is_flag=True, help="Report a run that has not been finished.")
def report(
    run: str | None,
    store_path: Path,
    html_path: Path | None,
    parquet_path: Path | None,
    show_json: bool,
    show_csv: bool,
    show_md: bool,
    show_latex: bool,
    figures: tuple[str, ...],
    partial: bool,
) -> None:
    """Report RUN, the first digits of the id of a run or of a protocol's study; without it, the
    newest. Calls no model.

    \b
    Of a protocol, --csv is one table of all numbers of all figures, and --latex is a document with
    every table and figure.
    """
    if show_json + show_csv + show_md + show_latex > 1:
        raise click.UsageError("--json, --csv, --md and --latex exclude each other")
    _must_exist(store_path)
    with Store(store_path) as store:
        study = find_study(store, run)
        if study is not None:
            found = findings(store, study)
    if study is not None:
        if parquet_path is not None:
            raise click.UsageError("--parquet takes a run; 'falter report' lists those of a study")
        kinds = {"json": show_json, "csv": show_csv, "md": show_md, "latex": show_latex}
        formats = [kind for kind, wanted in kinds.items() if wanted]
        show_study(found, formats, html_path, figures)
        return
    if figures:
        raise click.UsageError("--figure is for protocols, and this is a single run")
    with Store(store_path) as store:
        stored = store.find_run(run)
        analysis = analyse_run(store, stored.run, partial=partial)
        if parquet_path is not None:
            rows = export_scores(store, stored.run, parquet_path)
            click.echo(f"{rows} scores: {parquet_path}", err=True)
    if html_path is not None:
        html_path.parent.mkdir(parents=True, exist_ok=True)
        html_path.write_text(html(analysis), "utf-8")
        click.echo(f"report: {html_path}", err=True)
    printed = (
        (show_json, as_json),
        (show_csv, as_csv),
        (show_md, as_markdown),
        (show_latex, run_latex),
    )
    for wanted, render in printed:
        if wanted:
            click.echo(render(analysis).rstrip("\n"))
    if not (any(wanted for wanted, _ in printed) or html_path or parquet_path):
        terminal(analysis, Console())


def _must_exist(path: Path) -> None:
    if not path.exists():
        raise click.UsageError(f"The store {path} does not exist; start a run, or give --store")
