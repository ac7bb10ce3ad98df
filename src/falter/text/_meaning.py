"""What a changed text may no longer lose: spans, numbers, negations, quantifiers."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from falter.text._kept import negations, number_words, quantifiers
from falter.text._protect import protect

__all__ = ["MeaningCheck", "MeaningFlag", "meaning_flags"]

MeaningCheck = Literal["span", "number", "negation", "quantifier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningFlag:
    """One loss that a check found; what came in addition stands in `lost` behind a plus sign."""

    check: MeaningCheck
    lost: str


def meaning_flags(before: str, after: str, language: str = "en") -> tuple[MeaningFlag, ...]:
    """The losses of meaning that can be told without a model, in the order of the checks.

    *span*: a protected span of `before` stands fewer times in `after`. *number*: a number in
    figures or words is lost, changed or new (`1,000` and `1000` are the same, `five` and `5` are
    not). *negation*: there are fewer or more of them; contracted and expanded ones count alike.
    *quantifier*: one is lost. A language without word lists raises.
    """
    losses: list[tuple[MeaningCheck, list[str]]] = [("span", list(_lost_spans(before, after)))]
    old, new = _words(before, language), _words(after, language)
    numbers = _folded("number", language)
    counted = _counted(old, numbers) + _figures(before, language)
    found = _counted(new, numbers) + _figures(after, language)
    losses.append(("number", [*_more(counted, found), *_plus(_more(found, counted))]))
    losses.append(("negation", _negations(old, new, language)))
    names = _folded("quantifier", language)
    losses.append(("quantifier", list(_more(_counted(old, names), _counted(new, names)))))
    return tuple(MeaningFlag(check=check, lost=text) for check, texts in losses for text in texts)


def _lost_spans(before: str, after: str) -> Iterator[str]:
    spans = Counter(before[start:end] for start, end in protect(before))
    return (text for text, count in spans.items() if after.count(text) < count)


def _negations(old: Counter[str], new: Counter[str], language: str) -> list[str]:
    """Those lost or added, where their number differs: *no* may become *not any*."""
    names = _folded("negation", language)
    had, has = _counted(old, names), _counted(new, names)
    if had.total() == has.total():
        return []
    return list(_more(had, has)) if had.total() > has.total() else _plus(_more(has, had))


def _more(one: Counter[str], other: Counter[str]) -> Iterator[str]:
    """What the first has more of than the second."""
    return (one - other).elements()


def _plus(added: Iterator[str]) -> list[str]:
    return [f"+{text}" for text in added]


def _counted(words: Counter[str], names: frozenset[str]) -> Counter[str]:
    return Counter({word: count for word, count in words.items() if word in names})


@cache
def _folded(check: MeaningCheck, language: str) -> frozenset[str]:
    source = {"number": number_words, "negation": negations, "quantifier": quantifiers}[check]
    return frozenset(map(_fold, source(language)))


def _fold(word: str) -> str:
    """Without case, accents in one piece: AUSSER is außer, whose capitals it is."""
    return unicodedata.normalize("NFC", word).casefold()


_TOKEN = re.compile(r"[^\W\d_][^\W\d_\u0300-\u036f]*(?:[\u0300-\u036f'’][^\W\d_]*)*")


def _words(text: str, language: str) -> Counter[str]:
    return Counter(word for match in _TOKEN.finditer(text) for word in _parts(match[0], language))


def _parts(token: str, language: str) -> list[str]:
    """The words in a token: *isn't* holds *not*, *n'est* holds *ne*."""
    word = _fold(token)
    if "'" not in word and "’" not in word:
        return [word]
    parts = word.replace("’", "'").strip("'").split("'")
    if language == "en" and parts[-1] == "t" and parts[-2:-1] and parts[-2].endswith("n"):
        return ["not"]
    return ["ne" if language == "fr" and part == "n" else part for part in parts]


_FIGURES = re.compile(
    # no w0rd, no 5km
    r"(?<![\w.,!@|])(?:(?<![)\]])[-+−])?\d++(?:[.,\u00a0\u202f'’]\d++)*+(?![!@|$]?[^\W\d_])"
)
_GROUPED = {
    True: re.compile(r"(?<=\d)[,\u00a0\u202f'’](?=\d{3}(?!\d))"),
    False: re.compile(r"(?<=\d)[.\u00a0\u202f'’](?=\d{3}(?!\d))"),
}


def _figures(text: str, language: str) -> Counter[str]:
    """The numbers in figures, with their sign and without marks between thousands."""
    grouped = _GROUPED[language == "en"]
    return Counter(grouped.sub("", match[0]) for match in _FIGURES.finditer(text))
