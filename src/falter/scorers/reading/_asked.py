"""What a question asks for: the numbers that it gives, the unit and the scale that it wants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from falter.scorers.reading._numerals import Number, numbers, writes_commas
from falter.scorers.reading._spelled import DOZEN, SCALES
from falter.scorers.reading._text_words import folded_word, same_noun

LONGEST = 4_000  # characters of a question that are looked at: its last ones

_UNITS = {
    "percent": "% percent percentage prozent pourcent pourcentage porcentaje percentuale"
    " procent percentagem porcentagem",
    "second": "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos"
    " secondo secondi seconden",
    "minute": "min mins minute minutes minuten minuto minutos minuti minuut",
    "hour": "h hr hrs hour hours stunde stunden heure heures hora horas ora ore uur uren",
    "day": "d day days tag tage tagen jour jours dia dias giorno giorni dag dagen",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken",
    "month": "month months monat monate monaten mois mes meses mese mesi maand maanden",
    "year": "year years jahr jahre jahren an ans annee annees ano anos anni anno jaar jaren",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "cm": "cm centimetre centimetres centimeter centimeters zentimeter centimetro centimetros"
    " centimetri",
    "m": "m metre metres meter meters metern metro metros metri",
    "km": "km kilometre kilometres kilometer kilometers kilometern kilometro kilometros"
    " chilometro chilometri quilometro quilometros",
    "mile": "mi mile miles meile meilen",
    "foot": "ft foot feet fuss pieds pies piedi",
    "inch": "inch inches zoll pouces pulgadas pollici",
    "yard": "yd yard yards",
    "km/h": "km/h kmh kph",
    "mph": "mph",
    "m/s": "m/s",
    "mg": "mg milligram milligrams milligramm",
    "g": "g gram grams gramme grammes gramm gramo gramos grammo grammi grama gramas",
    "kg": "kg kilo kilos kilogram kilograms kilogramme kilogrammes kilogramm kilogramo"
    " kilogramos chilo chili chilogrammi quilo quilos quilogramas",
    "tonne": "t ton tons tonne tonnes tonnen tonelada toneladas tonnellate",
    "pound": "lb lbs",
    "ounce": "oz ounce ounces",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "litre": "l litre litres liter liters litro litros litri",
    "gallon": "gallon gallons",
    "dollar": "$ usd dollar dollars dolar dolares",
    "euro": "€ eur euro euros",
    "sterling": "£ gbp",
    "yen": "¥ yen jpy",
    "cent": "cent cents cts centimes centavos centesimi",
    "celsius": "°c celsius",
    "fahrenheit": "°f fahrenheit",
    "hectare": "ha hectare hectares hektar hectarea hectareas ettaro ettari hectaren",
    "acre": "acre acres",
    "m²": "m² m2 qm",
    "m³": "m³ m3",
}
_UNIT = {word: unit for unit, words in _UNITS.items() for word in words.split()}
_LINEAR = {"km", "m", "cm", "mm", "mile", "foot", "inch", "yard"}
_DIMENSIONS = (
    _LINEAR,
    {"second", "minute", "hour", "day", "week", "month", "year"},
    {"km/h", "mph", "m/s"},
    {"mg", "g", "kg", "tonne", "pound", "ounce"},
    {"ml", "litre", "gallon"},
    {"dollar", "euro", "sterling", "yen", "cent"},
    {"celsius", "fahrenheit"},
)
_SCALE_WORDS = {
    10**3: "thousand thousands tausend mille mil mila duizend",
    10**6: "million millions mio millionen millones milioni miljoen milhoes milhao",
    10**9: "billion billions milliarde milliarden milliards miliardi miljard bilhoes mrd",
}
_SCALE = {word: n for n, words in _SCALE_WORDS.items() for word in words.split()}

_HOW_MANY = re.compile(
    r"\b(?:how many|wie ?viele?|combien d(?:e |['’])|cu[aá]nt[oa]s|quant[ioae]s?|hoeveel|number of"
    r"|anzahl(?: der)?|nombre d(?:e |['’])|número de|numero d[ie]|aantal)\s*"
    r"(?:(?:more|whole|full|of|the|der|die|des|les|los|las|dei|delle|van|de|dos|das|\d+)\s+)*"
    r"((?:[^\W\d]{2,20}\s+){0,2}[^\W\d]{2,20})",
    re.IGNORECASE,
)
_IN_UNIT = re.compile(
    r"\b(?:in|en|em|as an?|als|come)\s+(?:(?:whole|full|vollen|an?|the|us|u\.s\.)\s+)*"
    r"(?:([^\W\d]+)\s+(?:of\s+|d[e']\s*|di\s+)?)?([^\W\d]+/[^\W\d]+|[%€$£°][^\W\d]?|[^\W\d]+[²³]?)",
    re.IGNORECASE,
)
_STOPS_WORDS = (
    "is are was were do does did has have had can will would be been there more left total"
    " other different in on at of for with and or the a an that which who hat haben ist sind"
    " gibt y a il reste hay tiene tienen son ha hanno ci sono zijn heeft er tem ha sao existem"
)
_STOPS = frozenset(_STOPS_WORDS.split())
_WHICH_WORDS = (
    "which what welchem welcher welche quel quelle quelles que cual quale che welk welke qual"
)
_WHICH = frozenset(_WHICH_WORDS.split())
_LINKS_WORDS = (
    "plus minus times divided multiplied from per but because since while when then hence"
    " thus therefore instead again only just each per und oder mal durch geteilt plus weil"
    " also pro von fur aus bei mit nach par pour dans sur avec donc mais por para con pero mas"
    " menos sin entre per meno piu voor met van uit keer gedeeld com sem vezes dividido mais"
    " menos million millions thousand billion"
)
_LINKS = _STOPS | frozenset(_LINKS_WORDS.split())
"""Words behind a number that are no noun which it counts."""
_DEGREES = frozenset(["degree", "degrees", "grad", "degres", "grados", "gradi", "graden", "graus"])


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question gives and wants.

    `given`: the values of its numbers; `measure`: the unit that it wants; `nouns`: what it counts;
    `scale`: what a number that is asked for in millions is to be divided by; `words`: its words;
    `commas`: whether its language writes 1.234,56; `when`: whether it asks for a date or a year;
    `place`: whether for a place in an order; `change`: whether for a difference; `rated`: whether
    for a rating, which may be written with its scale; `year`: whether for a year; `head`: the words
    of what it asks for, as in "what is the average temperature".
    """

    given: frozenset[Decimal] = frozenset()
    measure: str | None = None
    nouns: tuple[str, ...] = ()
    scale: int = 1
    words: frozenset[str] = frozenset()
    commas: bool = False
    when: bool = False
    place: bool = False
    change: bool = False
    rated: bool = False
    year: bool = False
    head: frozenset[str] = frozenset()

    def shared(self, text: str) -> int:
        """How many of its words a text has."""
        return len({w for w in words_of(text) if any(same_noun(w, x) for x in self.words)})

    def names(self, key: str) -> bool:
        """Whether a key's words are all in the question."""
        words = words_of(key)
        return bool(words) and all(any(same_noun(w, x) for x in self.words) for w in words)


