"""Checks for conversations, and for runs that compare with the clean answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

from falter.engine.config import Experiment, ModelSpec
from falter.records.errors import UnknownName, UsageError, refusal
from falter.records.interfaces import Capabilities, Scorer
from falter.records.types import Item, Recipe
from falter.tasks.chats import Chat
from falter.tasks.task import Task

SAME_PREFIX = "same_"
"""Prefix of the names of scorers that compare a response with the clean answer."""


def same_scorers(experiment: Experiment, task: Task) -> tuple[str, ...]:
    """Return the scorer that the setting `same` selects for a task; empty if it is not set."""
    kind: str | None = experiment.same
    if kind is None:
        return ()
    if kind == "auto":
        tools = any("tools" in item.fields for item in task.items)
        kinds = {"call": tools, "label": bool(experiment.labels), "choice": task.has_choices}
        kind = next((name for name, fits in kinds.items() if fits), None)
    if kind is None:
        raise refusal(UsageError, "engine.no_same", name=task.name)
    if kind == "label" and not experiment.labels and not has_targets(task):
        raise refusal(UsageError, "engine.same_without_labels")
    if kind == "call" and not any("tools" in item.fields for item in task.items):
        raise refusal(UsageError, "engine.same_without_tools", name=task.name)
    return (f"{SAME_PREFIX}{kind}",)


def has_targets(task: Task) -> bool:
    """Return True if any item has a correct answer."""
    return any(item.target is not None for item in task.items)


def require_fit_chat(
    experiment: Experiment,
    task: Task,
    scorer: Scorer,
    spec: ModelSpec,
    able: Capabilities,
    recipes: Sequence[Recipe],
) -> None:
    """Raise unless settings, scorer and model fit the conversations of a task.

    Tasks without conversations always pass. Nothing has been sent when this is called.
    """
    if not all(isinstance(template, Chat) for template in task.templates.values()):
        return
    what = f"'{task.name}' holds conversations"
    if experiment.demonstrations or any(r.demonstrations or r.examples for r in recipes):
        raise refusal(UsageError, "engine.chat_with_demonstrations", what=what)
    if experiment.remedy is not None:
        raise refusal(UsageError, "engine.chat_with_remedy", what=what)
    if any(recipe.template is not None for recipe in recipes):
        raise refusal(UsageError, "engine.chat_with_template", what=what)
    if scorer.needs_scores or scorer.needs_choices:
        raise refusal(UsageError, "engine.chat_with_options", what=what, scorer=scorer.name)
    _require_arguments(experiment.ignore_arguments, task)
    needs = any("tools" in item.fields for item in task.items)
    if needs and not able.tools:
        raise UsageError(
            f"{what} with tools, which '{spec.name}' does not support",
            hint=able.instead,
        )
    if needs and not able.replays and any(_has_earlier_call(item) for item in task.items):
        raise refusal(UsageError, "engine.chat_with_thinking", what=what, name=spec.name)


def _require_arguments(names: Sequence[str], task: Task) -> None:
    """Raise `UnknownName` for an ignored argument that no tool has."""
    schemas = [
        tool["parameters"]
        for item in (task.items if names else ())
        for tool in json.loads(item.fields.get("tools", "[]"))
    ]
    known = {name for s in schemas if isinstance(s, dict) for name in s.get("properties", ())}
    for name in names:
        if name not in known:
            raise UnknownName(f"argument of the tools of '{task.name}'", name, sorted(known))


def _has_earlier_call(item: Item) -> bool:
    """Return True if an earlier turn of the conversation has a tool call."""
    return any("calls" in turn for turn in json.loads(item.fields["messages"]))
