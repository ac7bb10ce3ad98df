"""The numbers of a text, each with how firmly its sentence gives it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._asked import NOTHING_ASKED, Asked, words_of
from falter.scorers.reading._clauses import Clause, Part, clause_at, clauses, sentences
from falter.scorers.reading._number_words import (
    ADJACENT,
    CHECKED,
    CUE,
    ELSEWHEN,
    MARK,
    MAYBE,
    SUM,
    TRUST,
    UNIT,
)
from falter.scorers.reading._numerals import Number, numbers
from falter.scorers.reading._other_numbers import is_beside, is_denied, is_term
from falter.scorers.reading._told_apart import (
    after_verb,
    as_asked,
    granted,
    in_items,
    most_about,
    says_when,
)
from falter.scorers.reading._words import CONCLUSION, CORRECTION


@dataclass(frozen=True, slots=True)
class Placed:
    """A number in a sentence, and how firmly it is given there.

    Levels: 5 marked as the answer, 4 concluded, 3 the result of an equation, 2 the sentence's main
    number, 1 merely there, 0 weighed, checked or beside the point, -1 denied.
    """

    number: Number
    sentence: int
    level: int


def _re(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


_PLACE = late_regex(r"(?:st|nd|rd|th|er|ère|ème|e|º|ª)(?![\w])(?=[\W]*$)")
"""The end of an ordinal that ends its reply: she came in 14th."""


_MOST = 25  # numbers of a sentence; one with more lists them, and answers nothing


def placed_numbers(text: str, asked: Asked = NOTHING_ASKED) -> list[Placed]:
    """The numbers of a text in order, each with how firmly it is given.

    What the question `asked` for is told from what it gave: a number with another unit, or one
    that is said again, does not stand for the sentence beside a new one.
    """
    found = numbers(text, commas=asked.commas)
    parts = clauses(text)
    if len(found) == 1 and _PLACE.match(text, found[0].end):
        return [Placed(found[0], 0, 2)]
    seen: list[Placed] = []
    found = [x for x in found if not is_beside(text, x, place=asked.place)]
    if not asked.when:
        found = [x for x in found if not says_when(text, x)] or found
    for n, (start, end) in enumerate(sentences(text)):
        inside = [x for x in found if start <= x.start < end]
        if len(inside) > _MOST:
            seen += [Placed(x, n, 0) for x in inside]
        elif inside:
            seen += _in_sentence(text, n, (start, end), inside, parts, asked)
    peers = in_items(text, [s.number for s in seen if s.level == 4], asked)
    return [replace(s, level=1) if s.number in peers else s for s in seen]


_OR_RATHER = _re(
    r"[^\d.]{0,25}\b(?:or rather|no,|wait|i mean|sorry|correction|rather(?! than)|oder vielmehr"
    r"|vielmehr"
    r"|ou plutôt|plutôt|o mejor dicho|mejor dicho|o meglio|anzi|of liever|of eigenlijk|ou melhor"
    r"|aliás)\b[^\d.]{0,20}[$€£]?"
)


def _in_sentence(
    text: str,
    n: int,
    span: tuple[int, int],
    inside: Sequence[Number],
    parts: list[Clause],
    asked: Asked,
) -> list[Placed]:
    start, end = span
    sentence = text[start:end]
    line = text[text.rfind("\n", 0, start) + 1 : start]
    step = _is_step(text, start)
    denied = {x for x in inside if is_denied(text, start, x)}
    replaced = {a for a, b in pairwise(inside) if _OR_RATHER.fullmatch(text, a.end, b.start)}
    moved = not asked.change and _MOVES.search(sentence) is not None
    replaced |= {
        a
        for a, b in pairwise(inside)
        if (_BY.search(text[start : a.start]) or (moved and _FROM.search(text[start : a.start])))
        and _TO.fullmatch(text, a.end, b.start)
    }
    pool = [x for x in inside if x not in denied and x not in replaced]
    marked = not step and _marked(line, sentence) is not None
    if not pool:
        return [Placed(x, n, -1) for x in inside]
    if chain := [m.end() for m in _ANAPHOR.finditer(sentence)]:
        behind = [x for x in pool if x.start - start >= chain[-1]]
        pool = behind if len(behind) == 1 else pool
    new = [x for x in pool if x.value not in asked.given]
    lone = new[0] if len(new) == 1 and len(new) < len(pool) else None
    wholes = [x for x in pool if x is not lone and _WHOLE.search(text[start : x.start])]
    wholes += [
        x
        for x in pool
        if x not in wholes and is_term(text, x) and not (marked or _is_year(text, x, asked))
    ]
    if len(wholes) < len(pool):
        pool = [x for x in pool if x not in wholes]
    apart = [x for x in pool if _elsewhen(text, x, parts)]
    pool = [x for x in pool if x not in apart] if len(apart) < len(pool) else pool
    years = [x for x in pool if _is_year(text, x, asked)]
    pool, fitting = as_asked(text, years or pool, asked)
    free = [x for x in pool if not _is_bracketed(text, start, x)] if fitting else []
    supposed = granted(text, span, inside, asked)
    said = free or [x for x in pool if fitting or supposed or _is_said(text, start, x, parts)]
    chief, level = _chief(sentence, line, start, said or pool, text, parts)
    fresh = [x for x in said or pool if x.value not in asked.given]
    if level < 4 and chief.value in asked.given and fresh:
        chief, level = _chief(sentence, line, start, fresh, text, parts)
    shared = _shared(text, chief, pool)
    if level < 2 and len(said) > 1 and (about := most_about(text, span, said, asked)) is not None:
        chief, level, shared = about, 2, False
    otherwise = n > 0 and clause_at(parts, chief.start).part is Part.SUPPOSED and not supposed
    level = level if said or level > (4 if otherwise else 3) else min(level, 1)
    level = min(level, 3) if step else level
    if sentence.rstrip().endswith(("?", "？")) or (not marked and CHECKED.search(sentence)):
        if sentence.rstrip().endswith(("?", "？")):
            return [Placed(x, n, 0) for x in inside]
        checked = CHECKED.search(text, start, end)
        at = checked.start() if checked else end
        before = [x for x in inside if x.start < at]
        if not before:
            return [Placed(x, n, -1) for x in inside]
        head = _in_sentence(text, n, (start, at), before, parts, asked)
        return head + [Placed(x, n, -1) for x in inside if x.start >= at]
    if level < 5 and MAYBE.search(sentence) and not TRUST.search(sentence) and not supposed:
        level = 0
    ahead = words_of(sentence[: chief.start - start])
    if level == 2 and asked.head and asked.head <= ahead and not shared:
        level = 4  # the average temperature is
    placed = []
    for number in inside:
        own = level if number is chief else min(level, 1 if level < 3 else 0)
        if level == 2 and shared and number in said:
            own = 2
        if _CONFIRMED.match(text, number.end):
            own = max(own, 4)
        term = is_term(text, number) and not _is_year(text, number, asked)
        if len(sentence.split()) > 4 and term and level < 5:
            own = min(own, 0)
        if number in denied or number in replaced:
            own = -1
        placed.append(Placed(number, n, own))
    return placed


_STEP = late_regex(r"[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]")
_LATER_STEP = late_regex(r"\n[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t][^\n]*[=≈][^\n]*\d")


def _is_step(text: str, start: int) -> bool:
    """Whether a sentence is in a line of a list whose later lines still work something out."""
    at = text.rfind("\n", 0, start) + 1
    return _STEP.match(text, at) is not None and _LATER_STEP.search(text, start) is not None


_YEAR = late_regex(r"[12]\d\d\d")
_SINCE = _re(r"\byears? (?:after|before)\s$")


def _is_year(text: str, number: Number, asked: Asked) -> bool:
    """Whether a number may be the year that is asked for."""
    written = asked.year and _YEAR.fullmatch(text, number.start, number.end) is not None
    return written and not _SINCE.search(text[max(0, number.start - 16) : number.start])


_WHOLE = _re(
    r"(?<!total )(?<!sum )(?<!average )(?<!mean )(?<!maximum )(?<!minimum )(?<!score )(?<!number )"
    r"(?<!difference )(?<!distance )(?<!height )(?<!increase )(?<!decrease )(?<!change )"
    r"(?<!profit )"
    r"(?<!loss )(?<!volume )(?<!area )(?<!perimeter )(?<!probability )(?<!temperature )(?<!amount )"
    r"(?<!percentage )(?<!age )(?<!duration )(?<!remainder )(?<!balance )(?<!ratio )(?<!mass )"
    r"(?<!cost )(?<!price )(?<!value )(?<!result )(?<!rate )(?<!speed )(?<!weight )(?<!length )"
    r"\b(?:of|out of|von|sur|van|dei|delle|dos|das|jede[rsn]? der|chacun des|cada uno de los"
    r"|ognuno dei) (?:the |these |all |den |les |de |i |os |as )?(?:original |initial |total )?$"
)
_CONFIRMED = _re(r"[^.!?\d]{0,25},? (?:so|and) that(?:'s| is) (?:the|my|your|what)\b")


_BY = _re(r"\b(?:by|um|de|di|met|em)\s[$€£]?$")
_TO = _re(r"\s?(?:[%€$£]|[^\W\d]+)?(?: points?)?\s(?:to|auf|à|a|naar|para)\s[$€£]?")
_FROM = _re(r"\b(?:from|von|de|da|van)\s[$€£]?$")
_MOVES = _re(
    r"\b(?:drop(?:s|ped)?|falls?|fell|rises?|rose|went|goes|increase[sd]?|decrease[sd]?|grew|grows"
    r"|climbe?(?:s|d)|changed?|reduced|cut|lowered|raised|sank|sinkt|fällt|fiel|steigt|stieg|wächst"
    r"|passe[nr]?|passait|est passée?|baisse|augmente|monte|baja|bajó|sube|subió|pasa|pasó|scende"
    r"|scesa?|sale|salita?|passa|passou|daalt|daalde|stijgt|steeg|cai|caiu|subiu)\b"
)
_ANAPHOR = _re(r"\b(?:of|from|to|by) (?:that|this|these|those|them|it)\b")


def _elsewhen(text: str, number: Number, parts: list[Clause]) -> bool:
    """Whether a number is in a clause about another time, or what remains."""
    clause = clause_at(parts, number.start)
    return ELSEWHEN.search(text, clause.start, clause.end) is not None


def _is_said(text: str, start: int, number: Number, parts: list[Clause]) -> bool:
    """Whether a number is in a clause that says something, and not in brackets."""
    said = clause_at(parts, number.start).part is Part.SAID
    return said and not _is_bracketed(text, start, number)


def _is_bracketed(text: str, start: int, number: Number) -> bool:
    """Whether a number stands in brackets behind other words of its sentence."""
    before = text[start : number.start]
    return before.count("(") > before.count(")") and before.strip(" (*_") != ""


_OPEN_FORM = late_regex(
    r"(?:^|[^\w.])\d*\.?\d+\*?[a-z]\s*$|(?<![A-Za-z])\d*[a-z]²?\s*[-+]\s*\d+\s*$"
    r"|\d\s*[-+]\s*\d*[a-z]\s*$"
)


_VARIABLE = late_regex(
    r"\d[abknpqtuvwxyz](?![\w])\s*(?:[-+*/]|$)"
    r"|(?<![\w.])[abknpqtuvwxyz]\s*[-+*^]"
)


_UNDONE = late_regex(
    r"\s*[-−]?[$€£]?[\d.,]+\s?[%€°]?\s*(?:[*×÷·]|\s/\s|\s[-+−–]\s|\\(?:times|cdot"
    r"|div))\s*(?!10\s?(?:\^|\*\*|[⁻⁰¹²³⁴-⁹]))[$€£]?[\d(]"
)
_DO = _re(
    r"\W*(?:first,? |then,? |next,? |now,? )?(?:add|subtract|multiply|divide|calculate|compute)\b"
)
_COLON_LAST = late_regex(r":\s*[$€£]?$")


def _marked(line: str, sentence: str) -> int | None:
    """Where a sentence's mark of an answer ends, at its beginning or that of its line."""
    for text, before in ((line + sentence, len(line)), (sentence, 0)):
        if mark := MARK.search(text) or SUM.search(text):
            return mark.end() - before
    return None


