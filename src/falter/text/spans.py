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

    Spans that only touch are not joined. An empty span marks the point between two characters. It
    is dropped if it lies inside another span.
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

    An empty span counts if it lies strictly between `start` and `end`.
    """
    # The ends of merged spans rise with their starts, so the first one that ends after `start`
    # decides.
    i = bisect_right(spans, start, key=itemgetter(1))
    return i < len(spans) and spans[i][0] < end


def uncovered(spans: Iterable[Span], covered: Sequence[Span]) -> list[Span]:
    """Return the sorted `spans` that overlap none of the merged `covered`, in one pass."""
    if not covered:
        return list(spans)
    out: list[Span] = []
    ahead = iter(covered)
    first, last = next(ahead)
    for span in spans:
        start, end = span
        while last <= start:
            first, last = next(ahead, _PAST_END)
        if first >= end:
            out.append(span)
    return out


_PAST_END = (sys.maxsize, sys.maxsize)


# Edits: replacing spans of a section while recording which original text each came from

Replacement = tuple[int, int, str]


class Segment(NamedTuple):
    """A piece of a section, either unchanged or edited."""

    kind: Literal["same", "edit"]
    before: str
    after: str


@lru_cache(maxsize=512)  # many prompts get the same text
def added(name: str, text: str, kind: SectionKind = "added") -> Section:
    """Return a new section whose text counts as one edit."""
    edit = Edit(start=0, end=0, new_start=0, new_end=len(text))
    return Section(name=name, kind=kind, text=text, edits=(edit,))


def replace_spans(section: Section, replacements: Sequence[Replacement]) -> Section:
    """Return the section with spans of its text replaced, and its edits and spans updated.

    `replacements` are sorted `(start, end, text)` in the present text. Overlapping deletions are
    clipped; other overlaps raise `ValueError`. Each edit of the result leads from the section's
    original text to its new text. Earlier edits are kept and shifted. A replacement that overlaps
    an earlier edit is joined with it into one edit.
    """
    if not replacements:
        return section
    # Steps that delete may find overlapping spans, such as a word and a phrase that contains it.
    clean = _clipped(replacements, len(section.text))
    edits = _edits_of(clean) if not section.edits else _compose(section.edits, clean)
    protected = _shift_spans(section.protected, clean) if section.protected else ()
    return Section(
        name=section.name,
        kind=section.kind,
        text=replaced(section.text, clean),
        protected=protected,
        edits=tuple(edits),
        opens=section.opens,
    )


def diff_spans(original: str, section: Section) -> list[Segment]:
    """Return the section as segments in order: unchanged text, and each edit before and after.

    Raise `ValueError` if the edits do not lead from `original` to the section's text.
    """
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
    """Return the text with sorted replacements that do not overlap."""
    parts: list[str] = []
    at = 0
    for start, end, new in replacements:
        parts += (text[at:start], new)
        at = end
    parts.append(text[at:])
    return "".join(parts)


def _edits_of(replacements: Sequence[Replacement]) -> Iterator[Edit]:
    shift = 0
    for start, end, text in replacements:
        new_end = start + shift + len(text)
        yield Edit(start=start, end=end, new_start=start + shift, new_end=new_end)
        shift = new_end - end


def _compose(edits: Sequence[Edit], replacements: Sequence[Replacement]) -> Iterator[Edit]:
    """Yield the edits from the original to the new text; `edits` lead to the present text."""
    back = shift = 0  # offsets up to here: present minus original, new minus present
    for start, end, grown, growing in _merged_changes(edits, replacements):
        yield Edit(
            start=start - back,
            end=end - back - grown,
            new_start=start + shift,
            new_end=end + shift + growing,
        )
        back += grown
        shift += growing


def _merged_changes(
    edits: Sequence[Edit], replacements: Sequence[Replacement]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield groups of overlapping changes as (start, end, grown, growing).

    `start` and `end` are offsets in the present text. `grown` is the growth in characters since the
    original text, `growing` the growth by the replacements.
    """
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


def _shift_spans(spans: Sequence[Span], replacements: Sequence[Replacement]) -> tuple[Span, ...]:
    """Return spans of the present text as spans of the new text.

    A replacement that overlaps an end of a span shortens the span. A span strictly inside a
    replacement is dropped, or becomes empty if the replacement has no text.
    """
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
