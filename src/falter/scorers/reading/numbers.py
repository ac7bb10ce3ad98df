"""The number that a reply gives as its answer, among those that it gives, takes and works out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from falter.records.lazy_regex import late_regex
from falter.scorers.reading.candidates import in_brackets
from falter.scorers.reading.cleaning import HANGING, Cleaned, clean, is_cut
from falter.scorers.reading.fields import objects
from falter.scorers.reading.numerals import (
    Number,
    numbers_in,
    vocabulary,
    without_latex,
    writes_commas,
)
from falter.scorers.reading.phrases import Row, all_stop_words, refusal_at, tag_text
from falter.scorers.reading.reading import Reading

_QUESTION_END = 1_500  # characters of a question that are looked at
_SHORT = 8  # words of a reply that is its number

_SIGNS = {"€": "euro", "$": "dolla", "£": "pound", "¥": "yen", "%": "perce", "°": "degre"}
_UNITS = {
    "km": "kilom", "m": "metre", "cm": "centi", "mm": "milli", "kg": "kilog", "g": "gram",
    "l": "litre", "ml": "milli", "h": "hour", "hr": "hour", "hrs": "hour", "min": "minut",
    "mins": "minut", "s": "secon", "sec": "secon", "eur": "euro", "usd": "dolla", "percent": "perce",
    "percentage": "perce", "prozent": "perce", "pourcent": "perce", "mi": "mile", "ft": "feet",
    "meter": "metre", "meters": "metre", "liter": "litre", "liters": "litre", "kilometer": "kilom",
    "d": "day",
}  # fmt: skip
"""Units and signs by the stem of what a question calls them."""


def _stem(word: str) -> str:
    word = word.lower()
    return _SIGNS.get(word) or _UNITS.get(word) or word[:5].rstrip("s") or word


@dataclass(frozen=True, slots=True)
class Asked:
    """The numbers that a question gives, the stems of its words and of what it counts or wants."""

    given: frozenset[Decimal] = frozenset()
    words: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    scale: int = 1
    commas: bool | None = None
    dated: bool = False
    rated: bool = False
    symbols: frozenset[str] = frozenset()


_COUNTED = late_regex(
    r"\b(?:how many|wie ?viele?|combien d(?:e |')|cu[aá]nt[oa]s|quant[ioae]s?|hoeveel|number of"
    r"|anzahl(?: der)?|nombre d(?:e |')|número de|numero d[ie]|aantal)\s*"
    r"(?:(?:more|whole|full|of|the|der|die|des|les|los|las|dei|van|de|dos|das|\d+)\s+)*"
    r"([^\W\d]{2,20}(?:\s[^\W\d]{2,20})?)",
    re.IGNORECASE,
)
_IN_UNIT = late_regex(
    r"\b(?:in|en|em|as an?)\s+(?:(?:whole|full|the|us)\s+)?([^\W\d]+(?:/h)?"
    r"|[%€$£°])(?:\s+(?:of\s+)?"
    r"([^\W\d]+|[€$£]))?",
    re.IGNORECASE,
)
_DATED = late_regex(
    r"\b(?:when|years?|dates?|wann|jahr|quand|année|cuándo|año|quando|anno|wanneer|jaar|ano)\b|年|いつ",
    re.IGNORECASE,
)


_RATED = late_regex(
    r"\b(?:scores?|rating|rate|grade|stars?|scale|note|bewert\w*|punktzahl)\b", re.IGNORECASE
)
_OUT_OF = late_regex(r"(?<![\d/.,])(\d{1,3}(?:[.,]\d)?)\s?/\s?(?:4|5|6|10|20|100)(?![\d/.,]\d|\d)")


@lru_cache(maxsize=512)
def _asked(question: str) -> Asked:
    text = question[-_QUESTION_END:]
    if not text.strip():
        return Asked()
    known, scales = all_stop_words(), vocabulary().scales
    words = frozenset(
        _stem(w) for w in re.findall(r"[^\W\d_]{2,}|[€$£%]", text) if w.lower() not in known
    )
    counted, scale = set[str](), 1
    if found := list(_COUNTED.finditer(text)):
        for word in found[-1][1].lower().split():
            if word in scales:
                scale = scales[word]
            elif word not in known:
                counted.add(_stem(word))
    for match in _IN_UNIT.finditer(text):
        unit = match[1].lower()
        if unit in scales or unit.rstrip("s") in scales:
            scale = scales.get(unit) or scales[unit.rstrip("s")]
        elif _stem(unit) in _KNOWN_UNITS:
            counted.add(_stem(unit))
    if re.search(r"\b(?:percent|percentage|prozent|pourcentage|procent)\b", text, re.IGNORECASE):
        counted.add("perce")
    given = frozenset(n.value for n in numbers_in(without_latex(text)))
    commas = writes_commas(text, 3) or None
    symbols = frozenset(m.lower() for m in re.findall(r"(?<![^\W_])[b-zB-Z](?![^\W_])", text))
    dated, rated = _DATED.search(text) is not None, _RATED.search(text) is not None
    return Asked(given, words, frozenset(counted), scale, commas, dated, rated, symbols)


_KNOWN_UNITS = frozenset(
    [*_SIGNS.values(), *_UNITS.values(), "week", "month", "year", "inche", "celsi", "fahre", "foot"]
)


def read_number(reply: str, question: str = "", *, cut: bool = False) -> Reading[Decimal]:
    """Return the number that a reply gives as its answer, without its unit."""
    cleaned = clean(reply)
    if cleaned.reason:
        return Reading(reason=cleaned.reason)
    asked = _asked(question)
    found = _set_off(cleaned, asked)
    if found is None:
        found = _in_prose(cleaned, asked, question, cut)
    if found.answer is None or asked.scale == 1:
        return found
    value = found.answer
    return Reading(answer=value / asked.scale if value >= asked.scale else value, tier=found.tier)


def _set_off(cleaned: Cleaned, asked: Asked) -> Reading[Decimal] | None:
    """Return the number in an answer tag, a box or an object; None where there is none."""
    for parts in (cleaned.tagged, cleaned.boxed):
        values = [v for part in parts if (v := _result(without_latex(part), asked)) is not None]
        if values and len(set(values)) == 1:
            return Reading(answer=values[0], tier="stated")
        if len(set(values)) > 1:
            return Reading(reason="two different numbers are marked")
    if cleaned.boxed:
        return Reading(reason="the box holds no single number")
    if "{" in cleaned.raw and (found := objects(cleaned.raw)):
        return _in_object(found[-1], asked)
    if cleaned.raw.startswith("{"):
        return Reading(reason="the object is broken")
    elements = dict(_ELEMENT.findall(cleaned.raw)) if "</" in cleaned.raw else {}
    return _in_object(elements, asked) if len(elements) > 1 else None


_ELEMENT = late_regex(r"<([a-zA-Z]\w{0,30})>\s{0,9}([^<>]{1,40}?)\s{0,9}</")


def _result(text: str, asked: Asked) -> Decimal | None:
    """Return the one number of a short text, behind its last equals sign."""
    if "±" in text or "\\pm" in text or re.search(r"\d\s?[a-z]\s?[+-]", text):
        return None
    numbers = numbers_in(re.split(r"=|≈|\\approx", text)[-1], commas=asked.commas)
    return numbers[0].value if len(numbers) == 1 else None


_VALUE_KEYS = late_regex(r"answer|result|value|total|number|final|antwort|réponse|respuesta", re.I)


def _in_object(value: dict[str, Any], asked: Asked) -> Reading[Decimal] | None:
    """Return the only number of an object, or that of the key that the question names."""
    leaves, other = dict[tuple[str, ...], Decimal](), 0
    for path, inner in _flat(value):
        number = _leaf(inner, asked)
        if number is not None:
            leaves[path] = number
        elif _VALUE_KEYS.search(path[-1]):
            return Reading(reason="the object's answer is no single number")
        else:
            other += 1
    named = {k: v for k, v in leaves.items() if _VALUE_KEYS.search(k[0])}
    wanted = {k: v for k, v in leaves.items() if (w := _path_words(k)) and w <= asked.words}
    for some in (named if len(named) == 1 else {}, wanted, {} if other else leaves):
        if len(some) == 1:
            return Reading(answer=next(iter(some.values())), tier="stated")
    return Reading(reason="no single number of the object is an answer") if leaves else None


def _flat(
    value: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, inner in value.items():
        here = (*path, str(key))
        if isinstance(inner, dict) and len(path) < 4:
            yield from _flat(inner, here)
        elif isinstance(inner, list) and len(inner) == 1:
            yield here, inner[0]
        else:
            yield here, inner


def _leaf(value: Any, asked: Asked) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str):
        numbers = numbers_in(without_latex(value), commas=asked.commas) if len(value) < 60 else []
        return numbers[0].value if len(numbers) == 1 else None
    return Decimal(str(value)) if abs(value) < 10**60 else None


def _path_words(path: tuple[str, ...]) -> frozenset[str]:
    """Return the stems of the words of an object's keys, but for those that only say "value"."""
    text = re.sub(r"([A-Z])", r" \1", " ".join(path)).lower()
    return frozenset(
        _stem(w) for w in re.findall(r"[^\W\d_]{3,}", text) if not _VALUE_KEYS.match(w)
    )


