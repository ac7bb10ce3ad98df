"""Comparison of runs, models and prompts: names resolve to stored runs or other tools' files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from falter import __version__
from falter.analysis.compared_runs import RunToCompare, TableToCompare, compare_runs, compare_tables
from falter.analysis.results import Settings
from falter.analysis.table import Table
from falter.engine.analyze import find_baseline, tables_of
from falter.engine.answers import part_of_study
from falter.engine.extraction import stored_scorers
from falter.engine.results import Result, Shown
from falter.engine.task_loading import prompt_of, task_of
from falter.perturbations.recipes import everyday_name
from falter.readers.cells import Cells, Coded
from falter.readers.results import read_sides
from falter.records.errors import DuplicateName, UsageError, refusal
from falter.records.figures import Study
from falter.records.ids import digest, short
from falter.store.store import Store
from falter.store.studies import require_store


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A stored run to compare, by the first digits of its id, or another tool's results.

    `called` is the name that the user gave it. `results` is the other tool's file or folder.
    """

    run: str | None
    store: Path
    called: str = ""
    results: Path | None = None

    @classmethod
    def parse(cls, text: str, store: Path) -> ComparedRun:
        """Parse `RUN`, `RUN@STORE` or `FILE`, each optionally with a name: `NAME=…`."""
        if Path(text).exists():
            return cls(run=None, store=store, results=Path(text))
        called, mark, rest = text.partition("=")
        if not mark:
            called, rest = "", text
        if rest and (Path(rest).exists() or ("@" not in rest and Path(rest).suffix)):
            return cls(run=None, store=store, called=called, results=Path(rest))
        run, _, other = rest.partition("@")
        if not run or (mark and not called):
            raise refusal(UsageError, "engine.unnamed_side", text=text)
        return cls(run=run, store=Path(other) if other else store, called=called)


class Comparison(Shown):
    """Figures, tables and reports that compare systems: models, prompts or runs.

    The figure `comparison` has the verdict line.
    """

    @property
    def verdict(self) -> tuple[str, ...]:
        """The verdict line of each task."""
        return tuple(
            figure.text[0]
            for figure in self.figures
            if figure.name.partition("-")[0] == "comparison" and figure.title.startswith("Compared")
        )


def compare(
    *runs: str | Result,
    store: Path | str = "falter.db",
    models: Sequence[str] = (),
    tasks: Sequence[str] = (),
    part: str | None = None,
    margin: float = 0.02,
    incomplete: bool = False,
    **reading: Any,
) -> Comparison:
    """Compare runs, or the models and prompts of one run, paired by item and recipe.

    >>> print(falter.compare("3f1c", "9ab2").summary())
    >>> falter.compare(falter.run(...), falter.run(...)).table("differences")
    >>> falter.compare("before.eval", "after.eval")

    A run is a result, or the first digits of its id in `store`. `"short=3f1c@other.db"` gives a run
    a name and a store. Every model of a run is a system to compare, and every prompt if it has
    several. A file is read as by `analyze_files`, with the options `columns`, `choice`, `scale` and
    `baseline`.
    """
    if not runs:
        raise UsageError("No run is named", hint="name runs by their results or ids")
    named = [
        ComparedRun(run=short(run.run.id, 64), store=run.store)
        if isinstance(run, Result)
        else ComparedRun.parse(run, Path(store))
        for run in runs
    ]
    return Comparison(
        compared_study(
            named, models=models, tasks=tasks, part=part, margin=margin, incomplete=incomplete,
            **reading,
        )
    )  # fmt: skip


