"""Rows of data: from JSONL, JSON, CSV, TSV and Parquet files, the hub, or memory."""

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
"""The beginning of the name of rows that are no file."""
TargetAs = Literal["auto", "index", "label", "text"]
row_sources: Registry[Callable[[str, str], list[Row]]] = Registry("source of rows", "falter.rows")
"""The functions that give the rows of a data set elsewhere, by the names of set and split."""
_DEEPEST, _MOST_BYTES = 50, 2 * 2**30
_LONGEST_CELL = _LONGEST_LINE = 16 * 2**20
_LINES = re.compile(r"[\t\r\n]")
_FILLED = re.compile(r"[^\n]+")
_PLAIN = frozenset({str, int, bool, type(None)})
_MOST_ROWS = 2_000_000
_SPREADSHEETS = ("xlsx", "xlsm", "xls", "ods", "numbers")
_SPREADSHEET = (
    "save the sheet as 'CSV UTF-8' in the spreadsheet program; in Python, falter.run takes a data "
    "frame as 'data'"
)
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_READABLE = ".jsonl, .json, .csv, .tsv or .parquet (also .gz)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """The source of items, and the use of each column.

    `fields` maps placeholders to columns; without it every placeholder is a column's name.
    `choices` is one column that holds a list, or several columns with one option each. Rows that
    make the same item are an error, or all but the first are dropped. Of conversations
    `turns` says which turns of the assistant are asked for, `join` and `each` how documents are
    written.
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
    """The rows of a data file, read and checked one after another each time they are iterated."""

    path: Path

    def __iter__(self) -> Iterator[Row]:
        number, path = 0, str(self.path)
        for number, row in enumerate(_unchecked_rows(self.path), start=1):
            if number > _MOST_ROWS:
                raise refusal(TaskError, "tasks.too_many_rows", path=path, most_rows=_MOST_ROWS)
            _check_row(row, path, number)
            yield row
        if not number:
            hint = "give a file with at least one row"
            raise TaskError(f"The data file {path} has no rows", hint=hint)


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a data file; an empty or unreadable one is an error that says where."""
    return list(FileRows(Path(path)))


def _unchecked_rows(path: Path) -> Iterable[Row]:
    if not path.exists():
        raise TaskError(f"The data file {path} does not exist", hint=f"give a {_READABLE} file")
    if path.is_dir():
        raise TaskError(f"{path} is a folder, not a data file", hint=f"give a {_READABLE} file")
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind == "parquet":
        return _parquet(path)
    if kind in ("csv", "tsv"):
        return _csv(path, "\t" if kind == "tsv" else None)
    if kind == "jsonl":
        return _jsonl(path)
    if kind == "json":
        return _json(read_text(path), path)
    raise TaskError(
        f"The data file {path} is not a kind of file that falter can read",
        hint=_SPREADSHEET if kind in _SPREADSHEETS else f"use {_READABLE}",
    )


def sampled_rows(path: str | Path, most: int) -> tuple[list[Row], int]:
    """Return at most `most` rows of a file, evenly drawn, and how many rows it has.

    Of a JSONL file only the lines that are drawn are parsed: the others are counted. What is wrong
    with the others is found when all rows are read, before a run sends anything.
    """
    path = Path(path)
    if _has_lines(path) and (count := sum(1 for _ in _filled_lines(path))) > most:
        drawn = set(_evenly(count, most))
        lines = (each for n, each in enumerate(_filled_lines(path)) if n in drawn)
        rows = [_parsed(line, path, number) for number, line in lines]
    else:
        count = sum(1 for _ in FileRows(path))
        drawn = set(_evenly(count, most))
        rows = [row for n, row in enumerate(_unchecked_rows(path)) if n in drawn]
    for number, row in enumerate(rows, start=1):
        _check_row(row, str(path), number)
    return rows, count


def _has_lines(path: Path) -> bool:
    """Return True for a JSONL file that holds an object a line, and not one JSON list."""
    if not path.name.removesuffix(".gz").lower().endswith(".jsonl") or not path.is_file():
        return False
    return not next((text for _, text in _filled_lines(path)), "").lstrip().startswith("[")


def _evenly(count: int, most: int) -> Sequence[int]:
    """Places of `most` of `count` rows, one drawn in each of as many stretches of equal length."""
    if count <= most:
        return range(count)
    rng, ends = Rng(count), [n * count // most for n in range(most + 1)]
    return [first + rng.below(end - first) for first, end in pairwise(ends)]


def _check_row(row: Row, source: str, number: int) -> None:
    """Raise for a value that is no text, number, list or mapping, and for odd names."""
    for name, value in row.items():
        if not _is_plain_name(name):
            raise TaskError(
                f"{source}, row {number} has a column with a control character or half of a "
                f"surrogate pair in its name: {ascii(name)[:80]}",
                hint="rename the column",
            )
        if value.__class__ not in _PLAIN and (fault := _fault(value, 0)) is not None:
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
    return name.isprintable() or _LINES.sub("", name).isprintable()


def _fault(value: Any, depth: int) -> str | None:
    """Return the kind of a value that an item cannot hold; None if it can."""
    if value is None or isinstance(value, (str, bool, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"the number {value}"
    if depth > _DEEPEST:
        return f"lists more than {_DEEPEST} deep"
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return "a mapping with names that are not texts"
        return next((f for v in value.values() if (f := _fault(v, depth + 1))), None)
    if isinstance(value, list):
        if _PLAIN.issuperset(map(type, value)):
            return None
        return next((f for v in value if (f := _fault(v, depth + 1))), None)
    return f"a {type(value).__name__}"


def read_hub(name: str, split: str) -> list[Row]:
    """The rows of a data set on the hub: `owner/name` or `owner/name/config`."""
    return row_sources.get("hub")(name, split)


def read_text(path: Path, longest: int | None = None) -> str:
    """The whole of a UTF-8 file, unpacked where its name ends in .gz."""
    return "".join(_pieces(path, longest))


def _pieces(path: Path, longest: int | None) -> Iterator[str]:
    """The text of a file in pieces of about a megabyte.

    One of UTF-16 or UTF-32 is read where its first bytes say that it is one. A file beyond the
    bounds, or with a line of more than `longest` bytes, is refused as soon as so much is read.
    """
    decoder, size = None, 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for data in chain(_bounded(file, path, longest), [b""]):
                if decoder is None:
                    wide = (code for mark, code in _WIDE if data.startswith(mark))
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
    """The text of a file in segments that end where a line does."""
    rest = ""
    for piece in _pieces(path, _LONGEST_LINE):
        lines, feed, rest = (rest + piece).rpartition("\n")
        if feed:
            yield lines + feed
    if rest:
        yield rest


def _filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that hold something, with their numbers."""
    number = 1
    for text in _segments(path):
        end = 0
        for match in _FILLED.finditer(text):  # blank lines may be millions, and cost nothing
            number += text.count("\n", end, match.start())
            end = match.start()
            if not (line := match[0]).isspace():
                yield number, line
        number += text.count("\n", end)


