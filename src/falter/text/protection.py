"""Spans of a text that no perturbation may touch.

One cheap search decides whether a text contains any suspicious character; plain prose needs no
other search. Otherwise each family of patterns runs if one of its trigger texts occurs. Every
pattern has bounded quantifiers or stops at its delimiter, so the time stays linear.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from threading import current_thread, main_thread
from typing import NamedTuple

from falter.records.errors import InvalidValue
from falter.records.lazy_regex import lazy_regex, named_patterns, named_regex
from falter.records.types import Section, Span
from falter.text.code import braced, code_lines, fences, python_code
from falter.text.spans import merged

_bundled_regex = partial(named_regex, "text")

# Regular expressions for numbers, units, dates and mathematics

DIGIT = named_patterns("text")["digit"]

MATH = _bundled_regex("math")
MATH_CUE = _bundled_regex("math_cue")

NUMBER = _bundled_regex("number")
# Where a number may begin. Scanning for one character is fast and leaves few places to try.
NUMBER_CUE = _bundled_regex("number_cue")
DATE = _bundled_regex("date")
DATE_CUE = _bundled_regex("date_cue")

# Numbers in a row, such as coordinates: without the comma they would be other numbers.
ROW = _bundled_regex("row")
ROW_CUE = _bundled_regex("row_cue")


# The regular expressions of the protector

# In the patterns `w` is a letter, digit or underscore, but not Chinese, Japanese or Korean: these
# scripts put no space between words.

# Begins with one character class, which the engine scans for quickly. The look-arounds after it
# decide whether the character is suspicious in its context.
SUSPICIOUS = _bundled_regex("suspicious")
CODE_FIRST = _bundled_regex("code_first")


class Family(NamedTuple):
    """A pattern, the condition for it to run, and a cue at which its matches begin.

    `needs` are texts of which one must occur (none: always), or a pattern that must match. A search
    for a cue, a single character class, is several times faster than trying the pattern at every
    character.
    """

    needs: tuple[str, ...] | re.Pattern[str]
    pattern: re.Pattern[str]
    cue: re.Pattern[str] | None = None


def _families() -> Iterator[Family]:
    sources = named_patterns("text")

    def regex(name: str) -> re.Pattern[str] | None:
        return lazy_regex(sources[name]) if name in sources else None

    for key, pattern in sources.items():
        if key.startswith("family "):
            name, *words = key.split(" ")[1:]
            needs = tuple([word.replace("␤", "\n").replace("␠", " ") for word in words])
            yield Family(regex(f"{name}_needs") or needs, lazy_regex(pattern), regex(f"{name}_cue"))


FAMILIES = tuple(_families())


def protect(text: str, patterns: Sequence[str] = ()) -> tuple[Span, ...]:
    """Return the sorted, merged spans of `text` that no perturbation may touch.

    These are code (fenced, inline, and lines that look like code), LaTeX, equations and
    expressions, numbers with sign and unit, dates and times. Further spans are URLs, e-mail
    addresses, paths, identifiers, acronyms, placeholders, citations, tags and JSON. The matches of
    the user's regular expressions `patterns` are added.
    """
    if len(text) > _MAX_CACHED_CHARACTERS:
        return _find_spans(text, tuple(patterns))
    return _pattern_spans(text, tuple(patterns))


_MAX_CACHED_CHARACTERS = 20_000  # characters of a text whose spans are kept in memory


@lru_cache(maxsize=256)
def _pattern_spans(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    """Return `_find_spans` from a cache, since every recipe needs an item's spans again."""
    return _find_spans(text, patterns)


