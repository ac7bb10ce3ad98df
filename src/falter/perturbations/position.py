"""Perturbations of position: parts of a template, documents and list items in another order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

from falter.perturbations import turns  # noqa: F401  (they register)
from falter.perturbations.base import locked_spans, prompt_perturbation
from falter.perturbations.template_parts import (
    Order,
    Role,
    allowed_orders,
    another_order,
    double_moves,
    joined_sections,
    rearranged,
    reordered,
    single_moves,
    template_range,
    template_units,
)
from falter.records.lazy_regex import lazy_regex, named_regex
from falter.records.rng import Rng
from falter.records.types import Demonstration, Prompt, Section, SectionKind, Span
from falter.text.code import fences
from falter.text.spans import Replacement, overlaps, replace_spans

_bundled_regex = partial(named_regex, "perturbations")

# Bullet lists inside the sections of a prompt

_LISTED_KINDS: tuple[SectionKind, ...] = ("instruction", "input", "document", "output_format")
_TEMPLATE_KINDS: tuple[SectionKind, ...] = ("instruction", "output_format")
# "- milk", "  • milk"; not "-milk", "milk".
_BULLET = lazy_regex(r"([ \t]*)([-*•‣◦+])[ \t]+\S")
# Items that tell a story, or refer to each other, have an order that matters.
_SEQUENTIAL = _bundled_regex("sequential")
# An item whose number would be wrong in another place. "1. Rome", "(b) Rome", "iv) Rome"; not
# "Rome", "10 Rome".
_NUMBERED = lazy_regex(r"\W*(?:\d{1,3}[.):]|\(?(?:[a-z]|[ivx]{1,4})[.)])\s", re.IGNORECASE)
# Words that call a list a sequence, anywhere in the template's own words.
_IN_THIS_ORDER = _bundled_regex("in_this_order")
# Words that call a list a sequence, in it or in its lead-in. For a list in the input, they count
# anywhere.
_ORDER = _bundled_regex("order")
# The order of lines with dates or times matters. "2024-05", "10:30"; not "May 5".
_DATED = lazy_regex(r"\W*\d{1,4}[:/.-]\d{1,2}\b")
# A line that goes on in the next one. "red and", "then", "("; not "red", "sand".
_JOINED = lazy_regex(r"(?:\b(?:and|or|then)|[({\[])\s*$", re.IGNORECASE)


def bullet_lists(text: str) -> Iterator[list[Span]]:
    """Yield the lists of two items or more with the same mark and indent, each as item spans.

    An item reaches to the next one, so lines nested below it belong to it. Lists in fenced code do
    not count, nor do lists whose order matters: steps, dates, "the item above".
    """
    for items in _outermost_lists(text):
        texts = [text[start:end].lstrip(" \t-*•‣◦+") for start, end in items]
        ordered = any(map(_SEQUENTIAL.match, texts)) or all(map(_NUMBERED.match, texts))
        ordered = ordered or sum(map(bool, map(_DATED.match, texts))) > 1
        if len(set(texts)) > 1 and not ordered and not any(map(_JOINED.search, texts)):
            yield items


def _outermost_lists(text: str) -> Iterator[list[Span]]:
    """Yield the outermost lists, each as item spans.

    A list ends at a line that is no item, not indented below an item, and not blank.
    """
    items: list[list[int]] = []
    mark: tuple[str, str] | None = None
    fenced = fences(text)
    for line in re.finditer(r"[^\n]*\n?", text):
        words, (start, end) = line[0].rstrip(), line.span()
        end, depth = start + len(words), len(words) - len(words.lstrip())
        bullet = None if overlaps(fenced, start, end) else _BULLET.match(words)
        if bullet is not None and mark in (None, bullet.groups()):
            mark = bullet[1], bullet[2]
            items.append([start, end])
        elif words and items and mark is not None and depth > len(mark[0]):
            items[-1][1] = end
        elif words or start == len(text):
            yield from _whole_items(items)
            items, mark = [], None
            if bullet is not None:
                items, mark = [[start, end]], (bullet[1], bullet[2])
    yield from _whole_items(items)


def _whole_items(items: Sequence[Sequence[int]]) -> Iterator[list[Span]]:
    if len(items) > 1:
        yield [(start, end) for start, end in items]


def _is_untouched(section: Section, parts: Sequence[Span]) -> bool:
    """Return True if nothing from the first to the last part is protected or has been edited."""
    return not overlaps(locked_spans(section), parts[0][0], parts[-1][1])


def _open_lists(sections: Sequence[Section], at: int) -> list[list[Span]]:
    """Return the lists of one section that may be reordered: untouched, and complete in it."""
    section = sections[at]
    if section.kind not in _LISTED_KINDS:
        return []
    own = section.kind in _TEMPLATE_KINDS
    kinds, pattern = (_TEMPLATE_KINDS, _IN_THIS_ORDER) if own else (_LISTED_KINDS, _ORDER)
    if any(pattern.search(s.text) for s in sections if s.kind in kinds):
        return []  # the order may be what the prompt is about
    before, after = _neighbours(sections, at)
    return [
        items
        for items in bullet_lists(section.text)
        if _is_untouched(section, items)
        and not _ORDER.search(_with_lead_in(sections, at, items))
        and (before or "\n" in section.text[: items[0][0]])
        and (after or "\n" in section.text[items[-1][1] :])
    ]


def _with_lead_in(sections: Sequence[Section], at: int, items: Sequence[Span]) -> str:
    """Return a list's text with its lead-in: the paragraph right above it, or one with a colon."""
    text = sections[at].text
    before = "".join(s.text for s in sections[:at] if s.kind != "system") + text[: items[0][0]]
    lead = before.rstrip().rpartition("\n\n")[2]
    leads = lead.endswith(":") or "\n\n" not in before[len(before.rstrip()) :]
    return (lead if leads else "") + text[items[0][0] : items[-1][1]]


