"""Places where a rule of grammar may be written in another way, none inside another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from falter.core.records import Span
from falter.text import (
    Replacement,
    letter_symbols,
    mentioned_words,
    merged,
    names,
    overlaps,
)

__all__ = ["Rule", "rule_places"]

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def rule_places(text: str, blocked: Sequence[Span], rules: Iterable[Rule]) -> list[Replacement]:
    """What the rules would write, and where: not in names, mentioned words and symbols."""
    found = sorted(
        (match.start(), match.end(), write(match))
        for pattern, write in rules
        for match in pattern.finditer(text)
    )
    if not found:
        return []
    closed = merged((*blocked, *names(text), *mentioned_words(text), *letter_symbols(text)))
    taken: list[Replacement] = []
    for start, end, new in found:
        after_last = not taken or start >= taken[-1][1]
        if after_last and text[start:end] != new and not overlaps(closed, start, end):
            taken.append((start, end, new))
    return taken
