"""Identities and seeds: tagged SHA-256 hashes of canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson


def canonical(value: Any) -> bytes:
    """Return a value as canonical JSON: sorted keys, no white space, UTF-8.

    The bytes are equal on every machine. The standard library encodes values that orjson refuses
    (lone surrogates, integers beyond 64 bits), in the same form.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


def digest(tag: str, *parts: Any) -> str:
    """Return `sha256:…` over a tag and its parts; the tag separates kinds of records."""
    return "sha256:" + raw_digest(tag, *parts).hex()


def raw_digest(tag: str, *parts: Any) -> bytes:
    """Return the 32 bytes of a digest."""
    return hashlib.sha256(canonical([tag, *parts])).digest()


def short(identity: str, length: int = 10) -> str:
    """Return the first hexadecimal digits of an id, without its tag, for display."""
    return identity.removeprefix("sha256:")[:length]


def step_seed(
    run_seed: int, name: str, version: int, occurrence: int, item_key: str, draw: int
) -> int:
    """Return the seed of one step of a recipe on one item.

    The step's parameters and position do not enter. So the edits of a weaker dose are part of every
    stronger dose. The model does not enter either, so that all models see the same variants.
    """
    data = canonical(["seed", run_seed, name, version, occurrence, item_key, draw])
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big")
