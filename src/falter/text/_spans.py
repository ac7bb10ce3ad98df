"""Arithmetic on sorted spans."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

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
    i = bisect_right(spans, start, key=itemgetter(1))
    return i < len(spans) and spans[i][0] < end


def uncovered(spans: Iterable[Span], covered: Sequence[Span]) -> list[Span]:
    """The sorted `spans` that overlap none of the merged `covered`, in one pass."""
    if not covered:
        return list(spans)
    out: list[Span] = []
    i, last = 0, len(covered)
    for start, end in spans:
        while i < last and covered[i][1] <= start:
            i += 1
        if i == last or covered[i][0] >= end:
            out.append((start, end))
    return out
