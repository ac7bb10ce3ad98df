"""The forms of a report on the command line, the same for every command that shows one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from falter.records.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    from falter.records.figures import Study


F = TypeVar("F", bound=Callable[..., Any])


class OutputFile(click.Path):
    """A file that will be written: checked before anything is sent, and not made yet."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from falter.engine.results import report_form

        path = Path(str(super().convert(value, param, ctx)))
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if not folder.is_dir():
            self.fail(f"'{folder}' is a file, not a folder.", param, ctx)
        if not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"The folder '{folder}' cannot be written to.", param, ctx)
        if param.name == "html_path":
            try:
                report_form(path)
            except InvalidValue as error:
                raise InvalidValue("--html", str(value), error.expected) from error
        return path


FILE = OutputFile()
PRINTED = {"json": "json", "csv": "csv", "md": "md", "latex": "tex"}
"""The options of the forms on standard output, with the ending of each form."""

FORM_NAMES = (
    "html_path",
    "parquet_path",
    "svg_folder",
    "figures",
    *(f"show_{form}" for form in PRINTED),
)

html_option = click.option("--html", "html_path", type=FILE, help="Write the report as a page.")
published_option = click.option(
    "--published", is_flag=True, help="Show the tables of the protocol's paper beside your numbers."
)
_FORMS = (
    html_option,
    click.option("--parquet", "parquet_path", type=FILE, help="Write one row for each number."),
    click.option("--json", "show_json", is_flag=True, help="Print everything as JSON."),
    click.option("--csv", "show_csv", is_flag=True, help="Print one row for each number as CSV."),
    click.option("--md", "show_md", is_flag=True, help="Print Markdown tables."),
    click.option("--latex", "show_latex", is_flag=True, help="Print a LaTeX document of tables."),
    click.option(
        "--svg", "svg_folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
        help="Write every chart as an SVG file into this folder.",
    ),
    click.option(
        "--figure", "figures", multiple=True, metavar="NAME",
        help="Show only the figure with this name, in any form; 'all' prints all of them.",
    ),
)  # fmt: skip


def form_options(command: F) -> F:
    """Add the options for the form of a report; `show` takes them."""
    for option in reversed(_FORMS):
        command = option(command)
    return command


def show(
    study: Study,
    *,
    html_path: Path | None,
    parquet_path: Path | None,
    svg_folder: Path | None,
    figures: tuple[str, ...],
    **printed: bool,
) -> None:
    """Write and print a study in the forms that were asked for; else print it for the terminal."""
    from falter.engine.results import report_text, write_report
    from falter.report.drawing.pictures import write_pictures
    from falter.report.forms.terminal import terminal

    forms = [form for form in PRINTED if printed[f"show_{form}"]]
    if len(forms) > 1:
        raise click.UsageError(
            f"{' and '.join(f'--{form}' for form in forms)} cannot be used together"
        )
    every_name = [figure.name for figure in study.figures]
    for name in figures:
        if name not in (*every_name, "all"):
            raise UnknownName("figure", name, [*every_name, "all"])
    names = every_name if "all" in figures else figures
    if names:
        chosen = tuple(figure for figure in study.figures if figure.name in names)
        shown = replace(study, figures=chosen, headline=())
    else:
        shown = study
    if html_path is not None:
        write_page(shown, html_path)
    if parquet_path is not None:
        write_report(shown, parquet_path)
        click.echo(f"numbers: {parquet_path}", err=True)
    if svg_folder is not None:
        files = write_pictures(shown.figures, svg_folder)
        click.echo(f"charts: {len(files)} files in {svg_folder}", err=True)
    for form in forms:
        click.echo(report_text(shown, PRINTED[form]).rstrip("\n"))
    if not (forms or html_path or parquet_path or svg_folder):
        from rich.console import Console

        terminal(study, Console(), names)


def write_page(study: Study, path: Path) -> None:
    """Write the report as a page, and say where it is."""
    from falter.engine.results import write_report

    write_report(study, path)
    click.echo(f"report: {path}", err=True)