# In prose


@dataclass(slots=True)
class Place:
    """A number of a reply where it stands: its item, the words around it, and what it may be."""

    value: Decimal
    at: int
    fits: bool  # has the unit or the noun that was asked for behind it
    given: bool  # the question gave it
    result: bool  # stands behind an equals sign or a word for one
    weak: bool  # denied, doubted, a limit, an ordinal or beside the point


_MARK = re.compile(
    r"a(?:[ (][wdvae]){0,7}?(?:[ ,][ij](?:[ ,:(\n-][dsvaw]){0,3}?[ ,:(\n-]"
    r"|[:>-](?:[ (][dw]){0,2}[ (:\n]?)c"
)
_DOUBT = frozenset("nhfrok")
_HEADED = re.compile(r"[\n.](?:v )?a\nc(?: w)?\n")
_CORRECTED = re.compile(r"[.\n?,(>-]x|b[ ,]x|[.\n]n[.\n]")
_WITHDRAWN = re.compile(r"[.\n]b[^.\n]*[zp]")
_BESIDE = late_regex(
    r"(?:\b(?:steps?|note|page|chapter|section|part|item|question|rule|version|figure|table|line"
    r"|day|row|no\.|nr\.?|option|room|paragraph|team|player|box|case|method|schritt|seite|étape|page"
    r"|paso|passo|stap|week|phase|exercise|level|grade|type|id|code|request|error|status|platform"
    r"|gate|bus|flight|equation|case|example|problem)\s*#?|#)\s?\Z",
    re.IGNORECASE,
)
_ORDINAL = late_regex(
    r"(?:st|nd|rd|th)\b|[:/.]\d|\.\s(?=[A-Z]?[a-zä]+\s\d{4})|\s?(?:o'clock|uhr\b|a\.?m\b|p\.?m\b)",
    re.I,
)
_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|march|märz|apr(?:il)?|may|mai|june?|juni|juin|july?|juli"
    r"|juillet|aug(?:ust)?|août|sept?(?:ember)?|oct(?:ober)?|oktober|octobre|nov(?:ember|embre)?"
    r"|dec(?:ember)?|dezember|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre"
    r"|octubre|noviembre|diciembre)\b"
)
_DATE = late_regex(rf"\.?\s(?:de\s)?{_MONTH}", re.IGNORECASE)
_DATE_BEFORE = late_regex(
    rf"\b{_MONTH}\s\Z|\b(?:in|since|until|seit|en|depuis|desde)\s\Z", re.IGNORECASE
)
_LIMIT = late_regex(
    r"(?:\b(?:at least|at most|more than|less than|fewer than|over|under|up to|minimum of"
    r"|maximum of"
    r"|mindestens|höchstens|mehr als|weniger als|au moins|au plus|plus de|moins de|al menos|más de"
    r"|menos de|almeno|più di|meno di|minstens|meer dan|pelo menos|mais de|between|zwischen"
    r"|entre|tra|from|than|versus|compared (?:with|to)|instead of|statt"
    r"|as of|stand|originally|before|previously|earlier|the previous|last year)"
    r"|[<>≤≥±]|\d[^\d.]{0,4}\s(?:out )?(?:of|de|von|sur|su|van|di)(?: the| los| den| las| les"
    r"| all)?)\s*[$€£]?\Z",
    re.IGNORECASE,
)
_PAIRED = late_regex(
    r"\d\s?(?:[-–—]|to|bis|à|or|oder|ou|o|a)\s?[$€£]?(?:[a-z] = )?\Z", re.IGNORECASE
)
_UNSOLVED = late_regex(r"\d[a-z]\s?=\s?\Z|[=+*·-]\s?[a-z]\s?=\s?\Z")
_RESULT = late_regex(
    r"(?:[=≈→⇒]|=>|->|\b(?:equals?|gives?|makes?|leaves?|yields?|is|are|was|be|get|ist|sind|ergibt|macht"
    r"|est|sont|fait|reste|es|son|quedan|è|sono|restano|is|zijn|é|são|cost|costs?|kostet|beträgt|to"
    r"|pay|need|needs|has|have|had|there are|left with|of))\s*"
    r"(?:about|approximately|roughly|around|exactly|only|just|etwa|rund|environ|unos|circa|ongeveer"
    r"|cerca de)?\s*[$€£¥(\[]*\Z",
    re.IGNORECASE,
)
_EQUALS = late_regex(r"[=≈→⇒]\s*[$€£(]*\Z")
_OPERATOR = late_regex(
    r"\s?\)?\s?[+×*÷^·]|\s?\)?\s[-−x/]\s?\(?\d|\s?[-−]\s\d|\s(?:times|plus|minus|divided)\b"
)
_AFTER_OPERATOR = late_regex(
    r"(?:[+×*÷/^·]|[\d)]\s[-−x]|\b(?:times|plus|minus|by|mal))\s?\(?[$€£]?\Z"
)
_RANGE = late_regex(r"\s?(?:[-–—]|to|bis|à|or|oder|ou|o)\s(?:[a-z] = )?[$€£-]?\d|[-–—][$€£]?\d")
_FIRST = late_regex(r"\s?([%€$£¥°]|[^\W\d_]+(?:/[^\W\d_]+)?)(?:\s([^\W\d_]+))?(?:\s([^\W\d_]+))?")


