"""Translations and other rewrites that come with a task, as a bank of rewrites."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from falter.engine.config import Experiment
from falter.engine.task_loading import load_tasks
from falter.perturbations import perturbations
from falter.perturbations.language import wanted_translation
from falter.perturbations.rewriting import RewritePerturbation, Wanted
from falter.records.errors import PluginError
from falter.records.types import Rewrite
from falter.rewrites.bank import HAND_WRITTEN, MemoryBank, hand_written
from falter.tasks.task import Task


class TaskRewrites:
    """People's translations and rewordings of an experiment's tasks; read when first asked for."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    @cached_property
    def _bank(self) -> MemoryBank:
        texts = {
            wanted.key: hand_written(wanted, new, HAND_WRITTEN)
            for task in load_tasks(self._experiment)
            for wanted, new in rewrites_of(task)
        }
        return MemoryBank(texts.values())

    def find(self, key: str, text: str) -> Rewrite | None:
        return self._bank.find(key, text)


def rewrites_of(task: Task) -> Iterator[tuple[Wanted, str]]:
    """The rewrites a task brings along: every text that may be wanted anew, and the new one."""
    if task.translations is not None:
        for language, texts in task.translations().items():
            for text, new in texts.items():
                yield wanted_translation(text, language), new
    if task.rewrites is not None:
        for name, texts in task.rewrites().items():
            perturbation = perturbations.get(name)
            if not isinstance(perturbation, RewritePerturbation):
                raise PluginError(f"'{task.name}' has rewrites for '{name}', which takes none")
            for text, new in texts.items():
                yield perturbation.wanted(text, 0), new
