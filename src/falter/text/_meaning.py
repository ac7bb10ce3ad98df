"""What a changed text must keep: protected spans, numbers, negations, quantifiers."""

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
    """One difference in meaning: what was lost, or, behind a plus sign, what was added."""

    check: MeaningCheck
    lost: str


def meaning_flags(before: str, after: str, language: str = "en") -> tuple[MeaningFlag, ...]:
    """The losses of meaning that can be found without a model, in the order of the checks.

    *span*: a protected span of `before` stands fewer times in `after`. *number*: a number in
    figures or words is lost, changed or new (`1,000` and `1000` are the same, `five` and `5` are
    not). *negation*: there are fewer or more of them; contracted and expanded ones count alike.
    *quantifier*: one is lost. A language without word lists raises.
    """
    spans = Counter(before[start:end] for start, end in protect(before))
    lost_spans = [text for text, count in spans.items() if after.count(text) < count]
    losses: list[tuple[MeaningCheck, list[str]]] = [("span", lost_spans)]
    old_words, new_words = _words(before, language), _words(after, language)
    numbers = _folded("number", language)
    old_numbers = _counted(old_words, numbers) + _figures(before, language)
    new_numbers = _counted(new_words, numbers) + _figures(after, language)
    losses.append(
        ("number", [*_more(old_numbers, new_numbers), *_plus(_more(new_numbers, old_numbers))])
    )
    losses.append(("negation", _negations(old_words, new_words, language)))
    names = _folded("quantifier", language)
    losses.append(
        ("quantifier", list(_more(_counted(old_words, names), _counted(new_words, names))))
    )
    return tuple(MeaningFlag(check=check, lost=text) for check, texts in losses for text in texts)


def _negations(old: Counter[str], new: Counter[str], language: str) -> list[str]:
    """Negations lost or added, if their number differs: *no* may become *not any*."""
    names = _folded("negation", language)
    before, after = _counted(old, names), _counted(new, names)
    if before.total() == after.total():
        return []
    return (
        list(_more(before, after))
        if before.total() > after.total()
        else _plus(_more(after, before))
    )


def _more(larger: Counter[str], smaller: Counter[str]) -> Iterator[str]:
    """What the larger has more of than the smaller."""
    return (larger - smaller).elements()


def _plus(added: Iterator[str]) -> list[str]:
    return [f"+{text}" for text in added]


def _counted(words: Counter[str], names: frozenset[str]) -> Counter[str]:
    return Counter({word: count for word, count in words.items() if word in names})


@cache
def _folded(check: MeaningCheck, language: str) -> frozenset[str]:
    source = {"number": number_words, "negation": negations, "quantifier": quantifiers}[check]
    return frozenset(map(_fold, source(language)))


def _fold(word: str) -> str:
    """The word without case and with composed accents, so that AUSSER equals außer."""
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
