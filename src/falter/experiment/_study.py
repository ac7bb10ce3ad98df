"""A study: a protocol's parts read, resolved, run one after another, and put together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from falter import __version__
from falter.core.errors import TaskError, UsageError
from falter.core.interfaces import Client
from falter.core.records import BASELINE, Run
from falter.experiment._config import Experiment, ModelSpec, read_experiment, read_model
from falter.experiment._execute import (
    Watch,
    carry_out,
    check_scorers,
    is_answered,
    opened,
    planned_cost,
    run_async,
)
from falter.experiment._findings import found_part
from falter.experiment._needs import model_made
from falter.experiment._recipes import recipes_of
from falter.experiment._resolve import PanelPlan, Resolved, connect, load_task, load_tasks, resolve
from falter.experiment._rewrites import bank_in
from falter.plan import Cost
from falter.protocols import Choices, Part, ProtocolLike, TaskKind, protocols
from falter.store import Store, StoredPart, StoredStudy, put_study
from falter.tasks import Task

__all__ = [
    "Judging",
    "ResolvedStudy",
    "StudySpec",
    "carry_out_study",
    "names_protocol",
    "planned_study",
    "read_study",
    "rewriting_experiments",
    "study_in",
]

OWN = ("protocol", "preset", "judge")
DEFAULT_PRESET = "quick"
OnPart = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    """A protocol as a user asked for it: checked, not yet resolved."""

    protocol: ProtocolLike
    preset: str
    judge: ModelSpec | None
    experiment: Experiment
    settings: Mapping[str, Any]
    folder: Path
    own_tasks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """A part whose items are the answers of another: known once that one has run."""

    part: Part
    experiment: Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStudy:
    """A study with every name turned into an object. `notes` say what was left out, and why."""

    spec: StudySpec
    parts: tuple[tuple[Part, Resolved], ...]
    judging: tuple[Judging, ...]
    clients: tuple[Client, ...]
    judge: Client | None
    notes: tuple[str, ...] = ()


def names_protocol(data: Mapping[str, Any]) -> bool:
    """Whether this mapping is about a protocol."""
    return any(data.get(key) is not None for key in OWN)


def read_study(data: Mapping[str, Any], *, folder: Path = Path()) -> StudySpec:
    """Read a mapping that names a protocol. Every other setting is that of an experiment."""
    rest = {key: value for key, value in data.items() if key not in OWN}
    name = data.get("protocol")
    if name is None:
        key = "preset" if data.get("preset") is not None else "judge"
        raise UsageError(
            f"'{key}' is about a protocol, and none is named",
            hint="for example --protocol brittlebench",
        )
    protocol = protocols.get(str(name))
    if rest.get("recipes"):
        raise UsageError(
            f"The protocol {protocol.name} brings its recipes",
            hint="leave 'recipes' out, or run an experiment without a protocol",
        )
    own = any(rest.get(key) is not None for key in ("task", "tasks", "data"))
    if not own:
        rest["task"] = "basics"  # stands in, so that every other setting can be checked
    judge = data.get("judge")
    return StudySpec(
        protocol=protocol,
        preset=str(data.get("preset") or DEFAULT_PRESET),
        judge=None if judge is None else read_model(judge, "judge"),
        experiment=read_experiment(rest, folder=folder),
        settings=dict(data),
        folder=folder,
        own_tasks=own,
    )


def rewriting_experiments(data: Mapping[str, Any], *, folder: Path = Path()) -> list[Experiment]:
    """The experiments of a protocol whose prompts a model has to reword; no model need be named."""
    spec = read_study({"models": ["simulated"], **data}, folder=folder)
    shelf = _Shelf(load_tasks(spec.experiment) if spec.own_tasks else (), spec)
    parts, _ = spec.protocol.parts(_choices(spec, (), shelf))
    made = [replace(_experiment(spec, part), models=()) for part in parts if part.judges is None]
    return [one for one in made if any(map(model_made, recipes_of(one)))]


@contextlib.contextmanager
def study_in(spec: StudySpec, path: Path) -> Iterator[ResolvedStudy]:
    """The study resolved, with rewrites at hand for as long as it is used."""
    with contextlib.ExitStack() as stack:
        yield _resolve(spec, path, stack)


def _resolve(spec: StudySpec, path: Path, stack: contextlib.ExitStack) -> ResolvedStudy:
    clients = tuple(connect(model) for model in spec.experiment.models)
    judge = None if spec.judge is None else connect(spec.judge)
    if judge is not None and not judge.capabilities.generates:
        assert spec.judge is not None
        raise UsageError(
            f"The judge '{spec.judge.name}' gives no text", hint="name a model that generates"
        )
    shelf = _Shelf(load_tasks(spec.experiment) if spec.own_tasks else (), spec)
    parts, absent = spec.protocol.parts(_choices(spec, clients, shelf))
    if not parts:
        raise UsageError(
            f"No part of {spec.protocol.name} fits these tasks and models: "
            + "; ".join(dict.fromkeys(one.reason for one in absent)),
            hint="leave the task out to take those of the preset",
        )
    notes = [f"{one.title}: left out, {one.reason}." for one in absent]
    made: list[tuple[Part, Resolved]] = []
    judging: list[Judging] = []
    told: dict[str, list[str]] = {}
    for part in parts:
        if part.judges is not None:
            judging.append(Judging(part=part, experiment=_experiment(spec, part)))
            continue
        resolved, lines = _resolved_part(spec, part, path, stack, shelf, clients)
        made.append((part, resolved))
        for line in lines:
            told.setdefault(line, []).append(part.name)
    notes += [f"{' and '.join(names)}: {line}." for line, names in told.items()]
    return ResolvedStudy(
        spec=spec,
        parts=tuple(made),
        judging=tuple(judging),
        clients=clients,
        judge=judge,
        notes=tuple(notes),
    )


class _Shelf:
    """Tasks by name, each read once; the user's own data has the name ""."""

    def __init__(self, own: Sequence[Task], spec: StudySpec) -> None:
        names = spec.experiment.tasks or ("",)
        self.own = dict(zip(names, own, strict=True)) if own else {}
        self._read: dict[str, Task] = dict(self.own)

    def of(self, experiment: Experiment) -> list[Task]:
        return [self._task(name) for name in experiment.tasks or ("",)]

    def _task(self, name: str) -> Task:
        if name not in self._read:
            self._read[name] = load_task(name)
        return self._read[name]


