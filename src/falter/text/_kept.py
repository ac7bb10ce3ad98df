"""Words whose loss changes the question: negations, quantifiers, number words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from falter.core.errors import InvalidValue, nearest

__all__ = ["KEPT_LANGUAGES", "kept_words", "negations", "number_words", "quantifiers"]

KEPT_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")


def kept_words(language: str = "en") -> frozenset[str]:
    """All words of the language that noise must not touch, in lower case.

    Negations, quantifiers and number words, and a few others that could change the answer too:
    *last*, and articles that are also the number one (*ein*, *une*).
    """
    return _union(language)


def negations(language: str = "en") -> frozenset[str]:
    """Words that deny or except: *not*, *kein*, *sans*."""
    return _classes(language)["negations"]


def quantifiers(language: str = "en") -> frozenset[str]:
    """Words that say how much, how many or how often: *all*, *menos*, *selten*."""
    return _classes(language)["quantifiers"]


def number_words(language: str = "en") -> frozenset[str]:
    """Cardinals, ordinals, fractions and multiples in words, inflected forms included."""
    return _classes(language)["numbers"]


@cache
def _union(language: str) -> frozenset[str]:
    return frozenset().union(*_classes(language).values())


@cache
def _classes(language: str) -> Mapping[str, frozenset[str]]:
    if language not in KEPT_LANGUAGES:
        close = nearest(language, KEPT_LANGUAGES) if isinstance(language, str) else None
        hint = None if close is None else f"did you mean '{close}'?"
        raise InvalidValue("language", language, f"one of: {', '.join(KEPT_LANGUAGES)}", hint=hint)
    path = files("falter.text").joinpath("data", f"kept_{language}.txt")
    return _parsed(path.read_text(encoding="utf-8"))


def _parsed(text: str) -> dict[str, frozenset[str]]:
    sections: dict[str, set[str]] = {}
    section: set[str] = set()
    for line in text.splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), set())
        elif not line.startswith("#"):
            section.update(line.split())
    return {name: frozenset(words) for name, words in sections.items()}
