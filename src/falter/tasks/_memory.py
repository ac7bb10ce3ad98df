"""Rows that are in memory already: a list of mappings, or a data frame."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from falter.core.errors import InvalidValue, TaskError
from falter.core.ids import digest, short
from falter.tasks._files import Row, checked_rows, read_rows

__all__ = ["in_memory", "is_rows", "offer_rows", "rows_at", "source_name", "target_column"]

MEMORY = "memory:"
"""What begins the name of rows that are no file."""
ABOUT = "the rows in memory"
_OFFERED: dict[str, list[Row]] = {}
_NOTHING = frozenset({"NAType", "NaTType"})  # what pandas writes for a missing value
_TARGETS = ("answer", "target", "label")
_FRAMES = ("to_dicts", "to_pylist", "to_dict")  # polars, pyarrow, pandas


def is_rows(data: object) -> bool:
    """Whether something is a list of rows or a data frame, and not the settings of a file."""
    if isinstance(data, (list, tuple)):
        return True
    named = hasattr(data, "columns") or hasattr(data, "column_names")
    return named and not isinstance(data, (str, Mapping)) and _reader(data) is not None


def offer_rows(data: Any) -> str:
    """Make rows known, and return what stands for their file: `memory:` and their hash."""
    if not is_rows(data):
        raise InvalidValue("data.rows", data, "a list of dictionaries, or a data frame")
    rows = [_row(row, number) for number, row in enumerate(_plain_rows(data), start=1)]
    if not rows:
        raise TaskError("The data are empty", hint="give at least one row")
    checked_rows(rows, ABOUT, ABOUT)
    name = f"{MEMORY}{short(digest('rows', json.dumps(rows)), 16)}"
    _OFFERED[name] = rows
    return name


def in_memory(path: str) -> bool:
    """Whether a path is a name that `offer_rows` gave."""
    return path.startswith(MEMORY)


def rows_at(path: str) -> list[Row]:
    """The rows of a file, or those in the memory of this process."""
    if not in_memory(path):
        return read_rows(path)
    if path not in _OFFERED:
        raise TaskError(
            f"The rows '{path}' were in the memory of another process",
            hint="give them to falter.run as 'data', or write them to a .jsonl file",
        )
    return _OFFERED[path]


def source_name(path: str) -> str:
    """What a path is called in messages and in a report: a file's name, or rows in memory."""
    if in_memory(path):
        return f"{len(_OFFERED.get(path, ())):,} rows in memory"
    return path.replace("\\", "/").rpartition("/")[2]


def target_column(path: str) -> str:
    """The one column of some data that is called like a target; without one an error."""
    columns = list(rows_at(path)[0])
    likely = [name for name in columns if name.lower() in _TARGETS]
    if len(likely) != 1:
        shown = ", ".join(columns[:12])
        what = "A list of rows" if in_memory(path) else path
        hint = "write 'data: {path: FILE, target: COLUMN}', or add --target COLUMN"
        raise TaskError(
            f"{what} alone does not say which column holds the right answer (columns: {shown})",
            hint="write data={'rows': rows, 'target': 'COLUMN'}" if in_memory(path) else hint,
        )
    return likely[0]


def _reader(data: object) -> Any:
    return next((getattr(data, name) for name in _FRAMES if hasattr(data, name)), None)


def _plain_rows(data: Any) -> Any:
    """What a frame makes of its rows; nothing is imported for it."""
    if isinstance(data, (list, tuple)):
        return data
    names = list(getattr(data, "column_names", None) or data.columns)
    for name in names:
        if not isinstance(name, str):
            raise TaskError(
                f"The data frame has the column {name!r}, which is no text",
                hint="give every column a name",
            )
    if len(set(names)) < len(names):
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise TaskError(
            f"The data frame has the column '{twice}' twice", hint="rename one of the two"
        )
    read = _reader(data)
    return read("records") if read.__name__ == "to_dict" else read()


def _row(row: Any, number: int) -> Row:
    if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
        raise TaskError(
            f"{ABOUT}, row {number} is {row!r:.60}; expected a dictionary of columns",
            hint='as in [{"question": "…", "answer": "…"}]',
        )
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """A value as a file would hold it: NumPy's numbers as Python's, what is missing as None."""
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if type(value).__name__ in _NOTHING:
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy
        return _plain(value.tolist())
    return value
