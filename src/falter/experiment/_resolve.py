"""Names become objects, once. What can be known before the first call is checked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from falter import __version__
from falter.clients import ClientSettings, clients
from falter.core.errors import DuplicateName, InvalidValue, TaskError, UsageError
from falter.core.interfaces import Client, Scorer
from falter.core.records import (
    BASELINE,
    Demonstration,
    Item,
    Panel,
    Prompt,
    Recipe,
    Run,
    Sampling,
    Step,
    Variant,
)
from falter.experiment._config import Experiment, ModelSpec, StepSpec
from falter.perturbations import apply_recipe, parse_step, perturbations, resolve_step
from falter.plan import Asking, Condition, Target
from falter.scorers import scorers
from falter.tasks import DataSpec, Task, Template, items_from_rows, pick, read_rows, tasks
from falter.tasks._files import read_hub

__all__ = ["DEFAULT_RECIPES", "PanelPlan", "Resolved", "connect", "recipe_from", "resolve"]

DEFAULT_RECIPES: tuple[str, ...] = (
    "typos",
    "drop_stop_words",
    "punctuation_spaces",
    "space_sequences",
    "word_split",
    "word_merge",
    "persona",
    "emotion",
    "pad_quotes",
    "pad_spaces",
    "pad_newlines",
    "identity",
)
IDENTITY = Recipe(label="identity", group="configuration", repeat=1)
LABELS_ONLY = "letter"


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

    @property
    def clients(self) -> list[Client]:
        return list({id(p.client): p.client for p in self.panels}.values())


def resolve(experiment: Experiment) -> Resolved:
    """Turn names into objects, or raise with the name that does not fit. Sends nothing."""
    recipes = _recipes(experiment)
    loaded = _tasks(experiment)
    if not experiment.models:
        raise UsageError("The experiment names no model", hint="give at least one, e.g. smollm2")
    connected = [(spec, connect(spec)) for spec in experiment.models]
    _distinct([client.model.id for _, client in connected], [s.name for s in experiment.models])
    panels: list[PanelPlan] = []
    chosen: dict[str, Scorer] = {}
    for task in loaded:
        held_out, items = _hold_out(task, experiment)
        for spec, client in connected:
            scorer = _scorer(experiment, spec, task, client)
            chosen[scorer.name] = scorer
            panels.append(_panel(experiment, task, items, held_out, recipes, spec, client, scorer))
    run = Run(
        experiment=_identity(experiment),
        version=__version__,
        seed=experiment.seed,
        recipes=recipes,
        panels=tuple(p.panel for p in panels),
        draws=experiment.draws,
        repeats=experiment.repeats,
    )
    return Resolved(experiment=experiment, run=run, panels=tuple(panels), scorers=chosen)


def _identity(experiment: Experiment) -> dict[str, Any]:
    """The settings that are not already in a run's other fields but change its numbers."""
    return {
        "limit": experiment.limit,
        "demonstrations": experiment.demonstrations,
        "level": experiment.level,
        "unparsed": experiment.unparsed,
        "protect": list(experiment.protect),
        "template": experiment.template,
        "sampling": None if experiment.sampling is None else experiment.sampling.identity(),
    }


# Recipes


def _recipes(experiment: Experiment) -> tuple[Recipe, ...]:
    specs = experiment.recipes or tuple(((name, {}),) for name in DEFAULT_RECIPES)
    recipes = [BASELINE]
    for spec in specs:
        recipes.append(recipe_from(spec, experiment.protect))
    _distinct([r.id for r in recipes], [r.label for r in recipes], what="recipe")
    return tuple(recipes)


def recipe_from(spec: Sequence[StepSpec], protect: Sequence[str] = ()) -> Recipe:
    """A recipe from its steps. Its label shows the parameters that are not the default."""
    names = [name for name, _ in spec]
    if names == ["identity"] and not spec[0][1]:
        return IDENTITY
    for name in names:
        if name in ("baseline", "identity"):
            raise InvalidValue(
                "recipes", "+".join(names), "perturbations only in a chain",
                hint="the baseline is always run; 'identity' stands alone, without parameters",
            )  # fmt: skip
    steps = tuple(_step(name, params) for name, params in spec)
    label = "+".join(_label(step) for step in steps)
    groups = {perturbations.get(step.name).group for step in steps}
    return Recipe(
        label=label,
        group=groups.pop() if len(groups) == 1 else "chains",
        steps=tuple(_protected(step, protect) for step in steps),
    )


