"""A report as data: JSON with everything; CSV and Parquet with a row per number or text."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from falter.records.codec import json_text, to_json
from falter.records.errors import MissingExtra
from falter.records.figures import Example, Examples, Figure, Headline, Statement, Study
from falter.records.types import Estimate
from falter.report.escape import spreadsheet_cell, unhide
from falter.report.marks import marked
from falter.report.tables import COLUMNS, Row, figure_rows, grids, nested_rows

_NUMBERS = ("x", "value", "low", "high", "own_low", "own_high", "level", "p_value", "design_effect")
FORMAT, FORMAT_VERSION = "falter-report", 1
"""Version of the JSON format; it changes if a field is removed or changes its meaning."""
_ESTIMATE_KEYS = ("low", "high", "level", "p_value", "items", "excluded", "clusters")
_COUNTS = ("items", "conditions", "excluded", "clusters", "seed")


def as_json(study: Study) -> str:
    """Return the report as nested JSON, as described by `report.schema.json`.

    Numbers have full precision, and the order is always the same. Numbers that JSON cannot express
    become null. Fields without a value are left out. Characters on which a terminal would act are
    escaped.
    """
    figures = marked(study, None)
    answers = (f.text for f in figures if isinstance(f, Statement) and f.kind == "answer")
    numbers = [number for f in figures if isinstance(f, Headline) for number in f.numbers]
    report = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "title": study.title,
        "run": study.id,
        "falter": study.version,
        "created_at": datetime.fromtimestamp(study.created_at, UTC).isoformat(),
        "seed": study.seed,
        "level": study.level,
        "unparsed": study.unparsed,
        "protocol": study.protocol,
        "preset": study.preset,
        "origin": study.origin,
        "models": [{"name": m, "simulated": m in study.simulated} for m in study.models],
        "headline": next(answers, ()),
        "numbers": [
            {"name": one.label, "number": one.estimate, "about": one.about} for one in numbers
        ],
        "tasks": [
            {
                "task": task,
                "models": [
                    {name: value for name, value in panel.items() if name != "task"}
                    for panel in study.panels
                    if panel["task"] == task
                ],
            }
            for task in dict.fromkeys(panel["task"] for panel in study.panels)
        ],
        "runs": to_json(study.parts),
        "figures": [_figure_mapping(figure) for figure in figures],
        "notes": study.notes,
    }
    return json_text(_plain_value(report), pretty=True) + "\n"


def _figure_mapping(figure: Figure) -> dict[str, Any]:
    """Return a figure as a mapping: texts, a mapping per table row, and examples."""
    return {
        "name": figure.name,
        "title": figure.title,
        "kind": _kind_in_words(figure),
        "section": figure.section,
        "text": figure.text,
        "tables": [nested_rows(grid) for grid in grids(figure)],
        "examples": [*map(_example, figure.examples)] if isinstance(figure, Examples) else (),
    }


def _example(example: Example) -> dict[str, Any]:
    (_, answer, prompt), (_, changed_answer, changed_prompt) = example.sides
    return {
        "item": example.item,
        "recipe": example.recipe,
        "people_call_it": example.everyday,
        "expected": example.expected,
        "prompt": prompt,
        "changed_prompt": changed_prompt,
        "answer": to_json(answer),
        "answer_to_changed_prompt": to_json(changed_answer),
    }


def _kind_in_words(figure: Figure) -> str:
    """Return the figure's class name in words, such as `grid` or `heat map`."""
    name = type(figure).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def _plain_value(value: Any) -> Any:
    """Return the value as numbers, texts, lists and mappings, for JSON.

    Empty values are left out of mappings. A number that is not finite becomes None.
    """
    if isinstance(value, Estimate):
        named = {name: getattr(value, name) for name in _ESTIMATE_KEYS}
        named["excluded"] = value.excluded or None
        status = None if value.status == "ok" else {"status": value.status, "why": value.method}
        return _plain_value({"value": value.value, **named, **(status or {})})
    if isinstance(value, Mapping):
        inner = {str(key): _plain_value(own) for key, own in value.items()}
        return {key: own for key, own in inner.items() if own not in (None, "", [], {})}
    if isinstance(value, (list, tuple)):
        return [_plain_value(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(study: Study) -> str:
    """Return CSV with a row for each number or text of all figures; missing values are empty.

    Text that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _all_rows(study):
        writer.writerow([spreadsheet_cell(row[name]) for name in COLUMNS])
    return file.getvalue()


def _all_rows(study: Study) -> Iterator[Row]:
    for figure in marked(study, None):
        yield from figure_rows(figure)


def write_parquet(study: Study, path: Path) -> int:
    """Write the rows of the CSV as typed Parquet, and return their number.

    Raises MissingExtra without pyarrow.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("Parquet", "parquet", "pyarrow") from error
    rows = list(_all_rows(study))
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
