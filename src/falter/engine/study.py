"""Studies: parts that are read, resolved and run one after another; a run is a single part."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from falter import __version__
from falter.engine.asking import ask_extractor
from falter.engine.budgets import apply_budget
from falter.engine.config import (
    Experiment,
    ModelSpec,
    listed,
    override,
    read_experiment,
    read_study_settings,
)
from falter.engine.connections import connect_all, connect_judge
from falter.engine.execution import Watch, check_scorers, opened, record_run, run_async, run_missing
from falter.engine.findings import part_result
from falter.engine.gate_settings import GateSpec
from falter.engine.recipes import recipes_of
from falter.engine.remarks import copied_answers, moved_system_turns, unmade_controls
from falter.engine.resolving import Resolved, distinct, resolve
from falter.engine.rewriting import bank_in
from falter.engine.scoring import RemedyUnfit, run_scorers
from falter.engine.task_loading import TaskCache
from falter.protocols import Part, Protocol, protocols
from falter.protocols.judging import read_rubrics
from falter.protocols.protocol import PartResult, TaskKind, UserSettings, chosen_parts, placed_parts
from falter.protocols.single_run import SINGLE_RUN
from falter.records.errors import InvalidValue, TaskError, UnknownName, UsageError, refusal
from falter.records.interfaces import AnswerKind, Client
from falter.records.planning import Shard
from falter.records.types import BASELINE, Run
from falter.rewrites.bank import model_made
from falter.scorers import scorers
from falter.store.store import Store
from falter.store.studies import StoredPart, StoredStudy, as_study, put_study
from falter.tasks.task import Task

PART_SETTINGS = ("limit", "demonstrations", "scorer")
"""Settings of a part: an unset one has its default, and not the user's value."""
OnPart = Callable[[int, int, str], None]
"""Function that is called before each part with its number, the number of parts and its title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    """A user's request to run, checked but not resolved: an experiment, or a whole protocol.

    `experiment` has the user's own settings; `settings` is the mapping that they were read from.
    """

    protocol: Protocol
    preset: str
    judges: tuple[ModelSpec, ...]
    experiment: Experiment
    settings: Mapping[str, Any]
    folder: Path
    gate: GateSpec | None = None
    parts: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    rubrics: Mapping[str, str] = field(default_factory=dict)

    def names_remedy(self, remedy: str) -> bool:
        """Return True if the user requested this remedy, by itself or for a vote."""
        return any(remedy in re.split("[:+]", text) for text in self.remedies)

    @property
    def title(self) -> str:
        """The title, such as `brittlebench, preset quick`; empty for a single run."""
        return f"{self.protocol.name}, preset {self.preset}" if self.protocol.name else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingPart:
    """A part that judges the responses of another part, so its items are known only later."""

    part: Part
    experiment: Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStudy:
    """A study with every name resolved to an object; `notes` name parts left out, with reasons."""

    spec: StudySpec
    parts: tuple[tuple[Part, Resolved], ...]
    judging: tuple[JudgingPart, ...]
    clients: tuple[Client, ...]
    judges: tuple[Client, ...]
    notes: tuple[str, ...] = ()


def study_of(experiment: Experiment) -> StudySpec:
    """Return an experiment as a study with one part."""
    return StudySpec(
        protocol=SINGLE_RUN, preset=SINGLE_RUN.presets[0], judges=(), experiment=experiment,
        settings={}, folder=Path(),
    )  # fmt: skip


def read_study(
    settings: Mapping[str, Any], *, folder: Path = Path(), needs_models: bool = True
) -> StudySpec:
    """Read the settings of an experiment, or of a protocol with its experiment's settings.

    Raises for settings that the protocol does not use.
    """
    if isinstance(recipes := settings.get("recipes"), (list, tuple)) and not recipes:
        raise InvalidValue(
            "recipes", recipes, "at least one", hint="leave it out for the usual rule-made ones"
        )
    study, rest = read_study_settings(settings, folder)
    if study.protocol is None:
        for key in ("preset", "judge", "parts", "remedies", "rubrics"):
            if settings.get(key) is not None:
                raise refusal(UsageError, "engine.key_without_protocol", key=key)
        experiment = read_experiment(rest, folder=folder, needs_models=needs_models)
        return replace(study_of(experiment), gate=study.gate)
    protocol = protocols.get(study.protocol)
    preset = study.preset or protocol.presets[0]
    if preset not in protocol.presets:
        raise UnknownName(f"preset of {protocol.name}", preset, protocol.presets)
    if rest.get("budget") is not None:
        raise refusal(UsageError, "engine.protocol_and_budget", name=protocol.name)
    if rest.get("reader") is not None:
        raise refusal(UsageError, "engine.protocol_and_reader", name=protocol.name)
    if rest.get("recipes") and not protocol.takes_recipes:
        raise refusal(UsageError, "engine.protocol_and_recipes", name=protocol.name)
    if rest.get("grid") and not protocol.takes_grid:
        raise refusal(UsageError, "engine.protocol_and_grid", name=protocol.name)
    if study.rubrics is not None and not protocol.takes_rubrics:
        raise refusal(UsageError, "engine.protocol_and_rubrics", name=protocol.name)
    if len(study.judges) > 1 and not protocol.takes_judges:
        raise UsageError(
            f"The protocol {protocol.name} takes one judge, and {len(study.judges)} are named",
            hint=f"keep one of {', '.join(judge.name for judge in study.judges)}",
        )
    return StudySpec(
        protocol=protocol,
        preset=preset,
        judges=study.judges,
        experiment=read_experiment(
            rest, folder=folder, needs_models=needs_models, needs_tasks=False
        ),
        settings=dict(settings),
        folder=folder,
        gate=study.gate,
        parts=study.parts,
        remedies=study.remedies,
        rubrics={} if study.rubrics is None else read_rubrics(Path(study.rubrics)),
    )


def rewriting_experiments(spec: StudySpec) -> list[Experiment]:
    """Return the experiments that have recipes which need rewrites, without models."""
    if not spec.protocol.name:
        return [spec.experiment]
    cache = TaskCache(spec.experiment, spec.protocol.name)
    settings = _user_settings(spec, (), cache)
    parts, _ = placed_parts(chosen_parts(spec.protocol, settings), settings)
    experiments = [_part_experiment(spec, part, cache) for part in parts if part.judges is None]
    return [replace(e, models=()) for e in experiments if any(map(model_made, recipes_of(e)))]


@contextlib.contextmanager
def study_in(spec: StudySpec, path: Path) -> Iterator[ResolvedStudy]:
    """Yield the resolved study; meanwhile the store is open for its rewrites."""
    with contextlib.ExitStack() as stack:
        yield _Resolver(spec, path, stack).study()


class _NoRecipeLeft(Exception):
    """Every recipe of a part needs rewrites that do not exist."""


class _Resolver:
    """Resolver of a study's parts, which share tasks, clients and open rewrite stores."""

    def __init__(self, spec: StudySpec, path: Path, stack: contextlib.ExitStack) -> None:
        self.spec, self.path, self.stack = spec, path, stack
        self.clients = connect_all(spec.experiment)
        self.judges = tuple(
            connect_judge(judge, batch=spec.experiment.batch) for judge in spec.judges
        )
        labels = [judge.model.label for judge in self.judges]
        distinct(labels, [judge.name for judge in spec.judges], what="judge")
        self.cache = TaskCache(spec.experiment, spec.protocol.name)

    def study(self) -> ResolvedStudy:
        """Return the resolved study; parts that cannot run are left out with a note."""
        spec = self.spec
        settings = _user_settings(spec, self.clients, self.cache, self.judges)
        parts, unavailable = placed_parts(chosen_parts(spec.protocol, settings), settings)
        if not parts:
            raise UsageError(
                f"No part of {spec.protocol.name} fits these tasks and models: "
                + "; ".join(dict.fromkeys(part.reason for part in unavailable)),
                hint="leave the task out to use the tasks of the preset",
            )
        notes = [f"{part.title}: left out, {part.reason}." for part in unavailable]
        notes += [f"{remark}." for task in self.cache.own.values() for remark in task.remarks]
        by_part: list[tuple[Part, Resolved]] = []
        judging: list[JudgingPart] = []
        notes += _unused_notes(spec, parts)
        parts_of_remark: dict[str, list[str]] = {}
        for part in parts:
            if part.judges is not None:
                experiment = _part_experiment(spec, part, self.cache)
                judging.append(JudgingPart(part=part, experiment=experiment))
                continue
            try:
                resolved, remarks = self._resolved_part(part)
            except RemedyUnfit as error:
                if spec.names_remedy(str(part.experiment.get("remedy"))):
                    raise
                notes.append(f"{part.title}: left out. {error.message}.")
                continue
            except _NoRecipeLeft:
                notes.append(
                    f"{part.title}: left out, no rewrites are bundled for these texts and no "
                    "rewriter is named ('falter rewrites prepare' with --rewriter makes them)."
                )
                continue
            by_part.append((part, resolved))
            found = (*moved_system_turns(resolved), *copied_answers(resolved))
            for remark in (*remarks, *unmade_controls(resolved), *found):
                parts_of_remark.setdefault(remark, []).append(part.name)
        notes += [
            f"{' and '.join(names)}: {remark}." if spec.protocol.name else f"{remark}."
            for remark, names in parts_of_remark.items()
        ]
        return ResolvedStudy(
            spec=spec, parts=tuple(by_part), judging=tuple(judging), clients=self.clients,
            judges=self.judges, notes=tuple(notes),
        )  # fmt: skip

    def _resolved_part(self, part: Part) -> tuple[Resolved, list[str]]:
        """Return a resolved part with remarks; recipes whose rewrites are missing are left out.

        All recipes stay if a rewriter or a file of rewrites is named, or if the part insists.
        Missing rewrites are then an error of the run.
        """
        experiment = _part_experiment(self.spec, part, self.cache)
        resolved = self._resolved_within_budget(experiment)
        needs, user = resolved.rewrites, self.spec.experiment
        if part.insists or needs is None or not needs.missing or user.rewriter or user.rewrites:
            return resolved, [] if needs is None or part.insists else needs.bundled()
        recipes = recipes_of(experiment)[1:]
        names = [recipe.label for recipe in recipes if model_made(recipe)]
        kept = [n for n, recipe in enumerate(recipes) if not model_made(recipe)]
        if not kept:
            raise _NoRecipeLeft
        fewer = _part_experiment(self.spec, part, self.cache, only=kept)
        return self._resolved_within_budget(fewer), [
            f"{', '.join(names)} are left out, because no rewrites are bundled for these texts and "
            "no rewriter is named ('falter rewrites prepare' with --rewriter makes them); averages "
            "are over the other recipes"
        ]

    def _resolved_within_budget(self, experiment: Experiment) -> Resolved:
        """Return an experiment resolved and reduced to its budget."""
        bank = self.stack.enter_context(bank_in(experiment, self.path))
        tasks = self.cache.of(experiment)
        return apply_budget(resolve(experiment, bank, loaded=tasks, clients=self.clients))


