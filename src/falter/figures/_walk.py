"""Going through all that a figure shows, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_args

from falter.core.records import Estimate
from falter.figures._kinds import Example, Figure

__all__ = ["estimates", "renamed"]

T = TypeVar("T")
_NOT_WORDS = frozenset({"kind", "unit", "scale", "verdict", "signature", "change"})


def estimates(figure: Figure) -> Iterator[Estimate]:
    """Every estimate that a figure shows, in reading order."""
    return _estimates(figure)


def _estimates(value: Any) -> Iterator[Estimate]:
    if isinstance(value, Estimate):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _estimates(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _estimates(getattr(value, field.name))


def renamed(figure: T, rename: Callable[[str], str]) -> T:
    """The figure with `rename` applied to all of its words; what was asked and answered stays."""
    words: T = _renamed(figure, rename)
    return words


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return rename(value)
    if isinstance(value, tuple):
        return tuple(_renamed(part, rename) for part in value)
    if is_dataclass(value) and not isinstance(value, Estimate | Example | type):
        words = {
            field.name: _renamed(getattr(value, field.name), rename)
            for field in fields(value)
            if field.name not in _NOT_WORDS
            and not (field.name == "name" and isinstance(value, get_args(Figure)))
        }
        return replace(value, **words)
    return value
