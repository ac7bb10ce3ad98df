"""Spans of a text, and edits that record which original text each part came from."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple

from falter.records.types import Edit, Section, SectionKind, Span


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans sorted, and joined where they overlap.

    Spans that only touch stay apart. An empty span stands for the point between two characters:
    it survives unless another span holds it inside.
    """
    out: list[Span] = []
    for start, end in sorted(set(spans)):
        if out and start < out[-1][1]:
            if end > out[-1][1]:
                out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return tuple(out)


def overlaps(spans: Sequence[Span], start: int, end: int) -> bool:
    """Return True if any of the merged spans shares a character with start … end.

    An empty span counts when it lies strictly inside.
    """
    # The ends of merged spans rise with their starts, so the first one that ends after `start`
    # decides.
    i = bisect_right(spans, start, key=itemgetter(1))
    return i < len(spans) and spans[i][0] < end


def uncovered(spans: Iterable[Span], covered: Sequence[Span]) -> list[Span]:
    """The sorted `spans` that overlap none of the merged `covered`, in one pass."""
    if not covered:
        return list(spans)
    out: list[Span] = []
    ahead = iter(covered)
    first, last = next(ahead)
    for span in spans:
        start, end = span
        while last <= start:
            first, last = next(ahead, _BEHIND_ALL)
        if first >= end:
            out.append(span)
    return out


_BEHIND_ALL = (sys.maxsize, sys.maxsize)


# Edits: replacing spans of a section while recording which original text each came from

Replacement = tuple[int, int, str]


class Segment(NamedTuple):
    """A piece of a section, either unchanged or edited."""

    kind: Literal["same", "edit"]
    before: str
    after: str


@lru_cache(maxsize=512)  # many prompts get the same text
def added(name: str, text: str, kind: SectionKind = "added") -> Section:
    """A new section that counts as one edit."""
    edit = Edit(start=0, end=0, new_start=0, new_end=len(text))
    return Section(name=name, kind=kind, text=text, edits=(edit,))


def replace_spans(section: Section, replacements: Sequence[Replacement]) -> Section:
    """The section with spans of its text replaced, its edits composed and its spans shifted.

    `replacements` are `(start, end, text)` in the present text, sorted. Deletions that overlap
    are clipped; other overlaps raise. Each edit of the result leads from the section's original
    text to its present text: earlier edits are kept and shifted, and one that a replacement
    overlaps becomes one edit with it.
    """
    if not replacements:
        return section
    # Steps that delete may find two spans which overlap, as a word and a phrase that holds it.
    clean = _clipped(replacements, len(section.text))
    edits = _fresh(clean) if not section.edits else _composed(section.edits, clean)
    protected = _shifted(section.protected, clean) if section.protected else ()
    return Section(
        name=section.name,
        kind=section.kind,
        text=replaced(section.text, clean),
        protected=protected,
        edits=tuple(edits),
        opens=section.opens,
    )


def diff_spans(original: str, section: Section) -> list[Segment]:
    """The section as segments, in order: unchanged text, and each edit before and after."""
    out: list[Segment] = []
    at = new_at = 0
    for edit in section.edits:
        out += _same_segments(original[at : edit.start], section.text[new_at : edit.new_start])
        before, after = original[edit.start : edit.end], section.text[edit.new_start : edit.new_end]
        out.append(Segment("edit", before, after))
        at, new_at = edit.end, edit.new_end
    out += _same_segments(original[at:], section.text[new_at:])
    return out


def _same_segments(before: str, after: str) -> list[Segment]:
    if before != after:
        raise ValueError(f"the edits do not turn {before!r} into {after!r}")
    return [Segment("same", before, after)] if before else []


def _clipped(replacements: Sequence[Replacement], length: int) -> Sequence[Replacement]:
    at = 0
    for start, end, _ in replacements:
        if not at <= start <= end <= length:
            return _clip(replacements, length)
        at = end
    return replacements


def _clip(replacements: Sequence[Replacement], length: int) -> Sequence[Replacement]:
    out: list[Replacement] = []
    at = 0
    for start, end, text in replacements:
        if start < at and not text:
            start = at
            if end <= at:
                continue
        if not at <= start <= end <= length:
            raise ValueError(f"the replacement {(start, end, text)!r} overlaps or leaves the text")
        out.append((start, end, text))
        at = end
    return out


def replaced(text: str, replacements: Sequence[Replacement]) -> str:
    """The text with the sorted replacements, which do not overlap."""
    parts: list[str] = []
    at = 0
    for start, end, new in replacements:
        parts += (text[at:start], new)
        at = end
    parts.append(text[at:])
    return "".join(parts)


def _fresh(replacements: Sequence[Replacement]) -> Iterator[Edit]:
    shift = 0
    for start, end, text in replacements:
        new_end = start + shift + len(text)
        yield Edit(start=start, end=end, new_start=start + shift, new_end=new_end)
        shift = new_end - end


def _composed(edits: Sequence[Edit], replacements: Sequence[Replacement]) -> Iterator[Edit]:
    """Edits from the original text to the new one, by way of the present one."""
    back = shift = 0  # present minus original, new minus present, up to here
    for start, end, grown, growing in _groups(edits, replacements):
        yield Edit(
            start=start - back,
            end=end - back - grown,
            new_start=start + shift,
            new_end=end + shift + growing,
        )
        back += grown
        shift += growing


def _groups(
    edits: Sequence[Edit], replacements: Sequence[Replacement]
) -> Iterator[tuple[int, int, int, int]]:
    """Overlapping changes merged: their span in the present text, how much it has grown since the
    original, and how much it grows now."""
    present = [
        (e.new_start, e.new_end, e.new_end - e.new_start - e.end + e.start, 0) for e in edits
    ]
    coming = [(start, end, 0, len(text) - end + start) for start, end, text in replacements]
    changes = sorted(present + coming, key=lambda change: change[:2])
    start, end, grown, growing = changes[0]
    for next_start, next_end, a, b in changes[1:]:
        if next_start < end:
            end, grown, growing = max(end, next_end), grown + a, growing + b
        else:
            yield start, end, grown, growing
            start, end, grown, growing = next_start, next_end, a, b
    yield start, end, grown, growing


def _shifted(spans: Sequence[Span], replacements: Sequence[Replacement]) -> tuple[Span, ...]:
    """Spans of the present text as spans of the new one; a cut into a span makes it shorter."""
    starts = [start for start, _, _ in replacements]
    ends = [end for _, end, _ in replacements]
    growth = [0]
    for start, end, text in replacements:
        growth.append(growth[-1] + len(text) - (end - start))

    def begin(at: int) -> int:
        i = bisect_right(ends, at)
        cut = i < len(starts) and starts[i] < at
        return ends[i] + growth[i + 1] if cut else at + growth[i]

    def finish(at: int) -> int:
        i = bisect_left(starts, at)
        cut = i > 0 and ends[i - 1] > at
        return starts[i - 1] + growth[i - 1] if cut else at + growth[i]

    moved = ((begin(start), finish(end)) for start, end in spans)
    return tuple((start, end) for start, end in moved if start <= end)
