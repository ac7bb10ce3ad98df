"""Shared by the word perturbations: their languages, and the words that noise may touch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from falter.core.records import Span
from falter.perturbations._resources import skipped
from falter.text import (
    KEPT_LANGUAGES,
    letter_symbols,
    mentioned_words,
    merged,
    names,
    natural_words,
    uncovered,
)

__all__ = [
    "FAMILY",
    "LANGUAGES",
    "MANIPULATION",
    "MEANING",
    "NOISE",
    "capitalised_like",
    "is_no_name",
    "long_words",
    "plain_words",
    "spelt_spans",
    "without_symbols",
]

FAMILY = "words"
MANIPULATION = "word manipulation"  # the six of the Brittlebench tables
NOISE = "word noise"
MEANING = ("target", "choices", "numbers", "code", "lines", "negations")
LANGUAGES = KEPT_LANGUAGES

# Articles and the like that are joined to the next word: l'eau, dell'acqua, d'água. The word after
# the apostrophe is an ordinary word; the part before it is not, and may be a negation (n'est).
_ELIDED = {
    language: re.compile(rf"(?<!\w)(?:{heads})['’](?=\w)", re.IGNORECASE)
    for language, heads in {
        "fr": "[cdjlmnst]|(?:jus|lors|puis|quoi|quel|pres)?qu|entr",
        "it": "[cdlmnstv]|(?:d|n|s|c)?[aeou]ll|gl|un|qu(?:est|ell|and)|(?:nessun|ciascun|qualcun"
        "|alcun)|tutt|nient|senz|mezz|anch|com|dov|cos|bell|buon|sant|pover|vent|trent",
        "pt": "d",
    }.items()
}


def plain_words(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    """Natural words that noise may touch: no negation, quantifier or number word, no name, and no
    word that the text is about.

    In French, Italian and Portuguese that includes the word after an elision.
    """
    elided = _ELIDED.get(language)
    if elided is not None and ("'" in text or "’" in text):
        text = elided.sub(lambda match: " " * len(match[0]), text)
    words = natural_words(text, blocked, skipped(language))
    return uncovered(words, spelt_spans(text, language)) if words else words


def spelt_spans(text: str, language: str) -> Sequence[Span]:
    """Where the spelling itself counts: names, and words that are mentioned."""
    name_spans, mentions = names(text, language), mentioned_words(text)
    return merged((*name_spans, *mentions)) if name_spans and mentions else name_spans or mentions


def long_words(text: str, blocked: Sequence[Span], language: str, least: int = 3) -> list[Span]:
    """Plain words of at least so many letters."""
    return [span for span in plain_words(text, blocked, language) if span[1] - span[0] >= least]


def without_symbols(text: str, words: list[Span], language: str) -> list[Span]:
    """The words without single letters that stand for something: the side *a* is no article."""
    if language != "en" or all(end - start > 1 for start, end in words):
        return words
    return uncovered(words, letter_symbols(text))


# Words before *I* at the start of a clause: a capital does not make them a name.
_OPENERS = frozenset(
    re.findall(
        r"\w+",
        "after also am and are as because before but can could did do does had has have how if may "
        "might must now once or shall should since so than that then though unless until was were "
        "what when where whether which while who why will would",
    )
)
_SENTENCE_START = re.compile(r"""(?:^|[.!?:\n])["'“”‘’«„¿¡(\s]{0,8}\Z""")


def is_no_name(text: str, start: int, word: str, language: str = "en") -> bool:
    """Whether the word is not part of a name (Plan A, The Who, World War I): it is in lower case or
    begins a sentence."""
    if word.islower():
        return True
    if language == "en" and word.startswith("I'"):
        return True
    if language == "en" and word == "I":
        previous = text[max(0, start - 40) : start].rstrip().rpartition(" ")[2]
        return not (previous.isalpha() and previous.istitle()) or previous.lower() in _OPENERS
    before = text[max(0, start - 12) : start]
    return word.istitle() and _SENTENCE_START.search(before) is not None


def capitalised_like(model: str, word: str) -> str:
    """The word, with a capital where the model begins with one."""
    return word[0].upper() + word[1:] if model[0].isupper() else word
