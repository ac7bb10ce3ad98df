"""Rewrites inserted: which text of a section may be rewritten, and the section afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from falter.core.records import Prompt, Section, SectionKind, Span
from falter.perturbations._rewriting import NoRewrite, Rewritten
from falter.text import Replacement, blocked, replace_spans

__all__ = [
    "has_letters",
    "open_core",
    "put",
    "put_sections",
    "without_lost_parts",
]


def has_letters(text: str, spans: Sequence[Span]) -> bool:
    """Whether a text has a letter outside the sorted spans."""
    at = 0
    for start, end in (*spans, (len(text), len(text))):
        if any(map(str.isalpha, text[at:start])):
            return True
        at = max(at, end)
    return False


def open_core(section: Section, patterns: Sequence[str] = ()) -> Span | None:
    """The span of the section's text without surrounding white space, if it may be rewritten.

    It may not if an earlier step of the chain edited it, or if all its letters are protected.
    """
    text = section.text
    start = len(text) - len(text.lstrip())
    if section.edits or start == len(text) or not has_letters(text, blocked(section, patterns)):
        return None
    return start, len(text.rstrip())


def put_sections(
    prompt: Prompt,
    rewritten: Rewritten,
    scope: Sequence[SectionKind],
    patterns: Sequence[str] = (),
) -> Prompt:
    """The prompt with the sections in scope rewritten, each by itself."""
    sections = list(prompt.sections)
    for at, section in enumerate(sections):
        span = open_core(section, patterns) if section.kind in scope else None
        if span is not None:
            sections[at] = put(section, [(*span, rewritten(section.text[span[0] : span[1]]))])
    return prompt.with_sections(tuple(sections))


def put(section: Section, rewrites: Sequence[Replacement], *, whole: bool = False) -> Section:
    """The section with rewrites of some of its spans. What old and new text share stays open to
    later steps, unless each rewrite is to be one edit as a `whole`."""
    text = section.text
    changes: list[Replacement] = []
    for start, end, new in rewrites:
        old = text[start:end]
        if whole:
            changes += [(start, end, new)] if new != old else []
        else:
            changes += [(start + a, start + b, words) for a, b, words in _changes(old, new)]
    after = replace_spans(section, changes)
    return without_lost_parts(section, after)


def without_lost_parts(before: Section, after: Section) -> Section:
    """The section after a rewrite; a lost part that the section itself protects raises."""
    for start, end in before.protected:
        if before.text[start:end] not in after.text:
            raise NoRewrite(f"{before.text[start:end]!r} is protected, but the rewrite lost it")
    return after


# Words with the white space before them; scripts without spaces are split into characters.
_PIECE = re.compile(r"\s*(?:[A-Za-z0-9\u00c0-\u024f\u0370-\u052f'’-]+|\S)|\s+")


def _changes(old: str, new: str) -> Iterator[Replacement]:
    """Where two texts differ, word by word."""
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    starts = [0]
    for piece in before:
        starts.append(starts[-1] + len(piece))
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            yield starts[a], starts[b], "".join(after[c:d])
