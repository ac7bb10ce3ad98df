"""Hashes as bytes: identities, and short marks that tell what was changed from what was not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson

from falter.records.codec import from_json
from falter.records.types import Prompt


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


# Stored prompts, read back: each text once, since every model and repeat of a run has it again.


# As many prompts up to this size are remembered: a few megabytes, whatever a store holds.
REMEMBERED, LONGEST = 1024, 4096


def read_prompt(body: bytes, *, whole: bool) -> tuple[Prompt, int]:
    """A prompt and the number of its edits; unless it is `whole`, without its texts."""
    return (_remembered if len(body) <= LONGEST else _read)(body, whole)


def _read(body: bytes, whole: bool) -> tuple[Prompt, int]:
    content = orjson.loads(body)
    edits = sum(len(section["edits"]) for section in content["sections"])
    if not whole:
        content["sections"] = content["demonstrations"] = ()
    return from_json(Prompt, content), edits


_remembered = lru_cache(REMEMBERED)(_read)


def characters(body: bytes) -> int:
    """The letters of a prompt: its sections and its demonstrations."""
    content = orjson.loads(body)
    parts = [content["sections"], *(d["sections"] for d in content["demonstrations"])]
    answers = sum(len(d["answer"]) for d in content["demonstrations"])
    return answers + sum(len(section["text"]) for part in parts for section in part)
