"""The edges of words in patterns that are made for the options of one item.

Such a pattern is compiled for every item, so what it is made of counts: a class of thousands of
characters costs milliseconds each time it occurs, and twenty times that where case is ignored.
Edges are therefore written once around all options, and where case means something.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

# A letter or digit; Chinese and Japanese ones stand beside words without a space.
_OF_A_WORD = r"(?-i:[^\W\u3040-\u9fff])"
NO_WORD_BEFORE = f"(?<!{_OF_A_WORD})"
NO_WORD_AFTER = f"(?!{_OF_A_WORD})"


def either(parts: Iterable[tuple[bool, str]], before: str, after: str) -> str:
    """One of several patterns, tried in order; those that have edges stand between these two."""
    groups = (
        (edged, "|".join(part for _, part in group))
        for edged, group in groupby(parts, key=lambda p: p[0])
    )
    return "|".join(f"{before}(?:{some}){after}" if edged else some for edged, some in groups)
