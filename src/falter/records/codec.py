"""Conversion of records to plain JSON values and back, driven by their annotations; safe JSON text.

Each record class gets a reader once, built field by field, so that a store with a hundred thousand
prompts is read in seconds.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from unicodedata import category

import orjson

T = TypeVar("T")
Read = Callable[[Any], Any]

# Unicode categories that change a terminal or the layout of a text: control characters, marks that
# reorder text, lone surrogates, separators of lines and paragraphs.
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def json_text(value: Any, *, pretty: bool = False) -> str:
    """Return JSON in which letters are unescaped and characters that a terminal obeys are escaped.

    It is one line, or indented if `pretty`.
    """
    text = _pretty(value) if pretty else json.dumps(value, ensure_ascii=False, allow_nan=False)
    acting = {c for c in set(text) - {"\n"} if category(c) in _CONTROL_CATEGORIES}
    return text.translate({ord(c): _escape(c) for c in acting})


def _pretty(value: Any) -> str:
    """Return indented JSON: from orjson, or ten times slower from `json` for lone surrogates."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)


def _escape(character: str) -> str:
    """Return a character's JSON escape: two escapes for a character beyond the first 65,536."""
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def without_surrogates(text: str | None) -> str | None:
    """Return the text with U+FFFD for lone surrogates, which no file can hold."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def to_json(value: Any) -> Any:
    """Return a record as dicts, lists and scalars."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_json(getattr(value, name)) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(inner) for inner in value]
    return value


def from_json(cls: type[T], data: Any) -> T:
    """Return the record that `to_json` converted.

    Absent fields take their defaults. Raise ValueError for unknown fields.
    """
    kind: Any = cls
    result: T = _reader(kind)(data)
    return result


@cache
def _reader(kind: Any) -> Read:
    """Return a function that rebuilds a value of this annotation."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _record_reader(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union_reader(arguments)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is Literal or not arguments:
        return _unchanged_value
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = _reader(arguments[1])
        return (
            dict
            if inner is _unchanged_value
            else lambda data: {k: inner(v) for k, v in data.items()}
        )
    raise TypeError(f"cannot rebuild {kind!r}")


def _unchanged_value(data: Any) -> Any:
    return data


def _record_reader(cls: type) -> Read:
    hints = get_type_hints(cls)
    readers = {name: _reader(hints[name]) for name in _field_names(cls)}
    deep = {name: rebuild for name, rebuild in readers.items() if rebuild is not _unchanged_value}

    def record(values: Any) -> Any:
        try:
            return cls(**values)
        except TypeError:
            if unknown := sorted(values.keys() - readers.keys()):
                raise ValueError(f"{cls.__name__} has no field {', '.join(unknown)}") from None
            raise

    def read_record(data: Any) -> Any:
        values = {**data}
        for name, rebuild in deep.items():
            inner = values.get(name)
            if inner is not None:
                values[name] = rebuild(inner)
        return record(values)

    return read_record if deep else record


def _union_reader(arguments: tuple[Any, ...]) -> Read:
    """Return a reader for a union: dicts become its first record class, other values stay."""
    records = [a for a in arguments if isinstance(a, type) and is_dataclass(a)]
    if not records:
        return _unchanged_value
    record_reader = _reader(records[0])
    return lambda data: record_reader(data) if isinstance(data, dict) else data


def _tuple_reader(arguments: tuple[Any, ...]) -> Read:
    readers = [_reader(a) for a in arguments if a is not Ellipsis]
    if arguments[-1] is Ellipsis:
        inner = readers[0]
        if inner is _unchanged_value:
            return tuple
        return lambda data: tuple([inner(value) for value in data])
    return lambda data: tuple([r(value) for r, value in zip(readers, data, strict=True)])