def _bounded(
    file: gzip.GzipFile | io.BufferedReader, path: Path, longest: int | None
) -> Iterator[bytes]:
    """The file in pieces, for as long as it stays within the bounds."""
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


def _jsonl(path: Path) -> Iterator[Row]:
    """An object a line; a file that is one JSON list is read as a list."""
    if not _has_lines(path):
        with contextlib.suppress(ValueError, RecursionError):
            whole = _loaded(read_text(path, _LONGEST_LINE))
            yield from (_object(row, f"{path}, entry {n}") for n, row in enumerate(whole, 1))
            return
    for number, line in _filled_lines(path):
        yield _parsed(line, path, number)


def _parsed(line: str, path: Path, number: int) -> Row:
    try:
        row = _loaded(line)
    except (ValueError, RecursionError) as error:
        raise TaskError(
            f"{path}, line {number} is not JSON: {printable(str(error))}",
            hint="every line must be one JSON object",
        ) from error
    return row if isinstance(row, dict) else _object(row, f"{path}, line {number}")


def _json(text: str, path: Path) -> list[Row]:
    try:
        data = _loaded(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{path} is not JSON: {printable(str(error))}") from error
    if not isinstance(data, list):
        raise TaskError(f"{path} does not hold a list of objects", hint="use a JSON list or .jsonl")
    return [_object(row, f"{path}, entry {n}") for n, row in enumerate(data, start=1)]


def _loaded(text: str) -> Any:
    """JSON as the standard has it: no NaN, and no name twice in an object.

    orjson takes a fifth of the time for a row of texts, whole numbers and lists of them. It keeps
    the last of two values of one name, so as many quotation marks must be written again as read.
    """
    if "\\u" not in text:
        with contextlib.suppress(ValueError):
            value = orjson.loads(text)
            if _is_plain(value) and text.count('"') == orjson.dumps(value).count(b'"'):
                return value
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)


