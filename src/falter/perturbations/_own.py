"""What even changes to otherwise protected text leave alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from falter.core.records import Section, Span
from falter.text import merged, protect

__all__ = ["own_blocked"]


def own_blocked(section: Section, patterns: Sequence[str] = ()) -> tuple[Span, ...]:
    """The section's own protected spans, earlier edits, and what the user's patterns match.

    Code and arithmetic are not among them, as they are in `falter.text.blocked`.
    """
    if not patterns and not section.protected and not section.edits:
        return ()
    spans = [(edit.new_start, edit.new_end) for edit in section.edits]
    for pattern in _compiled(tuple(patterns)):
        spans += [match.span() for match in pattern.finditer(section.text)]
    return merged((*spans, *section.protected))


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    protect("", patterns)  # raises for what is no regular expression
    return tuple(re.compile(source) for source in patterns)
