"""Tables in files, read within bounds: columns, and which role each has.

No line, text or archive member can fill the memory.
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

MOST_BYTES = 16 * 2**30
MOST_JSON = 2 * 2**30
LONGEST_LINE = 64 * 2**20


def kind_of(path: Path) -> str:
    """The last part of the name in lower case, without .gz: `csv`."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


class _Bounded(io.RawIOBase):
    """A file that raises once it has given more than a number of bytes, however it is packed."""

    def __init__(self, files: Sequence[IO[bytes]], path: Path, most: int) -> None:
        self._file, self._files = files[0], files
        self._path, self._left, self._most = path, most, most

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
        self._left -= len(data)
        if self._left < 0:
            raise TaskError(f"{self._path} holds more than {self._most:,} bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


def bounded(path: Path, most: int = MOST_BYTES) -> io.BufferedReader:
    """A file for reading, unpacked if it ends in .gz, of at most `most` bytes."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise TaskError(
            f"{path} cannot be opened: {error.strerror or error}",
            hint="check the path and the permissions of the file",
        ) from error
    packed = path.suffix.lower() == ".gz"
    files: list[Any] = [gzip.GzipFile(fileobj=file), file] if packed else [file]
    return io.BufferedReader(_Bounded(files, path, most), 2**20)


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines, none longer than 64 MiB."""
    with bounded(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) >= LONGEST_LINE:
                raise TaskError(f"{path}, line {number} is longer than {LONGEST_LINE:,} bytes")
            yield number, line


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers."""
    for number, line in lines(path):
        if not line.strip():
            continue
        row = _parsed(line, f"{path}, line {number}")
        if not isinstance(row, dict):
            raise TaskError(f"{path}, line {number} is not a JSON object")
        yield number, row


def read_json(path: Path) -> Any:
    """One JSON file as a whole."""
    with bounded(path, MOST_JSON) as file:
        return _parsed(file.read(), str(path))


def _parsed(data: bytes, where: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        # Python's own NaN and Infinity are no JSON, but lm-eval and Inspect write them.
        return _lenient(data, where, error)


def _lenient(data: bytes, where: str, error: Exception) -> Any:
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise TaskError(
            f"{where} is not JSON: {error}", hint="the file may be incomplete; fetch it again"
        ) from error


# Roles of columns: as the user names them, else by the usual names


Layout = Literal["auto", "long", "wide"]
FILE = "@file"
# The roles that a wide table has columns for, beside its scores.
WIDE = ("model", "task", "item", "run", "cluster")
# The roles that hold results, which one fixed text (`=TEXT`) cannot stand for.
VALUES = ("score", "outcome", "output")

# The first of these that a table has; names are compared without case, spaces and dashes.
_WORDS = orjson.loads((files("falter.readers") / "words.json").read_bytes())
ROLES: dict[str, list[str]] = _WORDS["roles"]
OUTCOME_WORDS: dict[str, list[str]] = _WORDS["outcomes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """The columns for each role, as the user says; empty roles are filled by the usual names.

    Each role takes a column, several (`strategy`, `swap` become one name), `=TEXT` for the same
    text everywhere, or `@file` for the name of the file. More than one `score` column makes a
    wide table: a row an item, a score column a condition.
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
        """The roles that the user named columns for."""
        by_role = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "layout"}
        return {role: columns for role, columns in by_role.items() if columns}


def resolve(columns: ColumnMap, names: Sequence[str], path: Path) -> dict[str, tuple[str, ...]]:
    """The columns of every role in a table. Wide tables have several score columns."""
    roles = {role: _named_columns(role, texts, names) for role, texts in columns.named.items()}
    used = {name for role_columns in roles.values() for name in role_columns}
    if "score" not in roles and columns.layout != "wide":
        _guess(roles, used, ("score",), names)
    wide = columns.layout == "wide" or len(roles.get("score", ())) != 1
    if wide and columns.layout == "long":
        raise refusal(UsageError, "readers.several_scores")
    _guess(roles, used, WIDE if wide else [r for r in ROLES if r != "score"], names)
    if "score" not in roles:
        _as_wide(roles, names, used, path)
    return roles


def _guess(
    resolved: dict[str, tuple[str, ...]], used: set[str], roles: Sequence[str], names: Sequence[str]
) -> None:
    """Columns with a usual name, for the roles that have none."""
    for role in roles:
        column = usual_column(ROLES[role], [name for name in names if name not in used])
        if role not in resolved and column is not None:
            resolved[role] = (column,)
            used.add(column)


def _as_wide(
    found: dict[str, tuple[str, ...]], names: Sequence[str], taken: set[str], path: Path
) -> None:
    """Every column without a role is a condition."""
    rest = tuple(name for name in names if name not in taken)
    if not rest:
        raise UsageError(
            f"{path} has no column of scores", hint=f"its columns: {', '.join(names[:20])}"
        )
    found["score"] = rest


