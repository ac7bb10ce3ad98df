"""Arithmetic on sorted spans."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from falter.core.records import Span

__all__ = ["merged", "overlaps", "uncovered"]


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans sorted, with those that overlap joined.

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
    """Whether any of the merged spans shares a character with start … end.

    An empty span counts when it lies strictly inside.
    """
    # The ends of merged spans rise with their starts, so the first one that ends after `start`
    # decides.
    i = bisect_right(spans, start, key=_end)
    return i < len(spans) and spans[i][0] < end


def _end(span: Span) -> int:
    return span[1]


def uncovered(found: Iterable[Span], spans: Sequence[Span]) -> list[Span]:
    """Those of the sorted `found` that overlap none of the merged spans, in one pass."""
    if not spans:
        return list(found)
    out: list[Span] = []
    i, last = 0, len(spans)
    for start, end in found:
        while i < last and spans[i][1] <= start:
            i += 1
        if i == last or spans[i][0] >= end:
            out.append((start, end))
    return out
