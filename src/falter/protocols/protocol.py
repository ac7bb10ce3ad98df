"""Base class of protocols, their parts and results, and the selection of the parts to run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from typing import Any, Literal, TypeVar

from falter.analysis.results import Analysis
from falter.analysis.table import Table
from falter.records.codec import from_json
from falter.records.errors import TaskError, UnknownName
from falter.records.figures import Figure
from falter.records.registry import Registry
from falter.records.types import Panel, Rewrite, Run, Score
from falter.rewrites.agreement import Agreement
from falter.scorers.choosing import ScorerNames
from falter.store.store import StoredCell
from falter.tasks.enterprise_data import read_yaml
from falter.tasks.task import Task

T = TypeVar("T")
TaskKind = Literal["choices", "numeric", "code", "open"]
Need = Literal["text", "listed options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSettings:
    """Settings of the user, which replace settings of the preset.

    `parts` are the names of the parts to run, empty for all. `tasks` are the user's tasks by name
    and kind, empty for the preset's tasks. `recipes`, `grid` and `remedies` are for protocols that
    take them.

    `generates` is True if every model writes text, `scores` if every model gives likelihoods, and
    `reasons` if any model thinks first. `lists` is True if every task with options has a template
    that lists the options. `judge_scores` is True if every judge gives likelihoods.

    A protocol reads a setting only if its parts depend on it. `placed_parts` fills in the user's
    tasks, data and limit.
    """

    preset: str
    parts: tuple[str, ...] = ()
    tasks: tuple[tuple[str, TaskKind], ...] = ()
    limit: int | None = None
    demonstrations: int | None = None
    repeats: int | None = None
    scorer: ScorerNames | None = None
    judge: bool = False
    judge_scores: bool = True
    recipes: tuple[Any, ...] = ()
    grid: Mapping[str, Any] | None = None
    remedies: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    rubrics: Mapping[str, str] = field(default_factory=dict)
    generates: bool = True
    reasons: bool = False
    scores: bool = True
    lists: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One experiment of a protocol.

    `experiment` holds settings under the keys of an experiment file. Its `tasks` and `limit` come
    from the preset. If the user names tasks or data, the tasks of a kind in `takes` replace the
    preset's, at most `most_tasks` of them. The user's limit replaces the preset's. If the user's
    models or tasks do not meet `needs`, the part is left out, and the report says so.

    If `judges` names another part, the items are made from that part's responses after it has run,
    with `rubrics`. If `compares`, an encoder compares the prompts, which takes time. Recipes whose
    rewrites are missing are left out, unless the part `insists` on all recipes.
    """

    name: str
    title: str
    experiment: Mapping[str, Any]
    takes: tuple[TaskKind, ...] = ("choices", "numeric", "code", "open")
    most_tasks: int | None = None
    needs: tuple[Need, ...] = ()
    judges: str | None = None
    rubrics: Mapping[str, str] = field(default_factory=dict)
    compares: bool = False
    insists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A part that cannot run with the user's settings, and the reason."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCell:
    """A planned cell of a part with its score; `score` is None if no response arrived."""

    panel: Panel
    cell: StoredCell
    score: Score | None


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """A part that has run.

    Every call of `cells` reads the part's cells from the store, one at a time. `rewrites` yields
    all rewrites in the store, usable or not. `analysis` is computed at its first use.
    """

    part: Part
    run: Run
    tables: tuple[Table, ...]
    analyse: Callable[[], Analysis]
    cells: Callable[[], Iterator[ScoredCell]]
    rewrites: Callable[[], Iterator[Rewrite]] = lambda: iter(())

    @cached_property
    def analysis(self) -> Analysis:
        return self.analyse()


