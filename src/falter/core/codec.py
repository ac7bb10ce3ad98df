"""Records to plain JSON values and back, driven by their annotations."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["from_json", "to_json"]

T = TypeVar("T")


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}  # type: ignore[arg-type]


def to_json(value: Any) -> Any:
    """A record as dicts, lists and scalars."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in _hints(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(inner) for inner in value]
    return value


def from_json(cls: type[T], data: Any) -> T:
    """The record that `to_json` took apart. Unknown fields raise; absent ones take defaults."""
    result: T = _build(cls, data)
    return result


def _build(kind: Any, data: Any) -> Any:
    if data is None or kind is Any:
        return data
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        unknown = set(data) - set(hints)
        if unknown:
            raise ValueError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
        return kind(**{name: _build(hints[name], inner) for name, inner in data.items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _build_union(arguments, data)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_build(arguments[0], inner) for inner in data)
        return tuple(_build(a, inner) for a, inner in zip(arguments, data, strict=True))
    if origin is Literal or not arguments:
        return data
    if issubclass(origin, Mapping):
        return {key: _build(arguments[1], inner) for key, inner in data.items()}
    raise TypeError(f"cannot rebuild {kind!r}")


def _build_union(arguments: tuple[Any, ...], data: Any) -> Any:
    records = [a for a in arguments if isinstance(a, type) and is_dataclass(a)]
    return _build(records[0], data) if records and isinstance(data, dict) else data