def _chief(
    sentence: str,
    line: str,
    start: int,
    inside: Sequence[Number],
    text: str,
    parts: list[Clause],
) -> tuple[Number, int]:
    """The main number of a sentence, and how firmly the sentence gives it."""
    marked = _marked(line, sentence)
    if start == 0 and not marked and _LEADS.match(sentence, inside[0].end):  # noqa: SIM102
        if not sentence[: inside[0].start].strip(" *_(\"'$€£≈~"):
            return inside[0], 4
    cues = [
        c
        for c in CUE.finditer(sentence)
        if not _RESTATED.match(c[0])
        and not (_IT_IS.match(c[0]) and not _at_once(sentence, start, c.end(), inside))
    ]
    equals = sentence.rfind("=")
    if any(
        c.start() > equals and _STRONG.match(c[0]) and inside[-1].start - start >= c.end()
        for c in cues
    ):
        equals = -1  # what is concluded from an equation counts, not the equation
    if equals >= 0 and (behind := [x for x in inside if x.start - start > equals]):
        side = sentence[:equals].rpartition("=")[2]
        if _UNDONE.match(sentence, equals + 1):
            return behind[0], 0  # = 150 / 2, and no result
        if _VARIABLE.search(sentence[equals + 1 :]):
            return behind[0], 0
        if _OPEN_FORM.search(re.split(r"[,:;]", side)[-1]) and not marked:
            return behind[0], 1  # 2x = 16 is on the way
        concluded = any(_STRONG.match(c[0]) for c in cues)
        several = _SEVERAL.search(sentence)
        if several and several[1] != several[2]:
            return behind[0], 1
        if _shared(text, behind[0], inside):
            return behind[0], 2
        return behind[0], 5 if marked else 4 if concluded else 3
    if marked:
        at = start + marked
        later = [x for x in inside if x.start >= at - 1] or list(inside)
        return after_verb(text, at, later), 5
    summed = [x for x in inside if _SUMMED.match(sentence, x.end - start)]
    if len(summed) == 1:
        return summed[0], 4
    if _stands_alone(sentence, inside, start):
        return inside[-1] if _COLON.search(
            sentence[: inside[-1].start - start][-_NEAR:]
        ) else inside[0], 4
    if cues:
        strong = [c for c in cues if _STRONG.match(c[0])]
        for cue in (*reversed(strong), *cues):
            later = [x for x in inside if x.start - start >= cue.end()]
            if later:
                chief = after_verb(text, start + cue.end(), later)
                if _RESULT.fullmatch(cue[0]) and chief is inside[0]:
                    continue
                if _COMPARED.search(text, start + cue.end(), chief.end + 30):
                    continue
                return chief, 2 if _shared(text, chief, inside) else 4
    if _DO.match(sentence):
        return inside[-1], 4 if _COLON_LAST.search(sentence[: inside[-1].start - start]) else 0
    if _CORRECTED.match(sentence) and len({x.value for x in inside}) == 1:
        return inside[0], 4
    return _main(text, sentence, start, inside, parts)


