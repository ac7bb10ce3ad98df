"""The answers of a stored run, picked by what became of them. Calls no model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from falter.analysis import (
    Answer,
    AnswerKind,
    UnreadReply,
    answers,
    scored_cells,
    unread_replies,
)
from falter.core.errors import UnknownName, UsageError
from falter.core.ids import short
from falter.core.interfaces import Scorer
from falter.core.records import Run
from falter.experiment._labels import run_scorers
from falter.experiment._remedies import with_reasoning
from falter.figures import Column, Examples, Figure, Grid, Study
from falter.scorers import scorers
from falter.store import Store, StoredRun, find_study

__all__ = ["Answers", "PickedAnswers", "answers_study", "part_of_study", "pick_answers"]

UNREAD = ("unparsed", "truncated", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class PickedAnswers:
    """Which answers of a run are wanted; what is None or empty wants all."""

    kinds: tuple[AnswerKind, ...] = ()
    recipe: str | None = None
    items: tuple[str, ...] = ()
    model: str | None = None
    task: str | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The first `limit` answers that were picked, and how many there are.

    Where unread ones were asked for, `unread` are the commonest of these replies and `readers` the
    scorers that would read them, with the number of replies that each would.
    """

    run: Run
    answers: tuple[Answer, ...]
    count: int
    unread: tuple[UnreadReply, ...] = ()
    readers: tuple[tuple[str, int], ...] = ()


def pick_answers(path: Path, name: str | None, picked: PickedAnswers, *, limit: int) -> Answers:
    """The answers of a stored run, or of a part of a study."""
    if not path.exists():
        raise UsageError(f"The store {path} does not exist", hint="start a run, or name another")
    with Store(path) as store:
        run = part_of_study(store, name, picked.part).run
        _check(run, picked)
        chosen: dict[str, Scorer] = run_scorers(run)
        found = answers(
            store,
            run,
            chosen,
            kinds=picked.kinds,
            recipe=picked.recipe,
            items=picked.items,
            model=picked.model,
            task=picked.task,
        )
        first, count = _counted(found, limit)
        if not set(picked.kinds) & set(UNREAD):
            return Answers(run=run, answers=first, count=count)
        cells = (
            (cell, score)
            for cell, score in scored_cells(store, run, chosen, sections=True)
            if score is not None and score.outcome in UNREAD
        )
        unread, readers = unread_replies(cells, _alternatives(run, chosen))
        return Answers(
            run=run,
            answers=first,
            count=count,
            unread=unread,
            readers=tuple(readers.items()),
        )


def _counted(found: Iterator[Answer], limit: int) -> tuple[tuple[Answer, ...], int]:
    first = tuple(itertools.islice(found, limit))
    return first, len(first) + sum(1 for _ in found)


def part_of_study(store: Store, name: str | None, part: str | None) -> StoredRun:
    """The run of that name; of a study the part, which has to be named where there are several."""
    parts = {p.name: p.run for p in find_study(store, name).parts}
    if len(parts) == 1 and part is None:
        return store.find_run(next(iter(parts.values())))
    if part is None:
        raise UsageError(
            f"This study has {len(parts)} parts: {', '.join(parts)}", hint="name one with --part"
        )
    if part not in parts:
        raise UnknownName("part", part, list(parts))
    return store.find_run(parts[part])


def _check(run: Run, picked: PickedAnswers) -> None:
    """Refuse names that the run does not have."""
    known: dict[str, tuple[str | None, Sequence[str]]] = {
        "recipe": (picked.recipe, [recipe.label for recipe in run.recipes]),
        "model": (picked.model, [panel.model.label for panel in run.panels]),
        "task": (picked.task, [panel.task for panel in run.panels]),
    }
    for kind, (name, names) in known.items():
        if name is not None and name not in names:
            raise UnknownName(kind, name, list(dict.fromkeys(names)))


def _alternatives(run: Run, chosen: dict[str, Scorer]) -> list[Scorer]:
    """Other scorers of written replies that need nothing but the reply and read the same kind."""
    kinds = {scorer.answer_kind for scorer in chosen.values()}
    styles = {scorer.style for scorer in chosen.values()}
    return [
        scorer
        for name in scorers.names()
        if name not in chosen
        for scorer in (with_reasoning(scorers.get(name), run.experiment),)
        if scorer.answer_kind in kinds
        and scorer.style in styles
        and not (scorer.needs_scores or scorer.needs_baseline)
    ]


def answers_study(result: Answers, picked: PickedAnswers) -> Study:
    """The answers as figures: the commonest unread replies first, then one by one."""
    run = result.run
    what = " and ".join(picked.kinds) or "all"
    figures: list[Figure] = []
    if result.unread:
        figures.append(_unread_grid(result))
    figures.append(
        Examples(
            name="answers",
            title=f"{result.count:,} answers: {what}",
            examples=tuple(answer.example for answer in result.answers),
        )
    )
    return Study(
        id=run.id,
        title=f"Answers of the run {short(run.id)}",
        version=run.version,
        created_at=0.0,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
        models=tuple(dict.fromkeys(panel.model.label for panel in run.panels)),
        figures=tuple(figures),
        headline=(),
    )


def _unread_grid(result: Answers) -> Grid:
    text = []
    if result.readers:
        best = ", ".join(f"{name} {count:,}" for name, count in result.readers[:3])
        text.append(
            f"Scorers that would read some of them, with how many: {best}. Whether they read them "
            "rightly is for you to see; 'falter rescore' compares."
        )
    return Grid(
        name="unread-replies",
        title="The commonest replies that could not be read",
        text=tuple(text),
        columns=(Column(name="Reply"), Column(name="Times", unit="count"), Column(name="Read by")),
        rows=tuple((r.text or "(empty)", r.count, ", ".join(r.read_by)) for r in result.unread),
    )