def _places(row: Row, numbers: Sequence[Number], asked: Asked) -> list[Place]:
    """Return the numbers of a row that may be its answer."""
    found = []
    for n, number in enumerate(row.values):
        if number < 0:
            continue
        _, start, end = numbers[number]
        before, after = row.text[max(0, start - 32) : start], row.text[end : end + 40]
        if _is_term(before, after) or _is_label(before, after, numbers[number], asked):
            continue
        asks = row.tags.find("?", 2 * n)
        if asks < 0 or set(row.tags[2 * n + 2 : asks]) & set("\n.>"):
            found.append(_place(row, n, numbers[number], before, after, asked))
    return found


_TERM = late_regex(r"\s?[%)]*\s?=")
_TERM_OF = late_regex(r"\s?[%€$)]*\s?[^\n=.]{0,12}=")


def _is_term(before: str, after: str) -> bool:
    """Return True for a number that is computed with, an index, or part of a formula."""
    if before[-1:] in ("{", "_", "^") or after[:1] in ("}", "_"):
        return True
    operand = _OPERATOR.match(after) or (
        _AFTER_OPERATOR.search(before[-10:]) and not after.lstrip(")").startswith("%")
    )
    if operand and not _TERM.match(after):
        return True
    return "=" in after[:24] and _TERM_OF.match(after) is not None and "=" not in before[-3:]