_COMPARED = _re(
    r"\b(?:over the|above the|below the|under the|short of|too (?:much|many)|beyond|exceed\w*|limit"
    r"|límite|limite|grenze|grens|te pasas|sobra|(?:more|less|fewer) than|save|savings|discount"
    r"|de plus|de moins|mehr als|weniger als|más que|menos que|più (?:di|che)|meno (?:di|che)"
    r"|meer dan|minder dan|a mais|réduction|remise|rabais|économie|ersparnis|nachlass|descuento"
    r"|ahorro|sconto|risparmio|korting|desconto|economia)\b"
)
_RESULT = _re(r"(?:you|we|i|that|this|one) (?:have|has|get|gets|obtain)")
_PARALLEL = late_regex(
    r"[^.;:()\d]{0,25}(?:,|\band\b|\bund\b|\bet\b|\by\b|\be\b|\ben\b|\bwhile\b)\s+(?!it\b|that\b"
    r"|this\b"
    r"|which\b|so\b|not\b|thus\b|therefore\b)[^\W\d]+(?:\s[^\W\d]+){0,2}\s(?:has|have|gets?|is|are"
    r"|pays?|costs?|takes?|makes?|hat|hab\w+|bekommt|a|ont|tiene|tienen|ha|hanno|heeft|hebben"
    r"|tem|têm)\s(?:[^\W\d]+\s)?[$€£]?$",
    re.IGNORECASE,
)