def _unused_notes(spec: StudySpec, parts: Sequence[Part]) -> list[str]:
    """Return a note for each of the user's settings that every part replaces."""
    default = Experiment()
    given = {name: getattr(spec.experiment, name) for name in PART_SETTINGS if name != "limit"}
    return [
        f"{spec.protocol.name} has its own '{name}', so yours is not used."
        for name, value in given.items()
        if spec.protocol.name
        and value != getattr(default, name)
        and all(part.experiment.get(name) != value for part in parts)
    ]


def _user_settings(
    spec: StudySpec, clients: Sequence[Client], cache: TaskCache, judges: Sequence[Client] = ()
) -> UserSettings:
    """Return the user's settings as a protocol needs them to choose its parts."""
    experiment = spec.experiment
    sets_demonstrations = "demonstrations" in spec.settings
    return UserSettings(
        preset=spec.preset,
        parts=spec.parts,
        tasks=tuple((name, _answer_kind(task)) for name, task in cache.own.items()),
        limit=experiment.limit,
        demonstrations=experiment.demonstrations if sets_demonstrations else None,
        repeats=experiment.repeats if "repeats" in spec.settings else None,
        scorer=experiment.scorer,
        recipes=listed(spec.settings.get("recipes")),
        grid=spec.settings.get("grid"),
        remedies=spec.remedies,
        judge=bool(spec.judges),
        judge_scores=all(judge.capabilities.scores for judge in judges),
        sampling=spec.settings.get("sampling") or {},
        rubrics=spec.rubrics,
        generates=all(client.capabilities.generates for client in clients),
        reasons=any(client.capabilities.reasons for client in clients),
        scores=all(client.capabilities.scores for client in clients),
        lists=all(
            any(template.lists_choices for template in task.templates.values())
            for task in cache.own.values()
            if task.has_choices
        ),
    )


