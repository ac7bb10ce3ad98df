"""Upper and lower case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._wording import FAMILY, LANGUAGES, MEANING, NOISE, is_no_name
from falter.text import Replacement, natural_words, overlaps, sentences, uncovered

__all__ = ["casing", "lowered_words"]

Site = tuple[int, int, str]  # a word and its new style

_STYLE = Parameter(
    name="style",
    type=str,
    default="lower",
    help="lower, upper, title: all words; sentence: a capital at the start of each sentence only; "
    "random: letter by letter",
    options=("lower", "random", "sentence", "title", "upper"),
)
_APOSTROPHED = re.compile(
    r"(?<![\w\u0300-\u036f'’])[^\W\d_]+(?:['’][^\W\d_]+)+(?![\w\u0300-\u036f'’])"
)
# Words of one letter. Between two ordinary words they are words; elsewhere they may be variables.
_SINGLES = {"es": "aeouy", "fr": "aàyô", "it": "aeèoi", "nl": "u", "pt": "aàeéoó"}
_SINGLE_GAP = re.compile(r",? (\w) ")
_ELIDING, _ELISION = ("fr", "it", "pt"), re.compile(r"(?<=['’])(?=\w\w)")
_FIRST = re.compile(r"\w")


def _cased_sites(text: str, blocked: Sequence[Span], style: str, language: str) -> list[Site]:
    words = list(_words(text, blocked, language))
    if style == "sentence":
        firsts = (_FIRST.search(text, start, end) for start, end in sentences(text))
        starts = {match.start() for match in firsts if match is not None}
        sites = [(a, b, "title" if a in starts else "lower") for a, b in words]
    else:
        sites = [(a, b, style) for a, b in words]
    return [site for site in sites if _changes(text[site[0] : site[1]], site[2], style, language)]


def lowered_words(text: str, blocked: Sequence[Span], language: str = "en") -> list[Span]:
    """The words that small letters would change."""
    return [(start, end) for start, end, _ in _cased_sites(text, blocked, "lower", language)]


def _changes(word: str, to: str, style: str, language: str) -> bool:
    if style == "sentence" and language == "en" and word[0] == "I" and not word[1:2].isalpha():
        return False  # I, I'm
    if to == "random":
        return word.isupper() or _cased(word, "upper", language) is not None
    return _cased(word, to, language) is not None


def _words(text: str, blocked: Sequence[Span], language: str) -> Iterator[Span]:
    """Words whose case may change: no acronym, label, variable or unit."""
    words = natural_words(text, blocked)
    if "'" in text or "’" in text:
        joined = (m.span() for m in _APOSTROPHED.finditer(text) if _plainly_cased(m[0], language))
        words = sorted([*words, *uncovered(joined, blocked)])
    if language in _SINGLES:
        words = sorted([*words, *_single_words(text, words, blocked, language)])
    for start, end in words:
        if end - start > 1 or _is_word(text, start, language):
            yield start, end


def _plainly_cased(word: str, language: str) -> bool:
    """Whether the word has no inner capital: neither DON'T nor O'Brien, but L'Eau."""
    parts = _ELISION.split(word) if language in _ELIDING else [word]
    return all(part[1:] == part[1:].lower() for part in parts)


def _is_word(text: str, at: int, language: str) -> bool:
    """Whether a single letter is a word here, not a name or label."""
    return text[at + 1 : at + 2] in ("", " ") and is_no_name(text, at, text[at], language)


def _single_words(
    text: str, words: Sequence[Span], blocked: Sequence[Span], language: str
) -> Iterator[Span]:
    singles = _SINGLES[language]
    for (_, before), (after, _) in pairwise(words):
        gap = _SINGLE_GAP.fullmatch(text, before, after)
        if gap is not None and gap[1].lower() in singles and not overlaps(blocked, *gap.span(1)):
            yield gap.span(1)


def _cased(word: str, style: str, language: str) -> str | None:
    """The word in another case; None if that changes nothing or cannot be undone.

    ß has no capital that becomes ß again. The Turkish İ and ı change into other letters under the
    rules of other languages, so words with them stay as they are.
    """
    if style == "title":
        cased = _title(word, language)
    else:
        cased = word.upper() if style == "upper" else word.lower()
    if cased == word or "ı" in word or "İ" in word:
        return None
    return cased if cased.lower() == word.lower() and len(cased) == len(word) else None


def _title(word: str, language: str) -> str:
    """A capital and small letters. The Dutch ij is one letter, and what follows an elision (L'Eau)
    is a word of its own."""
    low = word.lower()
    if language == "nl" and low.startswith("ij"):
        return "IJ" + low[2:]
    return (
        "".join(map(str.capitalize, _ELISION.split(low)))
        if language in _ELIDING
        else low.capitalize()
    )


@site_perturbation(
    "casing",
    title="changed letter case",
    sites=_cased_sites,
    family=FAMILY,
    group=NOISE,
    version=2,
    default_rate=1.0,
    parameters=(_STYLE,),
    invariants=MEANING,
    languages=LANGUAGES,
)
def casing(text: str, site: Site, rng: Rng, style: str, language: str) -> Replacement | None:
    """Changes words to lower case, upper case, title case, sentence case or random case.

    The rate is the share of the words that this would change. Acronyms, labels, variables, units
    and protected text keep their case, and so do words whose case cannot be undone (ß).
    """
    start, end, to = site
    word = text[start:end]
    cased = _shuffled(word, rng) if to == "random" else _cased(word, to, language)
    return None if cased is None else (start, end, cased)


def _shuffled(word: str, rng: Rng) -> str | None:
    """The word with the case of each letter drawn at random; never the same word."""
    shuffled = "".join(letter.upper() if rng.below(2) else letter.lower() for letter in word)
    return shuffled if shuffled != word else word.swapcase()
