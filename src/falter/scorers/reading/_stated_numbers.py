"""Which number a text settles on: each has a level, and the highest counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._asked import NOTHING_ASKED, Asked, measured_in, words_of, worth
from falter.scorers.reading._clauses import sentences
from falter.scorers.reading._cleaning import is_cut
from falter.scorers.reading._number_words import LIMIT, MARK, SUM, UNIT
from falter.scorers.reading._numerals import numbers
from falter.scorers.reading._other_numbers import is_part
from falter.scorers.reading._placed_numbers import Placed, placed_numbers
from falter.scorers.reading._refusals import asks_back, refusal_in
from falter.scorers.reading._text_words import folded_word, same_noun
from falter.scorers.reading._told_apart import asked_about, segment
from falter.scorers.reading._withdrawn import taken_back_at
from falter.scorers.reading._words import ADVERSATIVE, CORRECTION, OPEN

_UNDECIDED = object()


def _re(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


_EITHER = late_regex(
    r"[^\S\n]*(?:[A-Za-z%°€$²³]+\.?[^\S\n]*)?(?:-|–|—|to|or|oder|bis|ou|o|of|à|a|hasta|fino a|tot"
    r"|até|か"
    r"|、あるいは|または|~|〜|～)\s*(?:perhaps |maybe |even |possibly |vielleicht |[$€£])?$"
    r"|\s*(?:or|and|oder|und|,)\s+[a-z]\s*=\s*$",
    re.IGNORECASE,
)
_BETWEEN = _re(r"\b(?:between|zwischen|entre|tra|fra|tussen|somewhere between|from)\s*[$€£]?\s*$")
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


def settled_number(
    text: str,
    stressed: Decimal | None = None,
    *,
    closed: bool = False,
    asked: Asked = NOTHING_ASKED,
    cut: bool = False,
) -> Decimal | None:
    """The number that a text in prose settles on.

    `stressed` is the only one in bold type; a text that is `closed` cannot have been cut off, and
    one that is `cut` is known to be.
    """
    nil = _NIL.fullmatch(text) or (
        asked.nouns and (_NOTHING.fullmatch(text) or _NONE_LEFT.fullmatch(text))
    )
    alone = Decimal(0) if nil else _alone(text, asked)
    if alone is not _UNDECIDED:
        return alone
    if _several_lines(text) and (line := _line_asked_for(text, asked)) is not None:
        return line
    seen = placed_numbers(text, asked)
    refused = refusal_in(text)
    cut = cut or (
        not (closed or _EQUATION.fullmatch(text))
        and (is_cut(text) or _UNSOLVED.search(text) is not None)
    )
    last = _LAST_LINE.search(text)
    if last and not _several_lines(text):
        seen = [
            replace(s, level=4) if s.level == 2 and s.number.start > last.start() else s
            for s in seen
        ]
    made = [s for s in seen if s.level > 0 and not (cut and _dangling(text, s))]
    if cut:
        made = _before_the_cut(text, made)
    if refused is not None or asks_back(text):
        made = [s for s in made if s.level >= 3]
        end = next((e for _, e in sentences(text) if e > (refused or 0)), 0)
        made = [
            s
            for s in made
            if refused is None
            or s.level == 5
            or s.number.start >= end
            or (s.level == 4 and _STILL.search(text, refused, s.number.start))
        ]
    in_bold = [s for s in seen if s.number.value == stressed and s.level > 0]
    if _several_lines(text):
        made = []
    best = _last_committed(text, made, asked)
    if (best is None or best.level < 4) and in_bold and not cut and refused is None:
        best = in_bold[-1]
    if best is None or _left_open(text, best, seen, asked) or _withdrawn(text, best, made):
        return None
    if _is_other_thing(text, best, asked) or is_part(text, best.number):
        counted = [s for s in seen if s.level >= 0 and _counts(text, s, asked)]
        return counted[0].number.value if len(counted) == 1 else None
    return worth(text, best.number, asked)


def _is_other_thing(text: str, best: Placed, asked: Asked) -> bool:
    """Whether a number has a unit of measure where things are counted: hectares, and no sheep."""
    counted = asked.nouns and asked.measure is None and best.level < 5
    if not counted or text[best.number.end : best.number.end + 1] == "$":
        return False
    return measured_in(text, best.number, asked) is False


def _counts(text: str, seen: Placed, asked: Asked) -> bool:
    """Whether a number stands right before a noun of which the question asks how many."""
    behind = re.match(r"\s+([^\W\d_]{3,20})", text[seen.number.end :])
    return behind is not None and any(same_noun(folded_word(behind[1]), n) for n in asked.nouns)


def _withdrawn(text: str, best: Placed, made: Sequence[Placed]) -> bool:
    """Whether a number is taken back, and no other put in its place."""
    back = taken_back_at(text, best.number.end)
    return back is not None and not any(s.number.start > back and s.level > 1 for s in made)


_BUT = _re(ADVERSATIVE)
_STILL = _re(rf"[,;—–-]\s*{ADVERSATIVE}")
"""A refusal that goes on to answer in the same sentence."""
_LAST_LINE = late_regex(
    r"(?<![\d$€%])[^\W\d]*[^\d\n]{2}\n+[*_•-]*\s*[^\W\d][^:：\n\d]{0,30}:[ *_]*[$€£]?[-−]?\d[^\n:=]{0,20}\Z"  # noqa: E501
)
"""A last line that is a key and a number, behind prose."""
_EQUATION = late_regex(
    r"(?:[^.!?\n]|\.(?=\d))*=\s*[$€£]?[-−]?\d[\d.,]*(?:\s?[^\W\d]{1,10}[²³]?){0,2}\s*"
)
_NIL = late_regex(r"\W*(?:nil|nought|zilch|not a single one)\W*", re.IGNORECASE)
_NOTHING = late_regex(
    r"\W*(?:none|not one|keine[rs]?|aucune?|ningun[oa]|nessun[oa]|geen(?: enkele)?|nenhuma?)\b"
    r"\s?[—–,.;:!-](?!\s*(?:of the above|that))[^\d]{0,200}",
    re.IGNORECASE,
)
"""None, with a reason that has no number."""
_NONE_LEFT = late_regex(
    r"\W*(?:there (?:are|is|were|was) (?:none|no [^\W\d]+(?: [^\W\d]+)?)(?: (?:left|remaining))?"
    r"|es (?:sind|ist) keine?\w*(?: [^\W\d]+)?(?: mehr)?(?: übrig)?|il n'en reste (?:aucune?|plus)"
    r"|no queda(?:n)? ningun[oa]|non ne (?:resta|rimane|restano) nessun[oa]"
    r"|er (?:is|zijn) (?:er )?geen (?:meer )?over|não (?:resta|restou|sobrou) nenhuma?)\W*",
    re.IGNORECASE,
)
_UNSOLVED = late_regex(
    r"(?:^|\n)[^\n=.!?]*\d\)?\s+[-+*/×÷·−]\s+\(?\d[\d.,]*\)?\s*$"
    r"|=[^\n]*\n[^\n.!?=:\d]{2,40}\s*$"
)
"""A last line with a calculation that has no result."""
_IN_WORDS = _re(
    r"\b(?:answer|result|total|sum|solution|antwort|ergebnis|lösung|summe|réponse|résultat|somme"
    r"|respuesta|resultado|suma|total|risposta|risultato|somma|antwoord|resultaat|uitkomst"
    r"|resposta)\b|答え|合計"
)
_CHECK = _re(
    r"[\W_]*(?:check|verif|proof|probe|vérif|comprob|prova|controle|to (?:check|verify)|checking"
    r"|double-check|you can (?:get|check|see))"
)


def _before_the_cut(text: str, made: Sequence[Placed]) -> list[Placed]:
    """The numbers that were answers before a reply was cut off, and no interim results."""
    spans = sentences(text)
    whole = [
        s
        for s in made
        if s.sentence < len(spans) - 1
        or (s.level == 4 and re.match(r"[^.,;:(\d]{0,25}(?:[:;(—–]| - )", text[s.number.end :]))
    ]
    kept = [s for s in made if s.level == 5]
    if kept:
        return kept
    if _CHECK.match(text, spans[-1][0]):
        return [s for s in whole if s.level >= 4]
    first = [s for s in whole if s.sentence == 0 and s.level >= 2]
    named = [s for s in first if s.level == 4 and _IN_WORDS.search(text, 0, s.number.start)]
    if named or "=" not in text:
        return named or (
            [s for s in first if _opening(text, s, made)] or [s for s in first if s.level == 4]
        )
    return []


def _last_committed(text: str, made: Sequence[Placed], asked: Asked) -> Placed | None:
    """The last number of the highest level; below a conclusion, the only one or the first."""
    if not made:
        return None
    top = max(s.level for s in made)
    best = [s for s in made if s.level == top]
    chosen = best[-1]
    if top >= 4 and _wavers(text, [s for s in made if s.level >= 4]):
        return None
    elsewhere = [s for s in made if top == 2 and s.sentence != chosen.sentence]
    if top < 3 and len({s.number.value for s in (*best, *elsewhere)}) > 1:
        changed = _changed(text, best)
        if changed is not None:
            return changed
        asked_for = _asked_for(text, (*best, *elsewhere), asked)
        if asked_for is not None:
            return asked_for
        first = best[0] if _opening(text, best[0], made) else None
        return first if first is None or _is_about(text, first, best, asked) else None
    if top < 2 and len({s.number.value for s in made}) > 1:
        return None
    ending = [s for s in made if s.level == 2 and s.sentence == len(sentences(text)) - 1]
    if top == 3 and len(ending) == 1 and ending[0].sentence > chosen.sentence:
        return ending[0]
    return chosen if top not in (3, 4) or _ends(text, chosen, made, asked) else None


def _asked_for(text: str, made: Sequence[Placed], asked: Asked) -> Placed | None:
    """The number of a statement that has words of the question that no other has.

    What a story begins with is left out, and so is what the question gives.
    """
    spans = sentences(text)
    told = [
        s
        for s in made
        if s.number.value not in asked.given and not _GIVEN.match(text, spans[s.sentence][0])
    ]
    around = {s.number: segment(text, *spans[s.sentence], s.number) for s in told}
    counted = {s.number.value for s in told if asked.nouns and measured_in(text, s.number, asked)}
    if len(counted) == 1 and asked.measure is None:
        return next((s for s in told if s.number.value in counted and s.level == 2), None)
    about = asked_about(around, asked)
    return next((s for s in told if s.number is about and s.level == 2), None)


def _wavers(text: str, best: Sequence[Placed]) -> bool:
    """Whether answers go to and fro between numbers, or two marked ones are in one sentence."""
    turns = [s for n, s in enumerate(best) if not n or best[n - 1].number.value != s.number.value]
    again = len(turns) > 3 > len({s.number.value for s in turns})
    beside = len(turns) > 1 and turns[-1].sentence == turns[-2].sentence and turns[-1].level == 5
    between = text[turns[-2].number.end : turns[-1].number.start] if len(turns) > 1 else ""
    return (again or beside) and not _CHANGED.search(between)


_STEPS = _re(
    r"\b(?:calculate|compute|multiply|divide|subtract|then add|add \d)\b|^[\W_]*(?:step|schritt"
    r"|étape|paso|passo|stap)\b|=|\n[\W_]*\d+[.)]"
)
_GIVEN = _re(
    r"[\W_]*(?:there (?:are|were)|each|every|given|we (?:know|have|are)|let\b|suppose|initially"
    r"|originally|first|you (?:have|start|begin)|she (?:has|had|starts)|he (?:has|had|starts)"
    r"|in \d+"
    r"|jede[rs]?|chaque|cada|ogni|elke|between|from)\b|[^.,]*\b(?:had|each|per|starts? with"
    r"|started with|begins? with)\b"
)


def _opening(text: str, seen: Placed, placed: Sequence[Placed]) -> bool:
    """Whether a reply opens with its answer and explains it: no steps, nothing given."""
    spans = sentences(text)
    return (
        seen.level == 2
        and all(not re.search(r"\d", text[a:b]) for a, b in spans[: seen.sentence])
        and seen.sentence < 2
        and [s.level for s in placed if s.sentence == seen.sentence].count(2) == 1
        and _STEPS.search(text) is None
        and _GIVEN.match(text, spans[seen.sentence][0]) is None
    )


def _ends(text: str, chosen: Placed, made: Sequence[Placed], asked: Asked) -> bool:
    """Whether nothing but the same number is given after a conclusion."""
    later = [s for s in made if s.sentence > chosen.sentence and s.level >= 2]
    start = sentences(text)[chosen.sentence][0]
    return (
        all(s.number.value == chosen.number.value for s in later)
        or chosen.sentence == 0
        or (chosen.level == 4 and _IN_WORDS.search(text, start, chosen.number.start) is not None)
        or bool(asked.head and asked.head <= words_of(text[start : chosen.number.start]))
    )


_LINE = late_regex(
    r"^[\s*_•-]*[^\W\d][^:：=\n\d]{0,40}[:：][\s*_$€£¥]*[-−]?\d[^\n=]{0,40}$", re.MULTILINE
)


def _several_lines(text: str) -> bool:
    """Whether a reply is nothing but lines of keys and numbers, none of them marked."""
    lines = [line for line in text.split("\n") if line.strip()]
    keyed = [line for line in lines if _LINE.match(line)]
    marked = any(MARK.search(line) or SUM.search(line) for line in lines)
    values = {n.value for line in keyed for n in numbers(line)[:1]}
    return len(values) > 1 and len(keyed) == len(lines) and not marked


def _is_about(text: str, chosen: Placed, others: Sequence[Placed], asked: Asked) -> bool:
    """Whether no other sentence with a number says more of what the question asks about."""
    spans = sentences(text)
    shares = {
        n: len({w for w in words_of(text[slice(*spans[n])]) if w in asked.words})
        for n in {s.sentence for s in (chosen, *others)}
    }
    return shares[chosen.sentence] == max(shares.values())


def _line_asked_for(text: str, asked: Asked) -> Decimal | None:
    """The number of the only line whose key the question names."""
    keyed = [line.partition(":") for line in text.replace("：", ":").split("\n") if ":" in line]
    named = [value for key, _, value in keyed if asked.names(key)]
    found = numbers(named[0], commas=asked.commas) if len(named) == 1 else []
    return worth(named[0], found[0], asked) if found else None


def _changed(text: str, best: Sequence[Placed]) -> Placed | None:
    """The number that replaces an earlier one."""
    between = text[best[0].number.end : best[-1].number.start]
    wrong = _WRONG.search(text, 0, best[-1].number.start)
    return best[-1] if wrong or _CHANGED.search(between) else None


def _alone(text: str, asked: Asked) -> Any:
    """A reply that is a number with its unit, or two that leave it open."""
    short = re.sub(
        r"^(?:about|approximately|roughly|around|some|ca\.?|etwa|rund|environ|unos|unas|circa"
        r"|ongeveer|cerca de|約|approx\.?|[~≈])\s*",
        "",
        re.sub(r"^[ *_\n\"']*(?:\.(?!\d)[ .*_]*)?|[ *_.!\n\"']+\Z", "", text),
        flags=re.IGNORECASE,
    )
    if short.casefold() in _LONE or (asked.nouns and _NO_ONE.fullmatch(short)):
        return Decimal(_LONE.get(short.casefold(), 0))
    found = numbers(short, commas=asked.commas)
    if len(found) == 1 and len(short.split()) <= 4:
        head, tail = short[: found[0].start].strip(" $€£¥₹=:"), short[found[0].end :]
        if (
            not head
            and re.fullmatch(UNIT, tail)
            and not re.match(r"(?:st|nd|rd|th)\b[^\W\d]*\s+\w", tail)
        ):
            return worth(short, found[0], asked)
    if (
        len(found) == 2
        and re.fullmatch(r"[\s\w$€£%°]{1,20}\(\s*", short[found[0].end : found[1].start])
        and short.endswith(")")
        and found[0].value != found[1].value
    ):
        fits = [x for x in found if measured_in(short, x, asked)]
        return fits[0].value if len(fits) == 1 else None
    if len(found) == 2 and len(short.split()) <= 6:
        between = short[found[0].end : found[1].start]
        one, other = found[0].value, found[1].value
        if _NEARLY.fullmatch(between) and abs(one - other) <= abs(one) / 100:
            decimal = "/" in short[: found[0].end] and "≈" in between
            return worth(short, found[int(decimal)], asked)
        if _EITHER.fullmatch(between) and (_DUTCH.search(text) or not _OF.search(between)):
            return None
    return _UNDECIDED


_NEARLY = late_regex(r"\s*(?:≈|≃|=|~|\(|,? or)\s*(?:≈|~|about |approximately |roughly )?")
_LONE = {"uno": "1", "una": "1", "un": "1", "une": "1", "um": "1", "uma": "1", "één": "1",
         "sei": "6", "cem": "100", "cent": "100", "half": "0.5"}  # fmt: skip
"""Words that are numbers only where they are the whole reply."""
_NO_ONE = _re(r"none|keine[rs]?|aucune?|ningun[oa]|nessun[oa]|geen(?: enkele)?|nenhuma?")
_LIMITED = _re(
    r"\s*(?:[^\W\d]+\s)?(?:at (?:most|least)|or (?:more|less|fewer|so more)|and (?:up|more)"
    r"|maximum|minimum"
    r"|höchstens|mindestens|oder (?:mehr|weniger)|au (?:plus|moins)|ou (?:plus|moins)"
    r"|como (?:máximo"
    r"|mínimo)|o (?:más|menos)|al (?:massimo|minimo)|o (?:più|meno)|of (?:meer|minder)|no (?:máximo"
    r"|mínimo)|ou mais)\b"
)
_COUNTED_TOO = _re(r"\s[^\W\d]+\s(?:and|und|et|y|e|en)\s")
_DUTCH = late_regex(r"\b(?:het|een|niet|ik|dus|zijn|kan|wordt)\b", re.IGNORECASE)
_OF = late_regex(r"\bof\b", re.IGNORECASE)


def _dangling(text: str, seen: Placed) -> bool:
    """Whether a number ends its reply in the middle of a sentence, and so might go on."""
    tail = text[seen.number.end :].strip()
    return not tail and seen.level < 5 and "\n" not in text and is_cut(text)


def _left_open(text: str, chosen: Placed, seen: Sequence[Placed], asked: Asked) -> bool:
    """Whether the number is one end of a range, a limit, or one of two that are left open."""
    number = chosen.number
    if _LIMITED.match(text, number.end):
        return True
    if LIMIT.search(text[: number.start]) or _BETWEEN.search(text[: number.start]):
        return True
    if text[: number.start].rstrip(" $€£").endswith("±"):
        return True
    for other in seen:
        if other.number is number or other.number.value == number.value or other.level < 0:
            continue
        first, second = sorted((other.number, number), key=lambda x: x.start)
        between = text[first.end : second.start]
        told_apart = _counts(text, chosen, asked) and not _counts(text, other, asked)
        if first is number and _COUNTED_TOO.fullmatch(between) and not told_apart:
            return True
        if _EITHER.fullmatch(between) and (_DUTCH.search(text) or not _OF.search(between)):
            return True
    if any(
        number.value in (a.number.value, b.number.value)
        and a.number.value != b.number.value
        and a.number.start > number.end
        and _EITHER.fullmatch(text, a.number.end, b.number.start)
        and a.level > -1 < b.level
        for a, b in pairwise(seen)
    ):
        return True
    opened = [m.start() for m in _OPENED.finditer(text)]
    same = min(s.number.start for s in seen if s.number.value == number.value and s.level > -1)
    start = next((a for a, b in sentences(text) if a <= number.start < b), 0)
    if chosen.level < 4 and any(
        start <= at and not _BUT.search(text, at, max(at, number.start)) for at in opened
    ):
        return True
    if opened and opened[-1] > (same if chosen.level < 4 else number.start):
        return True
    after = [
        s
        for s in seen
        if s.number.start > number.end and s.level == 0 and s.number.value != number.value
    ]
    return (
        any(_CHANGED.search(text[number.end : s.number.start]) for s in after) and chosen.level < 3
    )
