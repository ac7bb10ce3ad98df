"""What can be shown in every form: figures, tables, rows, reports."""

from __future__ import annotations

import importlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from falter import report
from falter.core.errors import InvalidValue, UnknownName, UsageError
from falter.figures import Figure, Study

__all__ = ["FORMS", "Shown", "given_path", "report_form", "write_report"]

FORMS: tuple[str, ...] = ("csv", "html", "json", "md", "parquet", "tex")


class Shown:
    """Figures with their tables, rows and reports. Everything is computed; no model is called."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every table and chart, in reading order."""
        return self.study.figures

    def summary(self, *names: str, width: int = 100) -> str:
        """The terminal report as text: the figures with these names, or the main ones."""
        text = io.StringIO()
        report.terminal(self.study, Console(file=text, width=width, no_color=True), names)
        return text.getvalue()

    def figure(self, name: str) -> Figure:
        """A figure by its name, for example `drops`."""
        known = {figure.name: figure for figure in self.figures}
        if name not in known:
            raise UnknownName("figure", name, list(known))
        return known[name]

    def table(self, name: str) -> list[dict[str, Any]]:
        """The table of a figure, one dictionary per row: `row["recipe"]`, `row["drop"]`."""
        return report.figure_table(self.figure(name))

    def rows(self, *names: str) -> list[dict[str, Any]]:
        """One dictionary for each number of these figures, or of all: what the CSV holds."""
        chosen = [self.figure(name) for name in names] or self.figures
        return [row for figure in chosen for row in report.figure_rows(figure)]

    def to_pandas(self, figure: str | None = None) -> Any:
        """The table of a figure as a pandas data frame; without a name, a row for each number."""
        return _frame("pandas", self.rows() if figure is None else self.table(figure))

    def to_polars(self, figure: str | None = None) -> Any:
        """The same as a polars data frame."""
        return _frame("polars", self.rows() if figure is None else self.table(figure))

    def _repr_html_(self) -> str:
        """What a notebook shows: the main figures, in a frame that runs no script."""
        names = self.study.headline
        shown = tuple(figure for figure in self.figures if figure.name in names) or self.figures
        return report.frame(replace(self.study, figures=shown))

    def report(self, path: Path | str) -> Path:
        """Write a report; the file's ending says which: html, json, csv, md, tex or parquet."""
        path = given_path("path", path)
        write_report(self.study, path)
        return path

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.study.title}: {len(self.figures)} figures>"


def _frame(library: Literal["pandas", "polars"], rows: list[dict[str, Any]]) -> Any:
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise UsageError(
            f"The package '{library}' is not installed", hint=f"pip install {library}"
        ) from error
    if library == "polars":
        return module.DataFrame(rows, infer_schema_length=None)
    return module.DataFrame(rows)


def given_path(argument: str, path: object) -> Path:
    """A path that was given in Python, or an error that says what was given in its place."""
    if not isinstance(path, (str, Path)):
        raise InvalidValue(argument, path, "the path of a file")
    return Path(path)


def report_form(path: Path) -> str:
    """The form of a report that a file's ending names."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise InvalidValue("path", str(path), f"a file ending in .{', .'.join(FORMS)}")
    return form


def write_report(study: Study, path: Path) -> None:
    """A study as a file, in the form that its ending names."""
    form = report_form(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "parquet":
        report.write_parquet(study, path)
        return
    render = {
        "csv": report.as_csv,
        "html": report.html,
        "json": report.as_json,
        "md": report.as_markdown,
        "tex": report.as_latex,
    }[form]
    path.write_text(render(study), "utf-8")
