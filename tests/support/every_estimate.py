"""Every estimate inside a record, however deep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from falter.records.types import Estimate

__all__ = ["every_estimate", "numbers_in"]


def every_estimate(value: object) -> Iterator[Estimate]:
    """In the order of the fields."""
    if isinstance(value, Estimate):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from every_estimate(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from every_estimate(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from every_estimate(getattr(value, field.name))


def numbers_in(value: Any) -> set[tuple[Any, ...]]:
    """Value, low, high, items and status of every number in a part of a report's JSON."""
    if isinstance(value, list):
        return set().union(*map(numbers_in, value))
    if not isinstance(value, dict):
        return set()
    if "level" in value and "items" in value:
        ends = (value.get(name) for name in ("value", "low", "high", "items"))
        return {(*ends, value.get("status", "ok"))}
    return numbers_in(list(value.values()))
