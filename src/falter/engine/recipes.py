"""Recipes from the steps that a user wrote, with the experiment's language and protected text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from falter.engine.config import Experiment
from falter.engine.setting_types import OTHER, GridLevels, Place, RecipeSteps, StepSpec
from falter.perturbations import parse_step, perturbations
from falter.perturbations.configuration import OTHER_TEMPLATE, SettingPerturbation
from falter.perturbations.recipes import DEFAULT_RECIPES, NOISE_FLOOR, RECIPE_SETS, resolve_step
from falter.records.errors import InvalidValue, UsageError, refusal
from falter.records.interfaces import Perturbation
from falter.records.types import BASELINE, Recipe, Step
from falter.remedies import remedy_from
from falter.remedies.prompts import Remedy
from falter.tasks.data_sets import CHAT_TASKS
from falter.tasks.rows import holds_chats, read_template_file, rows_at

# Grids: every combination of the levels of some factors, the first of each being the baseline.
#
# grid: {template: [own, other], demonstrations: [2, 4], noise: [none, replace_spaces]}


def configurations(grid: GridLevels) -> Iterator[dict[str, Any]]:
    """The level of every factor, configuration by configuration, the baseline first."""
    names = [factor for factor, _ in grid]
    for levels in itertools.product(*(levels for _, levels in grid)):
        yield dict(zip(names, levels, strict=True))


def grid_specs(grid: GridLevels) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The label and the steps of every configuration but the first."""
    first = {factor: levels[0] for factor, levels in grid}
    for configuration in itertools.islice(configurations(grid), 1, None):
        steps: list[Any] = []
        for factor, level in configuration.items():
            if level == first[factor]:
                continue
            steps += _steps(factor, level)
        yield label_of(configuration), tuple(steps)


def label_of(configuration: Mapping[str, Any]) -> str:
    """`template own, demonstrations 4, noise none`."""
    return ", ".join(f"{factor} {_short(level)}" for factor, level in configuration.items())


def _short(level: Any) -> str:
    return Path(level).name if isinstance(level, str) and "/" in level else str(level)


def _steps(factor: str, level: Any) -> list[Any]:
    if factor == "demonstrations":
        return [("demonstrations", {"count": level})]
    if factor == "temperature":
        return [("temperature", {"value": level})]
    if factor == "template":
        return [("template", {} if level == OTHER else {"file": level})]
    return list(RecipeSteps().parse(level, Place()))


def check_distinct(recipes: list[Recipe]) -> None:
    """Refuse two configurations that are the same condition, by name."""
    seen: dict[str, str] = {}
    for recipe in recipes:
        if recipe.id in seen:
            raise refusal(
                UsageError, "engine.same_configurations", first=seen[recipe.id], label=recipe.label
            )
        seen[recipe.id] = recipe.label


def recipes_of(experiment: Experiment) -> tuple[Recipe, ...]:
    """The baseline and the experiment's recipes, those of its grid, or the default ones."""
    if experiment.grid is not None:
        return _grid(experiment, experiment.grid)
    specs = experiment.recipes or tuple(((name, {}),) for name in _usual(experiment))
    recipes = [BASELINE]
    for spec in _spelled_out(specs):
        recipe = recipe_from(spec, experiment.protect, experiment.language)
        if recipe.id not in {earlier.id for earlier in recipes} or spec in specs:
            recipes.append(recipe)  # two sets may share a recipe
    compares = experiment.same is not None or any(recipe.controls for recipe in recipes)
    if compares and not any(recipe.repeat for recipe in recipes):
        recipes.append(recipe_from([(NOISE_FLOOR, {})]))
    return tuple(recipes)


def _usual(experiment: Experiment) -> Sequence[str]:
    """The recipes where none are named: for conversations the sets that fit their columns."""
    data, tasks = experiment.data, experiment.tasks
    own = data is not None and not data.path.startswith("hub:") and holds_chats(data.path)
    if not own and not (tasks and all(name in CHAT_TASKS for name in tasks)):
        return DEFAULT_RECIPES
    rows = rows_at(data.path) if data else [{CHAT_TASKS[name]: True} for name in tasks]
    sets = {
        "tools": any(row.get("tools") for row in rows),
        "rag": any(row.get("documents") for row in rows),
        "chats": True,
        "controls": True,
    }
    return tuple(
        dict.fromkeys(name for key, fits in sets.items() if fits for name in RECIPE_SETS[key])
    )


def members_of(name: Any) -> tuple[str, ...]:
    """The recipes of a set, by its name; none where it is the name of no set."""
    return RECIPE_SETS.get(name, ()) if isinstance(name, str) else ()


def _spelled_out(specs: Sequence[Sequence[StepSpec]]) -> Iterator[Sequence[StepSpec]]:
    """The recipes, with those of a set in the place of its name: `everyday`."""
    for spec in specs:
        name, params = spec[0]
        if len(spec) == 1 and not params and name in RECIPE_SETS:
            yield from (((member, {}),) for member in RECIPE_SETS[name])
        else:
            yield spec


