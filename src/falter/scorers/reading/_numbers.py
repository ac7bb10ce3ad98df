"""The number that a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from falter.scorers.reading._cleaning import answer_part, boxed, is_cut, plain
from falter.scorers.reading._closed import sentences
from falter.scorers.reading._numerals import Number, numbers
from falter.scorers.reading._refusals import refusal_in
from falter.scorers.reading._words import CONCLUSION, CORRECTION, FINAL, NEGATION, OPEN
from falter.scorers.reading._wrapped import elements, folded_key, leaves, objects

__all__ = ["read_number"]

_UNDECIDED = object()
_ASIDE = re.compile(r"reason|explan|comment|confiden|question|draft|first|guess|step|thought|note|unit|error|erreur|calc|work|index|id$|date")
_CHIEF = re.compile(r"answer|result|total|sum$|value|réponse|respuesta|antwort|risposta|antwoord|resposta|rponse|reponse|ergebnis|résultat|答")


def read_number(reply: str) -> Decimal | None:
    """The one number that a reply gives as its answer, worked out; None for none or several."""
    text = answer_part(reply)
    if text is None:
        return None
    for look in (_in_box, _in_object, _in_element):
        found = look(text)
        if found is not _UNDECIDED:
            return found  # type: ignore[no-any-return]
    return _settled(_unformatted(text))


def _in_box(text: str) -> Any:
    boxes = boxed(text)
    return _only(_unformatted(boxes[-1])) if boxes else _UNDECIDED


_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}|\\[dt]?frac(\d)(\d)")


def _unformatted(text: str) -> str:
    """The text with LaTeX's numbers as plain ones, struck numbers gone, and no lists' numbers."""
    text = re.sub(r"~~[^~\n]{1,200}~~", " ", text)
    text = text.replace("{,}", ",").replace("\\%", "%").replace("\\$", "$$ ")
    text = re.sub(r"\\(?:mathrm|text)\{\s*e\s*\}\s*\{?(\d+)\}?", r"e\1", text)
    text = _prose(text)
    text = plain(text)
    text = _FRACTION.sub(lambda m: f"{m[1] or m[3]}/{m[2] or m[4]}", text)
    text = re.sub(r"\^\s*\{?\\?circ\}?|°", " degrees", text)
    text = re.sub(r"\$(?=\s|$)|(?<!\d)\$(?![\d.])|\$\$", "", text)
    text = re.sub(r"^([ \t]*)\(?\d{1,2}[.)](?=\s+\D)", r"\1-", text, flags=re.MULTILINE)
    return re.sub(r"\\(?:approx|implies|Rightarrow|to)\b", lambda m: " = " if "approx" in m[0] else " → ", text)


def _prose(text: str) -> str:
    """The text without quoted lines and blocks of code, unless there is nothing else."""
    left = re.sub(r"```.*?```|^[ \t]*>[^\n]*$", " ", text, flags=re.DOTALL | re.MULTILINE)
    left = re.sub(r"(?<![\d.])\d+(?:[.,]\d+)?\s*~~", "~~", left)
    return left if re.search(r"\d", left) else text


def _only(text: str) -> Decimal | None:
    """The number of a short text: the only one, or the one behind its last equals sign."""
    text = text.strip().strip("$ .*")
    found = numbers(text)
    if "=" in text and found:
        last = [n for n in found if n.start > text.rfind("=")]
        return last[0].value if len(last) == 1 else None
    if len(found) != 1 or re.search(r"[\\^_]|[a-z]\s*[-+*/]|[-+*/]\s*[a-z]\b", text[found[0].end :]):
        return None
    before = text[: found[0].start]
    return None if _LIMIT.search(before) or re.search(r"[a-z]\w*\s*[-+*/]\s*$", before) else found[0].value


def _number_in(value: Any) -> Decimal | None:
    if isinstance(value, bool) or value is None or isinstance(value, list):
        return None
    return _only(str(value))


def _in_object(text: str) -> Any:
    found = objects(text)
    if not found:
        return _UNDECIDED
    last = found[-1]
    named = {}
    for path, value in leaves(last.value):
        number = _number_in(value)
        key = "/".join(map(folded_key, path))
        if number is not None and not _ASIDE.search(key):
            named[key] = number
    mostly = last.end - last.start > 0.6 * len(text.strip("`json \n"))
    for keys in ([k for k in named if "final" in k], [k for k in named if _CHIEF.search(k)], list(named)):
        values = {named[k] for k in keys}
        if values:
            return values.pop() if len(values) == 1 else (None if mostly else _UNDECIDED)
    return None if mostly else _UNDECIDED


def _in_element(text: str) -> Any:
    found = [(folded_key(k), v) for k, v in elements(text)]
    if not found:
        return _UNDECIDED
    chief = [v for k, v in found if _CHIEF.search(k)] or [
        v for k, v in found if not _ASIDE.search(k)
    ]
    values = {_only(v) for v in chief}
    return values.pop() if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A number in a sentence, and how firmly it is given there."""

    number: Number
    sentence: int
    level: int  # 4 marked, 3 concluded, 2 the sentence's main number, 1 there, 0 weighed, -1 denied


