"""Extraction of the number that a response gives as its answer, among all its numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.scorers.reading.candidates import CORRECTED, DOUBT, MAX_MENTIONS, UNMARKED, WITHDRAWN
from falter.scorers.reading.cleaning import Cleaned, clean, is_cut
from falter.scorers.reading.fields import set_off
from falter.scorers.reading.numerals import Number, numbers_in, without_latex
from falter.scorers.reading.phrases import HAS_CJK, Row, refusal_at, tag_text
from falter.scorers.reading.places import (
    EQUALS,
    LABEL_WORD,
    Place,
    Question,
    asked_of,
    is_joined,
    place_at,
    places_in,
    stem,
)
from falter.scorers.reading.reading import Reading

_SHORT_RESPONSE_WORDS = 8  # words; in a response up to this length any only number counts
MAX_TEXT_CHARACTERS = 200  # maximum characters of a box or value that holds a number
# A rating: "7/10", "4.5 / 5"; the scale is removed, so that it does not count as a number. Not
# "1/2", a fraction, and not "3/10/2024", a date.
_OUT_OF = lazy_regex(r"(?<![\d/.,])(\d{1,3}(?:[.,]\d)?)\s?/\s?(?:4|5|6|10|20|100)(?![\d/.,]\d|\d)")
_MARK = named_regex("scorers/reading", "number_mark")


def read_number(reply: str, question: str = "", *, cut: bool = False) -> Reading[Decimal]:
    """Return the number that a response gives as its answer, without its unit.

    If the question asks for thousands or millions, a number at least that large is divided by the
    scale. With `cut` (a truncated response), only a marked or short answer counts.
    """
    cleaned = clean(reply)
    if cleaned.reason:
        return Reading(reason=cleaned.reason)
    requirements = asked_of(question)
    found = _set_off_number(cleaned, requirements)
    if found is None:
        found = _prose_number(cleaned, requirements, question, cut)
    value = found.answer
    if value is None:
        return found
    if cut and _UNFINISHED.search(reply, max(0, len(reply) - 40)):
        return Reading(reason="the reply was cut off in its last number")
    if 1 < requirements.scale <= value:
        value /= requirements.scale
    written = format(value, "f")
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return Reading(answer=Decimal(written), tier=found.tier)


_UNFINISHED = lazy_regex(r"\d[.,]?\s*\Z")  # "7." may go on as 7.5
_VALUE_KEYS = r"answer|result|total|number|final|antwort|réponse|respuesta"


def _set_off_number(cleaned: Cleaned, asked: Question) -> Reading[Decimal] | None:
    """Return the number in an answer tag, a box or an object; None if there is none of these."""

    def take(value: Any) -> Decimal | None:
        return _json_number(value, asked)

    found = set_off(cleaned, take, _VALUE_KEYS, asked.words)
    if found is not None:
        return found
    if cleaned.boxed:
        return Reading(reason="the box holds no single number")
    return Reading(reason="the object is broken") if cleaned.raw.startswith("{") else None


def _json_number(value: Any, asked: Question) -> Decimal | None:
    """Return the number of a JSON value: a number, or the only number of a text, after any `=`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # No answer has more than 60 digits, but JSON may hold a number with millions.
        return Decimal(str(value)) if abs(value) < 10**60 else None
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARACTERS:
        return None
    text = without_latex(value)
    # A box with "5 ± 1" or "2x + 3" holds no single number.
    if "±" in text or re.search(r"\d\s?[a-z]\s?[+-]", text):
        return None
    # The result of "3 + 4 = 7" follows the last equals sign.
    numbers = numbers_in(re.split(r"=|≈|\\approx", text)[-1], commas=asked.commas)
    return numbers[0].value if len(numbers) == 1 else None


# In prose


def _prose_number(cleaned: Cleaned, asked: Question, question: str, cut: bool) -> Reading[Decimal]:
    """Return the number that prose marks or concludes with."""
    text = without_latex(cleaned.text)
    if asked.rated:
        text = _OUT_OF.sub(r"\1", text)
    numbers = numbers_in(text, commas=asked.commas)
    if not numbers:
        return Reading(reason="the reply holds no number")
    # The last numbers, since answers come last. If some are left out, only a mark is trusted.
    numbers = numbers[-MAX_MENTIONS:]
    cleaned.is_whole &= len(numbers) < MAX_MENTIONS
    row = tag_text(text, [(n.start, n.end, i) for i, n in enumerate(numbers)], question)
    refused = refusal_at(row)
    # Before refusals and hedges: a number that a reply itself marks is its answer.
    marked = _marked_number(row, numbers, asked)
    if marked is not None:
        return marked
    places = places_in(row, numbers, asked)
    short = _short_number(row, numbers, places)
    if short is not None:
        return Reading(answer=short, tier="stated")
    if not cleaned.is_whole:
        return Reading(reason="the reply is too long, and its end marks no number")
    if refused is not None:
        return Reading(reason="the reply declines to answer")
    if "p" in row.tags[1::2] or "?" in row.tags:
        return Reading(reason="the reply leaves the answer open")
    if cut or is_cut(text):
        return Reading(reason="the reply was cut off before it marked an answer")
    if CORRECTED.search(row.tags):
        return Reading(reason="the reply corrects itself")
    bold = _bold_number(cleaned, asked, places)
    found = _concluded_number(row, places, asked)
    if bold is None:
        return found
    if found.answer in (None, bold):
        return Reading(answer=bold, tier="stated" if found.answer == bold else "inferred")
    return Reading(reason="the number in bold is not the one concluded")


