"""Recipes from what a user wrote: steps, settings, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from falter.core.errors import InvalidValue
from falter.core.interfaces import Perturbation
from falter.core.records import BASELINE, Recipe, Step
from falter.experiment._config import Experiment, StepSpec
from falter.perturbations import SettingPerturbation, parse_step, perturbations, resolve_step
from falter.tasks import read_template_file

__all__ = ["DEFAULT_RECIPES", "recipe_from", "recipes_of"]

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


def recipes_of(experiment: Experiment) -> tuple[Recipe, ...]:
    """The baseline and the experiment's recipes, or the default ones."""
    specs = experiment.recipes or tuple(((name, {}),) for name in DEFAULT_RECIPES)
    made = (recipe_from(spec, experiment.protect, experiment.language) for spec in specs)
    return (BASELINE, *made)


def recipe_from(
    spec: Sequence[StepSpec], protect: Sequence[str] = (), language: str | None = None
) -> Recipe:
    """A recipe from its steps. Its label shows the parameters that are not the default.

    `protect` is added to every step that protects text; `language` is that of every step that
    has one and is not given another.
    """
    names = [name for name, _ in spec]
    if "baseline" in names:
        raise InvalidValue("recipes", "+".join(names), "perturbations", hint="it is always run")
    steps = [_step(name, params, language) for name, params in spec]
    _alone("identity", steps)
    changes = [step for step in steps if not _is_setting(step)]
    recipe = Recipe(
        label="+".join(_label(step) for step in steps),
        group=_group(steps),
        steps=tuple(_protected(step, protect) for step in changes),
        sampling=_reply(steps),
        output_format=_format(steps),
    )
    for step in steps:
        perturbation = perturbations.get(step.name)
        if isinstance(perturbation, SettingPerturbation):
            recipe = perturbation.configure(recipe, **step.params)
    if recipe.template is not None:
        recipe = replace(recipe, template=read_template_file(recipe.template))
    return recipe


def _alone(name: str, steps: Sequence[Step]) -> None:
    if len(steps) > 1 and any(step.name == name for step in steps):
        raise InvalidValue(
            "recipes", "+".join(step.name for step in steps), "perturbations only in a chain",
            hint=f"the baseline is always run; '{name}' stands alone, without parameters",
        )  # fmt: skip


def _is_setting(step: Step) -> bool:
    return isinstance(perturbations.get(step.name), SettingPerturbation)


def _of(steps: Sequence[Step]) -> list[Perturbation]:
    return [perturbations.get(step.name) for step in steps]


def _group(steps: Sequence[Step]) -> str:
    groups = {perturbation.group for perturbation in _of(steps)}
    return groups.pop() if len(groups) == 1 else "chains"


def _reply(steps: Sequence[Step]) -> dict[str, Any] | None:
    """Room for the longest answer that a step asks for."""
    tokens = max(perturbation.reply_tokens for perturbation in _of(steps))
    return {"max_tokens": tokens} if tokens else None


def _format(steps: Sequence[Step]) -> str | None:
    """The form of the answer; a chain that asks for two is an error."""
    forms = {p.output_format: p.name for p in _of(steps) if p.output_format}
    if len(forms) > 1:
        raise InvalidValue("recipes", "+".join(forms.values()), "one form of the answer")
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
        return resolve_step(step.name, {**_own(step), "language": language})
    return step


def _own(step: Step) -> dict[str, Any]:
    """The parameters as they may be given again: a count stands without the rate it replaced."""
    dosed = step.params.get("count") is not None
    return {k: v for k, v in step.params.items() if not (k == "rate" and dosed)}


def _label(step: Step) -> str:
    defaults = {p.name: p.default for p in perturbations.get(step.name).parameters}
    always = _is_setting(step)
    shown = [
        f"{k}={v}"
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
    return resolve_step(step.name, {**_own(step), "protect": (*own, *protect)})