_GAP = late_regex(r"[^.;:()\d]{0,15},\s(?:and )?the\s[^.,;\d]{3,30}\s")


_LEADS = late_regex(rf"{UNIT}\**(?:\s[—–-]\s|[:：]\s|\s\()(?=[^\W\d])")
_SEVERAL = late_regex(
    r"(?:^|[\s(])([A-Za-z]{1,3})\s*=[^=,;]*(?:=[^=,;]*)?\d[^=,;]*[,;]\s*(?:and\s"
    r"|und\s)?([A-Za-z]{1,3})\s*="
)
"""Two formulas side by side, each with a name of its own."""


def _shared(text: str, chief: Number, inside: Sequence[Number]) -> bool:
    """Whether a sentence gives two things a number each: Anna has 14 and Ben has 7."""
    later = [x for x in inside if x.start >= chief.end and x.value != chief.value]
    between = text[chief.end : later[0].start] if later else ""
    return bool(_PARALLEL.match(between) or _GAP.fullmatch(between))


_STRONG = _re(CONCLUSION)
_CORRECTED = _re(rf"\W*(?:{CORRECTION})")
_SUMMED = _re(
    r"\s+(?:[^\W\d]+\s+){0,3}(?:in total|altogether|in all|insgesamt|zusammen|au total|en total"
    r"|in totale|in totaal|no total|ao todo)\b"
)
_IT_IS = _re(r"it(?: is|'s| was| will be| must have been)|this is|that is|that's|c'est|soit")
_RESTATED = _re(
    r"in other words|that is|i\.e\.|namely|nämlich|à savoir|c'est-à-dire|es decir|o sea|cioè"
    r"|ossia|namelijk|oftewel|ou seja|isto é"
)
_NEAR = 200  # characters before a number in which a colon that leads to it stands
_COLON = late_regex(r"(?:\S+\s+){5,}\S+:\s*[$€£]?$")


