"""Parsing of numbers: separators, scales, fractions, powers of ten, and number words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow
from functools import cache
from typing import NamedTuple

from falter.records.lazy_regex import lazy_regex, named_patterns, named_regex
from falter.scorers.reading.phrases import LANGUAGES, language_of, stop_words, words_of

MAX_NUMBER_CHARACTERS = 60  # characters of one number


class Number(NamedTuple):
    """A number in a text: its value, and its start and end offsets."""

    value: Decimal
    start: int
    end: int


class Vocabulary(NamedTuple):
    """The number words of all languages, with their values.

    `parts` are denominators such as "quarter", and `joints` are words such as "and". `words` has
    all words that may begin or continue a number.
    """

    small: dict[str, int]
    hundreds: dict[str, int]
    scales: dict[str, int]
    parts: dict[str, int]
    joints: frozenset[str]
    words: dict[str, int]


_ARTICLES_WORDS = "un um uno una une uma ein eine einen einem een ein"
_ARTICLES = frozenset(_ARTICLES_WORDS.split())
_ALONE_NO_NUMBER_WORDS = (
    "sei mil mila cent cents cem once sept dix second million millions dos tre nove on"
)
_ALONE_NO_NUMBER = frozenset(_ALONE_NO_NUMBER_WORDS.split())
"""Words that are also verbs, months or units; they are numbers only next to another number."""
_EXTRA_NUMBERS = {
    "vingts": 20, "dreissig": 30, "catorze": 14, "dezasseis": 16, "veintidós": 22, "veintiún": 21,
    "veintiuna": 21, "ventun": 21, "veintitrés": 23, "veintiséis": 26, "ventitré": 23, "duas": 2,
    "deux": 2, "zwo": 2, "eins": 1,
}  # fmt: skip


@cache
def vocabulary() -> Vocabulary:
    """Return the number words of all languages, including compounds below a hundred."""
    small: dict[str, int] = {}
    hundreds, scales, parts = dict[str, int](), dict[str, int](), dict[str, int]()
    joints: set[str] = set()
    for language in LANGUAGES:
        lists = words_of(language)
        units = lists.get("units", "").split()
        small.update({w: n for n, w in enumerate(units) if "-" not in w})
        for n, ten in enumerate(lists.get("tens", "").split(), start=2):
            if "-" not in ten:
                small[ten] = 10 * n
            for unit, name in enumerate(units[1:10], start=1):
                small.update(_one_word_numbers(language, ten, n, unit, name))
        for name, found in (("hundreds", hundreds), ("scales", scales), ("parts", parts)):
            for entry in filter(None, map(str.strip, lists.get(name, "").split(","))):
                value, word = entry.split()
                found[word] = int(value)
        joints |= {w.strip() for w in lists.get("and", "").split(",") if " " not in w.strip()}
    small |= _EXTRA_NUMBERS | dict.fromkeys(_ARTICLES, 1)
    small.pop("", None)
    words = {w: n for w, n in scales.items() if len(w) > 3 or w == "mil"} | hundreds | small
    return Vocabulary(small, hundreds, scales, parts, frozenset(joints), words)


def _one_word_numbers(language: str, ten: str, n: int, unit: int, name: str) -> dict[str, int]:
    """Return the one-word number for a ten and a unit: einundzwanzig, ventuno, veintidós."""
    value = 10 * n + unit
    if language == "de":
        return {("ein" if unit == 1 else name) + "und" + ten: value}
    if language == "nl":
        return {name + ("ën" if name.endswith("e") else "en") + ten: value}
    if language == "it":
        return {(ten[:-1] if unit in (1, 8) else ten) + name: value}
    return {"veinti" + name: value} if language == "es" and n == 2 else {}


class _Sum:
    """A number under construction, extended word by word."""

    def __init__(self) -> None:
        self.total = self.current = 0
        self.scale = 10**15
        self.words: list[str] = []

    def take(self, word: str, value: int, joint: str) -> bool:
        """Add a word to the number. Return False, without a change, if it does not continue it."""
        first = not self.words
        if self._continues(word, value, joint, first):
            self.words.append(word)
            return True
        return False

    def _continues(self, word: str, value: int, joint: str, first: bool) -> bool:
        known, now = vocabulary(), self.current
        if first:
            if word in known.scales or (value >= 1000 and value % 1000 == 0):
                self.total, self.scale = value, value
            else:
                self.current = value
            return True
        if word in known.scales:
            if now and value < self.scale and not joint:
                self.total, self.current, self.scale = self.total + now * value, 0, value
                return True
            if not now and value > self.scale and not joint:  # two thousand million
                self.total, self.scale = self.total * value, value
                return True
            return False
        # "three hundred", "nineteen hundred": hundreds of what was read so far.
        if known.hundreds.get(word) == 100 and not joint and 0 < now < 100:
            self.current = now * 100
            return True
        if value >= 100:
            grows = not now and self.total > 0 and value < self.scale
            self.current = value if grows else now
            return grows
        below = now % 100
        # French counts by twenties: "quatre-vingts" turns 4 into 80, and "quatre-vingt-douze" goes
        # on to 92. The three cases below are "two hundred five", "twenty-one" and "soixante-dix".
        if below == 4 and word in ("vingt", "vingts"):
            self.current = now + 76
        elif (
            (not below and (now or self.total))
            or (0 < value < 10 and below >= 20 and not below % 10)
            or (below in (60, 80) and 10 <= value < 20)
        ):
            self.current = now + value
        elif not joint and 10 <= now < 100 and value >= 10 and not self.total:
            self.current = now * 100 + value  # nineteen forty-five
        else:
            return False
        return True


_WORD = re.compile(r"[^\W\d_]+")


def _spelled_numbers(low: str) -> Iterator[Number]:
    """Yield the numbers written as words in a lower-case text."""
    known = vocabulary()
    number, start, end = _Sum(), 0, 0
    for match in [m for m in _WORD.finditer(low) if m[0] in known.words]:
        word = match[0]
        value = known.words[word]
        gap = low[end : match.start()].strip(" -") if number.words else "?"
        if len(gap) < 4 and (not gap or gap in known.joints) and number.take(word, value, gap):
            end = match.end()
            continue
        if number.words and _is_number(low, start, end, number.words):
            yield Number(Decimal(number.total + number.current), start, end)
        number, start, end = _Sum(), match.start(), match.end()
        number.take(word, value, "")
    if number.words and _is_number(low, start, end, number.words):
        yield Number(Decimal(number.total + number.current), start, end)


def _is_number(low: str, start: int, end: int, words: list[str]) -> bool:
    """Return True if words are a number, and no article, no unit and no part of a name."""
    if all(word in _ARTICLES for word in words):
        return False
    if len(words) == 1 and (words[0] in _ALONE_NO_NUMBER or words[0] in ("one", "eins")):
        return not low[:start].strip(" *") and not low[end:].strip(" .!*")
    if len(words) == 1 and words[0] in vocabulary().scales:
        return False
    if words == ["hundred"] and not low[:start].endswith(("a ", "one ", "an ")):
        return False
    before, after = low[max(0, start - 1) : start], low[end : end + 1]
    return not (before.isalnum() or before in ("-", "_", "'")) and after not in ("_", "'")


_DIGITS = named_patterns("scorers/reading")["digital"]
_FRACTION_CHARACTERS = {
    "½": "0.5", "¼": "0.25", "¾": "0.75", "⅓": "0.3333333333333333", "⅔": "0.6666666666666667",
    "⅕": "0.2", "⅖": "0.4", "⅗": "0.6", "⅘": "0.8", "⅛": "0.125", "⅜": "0.375", "⅝": "0.625",
    "⅞": "0.875",
}  # fmt: skip
_KANJI_SCALES = {"千": 10**3, "万": 10**4, "億": 10**8, "兆": 10**12}
_FROM_SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@cache
def _written_pattern() -> re.Pattern[str]:
    names = sorted((w for w in vocabulary().scales if w != "dutzend"), key=len, reverse=True)
    scale = "|".join(map(re.escape, names))
    return re.compile(
        # A minus between numbers is no sign, as in 5-3. After the digits comes one of: 3 × 10^5
        # (power, stars, high), 2^5 and 2² (raised, super), 1e5 (e), 3/4 (below), 1 3/4 (part,
        # whole), 1½ (mark), 2 million (scale), 5k (letter), 3万5千 (kanji).
        r"(?P<sign>(?<![\w\d)])[-−–+](?=[$€£₹¥]?[\d.]))?(?:[$€£₹¥]\s?)?"
        rf"(?P<digits>(?<![^\W\u3040-\u9fff])(?<!\d[.,]){_DIGITS})"
        r"(?:\s?(?:[×x·*]|\\times|\\cdot)\s?10\s?(?:\^\s?\{?\s?(?P<power>[-−]?\d{1,3})\s?\}?"
        r"|\*\*\s?(?P<stars>[-−]?\d{1,3})|(?P<high>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}))"
        r"|\s?\^\s?\{?(?P<raised>\d{1,2})\}?(?![\w.])|(?P<super>[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(?!\w)"
        r"|e(?P<e>[-+−]?\d{1,3})(?!\w)|\s?/\s?(?P<below>\d{1,9})(?![\d/]|[.,]\d)"
        r"|\s(?P<part>\d{1,4})/(?P<whole>\d{1,4})(?!\d)"
        rf"|\s?(?P<mark>[{''.join(_FRACTION_CHARACTERS)}])"
        rf"|(?:[\s-]?(?P<scale>{scale})|(?P<letter>[kmb]))(?![\w.]\w|\w|/)"
        r"|(?P<kanji>[千万億兆](?:\d+[千万億]?)?))?"
    )


def decimal(digits: str, *, commas: bool) -> Decimal | None:
    """Return the value of digits with separators of either kind, or None.

    `commas`: the comma is the decimal mark, so that 1,234 is 1.234 and 1.234 is 1234.
    """
    if digits.isdecimal():
        return Decimal(digits)
    digits = re.sub(r"['\u2009 ]", "", digits)
    points, marks = digits.count("."), digits.count(",")
    if points and marks:
        # 1.234,5 and 1,234.5: with both signs, the last one is the decimal mark.
        mark = max(digits.rfind("."), digits.rfind(","))
        digits = re.sub(r"[.,]", "", digits[:mark]) + "." + digits[mark + 1 :]
    elif points > 1 or marks > 1:
        # A sign that occurs twice groups the digits: 1.234.567.
        digits = re.sub(r"[.,]", "", digits)
    elif marks:
        # 1,234 may be either: the language of the text decides. 12,34 and 0,234 are decimals
        # anywhere.
        grouped = re.fullmatch(r"[1-9]\d{0,2},\d{3}", digits) is not None
        digits = digits.replace(",", "" if grouped and not commas else ".")
    elif points and commas and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", digits):
        digits = digits.replace(".", "")
    try:
        return Decimal(digits)
    except InvalidOperation:
        return None


def _scaled_value(match: re.Match[str], value: Decimal) -> Decimal | None:
    """Return the value with the power, fraction or scale after its digits; None if too large."""
    power = (
        match["power"]
        or match["stars"]
        or match["e"]
        or (match["high"] or "").translate(_FROM_SUPERSCRIPT)
    )
    try:
        if power:
            exponent = int(power.replace("−", "-"))
            return value.scaleb(exponent) if abs(exponent) < 100 else None
        if raised := match["raised"] or (match["super"] or "").translate(_FROM_SUPERSCRIPT):
            return value ** int(raised) if value < 10**6 else None
        if match["below"]:
            return value / Decimal(match["below"])
        if match["part"]:
            return value + Decimal(match["part"]) / Decimal(match["whole"])
    except (DivisionByZero, InvalidOperation, Overflow, ValueError):
        return None
    if match["mark"]:
        return value + Decimal(_FRACTION_CHARACTERS[match["mark"]])
    if scale := match["scale"]:
        return value * vocabulary().scales[scale]
    if match["letter"]:
        return value * {"m": 10**6, "b": 10**9, "k": 10**3}[match["letter"]]
    if match["kanji"]:
        rest = re.match(r"(\d+)([千万億])?", match["kanji"][1:])
        total = value * _KANJI_SCALES[match["kanji"][0]]
        return total + (Decimal(rest[1]) * _KANJI_SCALES.get(rest[2] or "", 1) if rest else 0)
    return value


def _written_numbers(text: str, low: str, *, commas: bool) -> Iterator[Number]:
    """Yield the numbers written in digits."""
    for match in _written_pattern().finditer(low):
        if match.end() - match.start() > MAX_NUMBER_CHARACTERS:
            continue
        if match["letter"] and match["letter"] != "k" and text[match.start("letter")].islower():
            value = decimal(match["digits"], commas=commas)  # 5 m is five metres
            end = match.end("digits")
        else:
            # "12,-" is a price without cents.
            dashed = low[match.end() : match.end() + 2] in (",-", ",–", ",—")
            value, end = decimal(match["digits"], commas=commas or dashed), match.end()
            if value is not None and match["below"] and _is_division(match, value):
                yield Number(value, match.start(), match.end("digits"))
                yield Number(Decimal(match["below"]), match.start("below"), match.end())
                continue
            value = None if value is None else _scaled_value(match, value)
        if value is not None:
            negative = match["sign"] is not None and match["sign"] != "+"
            yield Number(-value if negative else value, match.start(), end)


def _is_division(match: re.Match[str], value: Decimal) -> bool:
    """Return True if a slash is a division still to be done (150 / 2) and no fraction (3/4)."""
    below = Decimal(match["below"])
    spaced = match.string[match.end("digits")].isspace()
    return spaced and below > 1 and value % below == 0


_COMMA_LANGUAGES = frozenset(["de", "fr", "es", "it", "nl", "pt"])
# "\frac{1}{2}", "\dfrac {-3}{4}"; not "\frac{a}{2}".
_LATEX = lazy_regex(r"\\[dt]?frac\s?\{(-?\d{1,9})\}\s?\{(\d{1,9})\}")
_AND_HALF = named_regex("scorers/reading", "and_half")


def without_latex(text: str) -> str:
    """Return a text with LaTeX fractions, products and digit groups in plain notation."""
    if "\\" not in text and "{" not in text:
        return text
    text = (
        text.replace("{,}", ",").replace("\\times", "×").replace("\\cdot", "·").replace("\\pm", "±")
    )
    return _LATEX.sub(r"\1/\2", text)


def writes_commas(text: str, least: int = 1) -> bool:
    """Return True if at least `least` words show a language that writes 1.234,56."""
    words = _WORD.findall(text[:600].lower())
    found = language_of(words)
    if found not in _COMMA_LANGUAGES:
        return False
    own, english = (sum(w in stop_words(name) for w in words) for name in (found, "en"))
    return own > english and own >= least


def numbers_in(text: str, *, commas: bool | None = None) -> list[Number]:
    """Return the numbers of a text in order, none inside another.

    `commas`: the text writes 1.234,56. If None, the language of the text decides.
    """
    low = text.lower()
    if len(low) != len(text):
        # Lower case may be longer (İ), and places in `low` have to be places in the text.
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    found = list[Number]()
    if commas is None:
        commas = writes_commas(text)
    if any(map(str.isdecimal, text)):
        found += _written_numbers(text, low, commas=commas)
    words = list(_spelled_numbers(low))
    found += _numbers_and_fractions(low, words)
    for match in (
        re.finditer(rf"(?<!\d)[{''.join(_FRACTION_CHARACTERS)}]", low) if not low.isascii() else ()
    ):
        found.append(Number(Decimal(_FRACTION_CHARACTERS[match[0]]), *match.span()))
    out, end = list[Number](), -1
    for number in sorted(found, key=lambda n: (n.start, -n.end)):
        if number.start >= end:
            out.append(_extended_number(low, number))
            end = out[-1].end
    return out


def _numbers_and_fractions(low: str, words: list[Number]) -> Iterator[Number]:
    """Yield numbers in words, with fractions: three quarters."""
    parts = vocabulary().parts
    for number in words:
        behind = _WORD.match(low, number.end + 1)
        share = parts.get(behind[0]) if behind and low[number.end] in " -" else None
        if share and behind and number.value < 100 and behind[0] not in ("second", "half"):
            yield Number(round(number.value / share, 16), number.start, behind.end())
        else:
            yield number


_SCALE_BEHIND = lazy_regex(r"\s([^\W\d_]{4,})")
# The sign of the number after it, unless a number precedes it. "is minus ", ": negative ";
# not "minute ".
_MINUS_WORD = lazy_regex(r"(?:\A|[\s:=(*>])((?:minus|negative|meno|menos|moins|min)\s)\Z")
# "3 minus "; not "is minus ".
_SUBTRACTION = lazy_regex(r"[\d)²³%$€]\s*(?:minus|negative|meno|menos|moins|min)\s\Z")


def _extended_number(low: str, number: Number) -> Number:
    """Return a number extended by a half, a scale or a dozen after it and by a minus before it."""
    value, start, end = number
    if low[end : end + 1] == " ":
        if half := _AND_HALF.match(low, end):
            share = {"quarter": Decimal("0.25"), "third": 1 / Decimal(3)}.get(
                half["part"], Decimal("0.5")
            )
            value, end = value + share, half.end()
        if (scale := _SCALE_BEHIND.match(low, end)) and scale[1] in vocabulary().scales:
            value, end = value * vocabulary().scales[scale[1]], scale.end()
    before = low[max(0, start - 14) : start]
    minus = _MINUS_WORD.search(before) if value > 0 and before[-1:] == " " else None
    if minus and not _SUBTRACTION.search(before):
        value, start = -value, start - len(minus[1])
    return Number(value, start, end)
