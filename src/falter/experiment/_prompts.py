"""Several prompts in one run: the same items, once for each template, as a task of its own."""

from __future__ import annotations

from typing import Any

from falter.core.records import Run

__all__ = ["prompt_of", "prompt_task", "task_of", "without_prompt"]

MARK = " with "


def prompt_task(task: str, prompt: str) -> str:
    """The name of a task under one of several prompts: `tickets with short`."""
    return f"{task}{MARK}{prompt}"


def prompt_of(run: Run, task: str) -> str:
    """The prompt's name of such a task; empty where the run has one prompt."""
    return _prompt(run.experiment.get("template"), task)


def task_of(run: Run, task: str) -> str:
    """The task's own name, without that of its prompt."""
    return without_prompt(run.experiment.get("template"), task)


def without_prompt(templates: Any, task: str) -> str:
    """The same, for the templates of an experiment."""
    prompt = _prompt(templates, task)
    return task.removesuffix(f"{MARK}{prompt}") if prompt else task


def _prompt(templates: Any, task: str) -> str:
    several = templates if isinstance(templates, (list, tuple)) else ()
    return next((name for name, _ in several if task.endswith(f"{MARK}{name}")), "")
