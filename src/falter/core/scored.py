"""What a function under test may return, beside a plain text."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Scored"]


@dataclass(frozen=True, slots=True)
class Scored:
    """A text, and a score from 0 to 1 that the function gives it by itself.

    >>> Scored("Paris", 1.0)
    Scored(text='Paris', score=1.0)
    """

    text: str
    score: float | None = None
