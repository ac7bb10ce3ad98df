"""Floor 1: figures on screen, as a page or as a file. Estimates nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.report.drawing import picture, write_pictures
    from falter.report.escape import line as shown_text
    from falter.report.forms import (
        as_csv,
        as_json,
        as_latex,
        as_markdown,
        terminal,
        terminal_figures,
        write_parquet,
    )
    from falter.report.page import frame, html
    from falter.report.tables import COLUMNS, figure_rows, figure_table

__all__ = [
    "COLUMNS",
    "as_csv",
    "as_json",
    "as_latex",
    "as_markdown",
    "figure_rows",
    "figure_table",
    "frame",
    "html",
    "picture",
    "shown_text",
    "terminal",
    "terminal_figures",
    "write_parquet",
    "write_pictures",
]

__getattr__ = door(__name__)
