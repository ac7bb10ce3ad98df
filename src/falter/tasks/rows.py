"""Reading and checking of data rows from JSONL, JSON, CSV, TSV and Parquet, the hub or memory."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal

import orjson

from falter.records.errors import (
    FalterError,
    InvalidValue,
    MissingExtra,
    TaskError,
    UsageError,
    printable,
    refusal,
)
from falter.records.ids import digest, short
from falter.records.registry import Registry
from falter.records.rng import Rng

Row = dict[str, Any]
MEMORY = "memory:"
"""Prefix of the path of rows in memory."""
TargetAs = Literal["auto", "index", "label", "text"]
row_sources: Registry[Callable[[str, str], list[Row]]] = Registry("source of rows", "falter.rows")
"""Functions that return the rows of a remote data set, given its name and split."""
_MAX_DEPTH, _MAX_BYTES = 50, 2 * 2**30
_MAX_CELL_BYTES = _MAX_LINE_BYTES = 16 * 2**20
_LINE_BREAKS = re.compile(r"[\t\r\n]")
_FILLED_LINE = re.compile(r"[^\n]+")
_PLAIN_TYPES = frozenset({str, int, bool, type(None)})
_MAX_ROWS = 2_000_000
_SPREADSHEETS = ("xlsx", "xlsm", "xls", "ods", "numbers")
_SPREADSHEET_HINT = (
    "save the sheet as 'CSV UTF-8' in the spreadsheet program; in Python, falter.run takes a data "
    "frame as 'data'"
)
_WIDE_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_READABLE_FORMATS = ".jsonl, .json, .csv, .tsv or .parquet (also .gz)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """The source of items, and the use of each column.

    `fields` maps placeholders to columns; a placeholder without an entry is a column's name.
    `choices` is one column with a list, or several columns with one option each. Rows with the same
    item are an error, unless `drop_duplicates` keeps only the first. In conversations, `turns` says
    which turns of the assistant become targets, and `join` and `each` format the documents.
    """

    path: str
    fields: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    target: str | None = None
    target_as: TargetAs = "auto"
    key: str | None = None
    tags: tuple[str, ...] = ()
    split: str = "test"
    drop_duplicates: bool = False
    turns: Literal["last", "all"] = "last"
    join: str = "\n\n"
    each: str = "{text}"


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of a data file; every iteration reads and checks them one by one.

    Iterating raises TaskError for an empty or unreadable file.
    """

    path: Path

    def __iter__(self) -> Iterator[Row]:
        number, path = 0, str(self.path)
        for number, row in enumerate(_unchecked_rows(self.path), start=1):
            if number > _MAX_ROWS:
                raise refusal(TaskError, "tasks.too_many_rows", path=path, most_rows=_MAX_ROWS)
            _check_row(row, path, number)
            yield row
        if not number:
            hint = "give a file with at least one row"
            raise TaskError(f"The data file {path} has no rows", hint=hint)


def read_rows(path: str | Path) -> list[Row]:
    """Return the rows of a data file. Raises TaskError with the place of a fault."""
    return list(FileRows(Path(path)))


def _unchecked_rows(path: Path) -> Iterable[Row]:
    if not path.exists():
        raise TaskError(
            f"The data file {path} does not exist", hint=f"give a {_READABLE_FORMATS} file"
        )
    if path.is_dir():
        raise TaskError(
            f"{path} is a folder, not a data file", hint=f"give a {_READABLE_FORMATS} file"
        )
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind == "parquet":
        return _parquet_rows(path)
    if kind in ("csv", "tsv"):
        return _csv_rows(path, "\t" if kind == "tsv" else None)
    if kind == "jsonl":
        return _jsonl_rows(path)
    if kind == "json":
        return _json_rows(read_text(path), path)
    raise TaskError(
        f"The data file {path} is not a kind of file that falter can read",
        hint=_SPREADSHEET_HINT if kind in _SPREADSHEETS else f"use {_READABLE_FORMATS}",
    )