def _choices(spec: StudySpec, clients: Sequence[Client], shelf: _Shelf) -> Choices:
    e = spec.experiment
    given = "demonstrations" in spec.settings
    return Choices(
        preset=spec.preset,
        tasks=tuple((name, _kind(task)) for name, task in shelf.own.items()),
        limit=e.limit,
        demonstrations=e.demonstrations if given else None,
        scorer=e.scorer,
        judge=spec.judge is not None,
        generates=all(client.capabilities.generates for client in clients),
        scores=all(client.capabilities.scores for client in clients),
        lists=all(_lists(task) for task in shelf.own.values() if task.has_choices),
    )


def _lists(task: Task) -> bool:
    return any(template.lists_choices for template in task.templates.values())


def _kind(task: Task) -> TaskKind:
    if task.has_choices:
        return "choices"
    kinds: dict[str | None, TaskKind] = {"numeric": "numeric", "unit_tests": "code"}
    return kinds.get(task.scorer, "open")


def _experiment(spec: StudySpec, part: Part, without: Sequence[str] = ()) -> Experiment:
    """A part as an experiment: its own settings over the user's."""
    data = {key: value for key, value in spec.settings.items() if key not in OWN}
    for key in ("task", "tasks", "limit", "demonstrations", "scorer"):
        data.pop(key, None)
    data |= dict(part.experiment)
    if not data.get("demonstrations"):
        data.pop("perturb_demonstrations", None)
    if without:
        data["recipes"] = [r for r in data["recipes"] if r not in without]
    if "tasks" in part.experiment:
        data.pop("data", None)
        data.pop("template", None)
        data.pop("template_file", None)
    if part.judges is not None:
        data |= {"models": [spec.settings["judge"]], "tasks": ["basics"]}  # its items come later
        for key in ("data", "template", "template_file"):
            data.pop(key, None)
    made = read_experiment(data, folder=spec.folder)
    if "scorer" in part.experiment:
        made = replace(made, models=tuple(replace(m, scorer=None) for m in made.models))
    return made


