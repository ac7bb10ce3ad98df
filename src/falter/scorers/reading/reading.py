"""The result of reading a reply: an answer with the way it was found, or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from falter.records.types import Tier

T = TypeVar("T")

READER_VERSION = 3
"""Raised with every change that can read a reply differently; stored with each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T]):
    """An answer taken from a reply, with its tier; or no answer, and the reason.

    `stated`: the reply is the answer, or marks it. `inferred`: prose from which a careful reader
    takes one answer. Without an answer, `tier` is None and `reason` says why in a few words.
    """

    answer: T | None = None
    tier: Tier | None = None
    reason: str = ""