def _short_number(row: Row, numbers: Sequence[Number], places: list[Place]) -> Decimal | None:
    """Return the number if a response is, begins or ends with a line of a number and its unit."""
    sentences = row.sentences()
    whole = len(sentences) == 1
    alone = [s for s in sentences if _is_alone(row, s, places, whole=whole)]
    values = [next(v for v in row.values[slice(*s)] if v >= 0) for s in alone]
    if not values or len({numbers[v].value for v in values}) > 1:
        return None
    value = numbers[values[0]].value
    if alone[-1] == sentences[-1] and (len(sentences) == 1 or row.tags[2 * alone[-1][0]] in "\n>"):
        return value
    if alone[0] != sentences[0] or CORRECTED.search(row.tags[2 * alone[0][1] :]):
        return None
    later = [p for p in places if p.at >= alone[0][1] and p.result and not p.given and not p.weak]
    return value if all(p.value == value for p in later) else None


def _is_alone(row: Row, sentence: tuple[int, int], places: list[Place], *, whole: bool) -> bool:
    """Return True if a sentence is a number with its unit; if `whole`, with a few words."""
    part = row.part(*sentence)
    rest = part[1::2].replace("c", "")
    known = [p for p in places if sentence[0] <= p.at < sentence[1]]
    counts = sum(v >= 0 for v in row.values[slice(*sentence)])
    return (
        counts == len(known) == 1
        and not known[0].weak
        and (whole or not part[1::2].partition("c")[0].strip("d"))
        and len(rest) <= 3
        and not set(rest) & set("nrhofjxbpkz" if whole else "nrhofjxbipkmz")
        and part[-1] != "?"
        and not set(part[1:-1:1]) & set(":")
    )


def _marked_number(row: Row, numbers: Sequence[Number], asked: Question) -> Reading[Decimal] | None:
    """Return the number after a mark: "the answer is", "Answer:"."""
    values, ends = list[Decimal](), list[int]()
    for first, end in row.sentences():
        part = row.part(first, end)
        if part[-1] == "?" or "c" not in part:
            continue
        for mark in _MARK.finditer(part):
            at = first + (mark.end() - 1) // 2
            if not DOUBT.isdisjoint(part[: mark.start()][1::2]):
                continue
            at = _chain_end(row, at)
            place = place_at(row, at, numbers, asked)
            if (
                place is None
                or place.weak
                or is_joined(row, at)
                or UNMARKED.match(row.tags, 2 * at + 1)
            ):
                return Reading(reason="the marked answer is no single number")
            values.append(numbers[row.values[at]].value)
            ends.append(at)
    if not values:
        return None
    last = ends[-1]
    behind = row.tags[2 * last + 2 :]
    if CORRECTED.search(behind) or WITHDRAWN.search(behind):
        return Reading(reason="the reply takes its answer back") if "c" not in behind else None
    if (
        len(set(values)) == 1
        or "final" in row.text[max(0, row.spans[last][0] - 40) : row.spans[last][0]].lower()
    ):
        return Reading(answer=values[-1], tier="stated")
    other = max(at for at, v in zip(ends, values, strict=True) if v != values[-1])
    if CORRECTED.search(row.tags[2 * other + 2 : 2 * last + 1]):
        return Reading(answer=values[-1], tier="inferred")
    return Reading(reason="two different numbers are marked")


def _chain_end(row: Row, at: int) -> int:
    """Return the item of the last number in a calculation that begins at `at`: 3 + 4 = 7."""
    text = row.text
    while at + 1 < len(row.values):
        n = at + 1
        while n < len(row.values) and row.values[n] < 0 and n - at < 3:
            n += 1
        if n >= len(row.values) or row.values[n] < 0:
            break
        gap = text[row.spans[at][1] : row.spans[n][0]]
        # Minus, slash and x count between spaces alone: 2-3 is a range, 1/2 a fraction, 3x a term.
        if not re.search(r"[=≈+×*÷^·]|\s[-−/x]\s", gap) or "\n" in gap or ". " in gap:
            break
        at = n
    return at


