"""Which reader a path needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from falter.core.errors import TaskError, UsageError
from falter.readers._cells import Cells
from falter.readers._columns import ColumnMap
from falter.readers._files import kind_of
from falter.readers._inspect import read_inspect
from falter.readers._lm_eval import is_samples, read_lm_eval
from falter.readers._logs import LogChoice
from falter.readers._matrix import read_matrices
from falter.readers._table import TABLES

__all__ = ["read_results"]

MOST_FILES = 100_000
READABLE = (
    "a .csv, .tsv or .parquet table of scores, lm-eval's samples_*.jsonl, Inspect's .eval or .json "
    "logs, or a folder of these"
)


def read_results(
    paths: Sequence[Path], columns: ColumnMap | None = None, choice: LogChoice | None = None
) -> Cells:
    """The results in files or folders of one kind: tables, lm-eval samples or Inspect logs."""
    if not paths:
        raise UsageError("Nothing to analyse", hint=f"give {READABLE}")
    kinds_and_files = [file for path in paths for file in _files(path)]
    files = list(dict.fromkeys(file for _, file in kinds_and_files))
    kinds = sorted({kind for kind, _ in kinds_and_files})
    if len(kinds) > 1:
        raise UsageError(
            f"The files are of several kinds: {', '.join(kinds)}", hint="analyse one kind at a time"
        )
    column_map = columns or ColumnMap()
    if kinds == ["table"]:
        return read_matrices(files, column_map)
    _no_columns(column_map, kinds[0])
    if kinds == ["lm-eval"]:
        return read_lm_eval(files, choice or LogChoice())
    return read_inspect(files, choice or LogChoice())


def _no_columns(columns: ColumnMap, kind: str) -> None:
    for role in columns.named:
        if role not in ("task", "model"):
            raise UsageError(
                f"--{role} names a column of a table, but these are {kind} logs",
                hint="--metric, --filter and --condition-from are for logs",
            )


def _files(path: Path) -> list[tuple[str, Path]]:
    """The files of a path with their kind."""
    if path.is_dir():
        return _below(path)
    if not path.exists():
        raise TaskError(f"{path} does not exist", hint=f"give {READABLE}")
    kind = _kind(path)
    if kind is None:
        why = "is not a kind of file that falter can read"
        if path.name.startswith("results"):
            why = "holds totals but no samples; lm-eval writes samples with --log_samples"
        raise TaskError(f"{path} {why}", hint=f"give {READABLE}")
    return [(kind, path)]


def _kind(path: Path) -> str | None:
    ending = kind_of(path)
    if ending in TABLES:
        return "table"
    if ending == "jsonl":
        return "lm-eval"
    if ending == "eval" or (ending == "json" and not path.name.startswith("results")):
        return "Inspect"
    return None


def _below(folder: Path) -> list[tuple[str, Path]]:
    """The logs in a folder and below it, tables only if there is no log; links are not followed."""
    files: list[Path] = []
    for top, folders, names in os.walk(folder):
        folders.sort()
        files += [Path(top) / name for name in sorted(names)]
        if len(files) > MOST_FILES:
            raise TaskError(f"{folder} holds more than {MOST_FILES:,} files")
    samples = [file for file in files if is_samples(file)]
    if samples:
        return [("lm-eval", file) for file in samples]
    logs = [file for file in files if kind_of(file) in ("eval", "json") and _kind(file)]
    if logs:
        return [("Inspect", file) for file in logs if file.name != "logs.json"]
    tables = [file for file in files if kind_of(file) in TABLES]
    if not tables:
        raise TaskError(f"{folder} holds no results", hint=f"give {READABLE}")
    return [("table", file) for file in tables]
