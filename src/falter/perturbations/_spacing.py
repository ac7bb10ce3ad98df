"""Noise in white space."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._resources import never_written
from falter.perturbations._wording import (
    FAMILY,
    LANGUAGES,
    MANIPULATION,
    MEANING,
    NOISE,
    spelt_spans,
)
from falter.text import Replacement, kept_words, uncovered

__all__ = ["leaves_other_word", "space_sequences", "whitespace"]

_ANY_WORD = re.compile(r"[^\W\d_]+(['’][^\W\d_]+)?")
# Japanese is written without spaces, so what must stay whole is found by its characters:
# negation, exception, quantity, comparison and numbers.
_JAPANESE_KEPT = re.compile(
    r"""ない|なかっ|なく|なけれ|ません|ずに|以外|除[いくき]|なし|[不非未無最毎各].|全て|すべて|全部|全員
      |誰も|何も|どれも|いずれも|だけ|のみ|しか|以[上下内]|より|少な|多く|半分
      |[〇零一二三四五六七八九十百千万億兆]+""",
    re.VERBOSE,
)


def _kept_spans(text: str, language: str) -> Iterator[Span]:
    """The insides of words that carry meaning, where no space may be added."""
    if language == "ja":
        yield from ((m.start() + 1, m.end() - 1) for m in _JAPANESE_KEPT.finditer(text))
        return
    protected_words = kept_words(language)
    for match in _ANY_WORD.finditer(text):
        word = match.group().lower()
        if word in protected_words:
            yield match.start() + 1, match.end() - 1
        elif match[1]:
            yield from _inside(word, match.start(), match.start(1), protected_words, language)


def _inside(
    word: str, start: int, middle: int, protected_words: frozenset[str], language: str
) -> Iterator[Span]:
    """The insides of a word with an apostrophe: *don't*, and in *n'est*, *d'un* each part."""
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
    spelt = () if language == "ja" else spelt_spans(text, language)
    inside = [(start + 1, end - 1) for start, end in spelt if end - start > 2]
    closed = sorted([*blocked, *_kept_spans(text, language), *inside])
    places: list[int] = []
    at = 1
    for start, end in closed:
        places.extend(range(at, start))
        at = max(at, end + 1)
    places.extend(range(at, len(text) + 1))
    return places


@site_perturbation(
    "space_sequences",
    title="inserted spaces",
    sites=_gap_sites,
    family=FAMILY,
    group=MANIPULATION,
    version=3,
    default_rate=0.1,
    invariants=MEANING,
    languages=(*LANGUAGES, "ja"),
)
def space_sequences(text: str, site: int, rng: Rng, language: str) -> Replacement | None:
    """Inserts one to ten spaces after random characters.

    The rate is the share of characters. Protected text, names, negations, quantifiers and number
    words get no space inside, and none leaves one of these as a piece of a word (*no de*).
    """
    spaces = " " * (1 + rng.below(10))
    if language != "ja" and leaves_other_word(text, site, language):
        return None
    return site, site, spaces


_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST = 16


def leaves_other_word(text: str, at: int, language: str) -> bool:
    """Whether a gap inside a word leaves a negation, a number word or a coarse word beside it, or
    one that a second gap would cut out of it: *k no wn*."""
    if not (text[at - 1 : at].isalpha() and text[at : at + 1].isalpha()):
        return False
    backwards = _LETTERS.match(text[max(0, at - _LONGEST) : at][::-1])
    tail = _LETTERS.match(text, at, at + _LONGEST)
    if backwards is None or tail is None:
        return False
    unwanted, low = _unwanted(language), tail[0].lower()
    if low in unwanted or backwards[0][::-1].lower() in unwanted:
        return True
    if low[:2] not in _beginnings(language):
        return False
    return any(low[:n] in unwanted for n in range(2, len(low)))


@cache
def _unwanted(language: str) -> frozenset[str]:
    return kept_words(language) | never_written()


@cache
def _beginnings(language: str) -> frozenset[str]:
    return frozenset(word[:2] for word in _unwanted(language))


_GAP = re.compile(r" (?<=\S )(?=\S)")  # one space between two things
_WIDE_GAP = re.compile(r"(?<=[、。，．！？；：」』）])(?=[^\s、。，．！？；：」』）])")
_BEFORE_MISSING = re.compile(r"(?:[^\W_]{2}[.,;:!?…]|[^\W_]\))\Z")  # a mark, not a label's
_BREAKABLE_LEFT = "\"'”’»)]、。，．！？；：」』）.,;:!?…"
_NO_BREAK = re.compile(r"[ \t]*(?:[#>|]|[-*+][ ]|\d+[.)])|[^\n]*[|]")  # headings, lists, tables
_LINE = re.compile(r"[^\n]*\n?")
_KINDS = ("extra", "line_break", "missing", "tab")
_KIND = Parameter(
    name="kind",
    type=str,
    default="all",
    help="extra: two or three spaces for one; line_break, tab: one of these for a space; "
    "missing: no space after a punctuation mark",
    options=("all", *_KINDS),
)


def _space_sites(text: str, blocked: Sequence[Span], kind: str) -> list[Span]:
    gaps = [match.span() for match in _GAP.finditer(text)]
    if not text.isascii():
        gaps = sorted([*gaps, *(match.span() for match in _WIDE_GAP.finditer(text))])
    spaces = uncovered(gaps, blocked)
    if kind in ("all", "extra"):
        return spaces
    return [site for site in spaces if kind in _fitting(text, site)]


def _fitting(text: str, site: Span) -> tuple[str, ...]:
    """The kinds of noise that do not change the meaning at this place."""
    start, end = site
    left, right = text[start - 1], text[end]
    breaks = right.isalpha() and (left.isalpha() or left in _BREAKABLE_LEFT)
    return tuple(
        kind
        for kind, fits in (
            ("extra", True),
            ("line_break", breaks and _may_break(text, start)),
            ("missing", start < end and right.isalpha() and _marked(text, start)),
            ("tab", start < end),
        )
        if fits
    )


def _may_break(text: str, at: int) -> bool:
    """Whether a line break there leaves headings, lists and tables whole."""
    starts, breakable = _lines(text)
    return breakable[bisect_right(starts, at) - 1]


@lru_cache(maxsize=2)
def _lines(text: str) -> tuple[list[int], list[bool]]:
    """Where lines start, and which may be broken; looked at once a text and not once a site."""
    starts = [match.start() for match in _LINE.finditer(text)]
    return starts, [not _NO_BREAK.match(text, start) for start in starts]


def _marked(text: str, at: int) -> bool:
    return text[at - 1] in ".,;:!?…)" and bool(_BEFORE_MISSING.search(text[max(0, at - 3) : at]))


@site_perturbation(
    "whitespace",
    title="untidy white space",
    sites=_space_sites,
    family=FAMILY,
    group=NOISE,
    version=2,
    default_rate=0.2,
    parameters=(_KIND,),
    invariants=tuple(name for name in MEANING if name != "lines"),
)
def whitespace(text: str, site: Span, rng: Rng, kind: str) -> Replacement:
    """Makes white space untidy: extra spaces, tabs, line breaks, no space after a mark.

    The rate is the share of single spaces between words. Words are never joined, and headings,
    list items and tables get no line break. After Japanese marks, which have no space, a space or
    a line break may be added.
    """
    start, end = site
    if kind == "all":
        kind = rng.choice(_fitting(text, site))
    space = {"line_break": "\n", "missing": "", "tab": "\t"}.get(kind)
    if space is None:
        space = " " * (end - start + 1 + rng.below(2))
    return start, end, space
