"""Responses of a stored run: filtered for display, or read again by another scorer.

Models are called only by `rescored_study`, and only if a `reader` is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from falter.analysis.examples import Answer, AnswerKind, UnreadReply, answers, unread_replies
from falter.analysis.rescore import ReadTwice, rescore_figures, rescored_panels
from falter.analysis.results import Settings
from falter.analysis.table import scored_cells
from falter.engine.asking import ask_extractor
from falter.engine.config import ModelSpec
from falter.engine.execution import Watch
from falter.engine.extraction import extractions, read_marks, reads_prose, stored_scorers
from falter.engine.scoring import reads_labels, with_labels, with_reasoning
from falter.records.errors import StoreError, UnknownName, UsageError, refusal
from falter.records.figures import Column, Examples, Figure, Grid, Statement, Study
from falter.records.ids import short
from falter.records.interfaces import Scorer
from falter.records.types import Item, Run
from falter.scorers import scorers
from falter.scorers.base import ReadElsewhere, with_readings
from falter.scorers.choosing import EXTRACTING_SCORERS
from falter.store.store import Store, StoredRun
from falter.store.studies import find_study, require_store

NO_ANSWER_KINDS = ("unparsed", "truncated", "refused")
"""Outcomes without a usable answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFilter:
    """A filter on the responses of a run; a field that is None or empty accepts all."""

    kinds: tuple[AnswerKind, ...] = ()
    recipe: str | None = None
    items: tuple[str, ...] = ()
    model: str | None = None
    task: str | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The first responses that pass a filter, and the number of all that do.

    If the filter names outcomes without a usable answer, `unread` has the most frequent of these
    replies. `readers` then are the scorers that would read some, each with its number of replies.
    """

    run: Run
    answers: tuple[Answer, ...]
    count: int
    unread: tuple[UnreadReply, ...] = ()
    readers: tuple[tuple[str, int], ...] = ()


def pick_answers(path: Path, name: str | None, picked: AnswerFilter, *, limit: int) -> Answers:
    """Return the responses of a stored run, or of a part of a study, that pass a filter."""
    require_store(path)
    with Store(path) as store:
        run = part_of_study(store, name, picked.part).run
        _require_known_names(run, picked)
        run_scorers = stored_scorers(store, run)
        first, count = answers(
            store,
            run,
            run_scorers,
            kinds=picked.kinds,
            recipe=picked.recipe,
            items=picked.items,
            model=picked.model,
            task=picked.task,
            most=limit,
        )
        outcomes = set(picked.kinds) & set(NO_ANSWER_KINDS)
        if not outcomes:
            return Answers(run=run, answers=tuple(first), count=count)
        cells = (
            (cell, score)
            for cell, score in scored_cells(store, run, run_scorers, sections=True)
            if score is not None and score.outcome in outcomes
        )
        unread, readers = unread_replies(cells, _other_scorers(run, run_scorers))
        return Answers(
            run=run,
            answers=tuple(first),
            count=count,
            unread=unread,
            readers=tuple(readers.items()),
        )


def part_of_study(store: Store, name: str | None, part: str | None) -> StoredRun:
    """Return the run of that name; for a study, the run of its part.

    `part` is required if there are several parts. Raises `UnknownName` for an unknown part.
    """
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


def _require_known_names(run: Run, answer_filter: AnswerFilter) -> None:
    """Raise `UnknownName` if the filter has a name that the run does not have."""
    filtered_names: dict[str, tuple[str | None, Sequence[str]]] = {
        "recipe": (answer_filter.recipe, [recipe.label for recipe in run.recipes]),
        "model": (answer_filter.model, [panel.model.label for panel in run.panels]),
        "task": (answer_filter.task, [panel.task for panel in run.panels]),
    }
    for kind, (name, names) in filtered_names.items():
        if name is not None and name not in names:
            raise UnknownName(kind, name, list(dict.fromkeys(names)))


def _other_scorers(run: Run, run_scorers: dict[str, Scorer]) -> list[Scorer]:
    """Return the other scorers that extract an answer from replies to prompts of the same style.

    Scorers that grade a reply by its similarity to the target are left out, because they score any
    reply.
    """
    styles = {scorer.style for scorer in run_scorers.values()}
    labels = run.experiment.get("labels") or {}
    return [
        scorer
        for name in EXTRACTING_SCORERS
        if name not in run_scorers
        for scorer in (with_reasoning(with_labels(scorers.get(name), labels), run.experiment),)
        if scorer.style in styles
    ]


def answers_study(result: Answers, picked: AnswerFilter) -> Study:
    """Return the responses as figures: the most frequent unread replies first, then one by one."""
    run = result.run
    what = " and ".join(picked.kinds) or "all"
    figures: list[Figure] = []
    if result.unread:
        figures.append(_no_answer_grid(result, what))
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


def _no_answer_grid(result: Answers, what: str) -> Grid:
    """Return the table of the most frequent replies without a usable answer."""
    text = []
    if result.readers:
        best = ", ".join(f"{name} {count:,}" for name, count in result.readers[:3])
        text.append(
            f"Scorers that find an answer in some of them, with the number: {best}. Check those "
            "answers with 'falter rescore'."
        )
    return Grid(
        name="unread-replies",
        title=f"The commonest replies without an answer: {what}",
        text=tuple(text),
        columns=(Column(name="Reply"), Column(name="Times", unit="count"), Column(name="Read by")),
        rows=tuple((r.text or "(empty)", r.count, ", ".join(r.read_by)) for r in result.unread),
    )


# The stored responses of a run, read again by another scorer, a model or people


def rescored_study(
    path: Path | str,
    name: str | None,
    scorer: str | None = None,
    *,
    part: str | None = None,
    labels: Sequence[str] = (),
    incomplete: bool = False,
    reader: ModelSpec | None = None,
    marks: Path | None = None,
    watch: Watch | None = None,
) -> Study:
    """Return a comparison of a stored run's scores with another reading of its responses.

    - `scorer` names another scorer; without it, the run's own scorers are used.
    - `labels` are for a scorer that reads labels. The default is the run's labels, otherwise the
      distinct targets of its items.
    - `reader` is a model that extracts the answers that a scorer inferred or could not parse.
    - `marks` is a file of answers that people read.

    Raises `UsageError` if none of scorer, reader and marks is given.
    """
    path = Path(path)
    if scorer is None and reader is None and marks is None:
        raise refusal(UsageError, "engine.nothing_to_rescore")
    require_store(path)
    with Store(path) as store:
        stored = part_of_study(store, name, part)
        run = stored.run
        own, items = stored_scorers(store, run), store.items(run)
        if scorer is None:
            others = own
            places = [n for n, p in enumerate(run.panels) if reads_prose(own[p.scorer])]
            if not places:
                raise refusal(UsageError, "engine.no_written_panel")
        else:
            other = _scorer_named(run, scorer, items, labels)
            places, others = _readable_panels(run, other, items), dict.fromkeys(own, other)
        lines: list[str] = []
        sources: list[str] = []
        readings: dict[str, ReadElsewhere] = {}
        if reader is not None:
            reader_settings = ask_extractor(store, run, others, reader, watch)
            extracted = extractions(store, run, others, reader_settings)
            readings |= extracted.readings
            sources.append(extracted.reader)
            lines.append(extracted.line(run.experiment["level"]))
        if marks is not None:
            marked = read_marks(marks, store, run, places)
            readings |= marked
            sources.append(f"{len(marked):,} mark{'' if len(marked) == 1 else 's'}")
        others = {name: with_readings(s, readings, sources) for name, s in others.items()}
        panels = rescored_panels(store, run, own, others, places, _analysis_settings(stored))
    if not incomplete:
        _require_finished(stored, panels)
    return _as_study(stored, panels, lines)


def _scorer_named(run: Run, name: str, items: Sequence[Item], labels: Sequence[str]) -> Scorer:
    """Return the scorer of that name as it reads the run's replies.

    Raises if it lacks something it needs, or if labels are given that it does not use.
    """
    scorer = with_reasoning(scorers.get(name), run.experiment)
    scorer.check()
    scorer = with_labels(scorer, _task_labels(run, items, labels))
    if labels and not reads_labels(scorer):
        raise refusal(UsageError, "engine.scorer_without_labels", name=name)
    return scorer


def _require_finished(stored: StoredRun, panels: Sequence[ReadTwice]) -> None:
    """Raise if the run lacks responses."""
    missing = sum(panel.first.counts.missing for panel in panels)
    if missing or not stored.planned:
        raise refusal(StoreError, "engine.unfinished_run", id=short(stored.run.id))


def _task_labels(run: Run, items: Sequence[Item], named: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels of each task: named now, otherwise the run's, otherwise its targets."""
    tasks = {panel.task for panel in run.panels}
    recorded = run.experiment.get("labels") or {}
    targets: dict[str, set[str]] = {task: set() for task in tasks}
    for item in items:
        if isinstance(item.target, str):
            targets.setdefault(item.task, set()).add(item.target)
    return {
        task: list(named) or list(recorded.get(task) or sorted(targets[task])) for task in tasks
    }


