"""Noise in and between words of the input: typing mistakes, dropped words, split and joined ones.

Group *word manipulation* is the six of the Brittlebench tables, *word noise* are all others of the
family. The family *wording* comes through the same door.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._autocorrect import autocorrect
from falter.perturbations._base import site_perturbation
from falter.perturbations._casing import casing
from falter.perturbations._dialect import dialect
from falter.perturbations._distractors import distractor_context
from falter.perturbations._dropping import drop_stop_words
from falter.perturbations._human_typos import human_typos
from falter.perturbations._invisible import invisible
from falter.perturbations._letters import homoglyphs, leetspeak, ocr
from falter.perturbations._lexical import contractions, homophones, synonyms
from falter.perturbations._manner import learner, tone_rules, voice
from falter.perturbations._marks import punctuation, punctuation_spaces
from falter.perturbations._reasked import paraphrase_rules
from falter.perturbations._resources import misspellings, never_written
from falter.perturbations._spacing import space_sequences, whitespace
from falter.perturbations._typing import mistyped
from falter.perturbations._wording import (
    FAMILY,
    LANGUAGES,
    MANIPULATION,
    MEANING,
    NOISE,
    long_words,
    plain_words,
    without_symbols,
)
from falter.text import Replacement, kept_words, uncovered

__all__ = [
    "autocorrect",
    "casing",
    "contractions",
    "dialect",
    "distractor_context",
    "drop_stop_words",
    "homoglyphs",
    "homophones",
    "human_typos",
    "invisible",
    "learner",
    "leetspeak",
    "ocr",
    "paraphrase_rules",
    "punctuation",
    "punctuation_spaces",
    "space_sequences",
    "spelling",
    "synonyms",
    "tone_rules",
    "typos",
    "voice",
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
    version=3,
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
    version=2,
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


def _splittable(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    return long_words(text, blocked, language, 4)


@site_perturbation(
    "word_split",
    title="split words",
    sites=_splittable,
    family=FAMILY,
    group=MANIPULATION,
    version=2,
    default_rate=0.3,
    invariants=MEANING,
    languages=LANGUAGES,
)
def word_split(text: str, site: Span, rng: Rng, language: str) -> Replacement | None:
    """Splits words of four letters or more in two, at least two letters on each side.

    No half is ever a negation, quantifier or number word (*no rmal*) or a coarse one (*ass ure*),
    and a Dutch *ij* is never split.
    """
    start, end = site
    at = start + 2 + rng.below(end - start - 3)
    head, tail = text[start:at], text[at:end]
    kept, coarse = kept_words(language), never_written()
    if any(half in kept or half in coarse for half in (head.lower(), tail.lower())):
        return None
    if language == "nl" and head[-1] == "i" and tail[0] == "j":
        return None
    return start, end, f"{head} {tail}"


def _joints(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    words = without_symbols(text, plain_words(text, blocked, language), language)
    gaps = ((a[1], b[0]) for a, b in pairwise(words))
    free = [(end, start) for end, start in gaps if start - end == 1 and text[end] == " "]
    return uncovered(free, blocked)


@site_perturbation(
    "word_merge",
    title="joined words",
    sites=_joints,
    family=FAMILY,
    group=MANIPULATION,
    version=3,
    default_rate=0.3,
    invariants=MEANING,
    languages=LANGUAGES,
)
def word_merge(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Joins neighbouring words by removing the single space between them.

    A letter that stands for something (*the value of a*) is joined to nothing.
    """
    return site[0], site[1], ""
