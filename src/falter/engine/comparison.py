"""Runs, models and prompts compared: names become stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from falter.analysis.compared_runs import RunToCompare, compare_runs
from falter.engine.answers import part_of_study
from falter.engine.extraction import stored_scorers
from falter.engine.results import Result, Shown
from falter.engine.task_loading import prompt_of, task_of
from falter.perturbations.recipes import everyday_name
from falter.records.errors import UsageError
from falter.records.figures import Study
from falter.records.ids import short
from falter.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run by the first digits of its id; `called` is the name that the reader gave it."""

    run: str | None
    store: Path
    called: str = ""

    @classmethod
    def parse(cls, text: str, store: Path) -> ComparedRun:
        """`RUN`, `RUN@STORE`, `NAME=RUN` or `NAME=RUN@STORE`."""
        called, mark, rest = text.partition("=")
        if not mark:
            called, rest = "", text
        run, _, other = rest.partition("@")
        if not run or (mark and not called):
            raise UsageError(
                f"'{text}' names no run", hint="write RUN, RUN@STORE or NAME=RUN, as in short=3f1c"
            )
        return cls(run=run, store=Path(other) if other else store, called=called)


class Comparison(Shown):
    """Sides compared: figures, tables, reports. The figure `comparison` has the verdict line."""

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
) -> Comparison:
    """Compare runs, or the models and prompts of one run, paired by item and recipe.

    >>> print(falter.compare("3f1c", "9ab2").summary())
    >>> falter.compare(falter.run(...), falter.run(...)).table("differences")

    A run is a result, or the first digits of its id in `store`; `"short=3f1c@other.db"` gives it a
    name and a store. Every model of a run is a side, and every prompt where it has several.
    """
    if not runs:
        raise UsageError("No run is named", hint="give one run or several: results, or ids")
    named = [
        ComparedRun(run=short(run.run.id, 64), store=run.store)
        if isinstance(run, Result)
        else ComparedRun.parse(run, Path(store))
        for run in runs
    ]
    return Comparison(
        compared_study(
            named, models=models, tasks=tasks, part=part, margin=margin, incomplete=incomplete
        )
    )


def compared_study(
    runs: Sequence[ComparedRun],
    *,
    models: Sequence[str] = (),
    tasks: Sequence[str] = (),
    part: str | None = None,
    margin: float = 0.02,
    incomplete: bool = False,
) -> Study:
    """The sides of stored runs over the items and recipes that all of them have.

    See `compare_runs`. What cannot be compared is refused before any number is made.
    """
    if not 0.0 < margin < 1.0:
        raise UsageError(
            f"The margin {margin:g} is not a difference of scores between 0 and 1",
            hint="2 points are 0.02",
        )
    with ExitStack() as stack:
        sources = []
        for named in runs:
            if not named.store.exists():
                raise UsageError(
                    f"The store {named.store} does not exist", hint="start a run, or name another"
                )
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
