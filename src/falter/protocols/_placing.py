"""A protocol's parts, with the user's own tasks, data and limit put in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from falter.protocols._protocol import Part, TaskKind, Unavailable, UserSettings

__all__ = ["placed_parts"]

_KINDS: dict[TaskKind, str] = {
    "choices": "options",
    "numeric": "a number as its answer",
    "code": "code as its answer",
    "open": "an open answer",
}


def placed_parts(
    parts: Iterable[Part], settings: UserSettings
) -> tuple[tuple[Part, ...], tuple[Unavailable, ...]]:
    """The parts that can be run, and those that cannot with the reason.

    A part that judges one that is left out is left out with it.
    """
    placed: list[Part] = []
    unavailable: list[Unavailable] = []
    for part in parts:
        if part.judges is not None:
            if any(other.name == part.judges for other in placed):
                placed.append(part)
            continue
        tasks = _tasks(part, settings)
        reason = _obstacle(part, tasks, settings)
        if reason is not None:
            unavailable.append(Unavailable(title=part.title, reason=reason))
            continue
        experiment: dict[str, Any] = {**part.experiment, "tasks": tasks}
        if settings.limit is not None:
            experiment["limit"] = settings.limit
        placed.append(replace(part, experiment=experiment))
    return tuple(placed), tuple(unavailable)


def _tasks(part: Part, settings: UserSettings) -> list[str]:
    names = list(part.experiment.get("tasks", ()))
    if settings.tasks:
        names = [name for name, kind in settings.tasks if kind in part.takes]
    return names[: part.most_tasks]


def _obstacle(part: Part, tasks: list[str], settings: UserSettings) -> str | None:
    if not tasks:
        kinds = " or ".join(_KINDS[kind] for kind in part.takes)
        names = ", ".join(name for name, _ in settings.tasks)
        return f"no task with {kinds}" + (f" among {names}" if names else "")
    if "text" in part.needs and not settings.generates:
        return "one of the models cannot write text"
    if "listed options" in part.needs and not settings.lists:
        return "the template does not list the options (put {choices} into it)"
    return None
