"""Numbers of a response with their context, and the units and nouns that the question asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.scorers.reading.candidates import CLAUSE, CLAUSE_TAGS, in_brackets
from falter.scorers.reading.numerals import (
    Number,
    numbers_in,
    vocabulary,
    without_latex,
    writes_commas,
)
from falter.scorers.reading.phrases import Row, all_stop_words

_QUESTION_END = 1_500  # characters read at the end of a question

_SIGNS = {"€": "euro", "$": "dolla", "£": "pound", "¥": "yen", "%": "perce", "°": "degre"}
_UNITS = {
    "km": "kilom", "m": "metre", "cm": "centi", "mm": "milli", "kg": "kilog", "g": "gram",
    "l": "litre", "ml": "milli", "h": "hour", "hr": "hour", "hrs": "hour", "min": "minut",
    "mins": "minut",
    "s": "secon", "sec": "secon", "eur": "euro", "usd": "dolla", "percent": "perce",
    "percentage": "perce", "prozent": "perce", "pourcent": "perce", "mi": "mile", "ft": "feet",
    "meter": "metre", "meters": "metre", "liter": "litre", "liters": "litre", "kilometer": "kilom",
    "d": "day",
}  # fmt: skip
"""Abbreviations and variants of units, with the stem of the unit's name in a question."""


def stem(word: str) -> str:
    """Return the first five letters of a word, or the stem for a unit's sign or abbreviation."""
    word = word.lower()
    return _SIGNS.get(word) or _UNITS.get(word) or word[:5].rstrip("s") or word


@dataclass(frozen=True, slots=True)
class Question:
    """The requirements of a question: its numbers (`given`), word stems, and units or nouns.

    `scale` is 1000 if it asks for thousands. `commas` is True if its language writes 1.234,56, else
    None. `dated`: the answer may be a year. `rated`: the answer is a rating such as 4/5.
    """

    given: frozenset[Decimal] = frozenset()
    words: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    scale: int = 1
    commas: bool | None = None
    dated: bool = False
    rated: bool = False


_HOW_MANY = named_regex("scorers/reading", "how_many")
_IN_UNIT = named_regex("scorers/reading", "in_unit")
_DATED = named_regex("scorers/reading", "dated")


_RATED = named_regex("scorers/reading", "rated")


@lru_cache(maxsize=512)
def asked_of(question: str) -> Question:
    """Return the numbers of a question and its requirements of the answer."""
    text = question[-_QUESTION_END:]
    if not text.strip():
        return Question()
    known, scales = all_stop_words(), vocabulary().scales
    words = frozenset(
        stem(w) for w in re.findall(r"[^\W\d_]{2,}|[€$£%]", text) if w.lower() not in known
    )
    counted, scale = set[str](), 1
    if found := list(_HOW_MANY.finditer(text)):
        for word in found[-1][1].lower().split():
            if word in scales:
                scale = scales[word]
            elif word not in known:
                counted.add(stem(word))
    for match in _IN_UNIT.finditer(text):
        unit = match[1].lower()
        if unit in scales or unit.rstrip("s") in scales:
            scale = scales.get(unit) or scales[unit.rstrip("s")]
        elif stem(unit) in KNOWN_UNITS:
            counted.add(stem(unit))
    if re.search(r"\b(?:percent|percentage|prozent|pourcentage|procent)\b", text, re.IGNORECASE):
        counted.add("perce")
    given = frozenset(n.value for n in numbers_in(without_latex(text)))
    commas = writes_commas(text, 3) or None
    dated, rated = _DATED.search(text) is not None, _RATED.search(text) is not None
    return Question(given, words, frozenset(counted), scale, commas, dated, rated)


KNOWN_UNITS = frozenset(
    [*_SIGNS.values(), *_UNITS.values(), "week", "month", "year", "inche", "celsi", "fahre", "foot"]
)


@dataclass(slots=True)
class Place:
    """A number of a response: its item in the row, and properties taken from its context."""

    value: Decimal
    at: int
    fits: bool  # followed by the requested unit or noun
    given: bool  # occurs in the question
    result: bool  # follows an equals sign or a word such as "makes"
    weak: bool  # denied, doubted, a limit, or of another unit


LABEL_WORD = named_regex("scorers/reading", "beside")
_ORDINAL = named_regex("scorers/reading", "ordinal")
_DATE = named_regex("scorers/reading", "date")
_DATE_BEFORE = named_regex("scorers/reading", "date_before")
_LIMIT = named_regex("scorers/reading", "limit")
_PAIRED = named_regex("scorers/reading", "paired")
# "3x = 12", "x + y = 9": the value of an expression, and not yet of the unknown. Not "x = 4".
_UNSOLVED = lazy_regex(r"\d[a-z]\s?=\s?\Z|[=+*·-]\s?[a-z]\s?=\s?\Z")
_RESULT = named_regex("scorers/reading", "result")
EQUALS = lazy_regex(r"[=≈→⇒]\s*[$€£(]*\Z")
_OPERATOR = named_regex("scorers/reading", "operator")
_AFTER_OPERATOR = named_regex("scorers/reading", "after_operator")
_RANGE = named_regex("scorers/reading", "range")
# The unit and up to two words after it: "km per hour", "% of those".
_FIRST = lazy_regex(r"\s?([%€$£¥°]|[^\W\d_]+(?:/[^\W\d_]+)?)(?:\s([^\W\d_]+))?(?:\s([^\W\d_]+))?")


