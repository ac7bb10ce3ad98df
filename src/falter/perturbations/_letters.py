"""Letters that look alike: a scanner's misreadings, Unicode look-alikes, l33t."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._resources import confusions, never_produced
from falter.perturbations._wording import (
    FAMILY,
    LANGUAGES,
    MEANING,
    NOISE,
    long_words,
    plain_words,
    without_symbols,
)
from falter.text import Replacement

__all__ = ["homoglyphs", "leetspeak", "ocr"]

# Digits replace letters, so the text contains more numbers afterwards.
_WITH_DIGITS = tuple(name for name in MEANING if name != "numbers")
_ATTEMPTS = 12


def _scanned_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    return _holding("ocr", text, long_words(text, blocked, language))


def _holding(name: str, text: str, words: list[Span]) -> list[Span]:
    """The words with a letter that is in the table."""
    has_letter = _any_of(name)
    return [(start, end) for start, end in words if has_letter(text, start, end)]


@cache
def _any_of(name: str) -> Callable[[str, int, int], object]:
    """A search for a letter that is in the table; case matters except in `leet`."""
    single = "".join(letters for letters in confusions(name) if len(letters) == 1)
    return re.compile(f"[{single}]", re.IGNORECASE if name == "leet" else 0).search


@site_perturbation(
    "ocr",
    title="scanning errors",
    sites=_scanned_sites,
    family=FAMILY,
    group=NOISE,
    version=3,
    default_rate=0.3,
    invariants=_WITH_DIGITS,
    languages=LANGUAGES,
)
def ocr(text: str, site: Span, rng: Rng, language: str) -> Replacement | None:
    """Misreads one letter or pair of letters of a word, as a scanner does.

    Words of three letters or more; the result is never another word. Digits may replace letters:
    *w0rd*.
    """
    start, end = site
    word, table, unwanted = text[start:end], confusions("ocr"), never_produced(language)
    for _ in range(_ATTEMPTS):
        at = rng.below(len(word))
        pair = word[at : at + 2]
        piece = pair if pair in table and rng.below(2) else word[at]
        if piece in table:
            misread = word[:at] + rng.choice(table[piece]) + word[at + len(piece) :]
            if misread.lower() not in unwanted:
                return start, end, misread
    return None


def _lookalike_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    words = without_symbols(text, plain_words(text, blocked, language), language)
    return _holding("homoglyphs", text, words)


@site_perturbation(
    "homoglyphs",
    title="look-alike letters",
    sites=_lookalike_sites,
    family=FAMILY,
    group=NOISE,
    version=3,
    default_rate=0.3,
    invariants=MEANING,
    languages=LANGUAGES,
)
def homoglyphs(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Replaces about half of a word's letters, and at least one, by Unicode look-alikes.

    A letter that stands for something (*the side a*) stays.
    """
    start, end = site
    table, letters, choice = confusions("homoglyphs"), list(text[start:end]), rng.choice
    places = [at for at, letter in enumerate(letters) if letter in table]
    sure, coins = choice(places), rng.below(1 << 48)
    for at in places:
        if at == sure or coins >> at % 48 & 1:
            letters[at] = choice(table[letters[at]])
    return start, end, "".join(letters)


def _leet_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    return _holding("leet", text, long_words(text, blocked, language))


_SUM_SIGN = re.compile(r"(?<=\d)\+|\+(?=\d)")


@site_perturbation(
    "leetspeak",
    title="digits in place of letters",
    sites=_leet_sites,
    family=FAMILY,
    group=NOISE,
    version=3,
    default_rate=0.3,
    invariants=_WITH_DIGITS,
    languages=LANGUAGES,
)
def leetspeak(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Writes words in l33t: digits and signs in place of letters.

    Words of three letters or more; if no letter would be left, the first one stays. Beside a digit
    no plus is written: *837+3r* would be a sum.
    """
    start, end = site
    table, word = confusions("leet"), text[start:end]
    leet = "".join(
        rng.choice(table[low]) if (low := letter.lower()) in table else letter for letter in word
    )
    leet = _SUM_SIGN.sub("7", leet)
    if not any(map(str.isalpha, leet)):
        leet = word[0] + leet[1:]
    return start, end, leet
