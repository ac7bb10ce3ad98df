"""Which number a text settles on: each has a level, and the highest counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from falter.scorers.reading._cleaning import is_cut
from falter.scorers.reading._clauses import sentences
from falter.scorers.reading._numerals import Number, numbers
from falter.scorers.reading._refusals import asks_back, refusal_in
from falter.scorers.reading._words import CONCLUSION, CORRECTION, FINAL, NEGATION, OPEN

__all__ = ["LIMIT", "settled_number"]

_UNDECIDED = object()


@dataclass(frozen=True, slots=True)
class _Seen:
    """A number in a sentence, and how firmly it is given there.

    Levels: 5 marked as the answer, 4 concluded, 3 the result of an equation, 2 the sentence's main
    number, 1 merely there, 0 weighed, -1 denied.
    """

    number: Number
    sentence: int
    level: int


def _re(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


LIMIT = _re(
    r"(?:\b(?:at least|at most|more than|less than|fewer than|over|under|above|below|up to|no "
    r"more than|no fewer than|minimum of|maximum of|mindestens|höchstens|mehr als|weniger als"
    r"|au moins|au plus|plus de|moins de|al menos|más de|menos de|almeno|più di|meno di"
    r"|minstens|meer dan|pelo menos|mais de)|[<>≤≥])\s*(?:[$€£]|about)?\s*$"
)
_BESIDE = _re(
    r"(?:\b(?:steps?|note|page|chapter|section|part|item|question|rule|version|figure|table"
    r"|line|day|row|no\.|number|nr\.?|option|room|paragraph|team|player|box|room|schritt|seite"
    r"|étape|page|paso|passo|stap|passo|article|artikel|option|week|phase|exercise|level|grade"
    r"|type)\s*#?|#)$"
)
_ORDINAL = re.compile(
    r"(?:st|nd|rd|th)\b|[:/]\d|(?:\.|er|ère|ème|º|ª|e)\s(?=(?:januar|februar|märz|april|mai"
    r"|juni|juli|august))|%?\s*(?:o'clock|uhr\b|a\.m\.|p\.m\.|am\b|pm\b)|\s*h\b(?:\s*\()"
)
_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|s)?|märz|apr(?:il)?|may|mai|june?"
    r"|juni|juin|july?|juli|juillet|aug(?:ust)?|août|sept?(?:ember)?|oct(?:ober)?|oktober"
    r"|octobre|nov(?:ember|embre)?|dec(?:ember)?|dezember|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b"
)
_DATED = _re(rf"\s+(?:de )?{_MONTH}")
_CHECKED = _re(
    r"\b(?:check|double-?check|verify|verification|probe|vérif\w*|proof|compare|for comparison"
    r"|remaining|would only|last (?:week|year|month)|previous|earlier)\b"
)
_MARK = _re(r"^[\W_]*(?:", FINAL, r")")
_SUM = _re(
    r"^[\W_]*(?:in total|total|altogether|overall|final|sum|grand total|insgesamt|gesamt"
    r"|zusammen|au total|en total|in totale|totaal|no total|合計)\b[^.\n]{0,40}?[:=]"
)
_CUE = _re(
    CONCLUSION,
    r"|\b(?:in total|altogether|total (?:of|is)|so there|so the|that is,? in|comes? to|amounts? "
    r"to|adds? up to|equals?|which gives|gives us|we get|you get|leaves|that leaves|the "
    r"(?:answer|result|total|sum|number) (?:is|of)|the rest is"
    r"|insgesamt|ergibt|macht|beträgt|zusammen|au total|cela fait|en total|suman?|in totale|in "
    r"tutto|fanno|totaal|samen|no total|ao todo|soit|o sea|quindi|right, then|then)\b|合計|全部で",
)
_VERB = _re(
    r"(?:=|\b(?:is|are|was|were|be|has|have|had|need|needs|costs?|weighs?|takes?|leaves?|makes?"
    r"|equals?|get|gives?|totals?|holds?|contains?|pays?|left with|ist|sind|hat|kostet|kosten"
    r"|beträgt|est|sont|es|son|è|sono|is|zijn|kost|é|são|hay|il y en a|be about)\b)"
)
_EITHER = re.compile(
    r"\s*(?:[A-Za-z%°€$²³]+\.?\s*)?(?:-|–|—|to|or|oder|bis|ou|o|of|à|a|hasta|fino a|tot|até|か"
    r"|、あるいは|または|~|〜|～)\s*(?:perhaps |maybe |even |possibly |vielleicht |[$€£])?$"
    r"|\s*(?:or|and|oder|und|,)\s+[a-z]\s*=\s*$",
    re.IGNORECASE,
)
_BETWEEN = _re(r"\b(?:between|zwischen|entre|tra|fra|tussen|somewhere between|from)\s*[$€£]?\s*$")
_MAYBE = _re(
    r"\b(?:if|unless|otherwise|either|depending|could be|might be|maybe|perhaps|vielleicht"
    r"|falls|wenn|peut-être|talvez|quizás?|tal vez|forse|misschien)\b"
)
_TRUST = _re(
    r"\bif (?:the|you|i|my|that)\b[^,.]{0,40}(?:trusted|insist|right|ask|mistaken|must|had to)"
    r"|\b(?:even|as) if\b"
)
_CHANGED = _re(
    CORRECTION, r"|\b(?:wrong|recount|forgot|forgotten|missed|only|double|twice|mistake)\b"
)
_WRONG = _re(
    r"\b(?:was wrong|i was mistaken|i miscounted|my mistake|correction|was an error|war falsch"
    r"|était faux|era incorrecto|era sbagliato|was fout|estava errad[ao])\b"
)
_OPENED = _re(
    OPEN, r"|which of the (?:two|three)|can't tell|isn't stated|not stated|doesn't say which"
)
_NO = _re(NEGATION)


def settled_number(text: str) -> Decimal | None:
    """The number that a text in prose settles on."""
    alone = _alone(text)
    if alone is not _UNDECIDED:
        return alone  # type: ignore[no-any-return]
    seen = _levels(text)
    if _several_lines(text):
        return None
    cut, refused = is_cut(text), refusal_in(text)
    made = [s for s in seen if s.level > 0 and not _dangling(text, s)]
    if cut:
        equations = text.count("=") > 0
        made = [
            s for s in made if s.level == 5 or (s.level == 4 and s.sentence == 0 and not equations)
        ]
    if refused is not None or asks_back(text):
        made = [s for s in made if s.level >= 3]
        made = [s for s in made if refused is None or s.level == 5 or s.number.start > refused]
    if not made:
        return None
    top = max(s.level for s in made)
    best = [s for s in made if s.level == top]
    values = {s.number.value for s in best}
    chosen = best[-1]
    if top < 3 and len(values) > 1:
        chosen = _changed(text, best) or best[0]
        if chosen is best[0] and not _opening(text, best[0]):
            return None
    if top in (3, 4) and not _ends(chosen, made):
        return None
    if _left_open(text, chosen, seen):
        return None
    return chosen.number.value


_ADJACENT = _re(
    r"\b(?:is|are|was|were|has|have|had|costs?|weighs?|takes?|pay|holds?|contains?|counts?"
    r"|there are|lasts?|home to|in|hat|kostet|beträgt|liegt bei|est|compte|tiene|hay|ha|costa"
    r"|telt|heeft|tem|custa|há)"
    r"\s+(?:about|roughly|around|exactly|some|only|just|nearly|almost|etwa|rund|genau|environ"
    r"|unos|unas|circa|ongeveer|cerca de)?\s*[$€£¥]?$"
)
_STEPS = _re(r"^[\W_]*(?:step|first|schritt|étape|paso|passo|stap)\b|=|\n[\W_]*\d+[.)]")


def _opening(text: str, seen: _Seen) -> bool:
    """Whether a reply opens with its answer: a verb right before the number, no steps."""
    before = text[: seen.number.start]
    return (
        seen.level == 2
        and seen.sentence == 0
        and "\n" not in text.strip()
        and _STEPS.search(text) is None
        and _ADJACENT.search(before) is not None
        and not re.search(r"[,;:]\s", before)
        and not re.search(r"\bhad\W*$", before)
        and not re.match(
            r"[^.,;(!?]*\d|[^.,;(!?]*,\s*(?!and\b|which|who|but|und|wobei|et|dont|y|e|en|plus"
            r"|not|so)",
            text[seen.number.end :],
        )
    )


def _ends(chosen: _Seen, made: Sequence[_Seen]) -> bool:
    """Whether nothing but the same number is given after a conclusion."""
    later = [s for s in made if s.sentence > chosen.sentence and s.level >= 2]
    return all(s.number.value == chosen.number.value for s in later) or chosen.sentence == 0


_LINE = re.compile(
    r"^[\s*_•-]*[^\W\d][^:：=\n\d]{0,40}[:：][\s*_$€£¥]*[-−]?\d[^\n=]{0,40}$", re.MULTILINE
)


def _several_lines(text: str) -> bool:
    """Whether a reply is nothing but lines of keys and numbers, none of them marked."""
    lines = [line for line in text.split("\n") if line.strip()]
    keyed = [line for line in lines if _LINE.match(line)]
    marked = any(_MARK.search(line) or _SUM.search(line) for line in lines)
    values = {n.value for line in keyed for n in numbers(line)[:1]}
    return len(values) > 1 and len(keyed) == len(lines) and not marked


def _changed(text: str, best: Sequence[_Seen]) -> _Seen | None:
    """The number that replaces an earlier one."""
    between = text[best[0].number.end : best[-1].number.start]
    wrong = _WRONG.search(text, 0, best[-1].number.start)
    return best[-1] if wrong or _CHANGED.search(between) else None


_UNIT = r"[\s$€£¥₹%°]*(?:[^\W\d]{1,20}\.?(?:/[^\W\d]{1,6})?[²³]?)?(?:\s+[^\W\d]{1,15}){0,2}"


def _alone(text: str) -> Any:
    """A reply that is a number with its unit, or two that leave it open."""
    short = re.sub(
        r"^(?:about|approximately|roughly|around|some|ca\.?|etwa|rund|environ|unos|unas|circa"
        r"|ongeveer|cerca de|約|approx\.?|[~≈])\s*",
        "",
        text.strip(" *_.!\n\"'"),
        flags=re.IGNORECASE,
    )
    found = numbers(short)
    if len(found) == 1 and len(short.split()) <= 4:
        head, tail = short[: found[0].start].strip(" $€£¥₹=:"), short[found[0].end :]
        if not head and re.fullmatch(_UNIT, tail) and not _ORDINAL.match(tail):
            return found[0].value
    if (
        len(found) == 2
        and re.fullmatch(r"[\s\w$€£%°]{1,20}\(\s*", short[found[0].end : found[1].start])
        and short.endswith(")")
        and found[0].value != found[1].value
    ):
        return None
    if len(found) == 2 and len(short.split()) <= 6:
        between = short[found[0].end : found[1].start]
        if _EITHER.fullmatch(between):
            return None
    return _UNDECIDED


def _dangling(text: str, seen: _Seen) -> bool:
    """Whether a number ends its reply in the middle of a sentence, and so might go on."""
    tail = text[seen.number.end :].strip()
    return not tail and seen.level < 5 and "\n" not in text and is_cut(text)


def _levels(text: str) -> list[_Seen]:
    """The numbers of a text, each with how firmly it is given."""
    found = numbers(text)
    seen: list[_Seen] = []
    for n, (start, end) in enumerate(sentences(text)):
        inside = [x for x in found if start <= x.start < end and not _beside(text, x)]
        seen += _in_sentence(text, n, start, end, inside)
    return seen


def _beside(text: str, number: Number) -> bool:
    """Whether a number counts steps, pages, days or hours of the clock."""
    before, after = text[: number.start], text[number.end :]
    return bool(
        _BESIDE.search(before[-20:].rstrip())
        or _ORDINAL.match(after)
        or _DATED.match(after)
        or (re.search(rf"{_MONTH}\s*$", before[-14:], re.IGNORECASE) and number.value < 32)
        or re.search(r"(?:\d[:/]|[A-Za-z]-|[A-Za-z_]|√\(?|\^)\Z", before[-3:])
    )


def _in_sentence(text: str, n: int, start: int, end: int, inside: Sequence[Number]) -> list[_Seen]:
    if not inside:
        return []
    sentence = text[start:end]
    line = text[text.rfind("\n", 0, start) + 1 : start]
    chief, level = _chief(sentence, line, start, inside, text)
    if sentence.rstrip().endswith(("?", "？")) or (level < 3 and _CHECKED.search(sentence)):
        level = min(level, 0)
    if level < 5 and _MAYBE.search(sentence) and not _TRUST.search(sentence):
        level = 0
    found = []
    for number in inside:
        own = level if number is chief else min(level, 1 if level < 3 else 0)
        if _term(text, number):
            own = min(own, 0)
        if _denied(text, start, number):
            own = -1
        found.append(_Seen(number, n, own))
    return found


_PART = _re(
    r"\s*(?:h|hours?|hrs?|minutes?|min|stunden?|heures?|horas?|ore|uur|feet|ft|pounds?"
    r"|years?)\s*(?:,|and|und|et|y|e|en)?\s*\d+\s*(?:m|min|minutes?|minuten?|minutos?|minuti"
    r"|seconds?|sec|s|inches|in|ounces|months?)\b"
)
_SECOND_PART = _re(
    r"\d\s*(?:h|hours?|hrs?|minutes?|min|stunden?|heures?|horas?|ore|uur|feet|ft|pounds?"
    r"|years?)\s*(?:,|and|und|et|y|e|en)?\s*$"
)


def _term(text: str, number: Number) -> bool:
    """Whether a number is a term of a formula, or one side of a conversion."""
    after, before = (
        text[number.end : number.end + 12],
        text[max(0, number.start - 16) : number.start],
    )
    return bool(
        re.match(r"\s*(?:[-+*/·×^]\s*(?:[A-Za-z(\\]|$)|[·×*/]\s*\d)", after)
        or re.search(r"(?<!\w)1 \S{1,8} = $|[A-Za-z]\s*[-+*/·×]\s*$", before)
        or re.match(
            r"\s*[^\W\d]*\s+(?:more|less|fewer|\w+er|mehr|weniger|plus|más|più|meer|mais) "
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
            r"\d\s+(?:\w+\s+)?(?:out of|of|von|sur|de|su|van)\s+(?:the |all |a total of |los "
            r"|las |les |den |de |i |as |os )?$",
            text[: number.start][-30:],
        )
        or _PART.match(text, number.end)
        or _SECOND_PART.search(text[: number.start][-30:])
        or re.match(
            r"\s+(?:was|is|were|wäre|war) (?:wrong|incorrect|falsch|the wrong)",
            text[number.end : number.end + 30],
        )
    )


def _denied(text: str, start: int, number: Number) -> bool:
    before = text[max(start, number.start - 25) : number.start]
    hits = list(_NO.finditer(before))
    return bool(hits) and not re.search(
        r"[,;:.]|\bbut\b|\bonly\b|\bmore\b", before[hits[-1].end() :]
    )


def _chief(
    sentence: str, line: str, start: int, inside: Sequence[Number], text: str
) -> tuple[Number, int]:
    """The main number of a sentence, and how firmly the sentence gives it."""
    marked = _MARK.search(line + sentence) or _SUM.search(line + sentence)
    cues = [c for c in _CUE.finditer(sentence) if not _RESTATED.match(c[0])]
    equals = sentence.rfind("=")
    if equals >= 0 and (behind := [x for x in inside if x.start - start > equals]):
        concluded = any(_STRONG.match(c[0]) for c in cues)
        return behind[0], 5 if marked else 4 if concluded else 3
    if marked:
        at = start + marked.end() - len(line)
        later = [x for x in inside if x.start >= at - 1] or list(inside)
        return _after_verb(text, at, later), 5
    summed = [x for x in inside if _SUMMED.match(sentence, x.end - start)]
    if len(summed) == 1:
        return summed[0], 4
    if _stands_alone(sentence, inside, start):
        return inside[-1] if _COLON.search(sentence[: inside[-1].start - start]) else inside[0], 4
    if cues:
        strong = [c for c in cues if _STRONG.match(c[0])]
        for cue in (*reversed(strong), *cues):
            later = [x for x in inside if x.start - start >= cue.end()]
            if later:
                return _after_verb(text, start + cue.end(), later), 4
    if _CORRECTED.match(sentence) and len({x.value for x in inside}) == 1:
        return inside[0], 4
    said = [x for x in inside if _ADJACENT.search(sentence[: x.start - start])]
    if len(inside) > 1 and len(said) == 1:
        return said[0], 2
    single = len({x.value for x in inside}) == 1
    return inside[0], 2 if single or _opens_with(sentence, inside, start) else 1


_STRONG = _re(CONCLUSION)
_CORRECTED = _re(rf"\W*(?:{CORRECTION})")
_SUMMED = _re(
    r"\s+(?:[^\W\d]+\s+){0,3}(?:in total|altogether|in all|insgesamt|zusammen|au total|en total"
    r"|in totale|in totaal|no total|ao todo)\b"
)
_RESTATED = _re(
    r"in other words|that is|i\.e\.|namely|nämlich|à savoir|c'est-à-dire|es decir|o sea|cioè"
    r"|ossia|namelijk|oftewel|ou seja|isto é"
)
_COLON = re.compile(r"(?:\S+\s+){5,}\S+:\s*[$€£]?$")


def _stands_alone(sentence: str, inside: Sequence[Number], start: int) -> bool:
    """Whether a sentence is nothing but its number, or ends with one behind a colon."""
    first, last = inside[0], inside[-1]
    if _COLON.search(sentence[: last.start - start]):
        first = last
    before, after = sentence[: first.start - start], sentence[first.end - start :]
    if not before.strip(" *_(\"'-•=→$€£≈~") and re.fullmatch(
        rf"{_UNIT}\W*", after.partition("(")[0]
    ):
        return True
    tail = sentence[last.end - start :]
    return (
        last is first and bool(_COLON.search(before)) and bool(re.fullmatch(rf"{_UNIT}\W*", tail))
    )


def _opens_with(sentence: str, inside: Sequence[Number], start: int) -> bool:
    """Whether a sentence gives its first number right after a verb, and others in clauses after."""
    before, between = sentence[: inside[0].start - start], sentence[inside[0].end - start :]
    return bool(
        _ADJACENT.search(before)
        and not re.search(r"[,;:]\s|\bhad\W*$", before)
        and re.match(
            r"[^\d]*?(?:,\s*(?:and|which|who|but|und|wobei|et|dont|y|e|en|plus|not)\b|\()", between
        )
    )


def _after_verb(text: str, at: int, later: Sequence[Number]) -> Number:
    verb = _VERB.search(text, at, later[-1].start)
    behind = [x for x in later if verb and x.start >= verb.end()]
    if later[0].start - at < 4:
        return later[0]
    return (behind or list(later))[0]


def _left_open(text: str, chosen: _Seen, seen: Sequence[_Seen]) -> bool:
    """Whether the number is one end of a range, a limit, or one of two that are left open."""
    number = chosen.number
    if LIMIT.search(text[: number.start]) or _BETWEEN.search(text[: number.start]):
        return True
    for other in seen:
        if other.number is number or other.number.value == number.value:
            continue
        first, second = sorted((other.number, number), key=lambda x: x.start)
        if _EITHER.fullmatch(text[first.end : second.start]):
            return True
    opened = [m.start() for m in _OPENED.finditer(text)]
    if opened and opened[-1] > number.start:
        return True
    after = [s for s in seen if s.number.start > number.end and s.level == 0]
    return (
        any(_CHANGED.search(text[number.end : s.number.start]) for s in after) and chosen.level < 3
    )