def _bold_number(cleaned: Cleaned, asked: Question, places: list[Place]) -> Decimal | None:
    """Return the only number in bold type with nothing but its unit."""
    known = {place.value for place in places}
    values = set()
    for span in cleaned.bold:
        numbers = numbers_in(without_latex(span), commas=asked.commas)
        if (
            len(numbers) == 1
            and len(span.split()) <= 4
            and not LABEL_WORD.search(span[: numbers[0].start])
        ):
            values.add(numbers[0].value)
    return values.pop() if len(values) == 1 and values <= known else None


# "so", "thus", "therefore" at the beginning of a clause (tags of `phrases.TAGS`).
_LED = re.compile(r"[\n.>:,]s")


def _concluded_number(row: Row, places: list[Place], asked: Question) -> Reading[Decimal]:
    """Return the number of a final calculation or conclusion, or else the only number."""
    firm = [place for place in places if not place.weak]
    if not firm:
        return Reading(reason="the reply affirms no number")
    fresh = [place for place in firm if not place.given]
    if not fresh:
        fresh = [place for place in firm if place.result and place.fits]
    if not fresh:
        return Reading(reason="the reply only repeats numbers of the question")
    if HAS_CJK.search(row.text) and _single_value(fresh) is None:
        return Reading(reason="the reply gives several numbers")
    # From the strongest evidence to the weakest.
    for choose in (_calculated_number, _last_conclusion, _only_fitting_number, _only_number):
        value = choose(row, fresh, asked)
        if value is not None:
            return Reading(answer=value, tier="inferred")
    return Reading(reason=f"the reply gives {len({p.value for p in fresh})} numbers")


def _last_conclusion(row: Row, fresh: list[Place], asked: Question) -> Decimal | None:
    """Return the number of the last sentence that draws a conclusion, or None."""
    start, end = row.sentence_at(fresh[-1].at)
    led = list(_LED.finditer("\n" + row.part(start, end)[1:]))
    if not led or "k" in row.part(start, end):
        return None
    here = [p for p in fresh if start + led[-1].end() // 2 - 1 <= p.at < end] or [
        p for p in fresh if start <= p.at < end
    ]
    if asked.counted and any(p.fits for p in fresh):
        return _single_value([p for p in here if p.fits])
    return _single_value(here) or (here[-1].value if _follows_equals(row, here[-1]) else None)


def _single_value(places: Sequence[Place]) -> Decimal | None:
    """Return the value that all places share, or None."""
    values = {place.value for place in places}
    return values.pop() if len(values) == 1 else None


def _follows_equals(row: Row, place: Place) -> bool:
    """Return True if an equals sign precedes a number."""
    start = row.spans[place.at][0]
    return EQUALS.search(row.text[max(0, start - 5) : start]) is not None


def _calculated_number(row: Row, fresh: list[Place], asked: Question) -> Decimal | None:
    """Return the result of a calculation that ends the response, or None."""
    start, end = row.sentence_at(fresh[-1].at)
    here = [p for p in fresh if start <= p.at < end]
    results = [p for p in here if _follows_equals(row, p)]
    last = end == len(row.values) and "k" not in row.part(start, end)
    if not results or results[-1] is not here[-1] or not last:
        return None
    misses = asked.counted and not results[-1].fits and any(p.fits for p in here)
    return None if misses else results[-1].value


def _only_fitting_number(row: Row, fresh: list[Place], asked: Question) -> Decimal | None:
    """Return the only number with the requested unit or noun, unless "but" gives another."""
    fitting = [p for p in fresh if p.fits]
    value = _single_value(fitting)
    others = [p.at for p in fresh if p.value != value]
    if value is None or (others and "b" in row.tags[2 * fitting[0].at : 2 * others[-1]]):
        return None
    return value


def _only_number(row: Row, fresh: list[Place], asked: Question) -> Decimal | None:
    """Return the only number of a response, if its sentence relates to the question."""
    value = _single_value(fresh)
    if value is None or not asked.words:
        return value
    if "=" in row.text and not any(_follows_equals(row, p) for p in fresh):
        return None
    start, end = row.sentence_at(fresh[-1].at)
    words = {
        stem(w)
        for w in re.findall(
            r"[^\W\d_]{2,}|[€$£%]", row.text[row.spans[start][0] : row.spans[end - 1][1] + 2]
        )
    }
    corrects = "h" in row.part(start, end) and "b" in row.part(start, end)
    related = (
        words & asked.words
        or _follows_equals(row, fresh[-1])
        or corrects
        or end - start <= 4
        or len(row.values) <= _SHORT_RESPONSE_WORDS
    )
    return value if related else None