def _is_plain(row: Any) -> bool:
    """Return True for an object of texts, whole numbers and lists of them."""
    return row.__class__ is dict and all(
        value.__class__ in _PLAIN
        or (value.__class__ is list and _PLAIN.issuperset(map(type, value)))
        for value in row.values()
    )


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _once(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        twice = _twice([name for name, _ in pairs])
        raise ValueError(f"the name {twice[:80]!r} appears twice")
    return row


def _twice(names: Sequence[str]) -> str:
    """The first name that is there more than once; empty if there is none."""
    counts = Counter(names)
    return next((name for name in names if counts[name] > 1), "")


def _object(row: Any, where: str) -> Row:
    if not isinstance(row, dict):
        raise TaskError(f"{where} is not an object", hint='write {"column": value, …}')
    return row


def _separator(header: str) -> str:
    """A comma, unless the header has none and has semicolons or tabs, as some programs write."""
    if "," in header:
        return ","
    return max(";", "\t", key=header.count) if ";" in header or "\t" in header else ","


def _csv(path: Path, delimiter: str | None) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    lines = chain.from_iterable(io.StringIO(text, newline="") for text in _segments(path))
    header = next(lines, "")
    cells = csv.reader(chain([header], lines), delimiter=delimiter or _separator(header))
    try:
        names = next(cells, [])
        if len(set(names)) < len(names):
            raise refusal(TaskError, "tasks.header_twice", path=path, names=_twice(names))
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


def _parquet(path: Path) -> Iterator[Row]:
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
            rows = [] if batch is None or size > _MOST_BYTES else batch.to_pylist()
        except Exception as error:  # texts that are no UTF-8, dates that Python does not have
            raise TaskError(f"{path} holds a value that cannot be read: {error}") from error
        _require_size(size, path)
        if batch is None:
            return
        for row in rows:
            yield {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}


def _require_size(size: int, path: Path) -> None:
    if size > _MOST_BYTES:
        raise refusal(TaskError, "tasks.large_file", path=path, most_bytes=_MOST_BYTES)


def read_template_file(path: str | Path) -> str:
    """The text of a template file."""
    path = Path(path)
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(UsageError, "tasks.unreadable_template", path=path, error=error) from error


# Rows in memory: a list of mappings, or a data frame

ABOUT = "the rows in memory"
_OFFERED: dict[str, list[Row]] = {}
_NOTHING = frozenset({"NAType", "NaTType"})  # what pandas writes for a missing value
_TARGETS = ("answer", "target", "label")
_CHATS = ("messages", "conversations", "prompt", "input")
_FRAMES = ("to_dicts", "to_pylist", "to_dict")  # polars, pyarrow, pandas


def is_rows(data: object) -> bool:
    """Return True if `data` is a list of rows or a data frame, not the settings of a file."""
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
    for number, row in enumerate(rows, start=1):
        _check_row(row, ABOUT, number)
    name = f"{MEMORY}{short(digest('rows', json.dumps(rows)), 16)}"
    _OFFERED[name] = rows
    return name


def in_memory(path: str) -> bool:
    """Return True if a path is a name that `offer_rows` gave."""
    return path.startswith(MEMORY)


def rows_at(path: str) -> Iterable[Row]:
    """The rows of a file, or those in the memory of this process; they can be iterated again."""
    if not in_memory(path):
        return FileRows(Path(path))
    if path not in _OFFERED:
        raise refusal(TaskError, "tasks.rows_of_other_process", path=path)
    return _OFFERED[path]


def source_name(path: str) -> str:
    """Return a path's name for messages and reports: a file's name, or rows in memory."""
    if in_memory(path):
        return f"{len(_OFFERED.get(path, ())):,} rows in memory"
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
    """The column that holds conversations, by the first row; None where there is none."""
    named = (c for c in _CHATS if c in first and (c in _CHATS[:2] or lists_turns(first[c])))
    return next(named, None)


def lists_turns(value: Any) -> bool:
    """Return True for a list of turns, also one written as JSON in a cell."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(value)
    turns = value if isinstance(value, list) else []
    return any(isinstance(t, dict) and ("role" in t or "from" in t) for t in turns)


def target_column(path: str) -> str | None:
    """The one column of some data that is called like a target; without one an error.

    Conversations may do without one.
    """
    first = first_row(rows_at(path))
    columns = list(first)
    likely = [name for name in columns if name.lower() in _TARGETS]
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


def _reader(data: object) -> Any:
    return next((getattr(data, name) for name in _FRAMES if hasattr(data, name)), None)


def _plain_rows(data: Any) -> Any:
    """Return a frame's rows; nothing is imported for it."""
    if isinstance(data, (list, tuple)):
        return data
    names = list(getattr(data, "column_names", None) or data.columns)
    for name in names:
        if not isinstance(name, str):
            raise refusal(TaskError, "tasks.unnamed_column", name=name)
    if len(set(names)) < len(names):
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise refusal(TaskError, "tasks.column_twice", twice=twice)
    read = _reader(data)
    return read("records") if read.__name__ == "to_dict" else read()


def _row(row: Any, number: int) -> Row:
    if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
        raise refusal(TaskError, "tasks.no_mapping", about=ABOUT, number=number, row=row)
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
