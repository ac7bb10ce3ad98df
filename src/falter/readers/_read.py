"""Which reader a path needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from falter.core.errors import TaskError, UsageError
from falter.readers._cells import Cells
from falter.readers._columns import ColumnMap
from falter.readers._dove import is_dove, read_dove
from falter.readers._files import kind_of
from falter.readers._helm import HELM_FILES, read_helm
from falter.readers._inspect import read_inspect
from falter.readers._lm_eval import is_samples, read_lm_eval
from falter.readers._logs import LogChoice
from falter.readers._matrix import read_matrices
from falter.readers._near_names import check_names
from falter.readers._scale import Scale, on_scale
from falter.readers._table import TABLES

__all__ = ["read_results"]

MOST_FILES = 100_000
LOGS: dict[str, Callable[[Sequence[Path], LogChoice], Cells]] = {
    "lm-eval": read_lm_eval,
    "Inspect": read_inspect,
    "HELM": read_helm,
    "DOVE": read_dove,
}
READABLE = (
    "a .csv, .tsv or .parquet table of scores, lm-eval's samples_*.jsonl, Inspect's .eval or .json "
    "logs, a run folder of HELM, DOVE's .parquet or .jsonl, or a folder of these"
)


def read_results(
    paths: Sequence[Path],
    columns: ColumnMap | None = None,
    choice: LogChoice | None = None,
    scale: Scale | None = None,
) -> Cells:
    """The results in files or folders of one kind, with scores between 0 and 1.

    Scores that lie elsewhere need a `scale`; names that nearly pair are an error or a note.
    """
    return check_names(on_scale(_read(paths, columns or ColumnMap(), choice or LogChoice()), scale))


def _read(paths: Sequence[Path], column_map: ColumnMap, choice: LogChoice) -> Cells:
    if not paths:
        raise UsageError("Nothing to analyse", hint=f"give {READABLE}")
    kinds_and_files = [file for path in paths for file in _files(path)]
    files = list(dict.fromkeys(file for _, file in kinds_and_files))
    kinds = sorted({kind for kind, _ in kinds_and_files})
    if len(kinds) > 1:
        raise UsageError(
            f"The files are of several kinds: {', '.join(kinds)}", hint="analyse one kind at a time"
        )
    if kinds == ["table"]:
        return read_matrices(files, column_map)
    _no_columns(column_map, kinds[0])
    return LOGS[kinds[0]](files, choice)


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
    if path.name in HELM_FILES:
        return "HELM"
    if ending in ("parquet", "jsonl") and not is_samples(path) and is_dove(path):
        return "DOVE"
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
    runs = [file for file in files if file.name in HELM_FILES]
    if runs:
        return [("HELM", file) for file in runs]
    logs = [file for file in files if kind_of(file) in ("eval", "json") and _kind(file)]
    if logs:
        return [("Inspect", file) for file in logs if file.name != "logs.json"]
    rows = [file for file in files if kind_of(file) in (*TABLES, "jsonl")]
    kinds = [(kind, file) for file in rows if (kind := _kind(file)) in ("DOVE", "table")]
    if not kinds:
        raise TaskError(f"{folder} holds no results", hint=f"give {READABLE}")
    return kinds
