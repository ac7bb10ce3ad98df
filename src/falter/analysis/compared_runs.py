"""Comparison of models and prompts from stored runs, or from the results of other tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from falter.analysis.comparison import Side, SidesCompared, compare_sides, pair_sides, unpaired
from falter.analysis.comparison_figures import comparison_figures
from falter.analysis.drop_parts import tables_with_evidence
from falter.analysis.results import Settings
from falter.analysis.sentences import sentence
from falter.analysis.table import MISSING, Table
from falter.records.errors import DuplicateName, StoreError, UnknownName, UsageError, refusal
from falter.records.figures import Study
from falter.records.ids import digest, short
from falter.records.interfaces import Scorer
from falter.records.types import Item, Panel, Recipe, Run
from falter.store.store import Store, StoredRun

MAX_SIDES = 6  # 15 pairs
MAX_SETTING_CHARACTERS = 80  # characters

RESCORE_HINT = "run one of them again with the other's {}; stored responses are not requested again"


@dataclass(frozen=True, kw_only=True)
class RunToCompare:
    """A stored run to compare, with its store and scorers.

    `called` is the user's name for the run, or an empty text. `tasks` and `prompts` have an element
    for each panel.
    """

    stored: StoredRun
    store: Store
    called: str
    scorers: Mapping[str, Scorer]
    tasks: Sequence[str]
    prompts: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """One panel of a source, with the names that distinguish sides.

    `called` is the user's name for the source, `source_name` its own name. `prompt` is empty if the
    source has a single prompt. `task` is equal for all prompts of a task.
    """

    source_name: str
    called: str
    task: str
    prompt: str
    panel: Panel

    @property
    def model(self) -> str:
        return self.panel.model.label


@dataclass(frozen=True, kw_only=True)
class TableToCompare(_Panel):
    """One panel of another tool's results.

    `prompt` is the condition, if the condition is the side.
    """

    table: Table


@dataclass(frozen=True, kw_only=True)
class _RunPanel(_Panel):
    """One panel of a run, before its responses are read."""

    source: RunToCompare
    number: int

    @property
    def run(self) -> Run:
        return self.source.stored.run

    @property
    def labels(self) -> list[str]:
        return sorted((self.run.experiment.get("labels") or {}).get(self.panel.task) or ())


P = TypeVar("P", bound=_Panel)


def compare_runs(
    runs: Sequence[RunToCompare],
    *,
    models: Sequence[str],
    tasks: Sequence[str],
    margin: float,
    incomplete: bool,
    everyday: Callable[[Recipe], str],
) -> Study:
    """Compare the models and prompts of runs, over their common items and recipes.

    `models` and `tasks` select panels; empty means all. Differences inside `margin` count as alike.
    Raise UsageError if the results cannot be compared, and StoreError if a run is unfinished,
    unless `incomplete` is set.
    """
    by_task, unshared = _shared_tasks(_panels_of_runs(runs, models), tasks)
    panels = next(iter(by_task.values()))
    titles = _side_names(panels)
    warnings = [*_comparability_warnings(panels, titles)]
    if unshared and not tasks:
        warnings.append(f"Left out, because not every run has it: {', '.join(unshared)}.")
    results: list[SidesCompared] = []
    sides: dict[tuple[str, int], Side] = {}
    settings = _settings_of(panels, margin, everyday)
    for task, places in by_task.items():
        names = _side_names(places)
        _require_common_scorer(places, names)
        for place in places:
            if (place.run.id, place.number) not in sides:
                sides |= _sides_of_run(place.source, incomplete)
        named = [
            replace(sides[place.run.id, place.number], name=name)
            for place, name in zip(places, names, strict=True)
        ]
        results.append(_compared_sides(named, task, _settings_of(places, margin, everyday)))
    return _study_of(results, warnings, _differing_settings(panels), titles, panels, settings)


def compare_tables(
    tables: Sequence[TableToCompare],
    *,
    models: Sequence[str],
    tasks: Sequence[str],
    settings: Settings,
) -> Study:
    """Compare the results of other tools, paired by item if the sides share items."""
    by_task, unshared = _shared_tasks(_restrict_to_models(tables, models), tasks)
    panels = next(iter(by_task.values()))
    titles = _side_names(panels)
    warnings = []
    if unshared and not tasks:
        warnings.append(f"Left out, because not every file has it: {', '.join(unshared)}.")
    results = []
    for task, places in by_task.items():
        names = _side_names(places)
        scorers = [place.panel.scorer for place in places]
        if len(set(scorers)) > 1:
            scored = ", ".join(f"{n} by {scorer}" for n, scorer in zip(names, scorers, strict=True))
            warnings.append(f"The sides were scored in different ways: {scored}.")
        sides = [Side(name=n, table=place.table) for n, place in zip(names, places, strict=True)]
        results.append(_compared_sides(sides, task, settings))
    rows = {
        "file": [place.source_name for place in panels],
        "model": [place.model for place in panels],
        "condition": [place.prompt for place in panels],
    }
    return _study_of(results, warnings, _rows_that_differ(rows), titles, panels, settings)


def _study_of(
    results: Sequence[SidesCompared],
    warnings: Sequence[str],
    differing: Sequence[tuple[str, ...]],
    names: Sequence[str],
    panels: Sequence[_Panel],
    settings: Settings,
) -> Study:
    figures = comparison_figures(results, warnings, differing, names)
    models_by_name = {place.model: place.panel.model for place in panels}
    return Study(
        id=settings.run,
        title=f"{', '.join(names[:-1])} and {names[-1]} compared",
        version=settings.version,
        created_at=settings.created_at,
        seed=settings.seed,
        level=settings.level,
        unparsed=settings.unparsed,
        models=tuple(models_by_name),
        simulated=tuple(label for label, model in models_by_name.items() if model.simulated),
        figures=figures,
        headline=tuple(figure.name for figure in figures if not figure.folded),
        notes=settings.notes,
    )


def _panels_of_runs(runs: Sequence[RunToCompare], models: Sequence[str]) -> list[_RunPanel]:
    """Return the panels of all runs, restricted to these models."""
    ids = Counter(source.stored.run.id for source in runs)
    for run, count in ids.items():
        if count > 1:
            raise refusal(DuplicateName, "analysis.run_twice", run=short(run))
    for called, count in Counter(source.called for source in runs if source.called).items():
        if count > 1:
            raise DuplicateName(f"Two runs are called '{called}'", hint="give each its own name")
    places = [
        _RunPanel(
            source=source,
            number=n,
            source_name=f"the run {short(source.stored.run.id)}",
            called=source.called,
            task=source.tasks[n],
            prompt=source.prompts[n],
            panel=panel,
        )
        for source in runs
        for n, panel in enumerate(source.stored.run.panels)
    ]
    return _restrict_to_models(places, models)


def _restrict_to_models(places: Sequence[P], models: Sequence[str]) -> list[P]:
    known = list(dict.fromkeys(place.model for place in places))
    for name in models:
        if name not in known:
            raise UnknownName("model", name, known)
    return [place for place in places if not models or place.model in models]


def _shared_tasks(
    places: Sequence[P], chosen: Sequence[str]
) -> tuple[dict[str, list[P]], list[str]]:
    """Return the sides of each task that all sources have, and the tasks that some source lacks.

    A source is a run or a file, a side one model with one prompt. Raise UsageError without a shared
    task, and for fewer than two or more than `MAX_SIDES` sides.
    """
    names = list(dict.fromkeys(place.task for place in places))
    for name in chosen:
        if name not in names:
            raise UnknownName("task", name, names)
    by_source: dict[str, list[str]] = {}
    for place in places:
        by_source.setdefault(place.source_name, []).append(place.task)
    in_all = [name for name in names if all(name in tasks for tasks in by_source.values())]
    shared = [name for name in in_all if not chosen or name in chosen]
    if not shared:
        listing = "; ".join(
            f"{name} has {', '.join(dict.fromkeys(tasks))}" for name, tasks in by_source.items()
        )
        raise UsageError(
            f"These results have no task in common: {listing}",
            hint="compare results of the same task, or of a data file of the same name",
        )
    by_task = {name: _by_common_scorer([p for p in places if p.task == name]) for name in shared}
    for name, sides in by_task.items():
        if len(sides) < 2:
            only = sides[0]
            raise UsageError(
                f"There is nothing to compare: {only.source_name} has a single model and prompt, "
                f"{only.model}, on {name}",
                hint="name a second run, or a run with several models or prompts",
            )
        if len(sides) > MAX_SIDES:
            raise UsageError(
                f"{len(sides)} models and prompts are too many to compare on {name}; at most "
                f"{MAX_SIDES}",
                hint="choose some with --model",
            )
    return by_task, [name for name in names if name not in shared]


def _by_common_scorer(places: Sequence[P]) -> list[P]:
    """Return one panel for each side: of the first scorer that all sides have, if there is one."""
    sides: dict[tuple[str, str, str], list[P]] = {}
    for place in places:
        side = (place.source_name, place.panel.model.id, place.prompt)
        sides.setdefault(side, []).append(place)
    by_scorer = [{place.panel.scorer: place for place in reversed(own)} for own in sides.values()]
    first = [place.panel.scorer for place in next(iter(sides.values()))]
    common = [scorer for scorer in first if all(scorer in own for own in by_scorer)]
    if common:
        return [own[common[0]] for own in by_scorer]
    return [own[0] for own in sides.values()]


def _side_names(places: Sequence[_Panel]) -> list[str]:
    """Return a name for each side: the user's name, or one that distinguishes the sides."""
    several = len({place.source_name for place in places}) > 1
    by_model = len({place.model for place in places}) == len(places)
    names = []
    for place in places:
        same_source = [p for p in places if p.source_name == place.source_name]
        pieces = [place.called] if place.called else []
        if len({p.prompt for p in same_source}) > 1:
            pieces.append(place.prompt)
        if len({p.model for p in same_source}) > 1 or (by_model and not pieces):
            pieces.append(place.model)
        if several and not place.called and not by_model:
            pieces.append(place.source_name.removeprefix("the run ")[:6])
        names.append(" ".join(pieces) or place.model)
    return [
        f"{name} {short(place.panel.model.id, 6)}" if names.count(name) > 1 else name
        for name, place in zip(names, places, strict=True)
    ]


