"""Translations that come with a task, as a bank of rewrites."""

from __future__ import annotations

from functools import cached_property

from falter.engine.config import Experiment
from falter.engine.recipes import recipes_of
from falter.engine.task_loading import load_tasks
from falter.perturbations import perturbations
from falter.perturbations.language import wanted_translation
from falter.perturbations.rewriting import RewritePerturbation
from falter.records.types import Recipe, Rewrite
from falter.rewrites.bank import HAND_WRITTEN, MemoryBank, hand_written


def needs_translations(experiment: Experiment) -> bool:
    """Whether a recipe of the experiment wants texts in another language."""
    bank = wanted_translation("", "en").perturbation.bank
    return any(_uses(recipe, bank) for recipe in recipes_of(experiment))


def _uses(recipe: Recipe, bank: str) -> bool:
    kinds = [perturbations.get(step.name) for step in recipe.steps]
    return any(isinstance(kind, RewritePerturbation) and kind.bank == bank for kind in kinds)


class TaskTranslations:
    """What people translated of an experiment's tasks; read when first asked for a text."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    @cached_property
    def _bank(self) -> MemoryBank:
        pairs = {
            (text, language): translation
            for task in load_tasks(self._experiment)
            if task.translations is not None
            for language, texts in task.translations().items()
            for text, translation in texts.items()
        }
        return MemoryBank(
            hand_written(wanted_translation(text, language), translation, HAND_WRITTEN)
            for (text, language), translation in pairs.items()
        )

    def find(self, key: str, text: str) -> Rewrite | None:
        return self._bank.find(key, text)