def sampled_rows(path: str | Path, most: int) -> tuple[list[Row], int]:
    """Return at most `most` rows of a file, evenly drawn, and the number of all rows.

    In a JSONL file only the drawn lines are parsed; all other lines are counted. Faults in those
    lines are found later, when a run reads all rows before it sends anything.
    """
    path = Path(path)
    if _has_lines(path) and (count := sum(1 for _ in _filled_lines(path))) > most:
        drawn = set(_evenly_drawn(count, most))
        lines = (each for n, each in enumerate(_filled_lines(path)) if n in drawn)
        rows = [_parsed_line(line, path, number) for number, line in lines]
    else:
        count = sum(1 for _ in FileRows(path))
        drawn = set(_evenly_drawn(count, most))
        rows = [row for n, row in enumerate(_unchecked_rows(path)) if n in drawn]
    for number, row in enumerate(rows, start=1):
        _check_row(row, str(path), number)
    return rows, count


def _has_lines(path: Path) -> bool:
    """Return True for a JSONL file with an object per line, False for one that is a JSON list."""
    if not path.name.removesuffix(".gz").lower().endswith(".jsonl") or not path.is_file():
        return False
    return not next((text for _, text in _filled_lines(path)), "").lstrip().startswith("[")


def _evenly_drawn(count: int, most: int) -> Sequence[int]:
    """Return the places of `most` of `count` rows, one drawn from each of `most` equal ranges."""
    if count <= most:
        return range(count)
    rng, ends = Rng(count), [n * count // most for n in range(most + 1)]
    return [first + rng.below(end - first) for first, end in pairwise(ends)]


def _check_row(row: Row, source: str, number: int) -> None:
    """Raise TaskError for a value that an item cannot hold, or an unprintable column name."""
    for name, value in row.items():
        if not _is_plain_name(name):
            raise TaskError(
                f"{source}, row {number} has a column with a control character or half of a "
                f"surrogate pair in its name: {ascii(name)[:80]}",
                hint="rename the column",
            )
        if value.__class__ not in _PLAIN_TYPES and (fault := _value_fault(value, 0)) is not None:
            raise refusal(
                TaskError,
                "tasks.unreadable_cell",
                source=source,
                number=number,
                name=name,
                fault=fault,
            )


@lru_cache(maxsize=1024)
def _is_plain_name(name: str) -> bool:
    return name.isprintable() or _LINE_BREAKS.sub("", name).isprintable()


def _value_fault(value: Any, depth: int) -> str | None:
    """Return the kind of a value that an item cannot hold; None if it can."""
    if value is None or isinstance(value, (str, bool, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"the number {value}"
    if depth > _MAX_DEPTH:
        return f"lists more than {_MAX_DEPTH} deep"
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return "a mapping with names that are not texts"
        return next((f for v in value.values() if (f := _value_fault(v, depth + 1))), None)
    if isinstance(value, list):
        if _PLAIN_TYPES.issuperset(map(type, value)):
            return None
        return next((f for v in value if (f := _value_fault(v, depth + 1))), None)
    return f"a {type(value).__name__}"


def read_hub(name: str, split: str) -> list[Row]:
    """Return the rows of a data set on the hub, `owner/name` or `owner/name/config`."""
    return row_sources.get("hub")(name, split)


def read_text(path: Path, longest: int | None = None) -> str:
    """Return the text of a file, decompressed if its name ends in .gz.

    `longest` limits the bytes of a line. The encoding is UTF-8, or follows a byte order mark.
    """
    return "".join(_text_chunks(path, longest))


def _text_chunks(path: Path, longest: int | None) -> Iterator[str]:
    """Yield the text of a file in pieces of about a megabyte.

    The encoding is UTF-8, or UTF-16 or UTF-32 if the file starts with that byte order mark. Raises
    TaskError as soon as the file exceeds its size limit, or a line exceeds `longest` bytes.
    """
    decoder, size = None, 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for data in chain(_byte_chunks(file, path, longest), [b""]):
                if decoder is None:
                    wide = (code for mark, code in _WIDE_ENCODINGS if data.startswith(mark))
                    decoder = codecs.getincrementaldecoder(next(wide, "utf-8-sig"))()
                size += len(data)
                yield decoder.decode(data, final=not data)
    except UnicodeDecodeError as error:
        place = size - len(error.object) + error.start
        raise TaskError(
            f"The data file {path} is not {error.encoding.upper()} (byte {place})",
            hint="it may be Latin-1, as spreadsheet programs save CSV: save it as 'CSV UTF-8', or "
            f"convert it: iconv -f WINDOWS-1252 -t UTF-8 {path.name} > utf8-{path.name}",
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise TaskError(f"The data file {path} cannot be read: {error}") from error


def _segments(path: Path) -> Iterator[str]:
    """Yield the text of a file in segments that end at the end of a line."""
    rest = ""
    for piece in _text_chunks(path, _MAX_LINE_BYTES):
        lines, feed, rest = (rest + piece).rpartition("\n")
        if feed:
            yield lines + feed
    if rest:
        yield rest


def _filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers."""
    number = 1
    for text in _segments(path):
        end = 0
        for match in _FILLED_LINE.finditer(text):  # skips even millions of blank lines quickly
            number += text.count("\n", end, match.start())
            end = match.start()
            if not (line := match[0]).isspace():
                yield number, line
        number += text.count("\n", end)


def _byte_chunks(
    file: gzip.GzipFile | io.BufferedReader, path: Path, longest: int | None
) -> Iterator[bytes]:
    """Yield the file in pieces. Raises TaskError beyond the limits on file and line."""
    size = lines = line = 0
    while piece := file.read(1 << 20):
        size += len(piece)
        _require_size(size, path)
        head, feed, _ = piece.partition(b"\n")
        line += len(head)
        if longest is not None and line > longest:
            raise refusal(TaskError, "tasks.long_line", path=path, lines=lines + 1, longest=longest)
        if feed:
            lines += piece.count(b"\n")
            line = len(piece) - piece.rindex(b"\n") - 1
        yield piece


def _jsonl_rows(path: Path) -> Iterator[Row]:
    """Yield an object per line; a file that is one JSON list is read as a list."""
    if not _has_lines(path):
        with contextlib.suppress(ValueError, RecursionError):
            whole = _strict_json(read_text(path, _MAX_LINE_BYTES))
            yield from (_as_row(row, f"{path}, entry {n}") for n, row in enumerate(whole, 1))
            return
    for number, line in _filled_lines(path):
        yield _parsed_line(line, path, number)


def _parsed_line(line: str, path: Path, number: int) -> Row:
    try:
        row = _strict_json(line)
    except (ValueError, RecursionError) as error:
        raise TaskError(
            f"{path}, line {number} is not JSON: {printable(str(error))}",
            hint="every line must be one JSON object",
        ) from error
    return row if isinstance(row, dict) else _as_row(row, f"{path}, line {number}")


def _json_rows(text: str, path: Path) -> list[Row]:
    try:
        data = _strict_json(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{path} is not JSON: {printable(str(error))}") from error
    if not isinstance(data, list):
        raise TaskError(f"{path} does not hold a list of objects", hint="use a JSON list or .jsonl")
    return [_as_row(row, f"{path}, entry {n}") for n, row in enumerate(data, start=1)]


def _strict_json(text: str) -> Any:
    """Return parsed JSON. Raises ValueError for NaN, and for a repeated name in an object.

    orjson takes a fifth of the time for a row of texts, whole numbers and lists of them. It keeps
    the last of two values with one name. So its result counts only if it is written again with as
    many quotation marks as were read.
    """
    if "\\u" not in text:
        with contextlib.suppress(ValueError):
            value = orjson.loads(text)
            if _is_plain(value) and text.count('"') == orjson.dumps(value).count(b'"'):
                return value
    return json.loads(text, parse_constant=_refuse_number, object_pairs_hook=_mapping_of_pairs)


def _is_plain(row: Any) -> bool:
    """Return True for an object of texts, whole numbers and lists of them."""
    return row.__class__ is dict and all(
        value.__class__ in _PLAIN_TYPES
        or (value.__class__ is list and _PLAIN_TYPES.issuperset(map(type, value)))
        for value in row.values()
    )


def _refuse_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _mapping_of_pairs(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = _repeated_name([name for name, _ in pairs])
        raise ValueError(f"the name {twice[:80]!r} appears twice")
    return row


def _repeated_name(names: Sequence[str]) -> str:
    """Return the first repeated name, or an empty text."""
    counts = Counter(names)
    return next((name for name in names if counts[name] > 1), "")


def _as_row(row: Any, where: str) -> Row:
    if not isinstance(row, dict):
        raise TaskError(f"{where} is not an object", hint='write {"column": value, …}')
    return row


def _separator(header: str) -> str:
    """Return a comma, unless the header has none but has semicolons or tabs."""
    if "," in header:
        return ","
    return max(";", "\t", key=header.count) if ";" in header or "\t" in header else ","


def _csv_rows(path: Path, delimiter: str | None) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL_BYTES))
    lines = chain.from_iterable(io.StringIO(text, newline="") for text in _segments(path))
    header = next(lines, "")
    cells = csv.reader(chain([header], lines), delimiter=delimiter or _separator(header))
    try:
        names = next(cells, [])
        if len(set(names)) < len(names):
            raise refusal(TaskError, "tasks.header_twice", path=path, names=_repeated_name(names))
        for row in filter(None, cells):
            if len(row) != len(names):
                raise TaskError(
                    f"{path}, line {cells.line_num} has a different number of cells than the "
                    "header",
                    hint=f"write {len(names)} cells, as in the header",
                )
            yield dict(zip(names, row, strict=True))
    except csv.Error as error:
        raise TaskError(f"{path}, line {cells.line_num or 1}: {error}") from error


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("Reading Parquet", "parquet", "pyarrow") from error
    try:
        file = parquet.ParquetFile(path)
        names = file.schema_arrow.names
    except Exception as error:
        raise refusal(TaskError, "tasks.no_parquet", path=path, error=error) from error
    if file.metadata.num_rows and len(set(names)) < len(names):
        raise TaskError(f"{path} has a column twice", hint="rename one of the two")
    size, batches = 0, file.iter_batches(1024)
    while True:
        try:
            batch = next(batches, None)
            size += 0 if batch is None else batch.nbytes
            rows = [] if batch is None or size > _MAX_BYTES else batch.to_pylist()
        except Exception as error:  # texts that are no UTF-8, dates that Python does not have
            raise TaskError(f"{path} holds a value that cannot be read: {error}") from error
        _require_size(size, path)
        if batch is None:
            return
        for row in rows:
            yield {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}


def _require_size(size: int, path: Path) -> None:
    if size > _MAX_BYTES:
        raise refusal(TaskError, "tasks.large_file", path=path, most_bytes=_MAX_BYTES)


def read_template_file(path: str | Path) -> str:
    """Return the text of a template file. Raises UsageError if it is unreadable."""
    path = Path(path)
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(UsageError, "tasks.unreadable_template", path=path, error=error) from error


# Rows in memory: a list of mappings, or a data frame

ROWS_IN_MEMORY = "the rows in memory"
_ROWS_BY_PATH: dict[str, list[Row]] = {}
_MISSING_TYPES = frozenset({"NAType", "NaTType"})  # the types of pandas' missing values
_TARGET_COLUMNS = ("answer", "target", "label")
_CHAT_COLUMNS = ("messages", "conversations", "prompt", "input")
_FRAME_METHODS = ("to_dicts", "to_pylist", "to_dict")  # polars, pyarrow, pandas


def is_rows(data: object) -> bool:
    """Return True if `data` is a list of rows or a data frame, not the settings of a file."""
    if isinstance(data, (list, tuple)):
        return True
    named = hasattr(data, "columns") or hasattr(data, "column_names")
    return named and not isinstance(data, (str, Mapping)) and _frame_reader(data) is not None


def keep_rows(data: Any) -> str:
    """Keep rows in memory, and return their path: `memory:` and their hash.

    Raises InvalidValue or TaskError for data that are no rows, are empty, or cannot be items.
    """
    if not is_rows(data):
        raise InvalidValue("data.rows", data, "a list of dictionaries, or a data frame")
    rows = [_memory_row(row, number) for number, row in enumerate(_plain_rows(data), start=1)]
    if not rows:
        raise TaskError("The data are empty", hint="give at least one row")
    for number, row in enumerate(rows, start=1):
        _check_row(row, ROWS_IN_MEMORY, number)
    name = f"{MEMORY}{short(digest('rows', json.dumps(rows)), 16)}"
    _ROWS_BY_PATH[name] = rows
    return name


def in_memory(path: str) -> bool:
    """Return True if a path names rows in memory, as `keep_rows` returns it."""
    return path.startswith(MEMORY)


def rows_at(path: str) -> Iterable[Row]:
    """Return the rows of a file or of this process's memory; they can be iterated repeatedly."""
    if not in_memory(path):
        return FileRows(Path(path))
    if path not in _ROWS_BY_PATH:
        raise refusal(TaskError, "tasks.rows_of_other_process", path=path)
    return _ROWS_BY_PATH[path]


def source_name(path: str) -> str:
    """Return a path's name for messages: the file name, or the number of rows in memory."""
    if in_memory(path):
        return f"{len(_ROWS_BY_PATH.get(path, ())):,} rows in memory"
    return path.replace("\\", "/").rpartition("/")[2]


def holds_chats(path: str) -> bool:
    """Return True if a file can be read and its rows are conversations."""
    try:
        return chat_column(first_row(rows_at(path))) is not None
    except FalterError:
        return False


def first_row(rows: Iterable[Row]) -> Row:
    return next(iter(rows))


def chat_column(first: Row) -> str | None:
    """Return the column that holds conversations, judging by the first row, or None."""
    named = (
        c for c in _CHAT_COLUMNS if c in first and (c in _CHAT_COLUMNS[:2] or lists_turns(first[c]))
    )
    return next(named, None)


def lists_turns(value: Any) -> bool:
    """Return True for a list of turns, or for its JSON text in a cell."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(value)
    turns = value if isinstance(value, list) else []
    return any(isinstance(t, dict) and ("role" in t or "from" in t) for t in turns)


def target_column(path: str) -> str | None:
    """Return the only column with the name of a target (answer, target or label).

    Return None for conversations without such a column. Otherwise raises TaskError if there is none
    or more than one.
    """
    first = first_row(rows_at(path))
    columns = list(first)
    likely = [name for name in columns if name.lower() in _TARGET_COLUMNS]
    if not likely and chat_column(first) is not None:
        return None
    if len(likely) != 1:
        shown = ", ".join(columns[:12])
        what = "A list of rows" if in_memory(path) else path
        hint = "write 'data: {path: FILE, target: COLUMN}', or add --target COLUMN"
        raise TaskError(
            f"{what} alone does not say which column holds the right answer (columns: {shown})",
            hint="write data={'rows': rows, 'target': 'COLUMN'}" if in_memory(path) else hint,
        )
    return likely[0]


def _frame_reader(data: object) -> Any:
    return next((getattr(data, name) for name in _FRAME_METHODS if hasattr(data, name)), None)


def _plain_rows(data: Any) -> Any:
    """Return the rows of a list or a data frame, without importing the frame's library."""
    if isinstance(data, (list, tuple)):
        return data
    names = list(getattr(data, "column_names", None) or data.columns)
    for name in names:
        if not isinstance(name, str):
            raise refusal(TaskError, "tasks.unnamed_column", name=name)
    if len(set(names)) < len(names):
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise refusal(TaskError, "tasks.column_twice", twice=twice)
    read = _frame_reader(data)
    return read("records") if read.__name__ == "to_dict" else read()


def _memory_row(row: Any, number: int) -> Row:
    if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
        raise refusal(TaskError, "tasks.no_mapping", about=ROWS_IN_MEMORY, number=number, row=row)
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    """Return a value as a file would hold it: NumPy numbers as Python's, missing values as None."""
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if type(value).__name__ in _MISSING_TYPES:
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _plain_value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_value(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy
        return _plain_value(value.tolist())
    return value