def _is_label(before: str, after: str, number: Number, asked: Asked) -> bool:
    """Return True for the number of a list's entry, of a step or page, and of a date or an hour."""
    if (
        number.end - number.start <= 2
        and after[:1] in (".", ")")
        and after[1:2].isspace()
        and not before.rpartition("\n")[2].strip(" \t*-#")
    ):
        return True
    if before[-1:] in (" ", "#") and _BESIDE.search(before[-18:]):
        return True
    if _ORDINAL.match(after) or (number.value < 32 and _DATE.match(after)):
        return True
    years = 1000 <= number.value < 2200 and number.end - number.start == 4
    return years and not asked.dated and _DATE_BEFORE.search(before[-16:]) is not None


def _place(row: Row, n: int, number: Number, before: str, after: str, asked: Asked) -> Place:
    """Return a number with what its place says of it."""
    value, start, end = number
    behind = _FIRST.match(row.text, end, end + 60)
    stems = {_stem(w) for w in behind.groups() if w} if behind else set()
    for sign in (row.text[start], before[-1:]):
        if sign in _SIGNS:
            stems.add(_stem(sign))
    is_year = asked.dated and 1000 <= value < 2200 and end - start == 4
    fits = bool(stems & asked.counted) or is_year
    return Place(
        value,
        n,
        fits,
        value in asked.given and not _EQUALS.search(before[-6:]),
        _RESULT.search(before) is not None,
        _is_weak(row, n, before, after) or (not fits and _is_beside(row, n, stems, after, asked)),
    )


