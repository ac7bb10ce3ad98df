"""Rewrites damaged on purpose: calibration samples that a careful reader should catch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from falter.records.rng import Rng
from falter.records.types import Rewrite

__all__ = ["FLAWS", "flawed"]

FLAWS = ("negation", "number", "other text", "truncated")

_NOT = re.compile(r"n['’]t\b|\s(?:not|never)\b", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|does|do|did|has|have)\b"
    r"(?!['’])",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w]|[.,]\d)")


def flawed(rewrite: Rewrite, others: Sequence[Rewrite], rng: Rng) -> tuple[str, str] | None:
    """A kind of flaw and the damaged text; None if the text is too short for any.

    The kinds are tried in a seeded order. `others` are rewrites of other texts for the same
    perturbation. A negation is removed where there is a *not*, and else added to an English verb.
    """
    text = rewrite.text or ""
    makers: dict[str, Callable[[], str | None]] = {
        "negation": lambda: _negated(text, rng),
        "number": lambda: _renumbered(text, rng),
        "other text": lambda: _swapped(rewrite, others, rng),
        "truncated": lambda: _truncated(text),
    }
    for n in rng.order(len(FLAWS)):
        damaged = makers[FLAWS[n]]()
        if damaged and damaged.split() not in (text.split(), rewrite.source.split()):
            return FLAWS[n], damaged
    return None


def _negated(text: str, rng: Rng) -> str | None:
    negation = _NOT.search(text)
    if negation is not None:
        return text[: negation.start()] + text[negation.end() :]
    verbs = list(_VERB.finditer(text))
    if not verbs:
        return None
    at = rng.choice(verbs).end()
    return f"{text[:at]} not{text[at:]}"


def _renumbered(text: str, rng: Rng) -> str | None:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    number = rng.choice(numbers)
    return text[: number.start()] + str(int(number[0]) + 1 + rng.below(8)) + text[number.end() :]


def _swapped(rewrite: Rewrite, others: Sequence[Rewrite], rng: Rng) -> str | None:
    fitting = [other for other in others if other.source != rewrite.source and other.text]
    return rng.choice(fitting).text if fitting else None


def _truncated(text: str) -> str | None:
    """The first half: of the words, or of the characters in a script without spaces."""
    words = text.split(" ")
    if len(words) >= 4:
        return " ".join(words[: len(words) // 2]).rstrip(" ,;:")
    return text[: len(text) // 2] if len(words) == 1 and len(text) >= 10 else None