def _answer_kind(task: Task) -> TaskKind:
    """Return the kind of a task's answers: choices, numbers, code or open."""
    if task.has_choices:
        return "choices"
    kinds: dict[AnswerKind, TaskKind] = {"number": "numeric", "code": "code"}
    return (
        "open" if task.scorer is None else kinds.get(scorers.get(task.scorer).answer_kind, "open")
    )


def _part_experiment(
    spec: StudySpec, part: Part, cache: TaskCache, only: Sequence[int] = ()
) -> Experiment:
    """Return a part as an experiment: its own settings, otherwise the user's.

    `only` are the indices of the recipes to keep; empty for all.
    """
    if not spec.protocol.name:
        return spec.experiment
    settings = {**dict.fromkeys(PART_SETTINGS), **part.experiment}
    if part.judges is not None:  # its items come later
        user = replace(spec.experiment, models=spec.judges, tasks=(), data=None, template=None)
        return override(user, settings, folder=spec.folder, needs_tasks=False)
    if not settings["demonstrations"]:
        settings["perturb_demonstrations"] = None
    if only:
        settings["recipes"] = [settings["recipes"][n] for n in only]
    if cache.data and settings["tasks"] == cache.data:
        del settings["tasks"]
    experiment = override(spec.experiment, settings, folder=spec.folder)
    if "scorer" in part.experiment:
        models = tuple(replace(model, scorer=None) for model in experiment.models)
        experiment = replace(experiment, models=models)
    return experiment


