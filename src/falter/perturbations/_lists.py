"""Bullet lists inside the sections of a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from falter.core.late_regex import late_regex
from falter.core.records import Section, SectionKind, Span
from falter.text import merged, overlaps

__all__ = ["bullet_lists", "is_open", "open_lists"]

_KINDS: tuple[SectionKind, ...] = ("instruction", "input", "document", "output_format")
_BULLET = late_regex(r"([ \t]*)([-*•‣◦+])[ \t]+\S")
_FENCE = late_regex(r"\s*(?:`{3,}|~{3,})")
# Items that tell a story, or point at one another, have an order that matters.
_SEQUENTIAL = late_regex(
    r"\W*(?:step|first|firstly|second|secondly|third|then|next|after|afterwards|before|finally"
    r"|lastly|last)\b|.*\b(?:above|below|previous|preceding|following)\b",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERED = late_regex(r"\W*(?:\d{1,3}[.):]|\(?(?:[a-z]|[ivx]{1,4})[.)])\s", re.IGNORECASE)
# What calls a list a sequence, wherever in the prompt it stands.
_ORDER = late_regex(
    r"\b(?:in (?:this|that|the(?: (?:given|following|same|right|correct|exact))?) order"
    r"|in (?:order|sequence|turn)\s*[:.]|steps?\b(?! by)|step by step|sequence|chronological(?:ly)?"
    r"|ranked|ranking|timeline|one after (?:the other|another)|from (?:first|oldest|best|most)\b"
    r"|procedure|recipe|instructions? below|priorit(?:y|ies|ised|ized))",
    re.IGNORECASE,
)
_DATED = late_regex(r"\W*\d{1,4}[:/.-]\d{1,2}\b")
_JOINED = late_regex(r"(?:\b(?:and|or|then)|[({\[])\s*$", re.IGNORECASE)


def bullet_lists(text: str) -> Iterator[list[Span]]:
    """The lists of two items or more with the same mark and indent, items as spans.

    An item reaches to the next one: lines nested below it belong to it. Lists in fenced code do
    not count, nor do lists whose order matters: steps, dates, "the item above".
    """
    for items in _lists(text):
        texts = [text[start:end].lstrip(" \t-*•‣◦+") for start, end in items]
        ordered = any(map(_SEQUENTIAL.match, texts)) or all(map(_NUMBERED.match, texts))
        ordered = ordered or sum(map(bool, map(_DATED.match, texts))) > 1
        if len(set(texts)) > 1 and not ordered and not any(map(_JOINED.search, texts)):
            yield items


def _lists(text: str) -> Iterator[list[Span]]:
    """Outermost lists; one ends at a line that is no item, not indented below one and not blank."""
    items: list[list[int]] = []
    mark: tuple[str, str] | None = None
    fenced = False
    for line in re.finditer(r"[^\n]*\n?", text):
        words, (start, end) = line[0].rstrip(), line.span()
        end, depth = start + len(words), len(words) - len(words.lstrip())
        if _FENCE.match(words):
            fenced = not fenced
        bullet = None if fenced else _BULLET.match(words)
        if bullet is not None and mark in (None, bullet.groups()):
            mark = bullet[1], bullet[2]
            items.append([start, end])
        elif words and items and mark is not None and depth > len(mark[0]):
            items[-1][1] = end
        elif words or start == len(text):
            yield from _whole(items)
            items, mark = [], None
            if bullet is not None:
                items, mark = [[start, end]], (bullet[1], bullet[2])
    yield from _whole(items)


def _whole(items: Sequence[Sequence[int]]) -> Iterator[list[Span]]:
    if len(items) > 1:
        yield [(start, end) for start, end in items]


def is_open(section: Section, parts: Sequence[Span]) -> bool:
    """Whether nothing between the first and the last part is protected or has been edited."""
    closed = merged((*section.protected, *((e.new_start, e.new_end) for e in section.edits)))
    return not overlaps(closed, parts[0][0], parts[-1][1])


def open_lists(sections: Sequence[Section], at: int) -> list[list[Span]]:
    """The lists of one section that may be reordered: untouched, and complete in the section."""
    section = sections[at]
    if section.kind not in _KINDS:
        return []
    if any(_ORDER.search(s.text) for s in sections if s.kind in _KINDS):
        return []  # the order may be what the prompt is about
    before, after = _neighbours(sections, at)
    return [
        items
        for items in bullet_lists(section.text)
        if is_open(section, items)
        and (before or "\n" in section.text[: items[0][0]])
        and (after or "\n" in section.text[items[-1][1] :])
    ]


def _neighbours(sections: Sequence[Section], at: int) -> tuple[bool, bool]:
    """Whether the section begins and ends with a line break around it."""
    body = [(i, s.text) for i, s in enumerate(sections) if s.kind != "system" and s.text]
    before = [text for i, text in body if i < at]
    after = [text for i, text in body if i > at]
    starts = not before or before[-1].endswith("\n")
    return starts, not after or after[0].startswith("\n")