def places_in(row: Row, numbers: Sequence[Number], asked: Question) -> list[Place]:
    """Return the numbers of a row that may be its answer."""
    found = (place_at(row, n, numbers, asked) for n, value in enumerate(row.values) if value >= 0)
    return [place for place in found if place is not None]


def place_at(row: Row, n: int, numbers: Sequence[Number], asked: Question) -> Place | None:
    """Return a number with its properties in context; None if it cannot be an answer."""
    number = numbers[row.values[n]]
    before, after = (
        row.text[max(0, number.start - 32) : number.start],
        row.text[number.end : number.end + 40],
    )
    if _is_term(before, after) or _is_label(before, after, number, asked):
        return None
    asks = row.tags.find("?", 2 * n, 2 * n + CLAUSE_TAGS)
    if asks >= 0 and not set(row.tags[2 * n + 2 : asks]) & set("\n.>"):
        return None
    return _place(row, n, number, before, after, asked)


_TERM = lazy_regex(r"\s?[%)]*\s?=")
_TERM_OF = lazy_regex(r"\s?[%€$)]*\s?[^\n=.]{0,12}=")


def _is_term(before: str, after: str) -> bool:
    """Return True for an operand, an index, or a part of a formula."""
    if before[-1:] in ("{", "_", "^") or after[:1] in ("}", "_"):
        return True
    operand = _OPERATOR.match(after) or (
        _AFTER_OPERATOR.search(before[-10:]) and not after.lstrip(")").startswith("%")
    )
    if operand and not _TERM.match(after):
        return True
    return "=" in after[:24] and _TERM_OF.match(after) is not None and "=" not in before[-3:]


def _is_label(before: str, after: str, number: Number, asked: Question) -> bool:
    """Return True for the number of a list entry, step or page, and for a date or a time of day."""
    if (
        number.end - number.start <= 2
        and after[:1] in (".", ")")
        and after[1:2].isspace()
        and not before.rpartition("\n")[2].strip(" \t*-#")
    ):
        return True
    if before[-1:] in (" ", "#") and LABEL_WORD.search(before[-18:]):
        return True
    if (
        _ORDINAL.match(after)
        or re.search(r"\d:\Z", before)
        or (number.value < 32 and _DATE.match(after))
    ):
        return True
    years = 1000 <= number.value < 2200 and number.end - number.start == 4
    return years and not asked.dated and _DATE_BEFORE.search(before[-16:]) is not None


def _place(row: Row, n: int, number: Number, before: str, after: str, asked: Question) -> Place:
    """Return a number with the properties that its context gives."""
    value, start, end = number
    behind = _FIRST.match(row.text, end, end + 60)
    stems = {stem(w) for w in behind.groups() if w} if behind else set()
    for sign in (row.text[start], before[-1:]):
        if sign in _SIGNS:
            stems.add(stem(sign))
    # A question for a date is answered by a year, which has no unit.
    is_year = asked.dated and 1000 <= value < 2200 and end - start == 4
    fits = bool(stems & asked.counted) or is_year
    return Place(
        value,
        n,
        fits,
        value in asked.given and not EQUALS.search(before[-6:]),
        _RESULT.search(before) is not None,
        _is_weak(row, n, before, after) or (not fits and _is_beside(row, n, stems, after, asked)),
    )


def _is_weak(row: Row, n: int, before: str, after: str) -> bool:
    """Return True for a number that is denied, doubted, a limit, or part of a pair or range."""
    return bool(
        _is_doubted(row, n)
        or _RANGE.match(after)
        or _LIMIT.search(before[-26:])
        or _PAIRED.search(before[-12:])
        or _UNSOLVED.search(before[-8:])
        or any(is_joined(row, m, "o") for m in range(max(0, n - 4), n + 1) if row.values[m] >= 0)
    )


def _is_beside(row: Row, n: int, stems: set[str], after: str, asked: Question) -> bool:
    """Return True for a number of another unit, a share, or a remark in brackets."""
    # Asked for kilometres: "in 3 hours", "by 20 %" and "(5 last year)" are no answers.
    if stems & KNOWN_UNITS and asked.counted & KNOWN_UNITS:
        return True
    if after.lstrip()[:1] == "%" and "perce" not in asked.counted | asked.words:
        return True
    return in_brackets(row, n) and not after.lstrip().startswith("=")


def _is_doubted(row: Row, n: int) -> bool:
    """Return True if the clause before a number denies it, doubts it or sets it aside."""
    part = row.tags[max(0, 2 * n + 1 - CLAUSE_TAGS) : 2 * n + 1]
    part = part[max(part.rfind(gap) for gap in "\n.?>") + 1 :]
    clause = set(CLAUSE.split(part if part[-1:] not in (":", ">", "-") else "")[-1])
    return bool(clause & set("nrhfjko"))


_JOINED = re.compile(r"(?:[ (][wd]){0,2}[ ,]([oe])[ (](?:[dwh][ (])?c")


def is_joined(row: Row, at: int, by: str = "oe") -> bool:
    """Return True if a second number is joined to the number at `at`.

    Examples are "3 or 4" and "5 minutes and 10 seconds". `by` has the tags of the conjunctions: `o`
    for "or", `e` for "and".
    """
    behind = row.tags[2 * at + 2 : 2 * at + 12]
    match = _JOINED.match(behind)
    return match is not None and match[1] in by
