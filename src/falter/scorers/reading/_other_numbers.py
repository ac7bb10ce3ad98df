"""Numbers that are no answer by what stands around them: clocks, steps, terms, what is denied."""

from __future__ import annotations

import re

from falter.scorers.reading._number_words import BESIDE, DATED, MONTH, ORDINAL
from falter.scorers.reading._numerals import Number
from falter.scorers.reading._text_words import is_portuguese
from falter.scorers.reading._words import NEGATION


def _re(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


_AT = _re(r"\b(?:à|at|um|a las|alle|om|às|vers|gegen|jusqu'à|dès|ab|bis)\s$")


def is_beside(text: str, number: Number, *, place: bool = False) -> bool:
    """Whether a number counts steps, pages, days or hours of the clock, or is an ordinal.

    An ordinal is none where a `place` in an order is asked for.
    """
    before, after = text[: number.start], text[number.end :]
    return bool(
        BESIDE.search(before[-20:].rstrip())
        or (_AT.search(before[-12:]) and re.match(r"\s?(?:h|uhr|uur)\b", after, re.IGNORECASE))
        or re.search(r"\d\s?(?:h|uhr)\s?$", before[-8:], re.IGNORECASE)
        or (ORDINAL.match(after) and not (place and _TH.match(after)))
        or DATED.match(after)
        or (re.search(rf"{MONTH}\s*$", before[-14:], re.IGNORECASE) and number.value < 32)
        or (
            text[number.start] not in "$€£¥₹"
            and re.search(r"(?:\d[:/]|[A-Za-z]-|[A-Za-z_]|√\(?|\^)\Z", before[-3:])
        )
        or re.search(r"\d\S{0,4} ?± ?\Z", before[-12:])
        or _is_in_date(text, number)
    )


def _is_in_date(text: str, number: Number) -> bool:
    start = max(0, number.start - 11)
    dates = _IN_DATE.finditer(text, start, number.end + 11)
    return any(date.start() <= number.start < date.end() for date in dates)


_IN_DATE = _re(
    r"(?<!\d)(?:\d{1,2}\.\d{1,2}\.(?:19|20)\d\d|(?:19|20)\d\d-\d\d-\d\d|\d{1,2}/\d{1,2}/(?:19"
    r"|20)\d\d)(?!\d)"
)
_TH = _re(r"(?:st|nd|rd|th)\b")


_PART = _re(
    r"\s*(?:h|hours?|hrs?|minutes?|min|stunden?|heures?|horas?|ore|uur|feet|ft|pounds?"
    r"|years?)\s*(?:,|and|und|et|y|e|en)?\s*\d+\s*(?:m|min|minutes?|minuten?|minutos?|minuti"
    r"|seconds?|sec|s|inches|in|ounces|months?)\b"
)
_SECOND_PART = _re(
    r"\d\s*(?:h|hours?|hrs?|minutes?|min|stunden?|heures?|horas?|ore|uur|feet|ft|pounds?"
    r"|years?)\s*(?:,|and|und|et|y|e|en)?\s*$"
)


def is_part(text: str, number: Number) -> bool:
    """Whether a number is a part of a measure in two units: 2 hours 30 minutes."""
    before = text[: number.start][-30:]
    return bool(_PART.match(text, number.end) or _SECOND_PART.search(before))


def is_term(text: str, number: Number) -> bool:
    """Whether a number is a term of a formula, or one side of a conversion."""
    after, before = (
        text[number.end : number.end + 12],
        text[max(0, number.start - 16) : number.start],
    )
    return bool(
        re.match(r"\s*(?:[-+*/·×^]\s*(?:[A-Za-z](?![A-Za-z])|[(\\]|$)|[·×*/]\s*\d)", after)
        or re.search(
            r"\b(?:divid\w+|multipl\w+|add(?:ing|ed)?|subtract\w*)(?: (?:it|this|that|both|by"
            r"|up))*\s$",
            before,
            re.IGNORECASE,
        )
        or (
            re.match(r"\s\S{1,8}\s*=", text[number.end :][:12]) is not None
            and text[number.start : number.end] == "1"
        )
        or re.search(r"(?<!\w)1 \S{1,8} = $|[A-Za-z]\s*[-+*/·×]\s*$|\d\S{0,4} ?[×x] ?$", before)
        or re.search(
            r"(?:\b(?:up|down) from|\bcompared (?:to|with)|\bversus|\bvs\.?)\s[$€£]?$",
            before,
            re.IGNORECASE,
        )
        or re.match(
            r"\s*[^\W\d]*\s+(?:later|earlier|ago|before that|after that|später|früher|danach"
            r"|plus tard"
            r"|plus tôt|más tarde|antes|después|più tardi|dopo|prima|later|eerder|mais tarde)\b",
            text[number.end : number.end + 40],
            re.IGNORECASE,
        )
        or re.match(
            r"\s*[^\W\d]*\s+(?:more|less|fewer|(?!rather)\w+er|mehr|weniger|plus|más|più|meer"
            r"|mais) "
            r"(?:than|als|que|di|dan|do que)\b",
            text[number.end : number.end + 40],
        )
        or re.search(
            r"(?:^|[.!?\n]\s*)(?:In|After|For|With|Of|From|At|By|On|Each of|Out of|Among|Per"
            r"|Every|Von|Nach|In den|Sur|De|Après|De los|Dopo|Su|Van|Dos)\s+(?:the |these |all "
            r"|those |los |las |les |den |de |die |i |as |os )?$",
            text[: number.start][-24:],
        )
        or re.search(
            r"\d(?:st|nd|rd|th|\.|º|ª|e|er)?\s+(?:\w+\s+)?(?:out of|of|von|sur|de|su|van)\s+"
            r"(?:the |all |a total of |los "
            r"|las |les |den |de |i |as |os )?$",
            text[: number.start][-30:],
        )
        or is_part(text, number)
        or re.match(
            r"\s+(?:was|is|were|wäre|war) (?:wrong|incorrect|falsch|the wrong)",
            text[number.end : number.end + 30],
        )
    )


_NO = _re(NEGATION)
_NOR = _re(r"\b(?:weder|noch\b[^.!?\n]{1,60}\bnoch)\b")
"""Before German's and Dutch's "nor"; by itself the same word says "still": noch 12 Liter."""


def is_denied(text: str, start: int, number: Number) -> bool:
    before = text[max(start, number.start - 25) : number.start]
    hits = [
        m for m in _NO.finditer(before) if m[0].casefold() != "noch" or _NOR.search(text, start)
    ]
    if hits and hits[-1][0].casefold() == "no" and is_portuguese(text):
        return False
    return bool(hits) and not re.search(
        r"[,;:.]|\bbut\b|\bonly\b|\bmore\b|\b(?:sondern|mais|sino|ma|maar|mas)\b",
        before[hits[-1].end() :],
    )
