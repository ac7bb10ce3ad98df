"""A text as sentences and clauses, each clause with the part that it plays.

A clause answers (`SAID`), or it asks, supposes, explains, concedes, quotes, states a rule or tells
what was thought before. Only what is said can be an answer; the other parts surround it.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._clause_words import (
    BEFORE_NOW,
    CONCEDES,
    EXPLAINS,
    LATER,
    MAIN,
    QUOTES,
    RELATES,
    RULES,
    SUPPOSES,
    UNSETTLED,
    WONDERS,
)


class Part(Enum):
    """What a clause does in a reply."""

    SAID = "says something of the matter itself"
    ASKED = "asks, directly or indirectly"
    SUPPOSED = "holds only under a condition"
    ASIDE = "explains, concedes, or adds to a noun"
    QUOTED = "gives somebody else's words"
    RULE = "says what holds in general"
    BEFORE = "tells what was thought before"


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of a text, the sentence that it is in, and its part."""

    start: int
    end: int
    sentence: int
    part: Part


_SENTENCE = late_regex(
    r"[.!?…]+[\"'”»)\]*_]*(?=\s|$)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bz\.B\.)(?<!\bvs\.)(?<!\bca\.)"
    r"(?!(?<=\bno\.)\s\d)(?<!\bp\.)(?<!\bcf\.)(?<!\bapprox\.)|[。！？]|\n+|;\s"
)


def sentences(text: str) -> list[tuple[int, int]]:
    """The stretches of a text that end with a full stop, a line or a semicolon."""
    return list(_spans(text))


@lru_cache(maxsize=16)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    spans, start = [], 0
    for match in _SENTENCE.finditer(text):
        if match.end() > start:
            spans.append((start, match.end()))
            start = match.end()
    if start < len(text):
        spans.append((start, len(text)))
    return tuple(s for s in spans if text[s[0] : s[1]].strip())


def _re(*parts: str) -> re.Pattern[str]:
    return late_regex("".join(parts), re.IGNORECASE)


_OPENERS = {
    Part.ASKED: WONDERS,
    Part.SUPPOSED: rf"(?:{SUPPOSES}|{LATER})",
    Part.ASIDE: rf"(?:{EXPLAINS}|{CONCEDES}|{RELATES})",
    Part.SAID: MAIN,
}
_LINK = r"[\W_]*(?:(?:and|but|or|und|aber|et|mais|y|pero|e|ma|en|maar|mas|also|then|just) )?"
_OPENED = {part: _re(_LINK, r"(?:", words, r")") for part, words in _OPENERS.items()}
_CUT = _re(
    r"(?:[,;:，、：—–]\s*|\s-\s|[()（）])"
    r"|(?<!\beven)(?<!\bas)(?<!\bauch)(?<!\bmême)(?<!\banche)(?<!\bmesmo)(?<!\book)\s(?=(?:",
    "|".join((EXPLAINS, CONCEDES, RELATES, SUPPOSES, LATER, WONDERS, MAIN)),
    r"|but|however|aber|sondern|mais|pero|sino|maar|mas)(?!\w))",
)
_TURN = _re(r"[\W_]*(?:but|however|yet|aber|jedoch|mais|pero|ma|maar|mas)(?!\w)")
_CONDITION = _re(_LINK, r"(?:", SUPPOSES, r")")
_COMPLEMENT = _re(r"[\W_]*(?:it|that|this|i|we|my|the|ich|das|c'est|je|ik)(?!\w)")
_ENDS_ASIDE = late_regex(
    r"[\u3040-\u9fff](?:ので|から|ため|けれど|けど|ですが|ますが|あり|が)、\s*\Z"
)
"""Japanese says at its end what a clause is for."""
_QUOTING, _RULING, _BEFORE = _re(QUOTES), _re(RULES), _re(BEFORE_NOW)
_UNSETTLED = _re(UNSETTLED)


_TAG = _re(
    r",\s*(?:right|correct|ok(?:ay)?|no|isn't it|doesn't it|nicht wahr|oder|stimmt's|n'est-ce pas"
    r"|non"
    r"|verdad|vero|giusto|toch|hè|né|certo)\s*[?？]\W*$"
)


_OPENING = 200  # characters in which a clause says by its first words what it is


def is_question(sentence: str) -> bool:
    """Whether a sentence asks; "right?" at its end only asks for agreement."""
    ends = sentence.rstrip("\"'”») \n*_").endswith(("?", "？"))
    return ends and _TAG.search(sentence) is None


def clauses(text: str) -> list[Clause]:
    """The clauses of a text in order."""
    return [
        clause
        for n, (start, end) in enumerate(sentences(text))
        for clause in _in_sentence(text, n, start, end)
    ]


def _in_sentence(text: str, n: int, start: int, end: int) -> list[Clause]:
    asked = is_question(text[start:end])
    cuts = [(m.end(), not m[0].strip()) for m in _CUT.finditer(text, start, end)]
    edges = [(start, False), *cuts, (end, False)]
    found: list[Clause] = []
    inherited = Part.SAID
    for (left, unmarked), (right, _) in itertools.pairwise(edges):
        if not text[left:right].strip():
            continue
        part = Part.ASKED if asked else _part(text, left, right)
        if part is None:  # goes on as before, but a subordinate clause that opens a sentence ends
            part = Part.SAID if _TURN.match(text, left, right) else inherited
            if found and text[left - 1] in "(（":
                part = found[-1].part
        if (
            unmarked
            and found
            and part is Part.SAID
            and _COMPLEMENT.match(text, left, left + _OPENING)
        ):
            part = found[-1].part  # what is said, thought or asked, without a comma
        inherited = part if part is Part.RULE else Part.SAID
        found.append(Clause(left, right, n, part))
    return _under_condition(text, found)


def _under_condition(text: str, found: list[Clause]) -> list[Clause]:
    """The clauses of a sentence; what a condition beside it holds up is supposed, up to a "but"."""
    turns = [n for n, c in enumerate(found) if n == 0 or _TURN.match(text, c.start, c.end)]
    out: list[Clause] = []
    for first, last in zip(turns, [*turns[1:], len(found)], strict=True):
        group = found[first:last]
        if any(_CONDITION.match(text, c.start, c.start + _OPENING) for c in group):
            group = [replace(c, part=Part.SUPPOSED) if c.part is Part.SAID else c for c in group]
        out += group
    return out


def _part(text: str, start: int, end: int) -> Part | None:
    """The part of a clause by its own words; None where they do not say."""
    if _ENDS_ASIDE.search(text, start, end):
        return Part.ASIDE
    for part in (Part.ASKED, Part.SUPPOSED, Part.ASIDE):
        if _OPENED[part].match(text, start, start + _OPENING):
            return part
    for part, words in (
        (Part.BEFORE, _BEFORE),
        (Part.RULE, _RULING),
        (Part.QUOTED, _QUOTING),
        (Part.SUPPOSED, _UNSETTLED),
    ):
        if words.search(text, start, end):
            return part
    return Part.SAID if _OPENED[Part.SAID].match(text, start, start + _OPENING) else None


def clause_at(found: list[Clause], at: int) -> Clause:
    """The clause that a place of the text is in."""
    return next((c for c in found if c.start <= at < c.end), found[-1])
