"""CSV, TSV and Parquet files as columns of numbered texts; pyarrow where there is one, else csv."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from falter.core.errors import MissingExtra, TaskError
from falter.readers._cells import Coded, Names
from falter.readers._files import bounded, kind_of

__all__ = ["TABLES", "column_names", "line_of", "parquet_rows", "read_columns"]

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
        raise TaskError(f"{path} is empty", hint="the first line names the columns")
    twice = sorted({name for name in names if names.count(name) > 1})
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
            raise TaskError(f"{path} cannot be read: {error}", hint="is it whole?") from error


def line_of(path: Path, row: int) -> str:
    """Where a row of the table is: `results.csv, line 7`."""
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
                    hint="a text with a comma needs quotes",
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
        raise TaskError(f"{path} is not Parquet: {error}", hint="is the file whole?") from error


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
                    raise TaskError(f"{path}: the column '{name}' holds no plain values") from error
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