def _is_weak(row: Row, n: int, before: str, after: str) -> bool:
    """Return True for a number that is denied, doubted, a limit, or one of two."""
    return bool(
        _is_doubted(row, n)
        or _RANGE.match(after)
        or _LIMIT.search(before[-26:])
        or _PAIRED.search(before[-12:])
        or _UNSOLVED.search(before[-8:])
        or any(_joined(row, m, "o") for m in range(max(0, n - 4), n + 1) if row.values[m] >= 0)
    )


def _is_beside(row: Row, n: int, stems: set[str], after: str, asked: Asked) -> bool:
    """Return True for a number of another unit, a share, or a remark in brackets."""
    if stems & _KNOWN_UNITS and asked.counted & _KNOWN_UNITS:
        return True
    if after.lstrip()[:1] == "%" and "perce" not in asked.counted | asked.words:
        return True
    return in_brackets(row, n) and not after.lstrip().startswith("=")


_CLAUSE = re.compile(r"[,(](?=[^con])|[:>-]|b")


def _is_doubted(row: Row, n: int) -> bool:
    """Return True if the clause before a number denies it, doubts it or sets it aside."""
    start = max(row.tags.rfind(gap, 0, 2 * n + 1) for gap in "\n.?>")
    part = row.tags[start + 1 : 2 * n + 1]
    clause = set(_CLAUSE.split(part if part[-1:] not in (":", ">", "-") else "")[-1])
    return bool(clause & set("nrhfjko"))


def _in_prose(cleaned: Cleaned, asked: Asked, question: str, cut: bool) -> Reading[Decimal]:
    text = _shortened(without_latex(cleaned.text))
    if asked.rated:
        text = _OUT_OF.sub(r"\1", text)
    numbers = numbers_in(text, commas=asked.commas)
    if (none := _NONE.match(text)) and (not numbers or numbers[0].start >= none.end()):
        numbers.insert(0, Number(Decimal(0), none.start(1), none.end(1)))
    if not numbers:
        return Reading(reason="the reply holds no number")
    row = tag_text(text, [(n.start, n.end, i) for i, n in enumerate(numbers)], question)
    refused = refusal_at(row)
    places = _places(row, numbers, asked)
    marked = _marked(row, numbers, places)
    if marked is not None:
        return marked
    short = _short(row, numbers, places)
    if short is not None:
        return Reading(answer=short, tier="stated")
    if not cleaned.is_whole:
        return Reading(reason="the reply is too long, and its end marks no number")
    if refused is not None:
        return Reading(reason="the reply declines to answer")
    if "p" in row.tags[1::2]:
        return Reading(reason="the reply leaves the answer open")
    if cut or (is_cut(text) and not (places and _ends_line(row, places[-1]))):
        return Reading(reason="the reply was cut off before it marked an answer")
    places = _corrected(row, places)
    bold = _bold(cleaned, asked, places)
    found = _concluded(row, places, asked)
    if bold is None or found.answer == bold:
        return found if bold is None else Reading(answer=bold, tier="stated")
    if found.answer is None or any(p.value == bold and _is_led(row, p.at) for p in places):
        return Reading(answer=bold, tier="inferred")
    return Reading(reason="the number in bold is not the one concluded")


_NONE = late_regex(
    r"\W*(none|not one|not a single one|nobody|no one|keine[rsn]?|aucune?|ninguno|nessuno|geen)\b"
    r"(?= of (?:them|these|the)|\s*[,—–])",
    re.IGNORECASE,
)


def _shortened(text: str) -> str:
    """Return a text in which the full stops of abbreviations end no sentence."""
    for short in ("i.e.", "e.g.", "approx.", "d.h.", "p.ex.", "Mt.", "St.", "No.", "ca."):
        if short in text:
            text = text.replace(short, short.replace(".", ","))
    return text


def _sentence(row: Row, at: int) -> tuple[int, int]:
    """Return the sentence that an item stands in."""
    return next((s for s in row.sentences() if s[0] <= at < s[1]), (0, len(row.values)))


def _is_led(row: Row, at: int) -> bool:
    """Return True if the sentence of an item draws a conclusion."""
    return _LED.search("\n" + row.part(*_sentence(row, at))[1:]) is not None