NOTHING_ASKED = Asked()


def words_of(text: str) -> frozenset[str]:
    """The folded words of a text, but for the shortest."""
    return frozenset(folded_word(w) for w in re.findall(r"[^\W\d_]{3,}", text))


@lru_cache(maxsize=512)
def asked_for(question: str) -> Asked:
    """What a question gives and wants; nothing of an empty one."""
    text = question[-LONGEST:]
    if not text.strip():
        return NOTHING_ASKED
    measure, scale = _measure(text)
    nouns: tuple[str, ...] = ()
    if counted := list(_HOW_MANY.finditer(text)):
        vague = re.match(r"wie ?viel\s+[a-zäöü]", counted[-1][0], re.IGNORECASE)
        verb = vague and not counted[-1][1][0].isupper()  # wie viel kostet
        nouns = () if verb else _nouns(counted[-1][1])
        measure = measure or next((_UNIT[n] for n in nouns if n in _UNIT and len(n) > 1), None)
        scale = next((12 for n in nouns[:1] if n in DOZEN), scale)
    given = frozenset(number.value for number in numbers(text))
    return Asked(
        given,
        measure,
        nouns,
        scale,
        words_of(text) - _LINKS,
        commas=writes_commas(text),
        when=_WHEN.search(text) is not None,
        place=_PLACE.search(text) is not None,
        change=_CHANGE.search(text) is not None,
        rated=_RATED.search(text) is not None,
        year=_YEAR.search(text) is not None,
        head=_head(text),
    )


_HEAD = re.compile(
    r"\b(?:what(?:'s| is| was| are| were| will be| would be)|was (?:ist|war|sind)|wie (?:hoch|groß"
    r"|lang) (?:ist|war)|quel(?:le)?s? (?:est|était|sont)|cuál (?:es|era|fue)|qual (?:è|era|é|foi)"
    r"|wat (?:is|was)) (?:the|der|die|das|la|le|l'|el|il|lo|de|het|o|a)\s?((?:[^\W\d_]+ ?){1,4})",
    re.IGNORECASE,
)
_YEAR = re.compile(
    r"\b(?:which|what) year\b|welche[ms] jahr|quelle année|qué año|che anno|welk jaar|que ano|何年",
    re.IGNORECASE,
)


def _head(text: str) -> frozenset[str]:
    """The words of the thing asked for, up to what it belongs to."""
    match = _HEAD.search(text)
    phrase = (
        re.split(r"\s(?:of|in|for|after|from|on|at|des|der|de|du|del|di|van|do|da)\s", match[1])[0]
        if match
        else ""
    )
    return words_of(phrase)


