"""Places where a rule of grammar may be written in another way, none inside another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

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

_WORD = re.compile("[a-z]+")


class Rule(NamedTuple):
    """What is found, what is written there, and words of which one stands in all that is found.

    The words, in small letters, spare the search of a text that has none of them.
    """

    pattern: re.Pattern[str]
    write: Callable[[re.Match[str]], str]
    words: frozenset[str]


def rule_places(text: str, blocked: Sequence[Span], rules: Iterable[Rule]) -> list[Replacement]:
    """What the rules would write, and where: not in names, mentioned words and symbols."""
    words = frozenset(_WORD.findall(text.lower()))
    found: list[Replacement] = []
    for pattern, write, needed in rules:
        if not words.isdisjoint(needed):
            found += [(*match.span(), write(match)) for match in pattern.finditer(text)]
    if not found:
        return []
    found.sort()
    closed = merged((*blocked, *names(text), *mentioned_words(text), *letter_symbols(text)))
    taken: list[Replacement] = []
    for start, end, new in found:
        after_last = not taken or start >= taken[-1][1]
        if after_last and text[start:end] != new and not overlaps(closed, start, end):
            taken.append((start, end, new))
    return taken
