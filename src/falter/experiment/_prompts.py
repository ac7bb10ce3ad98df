"""Several prompts in one run: the same items, once for each template, as a task of its own."""

from __future__ import annotations

from falter.core.records import Run

__all__ = ["prompt_of", "prompt_task", "task_of"]

MARK = " with "


def prompt_task(task: str, prompt: str) -> str:
    """The name of a task under one of several prompts: `tickets with short`."""
    return f"{task}{MARK}{prompt}"


def prompt_of(run: Run, task: str) -> str:
    """The prompt's name of such a task; empty where the run has one prompt."""
    name = task.rpartition(MARK)[2]
    return name if MARK in task and name in (run.experiment.get("templates") or {}) else ""


def task_of(run: Run, task: str) -> str:
    """The task's own name, without that of its prompt."""
    return task.rpartition(MARK)[0] if prompt_of(run, task) else task