def _named_columns(role: str, texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The columns that were named; a comma stands between two, unless it is part of a name."""
    named: list[str] = []
    for text in texts:
        parts = [text] if text in names or text.startswith(("=", FILE)) else text.split(",")
        for part in parts:
            free = part.startswith("=") or part == FILE
            if part not in names and not (free and role not in VALUES):
                raise UnknownName(f"column for --{role}", part, names)
            named.append(part)
    return tuple(named)


def usual_column(usual: Sequence[str], names: Sequence[str]) -> str | None:
    """The column with the first usual name; case, spaces and dashes are ignored."""
    plain = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in names}
    return next((plain[name] for name in usual if name in plain), None)


# Columns of numbered texts; by pyarrow where there is one, else by csv


TABLES = ("csv", "tsv", "parquet")
BLOCK = 4 * 2**20
LONGEST = 64 * 2**20


def column_names(path: Path) -> list[str]:
    """The header of a table; a repeated name is an error."""
    if kind_of(path) == "parquet":
        with _parquet(path) as file:
            names = file.schema_arrow.names
    else:
        with closing(_rows(path)) as rows:
            names = next(rows, (0, []))[1]
    if not names:
        raise refusal(TaskError, "readers.empty_table", path=path)
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise TaskError(f"{path} has the column '{twice[0]}' twice", hint="rename one of the two")
    return list(names)


def read_columns(path: Path, names: Sequence[str], needed: Sequence[str]) -> dict[str, Coded]:
    """The named columns, every distinct text of a column once.

    `names` is the header. What pyarrow does not take is read again in pure Python, which takes
    it or says in which line it is wrong.
    """
    if kind_of(path) == "parquet":
        return _collect(_parquet_batches(path, needed), needed)
    try:
        import pyarrow as pa
    except ImportError:
        return _plain(path, names, needed)
    try:
        return _collect(_arrow_batches(path, needed), needed)
    except pa.ArrowException:
        return _plain(path, names, needed)


def parquet_rows(path: Path, fields: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file with these columns, or parts of columns, as `model.name`."""
    import pyarrow as pa

    with _parquet(path) as file:
        try:
            for batch in file.iter_batches(columns=list(fields)):
                yield from batch.to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise TaskError(
                f"{path} cannot be read: {error}", hint="the file may be incomplete; fetch it again"
            ) from error


def line_of(path: Path, row: int) -> str:
    """Return the place of a table's row, for messages: `results.csv, line 7`."""
    if kind_of(path) == "parquet":
        return f"{path}, row {row + 1}"
    with closing(_rows(path)) as rows:
        for number, (line, _) in enumerate(rows, start=-1):
            if number == row:
                return f"{path}, line {line}"
    return str(path)


def _delimiter(path: Path) -> str:
    return "\t" if kind_of(path) == "tsv" else ","


def _rows(path: Path) -> Generator[tuple[int, list[str]]]:
    """Rows with the number of their last line; empty lines are none."""
    with bounded(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        reader = csv.reader(_short(text, path), delimiter=_delimiter(path))
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


def _short(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    while line := text.readline(LONGEST):
        if len(line) >= LONGEST:
            raise TaskError(f"{path} has a line of more than {LONGEST:,} characters")
        yield line


def _plain(path: Path, names: Sequence[str], needed: Sequence[str]) -> dict[str, Coded]:
    """Row by row. A row with another number of cells than the header is an error."""
    places = [names.index(name) for name in needed]
    numberings = [Names() for _ in needed]
    codes = [array("i") for _ in needed]
    with closing(_rows(path)) as rows:
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
    with bounded(path) as file:
        yield from arrow.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=arrow.ReadOptions(block_size=BLOCK),
            parse_options=arrow.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                include_columns=list(needed),
                column_types=dict.fromkeys(needed, text),
                strings_can_be_null=False,
            ),
        )


def _parquet(path: Path) -> Any:
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

    with _parquet(path) as file:
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


def _indices(column: Any) -> Any:
    """The numbers of an Arrow array as they lie; its own conversion would import pandas."""
    data = np.frombuffer(column.buffers()[1], dtype=column.type.to_pandas_dtype())
    return data[column.offset : column.offset + len(column)]


def _collect(batches: Iterator[Any], needed: Sequence[str]) -> dict[str, Coded]:
    """Batches whose columns are dictionaries, as one column each."""
    numberings = {name: Names() for name in needed}
    codes: dict[str, list[Any]] = {name: [] for name in needed}
    for batch in batches:
        for name in needed:
            column = batch.column(name)
            numbers = [numberings[name](text) for text in column.dictionary.to_pylist()]
            codes[name].append(np.array(numbers, dtype=np.int32)[_indices(column.indices)])
    empty = [np.zeros(0, dtype=np.int32)]
    return {
        name: Coded(names=numberings[name].all, codes=np.concatenate(codes[name] or empty))
        for name in needed
    }