def _find_spans(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    spans: list[Span] = []
    if SUSPICIOUS.search(text) is not None or CODE_FIRST.match(text) is not None:
        spans += fences(text)
        spans += _code_spans(text)
        spans += braced(text)
        spans += _environment_spans(text)
        spans += _json_spans(text)
        spans += _expression_spans(text)
        for family in FAMILIES:
            spans += _family_spans(family, text)
    spans += [(start, end) for start, end in matched_spans(text, patterns) if start < end]
    return merged(spans) if spans else ()


def blocked(section: Section, patterns: Sequence[str] = ()) -> tuple[Span, ...]:
    """Return the spans where no step may write: protected text, the section's own, earlier edits.

    In a tool, all text except its descriptions is blocked.
    """
    tool = section.kind == "tool"
    spans = (_spans_outside_descriptions if tool else protect)(section.text, tuple(patterns))
    if not section.protected and not section.edits:
        return spans
    earlier = ((edit.new_start, edit.new_end) for edit in section.edits)
    return merged((*spans, *section.protected, *earlier))


_DESCRIPTION = lazy_regex(r'(?<="description": ")(?:[^"\\]|\\.)*(?=")')
_ESCAPE = lazy_regex(r"\\.")


def _spans_outside_descriptions(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    spans, end = list[Span](), 0
    for match in _DESCRIPTION.finditer(text):
        at, words = match.start(), match[0]
        inner = (*protect(words, patterns), *(m.span() for m in _ESCAPE.finditer(words)))
        spans += [(end, at), *((at + a, at + b) for a, b in inner)]
        end = match.end()
    return merged([*spans, (end, len(text))])


def _family_spans(family: Family, text: str) -> Iterable[Span]:
    needs = family.needs
    if not isinstance(needs, tuple):
        if needs.search(text) is None:
            return ()
    elif needs and not any(map(text.__contains__, needs)):
        return ()
    if family.cue is not None:
        return matches_from_cues(family.cue, family.pattern, text)
    return [match.span() for match in family.pattern.finditer(text)]


def matches_from_cues(cue: re.Pattern[str], pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """Yield the spans of the pattern's matches that begin at a cue and do not overlap."""
    end = 0
    for start in cue.finditer(text):
        if start.start() >= end:
            match = pattern.match(text, start.start())
            if match is not None:
                end = match.end()
                yield match.span()


def _code_spans(text: str) -> Iterator[Span]:
    """Yield lines of code, and whole Python functions except the prose of their docstrings."""
    at = 0
    for code in python_code(text):
        yield from code_lines(text, at, code.span[0])
        edges = [code.span[0], *(edge for line in code.prose for edge in line), code.span[1]]
        yield from (span for span in zip(edges[::2], edges[1::2], strict=True) if span[0] < span[1])
        yield from code.names
        at = code.span[1]
    yield from code_lines(text, at)


PATTERN_SECONDS = 5.0
"""Processor time in seconds for one of the user's patterns in one text; most take microseconds."""


def matched_spans(text: str, patterns: Sequence[str]) -> list[Span]:
    """Return the spans that the user's regular expressions match.

    Raise `InvalidValue` for an invalid expression, and, in the main thread, for a search that takes
    longer than `PATTERN_SECONDS`.
    """
    spans: list[Span] = []
    # Nothing but a signal ends a search, and signals reach only the main thread.
    timed = patterns and current_thread() is main_thread() and hasattr(signal, "setitimer")

    def give_up(*_: object) -> None:
        expected = f"a regular expression that searches a text within {PATTERN_SECONDS:g} s"
        hint = "repeat nothing that repeats already: 'a+' instead of '(a+)+'"
        raise InvalidValue("protect", source, expected, hint=hint)

    before = signal.signal(signal.SIGVTALRM, give_up) if timed else None
    try:
        for source in patterns:
            if timed:
                signal.setitimer(signal.ITIMER_VIRTUAL, PATTERN_SECONDS)
            spans += [match.span() for match in _compiled(source).finditer(text)]
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            signal.signal(signal.SIGVTALRM, before)
    return spans


@lru_cache(maxsize=256)
def _compiled(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source)
    except re.error as error:
        raise InvalidValue("protect", source, f"a regular expression ({error})") from None


_ENVIRONMENT = lazy_regex(r"\\(begin|end)\{([^{}\n]{1,40})\}")


def _environment_spans(text: str) -> Iterator[Span]:
    r"""Yield the spans of LaTeX environments, also nested: \begin{x} … \end{x}."""
    if "\\begin{" not in text:
        return
    opened: list[tuple[str, int]] = []
    for match in _ENVIRONMENT.finditer(text):
        if match[1] == "begin":
            opened.append((match[2], match.start()))
        elif opened and opened[-1][0] == match[2]:
            yield opened.pop()[1], match.end()


_BRACKET = lazy_regex(r"[{}\[\]]")
# '{"a": 1}', "[1, 2]" and "{'a': None}" begin so; not "{name}" or "[sic]".
_JSON_START = _bundled_regex("json_start")


def _json_spans(text: str) -> Iterator[Span]:
    """Yield the spans of balanced brackets that open like a JSON object or list."""
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


def _expression_spans(text: str) -> Iterator[Span]:
    """Yield the spans of equations and arithmetic, without brackets whose partner is outside."""
    for start, end in matches_from_cues(MATH_CUE, MATH, text):
        while end > start and text[end - 1] in ")]}" and _unbalanced_brackets(text[start:end]) < 0:
            end -= 1
        while end > start and text[start] in "([{" and _unbalanced_brackets(text[start:end]) > 0:
            start += 1
        yield start, end


def _unbalanced_brackets(piece: str) -> int:
    return sum(map(piece.count, "([{")) - sum(map(piece.count, ")]}"))
