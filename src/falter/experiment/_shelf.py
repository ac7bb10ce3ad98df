"""The tasks of a study, each read once."""

from __future__ import annotations

from falter.core.errors import UsageError
from falter.experiment._config import Experiment
from falter.experiment._resolve import load_task, load_tasks
from falter.tasks import Task

__all__ = ["TaskShelf"]


class TaskShelf:
    """Tasks by name, each read once. `data` names those of the user's own data, one a template."""

    def __init__(self, asked: Experiment, protocol: str) -> None:
        own = load_tasks(asked) if asked.tasks or asked.data is not None else []
        names = asked.tasks or tuple(task.name for task in own)
        self.own = dict(zip(names, own, strict=True)) if own else {}
        self.data = [task.name for task in own] if asked.data is not None else []
        if protocol and len(self.data) > 1:
            raise UsageError(
                f"The protocol {protocol} takes one template, not {len(self.data)}",
                hint="give one, or run the templates without the protocol",
            )
        self._loaded: dict[str, Task] = dict(self.own)

    def of(self, experiment: Experiment) -> list[Task]:
        names = experiment.tasks
        if experiment.data is not None and self.data:
            names = tuple(self.data)
        for name in names:
            if name not in self._loaded:
                self._loaded[name] = load_task(name)
        return [self._loaded[name] for name in names]