def _stands_alone(sentence: str, inside: Sequence[Number], start: int) -> bool:
    """Whether a sentence is nothing but its number, or ends with one behind a colon."""
    first, last = inside[0], inside[-1]
    if _COLON.search(sentence[: last.start - start][-_NEAR:]):
        first = last
    before, after = sentence[: first.start - start], sentence[first.end - start :]
    if not before.strip(" *_(\"'-•=→$€£≈~") and re.fullmatch(
        rf"{UNIT}\W*", after.partition("(")[0]
    ):
        return True
    tail = sentence[last.end - start :]
    return (
        last is first
        and bool(_COLON.search(before[-_NEAR:]))
        and bool(re.fullmatch(rf"{UNIT}\W*", tail))
    )


_TAIL = late_regex(
    r"[\W_]*(?:(?:and |und |et |y |e |en )?(?:not|with|plus|including|compared|versus|instead|up"
    r"|down"
    r"|that is|i\.e\.|namely|es decir|das heißt|d\.h\.|soit|c'est-à-dire|cioè|ossia|oftewel|ou seja"
    r"|isto é|so|thus|así que|donc|dus|quindi|after|nach|before|vor|since|seit|out|of|or|a|an|the"
    r"|mit|inklusive|einschließlich|davon|statt|avec|dont|au lieu|con|incluid"
    r"|de los|frente|di cui|met|waarvan|com|sendo|against|by|for|over)\b"
    r"|[$€£]?[\d.,]+\s*\S*\s*(?:more|less|fewer|mehr|weniger|de plus|de moins"
    r"|más|menos|più|meno|meer|minder|mais)\b)|[^.]*\b(?:than|als|que|che|dan)\b",
    re.IGNORECASE,
)


