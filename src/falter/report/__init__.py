"""Floor 4: what an analysis says, in the terminal or as a file. Renders, computes nothing."""

from __future__ import annotations

from falter.report._data import across_csv, as_csv, as_json
from falter.report._html import html
from falter.report._markdown import as_markdown
from falter.report._meaning import meaning_rows, meaning_table
from falter.report._terminal import terminal

__all__ = [
    "across_csv",
    "as_csv",
    "as_json",
    "as_markdown",
    "html",
    "meaning_rows",
    "meaning_table",
    "terminal",
]
