"""The documents of a prompt: each in a section of its own, or all in one text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from falter.core.records import Section, Span
from falter.perturbations._lists import is_open
from falter.perturbations._rearranging import inner, reordered

__all__ = ["Split", "documents", "documents_in", "placed_documents"]

Split = Literal["marked", "paragraphs"]

_MARK = re.compile(
    r"^[ \t]*(?:(\[)\d{1,3}\]|(<(?:document|doc|article|source|passage|text)\b)"
    r"|\W{0,3}(document|doc|article|source|passage|text|excerpt|snippet|file|page|kb)"
    r"\b[^\n:]{0,40}:)",
    re.IGNORECASE | re.MULTILINE,
)


def documents(text: str, split: Split) -> list[Span]:
    """The documents of one text.

    `marked`: each begins with a mark of the same kind on a line of its own, such as `[2]`,
    `Document 2:` or `<document>`. `paragraphs`: each paragraph is one.
    """
    if split == "paragraphs":
        return [m.span() for m in re.finditer(r"\S[^\n]*(?:\n[ \t]*[^\s][^\n]*)*", text)]
    marks = [(m.start(), next(filter(None, m.groups())).casefold()) for m in _MARK.finditer(text)]
    starts = [at for at, kind in marks if kind == marks[0][1]]
    ends = [*starts[1:], len(text)] if starts else []
    return [
        (start, start + len(text[start:end].rstrip()))
        for start, end in zip(starts, ends, strict=True)
    ]


def documents_in(section: Section, split: Split) -> list[Span]:
    """The documents of one section's text; none if there is nothing to reorder."""
    if section.kind != "document":
        return []
    spans = documents(section.text, split)
    return spans if _differ(section.text, spans) and is_open(section, spans) else []


def _differ(text: str, parts: Sequence[Span]) -> bool:
    return len({text[start:end] for start, end in parts}) > 1


def placed_documents(sections: Sequence[Section]) -> tuple[Span, list[Span]] | None:
    """The template's sections, and the spans of the documents with their labels in their text.

    None unless at least two documents have sections of their own that can change places.
    """
    first, last = inner(sections)
    part = sections[first:last]
    bare: list[Span] = []
    at = 0
    for section in part:
        if section.kind == "document" and section.text.strip():
            bare.append((at, at + len(section.text)))
        at += len(section.text)
    text = "".join(section.text for section in part)
    apart = all("\n" in text[a[1] : b[0]] for a, b in pairwise(bare))
    if not apart or not _differ(text, bare):
        return None
    for parts in (_labelled(text, bare), bare):
        if parts and reordered(part, parts, range(len(parts))[::-1]) is not None:
            return (first, last), parts
    return None


_NUMBERED = re.compile(r"\d+|\b[A-Z]\b|\b[ivx]+\b")


def _labelled(text: str, bare: Sequence[Span]) -> list[Span]:
    """The documents with their labels, on the same line or the one above, if all are alike."""
    for reach in (2, 1):
        starts = [_line_start(text, start, reach) for start, _ in bare]
        labels = {
            _NUMBERED.sub("#", text[a:b]).strip() for a, (b, _) in zip(starts, bare, strict=True)
        }
        apart = all(a >= end for a, (_, end) in zip(starts[1:], bare[:-1], strict=True))
        if apart and len(labels) == 1 and "".join(labels):
            return [(a, end) for a, (_, end) in zip(starts, bare, strict=True)]
    return []


def _line_start(text: str, at: int, lines: int) -> int:
    """The start of the line, or of the one above where that is a heading with nothing between."""
    start = text.rfind("\n", 0, at) + 1
    above = text.rfind("\n", 0, max(0, start - 1)) + 1
    heading = text[above : max(0, start - 1)].rstrip()
    if lines > 1 and not text[start:at].strip() and heading.endswith((":", ">", "]")):
        return above
    return start
