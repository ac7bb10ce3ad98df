"""Configuration: the same words under other settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from falter.core.errors import UsageError
from falter.core.interfaces import Parameter
from falter.core.records import Prompt, Recipe
from falter.core.rng import Rng
from falter.perturbations.base import Described, checked_parameters, perturbations, summary_of

__all__ = [
    "OTHER_TEMPLATE",
    "SettingPerturbation",
    "demonstration_choice",
    "demonstrations",
    "identity",
    "setting",
    "settings_of",
    "temperature",
]

Configure = Callable[..., Recipe]
OTHER_TEMPLATE = "#other"
"""Stands for the source of the task's own second template."""


class SettingPerturbation(Described):
    """Changes a setting of the condition rather than the text."""

    def __init__(self, name: str, configure: Configure, **described: Any) -> None:
        super().__init__(name, **described)
        self._configure = configure

    def configure(self, recipe: Recipe, **params: Any) -> Recipe:
        """The recipe with this setting."""
        return self._configure(recipe, **checked_parameters(self, params))

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        raise UsageError(
            f"'{self.name}' changes how a model is asked, not the text",
            hint="use it in the recipes of an experiment",
        )

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Never: a setting changes no text."""
        return False


def setting(
    name: str, *parameters: Parameter, title: str, reply_tokens: int = 0
) -> Callable[[Configure], SettingPerturbation]:
    """Register `(recipe, **parameters) -> recipe` as a configuration."""

    def register(configure: Configure) -> SettingPerturbation:
        perturbation = SettingPerturbation(
            name,
            configure,
            family="configuration",
            group="configuration",
            version=1,
            summary=summary_of(configure),
            title=title,
            scope=(),
            parameters=parameters,
            invariants=("target", "choices"),
            languages=None,
            reply_tokens=reply_tokens,
        )
        perturbations.register(name, perturbation)
        return perturbation

    return register


@setting("identity", title="the same prompt asked again")
def identity(recipe: Recipe) -> Recipe:
    """Asks the same prompt again: the noise floor."""
    return replace(recipe, repeat=1)


@setting(
    "demonstrations",
    Parameter(
        name="count", type=int, default=5, low=0, high=64, help="solved examples before the item"
    ),
    title="another number of examples",
)
def demonstrations(recipe: Recipe, count: int) -> Recipe:
    """Shows another number of solved examples; a smaller number takes the first of them."""
    return replace(recipe, demonstrations=count)


@setting(
    "demonstration_choice",
    Parameter(
        name="number", type=int, default=1, low=1, high=20, help="which of the other sets: 1, 2, …"
    ),
    title="other examples",
)
def demonstration_choice(recipe: Recipe, number: int) -> Recipe:
    """Shows as many other solved examples; no two sets have one in common."""
    return replace(recipe, examples=number)


@setting(
    "temperature",
    Parameter(
        name="value", type=float, default=0.6, low=0, high=2, help="the sampling temperature"
    ),
    title="another temperature",
    reply_tokens=1,
)
def temperature(recipe: Recipe, value: float) -> Recipe:
    """Samples the answer at another temperature."""
    return replace(recipe, sampling={**(recipe.sampling or {}), "temperature": value})


@setting(
    "template",
    Parameter(
        name="file", type=str, default="", help="the file with it; else the task's own second one"
    ),
    title="another template",
)
def template(recipe: Recipe, file: str) -> Recipe:
    """Asks with another template: a file, or the task's own second one."""
    return replace(recipe, template=file or OTHER_TEMPLATE)


def settings_of(recipe: Recipe) -> list[SettingPerturbation]:
    """The settings in which a recipe differs from the run's."""
    differs = {
        demonstrations: recipe.demonstrations is not None,
        demonstration_choice: bool(recipe.examples),
        temperature: "temperature" in (recipe.sampling or {}),
        template: recipe.template is not None,
        identity: bool(recipe.repeat),
    }
    return [setting for setting, is_set in differs.items() if is_set]