def compared_study(
    runs: Sequence[ComparedRun],
    *,
    models: Sequence[str] = (),
    tasks: Sequence[str] = (),
    part: str | None = None,
    margin: float = 0.02,
    incomplete: bool = False,
    **reading: Any,
) -> Study:
    """Compare systems in stored runs, or in files, over the items and recipes that all have.

    See `compare_runs` and `compare_tables`. Raises before anything is computed if the runs cannot
    be compared.
    """
    if not 0.0 < margin < 1.0:
        raise refusal(UsageError, "engine.margin_out_of_range", margin=margin)
    files = [named for named in runs if named.results is not None]
    if files and len(files) < len(runs):
        raise refusal(UsageError, "engine.runs_and_files")
    if files:
        return _compared_files(files, models=models, tasks=tasks, margin=margin, **reading)
    with ExitStack() as stack:
        sources = []
        for named in runs:
            require_store(named.store)
            store = stack.enter_context(Store(named.store, writes=False))
            stored = part_of_study(store, named.run, part)
            tasks_of = [panel.task for panel in stored.run.panels]
            sources.append(
                RunToCompare(
                    stored=stored,
                    store=store,
                    called=named.called,
                    scorers=stored_scorers(store, stored.run),
                    tasks=[task_of(stored.run, task) for task in tasks_of],
                    prompts=[prompt_of(stored.run, task) for task in tasks_of],
                )
            )
        return compare_runs(
            sources,
            models=models,
            tasks=tasks,
            margin=margin,
            incomplete=incomplete,
            everyday=everyday_name,
        )


def _compared_files(
    files: Sequence[ComparedRun],
    *,
    models: Sequence[str],
    tasks: Sequence[str],
    margin: float,
    baseline: str | None = None,
    **reading: Any,
) -> Study:
    """Compare the results in files; a single file's conditions are compared with each other."""
    paths = [named.results or Path() for named in files]
    for path in paths:
        if paths.count(path) > 1:
            raise DuplicateName(f"The file {path} is named twice", hint="name two files")
    sides = read_sides([[path] for path in paths], **reading)
    stems = [path.name.partition(".")[0] for path in paths]
    display_names = [
        named.called or ("" if len(files) == 1 else stem if stems.count(stem) == 1 else str(path))
        for named, stem, path in zip(files, stems, paths, strict=True)
    ]
    if all(cells.task.names == (stem,) for cells, stem in zip(sides, stems, strict=True)):
        sides = [_with_common_task(cells) for cells in sides]
    tables = [
        TableToCompare(
            source_name=str(path),
            called=name,
            task=table.panel.task,
            prompt=prompt,
            panel=table.panel,
            table=table,
        )
        for path, name, cells in zip(paths, display_names, sides, strict=True)
        for prompt, table in _compared_tables(cells, baseline, alone=len(files) == 1, path=path)
    ]
    settings = Settings(
        run=digest("comparison", [cells.digest for cells in sides], __version__, baseline, margin),
        version=__version__,
        created_at=max(path.stat().st_mtime for path in paths),
        margin=margin,
        notes=tuple(dict.fromkeys(note for cells in sides for note in cells.notes)),
    )
    return compare_tables(tables, models=models, tasks=tasks, settings=settings)


def _with_common_task(cells: Cells) -> Cells:
    """Return results under one task name, because file names alone differ between the files."""
    (scorer,) = cells.scorers.values()
    task = "the results"
    return replace(cells, task=Coded.constant(task, len(cells)), scorers={task: scorer})


def _compared_tables(
    cells: Cells, baseline: str | None, *, alone: bool, path: Path
) -> Iterator[tuple[str, Table]]:
    """Yield the tables of one file, each with its condition if the conditions are compared."""
    names = cells.condition.names
    if len(names) == 1 or baseline is not None or find_baseline(cells, None) is not None:
        only = names[0] if len(names) == 1 and baseline is None else baseline
        yield from (("", table) for table in tables_of(cells, only))
    elif alone:
        for code, name in enumerate(names):
            own = cells.select(cells.condition.codes == code)
            yield from ((name, table) for table in tables_of(own, name))
    else:
        raise UsageError(
            f"{path} has several conditions, and it is not known which one is the clean prompt: "
            f"{', '.join(names[:10])}",
            hint=f"name it: --baseline {shlex.quote(names[0])}",
        )
