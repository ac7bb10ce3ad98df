"""Identities and seeds: tagged SHA-256 hashes of canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no white space, UTF-8. The same bytes on every machine.

    The standard library writes what orjson refuses (half a surrogate pair, whole numbers beyond 64
    bits), in the same form.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


def digest(tag: str, *parts: Any) -> str:
    """`sha256:…` over a tag and its parts; the tag keeps two kinds of record apart."""
    return "sha256:" + raw_digest(tag, *parts).hex()


def raw_digest(tag: str, *parts: Any) -> bytes:
    """The 32 bytes of a digest."""
    return hashlib.sha256(canonical([tag, *parts])).digest()


def short(identity: str, length: int = 10) -> str:
    """An id shortened for people: the first hexadecimal digits, without the tag."""
    return identity.removeprefix("sha256:")[:length]


def step_seed(
    run_seed: int, name: str, version: int, occurrence: int, item_key: str, draw: int
) -> int:
    """The seed of one step of a recipe on one item.

    Neither the step's parameters nor its position enter, so that four typos contain the two
    typos of the weaker dose. The model does not enter, so that two models see the same variants.
    """
    data = canonical(["seed", run_seed, name, version, occurrence, item_key, draw])
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big")
