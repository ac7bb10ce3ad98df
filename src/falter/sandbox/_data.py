"""Messages between the sandbox's processes: plain data as tagged JSON, one message at a time.

Standard library only. Received data is never executed: `pack` and `unpack` know a fixed list of
built-in types, so a received object has no methods that a program defined.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

__all__ = [
    "MAX_MESSAGE_BYTES",
    "Opaque",
    "Returned",
    "Uncrossable",
    "described",
    "framed",
    "pack",
    "receive",
    "send",
    "unpack",
]

# Bounds on what foreign code may make the judge hold: bytes of a message, elements of an iterator
# that may be endless (`itertools.count()`), characters of an error.
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
_MAX_ITERATOR_ITEMS = 100_000
_MAX_ERROR_CHARACTERS = 200


class Uncrossable(BaseException):
    """Raised if a test passes the candidate an argument that is not plain data."""


class Returned(BaseException):
    """Raised if a test passes on an object that the candidate returned as an `Opaque`."""


class Opaque:
    """Placeholder for a returned object that is not plain data; equal to no other object."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind} object>"


# Plain data as JSON


def pack(value: Any, strict: bool) -> Any:
    """Return a value as tagged JSON.

    A value that is not plain data raises `Uncrossable` if `strict`; otherwise its type is named. An
    `Opaque` raises `Returned`.
    """
    if value is None or isinstance(value, bool):
        return value
    # A subclass may redefine printing and equality, so only the plain value is sent.
    if isinstance(value, str):
        return str.__str__(value)
    # Python refuses to write more than 4,300 decimal digits; hexadecimal has no limit.
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else ["int", hex(value)]
    if isinstance(value, float):
        return float(value)
    for kind, name in _COLLECTIONS:
        if isinstance(value, kind):
            return [name, [pack(v, strict) for v in value]]
    if isinstance(value, dict):
        return ["dict", [[pack(k, strict), pack(v, strict)] for k, v in value.items()]]
    if isinstance(value, (bytes, bytearray)):
        return [type(value).__name__, bytes(value).hex()]
    for kind, name in _PRINTED_TYPES:
        if isinstance(value, kind):
            return [name, str(value)]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    if isinstance(value, Opaque):
        raise Returned(value.kind)
    if hasattr(value, "__next__"):
        return ["iterator", [pack(v, strict) for v, _ in zip(value, range(_MAX_ITERATOR_ITEMS))]]  # noqa: B905
    if strict:
        raise Uncrossable(type(value).__name__)
    return ["opaque", type(value).__name__]


_COLLECTIONS: tuple[tuple[Any, str], ...] = (
    (list, "list"),
    (tuple, "tuple"),
    (set, "set"),
    (frozenset, "frozenset"),
    (type({}.keys()), "set"),  # equal to a set of the same elements, as tests may compare it
)
_PRINTED_TYPES: tuple[tuple[Any, str], ...] = (
    (complex, "complex"),
    (Fraction, "Fraction"),
    (Decimal, "Decimal"),
)


def unpack(data: Any) -> Any:
    """Return the value that `pack` converted."""
    if not isinstance(data, list):
        return data
    kind, inner = data
    return _UNPACKERS[kind](inner)


def _unpack_many(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda inner: make([unpack(v) for v in inner])


def _fraction(text: str) -> Fraction:
    """Return a printed fraction; `1e99999999`, which would take for ever to expand, raises."""
    above, _, below = text.partition("/")
    return Fraction(int(above), int(below or 1))


_UNPACKERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "list": _unpack_many(list),
    "tuple": _unpack_many(tuple),
    "set": _unpack_many(set),
    "frozenset": _unpack_many(frozenset),
    "iterator": _unpack_many(iter),
    "dict": lambda pairs: {unpack(k): unpack(v) for k, v in pairs},
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": complex,
    "Fraction": _fraction,
    "Decimal": Decimal,
    "range": lambda parts: range(*parts),
    "opaque": Opaque,
}


# Messages: a length, then JSON


def framed(message: Any) -> bytes:
    """Return a message as bytes: its length, then its JSON."""
    # UTF-8 and not \u escapes, which take twelve bytes for an emoji instead of four. Half of a
    # surrogate pair is a value that a program may return.
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return struct.pack(">I", len(data)) + data


def send(fd: int, message: Any) -> None:
    """Write a whole message."""
    rest = memoryview(framed(message))
    while rest:
        rest = rest[os.write(fd, rest) :]


def receive(fd: int) -> Any:
    """Return the next message, or None at the end; raise `ValueError` if it is too long."""
    head = _read_exactly(fd, 4)
    if head is None:
        return None
    (length,) = struct.unpack(">I", head)
    if length > MAX_MESSAGE_BYTES:
        raise ValueError("too much data at once")
    body = _read_exactly(fd, length)
    return None if body is None else json.loads(body)


def _read_exactly(fd: int, wanted: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < wanted:
        piece = os.read(fd, min(wanted - len(parts), 1 << 16))
        if not piece:
            return None
        parts += piece
    return bytes(parts)


# Errors


def described(error: BaseException) -> list[str]:
    """Return an error's type and message, shortened, even if the error's own methods raise."""
    try:
        text = str(error)[:_MAX_ERROR_CHARACTERS]
    except BaseException:
        text = ""
    return [str(type(error).__name__)[:80], text]
