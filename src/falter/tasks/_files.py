"""Rows from JSONL, JSON, CSV, TSV and Parquet files, and from the hub."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from falter.core.errors import MissingExtra, TaskError, UsageError

__all__ = ["DataSpec", "TargetAs", "read_rows"]

Row = dict[str, Any]
TargetAs = Literal["auto", "index", "label", "text"]
_READABLE = ".jsonl, .json, .csv, .tsv or .parquet (also .gz)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """Where items come from and what each column holds.

    `fields` maps placeholders to columns; without it every placeholder is a column's name.
    `choices` is one column that holds a list, or several columns with one option each.
    """

    path: str
    fields: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    target: str | None = None
    target_as: TargetAs = "auto"
    key: str | None = None
    tags: tuple[str, ...] = ()
    split: str = "test"


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a data file; an empty or unreadable one is an error that says where."""
    path = Path(path)
    if not path.exists():
        raise TaskError(f"The data file {path} does not exist", hint=f"give a {_READABLE} file")
    if path.is_dir():
        raise TaskError(f"{path} is a folder, not a data file", hint=f"give a {_READABLE} file")
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind == "parquet":
        rows = list(_parquet(path))
    else:
        text = read_text(path)
        if kind in ("csv", "tsv"):
            rows = list(_csv(text, path, "," if kind == "csv" else "\t"))
        elif kind == "jsonl":
            rows = list(_jsonl(text, path))
        elif kind == "json":
            rows = _json(text, path)
        else:
            raise TaskError(
                f"The data file {path} is not a kind of file that falter can read",
                hint=f"use {_READABLE}",
            )
    if not rows:
        raise TaskError(f"The data file {path} has no rows", hint="give a file with at least one")
    return rows


def read_hub(name: str, split: str) -> list[Row]:
    """The rows of a data set on the Hugging Face hub: `owner/name` or `owner/name/config`."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("Reading the hub", "hub", "datasets") from error
    owner, _, rest = name.partition("/")
    base, _, config = rest.partition("/")
    try:
        loaded = datasets.load_dataset(
            f"{owner}/{base}" if base else owner, config or None, split=split
        )
    except Exception as error:
        raise TaskError(
            f"The hub data set '{name}' (split '{split}') could not be loaded: {error}",
            hint="check the name, the split and the network; a local copy works with --data",
        ) from error
    return [dict(row) for row in loaded]


def read_text(path: Path) -> str:
    """The whole of a UTF-8 file, unpacked where its name ends in .gz."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TaskError(
            f"The data file {path} is not UTF-8 (byte {error.start})", hint="convert it to UTF-8"
        ) from error
    except (OSError, EOFError) as error:
        raise TaskError(f"The data file {path} cannot be read: {error}") from error


def _jsonl(text: str, path: Path) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise TaskError(
                f"{path}, line {number} is not JSON: {error}",
                hint="every line must be one JSON object",
            ) from error
        yield _object(row, f"{path}, line {number}")


def _json(text: str, path: Path) -> list[Row]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise TaskError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, list):
        raise TaskError(f"{path} does not hold a list of objects", hint="use a JSON list or .jsonl")
    return [_object(row, f"{path}, entry {n}") for n, row in enumerate(data, start=1)]


def _object(row: Any, where: str) -> Row:
    if not isinstance(row, dict):
        raise TaskError(f"{where} is not an object", hint='write {"column": value, …}')
    return row


def _csv(text: str, path: Path, delimiter: str) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = reader.fieldnames or []
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise TaskError(
            f"{path} has the column '{sorted(twice)[0]}' twice", hint="rename one of the two"
        )
    try:
        for row in reader:
            if None in row or None in row.values():
                raise TaskError(
                    f"{path}, line {reader.line_num} does not have as many cells as the header",
                    hint=f"the header has {len(names)}",
                )
            yield dict(row)
    except csv.Error as error:
        raise TaskError(f"{path}, line {reader.line_num}: {error}") from error


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("Reading Parquet", "parquet", "pyarrow") from error
    try:
        table = parquet.read_table(path)
    except Exception as error:
        raise TaskError(
            f"The data file {path} is not Parquet: {error}", hint="is the file whole?"
        ) from error
    yield from table.to_pylist()


def read_template_file(path: str | Path) -> str:
    """The text of a template file."""
    path = Path(path)
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The template {path} cannot be read: {error}", hint="give a UTF-8 text file"
        ) from error