def _neighbours(sections: Sequence[Section], at: int) -> tuple[bool, bool]:
    """Return two flags: a line break before the section, and a line break after it."""
    body = [(i, s.text) for i, s in enumerate(sections) if s.kind != "system" and s.text]
    before = [text for i, text in body if i < at]
    after = [text for i, text in body if i > at]
    starts = not before or before[-1].endswith("\n")
    return starts, not after or after[0].startswith("\n")


# The documents of a prompt: each in a separate section, or all in one text

Split = Literal["marked", "paragraphs"]

_MARK = _bundled_regex("document_mark")


def documents(text: str, split: Split) -> list[Span]:
    """Return the spans of the documents in one text.

    `marked`: each document begins with a mark of the same kind on a separate line, such as `[2]`,
    `Document 2:` or `<document>`. `paragraphs`: each paragraph is a document.
    """
    if split == "paragraphs":
        return [m.span() for m in re.finditer(r"\S[^\n]*(?:\n[ \t]*[^\s][^\n]*)*", text)]
    marks = [(m.end() - len(m[0].lstrip("\n")), next(filter(None, m.groups())).casefold())
             for m in _MARK.finditer(text)]  # fmt: skip
    starts = [at for at, kind in marks if kind == marks[0][1]]
    ends = [*starts[1:], len(text)] if starts else []
    return [
        (start, start + len(text[start:end].rstrip()))
        for start, end in zip(starts, ends, strict=True)
    ]


def _documents_in(section: Section, split: Split) -> list[Span]:
    """Return the documents' spans in one section; empty if there is nothing to reorder."""
    if section.kind != "document":
        return []
    spans = documents(section.text, split)
    return spans if _differ(section.text, spans) and _is_untouched(section, spans) else []


def _differ(text: str, parts: Sequence[Span]) -> bool:
    return len({text[start:end] for start, end in parts}) > 1


def placed_documents(sections: Sequence[Section]) -> tuple[Span, list[Span]] | None:
    """Return the index range of the template's sections, and the documents' spans in their text.

    The spans include the documents' labels. None unless at least two documents are separate
    sections that can change places.
    """
    first, last = template_range(sections)
    part = sections[first:last]
    text, spans = joined_sections(part)
    unlabelled = [
        span
        for section, span in zip(part, spans, strict=True)
        if section.kind == "document" and section.text.strip()
    ]
    apart = all("\n" in text[a[1] : b[0]] for a, b in pairwise(unlabelled))
    if not apart or not _differ(text, unlabelled):
        return None
    for parts in (_with_labels(text, unlabelled), unlabelled):
        if parts and reordered(part, parts, range(len(parts))[::-1]) is not None:
            return (first, last), parts
    return None


_LABEL_NUMBER = re.compile(r"\d+|\b[A-Z]\b|\b[ivx]+\b")


def _with_labels(text: str, unlabelled: Sequence[Span]) -> list[Span]:
    """Return the documents' spans with their labels, on the same line or the line above.

    Empty unless all labels are alike, apart from their numbers.
    """
    for reach in (2, 1):
        starts = [_line_start(text, start, reach) for start, _ in unlabelled]
        labels = {
            _LABEL_NUMBER.sub("#", text[a:b]).strip()
            for a, (b, _) in zip(starts, unlabelled, strict=True)
        }
        apart = all(a >= end for a, (_, end) in zip(starts[1:], unlabelled[:-1], strict=True))
        if apart and len(labels) == 1 and "".join(labels):
            return [(a, end) for a, (_, end) in zip(starts, unlabelled, strict=True)]
    return []


def _line_start(text: str, at: int, lines: int) -> int:
    """Return the start of the line, or of the line above if that is a heading.

    Only white space may be between the heading and `at`. With `lines=1` the line above does not
    count.
    """
    start = text.rfind("\n", 0, at) + 1
    above = text.rfind("\n", 0, max(0, start - 1)) + 1
    heading = text[above : max(0, start - 1)].rstrip()
    if lines > 1 and not text[start:at].strip() and heading.endswith((":", ">", "]")):
        return above
    return start


