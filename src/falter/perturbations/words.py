"""Noise in and between words of the input: typing mistakes, dropped words, split and joined ones.

Group *word manipulation* is the six of the Brittlebench tables; all others are *word noise*.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._casing import casing
from falter.perturbations._letters import homoglyphs, leetspeak, ocr
from falter.perturbations._lexical import contractions, homophones, synonyms
from falter.perturbations._marks import punctuation, punctuation_spaces
from falter.perturbations._resources import misspellings, stop_words
from falter.perturbations._spacing import space_sequences, whitespace
from falter.perturbations._typing import mistyped
from falter.perturbations._wording import (
    FAMILY,
    LANGUAGES,
    MANIPULATION,
    MEANING,
    NOISE,
    is_no_name,
    long_words,
    plain_words,
)
from falter.text import Replacement, kept_words, overlaps, uncovered

__all__ = [
    "casing",
    "contractions",
    "drop_stop_words",
    "homoglyphs",
    "homophones",
    "leetspeak",
    "ocr",
    "punctuation",
    "punctuation_spaces",
    "space_sequences",
    "spelling",
    "synonyms",
    "typos",
    "whitespace",
    "word_merge",
    "word_split",
]

_KIND = Parameter(
    name="kind",
    type=str,
    default="all",
    help="keyboard: a neighbouring key; misspelling: as people misspell the word; "
    "charmix: letters swapped, dropped or doubled",
    options=("all", "charmix", "keyboard", "misspelling"),
)


def _typo_sites(text: str, blocked: Sequence[Span], kind: str, language: str) -> list[Span]:
    words = long_words(text, blocked, language)
    return words if kind != "misspelling" else _misspelt(text, words, language)


def _misspelt(text: str, words: Sequence[Span], language: str) -> list[Span]:
    table = misspellings(language)
    return [(start, end) for start, end in words if text[start:end].lower() in table]


@site_perturbation(
    "typos",
    title="typos",
    sites=_typo_sites,
    family=FAMILY,
    group=MANIPULATION,
    default_rate=0.5,
    parameters=(_KIND,),
    invariants=MEANING,
    languages=LANGUAGES,
)
def typos(text: str, site: Span, rng: Rng, kind: str, language: str) -> Replacement | None:
    """Mistypes a word: a neighbouring key, a swap, a drop, a double, a misspelling.

    Words of three letters or more; the first letter keeps its case, and the result is never a
    correctly spelt word. Negations, quantifiers and number words stay as they are.
    """
    start, end = site
    mistake = mistyped(text[start:end], kind, language, rng)
    return None if mistake is None else (start, end, mistake)


def _spelling_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    return _misspelt(text, plain_words(text, blocked, language), language)


@site_perturbation(
    "spelling",
    title="misspelt words",
    sites=_spelling_sites,
    family=FAMILY,
    group=NOISE,
    default_rate=0.5,
    invariants=MEANING,
    languages=LANGUAGES,
)
def spelling(text: str, site: Span, rng: Rng, language: str) -> Replacement | None:
    """Misspells words as people do, from a table.

    The rate is the share of the words that are in the table. It is the table of
    `typos:kind=misspelling`, but the results appear in a group of their own.
    """
    start, end = site
    misspelt = mistyped(text[start:end], "misspelling", language, rng)
    return None if misspelt is None else (start, end, misspelt)


# Two words that mean *why*; without the first, the second means *what*.
_WHY = {language: re.compile(r"\bpor qu[eéê]\b", re.IGNORECASE) for language in ("es", "pt")}
_TOKEN = re.compile(r"(?<![\w'’/-])[^\W\d_]++(?:['’][^\W\d_]++)?(?![\w/\-])")


def _stop_word_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    stop, why = stop_words(language), _WHY.get(language)
    spans: list[Span] = []
    for match in _TOKEN.finditer(text):
        word = match.group().replace("’", "'")
        if why is not None and why.match(text, match.start()):
            continue
        if word.lower() in stop and is_no_name(text, match.start(), word, language):
            spans.append(match.span())
    return uncovered(spans, blocked)


def _drop_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    return [
        _with_space(text, start, end, blocked)
        for start, end in _stop_word_sites(text, blocked, language)
    ]


def _with_space(text: str, start: int, end: int, blocked: Sequence[Span]) -> Span:
    """The word with the space before it, or else the space after it."""
    if start and text[start - 1] == " " and not overlaps(blocked, start - 1, start):
        return start - 1, end
    if text[end : end + 1] == " " and not overlaps(blocked, end, end + 1):
        return start, end + 1
    return start, end


@site_perturbation(
    "drop_stop_words",
    title="missing small words",
    sites=_drop_sites,
    family=FAMILY,
    group=MANIPULATION,
    default_rate=1.0,
    invariants=MEANING,
    languages=LANGUAGES,
)
def drop_stop_words(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Drops function words, each with one space beside it.

    Question words, negation, quantifiers, comparison, logic and time are not in the list. What
    follows a dropped first word is not given a capital.
    """
    return site[0], site[1], ""


def _splittable(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    return long_words(text, blocked, language, 4)


@site_perturbation(
    "word_split",
    title="split words",
    sites=_splittable,
    family=FAMILY,
    group=MANIPULATION,
    default_rate=0.3,
    invariants=MEANING,
    languages=LANGUAGES,
)
def word_split(text: str, site: Span, rng: Rng, language: str) -> Replacement | None:
    """Splits words of four letters or more in two, at least two letters on each side.

    No half is ever a negation, quantifier or number word (*no rmal*), and a Dutch *ij* is never
    split.
    """
    start, end = site
    at = start + 2 + rng.below(end - start - 3)
    head, tail = text[start:at], text[at:end]
    protected_words = kept_words(language)
    if head.lower() in protected_words or tail.lower() in protected_words:
        return None
    if language == "nl" and head[-1] == "i" and tail[0] == "j":
        return None
    return start, end, f"{head} {tail}"


def _joints(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    words = plain_words(text, blocked, language)
    gaps = ((a[1], b[0]) for a, b in pairwise(words))
    free = [(end, start) for end, start in gaps if start - end == 1 and text[end] == " "]
    return uncovered(free, blocked)


@site_perturbation(
    "word_merge",
    title="joined words",
    sites=_joints,
    family=FAMILY,
    group=MANIPULATION,
    default_rate=0.3,
    invariants=MEANING,
    languages=LANGUAGES,
)
def word_merge(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Joins neighbouring words by removing the single space between them."""
    return site[0], site[1], ""