def _require_common_scorer(places: Sequence[_RunPanel], names: Sequence[str]) -> None:
    """Raise UsageError if the sides' scores have different meanings."""
    scorers = [place.panel.scorer for place in places]
    if len(set(scorers)) > 1:
        scored = ", ".join(f"{n} by {scorer}" for n, scorer in zip(names, scorers, strict=True))
        raise UsageError(
            f"These results were scored in different ways: {scored}",
            hint=RESCORE_HINT.format("--scorer"),
        )
    if any(place.labels != places[0].labels for place in places):
        labels_by_side = "; ".join(
            f"{name}: {', '.join(place.labels)}" for name, place in zip(names, places, strict=True)
        )
        raise UsageError(
            f"The scorer {scorers[0]} used different labels: {labels_by_side}",
            hint=RESCORE_HINT.format("--labels"),
        )


def _comparability_warnings(places: Sequence[_RunPanel], names: Sequence[str]) -> Iterator[str]:
    """Yield the reasons that a pair is less than the same prompt under the same conditions."""

    def by_side(values: Sequence[Any]) -> str:
        """Return every side's value if the values differ, otherwise an empty text."""
        pairs = zip(names, values, strict=True)
        return ", ".join(f"{name}: {v}" for name, v in pairs) if len(set(values)) > 1 else ""

    runs = [place.run for place in places]
    if seeds := by_side([run.seed for run in runs]):
        yield sentence("comparison.seeds", seeds=seeds)
    for what in ("draws", "repeats"):
        if counts := by_side([getattr(run, what) for run in runs]):
            yield sentence("comparison.counts", what=what, counts=counts)
    if rules := by_side([run.experiment["unparsed"] for run in runs]):
        yield sentence("comparison.rules", rules=rules)
    if versions := by_side([run.version for run in runs]):
        yield sentence("comparison.versions", versions=versions)


