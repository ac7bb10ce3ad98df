"""Floor 4: what an analysis says and a study shows, on screen or as a file. Computes nothing."""

from __future__ import annotations

from falter.report._data import across_csv, as_csv, as_json
from falter.report._figure_tables import figure_table
from falter.report._figures_data import study_csv, study_json
from falter.report._figures_latex import run_latex, study_latex
from falter.report._figures_terminal import study_terminal
from falter.report._figures_text import study_markdown
from falter.report._html import html
from falter.report._markdown import as_markdown
from falter.report._meaning import meaning_rows, meaning_table
from falter.report._study import study_html
from falter.report._terminal import terminal

__all__ = [
    "across_csv",
    "as_csv",
    "as_json",
    "as_markdown",
    "figure_table",
    "html",
    "meaning_rows",
    "meaning_table",
    "run_latex",
    "study_csv",
    "study_html",
    "study_json",
    "study_latex",
    "study_markdown",
    "study_terminal",
    "terminal",
]
