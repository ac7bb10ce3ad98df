"""Tasks: a set of items, a template for each way of asking, and the scorer that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from falter.core.errors import InvalidValue, TaskError
from falter.core.ids import digest
from falter.core.records import Item
from falter.core.registry import Registry
from falter.tasks._template import Template

__all__ = ["Task", "pick", "tasks"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A set of items with its templates and scorer.

    `templates` has one entry for each way of asking: `cloze` (options by likelihood), `letter`
    (options listed, a letter generated) and `open` (free text); `alternatives` has a second
    template, in other words, for some of these. `scorer` is the task's own choice, None when it
    follows from the items and from what the model can do. `stop` and `max_tokens` are the task's
    limits for a generated answer, used unless the user sets others. `translations` are those
    that people wrote of its texts: by language, the text with its translation. `remarks` are said
    before anything is sent.
    """

    name: str
    items: tuple[Item, ...]
    templates: Mapping[str, Template]
    scorer: str | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    alternatives: Mapping[str, Template] = field(default_factory=dict)
    translations: Callable[[], Mapping[str, Mapping[str, str]]] | None = None
    remarks: tuple[str, ...] = ()

    @property
    def revision(self) -> str:
        """A hash of what the items are, whatever their order."""
        return digest("task", sorted(item.id for item in self.items))

    @property
    def has_choices(self) -> bool:
        return bool(self.items and self.items[0].choices)


Loader = Callable[[str | None], Task]
tasks: Registry[Loader] = Registry("task", "falter.tasks")


def pick(items: Iterable[Item], limit: int | None, seed: int) -> tuple[Item, ...]:
    """A sample of `limit` items that depends on keys and seed, not on the order of the file.

    A smaller limit selects a subset of what a larger one selects, in the order of the file.
    """
    items = tuple(items)
    if limit is None or limit >= len(items):
        return items
    if limit < 1:
        raise InvalidValue("limit", limit, "a whole number of at least 1")
    by_hash = sorted(items, key=lambda item: digest("pick", seed, item.key))
    sampled = {item.key for item in by_hash[:limit]}
    return tuple(item for item in items if item.key in sampled)


def no_argument(name: str, argument: str | None) -> None:
    """Raise when a task that takes no argument was given one."""
    if argument:
        raise TaskError(
            f"The task '{name}' takes no argument after a colon, got '{argument}'",
            hint=f"use --task {name}",
        )
