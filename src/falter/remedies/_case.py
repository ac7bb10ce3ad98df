"""Letter case set right."""

from __future__ import annotations

import re

from falter.core.records import Prompt, Section
from falter.remedies._base import remedy
from falter.text import Replacement, overlaps, protect, replace_spans

__all__ = ["even_case"]

_WORD = re.compile(r"[^\W\d_]{2,}")
_LOUD = 0.6
"""From this share of words in capitals on, a text is taken to be shouted."""


@remedy("even_case")
def even_case(prompt: Prompt) -> Prompt:
    """Words with capitals inside, and texts all in capitals, are written small."""
    return prompt.with_sections(tuple(map(_evened, prompt.sections)))


def _evened(section: Section) -> Section:
    if section.kind not in ("input", "document"):
        return section
    words = list(_WORD.finditer(section.text))
    shouted = bool(words) and sum(w[0].isupper() for w in words) >= _LOUD * len(words)
    kept = () if shouted else protect(section.text)
    changes: list[Replacement] = []
    first = True
    for word in words:
        text, (start, end) = word[0], word.span()
        odd = shouted if text.isupper() else text[1:] != text[1:].lower()
        if odd and not overlaps(kept, start, end):
            changes.append((start, end, text.capitalize() if first else text.lower()))
        first = section.text[end : end + 1] in (".", "?", "!")
    return replace_spans(section, changes)