def _sides_of_run(source: RunToCompare, incomplete: bool) -> dict[tuple[str, int], Side]:
    """Return all panels of a run as sides, with tables and evidence but without names."""
    run = source.stored.run
    tables, evidence = tables_with_evidence(source.store, run, source.scorers)
    if not incomplete:
        _require_finished(source.stored, tables)
    items: dict[str, dict[str, Item]] = {}
    for item in source.store.items(run):
        items.setdefault(item.task, {})[item.key] = item
    return {
        (run.id, n): Side(
            name="",
            table=replace(
                table, panel=replace(run.panels[n], task=source.tasks[n]), rescored=False
            ),
            items=items.get(run.panels[n].task, {}),
            evidence=panel_evidence,
        )
        for n, (table, panel_evidence) in enumerate(zip(tables, evidence, strict=True))
    }


def _require_finished(stored: StoredRun, tables: Sequence[Table]) -> None:
    missing = any((table.outcome[table.in_plan] == MISSING).any() for table in tables)
    if missing or not stored.planned:
        raise refusal(StoreError, "analysis.unfinished_run", run=short(stored.run.id))


def _compared_sides(sides: Sequence[Side], task: str, settings: Settings) -> SidesCompared:
    pairing = pair_sides(sides)
    if not pairing.items and all(side.evidence is None for side in sides):
        pairing = unpaired(sides)
    if not pairing.items and pairing.other_text:
        raise refusal(
            UsageError, "analysis.other_texts", task=task, other_text=pairing.other_text[0]
        )
    if not pairing.items:
        raise refusal(UsageError, "analysis.no_common_item", task=task)
    if not pairing.recipes and pairing.recipes_alone:
        listing = "; ".join(
            f"{name}: {', '.join(own)}" for name, own in pairing.recipes_alone.items()
        )
        raise UsageError(
            f"These results have no recipe in common: {listing}",
            hint="run one of them with the other's recipes, with the same parameters",
        )
    return compare_sides(pairing, task, settings)


