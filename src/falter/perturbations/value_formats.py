"""Dates, times, numbers and units written in another way that has the same value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from falter.perturbations.base import locked_spans, site_perturbation
from falter.records.chats import target_texts
from falter.records.rng import Rng
from falter.records.types import Prompt, Section, Span
from falter.text.names import copied_words
from falter.text.protection import protect
from falter.text.spans import Replacement, merged, overlaps

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_UNITS = {
    "kg": "kilogram", "g": "gram", "mg": "milligram", "km": "kilometre", "cm": "centimetre",
    "mm": "millimetre", "ml": "millilitre", "GB": "gigabyte", "MB": "megabyte",
    "kWh": "kilowatt hour",
}  # fmt: skip
_SYMBOLS = {
    form: symbol
    for symbol, word in _UNITS.items()
    for form in (word, f"{word}s", word.replace("re", "er"), f"{word.replace('re', 'er')}s")
}
_MONTH = "|".join(MONTHS)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
Forms = Sequence[str]
Read = Callable[[re.Match[str]], Forms]


def _dates(match: re.Match[str]) -> Forms:
    """The day in other forms, where there is such a day."""
    found = match.groupdict()
    name, year = found.get("month"), found.get("year")
    month = MONTHS.index(name) + 1 if name else int(found["number"])
    try:
        day = date(int(year or 2000), month, int(found["day"]))
    except ValueError:
        return ()
    word = MONTHS[month - 1]
    if year is None:
        return (f"{day.day} {word}", f"{word} {day.day}")
    return (f"{day.day} {word} {year}", f"{word} {day.day}, {year}", day.isoformat())


def _times(match: re.Match[str]) -> Forms:
    """The time of the day with twelve hours as one with twenty-four, and the other way round."""
    hour, minute, half = int(match["hour"]), match["minute"] or "00", match["half"]
    if int(minute) > 59:
        return ()
    if half:
        late = half.lower().startswith("p")
        return (f"{hour % 12 + 12 * late:02}:{minute}",) if 1 <= hour <= 12 else ()
    short = f"{hour - 12}" if minute == "00" else f"{hour - 12}:{minute}"
    return (f"{short} pm",) if 13 <= hour <= 23 else ()


def _numbers(match: re.Match[str]) -> Forms:
    text = match[0]
    return (text.replace(",", ""),) if "," in text else (re.sub(r"\d+", _grouped, text, count=1),)


def _grouped(match: re.Match[str]) -> str:
    return f"{int(match[0]):,}"


def _units(match: re.Match[str]) -> Forms:
    number, unit = match["value"], match["unit"]
    if unit in _SYMBOLS:
        return (f"{number} {_SYMBOLS[unit]}",)
    one = number == "1" or _BEFORE_NOUN.search(match.string, 0, match.start())
    return (f"{number} {_UNITS[unit]}{'' if one else 's'}",)


_BEFORE_NOUN = re.compile(r"\b(?:an?|the) \Z")
_BEHIND_TIMES = r"(?:(?<=\bat )|(?<=\buntil )|(?<=\bfrom )|(?<=\bby )|(?<=\bbefore )|(?<=\bafter ))"
_NUMBER = r"[1-9]\d{0,2}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?"
_HALF = r"[ap](?:\.m\.(?= [a-z])|\.?m\b)"
_COUNTED = "euros|dollars|pounds|people|inhabitants"
_UNIT = "|".join(sorted((*_SYMBOLS, *_UNITS), key=len, reverse=True))
_KINDS: tuple[tuple[str, str, Read], ...] = (
    ("date", rf"\b{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)\b", _dates),
    ("date", rf"\b(?:the )?{_DAY} (?:of )?(?P<month>{_MONTH})\b(?:,? {_YEAR}\b)?", _dates),
    ("date", rf"\b(?P<month>{_MONTH}) {_DAY}\b(?:,? {_YEAR}\b)?", _dates),
    ("time", rf"\b(?P<hour>\d{{1,2}})(?::(?P<minute>\d\d))? ?(?P<half>{_HALF})", _times),
    ("time", rf"{_BEHIND_TIMES}(?P<hour>\d\d):(?P<minute>\d\d)(?P<half>)\b", _times),
    ("number", r"[$€£]?(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\b(?!,\d)", _numbers),
    ("number", r"[$€£][1-9]\d{3,8}\b(?![.,]\d)", _numbers),
    ("number", rf"(?<![\w.,$€£])[1-9]\d{{3,8}} (?:{_COUNTED})\b", _numbers),
    ("unit", rf"(?<![\w.,])(?P<value>{_NUMBER}) ?(?P<unit>{_UNIT})\b(?!/)", _units),
)  # fmt: skip
_PATTERNS = tuple((way, re.compile(pattern), read) for way, pattern, read in _KINDS)
# Of two days with one month (*9 and 13 March*) neither can be written by itself.
_LIST_BEFORE = re.compile(r"\d(?:st|nd|rd|th)?(?:,| ?[-–&/]| and| or| to| until)? ?\Z")
_LIST_AFTER = re.compile(r",? ?(?:[-–&/]|and|or|to|until)? ?\d")


def _closed(prompt: Prompt, section: Section, patterns: Sequence[str]) -> Sequence[Span]:
    """Protected text, and where the answer stands as it is to be copied."""
    called = target_texts(prompt.target)
    answers = (*prompt.choices, str(prompt.target or "")) if called is None else called
    copied = copied_words(section.text, answers, each_word=False)
    return merged((*locked_spans(section, patterns), *copied))


def _sites(
    text: str, blocked: Sequence[Span], way: str, language: str
) -> list[tuple[int, int, Forms]]:
    """Where a value stands, with its other forms: not inside code, a sum, an id or an address."""
    found = sorted(_found(text, way), key=lambda site: (site[0], -site[1]))
    # A full stop behind *pm* may end the sentence.
    whole = [(a, a + len(text[a:b].rstrip("."))) for a, b in protect(text)]
    out: list[tuple[int, int, Forms]] = []
    for start, end, forms in found:
        inside = overlaps(whole, start, start) or overlaps(whole, end, end)
        apart = not out or start >= out[-1][1]
        if forms and apart and not inside and not overlaps(blocked, start, end):
            out.append((start, end, forms))
    return out


def _found(text: str, way: str) -> Iterator[tuple[int, int, Forms]]:
    for name, pattern, read in _PATTERNS:
        for match in pattern.finditer(text) if way in ("any", name) else ():
            listed = name == "date" and (
                _LIST_BEFORE.search(text, max(0, match.start() - 12), match.start())
                or _LIST_AFTER.match(text, match.end())
            )
            if not listed:
                yield *match.span(), [form for form in read(match) if form != match[0]]


@site_perturbation("formats", sites=_sites, closed=_closed)
def formats(
    text: str, site: tuple[int, int, Forms], rng: Rng, way: str, language: str
) -> Replacement:
    """Writes dates, times, numbers and units in another form of the same value."""
    start, end, forms = site
    return start, end, rng.choice(forms)
