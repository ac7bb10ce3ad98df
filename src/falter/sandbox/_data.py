"""Messages between the sandbox's processes: plain data as tagged JSON, one message at a time.

Standard library only; nothing that comes in is ever executed. `pack` and `unpack` know a fixed
list of built-in kinds, so that what arrives has no methods of its own.
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
    "LARGEST",
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
LARGEST = 8 * 1024 * 1024
_LONGEST_ITERATOR = 100_000
_LONGEST_WORD = 200


class Uncrossable(BaseException):
    """A test hands over something that is not plain data."""


class Returned(BaseException):
    """A test hands on an object that the candidate returned and that did not cross."""


class Opaque:
    """A returned object of a kind that does not cross; equal to nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind} object>"


# Plain data as JSON


def pack(value: Any, strict: bool) -> Any:
    """A value as tagged JSON. What is not plain data raises if strict, and is named otherwise."""
    if value is None or isinstance(value, bool):
        return value
    # A subclass may redefine what it prints or equals; the plain value is what crosses.
    if isinstance(value, str):
        return str.__str__(value)
    # Python refuses to write more than 4,300 decimal digits; hexadecimal has no limit.
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else ["int", hex(value)]
    if isinstance(value, float):
        return float(value)
    for kind, name in _PILES:
        if isinstance(value, kind):
            return [name, [pack(v, strict) for v in value]]
    if isinstance(value, dict):
        return ["dict", [[pack(k, strict), pack(v, strict)] for k, v in value.items()]]
    if isinstance(value, (bytes, bytearray)):
        return [type(value).__name__, bytes(value).hex()]
    for kind, name in _PRINTED:
        if isinstance(value, kind):
            return [name, str(value)]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    if isinstance(value, Opaque):
        raise Returned(value.kind)
    if hasattr(value, "__next__"):
        return ["iterator", [pack(v, strict) for v, _ in zip(value, range(_LONGEST_ITERATOR))]]  # noqa: B905
    if strict:
        raise Uncrossable(type(value).__name__)
    return ["opaque", type(value).__name__]


_PILES: tuple[tuple[Any, str], ...] = (
    (list, "list"),
    (tuple, "tuple"),
    (set, "set"),
    (frozenset, "frozenset"),
    (type({}.keys()), "set"),  # equal to a set of the same elements, as tests may compare it
)
_PRINTED: tuple[tuple[Any, str], ...] = (
    (complex, "complex"),
    (Fraction, "Fraction"),
    (Decimal, "Decimal"),
)


def unpack(data: Any) -> Any:
    """The value that `pack` took apart."""
    if not isinstance(data, list):
        return data
    kind, inner = data
    return _UNPACK[kind](inner)


def _many(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda inner: make([unpack(v) for v in inner])


def _fraction(text: str) -> Fraction:
    """A fraction as it is printed; not `1e99999999`, which would take for ever to write out."""
    above, _, below = text.partition("/")
    return Fraction(int(above), int(below or 1))


_UNPACK: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "list": _many(list),
    "tuple": _many(tuple),
    "set": _many(set),
    "frozenset": _many(frozenset),
    "iterator": _many(iter),
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
    """Return a message with its length in front."""
    # UTF-8 and not \u escapes, which take twelve bytes for an emoji instead of four. Half of a
    # surrogate pair is a value that a program may return.
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return struct.pack(">I", len(data)) + data


def send(fd: int, message: Any) -> None:
    """Write a message, whole."""
    rest = memoryview(framed(message))
    while rest:
        rest = rest[os.write(fd, rest) :]


def receive(fd: int) -> Any:
    """The next message, or None at the end; `ValueError` for one that is too long."""
    head = _exactly(fd, 4)
    if head is None:
        return None
    (length,) = struct.unpack(">I", head)
    if length > LARGEST:
        raise ValueError("too much data at once")
    body = _exactly(fd, length)
    return None if body is None else json.loads(body)


def _exactly(fd: int, wanted: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < wanted:
        piece = os.read(fd, min(wanted - len(parts), 1 << 16))
        if not piece:
            return None
        parts += piece
    return bytes(parts)


# Errors


def described(error: BaseException) -> list[str]:
    """The error's type and message, in few words; whatever its own methods do."""
    try:
        text = str(error)[:_LONGEST_WORD]
    except BaseException:
        text = ""
    return [str(type(error).__name__)[:80], text]
