"""A study as data: everything as JSON, one row a number as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from falter.core.codec import to_json
from falter.figures import Bars, Curves, Figure, Grid, HeatMap, Study
from falter.report._data import dumped, safe
from falter.report._figure_marks import marked
from falter.report._figure_tables import COLUMNS, figure_table

__all__ = ["study_csv", "study_json"]


def study_json(study: Study) -> str:
    """The study, and every figure with its rows as `figure_table` gives them.

    In full precision and always in the same order. Numbers that JSON does not have become null.
    """
    top = {name: value for name, value in to_json(study).items() if name != "figures"}
    figures = [_figure(figure) for figure in marked(study, None)]
    return dumped({**top, "figures": figures})


def study_csv(study: Study) -> str:
    """One row for each number or word of all figures, an empty cell for what there is not.

    Text that a spreadsheet would take for a formula is led by an apostrophe.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for figure in marked(study, None):
        for row in figure_table(figure):
            writer.writerow([safe(row[name]) for name in COLUMNS])
    return file.getvalue()


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "kind": _kind(figure),
        "name": figure.name,
        "title": figure.title,
        "text": list(figure.text),
        "rows": figure_table(figure),
    }


def _kind(figure: Figure) -> str:
    if isinstance(figure, Grid):
        return "grid"
    if isinstance(figure, HeatMap):
        return "heat map"
    if isinstance(figure, Curves):
        return "curves"
    return "bars" if isinstance(figure, Bars) else "strips"
