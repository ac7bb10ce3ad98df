"""Choice of the reader for result files, and the common part of all readers of logs."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from falter.readers.cells import (
    Cells,
    Coded,
    Names,
    Scale,
    as_numbers,
    check_names,
    on_scale,
    without_duplicates,
)
from falter.readers.matrices import read_matrices
from falter.readers.tables import TABLES, ColumnMap, kind_of
from falter.records.errors import TaskError, UnknownName, UsageError, refusal
from falter.records.registry import Registry

MAX_FILES = 100_000
READABLE = (
    "a .csv, .tsv or .parquet table of scores, lm-eval's samples_*.jsonl, Inspect's .eval or .json "
    "logs, promptfoo's .json, a run folder of HELM, DOVE's .parquet or .jsonl, or a folder of these"
)
CONDITION_FROM = ("auto", "folder", "task", "model", "args", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChoice:
    """The user's choices for logs: score, filter, tasks, models, and source of the condition."""

    metric: str | None = None
    filter: str | None = None
    tasks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    condition_from: Literal["auto", "folder", "task", "model", "args", "file"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReader:
    """A reader of one tool's logs.

    `takes` returns True if a file is certainly one of its logs. `may_take` returns True if a file
    that no reader takes can be one; it is called only for a file that the user names.

    In a folder, only the logs of one tool are read: of the reader with the lowest `order`. Files of
    a reader with `beside_tables` are searched together with tables, if there are no other logs.
    """

    title: str
    order: int
    takes: Callable[[Path], bool]
    read: Callable[[Sequence[Path], LogChoice], LogsAndNotes]
    may_take: Callable[[Path], bool] = lambda path: False
    beside_tables: bool = False


log_readers: Registry[LogReader] = Registry("reader of logs", "falter.logs")


def _sorted_readers() -> list[LogReader]:
    return sorted(log_readers, key=lambda reader: reader.order)


def read_results(
    paths: Sequence[Path],
    columns: ColumnMap | None = None,
    choice: LogChoice | None = None,
    scale: Scale | None = None,
) -> Cells:
    """Return the results in files or folders of one kind, with scores from 0 to 1.

    Scores outside this range need a `scale`. Names that nearly match raise an error or give a note.
    """
    [cells] = read_sides([paths], columns, choice, scale)
    return cells


def read_sides(
    sides: Sequence[Sequence[Path]],
    columns: ColumnMap | None = None,
    choice: LogChoice | None = None,
    scale: Scale | None = None,
) -> list[Cells]:
    """Return each side's results like `read_results`, with the same item names in all sides."""
    columns, choice = columns or ColumnMap(), choice or LogChoice()
    found = [_kind_and_files(paths) for paths in sides]
    kinds = dict.fromkeys(kind for kind, _ in found if kind != "table")
    logs = {}
    for kind in kinds:
        _refuse_columns(columns, kind)
        reader = next(own for own in log_readers if own.title == kind)
        logs[kind] = iter(_logs_of(reader, [own for other, own in found if other == kind], choice))
    read = (
        read_matrices(files, columns)
        if kind == "table"
        else cells_of(*next(logs[kind]), choice=choice)
        for kind, files in found
    )
    return [check_names(on_scale(cells, scale)) for cells in read]


def _kind_and_files(paths: Sequence[Path]) -> tuple[str, list[Path]]:
    """Return the kind of the files of one side, and the files."""
    if not paths:
        raise UsageError("Nothing to analyse", hint=f"give {READABLE}")
    kinds_and_files = [file for path in paths for file in _files_with_kinds(path)]
    kinds = sorted({kind for kind, _ in kinds_and_files})
    if len(kinds) > 1:
        raise UsageError(
            f"The files are of several kinds: {', '.join(kinds)}", hint="analyse one kind at a time"
        )
    return kinds[0], list(dict.fromkeys(file for _, file in kinds_and_files))


def _logs_of(
    reader: LogReader, sides: Sequence[Sequence[Path]], choice: LogChoice
) -> list[LogsAndNotes]:
    """Return the logs of each side.

    All sides are read together, since a reader chooses the items' names by all its files. If a
    reader combines the rows of several files in one log, each side is read separately.
    """
    logs, notes = reader.read(list(dict.fromkeys(file for own in sides for file in own)), choice)
    if any(all(log.path not in own for own in sides) for log in logs):
        return [reader.read(own, choice) for own in sides]
    return [([log for log in logs if log.path in own], notes) for own in sides]


def _refuse_columns(columns: ColumnMap, kind: str) -> None:
    """Raise `UsageError` if the user named columns other than task and model for logs."""
    for role in columns.named:
        if role not in ("task", "model"):
            raise refusal(UsageError, "readers.column_of_log", role=role, kind=kind)


def _files_with_kinds(path: Path) -> list[tuple[str, Path]]:
    """Return the files of a path, each with its kind."""
    if path.is_dir():
        return _files_below(path)
    if not path.exists():
        raise TaskError(f"{path} does not exist", hint=f"give {READABLE}")
    kind = _kind(path) or next((own.title for own in _sorted_readers() if own.may_take(path)), None)
    if kind is None:
        why = "is not a kind of file that falter can read"
        if path.name.startswith("results"):
            why = "holds totals but no samples; lm-eval writes samples with --log_samples"
        raise TaskError(f"{path} {why}", hint=f"give {READABLE}")
    return [(kind, path)]


def _kind(path: Path) -> str | None:
    """Return the tool that certainly wrote a file, `table`, or None."""
    kind = next((reader.title for reader in _sorted_readers() if reader.takes(path)), None)
    return kind or ("table" if kind_of(path) in TABLES else None)


def _files_below(folder: Path) -> list[tuple[str, Path]]:
    """Return the logs in a folder and its subfolders, or its tables if there is no log.

    Links to folders are not followed.
    """
    files: list[Path] = []
    for top, folders, names in os.walk(folder):
        folders.sort()
        files += [Path(top) / name for name in sorted(names)]
        if len(files) > MAX_FILES:
            raise TaskError(f"{folder} holds more than {MAX_FILES:,} files")
    for reader in _sorted_readers():
        logs = [file for file in files if not reader.beside_tables and reader.takes(file)]
        if logs:
            return [(reader.title, file) for file in logs]
    kinds = [(kind, file) for file in files if (kind := _kind(file)) is not None]
    if not kinds:
        raise TaskError(f"{folder} holds no results", hint=f"give {READABLE}")
    return kinds


# Logs


@dataclass(slots=True, kw_only=True)
class Log:
    """The results of one run of one task. The lists have one entry for each result.

    `condition` is the tool's own name of the condition, such as a perturbation or prompt, or empty.
    `epochs` number the repetitions from 0. `lines` has the place of each result in the file.
    """

    path: Path
    task: str
    model: str
    stamp: str
    scorer: str
    args: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    condition: str = ""
    items: list[str] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)
    outcomes: list[int] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)
    lines: list[str | int] = field(default_factory=list)

    def add(
        self, item: str, value: float | None, outcome: int, output: str | None, *,
        line: str | int, epoch: int = 0,
    ) -> None:  # fmt: skip
        """Append one result."""
        self.items.append(item)
        self.epochs.append(epoch)
        self.values.append(value)
        self.outcomes.append(outcome)
        self.outputs.append(output)
        self.lines.append(line)


