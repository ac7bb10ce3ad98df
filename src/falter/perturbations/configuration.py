"""Configuration: the same words under other settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from falter.perturbations.base import Described, checked_parameters, register_all, whole_number
from falter.records.errors import UsageError
from falter.records.interfaces import Parameter
from falter.records.rng import Rng
from falter.records.types import Prompt, Recipe

OTHER_TEMPLATE = "#other"
"""Stands for the source of the task's own second template."""


class SettingPerturbation(Described):
    """Changes a setting of the condition rather than the text."""

    def __init__(
        self,
        name: str,
        title: str,
        summary: str,
        configure: Callable[..., Recipe],
        is_set: Callable[[Recipe], bool],
        *parameters: Parameter,
        reply_tokens: int = 0,
    ) -> None:
        super().__init__(
            name, summary, family="configuration", group="configuration", title=title,
            parameters=parameters, invariants=("target", "choices"), reply_tokens=reply_tokens,
        )  # fmt: skip
        self._configure, self.is_set = configure, is_set

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


SETTINGS = (
    SettingPerturbation(
        "demonstrations", "another number of examples",
        "Shows another number of solved examples; a smaller number takes the first of them.",
        lambda recipe, count: replace(recipe, demonstrations=count),
        lambda recipe: recipe.demonstrations is not None,
        whole_number("count", 5, 0, 64, "solved examples before the item"),
    ),
    SettingPerturbation(
        "demonstration_choice", "other examples",
        "Shows as many other solved examples; no two sets have one in common.",
        lambda recipe, number: replace(recipe, examples=number),
        lambda recipe: bool(recipe.examples),
        whole_number("number", 1, 1, 20, "which of the other sets: 1, 2, …"),
    ),
    SettingPerturbation(
        "temperature", "another temperature", "Samples the answer at another temperature.",
        lambda recipe, value: replace(
            recipe, sampling={**(recipe.sampling or {}), "temperature": value}
        ),
        lambda recipe: "temperature" in (recipe.sampling or {}),
        Parameter(
            name="value", type=float, default=0.6, low=0, high=2, help="the sampling temperature"
        ),
        reply_tokens=1,
    ),
    SettingPerturbation(
        "template", "another template",
        "Asks with another template: a file, or the task's own second one.",
        lambda recipe, file: replace(recipe, template=file or OTHER_TEMPLATE),
        lambda recipe: recipe.template is not None,
        Parameter(
            name="file", type=str, default="",
            help="the file with it; else the task's own second one",
        ),
    ),
    SettingPerturbation(
        "identity", "the same prompt asked again",
        "Asks the same prompt again: the noise floor.",
        lambda recipe: replace(recipe, repeat=1), lambda recipe: bool(recipe.repeat),
    ),
)  # fmt: skip
register_all(SETTINGS)


def settings_of(recipe: Recipe) -> list[SettingPerturbation]:
    """The settings in which a recipe differs from the run's."""
    return [setting for setting in SETTINGS if setting.is_set(recipe)]