def _settings_of(
    places: Sequence[_RunPanel], margin: float, everyday: Callable[[Recipe], str]
) -> Settings:
    first = places[0].run
    rules = {place.run.experiment["unparsed"] for place in places}
    return Settings(
        run=digest("comparison", [[place.run.id, place.number] for place in places]),
        version=first.version,
        created_at=max(place.source.stored.created_at for place in places),
        seed=first.seed,
        level=first.experiment["level"],
        unparsed=rules.pop() if len(rules) == 1 else "wrong",
        margin=margin,
        everyday=everyday,
    )


def _differing_settings(places: Sequence[_RunPanel]) -> list[tuple[str, ...]]:
    """Return the settings in which the sides differ, with the value of each side."""
    runs = [place.run for place in places]
    rows: dict[str, list[Any]] = {
        "run": [short(run.id) for run in runs],
        "model": [place.model for place in places],
        "prompt": [place.prompt for place in places],
        "falter": [run.version for run in runs],
        **{name: [getattr(run, name) for run in runs] for name in ("seed", "draws", "repeats")},
    }
    for name in dict.fromkeys(name for run in runs for name in run.experiment):
        rows[name] = [run.experiment.get(name) for run in runs]
    return _rows_that_differ(rows)


def _rows_that_differ(rows: Mapping[str, Sequence[Any]]) -> list[tuple[str, ...]]:
    return [
        (name, *(_value_text(value) for value in values))
        for name, values in rows.items()
        if any(value != values[0] for value in values)
    ]


def _value_text(value: Any) -> str:
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= MAX_SETTING_CHARACTERS else f"{text[: MAX_SETTING_CHARACTERS - 1]}…"
