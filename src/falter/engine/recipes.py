"""Recipes from the steps that a user wrote, with the experiment's language and protected text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from falter.engine.config import Experiment
from falter.engine.setting_types import SECOND_TEMPLATE, GridLevels, Place, RecipeSteps, StepSpec
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

# Grids: all combinations of the levels of some factors. The first levels form the baseline.
#
# grid: {template: [own, other], demonstrations: [2, 4], noise: [none, replace_spaces]}


def configurations(grid: GridLevels) -> Iterator[dict[str, Any]]:
    """Yield the level of every factor for each configuration of a grid, the baseline first."""
    names = [factor for factor, _ in grid]
    for levels in itertools.product(*(levels for _, levels in grid)):
        yield dict(zip(names, levels, strict=True))


def grid_specs(grid: GridLevels) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the label and the steps of every configuration except the baseline."""
    first = {factor: levels[0] for factor, levels in grid}
    for configuration in itertools.islice(configurations(grid), 1, None):
        steps: list[Any] = []
        for factor, level in configuration.items():
            if level == first[factor]:
                continue
            steps += _factor_steps(factor, level)
        yield label_of(configuration), tuple(steps)


def label_of(configuration: Mapping[str, Any]) -> str:
    """Return a configuration's label, such as `template own, demonstrations 4, noise none`."""
    return ", ".join(f"{factor} {_level_text(level)}" for factor, level in configuration.items())


def _level_text(level: Any) -> str:
    """Return a level as text; a path becomes the name of its file."""
    return Path(level).name if isinstance(level, str) and "/" in level else str(level)


def _factor_steps(factor: str, level: Any) -> list[Any]:
    """Return the steps that set a factor to a level."""
    if factor == "demonstrations":
        return [("demonstrations", {"count": level})]
    if factor == "temperature":
        return [("temperature", {"value": level})]
    if factor == "template":
        return [("template", {} if level == SECOND_TEMPLATE else {"file": level})]
    return list(RecipeSteps().parse(level, Place()))


def check_distinct(recipes: list[Recipe]) -> None:
    """Raise `UsageError` if two configurations are the same condition."""
    seen: dict[str, str] = {}
    for recipe in recipes:
        if recipe.id in seen:
            raise refusal(
                UsageError, "engine.same_configurations", first=seen[recipe.id], label=recipe.label
            )
        seen[recipe.id] = recipe.label


def recipes_of(experiment: Experiment) -> tuple[Recipe, ...]:
    """Return the baseline with the experiment's recipes, its grid's, or the default ones.

    If answers are compared with the clean answer, or a recipe is a control, a repeat of the clean
    prompt is added.
    """
    if experiment.grid is not None:
        return _grid_recipes(experiment, experiment.grid)
    specs = experiment.recipes or tuple(((name, {}),) for name in _default_names(experiment))
    recipes = [BASELINE]
    for spec in _expand_sets(specs):
        recipe = recipe_from(spec, experiment.protect, experiment.language)
        if recipe.id not in {earlier.id for earlier in recipes} or spec in specs:
            recipes.append(recipe)  # two sets may share a recipe
    compares = experiment.same is not None or any(recipe.controls for recipe in recipes)
    if compares and not any(recipe.repeat for recipe in recipes):
        recipes.append(recipe_from([(NOISE_FLOOR, {})]))
    return tuple(recipes)


def _default_names(experiment: Experiment) -> Sequence[str]:
    """Return the default recipes' names; for conversations, the sets that fit their columns."""
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
    """Return the names of a set's recipes; empty if no set has that name."""
    return RECIPE_SETS.get(name, ()) if isinstance(name, str) else ()


def _expand_sets(specs: Sequence[Sequence[StepSpec]]) -> Iterator[Sequence[StepSpec]]:
    """Yield the recipes, with the recipes of a set in place of its name, such as `everyday`."""
    for spec in specs:
        name, params = spec[0]
        if len(spec) == 1 and not params and name in RECIPE_SETS:
            yield from (((member, {}),) for member in RECIPE_SETS[name])
        else:
            yield spec


def _grid_recipes(experiment: Experiment, grid: GridLevels) -> tuple[Recipe, ...]:
    """Return the configurations of a grid as recipes, the baseline first."""
    recipes = [BASELINE]
    for label, spec in grid_specs(grid):
        recipe = recipe_from(spec, experiment.protect, experiment.language)
        recipes.append(replace(recipe, label=label, group="configurations"))
    check_distinct(recipes)
    return tuple(recipes)


