"""Numbers in words, in the bundled languages: two hundred and five, einundzwanzig, dos mil."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

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
    10**2: "hundred",
    10**3: "thousand thousands tausend mille mil mila duizend k tsd",
    10**6: "million millions mio mio. mn millionen millón millones milione milioni miljoen "
    "milhão milhões mln",
    10**5: "lakh lakhs",
    10**7: "crore crores",
    10**9: "billion billions bn milliarde milliarden milliard milliards miliardo miliardi "
    "miljard bilhão bilhões mrd",
    10**12: "trillion trillions",
}
SCALES = {w: n for n, words in _SCALES.items() for w in words.split()}
DOZEN = frozenset(
    [
        "dozen",
        "dozens",
        "dutzend",
        "douzaine",
        "douzaines",
        "docena",
        "docenas",
        "dozzina",
        "dozzine",
        "dúzia",
        "dúzias",
        "dozijn",
    ]
)


def _vocabulary() -> dict[str, int]:
    """The words for whole numbers below a hundred, compounds of German, Dutch and Italian too."""
    words: dict[str, int] = {}
    for language, units in _UNITS.items():
        names = units.split()
        words.update({w: n for n, w in enumerate(names) if "-" not in w})
        for n, ten in enumerate(_TENS[language].split(), start=2):
            if "-" not in ten:
                words[ten] = 10 * n
            for unit, name in enumerate(names[1:10], start=1):
                joint = {"de": "und", "nl": "ën" if name.endswith("e") else "en"}.get(language)
                if joint:
                    words[("ein" if name == "eins" else name) + joint + ten] = 10 * n + unit
                elif language == "it":
                    words[(ten[:-1] if unit in (1, 8) else ten) + name] = 10 * n + unit
    for n in range(1, 10):
        words["veinti" + _UNITS["es"].split()[n]] = 20 + n
    words |= {
        "vingts": 20, "dreissig": 30, "catorze": 14, "dezasseis": 16, "veintidós": 22,
        "veintiún": 21, "veintiuna": 21, "ventun": 21, "ventotto": 28,
        "veintitrés": 23, "veintiséis": 26, "ventitré": 23, "ein": 1, "een": 1, "six": 6, "dix": 10,
        "elf": 11, "acht": 8, "zero": 0, "null": 0, "una": 1, "uma": 1, "une": 1, "eine": 1,
    }  # fmt: skip
    words.pop("once")
    return words


_SMALL = _vocabulary()
_HUNDRED = {w: n for n, words in _HUNDREDS.items() for w in words.split()}
_JOINED_ONLY = frozenset(
    [
        "un",
        "um",
        "uno",
        "una",
        "une",
        "uma",
        "ein",
        "eine",
        "een",
        "sei",
        "mil",
        "mila",
        "cent",
        "cents",
        "cem",
    ]
)
"""Words that are also articles, verbs or units: they are numbers only beside another number."""
_ARTICLES = frozenset(["un", "um", "uno", "una", "une", "uma", "ein", "eine", "een"])
_COMPOUND = (("tausend", "hundert"), ("duizend", "honderd"), ("mila", "cento"), ("mille", "cento"))
_JOINTS = ("und", "en", "ën", "")


def _below_hundred(word: str) -> int | None:
    if not word:
        return 0
    for joint in _JOINTS:
        if word.startswith(joint) and (value := _SMALL.get(word[len(joint) :])) is not None:
            return value
    return None


def _below_thousand(word: str, hundred: str) -> int | None:
    head, name, tail = word.partition(hundred)
    if not name:
        return _below_hundred(word)
    high = 1 if not head else _below_hundred(head)
    low = _below_hundred(tail)
    return None if high is None or low is None or high > 19 else 100 * high + low


def _compound(word: str) -> Decimal | None:
    """The value of one long word: zweihundertfünfzig, tweeduizend, duecentocinquanta."""
    for thousand, hundred in _COMPOUND:
        if thousand not in word and hundred not in word:
            continue
        head, name, tail = word.partition(thousand)
        high = (1 if not head else _below_thousand(head, hundred)) if name else 0
        low = _below_thousand(tail if name else head, hundred)
        if high is not None and low is not None and high < 1000:
            return Decimal(1000 * high + low)
    for half in ("einhalb", "ënhalf", "enhalf"):
        if word.endswith(half) and word[: -len(half)] in _SMALL:
            return Decimal(_SMALL[word[: -len(half)]]) + Decimal("0.5")
    return None


def _worth(word: str) -> Decimal | None:
    """The value of one word; None for one that is no number."""
    if word in _SMALL:
        return Decimal(_SMALL[word])
    if word in _HUNDRED:
        return Decimal(_HUNDRED[word])
    if word in SCALES and (len(word) > 3 or word == "mil"):
        return Decimal(SCALES[word])
    return _compound(word) if 6 <= len(word) <= _LONGEST else None


_LONGEST = 80  # letters of a number in one word: German's grow


class _Sum:
    """A number that is read word by word."""

    def __init__(self) -> None:
        self.total = self.current = Decimal(0)
        self.scale = Decimal(10**15)
        self.fresh = True
        self.closed = False

    @property
    def value(self) -> Decimal:
        return self.total + self.current

    def take(self, word: str, value: Decimal, joint: str) -> bool:
        """Whether a word goes on with the number; it is then a part of it."""
        if self.fresh:
            self.fresh = False
            if value >= 1000 and (word in SCALES or value % 1000 == 0):
                self.total, self.scale = value, Decimal(SCALES.get(word, 1000))
            else:
                self.current = value
            return True
        if self.closed and not (value < 10 and self.current % 100 >= 20):
            return False
        return self._further(word, value, joint)

    def _further(self, word: str, value: Decimal, joint: str) -> bool:
        now = self.current
        if value >= 1000 and word in SCALES:
            if joint in ("", "-") and now and value < self.scale:
                self.total, self.current, self.scale = self.total + now * value, Decimal(0), value
                return True
            if joint in ("", "-") and not now and value > self.scale:  # two thousand million
                self.total, self.scale = self.total * value, value
                return True
            return False
        if _HUNDRED.get(word) == 100 and joint in ("", "-") and 0 < now < 100:
            self.current = now * 100
            return True
        if value >= 100:
            grows = not now and self.total > 0 and value < self.scale
            self.current = value if grows else now
            return grows
        below = now % 100
        if joint == "and" and below:
            return False
        if below == 4 and word in ("vingt", "vingts"):
            self.current = now + 76
        elif (
            (not below and (now or self.total))
            or (0 < value < 10 and below >= 20 and not below % 10)
            or (below in (60, 80) and 10 <= value < 20 and joint != "and")
        ):
            self.current = now + value
        elif joint in ("", "-") and 10 <= now < 100 and value >= 10 and not self.total:
            self.current, self.closed = now * 100 + value, True  # nineteen forty-five
        else:
            return False
        return True


_WORD = re.compile(r"[^\W\d_]+")
_JOINT = re.compile(r"\s+|-|\s+(and|e|y|et|und|en|ed)\s+|-(et)-", re.IGNORECASE)


def spelled(text: str) -> Iterator[tuple[Decimal, int, int]]:
    """The numbers in words of a text: value, beginning and end."""
    number, start, end, words = _Sum(), 0, 0, list[str]()
    for match in _WORD.finditer(text):
        if match.end() - match.start() > _LONGEST:
            continue
        word = match[0].casefold()
        value = _worth(word)
        if value is None:
            continue
        joint = _JOINT.fullmatch(text, end, match.start()) if words else None
        said = (joint[1] or joint[2] or joint[0].strip()).casefold() if joint else ""
        if words and joint and number.take(word, value, said):
            words.append(word)
            end = match.end()
            continue
        if words and _whole(text, start, end, words):
            yield number.value, start, end
        number, start, end, words = _Sum(), match.start(), match.end(), [word]
        number.take(word, value, "")
    if words and _whole(text, start, end, words):
        yield number.value, start, end


_POINT = re.compile(r"\s(?:point|komma|virgule|coma|virgola|vírgula)((?:\s[^\W\d_]{1,6})+)", re.I)


def with_decimals(text: str, value: Decimal, end: int) -> tuple[Decimal, int]:
    """A number in words with the digits that are said behind its point: five point two."""
    match = _POINT.match(text, end, end + 80)
    digits, at = "", end
    for word in re.finditer(r"[^\W\d_]+", match[1] if match else ""):
        digit = _SMALL.get(word[0].casefold(), 10)
        if digit > 9 or match is None:
            break
        digits, at = digits + str(digit), match.start(1) + word.end()
    return (value + Decimal(f"0.{digits}"), at) if digits else (value, end)


def _whole(text: str, start: int, end: int, words: list[str]) -> bool:
    """Whether words are a number and no part of another word, no article and no unit."""
    if all(word in _ARTICLES for word in words) or (len(words) == 1 and words[0] in _JOINED_ONLY):
        return False
    if words == ["dos"] and (re.match(r"\s\d", text[end:]) or re.search("[ãõ]", text)):
        return False  # of the, in Portuguese
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    part = PARTS.match(text, end) is not None
    return not (before and (before.isalnum() or before in "-_")) and (
        part or not (after and (after.isalnum() or after in "-_"))
    )


FRACTIONS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4,
    "fourths": 4, "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7,
    "eighth": 8, "eighths": 8, "ninth": 9, "ninths": 9, "tenth": 10, "tenths": 10, "twelfth": 12,
    "twelfths": 12, "hundredth": 100, "hundredths": 100, "thousandth": 1000, "thousandths": 1000,
    "drittel": 3, "viertel": 4, "fünftel": 5, "sechstel": 6, "siebtel": 7, "achtel": 8,
    "neuntel": 9, "zehntel": 10, "hundertstel": 100, "tiers": 3, "quarts": 4, "cinquièmes": 5,
    "dixièmes": 10, "tercios": 3, "cuartos": 4, "quintos": 5, "décimos": 10, "terzi": 3,
    "quarti": 4, "quinti": 5, "decimi": 10, "terços": 3, "quartos": 4, "derde": 3, "kwart": 4,
    "vijfde": 5, "tiende": 10,
}  # fmt: skip
"""The names of parts, and how many of them make one."""
PARTS = re.compile(
    rf"[\s-](?:{'|'.join(sorted(FRACTIONS, key=len, reverse=True))})(?![\w-])", re.IGNORECASE
)
