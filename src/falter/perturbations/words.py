"""Word manipulation: noise in and between words of the input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._resources import stop_words, unnatural
from falter.perturbations._typing import can_misspell, mistyped
from falter.perturbations._vocabulary import KEPT, word_set
from falter.text import Replacement, natural_words, overlaps, uncovered

__all__ = [
    "drop_stop_words",
    "punctuation_spaces",
    "space_sequences",
    "typos",
    "word_merge",
    "word_split",
]

_FAMILY, _GROUP = "words", "word manipulation"
_MEANING = ("target", "choices", "numbers", "code", "lines", "negations")
_KIND = Parameter(
    name="kind",
    type=str,
    default="all",
    help="keyboard: a neighbouring key; misspelling: as people misspell the word; "
    "charmix: letters swapped, dropped or doubled",
    options=("all", "charmix", "keyboard", "misspelling"),
)


def plain_words(text: str, blocked: Sequence[Span], language: str = "en") -> list[Span]:
    """Natural words that noise may touch: no negation, quantifier or number word."""
    words = natural_words(text, blocked, unnatural(language))
    return [(start, end) for start, end in words if text[start:end].lower() not in KEPT]


def _typo_sites(text: str, blocked: Sequence[Span], kind: str, language: str) -> list[Span]:
    words = [span for span in plain_words(text, blocked, language) if span[1] - span[0] >= 3]
    if kind != "misspelling":
        return words
    return [(start, end) for start, end in words if can_misspell(text[start:end], language)]


@site_perturbation(
    "typos",
    sites=_typo_sites,
    family=_FAMILY,
    group=_GROUP,
    default_rate=0.5,
    parameters=(_KIND,),
    invariants=_MEANING,
    languages=("en",),
)
def typos(text: str, site: Span, rng: Rng, kind: str, language: str) -> Replacement | None:
    """Makes one slip in a word: a neighbouring key, a swap, a drop, a double, a misspelling.

    Words of three letters or more; the first letter keeps its case, and the result is never a
    word known to be right. Negations, quantifiers and number words stay as they are.
    """
    start, end = site
    made = mistyped(text[start:end], kind, language, rng)
    return None if made is None else (start, end, made)


_TOKEN = re.compile(r"(?<![\w'’/-])[^\W\d_]++(?:['’][^\W\d_]++)?(?![\w/\-])")
_OPENERS = word_set(
    """
    after also am and are as because before but can could did do does had has have how if
    may might must now once or shall should since so than that then though unless until was
    were what when where whether which while who why will would
    """
)
_SENTENCE_START = re.compile(r"""(?:^|[.!?:\n])["'“”‘’(\s]{0,8}\Z""")


def _stop_word_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    listed = stop_words(language)
    found: list[Span] = []
    for match in _TOKEN.finditer(text):
        word = match.group().replace("’", "'")
        if word.lower() in listed and _is_function_word(text, match.start(), word):
            found.append(match.span())
    return uncovered(found, blocked)


def _is_function_word(text: str, start: int, word: str) -> bool:
    """Whether it stands there as a function word, not in a name (Plan A, The Who, World War I)."""
    if word.islower() or word.startswith("I'"):
        return True
    if word == "I":
        previous = text[max(0, start - 40) : start].rstrip().rpartition(" ")[2]
        return not (previous.isalpha() and previous.istitle()) or previous.lower() in _OPENERS
    before = text[max(0, start - 12) : start]
    return word.istitle() and _SENTENCE_START.search(before) is not None


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
    sites=_drop_sites,
    family=_FAMILY,
    group=_GROUP,
    default_rate=1.0,
    invariants=_MEANING,
    languages=("en",),
)
def drop_stop_words(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Drops function words, each with one space beside it.

    Question words, negation, quantifiers, comparison, logic and time are not in the list. What
    follows a dropped first word is not given a capital.
    """
    return site[0], site[1], ""


_MARK = re.compile(
    r"""[.,;:!?…"“”„«»()\[\]{}¿¡—–‘、。，；：！？「」『』（）]|(?<!\w)['’-]|['’-](?!\w)"""
)


def _mark_sites(text: str, blocked: Sequence[Span]) -> list[tuple[int, str]]:
    marks = uncovered((match.span() for match in _MARK.finditer(text)), blocked)
    found: list[tuple[int, str]] = []
    previous = -1
    for start, end in marks:
        left = start > 0 and previous != start and not text[start - 1].isspace()
        right = end < len(text) and not text[end].isspace()
        if left or right:
            found.append((start, f"{' ' * left}{text[start]}{' ' * right}"))
        previous = end
    return found


@site_perturbation(
    "punctuation_spaces",
    sites=_mark_sites,
    family=_FAMILY,
    group=_GROUP,
    default_rate=1.0,
    invariants=_MEANING,
)
def punctuation_spaces(text: str, site: tuple[int, str], rng: Rng) -> Replacement:
    """Puts a space on both sides of punctuation marks.

    Not where there is white space already, nor at either end of the text; apostrophes and
    hyphens inside words are no marks. Neighbouring marks share the space between them.
    """
    at, spaced = site
    return at, at + 1, spaced


_ANY_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def _gap_sites(text: str, blocked: Sequence[Span]) -> list[int]:
    closed = [(start, end) for start, end in blocked]
    for match in _ANY_WORD.finditer(text):
        word = match.group()
        if word.lower() in KEPT or word[-2:].lower() == "'t" or word[-2:].lower() == "’t":
            closed.append((match.start() + 1, match.end() - 1))
    found: list[int] = []
    at = 1
    for start, end in sorted(closed):
        found.extend(range(at, start))
        at = max(at, end + 1)
    found.extend(range(at, len(text) + 1))
    return found


@site_perturbation(
    "space_sequences",
    sites=_gap_sites,
    family=_FAMILY,
    group=_GROUP,
    default_rate=0.1,
    invariants=_MEANING,
)
def space_sequences(text: str, site: int, rng: Rng) -> Replacement:
    """Puts a run of one to ten spaces after random characters.

    The rate is the share of characters. Protected text, negations, quantifiers and number words
    get no space inside.
    """
    return site, site, " " * (1 + rng.below(10))


def _long_words(text: str, blocked: Sequence[Span]) -> list[Span]:
    return [span for span in plain_words(text, blocked) if span[1] - span[0] >= 4]


@site_perturbation(
    "word_split",
    sites=_long_words,
    family=_FAMILY,
    group=_GROUP,
    default_rate=0.3,
    invariants=_MEANING,
)
def word_split(text: str, site: Span, rng: Rng) -> Replacement | None:
    """Splits words of four letters or more in two, at least two letters on each side.

    Never so that a half is a negation, quantifier or number word (*no rmal*).
    """
    start, end = site
    at = start + 2 + rng.below(end - start - 3)
    left, right = text[start:at], text[at:end]
    if left.lower() in KEPT or right.lower() in KEPT:
        return None
    return start, end, f"{left} {right}"


def _joints(text: str, blocked: Sequence[Span]) -> list[Span]:
    words = plain_words(text, blocked)
    gaps = ((a[1], b[0]) for a, b in pairwise(words))
    free = [(end, start) for end, start in gaps if start - end == 1 and text[end] == " "]
    return uncovered(free, blocked)


@site_perturbation(
    "word_merge",
    sites=_joints,
    family=_FAMILY,
    group=_GROUP,
    default_rate=0.3,
    invariants=_MEANING,
)
def word_merge(text: str, site: Span, rng: Rng) -> Replacement:
    """Joins neighbouring words by taking out the single space between them."""
    return site[0], site[1], ""
