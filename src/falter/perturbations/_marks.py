"""Noise at punctuation marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._wording import FAMILY, MANIPULATION, MEANING, NOISE
from falter.text import Replacement, sentences, uncovered

__all__ = ["loose_marks", "punctuation", "punctuation_spaces"]

_MARK = re.compile(
    r"""[.,;:!?…"“”„«»()\[\]{}¿¡—–‘、。，；：！？「」『』（）]|(?<!\w)['’-]|['’-](?!\w)"""
)


def _mark_sites(text: str, blocked: Sequence[Span]) -> list[tuple[int, str]]:
    marks = uncovered((match.span() for match in _MARK.finditer(text)), blocked)
    sites: list[tuple[int, str]] = []
    previous = -1
    for start, end in marks:
        space_before = start > 0 and previous != start and not text[start - 1].isspace()
        space_after = end < len(text) and not text[end].isspace()
        if space_before or space_after:
            sites.append((start, f"{' ' * space_before}{text[start]}{' ' * space_after}"))
        previous = end
    return sites


@site_perturbation(
    "punctuation_spaces",
    title="spaces around punctuation",
    sites=_mark_sites,
    family=FAMILY,
    group=MANIPULATION,
    version=2,
    default_rate=1.0,
    invariants=MEANING,
)
def punctuation_spaces(text: str, site: tuple[int, str], rng: Rng) -> Replacement:
    """Puts a space on both sides of punctuation marks.

    No space is added to existing white space or at either end of the text. Apostrophes and hyphens
    inside words do not count as marks. Neighbouring marks share the space between them.
    """
    at, spaced = site
    return at, at + 1, spaced


_SWAPS = {
    ",": ";",
    ";": ",",
    ":": ";",
    ".": "!",
    "!": ".",
    "…": "...",
    "、": "，",
    "，": "、",
    "。": "．",
    "．": "。",
    "！": "!",
    "？": "?",
    "；": ";",
    "：": ":",
    "،": ",",
    "؛": ";",
    "؟": "?",
}
# A mark by itself behind a word, a closing bracket or a closing quotation mark (in French with a
# space between), and white space or the end behind it; marks of scripts without such spaces; and
# the opening marks of Spanish.
_LONE = re.compile(
    r"""[.,;:!?…、，。．！？；：،؛؟¿¡](?:
        (?<=[.,;:!?…])(?:(?<=[^\W\d_].)|(?<=[)\]"”’»].)|(?<=[^\W\d_][ \u00a0\u202f][?!:;]))
        (?=["'”’»)\]]{0,2}(?:\s|$))
      | (?<=[、，。．！？；：،؛؟])(?:(?<=[^\W\d_].)|(?<=[」』）].))(?![\d.,!?、，。．！？])
      | (?<=[¿¡])(?<![¿¡].)(?=[^\W\d_])
    )""",
    re.VERBOSE,
)
_DIGIT_NEXT = re.compile(r"\s*\d")
_CLOSERS = "\"'”’»)]"
_NOISE = Parameter(
    name="kind",
    type=str,
    default="all",
    help="drop: the mark is removed; double: it is doubled; swap: another mark replaces it",
    options=("all", "double", "drop", "swap"),
)


def _loose_sites(text: str, blocked: Sequence[Span], kind: str) -> list[Span]:
    marks = uncovered(_loose(text), blocked)
    return [span for span in marks if text[span[0]] in _SWAPS] if kind == "swap" else marks


def loose_marks(text: str, blocked: Sequence[Span]) -> list[Span]:
    """Marks that carry no meaning, outside blocked spans."""
    return uncovered(_loose(text), blocked)


def _loose(text: str) -> Iterator[Span]:
    """Marks that carry no meaning."""
    stops: frozenset[int] | None = None
    for match in _LONE.finditer(text):
        at = match.start()
        if text[at] == ".":
            stops = _full_stops(text) if stops is None else stops
            if at not in stops:
                continue
        if text[at] in "?!…¿¡" or not (_labels(text, at) or _DIGIT_NEXT.match(text, at + 1)):
            yield at, at + 1


def _full_stops(text: str) -> frozenset[int]:
    """The full stops that end sentences, as opposed to abbreviations and initials."""
    return frozenset(
        start + len(text[start:end].rstrip(_CLOSERS)) - 1 for start, end in sentences(text)
    )


def _labels(text: str, at: int) -> bool:
    """Whether the mark follows a single letter: *A.*, *b:*."""
    lone = at < 2 or not text[at - 2].isalnum()
    return lone and text[at] in ".,:;" and text[at - 1 : at].isalpha()


@site_perturbation(
    "punctuation",
    title="changed punctuation",
    sites=_loose_sites,
    family=FAMILY,
    group=NOISE,
    version=2,
    default_rate=0.5,
    parameters=(_NOISE,),
    invariants=MEANING,
)
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
