"""Forms as text: the terminal, Markdown, LaTeX, and plain data."""

from __future__ import annotations

from falter.report.forms.data import as_csv, as_json, write_parquet
from falter.report.forms.latex import as_latex
from falter.report.forms.markdown import as_markdown
from falter.report.forms.terminal import terminal, terminal_figures

__all__ = [
    "as_csv",
    "as_json",
    "as_latex",
    "as_markdown",
    "terminal",
    "terminal_figures",
    "write_parquet",
]
