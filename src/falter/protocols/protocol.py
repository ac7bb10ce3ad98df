"""A protocol: parts, each an experiment, and the figures that are made of them."""

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
    """Settings of the user that replace those of the preset.

    `parts` are the names of those to run, empty for all. `tasks` are the user's own, by name and
    kind; empty to use the preset's. `generates` and `scores` say what every model can do, `reasons`
    whether one thinks first, `lists` whether every task with options has a template that lists
    them. A protocol needs these only where its parts depend on them: tasks, data and
    limits are put in place for it. `judge_scores` says whether the judge gives likelihoods.
    `recipes`, `grid` and `remedies` are for a protocol that takes them.
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
    """One experiment of a protocol, in the words of an experiment file.

    Its `tasks` and `limit` are those of the preset. Where the user names tasks or data, those of a
    kind in `takes` replace them, at most `most_tasks`; so does the user's limit. A part whose
    `needs` the user's models or tasks do not meet is left out, and the report says so. The items of
    a part that `judges` another are made of that one's answers, once it has run, with `rubrics`.
    `compares` says whether its prompts are compared by an encoder, which takes time. Recipes that
    nobody has written rewrites for are left out, unless the part `insists` on all of them.
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
    """A part that the user's settings leave out, and why."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCell:
    """One place of a part's plan with its score; None when nothing arrived for it."""

    panel: Panel
    cell: StoredCell
    score: Score | None


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """A part that has run.

    `cells` reads them from the store, one by one, each time it is called; the analysis is made
    when it is first needed. `rewrites` are all that the store holds, usable or not.
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
    """A named, complete experiment: tasks, recipes, measures and figures of one paper.

    A subclass lists its parts and makes the figures. `presets` are the sizes in which it can be
    run, the first by default; an unknown one is refused before. `headline` names the figures that
    a summary shows; `takes_recipes` says whether the user names the recipes, `takes_grid` whether a
    grid, `takes_judges` whether several may judge, `takes_rubrics` whether the user names those of
    the judge, and `has_published_tables` whether `published` gives the numbers that its paper
    prints.
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
        """The figures of the report. Calls no model. `ratings` are those of rewrites, if any."""

    def published(self, results: Sequence[PartResult]) -> tuple[Figure, ...]:
        """The tables that the paper prints, beside the numbers of the run; where it has any."""
        return ()

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        """The items of a part that judges the answers of others, which have run, by name."""
        raise TaskError(f"The protocol {self.name} makes no items for its part '{part.name}'")

    def judge_calls(self, part: Part, cells: Mapping[tuple[str, str], int]) -> int:
        """The most calls that a judging part can take; `cells` are those of other parts by task."""
        return sum(count for (name, _), count in cells.items() if name == part.judges)

    def notes(self, preset: str) -> tuple[str, ...]:
        """Return notes on settings from the paper and on choices of the preset."""
        return ()


def presets_of(protocol: str, kind: type[T], name: str = "presets.yaml") -> dict[str, T]:
    """The presets of a protocol, or its parts, as a file in its folder declares them."""
    file = resources.files("falter.protocols").joinpath(protocol, name)
    presets: Mapping[str, Any] = read_yaml(file.read_text("utf-8"))
    return {name: from_json(kind, preset) for name, preset in presets.items()}


protocols: Registry[Protocol] = Registry("protocol", "falter.protocols")


# Parts with the user's own tasks, data and limit


_KINDS: dict[TaskKind, str] = {
    "choices": "options",
    "numeric": "a number as its answer",
    "code": "code as its answer",
    "open": "an open answer",
}


def chosen_parts(protocol: Protocol, settings: UserSettings) -> tuple[Part, ...]:
    """The parts that the user named, or all; with each the part that it judges, and its judges."""
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
    """The parts that can be run, and those that cannot with the reason.

    A part that judges one that is left out is left out with it.
    """
    placed: list[Part] = []
    unavailable: list[Unavailable] = []
    for part in parts:
        if part.judges is not None:
            if any(other.name == part.judges for other in placed):
                placed.append(part)
            continue
        tasks = _tasks(part, settings)
        reason = _obstacle(part, tasks, settings)
        if reason is not None:
            unavailable.append(Unavailable(title=part.title, reason=reason))
            continue
        experiment: dict[str, Any] = {**part.experiment, "tasks": tasks}
        if settings.limit is not None:
            experiment["limit"] = settings.limit
        placed.append(replace(part, experiment=experiment))
    return tuple(placed), tuple(unavailable)


def _tasks(part: Part, settings: UserSettings) -> list[str]:
    names = list(part.experiment.get("tasks", ()))
    if settings.tasks:
        names = [name for name, kind in settings.tasks if kind in part.takes]
    return names[: part.most_tasks]


def _obstacle(part: Part, tasks: list[str], settings: UserSettings) -> str | None:
    if not tasks:
        kinds = " or ".join(_KINDS[kind] for kind in part.takes)
        names = ", ".join(name for name, _ in settings.tasks)
        return f"no task with {kinds}" + (f" among {names}" if names else "")
    if "text" in part.needs and not settings.generates:
        return "one of the models cannot write text"
    if "listed options" in part.needs and not settings.lists:
        return "the template does not list the options (put {choices} into it)"
    return None
