"""A report as data: everything as JSON; one row for each number as CSV and Parquet."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from falter.records.codec import json_text, to_json
from falter.records.errors import MissingExtra
from falter.records.figures import Figure, Study
from falter.report.escape import spreadsheet_cell, unhide
from falter.report.marks import marked
from falter.report.tables import COLUMNS, Row, figure_rows

_NUMBERS = ("x", "value", "low", "high", "own_low", "own_high", "level", "p_value", "design_effect")
_COUNTS = ("items", "conditions", "excluded", "clusters", "seed")


def as_json(study: Study) -> str:
    """The study, and every figure with its rows as `figure_rows` gives them.

    In full precision and always in the same order. Numbers that JSON cannot express become null;
    characters that a terminal would act upon are escaped.
    """
    top = {name: value for name, value in to_json(study).items() if name != "figures"}
    figures = [
        {
            "kind": _kind(figure),
            "name": figure.name,
            "title": figure.title,
            "section": figure.section,
            "text": list(figure.text),
            "rows": figure_rows(figure),
        }
        for figure in marked(study, None)
    ]
    return json_text(_finite({**top, "figures": figures}), pretty=True) + "\n"


def _kind(figure: Figure) -> str:
    """`grid`, `heat map`, …: the class's name in words."""
    name = type(figure).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(study: Study) -> str:
    """One row for each number or text of all figures, with empty cells for missing values.

    Text that a spreadsheet would take for a formula starts with an apostrophe.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _every_row(study):
        writer.writerow([spreadsheet_cell(row[name]) for name in COLUMNS])
    return file.getvalue()


def _every_row(study: Study) -> Iterator[Row]:
    for figure in marked(study, None):
        yield from figure_rows(figure)


def write_parquet(study: Study, path: Path) -> int:
    """Write the rows of the CSV with their types; return how many there are."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet", "pyarrow") from error
    rows = list(_every_row(study))
    types = {name: pa.float64() for name in _NUMBERS} | {name: pa.int64() for name in _COUNTS}
    columns = {
        name: pa.array(
            [unhide(v) if isinstance(v := row[name], str) else v for row in rows],
            type=types.get(name, pa.string()),
        )
        for name in COLUMNS
    }
    pq.write_table(pa.table(columns), path)
    return len(rows)
