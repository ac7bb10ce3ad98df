"""Names become objects, once. What can be known before the first call is checked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from falter import __version__
from falter.clients import ClientSettings, clients
from falter.core.errors import DuplicateName, InvalidValue, TaskError, UsageError
from falter.core.interfaces import Client, RewriteBank, Scorer
from falter.core.records import (
    Item,
    Panel,
    Recipe,
    Run,
    Sampling,
)
from falter.experiment._conditions import conditions
from falter.experiment._config import Experiment, ModelSpec
from falter.experiment._needs import Needs, Stretch, ledger_for, needs_from
from falter.experiment._recipes import recipes_of
from falter.plan import Asking, Condition, Target
from falter.scorers import scorers
from falter.tasks import DataSpec, Task, Template, items_from_rows, pick, read_rows, tasks
from falter.tasks._files import read_hub

__all__ = [
    "PanelPlan",
    "Resolved",
    "connect",
    "distinct",
    "hold_out",
    "load_task",
    "load_tasks",
    "resolve",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPlan:
    """A panel with what is needed to run it."""

    panel: Panel
    task: Task
    items: tuple[Item, ...]
    conditions: tuple[Condition, ...]
    target: Target
    client: Client
    concurrency: int


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

    `bank` holds the rewrites of perturbations that a model makes. What it lacks is in `rewrites`
    of the result, and such a result can be counted but not run. Tasks, clients and recipes that
    are there already are taken as they are, one client a model.
    """
    recipes = recipes_of(experiment) if recipes is None else recipes
    distinct([r.id for r in recipes], [r.label for r in recipes], what="recipe")
    if not experiment.models:
        raise UsageError("The experiment names no model", hint="give at least one, e.g. smollm2")
    loaded = load_tasks(experiment) if loaded is None else loaded
    ready = [connect(spec) for spec in experiment.models] if clients is None else clients
    connected = list(zip(experiment.models, ready, strict=True))
    distinct([client.model.id for _, client in connected], [s.name for s in experiment.models])
    ledger = ledger_for(recipes, bank)
    panels: list[PanelPlan] = []
    chosen: dict[str, Scorer] = {}
    for task in loaded:
        held_out, items = hold_out(task, experiment, recipes)
        for spec, client in connected:
            scorer = _scorer(experiment, spec, task, client)
            chosen[scorer.name] = scorer
            panels.append(
                _panel(experiment, task, items, held_out, recipes, spec, client, scorer, ledger)
            )
    needs = None if ledger is None else needs_from(ledger, _stretches(panels, experiment.draws))
    run = Run(
        experiment=_identity(experiment) | ({"rewrites": needs.fingerprint} if needs else {}),
        version=__version__,
        seed=experiment.seed,
        recipes=recipes,
        panels=tuple(p.panel for p in panels),
        draws=experiment.draws,
        repeats=experiment.repeats,
    )
    return Resolved(
        experiment=experiment, run=run, panels=tuple(panels), scorers=chosen, rewrites=needs
    )


def _stretches(panels: Sequence[PanelPlan], draws: int) -> Iterator[Stretch]:
    """What makes the variants, once for all models that are asked in the same way."""
    seen = set()
    for p in panels:
        place = p.panel.task, p.panel.scorer
        if place not in seen:
            seen.add(place)
            yield p.items, p.conditions, draws


def _identity(experiment: Experiment) -> dict[str, Any]:
    """The settings that are not already in a run's other fields but change its numbers.

    A setting that came later is there only when it is on, so that older runs keep their ids.
    """
    later = {"perturb_demonstrations": True} if experiment.perturb_demonstrations else {}
    return later | {
        "limit": experiment.limit,
        "demonstrations": experiment.demonstrations,
        "level": experiment.level,
        "unparsed": experiment.unparsed,
        "language": experiment.language,
        "protect": list(experiment.protect),
        "template": experiment.template,
        "sampling": None if experiment.sampling is None else experiment.sampling.identity(),
    }


def distinct(ids: Sequence[str], names: Sequence[str], what: str = "model") -> None:
    """Raise when two of the same are there under one or two names."""
    first: dict[str, str] = {}
    for identity, name in zip(ids, names, strict=True):
        if identity in first:
            other = first[identity]
            raise DuplicateName(
                f"The {what} '{name}' is there twice"
                if other == name
                else f"The {what}s '{other}' and '{name}' are the same",
                hint=f"a {what} counts once; drop one of the two",
            )
        first[identity] = name


# Tasks


def load_tasks(experiment: Experiment) -> list[Task]:
    """The experiment's tasks, or the one that its own data makes."""
    if experiment.data is not None:
        return [_own_task(experiment.data, experiment.template)]
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