LogsAndNotes = tuple[list[Log], list[str]]


def nested(value: Any, *names: str) -> Any:
    """Return the value at a path of names in nested dictionaries; None if the path breaks off."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def is_chosen(log: Log, choice: LogChoice) -> bool:
    """Return True if the user's choices, which may be patterns, include the task and model."""
    return _matches_any(log.task, choice.tasks) and _matches_any(log.model, choice.models)


def _matches_any(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def cells_of(logs: Sequence[Log], notes: Sequence[str], *, choice: LogChoice) -> Cells:
    """Return all logs as cells.

    A log has its own condition, model or task, or it is a further run of another log.
    """
    chosen = [log for log in logs if is_chosen(log, choice)]
    if not chosen:
        what, names = ("task", choice.tasks) if choice.tasks else ("model", choice.models)
        raise UnknownName(what, ", ".join(names), {getattr(log, what) for log in logs})
    scored = sorted({f"{log.task}: {log.scorer}" for log in chosen})
    notes = (f"Scores used: {'; '.join(scored)}.", *notes)
    folders = _relative_folders(chosen)
    chosen = [replace(log, folder=folder) for log, folder in zip(chosen, folders, strict=True)]
    chosen.sort(key=lambda log: (log.stamp, str(log.path)))
    condition_from = choice.condition_from
    kind = _kind_of_condition(chosen) if condition_from == "auto" else condition_from
    places, placing_notes = _log_places(chosen, kind)
    return _merged_cells(chosen, places, (*notes, *placing_notes))


LogPlace = tuple[str, str, str]


def _kind_of_condition(logs: Sequence[Log]) -> str | None:
    """Return the source of the conditions, or None.

    It is the tool's own condition if there is any. Otherwise it is the task arguments or the
    folders, if they differ between logs of a model on a task.
    """
    if any(log.condition for log in logs):
        return "condition"
    for kind in ("args", "folder"):
        labels: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for log in logs:
            labels[log.model, log.task].add(repr(sorted(log.args.items())) if kind == "args"
                                          else log.folder)  # fmt: skip
        if any(len(differing) > 1 for differing in labels.values()):
            return kind
    return None


def _log_places(logs: Sequence[Log], kind: str | None) -> tuple[list[LogPlace], list[str]]:
    """Return (model, task, condition) of every log, and a note about the conditions."""
    if kind is None:
        return [(log.model, log.task, "all") for log in logs], [
            "Every model has one log of a task, so there is one condition; use --condition-from "
            f"{'|'.join(CONDITION_FROM[1:])} to compare several."
        ]
    label: Callable[[Log], str] = {
        "folder": lambda log: log.folder,
        "task": lambda log: log.task,
        "model": lambda log: log.model,
        "file": lambda log: log.path.stem,
        "args": _args_label(logs),
        "condition": lambda log: log.condition,
    }[kind]
    if kind == "condition":
        return [(log.model, log.task, log.condition or "all") for log in logs], []
    task = _common_start([log.task for log in logs]) if kind == "task" else None
    model = "all models" if kind == "model" else None
    places = [
        (model or log.model, task or log.task, f"{log.condition}/{label(log)}".lstrip("/"))
        for log in logs
    ]
    return places, [f"A condition is a {'set of task arguments' if kind == 'args' else kind}."]


def _args_label(logs: Sequence[Log]) -> Callable[[Log], str]:
    """Return a function from a log to its arguments that differ between logs: `prompt=loud`."""
    keys = sorted({key for log in logs for key in log.args})
    differing = [key for key in keys if len({log.args.get(key) for log in logs}) > 1]
    return lambda log: " ".join(f"{k}={log.args[k]}" for k in differing if k in log.args) or "all"


def _common_start(names: Sequence[str]) -> str:
    """Return the common start of names: mmlu_prompt of `mmlu_prompt_1`, `mmlu_prompt_2`."""
    low, high = min(names), max(names)
    same = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return re.sub(r"[^A-Za-z0-9]+$", "", low[:same]) or "tasks"


def _relative_folders(logs: Sequence[Log]) -> list[str]:
    """Return the folder of every log, relative to the folder that contains all of them.

    lm-eval creates a folder with the model's name below the given folder; the former is left out.
    """
    parents = []
    for log in logs:
        parent = log.path.absolute().parent
        own = re.sub(r'["<>:/|\\?*\[\]]+', "__", log.model)
        parents.append(parent.parent if parent.name == own else parent)
    top = Path(os.path.commonpath(parents))
    parts = [parent.relative_to(top).parts for parent in parents]
    return ["/".join(own) or top.name for own in parts]


def _merged_cells(logs: Sequence[Log], places: Sequence[LogPlace], notes: Sequence[str]) -> Cells:
    """Return the cells of all logs; a second log of the same place has further runs."""
    axes = {name: Names() for name in ("model", "task", "condition")}
    items, runs, outputs = Names(), Names(), Names()
    first_run: Counter[LogPlace] = Counter()
    columns: dict[str, list[np.ndarray]] = defaultdict(list)
    scorers: dict[str, str] = {}
    for log, place in zip(logs, places, strict=True):
        if scorers.setdefault(place[1], log.scorer) != log.scorer:
            raise TaskError(
                f"{log.path} is scored by '{log.scorer}', another log of '{place[1]}' by "
                f"'{scorers[place[1]]}'",
                hint="name a score that all of them have with --metric",
            )
        for name, label in zip(axes, place, strict=True):
            columns[name].append(np.full(len(log.items), axes[name](label), dtype=np.int32))
        columns["item"].append(np.array([items(item) for item in log.items], dtype=np.int32))
        start = first_run[place]
        run_numbers = [runs(str(1 + start + epoch)) for epoch in log.epochs]
        columns["run"].append(np.array(run_numbers, dtype=np.int32))
        first_run[place] += 1 + max(log.epochs, default=0)
        columns["output"].append(
            np.array([-1 if o is None else outputs(o) for o in log.outputs], dtype=np.int32)
        )
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    names_of = {**axes, "item": items, "run": runs}
    coded = {name: Coded(names=n.all, codes=joined[name]) for name, n in names_of.items()}
    cells = Cells(
        **coded,
        value=as_numbers(v for log in logs for v in log.values),
        outcome=np.array([o for log in logs for o in log.outcomes], dtype=np.uint8),
        output=Coded(names=outputs.all, codes=joined["output"]) if outputs.all else None,
        scorers=scorers,
        notes=tuple(notes),
    )
    lines = [f"{log.path}, {line if isinstance(line, str) else f'line {line}'}"
             for log in logs for line in log.lines]  # fmt: skip
    return without_duplicates(cells, lambda cell: lines[cell], "name each log once")