def _grid(experiment: Experiment, grid: GridLevels) -> tuple[Recipe, ...]:
    """The configurations of a grid, the first of which is the baseline."""
    recipes = [BASELINE]
    for label, spec in grid_specs(grid):
        recipe = recipe_from(spec, experiment.protect, experiment.language)
        recipes.append(replace(recipe, label=label, group="configurations"))
    check_distinct(recipes)
    return tuple(recipes)


def recipe_from(
    spec: Sequence[StepSpec], protect: Sequence[str] = (), language: str | None = None
) -> Recipe:
    """A recipe from its steps. Its label shows the parameters that are not the default.

    `protect` is added to every step that protects text; `language` holds for every step that has
    one and does not set its own.
    """
    names = [name for name, _ in spec]
    if BASELINE.label in names:
        raise InvalidValue(
            "recipes",
            "+".join(names),
            "perturbations",
            hint="leave the baseline out; it is always run",
        )
    steps = [_step(name, params, language) for name, params in spec]
    changes = [step for step in steps if not _is_setting(step)]
    kinds = [perturbations.get(step.name) for step in steps]
    groups = {perturbation.group for perturbation in kinds}
    tokens = max(perturbation.reply_tokens for perturbation in kinds)
    recipe = Recipe(
        label="+".join(_label(step) for step in steps),
        group=groups.pop() if len(groups) == 1 else "chains",
        steps=tuple(_protected(step, protect) for step in changes),
        sampling={"max_tokens": tokens} if tokens else None,
        output_format=_output_format(kinds),
    )
    for step, perturbation in zip(steps, kinds, strict=True):
        if isinstance(perturbation, SettingPerturbation):
            recipe = perturbation.configure(recipe, **step.params)
            if recipe.repeat and len(steps) > 1:
                raise InvalidValue(
                    "recipes", "+".join(s.name for s in steps), "perturbations only in a chain",
                    hint=f"the baseline is always run; '{step.name}' is used alone, without "
                    "parameters",
                )  # fmt: skip
    if recipe.template is not None and recipe.template != OTHER_TEMPLATE:
        recipe = replace(recipe, template=read_template_file(recipe.template))
    return recipe


def _is_setting(step: Step) -> bool:
    return isinstance(perturbations.get(step.name), SettingPerturbation)


def _output_format(kinds: Sequence[Perturbation]) -> str | None:
    """The answer format; a chain that asks for two is an error."""
    forms = {p.output_format: p.name for p in kinds if p.output_format}
    if len(forms) > 1:
        raise InvalidValue("recipes", "+".join(forms.values()), "one answer format")
    return next(iter(forms), None)


def _step(name: str, params: Mapping[str, Any], language: str | None) -> Step:
    step = parse_step(name) if not params and ":" in name else resolve_step(name, params)
    if (
        language is None
        or "language" in params
        or (f"{step.name}:" in name and "language=" in name)
    ):
        return step
    if any(parameter.name == "language" for parameter in perturbations.get(step.name).parameters):
        return resolve_step(step.name, {**_given_parameters(step), "language": language})
    return step


def _given_parameters(step: Step) -> dict[str, Any]:
    """The parameters as they may be given again: a count stands without the rate it replaced."""
    dosed = step.params.get("count") is not None
    return {k: v for k, v in step.params.items() if not (k == "rate" and dosed)}


def _label(step: Step) -> str:
    defaults = {p.name: p.default for p in perturbations.get(step.name).parameters}
    always = _is_setting(step)
    shown = [
        f"{k}={'|'.join(map(str, v)) if isinstance(v, (tuple, list)) else v}"
        for k, v in step.params.items()
        if v is not None and (always or v != defaults.get(k))
    ]
    if step.params.get("count") is not None:
        shown = [text for text in shown if not text.startswith("rate=")]
    return f"{step.name}({','.join(shown)})" if shown else step.name


def _protected(step: Step, protect: Sequence[str]) -> Step:
    if not protect or "protect" not in step.params:
        return step
    own = tuple(step.params["protect"] or ())
    return resolve_step(step.name, {**_given_parameters(step), "protect": (*own, *protect)})


# Solved examples


def remedy_of(experiment: Experiment) -> Remedy | None:
    """The remedy that the experiment names, if it names one."""
    return None if experiment.remedy is None else remedy_from(experiment.remedy)


def examples_of(experiment: Experiment) -> int:
    """The number of solved examples shown by default: the user's, else the remedy's."""
    remedy = remedy_of(experiment)
    return experiment.demonstrations or (0 if remedy is None else remedy.examples)


def shown_from(recipe: Recipe, usual: int) -> int:
    """The number of items a recipe takes its examples from: its own set, and those before it."""
    count = usual if recipe.demonstrations is None else recipe.demonstrations
    if recipe.examples and not count:
        raise refusal(UsageError, "engine.other_examples", label=recipe.label)
    return max(usual, count * (1 + recipe.examples))
