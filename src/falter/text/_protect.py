"""The protector: what no perturbation may touch.

One cheap search decides whether a text holds anything suspicious at all; for plain prose it is the
only one. Otherwise each family of patterns runs if one of its trigger characters occurs. Every
pattern has bounded quantifiers or stops at its own delimiter, so the time stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from falter.core.errors import InvalidValue
from falter.core.late_regex import late_regex
from falter.core.records import Span
from falter.text._code import braced, code_lines, fences
from falter.text._functions import python_code
from falter.text._numbers import MATH, MATH_CUE
from falter.text._patterns import CODE_FIRST, FAMILIES, SUSPICIOUS, Family
from falter.text._spans import merged

__all__ = ["protect"]


def protect(text: str, patterns: Sequence[str] = ()) -> tuple[Span, ...]:
    """The sorted, merged spans of `text` that no perturbation may touch.

    Code (fenced, inline, and lines that look like it), LaTeX, equations and expressions, numbers
    with sign and unit, dates, times, URLs, e-mail addresses, paths, identifiers, acronyms,
    placeholders, citations, tags and JSON, and what the user's regular expressions match.
    """
    if len(text) > _LONGEST_KEPT:
        return _spans(text, tuple(patterns))
    return _kept(text, tuple(patterns))


_LONGEST_KEPT = 20_000


@lru_cache(maxsize=256)
def _kept(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    """Every recipe asks about the texts of an item anew; long ones are not worth their memory."""
    return _spans(text, patterns)


def _spans(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    spans: list[Span] = []
    if SUSPICIOUS.search(text) is not None or CODE_FIRST.match(text) is not None:
        spans += fences(text)
        spans += _code(text)
        spans += braced(text)
        spans += _environments(text)
        spans += _json(text)
        spans += _expressions(text)
        for family in FAMILIES:
            spans += _spans_of(family, text)
    for source in patterns:
        matches = (match.span() for match in _compiled(source).finditer(text))
        spans += [(start, end) for start, end in matches if start < end]
    return merged(spans) if spans else ()


def _spans_of(family: Family, text: str) -> Iterable[Span]:
    needs = family.needs
    if not isinstance(needs, str | tuple):
        if needs.search(text) is None:
            return ()
    elif needs and not any(map(text.__contains__, needs)):
        return ()
    if family.cue is not None:
        return matches_from_cues(family.cue, family.pattern, text)
    return [match.span() for match in family.pattern.finditer(text)]


def matches_from_cues(cue: re.Pattern[str], pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """Where the pattern matches from a cue on, none inside another."""
    end = 0
    for start in cue.finditer(text):
        if start.start() >= end:
            match = pattern.match(text, start.start())
            if match is not None:
                end = match.end()
                yield match.span()


def _code(text: str) -> Iterator[Span]:
    """Lines of code, and Python functions as a whole but for the prose of their docstrings."""
    at = 0
    for code in python_code(text):
        yield from code_lines(text, at, code.span[0])
        edges = [code.span[0], *(edge for line in code.prose for edge in line), code.span[1]]
        yield from (span for span in zip(edges[::2], edges[1::2], strict=True) if span[0] < span[1])
        yield from code.names
        at = code.span[1]
    yield from code_lines(text, at)


@lru_cache(maxsize=256)
def _compiled(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source)
    except re.error as error:
        raise InvalidValue("protect", source, f"a regular expression ({error})") from None


_ENVIRONMENT = late_regex(r"\\(begin|end)\{([^{}\n]{1,40})\}")


def _environments(text: str) -> Iterator[Span]:
    r"""LaTeX environments, nested ones included: \begin{x} … \end{x}."""
    if "\\begin{" not in text:
        return
    opened: list[tuple[str, int]] = []
    for match in _ENVIRONMENT.finditer(text):
        if match[1] == "begin":
            opened.append((match[2], match.start()))
        elif opened and opened[-1][0] == match[2]:
            yield opened.pop()[1], match.end()


_BRACKET = late_regex(r"[{}\[\]]")
_JSON_START = late_regex(
    r"""[{]\s{0,20}["'][^"'\n]{0,200}["']\s{0,20}:|\[\s{0,20}(?:["'{\[\d]|-\d|true|false|null|True|False|None)"""
)


def _json(text: str) -> Iterator[Span]:
    """Balanced brackets that open like a JSON object or list."""
    if "{" not in text and "[" not in text:
        return
    opened: list[int] = []
    for match in _BRACKET.finditer(text):
        at = match.start()
        if text[at] in "{[":
            opened.append(at)
        elif opened and (text[opened[-1]] == "{") == (text[at] == "}"):
            start = opened.pop()
            if _JSON_START.match(text, start):
                yield start, at + 1
        else:
            opened.clear()


def _expressions(text: str) -> Iterator[Span]:
    """Equations and arithmetic, without a bracket whose partner is outside."""
    for start, end in matches_from_cues(MATH_CUE, MATH, text):
        while end > start and text[end - 1] in ")]}" and _unbalanced(text[start:end]) < 0:
            end -= 1
        while end > start and text[start] in "([{" and _unbalanced(text[start:end]) > 0:
            start += 1
        yield start, end


def _unbalanced(piece: str) -> int:
    return sum(map(piece.count, "([{")) - sum(map(piece.count, ")]}"))
