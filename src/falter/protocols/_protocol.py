"""What a protocol is: parts, each an experiment, and the figures that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from falter.analysis import Analysis, Table
from falter.core.records import Panel, Run, Score
from falter.core.registry import Registry
from falter.figures import Figure
from falter.rewrites import Agreement
from falter.store import StoredCell
from falter.tasks import Task

__all__ = [
    "Answered",
    "Choices",
    "Found",
    "Part",
    "ProtocolLike",
    "TaskKind",
    "Unavailable",
    "protocols",
]

TaskKind = Literal["choices", "numeric", "code", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a user chose in the place of the preset's own settings.

    `tasks` are names with their kinds, and none where the preset's are meant; the user's own data
    has the name "". `generates` and `scores` say what every model can do, `lists` whether every
    task has a template that lists its options.
    """

    preset: str
    tasks: tuple[tuple[str, TaskKind], ...] = ()
    limit: int | None = None
    demonstrations: int | None = None
    scorer: str | None = None
    judge: bool = False
    generates: bool = True
    scores: bool = True
    lists: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One experiment of a protocol, in the words of an experiment file.

    The items of a part that `judges` another are made of that one's answers, once it has run.
    `compares` says whether its prompts are compared by an encoder, which takes time.
    """

    name: str
    title: str
    experiment: Mapping[str, Any]
    judges: str | None = None
    compares: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A part that these choices leave out, and why."""

    title: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One place of a part's plan with its score; None when nothing arrived for it."""

    panel: Panel
    cell: StoredCell
    score: Score | None


@dataclass(frozen=True, kw_only=True)
class Found:
    """A part that has run.

    `cells` reads them from the store, one by one and again each time; the analysis is made when it
    is first looked at.
    """

    part: Part
    run: Run
    tables: tuple[Table, ...]
    analyse: Callable[[], Analysis]
    cells: Callable[[], Iterator[Answered]]

    @cached_property
    def analysis(self) -> Analysis:
        return self.analyse()


class ProtocolLike(Protocol):
    """A named, complete experiment: tasks, recipes, measures and figures of one paper.

    `headline` names the figures that a summary shows.
    """

    name: str
    summary: str
    presets: tuple[str, ...]
    headline: tuple[str, ...]

    def parts(self, choices: Choices) -> tuple[tuple[Part, ...], tuple[Unavailable, ...]]:
        """What is run, in this order, and what these choices leave out."""
        ...

    def judged(self, part: Part, source: Found) -> Task:
        """The items of a part that judges the answers of another."""
        ...

    def figures(self, found: Sequence[Found], ratings: Agreement | None) -> tuple[Figure, ...]:
        """Everything that is shown. Calls no model. `ratings` are those of rewrites, if any."""
        ...

    def notes(self, preset: str) -> tuple[str, ...]:
        """What the preset takes from the paper, and what it chooses where the paper is silent."""
        ...


protocols: Registry[ProtocolLike] = Registry("protocol", "falter.protocols")
