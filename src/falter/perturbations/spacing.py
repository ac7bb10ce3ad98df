"""Noise in white space, at punctuation marks, and between the halves of words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

from falter.perturbations.base import site_perturbation
from falter.perturbations.vocabulary import (
    long_words,
    never_written,
    plain_words,
    spelt_spans,
    without_symbols,
)
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Span
from falter.text.spans import Replacement, uncovered
from falter.text.words import kept_words, sentences

_bundled_regex = partial(named_regex, "perturbations")

_SPACED_WORD = re.compile(r"[^\W\d_]+(['’][^\W\d_]+)?")
# Japanese is written without spaces, so what must stay whole is found by its characters:
# negation, exception, quantity, comparison and numbers.
_JAPANESE_KEPT = _bundled_regex("japanese_kept")


class _ScannedText(NamedTuple):
    """Words of a text, found in one search.

    `starts` and `ends` are the places where words begin and end; a word with an apostrophe counts
    as two. `kept` are the insides of words that carry meaning, where no space may be added.
    """

    starts: list[int]
    ends: list[int]
    kept: list[Span]


@lru_cache(maxsize=16)  # needed at every place of a text, so long texts are cached too
def _scan_words(text: str, language: str) -> _ScannedText:
    """Search a text once for its words; in Japanese, for characters that must stay together."""
    starts, ends, kept = scanned = _ScannedText([], [], [])
    if language == "ja":
        kept += ((m.start() + 1, m.end() - 1) for m in _JAPANESE_KEPT.finditer(text))
        return scanned
    protected_words = kept_words(language)
    for match in _SPACED_WORD.finditer(text):
        start, end = match.span()
        middle, word = match.start(1), text[start:end].lower()
        starts.append(start)
        if middle >= 0:
            ends.append(middle)
            starts.append(middle + 1)
        ends.append(end)
        if word in protected_words:
            kept.append((start + 1, end - 1))
        elif middle >= 0:
            kept += _unbroken_insides(word, start, middle, protected_words, language)
    return scanned


def _unbroken_insides(
    word: str, start: int, middle: int, protected_words: frozenset[str], language: str
) -> Iterator[Span]:
    """Yield the insides of a word with an apostrophe where no space may be added.

    They are the whole of *don't*, and each part of *n'est* and *d'un*.
    """
    end = start + len(word)
    if word.endswith("t") and end - middle == 2:
        yield start + 1, end - 1
    elif language == "en" and word[: middle - start] in protected_words:
        yield start + 1, middle - 1
    elif language != "en":
        yield start + 1, middle
        if word[middle - start + 1 :] in protected_words:
            yield middle + 2, end - 1


def _gap_sites(text: str, blocked: Sequence[Span], language: str) -> list[int]:
    """Return the offsets at which spaces may be inserted."""
    spelt = () if language == "ja" else spelt_spans(text, language)
    inside = [(start + 1, end - 1) for start, end in spelt if end - start > 2]
    closed = sorted([*blocked, *_scan_words(text, language).kept, *inside])
    places: list[int] = []
    at = 1
    for start, end in closed:
        places.extend(range(at, start))
        at = max(at, end + 1)
    places.extend(range(at, len(text) + 1))
    return places


@site_perturbation("space_sequences", sites=_gap_sites)
def space_sequences(text: str, site: int, rng: Rng, language: str) -> Replacement | None:
    """Inserts one to ten spaces after random characters.

    The rate is the share of characters. Protected text, names, negations, quantifiers and number
    words get no space inside, and none leaves one of these as a piece of a word (*no de*).
    """
    spaces = " " * (1 + rng.below(10))
    if language != "ja" and leaves_other_word(text, site, language):
        return None
    return site, site, spaces


# Characters that are compared on each side of a gap; the longest unwanted word has 13.
_MAX_COMPARED_CHARACTERS = 16


def leaves_other_word(text: str, at: int, language: str) -> bool:
    """Return True if a gap inside a word would leave a negation, a number word or a coarse word.

    Words that a second gap would cut out count too: *k no wn*.
    """
    if not (text[at - 1 : at].isalpha() and text[at : at + 1].isalpha()):
        return False
    starts, ends, _ = _scan_words(text, language)
    word = bisect_right(starts, at) - 1
    head = text[max(starts[word], at - _MAX_COMPARED_CHARACTERS) : at]
    low = text[at : min(ends[word], at + _MAX_COMPARED_CHARACTERS)].lower()
    unwanted = _unwanted_words(language)
    if low in unwanted or head.lower() in unwanted:
        return True
    if low[:2] not in _word_beginnings(language):
        return False
    return any(low[:n] in unwanted for n in range(2, len(low)))


@cache
def _unwanted_words(language: str) -> frozenset[str]:
    return kept_words(language) | never_written()


@cache
def _word_beginnings(language: str) -> frozenset[str]:
    return frozenset(word[:2] for word in _unwanted_words(language))


_SPACE_GAP = re.compile(r" (?<=\S )(?=\S)")  # one space between two things
_WIDE_GAP = re.compile(r"(?<=[、。，．！？；：」』）])(?=[^\s、。，．！？；：」』）])")
_BEFORE_MISSING = re.compile(r"(?:[^\W_]{2}[.,;:!?…]|[^\W_]\))\Z")  # a mark, not a label's
_BREAKABLE_LEFT = "\"'”’»)]、。，．！？；：」』）.,;:!?…"
_NO_BREAK = _bundled_regex("no_break")
_TEXT_LINE = re.compile(r"[^\n]*\n?")


def _space_sites(text: str, blocked: Sequence[Span], kind: str) -> list[Span]:
    gaps = [match.span() for match in _SPACE_GAP.finditer(text)]
    if not text.isascii():
        gaps = sorted([*gaps, *(match.span() for match in _WIDE_GAP.finditer(text))])
    spaces = uncovered(gaps, blocked)
    if kind in ("all", "extra"):
        return spaces
    return [site for site in spaces if kind in _fitting_kinds(text, site)]


def _fitting_kinds(text: str, site: Span) -> tuple[str, ...]:
    """Return the kinds of noise that do not change the meaning at this place."""
    start, end = site
    left, right = text[start - 1], text[end]
    breaks = right.isalpha() and (left.isalpha() or left in _BREAKABLE_LEFT)
    return tuple(
        kind
        for kind, fits in (
            ("extra", True),
            ("line_break", breaks and _may_break(text, start)),
            ("missing", start < end and right.isalpha() and _lacks_space_after_mark(text, start)),
            ("tab", start < end),
        )
        if fits
    )


def _may_break(text: str, at: int) -> bool:
    """Return True if a line break at this offset leaves headings, lists and tables whole."""
    starts, breakable = _line_starts(text)
    return breakable[bisect_right(starts, at) - 1]


@lru_cache(maxsize=2)
def _line_starts(text: str) -> tuple[list[int], list[bool]]:
    """Return the starts of lines, and flags for lines that may be broken."""
    starts = [match.start() for match in _TEXT_LINE.finditer(text)]
    return starts, [not _NO_BREAK.match(text, start) for start in starts]


def _lacks_space_after_mark(text: str, at: int) -> bool:
    return text[at - 1] in ".,;:!?…)" and bool(_BEFORE_MISSING.search(text[max(0, at - 3) : at]))


@site_perturbation("whitespace", sites=_space_sites)
def whitespace(text: str, site: Span, rng: Rng, kind: str) -> Replacement:
    """Makes white space untidy: extra spaces, tabs, line breaks, no space after a mark.

    The rate is the share of single spaces between words. Words are never joined, and headings,
    list items and tables get no line break. After Japanese marks, which have no space, a space or
    a line break may be added.
    """
    start, end = site
    if kind == "all":
        kind = rng.choice(_fitting_kinds(text, site))
    space = {"line_break": "\n", "missing": "", "tab": "\t"}.get(kind)
    if space is None:
        space = " " * (end - start + 1 + rng.below(2))
    return start, end, space


# Noise at punctuation marks

_PUNCTUATION = _bundled_regex("punctuation")


def _mark_sites(text: str, blocked: Sequence[Span]) -> list[tuple[int, str]]:
    marks = uncovered((match.span() for match in _PUNCTUATION.finditer(text)), blocked)
    sites: list[tuple[int, str]] = []
    previous = -1
    for start, end in marks:
        space_before = start > 0 and previous != start and not text[start - 1].isspace()
        space_after = end < len(text) and not text[end].isspace()
        if space_before or space_after:
            sites.append((start, f"{' ' * space_before}{text[start]}{' ' * space_after}"))
        previous = end
    return sites


@site_perturbation("punctuation_spaces", sites=_mark_sites)
def punctuation_spaces(text: str, site: tuple[int, str], rng: Rng) -> Replacement:
    """Puts a space on both sides of punctuation marks.

    No space is added to existing white space or at either end of the text. Apostrophes and hyphens
    inside words do not count as marks. Neighbouring marks share the space between them.
    """
    at, spaced = site
    return at, at + 1, spaced


_SWAPS = dict(zip(",;:.!、，。．！？；：،؛؟", ";,;!.，、．。!?;:,;?", strict=True)) | {"…": "..."}
# One of three kinds of marks:
# - a single mark after a word, a closing bracket or a closing quotation mark (in French after a
#   space), if white space or the end follows;
# - a mark of a script without such spaces;
# - an opening mark of Spanish.
_LONE_MARK = _bundled_regex("lone")
_DIGIT_NEXT = re.compile(r"\s*\d")
_CLOSERS = "\"'”’»)]"


def _loose_sites(text: str, blocked: Sequence[Span], kind: str) -> list[Span]:
    marks = uncovered(_find_loose_marks(text), blocked)
    return [span for span in marks if text[span[0]] in _SWAPS] if kind == "swap" else marks


def loose_marks(text: str, blocked: Sequence[Span]) -> list[Span]:
    """Return the punctuation marks outside blocked spans that carry no meaning."""
    return uncovered(_find_loose_marks(text), blocked)


def _find_loose_marks(text: str) -> Iterator[Span]:
    """Yield the punctuation marks that carry no meaning."""
    stops: frozenset[int] | None = None
    for match in _LONE_MARK.finditer(text):
        at = match.start()
        if text[at] == ".":
            stops = _full_stops(text) if stops is None else stops
            if at not in stops:
                continue
        if text[at] in "?!…¿¡" or not (_is_label(text, at) or _DIGIT_NEXT.match(text, at + 1)):
            yield at, at + 1


def _full_stops(text: str) -> frozenset[int]:
    """Return the offsets of full stops that end sentences, not those of abbreviations."""
    return frozenset(
        start + len(text[start:end].rstrip(_CLOSERS)) - 1 for start, end in sentences(text)
    )


def _is_label(text: str, at: int) -> bool:
    """Return True if the punctuation mark follows a single letter: *A.*, *b:*."""
    lone = at < 2 or not text[at - 2].isalnum()
    return lone and text[at] in ".,:;" and text[at - 1 : at].isalpha()


@site_perturbation("punctuation", sites=_loose_sites)
def punctuation(text: str, site: Span, rng: Rng, kind: str) -> Replacement:
    """Drops, doubles or swaps marks that carry no meaning.

    Commas, colons, semicolons and the marks that end a sentence, ¿ and ¡. Question marks and ¿ ¡
    are dropped or doubled, never swapped. Marks inside words, between numbers, in abbreviations,
    after labels (*A.*) and in runs stay, and so do quotation marks and brackets.
    """
    start, end = site
    mark = text[start]
    if kind == "all":
        kind = rng.choice(("drop", "double", "swap") if mark in _SWAPS else ("drop", "double"))
    written = {"drop": "", "double": mark * 2, "swap": _SWAPS.get(mark, mark)}[kind]
    return start, end, written


# Words split and joined


@site_perturbation("word_split", sites=partial(long_words, least=4))
def word_split(text: str, site: Span, rng: Rng, language: str) -> Replacement | None:
    """Splits words of four letters or more in two, at least two letters on each side.

    No half is ever a negation, quantifier or number word (*no rmal*) or a coarse one (*ass ure*),
    and a Dutch *ij* is never split.
    """
    start, end = site
    at = start + 2 + rng.below(end - start - 3)
    head, tail = text[start:at], text[at:end]
    unwanted = _unwanted_words(language)
    if head.lower() in unwanted or tail.lower() in unwanted:
        return None
    if language == "nl" and head[-1] == "i" and tail[0] == "j":
        return None
    return start, end, f"{head} {tail}"


def _mergeable_gaps(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    words = without_symbols(text, plain_words(text, blocked, language), language)
    gaps = ((a[1], b[0]) for a, b in pairwise(words))
    free = [(end, start) for end, start in gaps if start - end == 1 and text[end] == " "]
    return uncovered(free, blocked)


@site_perturbation("word_merge", sites=_mergeable_gaps)
def word_merge(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Joins neighbouring words by removing the single space between them.

    A letter that stands for something (*the value of a*) is joined to nothing.
    """
    return site[0], site[1], ""