def _own_task(spec: DataSpec, source: str | Mapping[str, str] | None) -> Task:
    """A task from the user's own rows and template."""
    if source is None:
        raise UsageError(
            "Your own data needs a template",
            hint="give --template FILE, or 'template:' in the file",
        )
    template = Template.parse(source)
    if template.lists_choices:
        template = replace(template, answer_as="label")
    hub = spec.path.removeprefix("hub:") if spec.path.startswith("hub:") else None
    rows = read_rows(spec.path) if hub is None else read_hub(hub, spec.split)
    name = (hub or spec.path).replace("\\", "/").rpartition("/")[2].partition(".")[0]
    items = items_from_rows(rows, spec, template, name)
    style = "open" if not spec.choices else "letter" if template.lists_choices else "cloze"
    return Task(name=name, items=items, templates={style: template})


def hold_out(
    task: Task, experiment: Experiment, recipes: Sequence[Recipe]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Demonstrations leave the evaluated items: the same ones for every item, recipe and model."""
    count = max(experiment.demonstrations, *(recipe.demonstrations or 0 for recipe in recipes))
    if count >= len(task.items):
        raise InvalidValue(
            "demonstrations", count, f"fewer than the {len(task.items)} items of '{task.name}'"
        )
    shown = pick(task.items, count, experiment.seed + 1) if count else ()
    keys = {item.key for item in shown}
    rest = tuple(item for item in task.items if item.key not in keys)
    return shown, pick(rest, experiment.limit, experiment.seed)


# Models and scorers


def connect(spec: ModelSpec) -> Client:
    name, _, rest = spec.name.partition(":")
    connector = clients.get(name)
    given = {
        "base_url": spec.base_url,
        "api": spec.api,
        "api_key_env": spec.api_key_env,
        "concurrency": spec.concurrency,
        "requests_per_minute": spec.requests_per_minute,
        "tokens_per_minute": spec.tokens_per_minute,
        "timeout": spec.timeout,
        "max_attempts": spec.max_attempts,
        "options": dict(spec.options) or None,
    }
    chosen: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    return connector(ClientSettings(name=rest, **chosen))


def _scorer(experiment: Experiment, spec: ModelSpec, task: Task, client: Client) -> Scorer:
    """The scorer named for the model or the experiment, else the one that fits."""
    able = client.capabilities
    named = spec.scorer or experiment.scorer or task.scorer
    if named is None:
        if not task.has_choices:
            named = "exact"
        elif able.scores and "cloze" in task.templates:
            named = "choice_likelihood"
        else:
            named = "choice_letter"
    scorer = scorers.get(named)
    if scorer.needs_scores and not able.scores:
        raise UsageError(
            f"The scorer '{named}' needs log-probabilities, which '{spec.name}' does not give",
            hint="use scorer choice_letter, or a completions server: --api completions",
        )
    if not scorer.needs_scores and not able.generates:
        raise UsageError(
            f"The scorer '{named}' needs generated text, which '{spec.name}' does not give",
            hint="use scorer choice_likelihood",
        )
    if scorer.needs_choices and not task.has_choices:
        raise UsageError(
            f"The scorer '{named}' needs choices, which the task '{task.name}' does not have",
            hint="use scorer exact, includes or numeric",
        )
    return scorer


def _require_scorable(recipes: Sequence[Recipe], scorer: Scorer) -> None:
    """A recipe about the written answer has nothing to change where none is written."""
    for recipe in recipes:
        if recipe.asks_for_a_reply:
            raise UsageError(
                f"The recipe '{recipe.label}' is about the answer a model writes, and the scorer "
                f"'{scorer.name}' compares the likelihood of options",
                hint="use a scorer that reads answers, for example --scorer choice_letter",
            )


def _panel(
    experiment: Experiment,
    task: Task,
    items: tuple[Item, ...],
    held_out: tuple[Item, ...],
    recipes: tuple[Recipe, ...],
    spec: ModelSpec,
    client: Client,
    scorer: Scorer,
    bank: RewriteBank | None,
) -> PanelPlan:
    if scorer.needs_scores:
        _require_scorable(recipes, scorer)
    made = conditions(
        task,
        scorer,
        recipes,
        held_out,
        shown=experiment.demonstrations,
        seed=experiment.seed,
        bank=bank,
        perturb_shown=experiment.perturb_demonstrations,
    )
    sampling = experiment.sampling or Sampling()
    if experiment.sampling is None or not sampling.max_tokens:
        sampling = replace(sampling, max_tokens=task.max_tokens or scorer.max_tokens)
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
        conditions=made,
        target=Target(model=client.model, asking=asking, sampling=sampling, price=spec.price),
        client=client,
        concurrency=spec.concurrency or 64,
    )
