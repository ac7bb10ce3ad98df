"""Stored prompts, read back: each text once, since every model and repeat of a run has it again."""

from __future__ import annotations

from functools import lru_cache

import orjson

from falter.core.codec import from_json
from falter.core.records import Prompt

__all__ = ["characters", "read_prompt"]

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