def _short(row: Row, numbers: Sequence[Number], places: list[Place]) -> Decimal | None:
    """Return the number of a reply that is, begins or ends with a line of a number and its unit."""
    sentences = row.sentences()
    whole = len(sentences) == 1
    alone = [s for s in sentences if _is_alone(row, s, places, whole=whole)]
    values = [next(v for v in row.values[slice(*s)] if v >= 0) for s in alone]
    if not values or len({numbers[v].value for v in values}) > 1:
        return None
    value = numbers[values[0]].value
    if alone[-1] == sentences[-1] and (len(sentences) == 1 or row.tags[2 * alone[-1][0]] in "\n>"):
        return value
    if alone[0] != sentences[0] or _CORRECTED.search(row.tags[2 * alone[0][1] :]):
        return None
    later = [p for p in places if p.at >= alone[0][1] and p.result and not p.given and not p.weak]
    return value if all(p.value == value for p in later) else None


def _is_alone(row: Row, sentence: tuple[int, int], places: list[Place], *, whole: bool) -> bool:
    """Return True if a sentence is a number with its unit; in a `whole` reply, among few words."""
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


def _marked(row: Row, numbers: Sequence[Number], places: list[Place]) -> Reading[Decimal] | None:
    """Return the number that a mark gives: "the answer is", "Answer:"."""
    values, ends, known = list[Decimal](), list[int](), {place.at: place for place in places}
    headed = [(m.end() - 2) // 2 for m in _HEADED.finditer(row.tags)]
    if len({row.values[at] for at in headed}) == 1 and headed[0] in known:
        return Reading(answer=known[headed[0]].value, tier="stated")
    for first, end in row.sentences():
        part = row.part(first, end)
        if part[-1] == "?" or "c" not in part:
            continue
        for mark in _MARK.finditer(part):
            at = first + (mark.end() - 1) // 2
            if not _DOUBT.isdisjoint(part[: mark.start()][1::2]):
                continue
            at = _chain_end(row, at)
            place = known.get(at)
            if place is None or place.weak or _joined(row, at):
                return Reading(reason="the marked answer is no single number")
            values.append(numbers[row.values[at]].value)
            ends.append(at)
    if not values:
        return None
    last = ends[-1]
    behind = row.tags[2 * last + 2 :]
    if _CORRECTED.search(behind) or _WITHDRAWN.search(behind):
        return Reading(reason="the reply takes its answer back") if "c" not in behind else None
    if (
        len(set(values)) == 1
        or "final" in row.text[max(0, row.spans[last][0] - 40) : row.spans[last][0]].lower()
    ):
        return Reading(answer=values[-1], tier="stated")
    other = max(at for at, v in zip(ends, values, strict=True) if v != values[-1])
    if _CORRECTED.search(row.tags[2 * other + 2 : 2 * last + 1]):
        return Reading(answer=values[-1], tier="inferred")
    return Reading(reason="two different numbers are marked")


def _chain_end(row: Row, at: int) -> int:
    """Return the last number of a calculation that begins at an item: 3 + 4 = 7."""
    text = row.text
    while at + 1 < len(row.values):
        n = at + 1
        while n < len(row.values) and row.values[n] < 0 and n - at < 3:
            n += 1
        if n >= len(row.values) or row.values[n] < 0:
            break
        gap = text[row.spans[at][1] : row.spans[n][0]]
        if not re.search(r"[=≈+×*÷^·]|\s[-−/x]\s", gap) or "\n" in gap or ". " in gap:
            break
        at = n
    return at


def _joined(row: Row, at: int, by: str = "oe") -> bool:
    """Return True if a second number stands beside one: 3 or 4; 5 minutes and 10 seconds."""
    behind = row.tags[2 * at + 2 : 2 * at + 12]
    match = _JOINED.match(behind)
    return match is not None and match[1] in by


def _corrected(row: Row, places: list[Place]) -> list[Place]:
    """Return the numbers behind the last correction, if there are any."""
    corrections = list(_CORRECTED.finditer(row.tags))
    later = [p for p in places if corrections and p.at >= corrections[-1].end() // 2]
    return later or ([] if corrections else places)


def _bold(cleaned: Cleaned, asked: Asked, places: list[Place]) -> Decimal | None:
    """Return the only number that stands in bold type with nothing but its unit."""
    known = {place.value for place in places}
    values = set()
    for span in cleaned.bold:
        numbers = numbers_in(without_latex(span), commas=asked.commas)
        if (
            len(numbers) == 1
            and len(span.split()) <= 4
            and not _BESIDE.search(span[: numbers[0].start])
        ):
            values.add(numbers[0].value)
    return values.pop() if len(values) == 1 and values <= known else None


_JOINED = re.compile(r"(?:[ (][wd]){0,2}[ ,]([oe])[ (](?:[dwh][ (])?c")
_LED = re.compile(r"[\n.>:,]s")


def _concluded(row: Row, places: list[Place], asked: Asked) -> Reading[Decimal]:
    """Return the number that a careful reader takes: the only one, or the last conclusion's."""
    firm = [place for place in places if not place.weak]
    if not firm:
        return Reading(reason="the reply affirms no number")
    fresh = [place for place in firm if not place.given]
    if not fresh and (value := _keyed(row, firm, asked)) is not None:
        return Reading(answer=value, tier="inferred")
    if not fresh:
        fresh = [place for place in firm if place.result and place.fits]
    if not fresh:
        return Reading(reason="the reply only repeats numbers of the question")
    if _CJK.search(row.text) and _one(fresh) is None:
        return Reading(reason="the reply gives several numbers")
    for choose in (
        _calculated,
        _keyed,
        _totalled,
        _last_led,
        _only_fitting,
        _opening,
        _only,
        _by_question,
    ):
        value = choose(row, fresh, asked)
        if value is not None:
            return Reading(answer=value, tier="inferred")
    return Reading(reason=f"the reply gives {len({p.value for p in fresh})} numbers")


_CJK = late_regex("[\u3040-\u30ff\u4e00-\u9fff]")
_KEY = late_regex(
    r"(?:\A|[^\d\s]\s|\n[\W_]*|[.!?:]\s+)([^\W\d_]+)\s(?:of\s[^\n.=:]{1,40}\s)?=\s?[$€£]?\Z"
    r"|(?<![^\W_])([a-z])\s?=\s?[$€£]?\Z|(?:\A|\n)[\W_]*(?:[^\W\d_]+ )?([^\W\d_]+)[:：]\s?[$€£]?\Z"
    r"|\b(?:the|der|die|das|la|le|el|il|lo|de|het|o"
    r"|a) (?:[^\W\d_]+ )?([^\W\d_]+) (?:of [^\n.=:]{1,40} )?"
    r"(?:is|was|ist|est|es|è|é|lautet|beträgt) (?:about |approximately |roughly "
    r"|exactly )?[$€£]?\Z",
    re.IGNORECASE,
)


def _keyed(row: Row, firm: list[Place], asked: Asked) -> Decimal | None:
    """Return the number that is set equal to a word of the question: "Median = 4", "x = 5"."""
    values, last = list[Decimal](), 0
    for place in firm:
        start = row.spans[place.at][0]
        match = _KEY.search(row.text, max(0, start - 80), start)
        word = match and next(filter(None, match.groups()))
        if asked.counted and not place.fits and any(p.fits for p in firm):
            continue
        if word and (
            _stem(word) in asked.words or (match and match[2] and word.lower() in asked.symbols)
        ):
            values.append(place.value)
            last = start
    later = [p for p in firm if values and _equation(row, p) and p.value != values[-1]]
    if later and row.spans[later[-1].at][0] > last:
        return None
    return values[-1] if values and len(set(values)) == 1 else None


def _one(places: Sequence[Place]) -> Decimal | None:
    """Return the value that all places have."""
    values = {place.value for place in places}
    return values.pop() if len(values) == 1 else None


_TOTAL = late_regex(
    r"(?:^|(?<=[.!?]\s))[^\w\n]*(?:grand |in )?(?:total|sum|altogether|insgesamt|gesamt|summe"
    r"|au total|en total|totale|totaal)\b"
    r"[^\n\d]{0,40}[:=|][^\n]*",
    re.IGNORECASE | re.MULTILINE,
)


def _totalled(row: Row, fresh: list[Place], asked: Asked) -> Decimal | None:
    """Return the last number of the only line that gives a total."""
    lines = list(_TOTAL.finditer(row.text))
    if len(lines) != 1:
        return None
    inside = [p for p in fresh if lines[0].start() <= row.spans[p.at][0] < lines[0].end()]
    return inside[-1].value if inside else None


def _last_led(row: Row, fresh: list[Place], asked: Asked) -> Decimal | None:
    """Return the number of the last sentence that draws a conclusion."""
    start, end = _sentence(row, fresh[-1].at)
    led = list(_LED.finditer("\n" + row.part(start, end)[1:]))
    if not led:
        return None
    here = [p for p in fresh if start + led[-1].end() // 2 - 1 <= p.at < end] or [
        p for p in fresh if start <= p.at < end
    ]
    if asked.counted and any(p.fits for p in fresh):
        return _one([p for p in here if p.fits])
    return _one(here) or (here[-1].value if _equation(row, here[-1]) else None)


def _equation(row: Row, place: Place) -> bool:
    start = row.spans[place.at][0]
    return _EQUALS.search(row.text[max(0, start - 5) : start]) is not None


def _calculated(row: Row, fresh: list[Place], asked: Asked) -> Decimal | None:
    """Return the result of a calculation that ends the reply."""
    start, end = _sentence(row, fresh[-1].at)
    here = [p for p in fresh if start <= p.at < end]
    results = [p for p in here if _equation(row, p)]
    if not results or results[-1] is not here[-1] or end < len(row.values):
        return None
    misses = asked.counted and not results[-1].fits and any(p.fits for p in here)
    return None if misses else results[-1].value


def _only_fitting(row: Row, fresh: list[Place], asked: Asked) -> Decimal | None:
    """Return the only number with what was asked for behind it; of several the last result."""
    fitting = [p for p in fresh if p.fits]
    if (value := _one(fitting)) is not None:
        return value
    start, end = _sentence(row, fresh[-1].at)
    return _one([p for p in fitting if start <= p.at < end and p.result and end == len(row.values)])


def _opening(row: Row, fresh: list[Place], asked: Asked) -> Decimal | None:
    """Return the number that a reply begins with, where it concludes no other."""
    first = fresh[0]
    if first.at > 1 or row.tags[1 : 2 * first.at + 1].strip(" d"):
        return None
    end = _sentence(row, first.at)[1]
    return first.value if all(p.at < end for p in fresh) else None


def _only(row: Row, fresh: list[Place], asked: Asked) -> Decimal | None:
    """Return the only number of a reply, if its sentence says something that was asked."""
    value = _one(fresh)
    if value is None or not asked.words:
        return value
    if "=" in row.text and not any(_equation(row, p) for p in fresh):
        return None
    start, end = _sentence(row, fresh[-1].at)
    words = {
        _stem(w)
        for w in re.findall(
            r"[^\W\d_]{2,}|[€$£%]", row.text[row.spans[start][0] : row.spans[end - 1][1] + 2]
        )
    }
    corrects = "h" in row.part(start, end) and "b" in row.part(start, end)
    related = (
        words & asked.words
        or _equation(row, fresh[-1])
        or corrects
        or end - start <= 4
        or len(row.values) <= _SHORT
    )
    return value if related else None


def _by_question(row: Row, fresh: list[Place], asked: Asked) -> Decimal | None:
    """Return the number whose clause says most of what the question asks."""
    if len(asked.words) < 2 or len(fresh) > 12 or any(_equation(row, p) for p in fresh):
        return None
    shares = dict[Decimal, int]()
    for n, place in enumerate(fresh):
        start, end = _sentence(row, place.at)
        if n and fresh[n - 1].at >= start:
            start = fresh[n - 1].at + 1
        commas = [i for i in range(start + 1, place.at + 1) if row.tags[2 * i] in ",:-("]
        start = commas[-1] if commas and place.at - commas[-1] > 1 else start
        text = row.text[row.spans[start][0] : row.spans[min(place.at + 1, end - 1)][1]]
        words = {_stem(w) for w in re.findall(r"[^\W\d_]{2,}", text)}
        shares[place.value] = max(shares.get(place.value, 0), len(words & asked.words))
    best = max(shares, key=shares.__getitem__)
    rest = max((v for k, v in shares.items() if k != best), default=0)
    return best if shares[best] >= 2 and shares[best] > rest + 1 else None


def _ends_line(row: Row, place: Place) -> bool:
    """Return True if the last line sets a number equal, with at most its unit behind it."""
    start, end = row.spans[place.at]
    line = row.text.rstrip().rfind("\n") + 1
    behind = row.text[end:].strip()
    words = behind.split()
    return (
        line <= start
        and "=" in row.text[line:start]
        and len(words) <= _SHORT
        and behind[-1:] not in tuple("+-=×*/,:(")
        and (words[-1:] or [""])[0].lower() not in HANGING
    )


def _ends(row: Row, at: int) -> bool:
    """Return True if a number ends its text but for a unit."""
    return len(row.values) - at <= 4