def carry_out_study(
    study: ResolvedStudy,
    store: Store,
    watch: Watch | None = None,
    on_part: OnPart | None = None,
    shard: Shard | None = None,
    command: str = "",
) -> StoredStudy:
    """Run the missing requests of every part in order, and record the runs as a study.

    `command` started the study. Clients are opened once, or not at all if every response is stored.
    All checks come first. With a `shard`, the whole plan is recorded and only its share is sent.
    The `reader` of a single run extracts answers at the end, unless there is a shard.
    """
    if shard is not None and study.judging:
        why = f"--shard {shard} cannot be judged: a judge needs the answers of all shards"
        raise UsageError(
            why,
            hint="run the shards without --judge, merge their stores with 'falter store merge', "
            "then run with --judge",
        )
    for _, resolved in study.parts:
        if resolved.rewrites is not None:
            resolved.rewrites.require()
        check_scorers(resolved)
    done, left_out = run_async(lambda: _run_parts(study, store, watch, on_part, shard, command))
    if not study.spec.protocol.name:
        run, reader = done[0][1], study.spec.experiment.reader
        if reader is not None and shard is None:
            ask_extractor(store, run, run_scorers(run), reader, watch)
        return as_study(store.find_run(run.id))
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


async def _run_parts(
    study: ResolvedStudy,
    store: Store,
    watch: Watch | None,
    on_part: OnPart | None,
    shard: Shard | None,
    command: str,
) -> tuple[list[tuple[Part, Run]], list[str]]:
    """Run the parts; return them with their runs, and notes on parts that were left out."""
    done: list[tuple[Part, Run]] = []
    notes: list[str] = []
    count = len(study.parts) + len(study.judging)
    async with contextlib.AsyncExitStack() as stack:
        ready: set[int] = set()

        async def run(part: Part, resolved: Resolved, clients: Sequence[Client]) -> None:
            if on_part is not None and part.title:
                on_part(len(done) + 1, count, part.title)
            if not record_run(resolved, store, command):
                # Check the judges before the models are paid: a judge may lack a key.
                for client in (*clients, *(study.judges if study.judging else ())):
                    if id(client) not in ready:
                        await stack.enter_async_context(opened([client]))
                        ready.add(id(client))
                await run_missing(resolved, store, watch, shard)
            done.append((part, resolved.run))

        for part, resolved in study.parts:
            await run(part, resolved, study.clients)
        results: dict[str, PartResult] = {}
        for judging in study.judging:
            part = judging.part
            for other, other_run in done:
                if other.name not in results:
                    results[other.name] = part_result(store, other, other_run)
            try:
                task = study.spec.protocol.judged(part, results)
            except TaskError as error:
                notes.append(f"{part.title}: left out. {error.message}.")
                continue
            resolved = resolve(
                judging.experiment, loaded=[task], clients=study.judges, recipes=(BASELINE,)
            )
            await run(part, resolved, study.judges)
    return done, notes
