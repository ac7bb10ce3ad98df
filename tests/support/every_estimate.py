"""Every estimate inside a record, however deep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from falter.records.types import Estimate

__all__ = ["every_estimate"]


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
