"""Result of answer extraction: an answer with its tier, or the reason that there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from falter.records.types import Tier

T = TypeVar("T")

READER_VERSION = 3
"""Increased with every change that may extract a different answer; stored with each run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T]):
    """An extracted answer with its tier, or None with a reason.

    `stated`: the response consists of the answer or marks it. `inferred`: a careful reader takes
    one answer from the prose. Without an answer, `tier` is None and `reason` is a short text.
    """

    answer: T | None = None
    tier: Tier | None = None
    reason: str = ""
