"""Letter case set right."""

from __future__ import annotations

import re

from falter.core.records import Prompt, Section
from falter.remedies._base import remedy
from falter.text import Replacement, replace_spans

__all__ = ["even_case"]

_WORD = re.compile(r"[^\W\d_]{2,}")
_ODD = 0.5
"""From this share of words with capitals behind their first letter on, a text is set right."""


@remedy("even_case")
def even_case(prompt: Prompt) -> Prompt:
    """An input that is mostly in capitals, or in a mixture of cases, is written small."""
    return prompt.with_sections(tuple(map(_evened, prompt.sections)))


def _evened(section: Section) -> Section:
    if section.kind not in ("input", "document"):
        return section
    words = list(_WORD.finditer(section.text))
    odd = [word for word in words if word[0][1:] != word[0][1:].lower()]
    if len(odd) < _ODD * len(words):
        return section
    changes: list[Replacement] = []
    for word in odd:
        start, end = word.span()
        before = section.text[:start].rstrip()
        begins = not before or before[-1] in ".?!"
        changes.append((start, end, word[0].capitalize() if begins else word[0].lower()))
    return replace_spans(section, changes)
