"""Ordinary words, sentences, words whose loss changes the question, and edit distances."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files

from falter.records.errors import InvalidValue, nearest
from falter.records.lazy_regex import lazy_regex, named_regex
from falter.records.types import Span
from falter.text.spans import uncovered

_bundled_regex = partial(named_regex, "text")


def data_text(name: str) -> str:
    """Return the text of a bundled data file."""
    return files("falter.text").joinpath("data", name).read_text(encoding="utf-8")


def word_set(name: str) -> frozenset[str]:
    """Return one of the small bundled sets of words, by its name."""
    entries: list[str] = json.loads(data_text("word_sets.json"))[name]
    return frozenset(" ".join(entries).split())


# A run of letters that touches no digit, no underscore, no combining accent, and no apostrophe
# followed by a letter.
_WORD = _bundled_regex("word")

# The same word for ASCII text, in the case of a natural word: "word", "Word", "a", "I"; not "WORD",
# "iOS". The letter comes before its look-behinds, as in every pattern here: that is faster.
_ASCII_WORD = lazy_regex(r"[A-Za-z](?<!\w.)(?<!\w'.)(?:[a-z]++|(?<=[aAI]))(?!\w)(?!'\w)", re.ASCII)


# The units are symbols only, since 'in', 'bar' or 'mole' are words first. All single letters but
# these are taken as variables, labels or units.
_ONE_LETTER_WORDS = frozenset("aAI")
_UNITS = word_set("units")


def natural_words(
    text: str, protected: Sequence[Span], unnatural: Container[str] = frozenset()
) -> list[Span]:
    """Return the spans of ordinary words outside every protected span, in order.

    An ordinary word is alphabetic and in lower case or title case. It is not joined to a digit,
    underscore or apostrophe. Unit symbols, single letters other than *a*, *A* and *I*, and words in
    `unnatural` (known misspellings, in lower case) do not count. Words of scripts without case are
    not found.
    """
    if text.isascii():
        ordinary = [
            match.span()
            for match in _ASCII_WORD.finditer(text)
            if (folded := match[0].lower()) not in _UNITS and folded not in unnatural
        ]
        return uncovered(ordinary, protected)
    words: list[Span] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if word.islower():
            folded = word
        elif word.istitle():
            folded = word.lower()
        else:
            continue
        if len(word) == 1 and word not in _ONE_LETTER_WORDS:
            continue
        if folded not in _UNITS and folded not in unnatural:
            words.append(match.span())
    return uncovered(words, protected)


_STOP = _bundled_regex("stop")
_ABBREVIATION = _bundled_regex("abbreviation")
# A number whose point makes it an ordinal, as German has it: "am 3. Mai". "am 3"; not "a3", "123".
_ORDINAL = lazy_regex(r"(?<!\w)\d{1,2}\Z")
_GERMAN_DATE = _bundled_regex("german_date")
_OPEN, _CLOSED = "「『", "」』"
_QUOTED_ON = lazy_regex(r"[\u3041-\u3096、]")


def sentences(text: str) -> list[Span]:
    """Return the spans of sentences, without the white space around them.

    A full stop ends a sentence if white space or the end of the text follows. It does not after an
    abbreviation or an initial, or before a lower-case letter. A blank line ends a sentence, too. A
    Japanese quotation is neither split nor separated from the words that name its speaker.
    """
    out: list[Span] = []
    start = 0
    for match in _STOP.finditer(text):
        if match.group("point") and _continues(text, match):
            continue
        if match.group("wide") and _is_quoted(text, start, match.end()):
            continue
        _append_stripped(out, text, start, match.end())
        start = match.end()
    _append_stripped(out, text, start, len(text))
    return out


def _continues(text: str, match: re.Match[str]) -> bool:
    rest = text[match.end() : match.end() + 40].lstrip()
    if not rest:
        return False
    if rest[0].islower():
        return True
    before = text[max(0, match.start() - 8) : match.start()]
    if match.group() != ".":
        return False
    if _ORDINAL.search(before):
        return _GERMAN_DATE.match(rest) is not None
    return _ABBREVIATION.search(before) is not None


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Return True if a Japanese stop is inside a quotation, or ends one inside a sentence."""
    opened = sum(text.count(mark, start, end) for mark in _OPEN)
    closed = sum(text.count(mark, start, end) for mark in _CLOSED)
    if opened > closed:
        return any(text.find(mark, end, end + 200) >= 0 for mark in _CLOSED)
    return text[end - 1] in _CLOSED and _QUOTED_ON.match(text, end) is not None


def _append_stripped(out: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    leading = len(piece) - len(piece.lstrip())
    if leading < len(piece):
        out.append((start + leading, start + len(piece.rstrip())))


# Words whose loss changes the question: negations, quantifiers, number words

KEPT_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")


def kept_words(language: str = "en") -> frozenset[str]:
    """Return all words of the language that noise must not touch, in lower case.

    These are negations, quantifiers, number words and a few other words that could change the
    answer: *last*, and articles that also mean the number one (*ein*, *une*). Raise `InvalidValue`
    for a language that is not in `KEPT_LANGUAGES`.
    """
    return _meaning_words(language)


def negations(language: str = "en") -> frozenset[str]:
    """Return the words that deny or exclude: *not*, *kein*, *sans*."""
    return _words_by_class(language)["negations"]


def quantifiers(language: str = "en") -> frozenset[str]:
    """Return the words of amount, number and frequency: *all*, *menos*, *selten*."""
    return _words_by_class(language)["quantifiers"]


def number_words(language: str = "en") -> frozenset[str]:
    """Return cardinals, ordinals, fractions and multiples in words, with inflected forms."""
    return _words_by_class(language)["numbers"]


@cache
def _meaning_words(language: str) -> frozenset[str]:
    return frozenset().union(*_words_by_class(language).values())


@cache
def _words_by_class(language: str) -> Mapping[str, frozenset[str]]:
    if language not in KEPT_LANGUAGES:
        close = nearest(language, KEPT_LANGUAGES) if isinstance(language, str) else None
        hint = None if close is None else f"did you mean '{close}'?"
        raise InvalidValue("language", language, f"one of: {', '.join(KEPT_LANGUAGES)}", hint=hint)
    sections: dict[str, set[str]] = {}
    section: set[str] = set()
    for line in data_text(f"kept_{language}.txt").splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), set())
        elif not line.startswith("#"):
            section.update(line.split())
    return {name: frozenset(words) for name, words in sections.items()}


# Edit distance: letters replaced, added, left out and swapped


def edit_distance(first: str, second: str) -> int:
    """Return the minimum number of edits: letters replaced, added, left out, neighbours swapped."""
    return edit_costs(first, second)[-1][-1]


def edit_costs(first: str, second: str) -> list[list[int]]:
    """Return the distances between all prefixes of two words (optimal string alignment).

    Entry [i][j] is the distance of the first i letters of `first` to the first j of `second`.
    """
    rows = [list(range(len(second) + 1))]
    for i, a in enumerate(first, start=1):
        above, row = rows[-1], [i]
        for j, b in enumerate(second, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows
