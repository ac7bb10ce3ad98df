"""Dates, times, numbers and units written in another way that has the same value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
Forms = Mapping[str, str]  # the same value in each style
Read = Callable[[re.Match[str]], Forms]


def _date_forms(match: re.Match[str]) -> Forms:
    """Return the date in each style; empty if there is no such day."""
    found = match.groupdict()
    name, year = found.get("month"), found.get("year")
    month = MONTHS.index(name) + 1 if name else int(found["number"])
    try:
        day = date(int(year or 2000), month, int(found["day"]))
    except ValueError:
        return {}
    word = MONTHS[month - 1]
    if year is None:
        return {"day": f"{day.day} {word}", "month": f"{word} {day.day}"}
    named = {"day": f"{day.day} {word} {year}", "month": f"{word} {day.day}, {year}"}
    return {**named, "iso": day.isoformat()}


def _time_forms(match: re.Match[str]) -> Forms:
    """Return the time in the 12-hour and 24-hour styles, if both are certain."""
    hour, minute, half = int(match["hour"]), match["minute"] or "00", match["half"]
    if int(minute) > 59:
        return {}
    if half:
        new = f"{hour % 12 + 12 * half.lower().startswith('p'):02}:{minute}"
        return {"12": match[0], "24": new} if 1 <= hour <= 12 else {}
    short = f"{hour - 12}" if minute == "00" else f"{hour - 12}:{minute}"
    return {"24": match[0], **({"12": f"{short} pm"} if 13 <= hour <= 23 else {})}


def _unchanged_form(match: re.Match[str]) -> Forms:
    """Return the span unchanged, because it may be a time of the day or a score."""
    return {"24": match[0]}


def _number_forms(match: re.Match[str]) -> Forms:
    plain = match[0].replace(",", "")
    return {"plain": plain, "grouped": re.sub(r"\d+", _grouped, plain, count=1)}


def _grouped(match: re.Match[str]) -> str:
    return f"{int(match[0]):,}"


def _unit_forms(match: re.Match[str]) -> Forms:
    number, unit = match["value"], match["unit"]
    if unit in _SYMBOLS:
        return {"word": match[0], "symbol": f"{number} {_SYMBOLS[unit]}"}
    one = number == "1" or _BEFORE_NOUN.search(match.string, 0, match.start())
    return {"word": f"{number} {_UNITS[unit]}{'' if one else 's'}", "symbol": match[0]}


# After an article the unit is singular: "a 5 kilogram bag".
_BEFORE_NOUN = re.compile(r"\b(?:[Aa]n?|[Tt]he) \Z")
_BEHIND_TIMES = r"(?:(?<=\bat )|(?<=\buntil )|(?<=\bfrom )|(?<=\bby )|(?<=\bbefore )|(?<=\bafter ))"
_NUMBER = r"[1-9]\d{0,2}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?"
_DAY_HALF = r"[ap](?:\.m\.(?=[?!,;)]| [a-z])|\.?m\b)"
_COUNTED = "euros|dollars|pounds|people|inhabitants"
_UNIT = "|".join(sorted((*_SYMBOLS, *_UNITS), key=len, reverse=True))
_VALUE_KINDS: tuple[tuple[str, str, Read], ...] = (
    # "2024-05-01"; "the 3rd of May 2024", "3 May"; "May 3, 2024", "May 3"
    ("date", rf"\b{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)\b", _date_forms),
    ("date", rf"\b(?:the )?{_DAY} (?:of )?(?P<month>{_MONTH})\b(?:,? {_YEAR}\b)?", _date_forms),
    ("date", rf"\b(?P<month>{_MONTH}) {_DAY}\b(?:,? {_YEAR}\b)?", _date_forms),
    # "7 pm", "7:30 pm"; "19:30" after *at*, *by* and the like; any other "7:30" stays
    ("time", rf"\b(?P<hour>\d{{1,2}})(?::(?P<minute>\d\d))? ?(?P<half>{_DAY_HALF})", _time_forms),
    ("time", rf"{_BEHIND_TIMES}(?P<hour>\d\d):(?P<minute>\d\d)(?P<half>)\b", _time_forms),
    ("time", r"(?<![\d:])\d{1,2}:\d\d\b", _unchanged_form),
    # "$1,200", "12,345.5"; "$12000"; "1200 people"; not "2024"
    ("number", r"[$€£]?(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\b(?!,\d)", _number_forms),
    ("number", r"[$€£][1-9]\d{3,8}\b(?![.,]\d)", _number_forms),
    ("number", rf"(?<![\w.,$€£])[1-9]\d{{3,8}} (?:{_COUNTED})\b", _number_forms),
    # "5 kg", "2.5 kilometres"; not "3 km/h"
    ("unit", rf"(?<![\w.,])(?P<value>{_NUMBER}) ?(?P<unit>{_UNIT})\b(?!/)", _unit_forms),
)  # fmt: skip
_PATTERNS = tuple((way, re.compile(pattern), read) for way, pattern, read in _VALUE_KINDS)
# Two days with one month (*9 and 13 March*) cannot be written separately.
_LIST_BEFORE = re.compile(r"\d(?:st|nd|rd|th)?(?:,| ?[-–&/]| and| or| to| until)? ?\Z")
_LIST_AFTER = re.compile(r",? ?(?:[-–&/]|and|or|to|until)? ?\d")


def _closed_spans(prompt: Prompt, section: Section, patterns: Sequence[str]) -> Sequence[Span]:
    """Return the locked spans, and the places of answers that are to be copied."""
    called = target_texts(prompt.target)
    answers = (*prompt.choices, str(prompt.target or "")) if called is None else called
    copied = copied_words(section.text, answers, each_word=False)
    return merged((*locked_spans(section, patterns), *copied))


def _value_sites(
    text: str, blocked: Sequence[Span], way: str, language: str
) -> list[list[list[Replacement]]]:
    """Return, for each kind of value, the ways to write all of its values in one form.

    A way is a list of replacements. A value in code, a sum, an id or an address must stay. It
    determines the form of all values of its kind.
    """
    # A full stop after *pm* may end the sentence.
    whole = [(a, a + len(text[a:b].rstrip("."))) for a, b in protect(text)]
    values: dict[str, list[tuple[int, int, Forms]]] = {}
    last = 0
    for start, end, name, forms in sorted(_find_values(text, way), key=lambda v: (v[0], -v[1])):
        if start >= last:
            last, inside = end, overlaps(whole, start, start) or overlaps(whole, end, end)
            if inside or overlaps(blocked, start, end):
                forms = {style: new for style, new in forms.items() if new == text[start:end]}
            values.setdefault(name, []).append((start, end, forms))
    return [ways for found in values.values() if (ways := list(_uniform_changes(text, found)))]


def _uniform_changes(
    text: str, found: Sequence[tuple[int, int, Forms]]
) -> Iterator[list[Replacement]]:
    """Yield the replacements that give all values one form, for each form that they all have."""
    for style in found[0][2]:
        if all(style in forms for _, _, forms in found):
            changes = [(a, b, forms[style]) for a, b, forms in found if forms[style] != text[a:b]]
            if changes:
                yield changes


def _is_listed_day(text: str, start: int, end: int, days: Sequence[Span]) -> bool:
    """Return True if a number next to a date is a day of the same month."""
    before = _LIST_BEFORE.search(text, max(0, start - 12), start)
    after = _LIST_AFTER.match(text, end)
    digits = [m.start() for m in (before,) if m] + [m.end() - 1 for m in (after,) if m]
    return any(not overlaps(days, at, at + 1) for at in digits)


def _find_values(text: str, way: str) -> Iterator[tuple[int, int, str, Forms]]:
    """Yield span, kind and forms of each value that `way` selects."""
    dates = (pattern for name, pattern, _ in _PATTERNS if name == "date")
    days = merged(match.span() for pattern in dates for match in pattern.finditer(text))
    for name, pattern, read in _PATTERNS:
        for match in pattern.finditer(text) if way in ("any", name) else ():
            forms = read(match)
            if listed := name == "date" and _is_listed_day(text, *match.span(), days):
                forms = {style: new for style, new in forms.items() if new == match[0]}
            if forms or listed:
                yield *match.span(), name, forms


@site_perturbation("formats", sites=_value_sites, closed=_closed_spans)
def formats(
    text: str, site: Sequence[list[Replacement]], rng: Rng, way: str, language: str
) -> list[Replacement]:
    """Writes dates, times, numbers and units in another form of the same value, each kind alike."""
    return rng.choice(site)
