"""Reading of tables and JSON files within limits, and the roles of a table's columns.

No line, text or packed file can exhaust the memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from array import array
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import orjson

from falter.readers.cells import Coded, Names
from falter.records.errors import MissingExtra, TaskError, UnknownName, UsageError, refusal

MAX_FILE_BYTES = 16 * 2**30
MAX_JSON_BYTES = 2 * 2**30
MAX_LINE_BYTES = 64 * 2**20


def kind_of(path: Path) -> str:
    """Return the ending of a file's name in lower case, without .gz: `csv`."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


class _BoundedFile(io.RawIOBase):
    """A binary file that raises `TaskError` after more than `max_bytes`, counted unpacked."""

    def __init__(self, files: Sequence[IO[bytes]], path: Path, max_bytes: int) -> None:
        self._file, self._files = files[0], files
        self._path, self._bytes_left, self._max_bytes = path, max_bytes, max_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise TaskError(
                f"{self._path} cannot be read: {error}",
                hint="the file may be incomplete; fetch it again",
            ) from error
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise TaskError(f"{self._path} holds more than {self._max_bytes:,} bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


def open_bounded(path: Path, max_bytes: int = MAX_FILE_BYTES) -> io.BufferedReader:
    """Open a file of at most `max_bytes` for reading, unpacked if it ends in .gz."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise TaskError(
            f"{path} cannot be opened: {error.strerror or error}",
            hint="check the path and the permissions of the file",
        ) from error
    packed = path.suffix.lower() == ".gz"
    files: list[Any] = [gzip.GzipFile(fileobj=file), file] if packed else [file]
    return io.BufferedReader(_BoundedFile(files, path, max_bytes), 2**20)


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers. Raise for a line of 64 MiB or more."""
    with open_bounded(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(line) >= MAX_LINE_BYTES:
                raise TaskError(f"{path}, line {number} is longer than {MAX_LINE_BYTES:,} bytes")
            yield number, line


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSONL file with their line numbers."""
    for number, line in lines(path):
        if not line.strip():
            continue
        row = _parsed(line, f"{path}, line {number}")
        if not isinstance(row, dict):
            raise TaskError(f"{path}, line {number} is not a JSON object")
        yield number, row


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of at most 2 GiB."""
    with open_bounded(path, MAX_JSON_BYTES) as file:
        return _parsed(file.read(), str(path))


def _parsed(data: bytes, where: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        # Python's NaN and Infinity are not JSON, but lm-eval and Inspect write them.
        return _parse_leniently(data, where, error)


def _parse_leniently(data: bytes, where: str, error: Exception) -> Any:
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise TaskError(
            f"{where} is not JSON: {error}", hint="the file may be incomplete; fetch it again"
        ) from error


# Roles of columns: as the user names them, or else by usual names


Layout = Literal["auto", "long", "wide"]
FILE = "@file"
# Roles for which a wide table has columns in addition to its scores.
WIDE_ROLES = ("model", "task", "item", "run", "cluster")
# Roles of results, for which a fixed text (`=TEXT`) is not allowed.
VALUE_ROLES = ("score", "outcome", "output")

# Usual names by role; the first that a table has is used. Case, spaces and dashes do not count.
_WORDS = orjson.loads((files("falter.readers") / "words.json").read_bytes())
ROLES: dict[str, list[str]] = _WORDS["roles"]
OUTCOME_WORDS: dict[str, list[str]] = _WORDS["outcomes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """The columns that the user named for each role; usual names fill empty roles.

    A role takes a column, or several columns (`strategy`, `swap` become one name). `=TEXT` stands
    for the same text in all rows, and `@file` for the name of the file. More than one `score`
    column makes a wide table: each row is an item, each score column a condition.
    """

    model: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    item: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    layout: Layout = "auto"

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """Roles for which the user named columns, with these columns."""
        by_role = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "layout"}
        return {role: columns for role, columns in by_role.items() if columns}


def resolve(columns: ColumnMap, names: Sequence[str], path: Path) -> dict[str, tuple[str, ...]]:
    """Return the columns of each role in a table; a wide table has several score columns."""
    roles = {role: _named_columns(role, texts, names) for role, texts in columns.named.items()}
    used = {name for role_columns in roles.values() for name in role_columns}
    if "score" not in roles and columns.layout != "wide":
        _guess_columns(roles, used, ("score",), names)
    wide = columns.layout == "wide" or len(roles.get("score", ())) != 1
    if wide and columns.layout == "long":
        raise refusal(UsageError, "readers.several_scores")
    _guess_columns(roles, used, WIDE_ROLES if wide else [r for r in ROLES if r != "score"], names)
    if "score" not in roles:
        _make_wide(roles, names, used, path)
    return roles


def _guess_columns(
    resolved: dict[str, tuple[str, ...]], used: set[str], roles: Sequence[str], names: Sequence[str]
) -> None:
    """Add columns with a usual name to the roles that have no column."""
    for role in roles:
        column = usual_column(ROLES[role], [name for name in names if name not in used])
        if role not in resolved and column is not None:
            resolved[role] = (column,)
            used.add(column)


def _make_wide(
    found: dict[str, tuple[str, ...]], names: Sequence[str], taken: set[str], path: Path
) -> None:
    """Make every column without a role a score column, and so a condition."""
    rest = tuple(name for name in names if name not in taken)
    if not rest:
        raise UsageError(
            f"{path} has no column of scores", hint=f"its columns: {', '.join(names[:20])}"
        )
    found["score"] = rest


def _named_columns(role: str, texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that the user named for a role.

    A comma separates two columns, unless it is part of a column's name. Raise `UnknownName` for a
    column that the table lacks.
    """
    named: list[str] = []
    for text in texts:
        parts = [text] if text in names or text.startswith(("=", FILE)) else text.split(",")
        for part in parts:
            free = part.startswith("=") or part == FILE
            if part not in names and not (free and role not in VALUE_ROLES):
                raise UnknownName(f"column for --{role}", part, names)
            named.append(part)
    return tuple(named)


def usual_column(usual: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column with the first usual name, or None; case, spaces, dashes do not count."""
    plain = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in names}
    return next((plain[name] for name in usual if name in plain), None)


# Columns of coded texts, read with pyarrow if it is installed, otherwise with csv


TABLES = ("csv", "tsv", "parquet")
BLOCK_BYTES = 4 * 2**20
MAX_LINE_CHARACTERS = 64 * 2**20


def column_names(path: Path) -> list[str]:
    """Return the header of a table. Raise `TaskError` if a name occurs twice."""
    if kind_of(path) == "parquet":
        with _open_parquet(path) as file:
            names = file.schema_arrow.names
    else:
        with closing(_numbered_rows(path)) as rows:
            names = next(rows, (0, []))[1]
    if not names:
        raise refusal(TaskError, "readers.empty_table", path=path)
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise TaskError(f"{path} has the column '{twice[0]}' twice", hint="rename one of the two")
    return list(names)


def read_columns(path: Path, names: Sequence[str], needed: Sequence[str]) -> dict[str, Coded]:
    """Return the needed columns in coded form.

    `names` is the header. If pyarrow rejects a text table, it is read again in pure Python, which
    accepts it or reports the wrong line.
    """
    if kind_of(path) == "parquet":
        return _coded_columns(_parquet_batches(path, needed), needed)
    try:
        import pyarrow as pa
    except ImportError:
        return _read_rows(path, names, needed)
    try:
        return _coded_columns(_arrow_batches(path, needed), needed)
    except pa.ArrowException:
        return _read_rows(path, names, needed)


def parquet_rows(path: Path, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file with these columns or nested fields (`model.name`)."""
    import pyarrow as pa

    with _open_parquet(path) as file:
        try:
            for batch in file.iter_batches(columns=list(fields)):
                yield from batch.to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise TaskError(
                f"{path} cannot be read: {error}", hint="the file may be incomplete; fetch it again"
            ) from error


def line_of(path: Path, row: int) -> str:
    """Return the place of a table's row for messages: `results.csv, line 7`."""
    if kind_of(path) == "parquet":
        return f"{path}, row {row + 1}"
    with closing(_numbered_rows(path)) as rows:
        for number, (line, _) in enumerate(rows, start=-1):
            if number == row:
                return f"{path}, line {line}"
    return str(path)


def _delimiter(path: Path) -> str:
    return "\t" if kind_of(path) == "tsv" else ","


def _numbered_rows(path: Path) -> Generator[tuple[int, list[str]]]:
    """Yield the non-empty rows of a text table, each with the number of its last line."""
    with open_bounded(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(_bounded_lines(text, path), delimiter=_delimiter(path))
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise TaskError(f"{path}, line {reader.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise TaskError(
                f"{path}, after line {reader.line_num} is not UTF-8", hint="convert it to UTF-8"
            ) from error


def _bounded_lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    """Yield lines of text. Raise `TaskError` for a line of `MAX_LINE_CHARACTERS` or more."""
    while line := text.readline(MAX_LINE_CHARACTERS):
        if len(line) >= MAX_LINE_CHARACTERS:
            raise TaskError(f"{path} has a line of more than {MAX_LINE_CHARACTERS:,} characters")
        yield line


def _read_rows(path: Path, names: Sequence[str], needed: Sequence[str]) -> dict[str, Coded]:
    """Return columns read row by row. Raise if a row and the header differ in length."""
    places = [names.index(name) for name in needed]
    numberings = [Names() for _ in needed]
    codes = [array("i") for _ in needed]
    with closing(_numbered_rows(path)) as rows:
        next(rows)
        for line, row in rows:
            if len(row) != len(names):
                raise TaskError(
                    f"{path}, line {line} has {len(row)} cells, the header has {len(names)}",
                    hint="put quotes around texts with a comma",
                )
            for place, numbering, column in zip(places, numberings, codes, strict=True):
                column.append(numbering(row[place]))
    return {
        name: Coded(names=numbering.all, codes=np.array(column, dtype=np.int32))
        for name, numbering, column in zip(needed, numberings, codes, strict=True)
    }


def _arrow_batches(path: Path, needed: Sequence[str]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    text = pa.dictionary(pa.int32(), pa.string())
    with open_bounded(path) as file:
        yield from arrow.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=arrow.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=arrow.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                include_columns=list(needed),
                column_types=dict.fromkeys(needed, text),
                strings_can_be_null=False,
            ),
        )


def _open_parquet(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("Reading Parquet", "parquet", "pyarrow") from error
    try:
        return parquet.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise TaskError(
            f"{path} is not Parquet: {error}", hint="the file may be incomplete; fetch it again"
        ) from error


def _parquet_batches(path: Path, needed: Sequence[str]) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    with _open_parquet(path) as file:
        for batch in file.iter_batches(columns=list(needed)):
            columns = []
            for name in needed:
                try:
                    column = pc.fill_null(pc.cast(batch.column(name), pa.string()), "")
                except pa.ArrowException as error:
                    raise TaskError(
                        f"{path}: the column '{name}' contains nested values"
                    ) from error
                columns.append(column.dictionary_encode())
            yield pa.RecordBatch.from_arrays(columns, list(needed))


def _dictionary_codes(column: Any) -> Any:
    """Return the codes of an Arrow dictionary array without a copy.

    Arrow's own conversion would import pandas.
    """
    data = np.frombuffer(column.buffers()[1], dtype=column.type.to_pandas_dtype())
    return data[column.offset : column.offset + len(column)]


def _coded_columns(batches: Iterator[Any], needed: Sequence[str]) -> dict[str, Coded]:
    """Return batches with dictionary columns as one coded column for each name."""
    numberings = {name: Names() for name in needed}
    codes: dict[str, list[Any]] = {name: [] for name in needed}
    for batch in batches:
        for name in needed:
            column = batch.column(name)
            numbers = [numberings[name](text) for text in column.dictionary.to_pylist()]
            codes[name].append(np.array(numbers, dtype=np.int32)[_dictionary_codes(column.indices)])
    empty = [np.zeros(0, dtype=np.int32)]
    return {
        name: Coded(names=numberings[name].all, codes=np.concatenate(codes[name] or empty))
        for name in needed
    }
