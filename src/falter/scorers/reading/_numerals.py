"""Numbers as they are written: separators, scales, fractions, powers of ten, number words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, DivisionByZero, InvalidOperation
from typing import NamedTuple

from falter.core.late_regex import late_regex

__all__ = ["Number", "numbers", "writes_commas"]

_LONGEST = 60  # characters


class Number(NamedTuple):
    """A number in a text: its value and its place."""

    value: Decimal
    start: int
    end: int


_UNITS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze "
    "quinze seize dix-sept dix-huit dix-neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce "
    "quince dieciséis diecisiete dieciocho diecinueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
    "quattordici quindici sedici diciassette diciotto diciannove",
    "nl": "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien "
    "vijftien zestien zeventien achttien negentien",
    "pt": "zero um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze "
    "quinze dezesseis dezessete dezoito dezenove",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingt quatre-vingt-dix",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "nl": "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
    "pt": "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
}
_HUNDREDS = {
    100: "hundred hundert cent cents cien ciento cento honderd cem",
    200: "zweihundert doscientos doscientas duecento tweehonderd duzentos duzentas",
    300: "dreihundert trescientos trecento driehonderd trezentos trezentas",
    400: "vierhundert cuatrocientos quattrocento vierhonderd quatrocentos quatrocentas",
    500: "fünfhundert quinientos cinquecento vijfhonderd quinhentos quinhentas",
    600: "sechshundert seiscientos seicento zeshonderd seiscentos",
    700: "siebenhundert setecientos settecento zevenhonderd setecentos",
    800: "achthundert ochocientos ottocento achthonderd oitocentos",
    900: "neunhundert novecientos novecento negenhonderd novecentos",
}
_SCALES = {
    10**3: "thousand thousands tausend mille mil mila duizend k tsd",
    10**6: "million millions mio mio. mn millionen millón millones milione milioni miljoen "
    "milhão milhões mln",
    10**9: "billion billions bn milliarde milliarden milliard milliards miliardo miliardi "
    "miljard bilhão bilhões mrd",
    10**12: "trillion trillions",
}
_JAPANESE = {"千": 10**3, "万": 10**4, "億": 10**8, "兆": 10**12}
_DIGITS = {c: n for n, c in enumerate("〇一二三四五六七八九")}
_HALF = {
    "½": "0.5",
    "¼": "0.25",
    "¾": "0.75",
    "⅓": "0.3333333333333333",
    "⅔": "0.6666666666666666",
    "⅕": "0.2",
    "⅛": "0.125",
}


def _vocabulary() -> dict[str, int]:
    """The words for whole numbers below a hundred, compounds of German, Dutch and French too."""
    words: dict[str, int] = {}
    for language, units in _UNITS.items():
        names = units.split()
        words.update({w: n for n, w in enumerate(names)})
        for n, ten in enumerate(_TENS[language].split(), start=2):
            words[ten] = 10 * n
            for unit, name in enumerate(names[1:10], start=1):
                joint = {"de": "und", "nl": "ën" if name.endswith("e") else "en"}.get(language)
                if joint:
                    words[("ein" if name == "eins" else name) + joint + ten] = 10 * n + unit
                elif language == "it":
                    words[(ten[:-1] if unit in (1, 8) else ten) + name] = 10 * n + unit
                elif language in ("en", "fr"):
                    words[f"{ten}-{name}"] = 10 * n + unit
                else:
                    words[f"{ten} {'y' if language == 'es' else 'e'} {name}"] = 10 * n + unit
            if language == "fr" and n in (7, 9):
                for unit, name in enumerate(names[11:17], start=11):
                    words[f"{ten.rpartition('-')[0]}-{name}"] = 10 * (n - 1) + unit
    for n in range(1, 10):
        words["veinti" + _UNITS["es"].split()[n]] = 20 + n
    words |= {
        "vingt et un": 21, "soixante et onze": 71, "quatre-vingts": 80, "dreissig": 30,
        "catorze": 14, "dezasseis": 16, "veintidós": 22, "veintitrés": 23, "veintiséis": 26,
        "ventitré": 23,
    }  # fmt: skip
    for ambiguous in (
        "un",
        "um",
        "uno",
        "sei",
        "once",
        "six",
        "dix",
        "elf",
        "acht",
        "null",
        "zero",
        "cent",
        "mil",
    ):
        words.pop(ambiguous, None)
    words |= {"six": 6, "dix": 10, "elf": 11, "acht": 8, "zero": 0, "null": 0}
    return words


_SMALL = _vocabulary()
_HUNDRED = {w: n for n, words in _HUNDREDS.items() for w in words.split()}
_SCALE = {w: n for n, words in _SCALES.items() for w in words.split()}
_WORDS = _SMALL | _HUNDRED | {w: n for w, n in _SCALE.items() if len(w) > 3}
_NAME = "|".join(re.escape(w) for w in sorted(_WORDS, key=len, reverse=True))
_WRITTEN = late_regex(
    rf"(?<![\w-])(?:{_NAME})(?:(?:\s+|-|\s+and\s+|\s+e\s+|\s+y\s+)(?:{_NAME}))*(?![\w-])",
    re.IGNORECASE,
)
_AND_HALF = late_regex(
    r"\s+(?:[^\W\d]{2,15}\s+)?(?:and a half|einhalb|et demie?|y medi[ao]|e mezzo|e mezza|e meia"
    r"|e meio)\b",
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
    r"two hundred": "200",
}
_NONE = late_regex(
    r"\A\W*(?:none|not one|not a single one|zero) of (?:them|these"
    r"|those)\b",
    re.IGNORECASE,
)
_SPECIALS = [
    (late_regex(rf"(?<!\w)(?:{p})(?!\w)", re.IGNORECASE), Decimal(v)) for p, v in _SPECIAL.items()
]

_DIGITAL = (
    r"(?:\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:[,.'’\u2009 ]\d{3})+(?:[.,]\d+)?(?!\d)"
    r"|\d+[.,]\d+|\d+|[.,]\d+)"
)
_SCALE_NAME = "|".join(re.escape(w) for w in sorted(_SCALE, key=len, reverse=True) if w != "k")
_PLAIN = late_regex(
    rf"(?P<sign>(?<![\w\d)])[-−–+](?=[$€£₹¥]?[\d.]))?(?:[$€£₹¥]\s?)?(?P<digits>(?<![\w.]){_DIGITAL}|(?<=[$€£₹¥]){_DIGITAL}|(?<=[\u3040-\u9fff]){_DIGITAL})"
    r"(?:\s*(?:[×x·*]|\\times|\\cdot)\s*10\s*(?:\^\s*\{?\s*(?P<power>[-−]?\d+)\s*\}?"
    r"|\*\*\s*(?P<stars>[-−]?\d+)|(?P<high>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))"
    r"|\s?e\{?(?P<e>[-+−]?\d+)\}?(?!\w)"
    r"|\s*/\s*(?P<below>\d+)(?![\d/]|[.,]\d)"
    r"|\s(?P<part>\d+)/(?P<whole>\d+)(?!\d)"
    rf"|\s?(?P<mark>[{''.join(_HALF)}])"
    rf"|[\s-]?(?P<scale>(?i:{_SCALE_NAME})|k|M|B|(?<=\d)K(?=\s|$))(?![\w.]\w|\w|/)"
    r"|(?P<kanji>[千万億兆](?:\d+[千万億]?)?))?"
)
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_COMMA = late_regex(
    r"\b(?:der|die|das|ist|sind|und|nicht|ein|eine|es|el|la|los|las|son|está|una|le|les|des|est"
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
    return len(_COMMA.findall(text)) > len(_POINT.findall(text))


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
        if match["below"]:
            return value / Decimal(match["below"])
        if match["part"]:
            return value + Decimal(match["part"]) / Decimal(match["whole"])
    except (DivisionByZero, InvalidOperation):
        return None
    if match["mark"]:
        return value + Decimal(_HALF[match["mark"]])
    if match["scale"]:
        scale = {"M": 10**6, "B": 10**9, "K": 10**3}.get(match["scale"]) or _SCALE[
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


def _spelled(text: str) -> Decimal | None:
    """The value of number words: hundreds and scales multiply what stands before them."""
    total = current = 0
    for word in re.findall(_NAME, text, re.IGNORECASE):
        word = word.casefold()
        if word in _SCALE and len(word) > 3:
            total += max(1, current) * _SCALE[word]
            current = 0
        elif _HUNDRED.get(word) == 100:
            current = max(1, current) * 100
        else:
            current += _WORDS[word]
    return Decimal(total + current)


_VAGUE = late_regex(
    r"\b(?:a couple of|a few|several|some|many|few|the|these|those|both|all|other|last|next"
    r"|mehrere|einige|die"
    r"|plusieurs|quelques|les|varios|los|las|diversi|meerdere|de|vários|os)\s+$",
    re.IGNORECASE,
)


def _idle(match: re.Match[str], text: str) -> bool:
    """Whether a word is a pronoun or a unit rather than a number: one, cents."""
    word = match[0].casefold()
    if word in ("one", "cent", "cents", "ten", "en", "sept") or word in ("eins", "zero", "null"):
        return bool(
            text[: match.start()].strip() or text[match.end() :].strip(" .!")
        ) and word not in ("ten", "zero", "null")
    return False


_ALL_KANJI = late_regex(
    r"(?<![一二三四五六七八九十百千万\d])[一二三四五六七八九]?[十百][一二三四五六七八九十百]*(?=[^一-龥]|[個人本枚年円回日匹冊つ歳台]|$)"
)


def _from_kanji(text: str) -> Decimal:
    total = current = 0
    for char in text:
        if char in "十百":
            total += max(1, current) * (10 if char == "十" else 100)
            current = 0
        else:
            current = _DIGITS[char]
    return Decimal(total + current)


_ONLY_ONE = late_regex(
    r"\b(?:only|just|exactly|precisely|a single|nur|genau|seulement|sólo|solo|slechts|apenas)\s"
    r"(one|eine?[nrs]?|une?|una|uno|één|uma?)\b",
    re.IGNORECASE,
)


def numbers(text: str) -> list[Number]:
    """The numbers of a text in order, none inside another."""
    commas = writes_commas(text)
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
    yield from _special(text, _SPECIALS[:10])
    for match in _PLAIN.finditer(text):
        if match.end() - match.start() > _LONGEST:
            continue
        dashed = text[match.end() : match.end() + 2] in (",-", ",–", ",—")
        value = _decimal(match["digits"], commas=commas or dashed)
        value = None if value is None else _scaled(match, value)
        if value is not None:
            if half := _AND_HALF.match(text, match.end()):
                value += Decimal("0.5")
            negative = match["sign"] is not None and match["sign"] != "+"
            yield Number(
                -value if negative else value, match.start(), half.end() if half else match.end()
            )
    for match in re.finditer(rf"(?<!\d)[{''.join(_HALF)}]", text):
        yield Number(Decimal(_HALF[match[0]]), match.start(), match.end())
    for match in _WRITTEN.finditer(text):
        value = _spelled(match[0])
        half = _AND_HALF.match(text, match.end())
        if _VAGUE.search(text[max(0, match.start() - 15) : match.start()]) or _idle(match, text):
            continue
        if value is not None and match.end() - match.start() < 3 * _LONGEST:
            minus = re.search(
                r"\b(?:minus|negative|meno|menos|moins|min)\s+$",
                text[: match.start()],
                re.IGNORECASE,
            )
            value = value + Decimal("0.5") if half else value
            yield Number(
                -value if minus else value, match.start(), half.end() if half else match.end()
            )
    yield from _special(text, _SPECIALS[10:])
    for match in _ALL_KANJI.finditer(text):
        yield Number(_from_kanji(match[0]), match.start(), match.end())


def _special(text: str, patterns: list[tuple[re.Pattern[str], Decimal]]) -> Iterator[Number]:
    for pattern, value in patterns:
        for match in pattern.finditer(text):
            yield Number(value, match.start(), match.end())