_CHANGE = re.compile(
    r"\b(?:by how|how (?:much|many) (?:more|less|fewer|\w+er)|difference|how much (?:did|do|does"
    r"|has)"
    r"\b[^?]{0,80}\b(?:drop|fall|fell|rise|grow|increase|decrease|decline|change|save|gain|lose)"
    r"|um wie ?viel|unterschied|de combien|différence|en cuánto|diferencia|di quanto|differenza"
    r"|verschil|em quanto|diferença)",
    re.IGNORECASE,
)
_RATED = re.compile(
    r"\b(?:score|rating|rate|grade|stars?|scale|points|note|bewert\w*|punkte|noter?|puntuación"
    r"|califica\w*|punteggio|voto|beoordeel\w*|cijfer|nota|avalie)\b|点",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:when|years?|dates?|wann|jahr|quand|année|cuándo|año|quando|anno|wanneer|jaar|ano)\b|年"
    r"|いつ",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:place|rank|position|floor|century|platz|stockwerk|jahrhundert|rang|étage|siècle|puesto"
    r"|lugar|piso|siglo|posto|piano|secolo|plaats|verdieping|eeuw|colocação|andar|século)\b|位|階",
    re.IGNORECASE,
)


def _nouns(words: str) -> tuple[str, ...]:
    """The words that are counted, up to the verb."""
    found = []
    for word in words.split():
        if folded_word(word) in _STOPS:
            break
        found.append(folded_word(word))
    return tuple(found)


def _measure(text: str) -> tuple[str | None, int]:
    """The unit that a question names last, and the scale before it."""
    for match in reversed(list(_IN_UNIT.finditer(text))):
        before, word = folded_word(match[1] or ""), folded_word(match[2])
        if before in _WHICH:
            continue  # in which year: a date, no length of time
        if word in _SCALE:
            return None, _SCALE[word]
        if word in _UNIT:
            return _UNIT[word], _SCALE.get(before, 1)
        if before in _UNIT and before not in ("a", "d"):
            return _UNIT[before], 1
        if before in _SCALE:
            return None, _SCALE[before]
    if re.search(r"\b(?:percent|percentage|prozent|pourcentage|procent)\b", text, re.IGNORECASE):
        return "percent", 1
    return None, 1


_BEHIND = re.compile(
    r"\s?\\?(?:([%€$£¥]|°\s?[CF]\b)|-?([^\W\d_]+/[^\W\d_]+|[^\W\d_]+[²³23]?)"
    r"(?:\s+([^\W\d_]+))?(?:\s+([^\W\d_]+))?)"
)


def _behind(text: str, number: Number) -> list[str]:
    """The words right behind a number, up to three."""
    match = _BEHIND.match(text, number.end, number.end + 60)
    return [folded_word(g) for g in match.groups() if g] if match else []


def unit_at(text: str, number: Number) -> str | None:
    """The unit of measure that a number of a text is written with."""
    sign = re.search(r"([$€£¥])\s?[-−]?$|^([$€£¥])", text[max(0, number.start - 2) : number.start])
    if text[number.start] in "$€£¥":
        return _UNIT[text[number.start]]
    if sign:
        return _UNIT[sign[1] or sign[2]]
    words = _behind(text, number)
    if words and words[0] in _SCALE and len(words) > 1:
        words = words[1:]
    if words[:1] == ["in"] or not words:
        return None
    return _UNIT.get(words[0].replace(" ", "")) or (
        _UNIT.get(words[1]) if words[0] in ("per", "us") and len(words) > 1 else None
    )


def measured_in(text: str, number: Number, asked: Asked) -> bool | None:
    """Whether a number has what was asked for behind it: yes, no, or it has nothing (None)."""
    unit = unit_at(text, number)
    words = _behind(text, number)
    if asked.measure is not None:
        if unit is not None:
            return unit == asked.measure
        counts = bool(words) and len(words[0]) > 2 and words[0] not in _LINKS | _DEGREES
        return False if counts or asked.measure == "percent" else None
    if not asked.nouns or not words:
        return None
    if any(same_noun(word, noun) for word in words for noun in asked.nouns):
        return True
    return False if unit is not None else None


def other_measure(unit: str | None, asked: Asked) -> bool:
    """Whether a unit measures what was asked for, and is another than the one asked for."""
    return unit != asked.measure and any(
        unit in dimension and asked.measure in dimension for dimension in _DIMENSIONS
    )


def worth(text: str, number: Number, asked: Asked) -> Decimal:
    """The value of a number in what was asked for: 3.4 of "3.4 million" where millions were."""
    written = text[number.start : number.end]
    if asked.rated and (
        scale := re.fullmatch(r"(\d+(?:\.\d+)?)\s*/\s*(?:[4-9]|10|20|100)", written)
    ):
        return Decimal(scale[1])
    words = re.findall(r"[^\W\d]+", written.casefold())
    scaled = bool(words) and (words[-1] in SCALES or words[-1] in DOZEN or words[-1] in "kmb")
    return number.value / asked.scale if asked.scale > 1 and scaled else number.value