# Parts of the template


@lru_cache(maxsize=32)  # needed once to check that there are any, and once to draw one
def _allowed_moves(prompt: Prompt, role: Role) -> list[Order]:
    return allowed_orders(prompt, single_moves(template_units(prompt.sections), role))


def _can_move(role: Role, prompt: Prompt) -> bool:
    return bool(_allowed_moves(prompt, role))


@prompt_perturbation("move_context", eligible=partial(_can_move, "context"))
def move_context(prompt: Prompt, rng: Rng) -> Prompt:
    """Moves the task's input, with its labels, to another place in the template."""
    return rearranged(prompt, rng.choice(_allowed_moves(prompt, "context")))


@prompt_perturbation("move_output_instructions", eligible=partial(_can_move, "output"))
def move_output_instructions(prompt: Prompt, rng: Rng) -> Prompt:
    """Moves the rules for the form of the answer to another place in the template."""
    return rearranged(prompt, rng.choice(_allowed_moves(prompt, "output")))


# Documents and lists


def _part_texts(text: str, parts: Sequence[Span]) -> list[str]:
    return [text[start:end] for start, end in parts]


def _reordered(section: Section, lists: Sequence[Sequence[Span]], rng: Rng) -> Section:
    """Return the section with the parts of each list reordered; the text between parts stays."""
    changes: list[Replacement] = []
    for parts in lists:
        texts = _part_texts(section.text, parts)
        for (start, end), now in zip(parts, another_order(texts, rng), strict=True):
            if section.text[start:end] != texts[now]:
                changes.append((start, end, texts[now]))
    return replace_spans(section, changes)


def _can_reorder_documents(prompt: Prompt, split: Split = "marked") -> bool:
    return placed_documents(prompt.sections) is not None or any(
        _documents_in(section, split) for section in prompt.sections
    )


@prompt_perturbation("reorder_documents", eligible=_can_reorder_documents)
def reorder_documents(prompt: Prompt, rng: Rng, split: Split) -> Prompt:
    """Reorders the documents; each keeps its own label."""
    sections = prompt.sections
    placed = placed_documents(sections)
    if placed is None:
        spans_by_section = [_documents_in(section, split) for section in sections]
        return prompt.with_sections(
            tuple(
                _reordered(s, [spans] if spans else [], rng)
                for s, spans in zip(sections, spans_by_section, strict=True)
            )
        )
    (first, last), parts = placed
    text = "".join(section.text for section in sections[first:last])
    order = another_order(_part_texts(text, parts), rng)
    moved = reordered(sections[first:last], parts, order) or sections[first:last]
    return prompt.with_sections((*sections[:first], *moved, *sections[last:]))


def _can_reorder_bullets(prompt: Prompt) -> bool:
    return any(_open_lists(prompt.sections, at) for at in range(len(prompt.sections)))


@prompt_perturbation("reorder_bullets", eligible=_can_reorder_bullets)
def reorder_bullets(prompt: Prompt, rng: Rng) -> Prompt:
    """Reorders the items of bullet lists; nested lines move with their item."""
    sections = prompt.sections
    return prompt.with_sections(
        tuple(_reordered(s, _open_lists(sections, at), rng) for at, s in enumerate(sections))
    )


def _can_reorder_demonstrations(prompt: Prompt) -> bool:
    return len({_demonstration_text(d) for d in prompt.demonstrations}) > 1


def _demonstration_text(demonstration: Demonstration) -> str:
    return "".join(s.text for s in demonstration.sections) + f"\n{demonstration.answer}"


@prompt_perturbation("demonstration_order", eligible=_can_reorder_demonstrations)
def demonstration_order(prompt: Prompt, rng: Rng) -> Prompt:
    """Shows the same solved examples in another order."""
    shown = prompt.demonstrations
    order = another_order([_demonstration_text(demonstration) for demonstration in shown], rng)
    return replace(prompt, demonstrations=tuple(shown[n] for n in order))


# Several at once


def _can_mix(prompt: Prompt) -> bool:
    """Return True if the prompt allows at least two kinds of change."""
    can_move = [_can_move("context", prompt), _can_move("output", prompt)]
    return sum((*can_move, _can_reorder_bullets(prompt), _can_reorder_documents(prompt))) > 1


@prompt_perturbation("mixed_positions", eligible=_can_mix)
def mixed_positions(prompt: Prompt, rng: Rng) -> Prompt:
    """Makes all of these changes at once that the prompt allows, at least two kinds."""
    if _can_reorder_bullets(prompt):
        prompt = reorder_bullets(prompt, rng)
    if _can_reorder_documents(prompt):
        prompt = reorder_documents(prompt, rng)
    # The moves of both kinds together; of one kind if the other has nowhere to go
    together = allowed_orders(
        prompt, double_moves(template_units(prompt.sections), "context", "output")
    )
    orders = together or _allowed_moves(prompt, "context") or _allowed_moves(prompt, "output")
    return rearranged(prompt, rng.choice(orders)) if orders else prompt
