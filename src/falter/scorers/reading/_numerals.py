"""Numbers as they are written: separators, scales, fractions, powers of ten, number words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, DivisionByZero, InvalidOperation
from itertools import pairwise
from typing import NamedTuple

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._spelled import (
    DOZEN,
    FRACTIONS,
    PARTS,
    SCALES,
    spelled,
    with_decimals,
)

_LONGEST = 60  # characters


class Number(NamedTuple):
    """A number in a text: its value and its place."""

    value: Decimal
    start: int
    end: int


_JAPANESE = {"千": 10**3, "万": 10**4, "億": 10**8, "兆": 10**12}
_DIGITS = {c: n for n, c in enumerate("〇一二三四五六七八九")}
_HALF = {
    "½": "0.5", "¼": "0.25", "¾": "0.75", "⅓": "0.3333333333333333", "⅔": "0.6666666666666666",
    "⅕": "0.2", "⅖": "0.4", "⅗": "0.6", "⅘": "0.8", "⅙": "0.1666666666666667",
    "⅚": "0.8333333333333333", "⅐": "0.1428571428571429", "⅛": "0.125", "⅜": "0.375",
    "⅝": "0.625", "⅞": "0.875", "⅑": "0.1111111111111111", "⅒": "0.1",
}  # fmt: skip


_AND_HALF = late_regex(
    r"\s+(?:[^\W\d]{2,15}\s+)?(?:and a half|und ein(?:e|en)? halbe?[nrs]?|einhalb|et demie?"
    r"|y medi[ao]|e mezzo|e mezza|en een halve?|e meia|e meio)\b",
    re.IGNORECASE,
)
_SPECIAL: dict[str, str] = {
    r"half a dozen|ein halbes dutzend|une demi-douzaine|media docena|mezza dozzina|meia dúzia"
    r"|een half dozijn": "6",
    r"(?:a|one|ein|une|una|uma|een) (?:dozen|dutzend|douzaine|docena|dozzina|dúzia|dozijn)(?: "
    r"and a half|einhalb| et demie| y media| e mezza| e meia)": "18",
    r"(?:a|one|ein|une|una|uma|een) (?:dozen|dutzend|douzaine|docena|dozzina|dúzia|dozijn)": "12",
    r"anderthalb|eineinhalb|anderhalve?|one and a half|un(?:e|o|a)? et demie?|uno y medio|una y "
    r"media|uno e mezzo|um e meio|uma e meia": "1.5",
    r"half a million|eine halbe million|un demi-million|medio millón|mezzo milione|een half miljoen"
    r"|meio milhão": "500000",
    r"two thirds|two-thirds|zwei drittel|deux tiers|dos tercios|due terzi|twee derde|dois terços"
    r"": "0.6666666666666667",
    r"three quarters|three-quarters|three fourths|drei ?viertel|trois quarts|tres cuartos"
    r"|tre quarti|drie ?kwart|três quartos": "0.75",
    r"one third|a third|one-third|ein drittel|un tiers|un tercio|un terzo|een derde|um terço"
    r"": "0.3333333333333333",
    r"two fifths|zwei fünftel": "0.4",
    r"three fifths|drei fünftel": "0.6",
    r"(?:one|a) half|one-half|die hälfte": "0.5",
    r"(?:one|a) quarter": "0.25",
}
_NONE = late_regex(
    r"\A\W*(?:none|not one|not a single one|zero) of (?:them|these"
    r"|those)\b",
    re.IGNORECASE,
)
_SPECIALS = [
    (re.compile(rf"(?<!\w)(?:{p})(?!\w)", re.IGNORECASE), Decimal(v)) for p, v in _SPECIAL.items()
]

_DIGITAL = (
    r"(?:\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:[,.'’\u2009 ]\d{3})+(?:[.,]\d+)?(?!\d)"
    r"|\d+[.,]\d+|\d+|[.,]\d+)"
)
_SCALE_NAME = "|".join(re.escape(w) for w in sorted(SCALES, key=len, reverse=True) if w != "k")
_PLAIN = late_regex(
    rf"(?P<sign>(?<![\w\d)])[-−–+](?=[$€£₹¥]?[\d.]))?(?:[$€£₹¥]\s?)?(?P<digits>(?<![\w.]){_DIGITAL}|(?<=[$€£₹¥]){_DIGITAL}|(?<=[\u3040-\u9fff]){_DIGITAL})"
    r"(?:\s*(?:[×x·*]|\\times|\\cdot)\s*10\s*(?:\^\s*\{?\s*(?P<power>[-−]?\d+)\s*\}?"
    r"|\*\*\s*(?P<stars>[-−]?\d+)|(?P<high>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))"
    r"|\s?\^\s?\{?(?P<raised>\d{1,2})\}?(?![\w.])|(?P<super>[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(?!\w)"
    r"|(?:\s?e|E)\{?(?P<e>[-+−]?\d+)\}?(?!\w)"
    r"|\s*/\s*(?P<below>\d+)(?![\d/]|[.,]\d)"
    r"|\s(?P<part>\d+)/(?P<whole>\d+)(?!\d)"
    rf"|\s?(?P<mark>[{''.join(_HALF)}])"
    rf"|[\s-]?(?P<scale>(?i:{_SCALE_NAME})|k|M|B|(?<=\d)K(?=\s|$))(?![\w.]\w|\w|/)"
    r"|(?P<kanji>[千万億兆](?:\d+[千万億]?)?))?"
)
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_COMMA = late_regex(
    r"\b(?:der|die|das|ist|sind|und|nicht|ein|eine|es|el|la|los|las|son|está|una|le|les|des|est"
    r"|hat|haben|wird|wurde|werden|von|mit|für|auf|im|rund|etwa|einwohner|stand|kostet|beträgt"
    r"|ont|avec|dans|sur|pour|environ|habitants|tiene|hay|cuesta|con|por|unos|habitantes|sono"
    r"|nel|circa|abitanti|costa|heeft|voor|inwoners|kost|ongeveer|tem|há|custa|cerca|em"
    r"|et|une|il|che|di|non|per"
    r"|het|een|van|zijn|niet|o|os|são|não|uma|também|preis|insgesamt|también|euro|soit|entre)\b"
    r"|€\s*$",
    re.IGNORECASE,
)
_POINT = late_regex(
    r"\b(?:the|is|are|and|of|to|in|a|so|it|that|for|with|there|has|was)\b", re.IGNORECASE
)


def writes_commas(text: str) -> bool:
    """Whether a text is in a language that writes 1.234,56: by its commonest words."""
    return _writes_commas(text, otherwise=False)


def _writes_commas(text: str, *, otherwise: bool) -> bool:
    commas, points = len(_COMMA.findall(text)), len(_POINT.findall(text))
    return otherwise if commas == points == 0 else commas > points


def _decimal(digits: str, *, commas: bool) -> Decimal | None:
    """The value of digits with separators of either kind."""
    digits = re.sub(r"['’\u2009 ]", "", digits)
    points, marks = digits.count("."), digits.count(",")
    if points and marks:
        mark = max(digits.rfind("."), digits.rfind(","))
        digits = re.sub(r"[.,]", "", digits[:mark]) + "." + digits[mark + 1 :]
    elif points > 1 or marks > 1:
        digits = re.sub(r"[.,]", "", digits)
    elif marks:
        grouped = re.fullmatch(r"[1-9]\d{0,2},\d{3}", digits) is not None
        digits = digits.replace(",", "" if grouped and not commas else ".")
    elif points and commas and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", digits):
        digits = digits.replace(".", "")
    try:
        return Decimal(digits)
    except InvalidOperation:
        return None


def _scaled(match: re.Match[str], value: Decimal) -> Decimal | None:
    """The value with the power, fraction or scale behind its digits."""
    power = (
        match["power"] or match["stars"] or match["e"] or (match["high"] or "").translate(_RAISED)
    )
    try:
        if power:
            exponent = int(power.replace("−", "-"))
            return value.scaleb(exponent) if abs(exponent) < 100 else None
        if raised := match["raised"] or (match["super"] or "").translate(_RAISED):
            return value ** int(raised) if value < 10**6 else None
        if match["below"]:
            return value / Decimal(match["below"])
        if match["part"]:
            return value + Decimal(match["part"]) / Decimal(match["whole"])
    except (DivisionByZero, InvalidOperation):
        return None
    if match["mark"]:
        return value + Decimal(_HALF[match["mark"]])
    if match["scale"]:
        scale = {"M": 10**6, "B": 10**9, "K": 10**3}.get(match["scale"]) or SCALES[
            match["scale"].casefold()
        ]
        return value * scale
    if match["kanji"]:
        return _kanji(value, match["kanji"])
    return value


def _kanji(value: Decimal, tail: str) -> Decimal:
    total = value * _JAPANESE[tail[0]]
    rest = re.match(r"(\d+)([千万億])?", tail[1:])
    return total + (Decimal(rest[1]) * _JAPANESE.get(rest[2] or "", 1) if rest else 0)


_VAGUE = late_regex(
    r"\b(?:a couple of|a few|several|some|many|few|the|these|those|both|all|other|last|next"
    r"|mehrere|einige|die"
    r"|plusieurs|quelques|les|varios|los|las|diversi|meerdere|de|vários|os)\s+$",
    re.IGNORECASE,
)


def _idle(number: Number, text: str) -> bool:
    """Whether a word is a pronoun or a unit rather than a number: one, cents."""
    word = text[number.start : number.end].casefold()
    if word in ("one", "cent", "cents", "sept", "eins"):
        alone = text[: number.start].strip() or text[number.end :].strip(" .!")
        return bool(alone)
    return False


_ALL_KANJI = late_regex(
    r"(?<![一-龥\d])[一二三四五六七八九](?=[つ人個本枚年回匹冊台歳])|"
    r"(?<![一二三四五六七八九十百千万\d])[一二三四五六七八九]?[十百千万][一二三四五六七八九十百千万億]*(?=[^一-龥]|[個人本枚年円回日匹冊つ歳台]|$)"
)


def _from_kanji(text: str) -> Decimal:
    total = group = current = 0
    for char in text:
        if char in "万億":
            total += max(1, group + current) * _JAPANESE[char]
            group = current = 0
        elif char in "十百千":
            group += max(1, current) * {"十": 10, "百": 100, "千": 1000}[char]
            current = 0
        else:
            current = _DIGITS[char]
    return Decimal(total + group + current)


_PRICE = late_regex(r"(?<![\w.,])(\d{1,6})\s?[€£](\d\d)(?![\w.,]\d|\w)")
"""3€50, with the sign in the place of the point."""
_ONLY_ONE = late_regex(
    r"\b(?:only|just|exactly|precisely|a single|nur|genau|seulement|sólo|solo|slechts|apenas)\s"
    r"(one|eine?[nrs]?|une?|una|uno|één|uma?)\b",
    re.IGNORECASE,
)


def numbers(text: str, *, commas: bool = False) -> list[Number]:
    """The numbers of a text in order, none inside another.

    `commas`: that 1.234,56 is how numbers are written where the text's own words do not say.
    """
    commas = _writes_commas(text, otherwise=commas)
    taken: list[Number] = []
    covered = bytearray(len(text))
    for number in _all(text, commas=commas):
        if not any(covered[number.start : number.end]):
            covered[number.start : number.end] = b"\1" * (number.end - number.start)
            taken.append(number)
    if not taken and (lone := _ONLY_ONE.search(text)):
        taken.append(Number(Decimal(1), lone.start(1), lone.end()))
    return sorted(taken, key=lambda n: n.start)


def _all(text: str, *, commas: bool) -> Iterator[Number]:
    for match in _NONE.finditer(text):
        yield Number(Decimal(0), match.start(), match.end())
    yield from _special(text, _SPECIALS[:3])
    for match in _PRICE.finditer(text):
        yield Number(Decimal(f"{match[1]}.{match[2]}"), match.start(), match.end())
    words = _in_words(text)
    digits = list(_written(text, commas=commas))
    yield from _fractions(text, [*words, *digits])
    yield from _special(text, _SPECIALS[3:9])
    for number in (*digits, *words):
        if number in words and (
            _VAGUE.search(text[max(0, number.start - 15) : number.start]) or _idle(number, text)
        ):
            continue
        yield _signed(text, _grown(text, number))
    for match in re.finditer(rf"(?<!\d)[{''.join(_HALF)}]", text):
        yield Number(Decimal(_HALF[match[0]]), match.start(), match.end())
    yield from _special(text, _SPECIALS[9:])
    for match in _ALL_KANJI.finditer(text):
        yield Number(_from_kanji(match[0]), match.start(), match.end())


def _in_words(text: str) -> list[Number]:
    """The numbers in words. Two side by side that make none are not understood: neither counts."""
    found = [Number(*_grown_by_point(text, number)) for number in map(Number._make, spelled(text))]
    apart = [
        {one, other}
        for one, other in pairwise(found)
        if not text[one.end : other.start].strip(" \t-") and one.end <= other.start
    ]
    unclear = set().union(*apart)
    inside = {b for a, b in pairwise(found) if b.start < a.end}
    return [number for number in found if number not in unclear | inside]


def _grown_by_point(text: str, number: Number) -> Number:
    value, end = with_decimals(text, number.value, number.end)
    return Number(value, number.start, end)


def _written(text: str, *, commas: bool) -> Iterator[Number]:
    """The numbers in digits."""
    for match in _PLAIN.finditer(text):
        if match.end() - match.start() > _LONGEST:
            continue
        dashed = text[match.end() : match.end() + 2] in (",-", ",–", ",—")
        value = _decimal(match["digits"], commas=commas or dashed)
        if value is not None and match["below"] and _is_division(match, value):
            yield Number(value, match.start(), match.end("digits"))
            yield Number(Decimal(match["below"]), match.start("below"), match.end())
            continue
        value = None if value is None else _scaled(match, value)
        if value is not None:
            negative = match["sign"] is not None and match["sign"] != "+"
            yield Number(-value if negative else value, match.start(), match.end())


def _is_division(match: re.Match[str], value: Decimal) -> bool:
    """Whether two numbers around a slash are still to be divided: 150 / 2, and no 3/4."""
    below = Decimal(match["below"])
    spaced = match.string[match.end("digits")].isspace()
    return spaced and below > 1 and value % below == 0


_AND_PART = late_regex(
    r"\s(?:and|und|et|y|e|en)\s(?:an?\s|one\s)?(?P<part>quarter|third|fourth|fifth|eighth|tenth)"
    r"(?![\w-])",
    re.IGNORECASE,
)
_SINGULAR = frozenset(
    ["half", "third", "quarter", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
)


def _fractions(text: str, found: list[Number]) -> Iterator[Number]:
    """Fractions in words, by themselves or behind a whole number: two and three quarters."""
    ending = {number.end: number for number in found}
    shares = []
    for match in PARTS.finditer(text):
        over, name = ending.get(match.start()), match[0][1:].casefold()
        if over is None or not 0 < over.value < 1000 or over.value != int(over.value):
            continue
        if name not in _SINGULAR or over.value == 1:
            share = round(over.value / FRACTIONS[name], 16)
            shares.append(Number(share, over.start, match.end()))
    for part in shares:
        joint = re.search(r"\s(?:and|und|et|y|e|en)\s$", text[max(0, part.start - 6) : part.start])
        whole = ending.get(part.start - len(joint[0])) if joint else None
        yield part if whole is None else Number(whole.value + part.value, whole.start, part.end)
    for number in found:
        further = _AND_PART.match(text, number.end)
        if further and number.value < 1000:
            share = 1 / Decimal(FRACTIONS[further["part"].casefold()])
            yield Number(number.value + share, number.start, further.end())


_DOZEN = late_regex(rf"\s(?:{'|'.join(DOZEN)})(?!\w)", re.IGNORECASE)
_THEN_SCALE = late_regex(rf"\s(?:{'|'.join(w for w in SCALES if len(w) > 4)})(?!\w)", re.IGNORECASE)


def _grown(text: str, number: Number) -> Number:
    """The number with a half, a scale or a dozen behind it: two and a half million."""
    value, start, end = number
    if half := _AND_HALF.match(text, end):
        value, end = value + Decimal("0.5"), half.end()
    if scale := _THEN_SCALE.match(text, end):
        value, end = value * SCALES[scale[0].strip().casefold()], scale.end()
    elif dozen := _DOZEN.match(text, end):
        value, end = value * 12, dozen.end()
    return Number(value, start, end)


_MINUS = late_regex(
    r"(?P<first>(?:^|[\n:=(*>\"“»]|\b(?:is|was|at|of|to|by|reached|hit|reported|recorded|showed|ist"
    r"|war|bei|auf|est|était|à|es|era|è|op|é|a))[\s*$]*)?(?<![\w-])"
    r"(?:(?P<minus>minus|meno|menos|moins|min)|negative)\s+$",
    re.IGNORECASE,
)
_TAKES_AWAY = late_regex(
    r"[\d)²³%$€]\s*\Z|\b\w\s*\Z|\b(?:au|al|plus|o|ou|più|or)\s*\Z", re.IGNORECASE
)


def _signed(text: str, number: Number) -> Number:
    """The number with the sign that a word before it gives: minus four."""
    before = text[max(0, number.start - 30) : number.start]
    match = _MINUS.search(before) if number.value > 0 else None
    if match is None or _TAKES_AWAY.search(before[: match.start()]):
        return number
    in_words = text[number.start].isalpha()
    if match["minus"] and not (match["first"] or in_words or not before[: match.start()].strip()):
        return number
    return Number(-number.value, *number[1:])


def _special(text: str, patterns: list[tuple[re.Pattern[str], Decimal]]) -> Iterator[Number]:
    for pattern, value in patterns:
        for match in pattern.finditer(text):
            yield Number(value, match.start(), match.end())
