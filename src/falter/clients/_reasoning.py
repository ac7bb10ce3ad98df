"""Whether a model's options ask it to think before it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["asks_for_reasoning"]

FIELDS = ("reasoning", "reasoning_effort", "thinking", "enable_thinking")
OFF = (None, False, "none", "disabled")


def asks_for_reasoning(options: Mapping[str, Any]) -> bool:
    """By the fields that servers have for it, also below `chat_template_kwargs`."""
    below = options.get("chat_template_kwargs")
    if isinstance(below, Mapping) and asks_for_reasoning(below):
        return True
    return any(_is_on(options.get(field)) for field in FIELDS)


def _is_on(value: Any) -> bool:
    if isinstance(value, Mapping):
        told = [value.get(name) for name in ("effort", "type", "enabled") if name in value]
        return bool(value) and all(entry not in OFF for entry in told)
    return value not in OFF
