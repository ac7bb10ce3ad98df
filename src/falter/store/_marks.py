"""Hashes as bytes: identities, and short marks that tell what was changed from what was not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

__all__ = ["blob", "cell_mark", "checksum", "content_mark", "name_of"]


def blob(identity: str) -> bytes:
    """The 32 bytes of a tagged hash."""
    return bytes.fromhex(identity[7:])


def name_of(key: bytes) -> str:
    """The tagged hash of 32 bytes."""
    return "sha256:" + key.hex()


def checksum(body: bytes) -> bytes:
    """Eight bytes that tell a damaged response from a whole one."""
    return hashlib.blake2b(body, digest_size=8).digest()


def cell_mark(row: Sequence[Any]) -> bytes:
    """Eight bytes over a planned cell: two cells that were swapped or copied no longer fit."""
    return checksum(b"|".join(v if isinstance(v, bytes) else b"%d" % v for v in row))


def content_mark(parts: Sequence[str | bytes | None]) -> bytes:
    """A hash of the parts of a cell, none of which runs into the next."""
    data = [p.encode("utf-8", "surrogatepass") if isinstance(p, str) else p for p in parts]
    joined = b"".join([b"-" if part is None else b"%d:%b" % (len(part), part) for part in data])
    return hashlib.blake2b(joined, digest_size=16).digest()