class Protocol(ABC):
    """Base class of a named, complete experiment: its tasks, recipes, measures and figures.

    A subclass lists the parts and makes the figures. `presets` names the sizes of the experiment,
    the default first. The caller refuses an unknown preset. `headline` names the figures of a
    summary.

    The flags permit settings of the user: recipes (`takes_recipes`), a grid (`takes_grid`), several
    judges (`takes_judges`), and rubrics for the judges (`takes_rubrics`). If
    `has_published_tables`, `published` returns the numbers that the paper prints.
    """

    name: str
    summary: str
    presets: tuple[str, ...] = ("quick", "paper")
    headline: tuple[str, ...] = ()
    takes_recipes = False
    takes_grid = False
    takes_judges = False
    takes_rubrics = False
    has_published_tables = False

    @abstractmethod
    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        """Return the parts to run, in this order."""

    @abstractmethod
    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Return the figures of the report. Calls no model.

        `ratings` is the agreement of raters about the rewrites, None without ratings.
        """

    def published(self, results: Sequence[PartResult]) -> tuple[Figure, ...]:
        """Return the paper's tables with the numbers of the run added; empty by default."""
        return ()

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        """Return the task of a part that judges the responses of another part.

        `results` are the parts that have run, by name. Raises TaskError by default.
        """
        raise TaskError(f"The protocol {self.name} makes no items for its part '{part.name}'")

    def judge_calls(self, part: Part, cells: Mapping[tuple[str, str], int]) -> int:
        """Return the maximum number of calls of a judging part.

        `cells` counts the planned cells of the other parts by part name and task.
        """
        return sum(count for (name, _), count in cells.items() if name == part.judges)

    def notes(self, preset: str) -> tuple[str, ...]:
        """Return notes on settings from the paper and on choices of the preset."""
        return ()


def presets_of(protocol: str, kind: type[T], name: str = "presets.yaml") -> dict[str, T]:
    """Return the entries of a YAML file in a protocol's folder, each decoded as `kind`."""
    file = resources.files("falter.protocols").joinpath(protocol, name)
    presets: Mapping[str, Any] = read_yaml(file.read_text("utf-8"))
    return {name: from_json(kind, preset) for name, preset in presets.items()}


protocols: Registry[Protocol] = Registry("protocol", "falter.protocols")


# Parts with the user's own tasks, data and limit


_KIND_WORDS: dict[TaskKind, str] = {
    "choices": "options",
    "numeric": "a number as its answer",
    "code": "code as its answer",
    "open": "an open answer",
}


def chosen_parts(protocol: Protocol, settings: UserSettings) -> tuple[Part, ...]:
    """Return the parts that the user named, in the protocol's order; all if none is named.

    A judging part brings the part that it judges, and a part brings the parts that judge it.
    Raises UnknownName for a name that is no part.
    """
    parts = protocol.parts(settings)
    names = [part.name for part in parts]
    for name in settings.parts:
        if name not in names:
            raise UnknownName(f"part of {protocol.name}", name, names)
    chosen = set(settings.parts or names)
    for part in reversed(parts):
        chosen |= {part.judges} if part.name in chosen and part.judges is not None else set()
    for part in parts:
        chosen |= {part.name} if part.judges in chosen else set()
    return tuple(part for part in parts if part.name in chosen)


def placed_parts(
    parts: Iterable[Part], settings: UserSettings
) -> tuple[tuple[Part, ...], tuple[Unavailable, ...]]:
    """Return the parts that can run, with the user's tasks and limit, and the unavailable parts.

    If a part is left out, the parts that judge it are left out too, without an entry.
    """
    placed: list[Part] = []
    unavailable: list[Unavailable] = []
    for part in parts:
        if part.judges is not None:
            if any(other.name == part.judges for other in placed):
                placed.append(part)
            continue
        tasks = _tasks_of(part, settings)
        reason = _obstacle(part, tasks, settings)
        if reason is not None:
            unavailable.append(Unavailable(title=part.title, reason=reason))
            continue
        experiment: dict[str, Any] = {**part.experiment, "tasks": tasks}
        if settings.limit is not None:
            experiment["limit"] = settings.limit
        placed.append(replace(part, experiment=experiment))
    return tuple(placed), tuple(unavailable)


def _tasks_of(part: Part, settings: UserSettings) -> list[str]:
    names = list(part.experiment.get("tasks", ()))
    if settings.tasks:
        names = [name for name, kind in settings.tasks if kind in part.takes]
    return names[: part.most_tasks]


def _obstacle(part: Part, tasks: list[str], settings: UserSettings) -> str | None:
    if not tasks:
        kinds = " or ".join(_KIND_WORDS[kind] for kind in part.takes)
        names = ", ".join(name for name, _ in settings.tasks)
        return f"no task with {kinds}" + (f" among {names}" if names else "")
    if "text" in part.needs and not settings.generates:
        return "one of the models cannot write text"
    if "listed options" in part.needs and not settings.lists:
        return "the template does not list the options (put {choices} into it)"
    return None