def _re(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


_LIMIT = _re(
    r"(?:\b(?:at least|at most|more than|less than|fewer than|over|under|above|below|up to|no more than|no fewer than|minimum of|maximum of|mindestens|höchstens|mehr als|weniger als"
    r"|au moins|au plus|plus de|moins de|al menos|más de|menos de|almeno|più di|meno di|minstens|meer dan|pelo menos|mais de)|[<>≤≥])\s*(?:[$€£]|about)?\s*$"
)
_BESIDE = _re(
    r"(?:\b(?:steps?|note|page|chapter|section|part|item|question|rule|version|figure|table|line|day|row|no\.|number|nr\.?|option|room|paragraph|team|player|box|room|schritt|seite|étape|page|paso|passo|stap|passo|article|artikel|option|week|phase|exercise|level|grade|type)\s*#?|#)$"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b|[:/]\d|(?:\.|er|ère|ème|º|ª|e)\s(?=(?:januar|februar|märz|april|mai|juni|juli|august))|%?\s*(?:o'clock|uhr\b|a\.m\.|p\.m\.|am\b|pm\b)|\s*h\b(?:\s*\()")
_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|s)?|märz|apr(?:il)?|may|mai|june?|juni|juin|july?|juli|juillet|aug(?:ust)?|août|sept?(?:ember)?|oct(?:ober)?|oktober|octobre|nov(?:ember|embre)?|dec(?:ember)?|dezember|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b"
)
_DATED = _re(rf"\s+(?:de )?{_MONTH}")
_CHECKED = _re(r"\b(?:check|double-?check|verify|verification|probe|vérif\w*|proof|compare|for comparison|remaining|would only|last (?:week|year|month)|previous|earlier)\b")
_MARK = _re(r"^[\W_]*(?:", FINAL, r")")
_SUM = _re(r"^[\W_]*(?:in total|total|altogether|overall|final|sum|grand total|insgesamt|gesamt|zusammen|au total|en total|in totale|totaal|no total|合計)\b[^.\n]{0,40}?[:=]")
_CUE = _re(
    CONCLUSION,
    r"|\b(?:in total|altogether|total (?:of|is)|so there|so the|that is,? in|comes? to|amounts? to|adds? up to|equals?|which gives|gives us|we get|you get|leaves|that leaves|the (?:answer|result|total|sum|number) (?:is|of)|the rest is"
    r"|insgesamt|ergibt|macht|beträgt|zusammen|au total|cela fait|en total|suman?|in totale|in tutto|fanno|totaal|samen|no total|ao todo|soit|o sea|quindi|right, then|then)\b|合計|全部で",
)
_VERB = _re(
    r"(?:=|\b(?:is|are|was|were|be|has|have|had|need|needs|costs?|weighs?|takes?|leaves?|makes?|equals?|get|gives?|totals?|holds?|contains?|pays?|left with|ist|sind|hat|kostet|kosten|beträgt|est|sont|es|son|è|sono|is|zijn|kost|é|são|hay|il y en a|be about)\b)"
)
_EITHER = re.compile(
    r"\s*(?:[A-Za-z%°€$²³]+\.?\s*)?(?:-|–|—|to|or|oder|bis|ou|o|of|à|a|hasta|fino a|tot|até|か|、あるいは|または|~|〜|～)\s*(?:perhaps |maybe |even |possibly |vielleicht |[$€£])?$|\s*(?:or|and|oder|und|,)\s+[a-z]\s*=\s*$",
    re.IGNORECASE,
)
_BETWEEN = _re(r"\b(?:between|zwischen|entre|tra|fra|tussen|somewhere between|from)\s*[$€£]?\s*$")
_MAYBE = _re(r"\b(?:if|unless|otherwise|either|depending|could be|might be|maybe|perhaps|vielleicht|falls|wenn|peut-être|talvez|quizás?|tal vez|forse|misschien)\b")
_TRUST = _re(r"\bif (?:the|you|i|my|that)\b[^,.]{0,40}(?:trusted|insist|right|ask|mistaken|must|had to)|\b(?:even|as) if\b")
_CHANGED = _re(CORRECTION, r"|\b(?:wrong|recount|forgot|forgotten|missed|only|double|twice|mistake)\b")
_WRONG = _re(r"\b(?:was wrong|i was mistaken|i miscounted|my mistake|correction|was an error|war falsch|était faux|era incorrecto|era sbagliato|was fout|estava errad[ao])\b")
_OPENED = _re(OPEN, r"|which of the (?:two|three)|can't tell|isn't stated|not stated|doesn't say which")
_NO = _re(NEGATION)


def _settled(text: str) -> Decimal | None:
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
        made = [s for s in made if s.level == 4 or (s.level == 3 and s.sentence == 0 and not equations)]
    if refused is not None:
        made = [s for s in made if s.level >= 3]
        made = [s for s in made if refused is None or s.level == 4 or s.number.start > refused]
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
    if top == 3 and not _ends(chosen, made):
        return None
    if _left_open(text, chosen, seen):
        return None
    return chosen.number.value


_ADJACENT = _re(
    r"\b(?:is|are|was|were|has|have|had|costs?|weighs?|takes?|pay|holds?|contains?|counts?|there are|lasts?|home to|in|hat|kostet|beträgt|liegt bei|est|compte|tiene|hay|ha|costa|telt|heeft|tem|custa|há)"
    r"\s+(?:about|roughly|around|exactly|some|only|just|nearly|almost|etwa|rund|genau|environ|unos|unas|circa|ongeveer|cerca de)?\s*[$€£¥]?$"
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
        and not re.match(r"[^.,;(!?]*\d|[^.,;(!?]*,\s*(?!and\b|which|who|but|und|wobei|et|dont|y|e|en|plus|not|so)", text[seen.number.end :])
    )


def _ends(chosen: _Seen, made: Sequence[_Seen]) -> bool:
    """Whether nothing but the same number is given after a conclusion."""
    later = [s for s in made if s.sentence > chosen.sentence and s.level >= 2]
    return all(s.number.value == chosen.number.value for s in later) or chosen.sentence == 0


_LINE = re.compile(r"^[\s*_•-]*[^\W\d][^:：=\n\d]{0,40}[:：][\s*_$€£¥]*[-−]?\d[^\n=]{0,40}$", re.MULTILINE)


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
    short = re.sub(r"^(?:about|approximately|roughly|around|some|ca\.?|etwa|rund|environ|unos|unas|circa|ongeveer|cerca de|約|approx\.?|[~≈])\s*", "", text.strip(" *_.!\n\"'"), flags=re.IGNORECASE)
    found = numbers(short)
    if len(found) == 1 and len(short.split()) <= 4:
        head, tail = short[: found[0].start].strip(" $€£¥₹=:"), short[found[0].end :]
        if not head and re.fullmatch(_UNIT, tail) and not _ORDINAL.match(tail):
            return found[0].value
    if len(found) == 2 and re.fullmatch(r"[\s\w$€£%°]{1,20}\(\s*", short[found[0].end : found[1].start]):
        if short.endswith(")") and found[0].value != found[1].value:
            return None
    if len(found) == 2 and len(short.split()) <= 6:
        between = short[found[0].end : found[1].start]
        if _EITHER.fullmatch(between):
            return None
    return _UNDECIDED


def _dangling(text: str, seen: _Seen) -> bool:
    """Whether a number ends its reply in the middle of a sentence, and so might go on."""
    tail = text[seen.number.end :].strip()
    return not tail and seen.level < 4 and "\n" not in text and is_cut(text)


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
        or re.search(rf"{_MONTH}\s*$", before[-14:], re.IGNORECASE) and number.value < 32
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
    if level < 4 and _MAYBE.search(sentence) and not _TRUST.search(sentence):
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


_PART = _re(r"\s*(?:h|hours?|hrs?|minutes?|min|stunden?|heures?|horas?|ore|uur|feet|ft|pounds?|years?)\s*(?:,|and|und|et|y|e|en)?\s*\d+\s*(?:m|min|minutes?|minuten?|minutos?|minuti|seconds?|sec|s|inches|in|ounces|months?)\b")
_SECOND_PART = _re(r"\d\s*(?:h|hours?|hrs?|minutes?|min|stunden?|heures?|horas?|ore|uur|feet|ft|pounds?|years?)\s*(?:,|and|und|et|y|e|en)?\s*$")


def _term(text: str, number: Number) -> bool:
    """Whether a number is a term of a formula, or one side of a conversion."""
    after, before = text[number.end : number.end + 12], text[max(0, number.start - 16) : number.start]
    return bool(
        re.match(r"\s*(?:[-+*/·×^]\s*(?:[A-Za-z(\\]|$)|[·×*/]\s*\d)", after)
        or re.search(r"(?<!\w)1 \S{1,8} = $|[A-Za-z]\s*[-+*/·×]\s*$", before)
        or re.match(r"\s*[^\W\d]*\s+(?:more|less|fewer|\w+er|mehr|weniger|plus|más|più|meer|mais) (?:than|als|que|di|dan|do que)\b", text[number.end : number.end + 40])
        or re.search(r"(?:^|[.!?\n]\s*)(?:In|After|For|With|Of|From|At|By|On|Each of|Out of|Among|Per|Every|Von|Nach|In den|Sur|De|Après|De los|Dopo|Su|Van|Dos)\s+(?:the |these |all |those |los |las |les |den |de |die |i |as |os )?$", text[: number.start][-24:])
        or re.search(r"\d\s+(?:\w+\s+)?(?:out of|of|von|sur|de|su|van)\s+(?:the |all |a total of |los |las |les |den |de |i |as |os )?$", text[: number.start][-30:])
        or _PART.match(text, number.end)
        or _SECOND_PART.search(text[: number.start][-30:])
        or re.match(r"\s+(?:was|is|were|wäre|war) (?:wrong|incorrect|falsch|the wrong)", text[number.end : number.end + 30])
    )


def _denied(text: str, start: int, number: Number) -> bool:
    before = text[max(start, number.start - 25) : number.start]
    hits = list(_NO.finditer(before))
    return bool(hits) and not re.search(r"[,;:.]|\bbut\b|\bonly\b|\bmore\b", before[hits[-1].end() :])


def _chief(
    sentence: str, line: str, start: int, inside: Sequence[Number], text: str
) -> tuple[Number, int]:
    """The main number of a sentence, and how firmly the sentence gives it."""
    marked = _MARK.search(line + sentence) or _SUM.search(line + sentence)
    cues = [c for c in _CUE.finditer(sentence) if not _RESTATED.match(c[0])]
    equals = sentence.rfind("=")
    if equals >= 0 and (behind := [x for x in inside if x.start - start > equals]):
        return behind[0], 4 if marked else 3
    if marked:
        at = start + marked.end() - len(line)
        later = [x for x in inside if x.start >= at - 1] or list(inside)
        return _after_verb(text, at, later), 4
    summed = [x for x in inside if _SUMMED.match(sentence, x.end - start)]
    if len(summed) == 1:
        return summed[0], 3
    if _stands_alone(sentence, inside, start):
        return inside[-1] if _COLON.search(sentence[: inside[-1].start - start]) else inside[0], 3
    if cues:
        strong = [c for c in cues if _STRONG.match(c[0])]
        for cue in (*reversed(strong), *cues):
            later = [x for x in inside if x.start - start >= cue.end()]
            if later:
                return _after_verb(text, start + cue.end(), later), 3
    if _CORRECTED.match(sentence) and len({x.value for x in inside}) == 1:
        return inside[0], 3
    said = [x for x in inside if _ADJACENT.search(sentence[: x.start - start])]
    if len(inside) > 1 and len(said) == 1:
        return said[0], 2
    return inside[0], 2 if len(inside) == 1 or _main(sentence, inside[0].start - start) else 1


_STRONG = _re(CONCLUSION)
_CORRECTED = _re(rf"\W*(?:{CORRECTION})")
_SUMMED = _re(r"\s+(?:[^\W\d]+\s+){0,3}(?:in total|altogether|in all|insgesamt|zusammen|au total|en total|in totale|in totaal|no total|ao todo)\b")
_RESTATED = _re(r"in other words|that is|i\.e\.|namely|nämlich|à savoir|c'est-à-dire|es decir|o sea|cioè|ossia|namelijk|oftewel|ou seja|isto é")
_COLON = re.compile(r"(?:\S+\s+){5,}\S+:\s*[$€£]?$")


def _stands_alone(sentence: str, inside: Sequence[Number], start: int) -> bool:
    """Whether a sentence is nothing but its number, or ends with one behind a colon."""
    first, last = inside[0], inside[-1]
    if _COLON.search(sentence[: last.start - start]):
        first = last
    before, after = sentence[: first.start - start], sentence[first.end - start :]
    if not before.strip(" *_(\"'-•=→$€£≈~") and re.fullmatch(rf"{_UNIT}\W*", after.partition("(")[0]):
        return True
    tail = sentence[last.end - start :]
    return last is first and bool(_COLON.search(before)) and bool(re.fullmatch(rf"{_UNIT}\W*", tail))


def _main(sentence: str, at: int) -> bool:
    """Whether a number stands in the main clause, before any comma."""
    return re.search(r"[,;:]\s", sentence[:at]) is None


def _after_verb(text: str, at: int, later: Sequence[Number]) -> Number:
    verb = _VERB.search(text, at, later[-1].start)
    behind = [x for x in later if verb and x.start >= verb.end()]
    if later[0].start - at < 4:
        return later[0]
    return (behind or list(later))[0]


def _left_open(text: str, chosen: _Seen, seen: Sequence[_Seen]) -> bool:
    """Whether the number is one end of a range, a limit, or one of two that are left open."""
    number = chosen.number
    if _LIMIT.search(text[: number.start]) or _BETWEEN.search(text[: number.start]):
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
    return any(_CHANGED.search(text[number.end : s.number.start]) for s in after) and chosen.level < 3