def _readable_panels(run: Run, other: Scorer, items: Sequence[Item]) -> list[int]:
    """Return the panels that the scorer can read and has not scored; raise if there are none."""
    misfits = {place: _misfit_reason(run, place, other, items) for place in range(len(run.panels))}
    fitting = [place for place, why in misfits.items() if not why]
    if not fitting:
        raise UsageError(
            f"The scorer '{other.name}' cannot rescore this run: {misfits[0]}",
            hint="'falter list scorers' describes the others",
        )
    return fitting


def _misfit_reason(run: Run, place: int, second_scorer: Scorer, items: Sequence[Item]) -> str:
    """Return the reason why the scorer cannot read a panel's responses; empty if it can."""
    panel = run.panels[place]
    first_scorer = scorers.get(panel.scorer)
    task_items = [item for item in items if item.task == panel.task]
    if panel.scorer == second_scorer.name:
        return f"'{panel.task}' was already scored by it"
    if second_scorer.needs_scores and not first_scorer.needs_scores:
        return "it needs log-probabilities of the options, but the run has written replies"
    if first_scorer.needs_scores and not second_scorer.needs_scores:
        return "it needs written replies, but the run has log-probabilities of the options"
    if second_scorer.needs_choices and not all(item.choices for item in task_items):
        return f"it needs choices, which '{panel.task}' does not have"
    targets = [
        item.choices[item.target] if isinstance(item.target, int) and item.choices else item.target
        for item in task_items
    ]
    faults = [second_scorer.fault(str(target)) for target in targets if target is not None]
    return str(faults[0]) if faults and all(faults) else ""


def _analysis_settings(stored: StoredRun) -> Settings:
    """Return the settings of an analysis, from a stored run."""
    run = stored.run
    return Settings(
        run=run.id,
        version=run.version,
        created_at=stored.created_at,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
    )


def _as_study(stored: StoredRun, panels: Sequence[ReadTwice], lines: Sequence[str]) -> Study:
    """Return the comparison of both readings as figures, with a note on panels left out."""
    run = stored.run
    names = " and ".join(dict.fromkeys(panel.scorers[1] for panel in panels))
    figures = rescore_figures(panels, run.experiment["level"])
    if lines:
        figures = (Statement(name="reader", title="Read by a model", text=tuple(lines)), *figures)
    models = {panel.panel.model.label: panel.panel.model for panel in panels}
    left_out = len(run.panels) - len(panels)
    return Study(
        id=run.id,
        title=f"The run {short(run.id)} read by {names}",
        version=run.version,
        created_at=stored.created_at,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
        models=tuple(models),
        simulated=tuple(label for label, model in models.items() if model.simulated),
        figures=figures,
        headline=tuple(figure.name for figure in figures),
        notes=(f"{left_out} model–task pairs are left out: {names} already scored or cannot score "
            "them.",) if left_out else (),
    )  # fmt: skip