def _step(name: str, params: Mapping[str, Any]) -> Step:
    if not params and ":" in name:
        return parse_step(name)
    return resolve_step(name, params)


def _label(step: Step) -> str:
    defaults = resolve_step(step.name, {}).params
    shown = [f"{k}={v}" for k, v in step.params.items() if v != defaults.get(k) and v is not None]
    if step.params.get("count") is not None:
        shown = [text for text in shown if not text.startswith("rate=")]
    return f"{step.name}({','.join(shown)})" if shown else step.name


def _protected(step: Step, protect: Sequence[str]) -> Step:
    if not protect or "protect" not in step.params:
        return step
    own = tuple(step.params["protect"] or ())
    return resolve_step(step.name, {**step.params, "protect": (*own, *protect)})


def _distinct(ids: Sequence[str], names: Sequence[str], what: str = "model") -> None:
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


def _tasks(experiment: Experiment) -> list[Task]:
    if experiment.data is not None:
        return [_own_task(experiment.data, experiment.template)]
    if len(set(experiment.tasks)) < len(experiment.tasks):
        raise DuplicateName("A task is named twice", hint="each task counts once")
    return [_named_task(name) for name in experiment.tasks]


def _named_task(spec: str) -> Task:
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


def _hold_out(task: Task, experiment: Experiment) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Demonstrations leave the evaluated items: the same ones for every item and model."""
    count = experiment.demonstrations
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


def _template(task: Task, scorer: Scorer) -> Template:
    style = scorer.style
    template = task.templates.get(style) or next(iter(task.templates.values()))
    if style == LABELS_ONLY and not template.lists_choices:
        raise UsageError(
            f"The scorer '{scorer.name}' needs a template that lists the options",
            hint="put {choices} into the template",
        )
    return template


def _panel(
    experiment: Experiment,
    task: Task,
    items: tuple[Item, ...],
    held_out: tuple[Item, ...],
    recipes: tuple[Recipe, ...],
    spec: ModelSpec,
    client: Client,
    scorer: Scorer,
) -> PanelPlan:
    template = _template(task, scorer)
    shown = tuple(_demonstration(template, item) for item in held_out)
    base = _base_prompt(template, shown)
    conditions = tuple(
        Condition(
            recipe=recipe,
            make=_maker(base, recipe, experiment.seed),
            random=bool(recipe.steps),
        )
        for recipe in recipes
    )
    sampling = experiment.sampling or Sampling()
    if experiment.sampling is None or not sampling.max_tokens:
        sampling = replace(sampling, max_tokens=scorer.max_tokens)
    asking: Asking = "score" if scorer.needs_scores else "plain"
    if asking == "plain" and client.capabilities.chats:
        asking = "chat"
    panel = Panel(task=task.name, revision=task.revision, model=client.model, scorer=scorer.name)
    return PanelPlan(
        panel=panel,
        task=task,
        items=items,
        conditions=conditions,
        target=Target(model=client.model, asking=asking, sampling=sampling, price=spec.price),
        client=client,
        concurrency=spec.concurrency or 64,
    )


def _demonstration(template: Template, item: Item) -> Demonstration:
    prompt = template.build(item)
    target = item.target
    if isinstance(target, int) and item.choices:
        answer = prompt.labels[target] if template.answer_as == "label" else item.choices[target]
    else:
        answer = str(target)
    return Demonstration(sections=prompt.sections, answer=answer)


def _base_prompt(template: Template, shown: tuple[Demonstration, ...]) -> Callable[[Item], Prompt]:
    """Builds an item's clean prompt; the last one is kept, since all its recipes follow at once."""
    last: list[tuple[Item, Prompt]] = []

    def build(item: Item) -> Prompt:
        if not last or last[0][0] is not item:
            prompt = template.build(item)
            last[:] = [(item, replace(prompt, demonstrations=shown) if shown else prompt)]
        return last[0][1]

    return build


def _maker(
    base: Callable[[Item], Prompt], recipe: Recipe, seed: int
) -> Callable[[Item, int], Variant]:
    def make(item: Item, draw: int) -> Variant:
        prompt, status = apply_recipe(item.key, base(item), recipe, seed, draw)
        return Variant(item=item, recipe=recipe, draw=draw, prompt=prompt, status=status)

    return make
