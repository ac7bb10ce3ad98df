"""JSON objects in replies, flattened to paths and texts. Replies are untrusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

__all__ = ["Object", "flat_entities", "flat_object"]

Object = str | Mapping[str, object]
_WRAPPER = "entities"


def flat_object(value: Object) -> dict[str, str] | None:
    """A JSON object as path → text; None for anything else.

    A text is the object, or has it as its only fenced block. Paths are keys joined by dots; of
    equal ones the last wins. Numbers stay as they are written, and lists are joined line by line.
    Null, blank texts and empty lists are no values, so their keys are left out.
    """
    return _flat(value, entities=False)


def flat_entities(value: Object) -> dict[str, str] | None:
    """`flat_object`, also for an object under a single key `entities`, and for lists of entities.

    A list of entities holds objects with a name and a value.
    """
    return _flat(value, entities=True)


def _flat(source: Object, *, entities: bool) -> dict[str, str] | None:
    try:
        value = _parsed(source) if isinstance(source, str) else source
        value = _unwrapped(value) if entities else value
        return dict(_leaves(value, "")) if isinstance(value, Mapping) else None
    except (ValueError, RecursionError):
        return None


def _parsed(text: str) -> object:
    try:
        return _loads(text)
    except ValueError:
        return _loads(_fenced(text))


def _loads(text: str) -> object:
    value: object = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _fenced(text: str) -> str:
    """The content of the only fenced block, else an empty text."""
    lines = text.splitlines()
    fences = [n for n, line in enumerate(lines) if line.lstrip().startswith("```")]
    return "\n".join(lines[fences[0] + 1 : fences[1]]) if len(fences) == 2 else ""


def _unwrapped(value: object) -> object:
    if isinstance(value, Mapping) and set(value) == {_WRAPPER}:
        value = value[_WRAPPER]
    if not isinstance(value, list):
        return value
    if not all(isinstance(row, Mapping) and {"name", "value"} <= set(row) for row in value):
        raise ValueError("a list that is not one of entities")
    return {str(row["name"]): row["value"] for row in value}


def _leaves(value: Mapping[str, object], path: str) -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(inner, Mapping):
            yield from _leaves(inner, name)
        elif (text := _text(inner)).strip():
            yield name, text


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):  # inside a list
        return ", ".join(f"{path}: {text}" for path, text in sorted(_leaves(value, "")))
    if isinstance(value, (list, tuple)):
        return "\n".join(text for text in map(_text, value) if text)
    return str(value)