def recipe_from(
    spec: Sequence[StepSpec], protect: Sequence[str] = (), language: str | None = None
) -> Recipe:
    """Return the recipe of some steps; its label shows the parameters that differ from defaults.

    `protect` is added to every step that protects text. `language` applies to every step with a
    language that does not set its own. Raises `InvalidValue` for a chain that cannot be combined.
    """
    names = [name for name, _ in spec]
    if BASELINE.label in names:
        raise InvalidValue(
            "recipes",
            "+".join(names),
            "perturbations",
            hint="leave the baseline out; it is always run",
        )
    steps = [_language_step(name, params, language) for name, params in spec]
    changes = [step for step in steps if not _is_setting(step)]
    step_perturbations = [perturbations.get(step.name) for step in steps]
    group_names = {perturbation.group for perturbation in step_perturbations}
    reply_tokens = max(perturbation.reply_tokens for perturbation in step_perturbations)
    recipe = Recipe(
        label="+".join(_step_label(step) for step in steps),
        group=group_names.pop() if len(group_names) == 1 else "chains",
        steps=tuple(_protected_step(step, protect) for step in changes),
        sampling={"max_tokens": reply_tokens} if reply_tokens else None,
        output_format=_output_format(step_perturbations),
    )
    for step, perturbation in zip(steps, step_perturbations, strict=True):
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
    """Return True if a step changes the settings of a request and not the text of its prompt."""
    return isinstance(perturbations.get(step.name), SettingPerturbation)


def _output_format(kinds: Sequence[Perturbation]) -> str | None:
    """Return the answer format of a chain; raise if its perturbations request two."""
    forms = {p.output_format: p.name for p in kinds if p.output_format}
    if len(forms) > 1:
        raise InvalidValue("recipes", "+".join(forms.values()), "one answer format")
    return next(iter(forms), None)


def _language_step(name: str, params: Mapping[str, Any], language: str | None) -> Step:
    """Return a step with the experiment's language, if it has a language and does not set it."""
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
    """Return the parameters that can be passed again: with a count, the rate is left out."""
    dosed = step.params.get("count") is not None
    return {k: v for k, v in step.params.items() if not (k == "rate" and dosed)}


def _step_label(step: Step) -> str:
    """Return a step's label, with the parameters that differ from their defaults."""
    defaults = {p.name: p.default for p in perturbations.get(step.name).parameters}
    is_setting = _is_setting(step)
    shown_parameters = [
        f"{k}={'|'.join(map(str, v)) if isinstance(v, (tuple, list)) else v}"
        for k, v in step.params.items()
        if v is not None and (is_setting or v != defaults.get(k))
    ]
    if step.params.get("count") is not None:
        shown_parameters = [text for text in shown_parameters if not text.startswith("rate=")]
    return f"{step.name}({','.join(shown_parameters)})" if shown_parameters else step.name


def _protected_step(step: Step, protect: Sequence[str]) -> Step:
    """Return a step that also protects the experiment's patterns, if it protects text."""
    if not protect or "protect" not in step.params:
        return step
    own = tuple(step.params["protect"] or ())
    return resolve_step(step.name, {**_given_parameters(step), "protect": (*own, *protect)})


# Solved examples


def remedy_of(experiment: Experiment) -> Remedy | None:
    """Return the remedy that the experiment names, or None."""
    return None if experiment.remedy is None else remedy_from(experiment.remedy)


def examples_of(experiment: Experiment) -> int:
    """Return the usual number of demonstrations: the user's, otherwise the remedy's."""
    remedy = remedy_of(experiment)
    return experiment.demonstrations or (0 if remedy is None else remedy.examples)


def shown_from(recipe: Recipe, usual: int) -> int:
    """Return the number of items that a recipe's demonstrations are taken from.

    A recipe with another set of demonstrations needs the items of all sets before it too.
    """
    count = usual if recipe.demonstrations is None else recipe.demonstrations
    if recipe.examples and not count:
        raise refusal(UsageError, "engine.other_examples", label=recipe.label)
    return max(usual, count * (1 + recipe.examples))