def _resolved_part(
    spec: StudySpec,
    part: Part,
    path: Path,
    stack: contextlib.ExitStack,
    shelf: _Shelf,
    clients: Sequence[Client],
) -> tuple[Resolved, list[str]]:
    """A part; without the recipes that need a rewriter where there is none and nothing is bundled.

    With a rewriter named, what is missing stays an error of the run.
    """
    experiment = _experiment(spec, part)
    resolved = _with_bank(experiment, path, stack, shelf, clients)
    needs = resolved.rewrites
    if needs is None or not needs.missing or spec.experiment.rewriter or spec.experiment.rewrites:
        return resolved, [] if needs is None else needs.bundled()
    names = [recipe.label for recipe in recipes_of(experiment) if model_made(recipe)]
    fewer = _with_bank(_experiment(spec, part, names), path, stack, shelf, clients)
    note = (
        f"{', '.join(names)} are left out, because nothing is bundled for these texts and no "
        "rewriter is named ('falter rewrites prepare' with --rewriter makes them); averages are "
        "over the others"
    )
    return fewer, [note]


def _with_bank(
    experiment: Experiment,
    path: Path,
    stack: contextlib.ExitStack,
    shelf: _Shelf,
    clients: Sequence[Client],
) -> Resolved:
    bank = stack.enter_context(bank_in(experiment, path))
    return resolve(experiment, bank, loaded=shelf.of(experiment), clients=clients)


def planned_study(
    study: ResolvedStudy, store: Store | None
) -> Iterator[tuple[Part, list[tuple[PanelPlan, Cost]]]]:
    """What each part would take, given what is stored. Sends nothing, writes nothing."""
    for part, resolved in study.parts:
        yield part, planned_cost(resolved, store)


def carry_out_study(
    study: ResolvedStudy,
    store: Store,
    watch: Watch | None = None,
    on_part: OnPart | None = None,
) -> StoredStudy:
    """Run what is missing of every part, in order, and record the study.

    Clients are opened once for all parts. What can be known to fail is known before the first.
    """
    for _, resolved in study.parts:
        if resolved.rewrites is not None:
            resolved.rewrites.require()
        check_scorers(resolved)
    done, left_out = run_async(lambda: _carry_out(study, store, watch, on_part))
    stored = StoredStudy(
        protocol=study.spec.protocol.name,
        preset=study.spec.preset,
        version=__version__,
        settings=study.spec.settings,
        parts=tuple(
            StoredPart(
                name=part.name,
                title=part.title,
                experiment=dict(part.experiment),
                judges=part.judges,
                compares=part.compares,
                run=run.id,
            )
            for part, run in done
        ),
        notes=(*study.notes, *left_out),
    )
    return put_study(store, stored)


async def _carry_out(
    study: ResolvedStudy, store: Store, watch: Watch | None, on_part: OnPart | None
) -> tuple[list[tuple[Part, Run]], list[str]]:
    """The parts with their runs, and what had to be left out on the way."""
    done: list[tuple[Part, Run]] = []
    notes: list[str] = []
    whole = len(study.parts) + len(study.judging)
    async with contextlib.AsyncExitStack() as stack:
        ready: set[int] = set()

        async def run(part: Part, resolved: Resolved, clients: Sequence[Client]) -> None:
            if on_part is not None:
                on_part(len(done) + 1, whole, part.title)
            if not is_answered(resolved, store):
                for client in clients:
                    if id(client) not in ready:
                        await stack.enter_async_context(opened([client]))
                        ready.add(id(client))
                await carry_out(resolved, store, watch)
            done.append((part, resolved.run))

        for part, resolved in study.parts:
            await run(part, resolved, study.clients)
        for one in study.judging:
            assert study.judge is not None
            source = next((p, r) for p, r in done if p.name == one.part.judges)
            try:
                task = study.spec.protocol.judged(one.part, found_part(store, *source))
            except TaskError as error:
                notes.append(f"{one.part.title}: left out. {error.message}.")
                continue
            resolved = resolve(
                one.experiment, loaded=[task], clients=[study.judge], recipes=(BASELINE,)
            )
            await run(one.part, resolved, [study.judge])
    return done, notes
