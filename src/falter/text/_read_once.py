"""What is read in a text, remembered for the last short ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

__all__ = ["SHORT", "of_short_texts"]

T = TypeVar("T")
SHORT = 16_000
"""Characters: what is longer is not worth its memory."""


def of_short_texts(read: Callable[[str, str], T]) -> Callable[[str, str], T]:
    """`read(text, language)`, which remembers the last 64 short texts. Do not change the result."""
    remembered = lru_cache(maxsize=64)(read)

    def once(text: str, language: str) -> T:
        return remembered(text, language) if len(text) <= SHORT else read(text, language)

    return once
