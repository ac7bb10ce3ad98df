"""Runs, models and prompts compared: names become sides, and what does not pair is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from falter.analysis import (
    OUTCOMES,
    Settings,
    Side,
    SidesCompared,
    Table,
    compare_sides,
    comparison_figures,
    pair_sides,
    tables_with_evidence,
)
from falter.core.errors import DuplicateName, StoreError, UnknownName, UsageError
from falter.core.ids import digest, short
from falter.core.records import Item, Run
from falter.experiment.answers import part_of_study
from falter.experiment.results import Result, Shown
from falter.experiment.scoring import run_scorers
from falter.experiment.task_loading import prompt_of, task_of
from falter.figures import Study
from falter.perturbations import everyday_name
from falter.store import Store, StoredRun

__all__ = ["ComparedRun", "Comparison", "compare", "compared_study"]

MOST_SIDES = 6  # 15 pairs
LONGEST = 80
MISSING = OUTCOMES.index("missing")


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


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One panel of a run, before its answers are read."""

    stored: StoredRun
    store: Store
    called: str
    place: int

    @property
    def run(self) -> Run:
        return self.stored.run

    @property
    def scorer(self) -> str:
        return self.run.panels[self.place].scorer

    @property
    def model(self) -> str:
        return self.run.panels[self.place].model.label

    @property
    def prompt(self) -> str:
        """The name of its prompt, where the run has several."""
        return prompt_of(self.run, self.run.panels[self.place].task)

    @property
    def task(self) -> str:
        """The name of its task, the same for all prompts of it."""
        return task_of(self.run, self.run.panels[self.place].task)

    @property
    def identity(self) -> tuple[str, int]:
        return self.run.id, self.place


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
    path = Path(store)
    named = [
        ComparedRun(run=short(run.run.id, 64), store=run.store)
        if isinstance(run, Result)
        else ComparedRun.parse(run, path)
        for run in runs
    ]
    study = compared_study(
        named, models=models, tasks=tasks, part=part, margin=margin, incomplete=incomplete
    )
    return Comparison(study)


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

    Every model of every run is a side, and every prompt where a run has several; `models` and
    `tasks` restrict them. `margin` is the difference inside which two sides are alike. What cannot
    be compared is refused before any number is made.
    """
    if not 0.0 < margin < 1.0:
        raise UsageError(
            f"The margin {margin:g} is not a difference of scores between 0 and 1",
            hint="2 points are 0.02",
        )
    with ExitStack() as stack:
        places = _places(runs, part, models, stack)
        by_task = _shared_tasks(places, tasks)
        first = next(iter(by_task.values()))
        warnings = [*_warnings(first, _names(first)), *_left_out_tasks(places, by_task, tasks)]
        results: list[SidesCompared] = []
        tables = _Tables(incomplete)
        for task, own in by_task.items():
            names = _names(own)
            _require_one_scorer(own, names)
            results.append(_compared(task, own, names, tables, margin))
        return _study(results, first, warnings)


def _places(
    runs: Sequence[ComparedRun], part: str | None, models: Sequence[str], stack: ExitStack
) -> list[_Place]:
    """Every panel of every run that is named, of these models."""
    places: list[_Place] = []
    for named in runs:
        if not named.store.exists():
            raise UsageError(
                f"The store {named.store} does not exist", hint="start a run, or name another"
            )
        store = stack.enter_context(Store(named.store, writes=False))
        stored = part_of_study(store, named.run, part)
        called = named.called
        if any(place.run.id == stored.run.id for place in places):
            raise DuplicateName(
                f"The run {short(stored.run.id)} is named twice",
                hint="its models are compared when it is named once",
            )
        places += [
            _Place(stored=stored, store=store, called=called, place=n)
            for n in range(len(stored.run.panels))
        ]
    given = Counter(named.called for named in runs if named.called)
    twice = [name for name, count in given.items() if count > 1]
    if twice:
        raise DuplicateName(f"Two runs are called '{twice[0]}'", hint="give each its own name")
    known = list(dict.fromkeys(place.model for place in places))
    for name in models:
        if name not in known:
            raise UnknownName("model", name, known)
    return [place for place in places if not models or place.model in models]


def _shared_tasks(places: Sequence[_Place], chosen: Sequence[str]) -> dict[str, list[_Place]]:
    """By task, the panels of each task that all runs have; one panel for each side."""
    runs = list(dict.fromkeys(place.run.id for place in places))
    names = list(dict.fromkeys(place.task for place in places))
    for name in chosen:
        if name not in names:
            raise UnknownName("task", name, names)
    of_runs = {run: [p.task for p in places if p.run.id == run] for run in runs}
    shared = [
        name
        for name in names
        if all(name in own for own in of_runs.values()) and (not chosen or name in chosen)
    ]
    if not shared:
        has = "; ".join(
            f"{short(run)} has {', '.join(dict.fromkeys(own))}" for run, own in of_runs.items()
        )
        raise UsageError(
            f"These runs are not about the same data: {has}",
            hint="compare runs of the same task, or of a data file of the same name",
        )
    by_task = {name: _one_scorer([p for p in places if p.task == name]) for name in shared}
    for name, sides in by_task.items():
        if len(sides) < 2:
            only = sides[0]
            raise UsageError(
                f"There is nothing to compare: the run {short(only.run.id)} asked {only.model} on "
                f"{name} in one way",
                hint="name a second run, or a run with several models or templates",
            )
        if len(sides) > MOST_SIDES:
            raise UsageError(
                f"{len(sides)} sides are too many to compare on {name}; at most {MOST_SIDES}",
                hint="pick some with --model",
            )
    return by_task


def _one_scorer(places: Sequence[_Place]) -> list[_Place]:
    """Of panels that were scored in several ways, those by the first scorer that all have."""
    sides: dict[tuple[str, str, str], list[_Place]] = {}
    for place in places:
        model = place.run.panels[place.place].model.id
        sides.setdefault((place.run.id, model, place.prompt), []).append(place)
    first = next(iter(sides.values()))
    common = [
        place.scorer
        for place in first
        if all(place.scorer in [p.scorer for p in own] for own in sides.values())
    ]
    scorer = common[0] if common else None
    return [
        next((place for place in own if place.scorer == scorer), own[0]) for own in sides.values()
    ]


def _names(places: Sequence[_Place]) -> list[str]:
    """What each side is called: by the reader, else by what tells the sides apart."""
    several_runs = len({place.run.id for place in places}) > 1
    models = [place.model for place in places]
    by_model = len(set(models)) == len(models)
    names = []
    for place in places:
        own = [p for p in places if p.run.id == place.run.id]
        pieces = [place.called] if place.called else []
        if len({p.prompt for p in own}) > 1:
            pieces.append(place.prompt)
        if len({p.model for p in own}) > 1 or (by_model and not pieces):
            pieces.append(place.model)
        if several_runs and not place.called and not by_model:
            pieces.append(short(place.run.id, 6))
        names.append(" ".join(pieces) or place.model)
    if len(set(names)) < len(names):
        twice = [f"{name} {short(p.run.panels[p.place].model.id, 6)}"
                 for name, p in zip(names, places, strict=True)]  # fmt: skip
        names = [t if names.count(n) > 1 else n for n, t in zip(names, twice, strict=True)]
    return names


def _require_one_scorer(places: Sequence[_Place], names: Sequence[str]) -> None:
    """Refuse scores that do not mean the same."""
    by_name = {name: place.scorer for name, place in zip(names, places, strict=True)}
    if len(set(by_name.values())) > 1:
        has = ", ".join(f"{name} by {scorer}" for name, scorer in by_name.items())
        raise UsageError(
            f"These sides were scored in different ways: {has}",
            hint="run one of them again with the other's --scorer; answers that are stored are "
            "not asked for again",
        )
    labels = [_labels(place) for place in places]
    if any(own != labels[0] for own in labels):
        read = "; ".join(
            f"{name}: {', '.join(own)}" for name, own in zip(names, labels, strict=True)
        )
        raise UsageError(
            f"The scorer {places[0].scorer} read other labels on each side: {read}",
            hint="run one of them again with the other's --labels; answers that are stored are "
            "not asked for again",
        )


def _labels(place: _Place) -> list[str]:
    recorded = place.run.experiment.get("labels") or {}
    return sorted(recorded.get(place.run.panels[place.place].task) or ())


def _warnings(places: Sequence[_Place], names: Sequence[str]) -> Iterator[str]:
    """What makes a pair less than the same prompt under the same conditions."""

    def each(values: Sequence[Any]) -> str:
        return ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))

    seeds = [place.run.seed for place in places]
    if len(set(seeds)) > 1:
        yield (
            f"The seeds differ ({each(seeds)}), so a recipe changed the same prompt in different "
            "places. Items and recipes are paired, the changes themselves are not."
        )
    for what in ("draws", "repeats"):
        counts = [getattr(place.run, what) for place in places]
        if len(set(counts)) > 1:
            yield (
                f"The number of {what} differs ({each(counts)}). Each side's are averaged within "
                "an item; flip rates and prompt shares of averages are smaller, so do not compare "
                "those."
            )
    rules = [place.run.experiment["unparsed"] for place in places]
    if len(set(rules)) > 1:
        yield (
            f"Unread answers were to count in different ways ({each(rules)}). Here they count as "
            "wrong on every side."
        )
    versions = [place.run.version for place in places]
    if len(set(versions)) > 1:
        yield (
            f"The runs were made by different versions of falter ({each(versions)}). Only recipes "
            "whose perturbations have the same version are paired."
        )


def _left_out_tasks(
    places: Sequence[_Place], by_task: Mapping[str, Sequence[_Place]], chosen: Sequence[str]
) -> Iterator[str]:
    others = dict.fromkeys(place.task for place in places if place.task not in by_task)
    if others and not chosen:
        yield f"Left out, because not every run has it: {', '.join(others)}."


class _Tables:
    """The tables and evidence of runs, each read once."""

    def __init__(self, incomplete: bool) -> None:
        self.incomplete = incomplete
        self._sides: dict[tuple[str, int], Side] = {}

    def side(self, place: _Place, name: str) -> Side:
        if place.identity not in self._sides:
            self._read(place)
        return replace(self._sides[place.identity], name=name)

    def _read(self, place: _Place) -> None:
        run, chosen = place.run, run_scorers(place.run)
        tables, evidence = tables_with_evidence(place.store, run, chosen)
        if not self.incomplete:
            _require_finished(place.stored, tables)
        items: dict[str, dict[str, Item]] = {}
        for item in place.store.items(run):
            items.setdefault(item.task, {})[item.key] = item
        for n, (table, own) in enumerate(zip(tables, evidence, strict=True)):
            panel = run.panels[n]
            self._sides[run.id, n] = Side(
                name="",
                table=replace(
                    table, panel=replace(panel, task=task_of(run, panel.task)), rescored=False
                ),
                items=items.get(panel.task, {}),
                evidence=own,
            )


def _require_finished(stored: StoredRun, tables: Sequence[Table]) -> None:
    missing = sum(int((table.outcome[table.in_plan] == MISSING).sum()) for table in tables)
    if missing or not stored.planned:
        raise StoreError(
            f"The run {short(stored.run.id)} is not finished",
            hint="run the same command again to finish it, or compare what is there with --partial",
        )


def _compared(
    task: str,
    places: Sequence[_Place],
    names: Sequence[str],
    tables: _Tables,
    margin: float,
) -> SidesCompared:
    sides = [tables.side(place, name) for place, name in zip(places, names, strict=True)]
    pairing = pair_sides(sides)
    if not pairing.items and pairing.other_text:
        raise UsageError(
            f"These sides have other data under the same keys of {task}: "
            f"{pairing.other_text[0]} is not the same item on each",
            hint="compare runs on the same data; a key has to stay with its text",
        )
    if not pairing.items:
        raise UsageError(
            f"These sides have no item of {task} in common",
            hint="items are paired by their key: name a column of keys with --key when you run, "
            "and use the same data",
        )
    if not pairing.recipes:
        has = "; ".join(f"{name}: {', '.join(own)}" for name, own in pairing.recipes_alone.items())
        raise UsageError(
            f"These sides have no recipe in common: {has}",
            hint="run one of them with the other's recipes; a recipe with other parameters is "
            "another recipe",
        )
    return compare_sides(pairing, task, _settings(places, margin))


def _settings(places: Sequence[_Place], margin: float) -> Settings:
    first = places[0]
    rules = {place.run.experiment["unparsed"] for place in places}
    return Settings(
        run=_id(places),
        version=first.run.version,
        created_at=max(place.stored.created_at for place in places),
        seed=first.run.seed,
        level=first.run.experiment["level"],
        unparsed=rules.pop() if len(rules) == 1 else "wrong",
        margin=margin,
        everyday=everyday_name,
    )


def _id(places: Sequence[_Place]) -> str:
    return digest("comparison", [list(place.identity) for place in places])


def _study(
    results: Sequence[SidesCompared],
    places: Sequence[_Place],
    warnings: Sequence[str],
) -> Study:
    names = _names(places)
    settings = _settings(places, results[0].margin)
    figures = comparison_figures(results, warnings, _differing(places), names)
    models = {place.model: place.run.panels[place.place].model for place in places}
    *others, last = names
    return Study(
        id=settings.run,
        title=f"{', '.join(others)} and {last} compared",
        version=settings.version,
        created_at=settings.created_at,
        seed=settings.seed,
        level=settings.level,
        unparsed=settings.unparsed,
        models=tuple(models),
        simulated=tuple(label for label, model in models.items() if model.simulated),
        figures=figures,
        headline=tuple(figure.name for figure in figures if not getattr(figure, "folded", False)),
    )


def _differing(places: Sequence[_Place]) -> list[tuple[str, ...]]:
    """The settings in which the sides differ, with what each has."""
    rows: list[tuple[str, list[Any]]] = [
        ("run", [short(place.run.id) for place in places]),
        ("model", [place.model for place in places]),
        ("prompt", [place.prompt for place in places]),
        ("falter", [place.run.version for place in places]),
        ("seed", [place.run.seed for place in places]),
        ("draws", [place.run.draws for place in places]),
        ("repeats", [place.run.repeats for place in places]),
    ]
    names = dict.fromkeys(name for place in places for name in place.run.experiment)
    rows += [(name, [place.run.experiment.get(name) for place in places]) for name in names]
    return [
        (name, *(_shown(value) for value in values))
        for name, values in rows
        if any(value != values[0] for value in values)
    ]


def _shown(value: Any) -> str:
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