def _main(
    text: str, sentence: str, start: int, inside: Sequence[Number], parts: list[Clause]
) -> tuple[Number, int]:
    """The number of the first clause that has one, where the others only add to it."""
    first = clause_at(parts, inside[0].start)
    own = [x for x in inside if x.start < first.end]
    said = [x for x in own if ADJACENT.search(sentence[: x.start - start])]
    verbed = [x for x in inside if ADJACENT.search(sentence[: x.start - start])]
    if len({x.value for x in own}) > 1 and len(said) != 1 and verbed == [inside[-1]]:
        return inside[-1], 2
    if len({x.value for x in own}) == 1:
        chief = own[0]
    elif len(said) == 1:
        chief = said[0]
    elif restated := [
        x
        for x in inside
        if x.start >= first.end
        and (
            _RESTATING.search(text, first.start, clause_at(parts, x.start).start)
            or _RESTATES.match(text, clause_at(parts, x.start).start)
        )
    ]:
        return restated[0], 2 if len(restated) == 1 else 1
    else:
        share = _SHARE.match(text, own[0].end, own[1].start) and len(own) == 2
        return own[0], 2 if share else 1
    rest = [clause_at(parts, x.start) for x in inside if x.start >= first.end]
    explained = text[: first.end].rstrip().endswith((":", "："))
    adds = explained or all(
        _TAIL.match(text, c.start, c.end) or _RESTATING.search(text, first.start, c.start)
        for c in rest
    )
    had = re.search(r"\bhad\W*$", text[start : chief.start]) is not None
    return chief, 2 if (adds and not (had and rest)) or len({x.value for x in inside}) == 1 else 1


_RESTATING = _re(
    r"\b(?:that is|i\.e\.|namely|es decir|o sea|das heißt|d\.h\.|nämlich|c'est-à-dire|soit|cioè"
    r"|ossia"
    r"|oftewel|dat wil zeggen|ou seja|isto é)\W*$"
)
_RESTATES = _re(r"[\W_]*(?:that is|that's|das sind|das ist|soit|cioè|dat is|ou seja|es decir)\b")
_SHARE = late_regex(
    r"\s*(?:[^\W\d]+\s)?(?:out of|of|von|sur|de|su|van|sobre|em|dos|des|dei|delle)\s(?:the |all |a"
    r" total of |los |las |les |den |de |i |as |os )?$",
    re.IGNORECASE,
)


_LITTLE = _re(
    r"\W*(?:(?:about|approximately|roughly|around|exactly|only|just|now|still|indeed|therefore|thus"
    r"|in|a total of|the|etwa|rund|genau|nur|environ|seulement|exactement|solo|circa)\W+)*"
)


def _at_once(sentence: str, start: int, at: int, inside: Sequence[Number]) -> bool:
    """Whether the next number follows a cue at once."""
    after = [x.start - start for x in inside if x.start - start >= at]
    return bool(after) and _LITTLE.fullmatch(sentence, at, after[0]) is not None
