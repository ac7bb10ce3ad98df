"""Names become objects, once. What can be known before the first call is checked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from falter import __version__
from falter.core.errors import DuplicateName, InvalidValue, TaskError, UsageError
from falter.core.interfaces import Capabilities, Client, ConstrainedScorer, RewriteBank, Scorer
from falter.core.records import (
    Asking,
    Item,
    Panel,
    Recipe,
    Request,
    Run,
    Sampling,
)
from falter.experiment._conditions import conditions, template_for
from falter.experiment._config import Experiment, ModelSpec, Prompts, identity_settings
from falter.experiment._connect import connect_all, require_batches
from falter.experiment._labels import (
    reads_labels,
    require_label_scorer,
    targets_of,
    task_labels,
    with_labels,
)
from falter.experiment._needs import Needs, Stretch, ledger_for, needs_from
from falter.experiment._prompts import prompt_task, without_prompt
from falter.experiment._recipes import recipes_of
from falter.experiment._remedies import (
    examples_of,
    remedy_of,
    require_fit_remedy,
    require_readable,
    with_reasoning,
)
from falter.planning import Asked, Condition, Target, count_cells, plan
from falter.scorers import named_scorers, scorers, usual_reason, usual_scorer
from falter.tasks import (
    DataSpec,
    Task,
    Template,
    in_memory,
    items_from_rows,
    pick,
    read_hub,
    rows_at,
    source_name,
    tasks,
)

__all__ = [
    "PanelPlan",
    "Resolved",
    "distinct",
    "hold_out",
    "load_task",
    "load_tasks",
    "resolve",
    "task_scorers",
]


REASONING_LIMIT = 4096
"""The longest answer, in tokens, of a model that is asked to think, unless the user sets one."""
ROWS = "rows"
"""The task's name where its items were in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPlan:
    """A panel with what is needed to run it.

    Where a budget leaves cells out, `asked` are those it keeps, of `available` items.
    """

    panel: Panel
    task: Task
    items: tuple[Item, ...]
    conditions: tuple[Condition, ...]
    target: Target
    client: Client
    concurrency: int
    because: str = ""
    thinks: bool = False
    asked: Asked | None = None
    available: int = 0

    def requests(self, draws: int, repeats: int = 1, items: int | None = None) -> Iterator[Request]:
        """Everything that is asked, in order; of the first `items`, where given."""
        return plan(
            self.items[:items],
            self.conditions,
            self.target,
            draws=draws,
            repeats=repeats,
            asked=self.asked,
        )

    def cells(self, draws: int, repeats: int) -> int:
        """How many requests these are."""
        return count_cells(len(self.items), self.conditions, draws, repeats, self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An experiment with every name turned into an object."""

    experiment: Experiment
    run: Run
    panels: tuple[PanelPlan, ...]
    scorers: Mapping[str, Scorer]
    rewrites: Needs | None = None

    @property
    def clients(self) -> list[Client]:
        return list({id(p.client): p.client for p in self.panels}.values())


def resolve(
    experiment: Experiment,
    bank: RewriteBank | None = None,
    *,
    loaded: Sequence[Task] | None = None,
    clients: Sequence[Client] | None = None,
    recipes: tuple[Recipe, ...] | None = None,
) -> Resolved:
    """Turn names into objects, or raise with the name that does not fit. Sends nothing.

    `bank` holds the rewrites of perturbations that a model makes. The `rewrites` of the result say
    what it lacks; such a result can be counted but not run. Tasks, clients (one for each model)
    and recipes can be passed in where they exist already.
    """
    recipes = recipes_of(experiment) if recipes is None else recipes
    distinct([r.id for r in recipes], [r.label for r in recipes], what="recipe")
    if not experiment.models:
        raise UsageError("The experiment names no model", hint="give at least one, e.g. smollm2")
    require_fit_remedy(experiment, recipes)
    loaded = load_tasks(experiment) if loaded is None else loaded
    labels = {task.name: task_labels(experiment, task) for task in loaded}
    ready = connect_all(experiment) if clients is None else clients
    connected = list(zip(experiment.models, ready, strict=True))
    distinct([client.model.id for _, client in connected], [s.name for s in experiment.models])
    ledger = ledger_for(recipes, bank)
    panels: list[PanelPlan] = []
    by_name: dict[str, Scorer] = {}
    for n, task in enumerate(loaded):
        held_out, items = hold_out(task, experiment, recipes)
        for spec, client in connected:
            used = task_scorers(experiment, loaded, n, spec, client.capabilities)
            of_run = {"remedy": experiment.remedy}
            used = tuple(with_reasoning(with_labels(s, labels), of_run) for s in used)
            for scorer in used:
                _require_fit(scorer, spec, task, client.capabilities)
                if experiment.batch:
                    require_batches(spec, client, scorer)
                _require_targets(scorer, task, items)
            by_name |= {scorer.name: scorer for scorer in used}
            panels += [
                replace(
                    _panel(
                        experiment, task, items, held_out, recipes, spec, client, s, used, ledger
                    ),
                    because=_reason(experiment, loaded, n, spec, s),
                )
                for s in used
            ]
    require_label_scorer(experiment, by_name.values())
    needs = None if ledger is None else needs_from(ledger, _stretches(panels, experiment.draws))
    run = Run(
        experiment=identity_settings(experiment)
        | ({"rewrites": needs.fingerprint} if needs else {})
        | _recorded_labels(panels, by_name, labels),
        version=__version__,
        seed=experiment.seed,
        recipes=recipes,
        panels=tuple(p.panel for p in panels),
        draws=experiment.draws,
        repeats=experiment.repeats,
        origin={} if experiment.data is None else {"data": source_name(experiment.data.path)},
        ways=tuple(p.target.way for p in panels),
    )
    return Resolved(
        experiment=experiment, run=run, panels=tuple(panels), scorers=by_name, rewrites=needs
    )


def _recorded_labels(
    panels: Sequence[PanelPlan], chosen: Mapping[str, Scorer], labels: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The labels of the tasks whose scorer reads one of them, which its answers are read by."""
    tasks = {p.panel.task for p in panels if reads_labels(chosen[p.panel.scorer])}
    return {"labels": {task: list(labels[task]) for task in sorted(tasks)}} if tasks else {}


def _stretches(panels: Sequence[PanelPlan], draws: int) -> Iterator[Stretch]:
    """Items and conditions, once for all models that are asked in the same way."""
    yielded = set()
    for p in panels:
        place = p.panel.task, p.panel.scorer
        if place not in yielded:
            yielded.add(place)
            yield p.items, p.conditions, draws


def distinct(ids: Sequence[str], names: Sequence[str], what: str = "model") -> None:
    """Raise if the same thing is named twice, by one name or by two."""
    name_of: dict[str, str] = {}
    for identity, name in zip(ids, names, strict=True):
        if identity in name_of:
            other = name_of[identity]
            raise DuplicateName(
                f"The {what} '{name}' is named twice"
                if other == name
                else f"The {what}s '{other}' and '{name}' are the same",
                hint=f"a {what} counts once; drop one of the two",
            )
        name_of[identity] = name


# Tasks


def load_tasks(experiment: Experiment) -> list[Task]:
    """The experiment's tasks, or those made of the user's own data: one for each prompt."""
    if experiment.data is not None:
        return _own_tasks(experiment.data, experiment.template)
    if len(set(experiment.tasks)) < len(experiment.tasks):
        raise DuplicateName("A task is named twice", hint="each task counts once")
    return [load_task(name) for name in experiment.tasks]


def load_task(spec: str) -> Task:
    """A task by its name, with what follows the colon as its argument."""
    name, _, argument = spec.partition(":")
    task = tasks.get(name)(argument or None)
    if not task.items:
        raise TaskError(f"The task '{spec}' has no items")
    return task


def _own_tasks(spec: DataSpec, source: Prompts | None) -> list[Task]:
    """The user's own rows with each template; of several, all items have the fields of all."""
    if source is None:
        raise UsageError(
            "Your own data needs a template",
            hint="give --template FILE, or 'template:' in the file",
        )
    if not isinstance(source, tuple):
        return [_own_task(spec, Template.parse(source))]
    named = [(name, Template.parse(text)) for name, text in source]
    fields = tuple(sorted({field for _, template in named for field in template.fields}))
    tasks = [(name, _own_task(spec, template, fields)) for name, template in named]
    return [_under_prompt(task, name) for name, task in tasks]


def _under_prompt(task: Task, prompt: str) -> Task:
    """The same items as a task that is called by its prompt too."""
    name = prompt_task(task.name, prompt)
    return replace(task, name=name, items=tuple(replace(item, task=name) for item in task.items))


def _own_task(spec: DataSpec, template: Template, fields: tuple[str, ...] = ()) -> Task:
    """A task from the user's own rows and a template, its items with `fields` besides."""
    if template.lists_choices:
        template = replace(template, answer_as="label")
    hub = spec.path.removeprefix("hub:") if spec.path.startswith("hub:") else None
    rows = rows_at(spec.path) if hub is None else read_hub(hub, spec.split)
    name = source_name(hub or spec.path).partition(".")[0]
    if in_memory(spec.path):
        name, spec = ROWS, replace(spec, path="the rows in memory")
    items = items_from_rows(rows, spec, template, name, fields)
    dropped = len(rows) - len(items)
    remark = f"{dropped:,} of {len(rows):,} rows of {name} were there before and are dropped"
    style = "open" if not spec.choices else "letter" if template.lists_choices else "cloze"
    remarks = (remark,) if dropped else ()
    return Task(name=name, items=items, templates={style: template}, remarks=remarks)


def hold_out(
    task: Task, experiment: Experiment, recipes: Sequence[Recipe]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Demonstrations, the same for every item, recipe and model; and the items to be asked."""
    count = max(_shown_from(recipe, examples_of(experiment)) for recipe in recipes)
    if count >= len(task.items):
        raise InvalidValue(
            "demonstrations", count, f"fewer than the {len(task.items)} items of '{task.name}'"
        )
    held_out = pick(task.items, count, experiment.seed + 1) if count else ()
    keys = {item.key for item in held_out}
    others = tuple(item for item in task.items if item.key not in keys)
    return held_out, pick(others, experiment.limit, experiment.seed)


def _shown_from(recipe: Recipe, usual: int) -> int:
    """How many items a recipe takes its examples from: its own set, and those before it."""
    count = usual if recipe.demonstrations is None else recipe.demonstrations
    if recipe.examples and not count:
        raise UsageError(
            f"'{recipe.label}' shows other examples, but none are shown",
            hint="show some, for example --demonstrations 5; or drop it",
        )
    return max(usual, count * (1 + recipe.examples))


# Models and scorers


def task_scorers(
    experiment: Experiment,
    loaded: Sequence[Task],
    n: int,
    spec: ModelSpec | None = None,
    able: Capabilities | None = None,
) -> tuple[Scorer, ...]:
    """The scorers of the n-th task, for one model or for any.

    Those named for the model, else for the task in the experiment, else the task's own, else the
    usual one. A task has its own name, and the name by which the experiment calls it.
    """
    chosen = _named(experiment, loaded, n, spec) or (_usual(experiment, loaded[n], able),)
    return tuple(scorers.get(name) for name in chosen)


def _named(
    experiment: Experiment, loaded: Sequence[Task], n: int, spec: ModelSpec | None
) -> tuple[str, ...]:
    """The scorers that somebody named for the n-th task."""
    task = loaded[n]
    names = [{each.name, without_prompt(experiment.template, each.name)} for each in loaded]
    if len(experiment.tasks) == len(loaded):
        names = [{each.name, name} for each, name in zip(loaded, experiment.tasks, strict=True)]
    return (
        named_scorers(None if spec is None else spec.scorer, names[n])
        or named_scorers(experiment.scorer, names[n], [name for both in names for name in both])
        or named_scorers(task.scorer, names[n])
    )


def _usual(experiment: Experiment, task: Task, able: Capabilities | None) -> str:
    """The scorer of a task for which nobody named one."""
    return usual_scorer(
        choices=task.has_choices,
        likelihoods=(able is None or able.scores) and "cloze" in task.templates,
        targets=targets_of(task),
        labels=bool(experiment.labels),
    )


def _reason(
    experiment: Experiment, loaded: Sequence[Task], n: int, spec: ModelSpec, scorer: Scorer
) -> str:
    """Why a task is scored by a scorer: it was named, or it is the usual one."""
    task = loaded[n]
    if not _named(experiment, loaded, n, spec):
        return usual_reason(scorer.name, experiment.labels or targets_of(task))
    return "the task's own" if task.scorer == scorer.name else "as you asked"


def _require_fit(scorer: Scorer, spec: ModelSpec, task: Task, able: Capabilities) -> None:
    """Raise unless the model and the task have what the scorer needs."""
    written = usual_scorer(choices=task.has_choices, likelihoods=False)
    if scorer.needs_scores and not able.scores:
        raise UsageError(
            f"The scorer '{scorer.name}' needs log-probabilities, which '{spec.name}' does not "
            "return",
            hint=f"use scorer {written}, or a completions server: --api completions",
        )
    if not scorer.needs_scores and not able.generates:
        raise UsageError(
            f"The scorer '{scorer.name}' needs generated text, which '{spec.name}' does not return",
            hint=f"use scorer {usual_scorer(choices=True, likelihoods=True)}"
            if task.has_choices
            else "name a model that generates text",
        )
    if _constrains(scorer) and not able.constrains:
        raise UsageError(
            f"The scorer '{scorer.name}' needs a client that holds a model to the options, which "
            f"'{spec.name}' does not",
            hint=f"use scorer {written}, a chat server with 'response_format' or another form of "
            "--option hold_by=…, gemini:, responses:, vllm:, or a GGUF file",
        )
    if scorer.needs_choices and not task.has_choices:
        raise UsageError(
            f"The scorer '{scorer.name}' needs choices, which the task '{task.name}' does not have",
            hint=f"use scorer {written}, or another of 'falter list scorers' for free answers",
        )


def _constrains(scorer: Scorer) -> bool:
    return isinstance(scorer, ConstrainedScorer) and scorer.constrains


def _require_targets(scorer: Scorer, task: Task, items: Sequence[Item]) -> None:
    """Some reply could be right: not every target is one that the scorer cannot compare with."""
    targets = [
        item.choices[item.target] if isinstance(item.target, int) and item.choices else item.target
        for item in items
        if item.target is not None
    ]
    faults = [(str(target), scorer.fault(str(target))) for target in targets]
    if faults and all(fault for _, fault in faults):
        target, fault = faults[0]
        raise UsageError(
            f"The scorer '{scorer.name}' can judge no item of '{task.name}': {fault}, as in "
            f"'{target[:60]}'",
            hint="name another of 'falter list scorers', or another column with --target",
        )


def _require_scorable(recipes: Sequence[Recipe], scorer: Scorer) -> None:
    """Raise if a recipe is about the written answer and the scorer has none written."""
    for recipe in recipes:
        if recipe.asks_for_a_reply:
            written = usual_scorer(choices=True, likelihoods=False)
            raise UsageError(
                f"The recipe '{recipe.label}' is about the answer a model writes, but the scorer "
                f"'{scorer.name}' compares the likelihood of options",
                hint=f"use a scorer that reads answers, for example --scorer {written}",
            )


def _max_tokens(task: Task, scorer: Scorer, others: Sequence[Scorer]) -> int:
    """How long a reply may be: as long as any scorer needs that asks in the same way.

    So that scorers of the same task read the same replies, and none is paid for twice.
    """
    template = template_for(task, scorer)
    alike = (s for s in others if not s.needs_scores and template_for(task, s) == template)
    return task.max_tokens or max(s.max_tokens for s in (scorer, *alike))


def _panel(
    experiment: Experiment,
    task: Task,
    items: tuple[Item, ...],
    held_out: tuple[Item, ...],
    recipes: tuple[Recipe, ...],
    spec: ModelSpec,
    client: Client,
    scorer: Scorer,
    others: Sequence[Scorer],
    bank: RewriteBank | None,
) -> PanelPlan:
    remedy = remedy_of(experiment)
    if scorer.needs_scores:
        _require_scorable(recipes, scorer)
    require_readable(remedy, scorer, _constrains(scorer))
    of_recipes = conditions(
        task,
        scorer,
        recipes,
        held_out,
        demonstrations=experiment.demonstrations,
        seed=experiment.seed,
        bank=bank,
        perturb_demonstrations=experiment.perturb_demonstrations,
        remedy=remedy,
    )
    sampling = experiment.sampling or Sampling()
    own_limit = bool(experiment.sampling is not None and sampling.max_tokens)
    thinks = client.capabilities.reasons and not own_limit
    if not own_limit:
        least = REASONING_LIMIT if thinks else 0 if remedy is None else remedy.reply_tokens
        sampling = replace(sampling, max_tokens=max(least, _max_tokens(task, scorer, others)))
    if task.stop and not sampling.stop:
        sampling = replace(sampling, stop=task.stop)
    asking: Asking = "score" if scorer.needs_scores else "plain"
    if asking == "plain" and client.capabilities.chats:
        asking = "chat"
    panel = Panel(task=task.name, revision=task.revision, model=client.model, scorer=scorer.name)
    return PanelPlan(
        panel=panel,
        task=task,
        items=items,
        conditions=of_recipes,
        target=Target(
            model=client.model,
            asking=asking,
            sampling=sampling,
            price=spec.price,
            constrained=_constrains(scorer),
        ),
        thinks=thinks,
        client=client,
        concurrency=spec.concurrency or 64,
    )
