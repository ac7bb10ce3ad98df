"""Perturbations that change a setting of a condition, such as the temperature, and no words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from falter.perturbations.base import Described, checked_parameters, declared, register_all
from falter.records.errors import UsageError
from falter.records.rng import Rng
from falter.records.types import Prompt, Recipe

OTHER_TEMPLATE = "#other"
"""Stands for the source of the task's own second template."""


class SettingPerturbation(Described):
    """Changes a setting of the condition rather than the text."""

    def __init__(
        self,
        name: str,
        configure: Callable[..., Recipe],
        is_set: Callable[[Recipe], bool],
    ) -> None:
        super().__init__(name, **declared(name))
        self._configure, self.is_set = configure, is_set

    def configure(self, recipe: Recipe, **params: Any) -> Recipe:
        """The recipe with this setting."""
        return self._configure(recipe, **checked_parameters(self, params))

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        raise UsageError(
            f"'{self.name}' changes the request settings, not the text",
            hint="use it as a recipe of an experiment",
        )

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Never: a setting changes no text."""
        return False


SETTINGS = (
    SettingPerturbation(
        "demonstrations",
        lambda recipe, count: replace(recipe, demonstrations=count),
        lambda recipe: recipe.demonstrations is not None,
    ),
    SettingPerturbation(
        "demonstration_choice",
        lambda recipe, number: replace(recipe, examples=number),
        lambda recipe: bool(recipe.examples),
    ),
    SettingPerturbation(
        "temperature",
        lambda recipe, value: replace(
            recipe, sampling={**(recipe.sampling or {}), "temperature": value}
        ),
        lambda recipe: "temperature" in (recipe.sampling or {}),
    ),
    SettingPerturbation(
        "template",
        lambda recipe, file: replace(recipe, template=file or OTHER_TEMPLATE),
        lambda recipe: recipe.template is not None,
    ),
    SettingPerturbation(
        "identity", lambda recipe: replace(recipe, repeat=1), lambda recipe: bool(recipe.repeat)
    ),
)
register_all(SETTINGS)


def settings_of(recipe: Recipe) -> list[SettingPerturbation]:
    """The settings in which a recipe differs from the run's."""
    return [setting for setting in SETTINGS if setting.is_set(recipe)]
