"""Which one of a closed set a text settles on.

What is made of the mentions has a level (`_mentions`). The last one of the highest level counts,
unless something later takes it back or leaves it open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._clause_words import IDLE_IF
from falter.scorers.reading._clauses import Part, sentences
from falter.scorers.reading._cleaning import is_cut
from falter.scorers.reading._mentions import ANY, DRESS, JOIN, WINDOW, Mention, mentions_in, who
from falter.scorers.reading._refusals import asks_back, refusal_in
from falter.scorers.reading._withdrawn import PLANS, taken_back_at
from falter.scorers.reading._words import CORRECTION, EARLIER, LEAN, OPEN

_MOST_MENTIONS = 100


def sole(text: str) -> int | None:
    """The candidate that a short text names, and nothing else with it."""
    found = {who(c) for c in re.findall(ANY, text)}
    if len(found) != 1 or not re.fullmatch(rf"{DRESS}*{ANY}{DRESS}*(?:{ANY}{DRESS}*)?", text):
        return None
    index = found.pop()
    return None if index < 0 else index


def _re(*parts: str) -> re.Pattern[str]:
    return late_regex("".join(parts), re.IGNORECASE)


_EARLIER = _re(EARLIER)
_LEANS = _re(rf"(?:{LEAN})[^.!?]{{0,40}}$")
_OR_MAY = _re(
    r"\b(?:but|however|or|aber|mais|pero|ma|maar"
    r"|mas)\b[^.!?\ue000-\uf8ff]{0,30}\b(?:might|may|could|perhaps|maybe|possibly|könnte"
    r"|pourrait|podría|potrebbe|poderia)\b[^.!?\ue000-\uf8ff]{0,20}$"
)
_OPENED = _re(OPEN)
_CHANGED = _re(CORRECTION)
_IF = _re(
    r"(?<!\beven )(?<!\bauch )(?<!\bas )\b(?:if|unless|(?<=[,;.] )otherwise|assuming"
    r"|provided that|wenn"
    r"|falls (?:der|die|das|es|sie|er|ich|man|du|ihr|wir|ein|kein|nicht|doch|dem|den)|sofern"
    r"|tenzij|à moins|a menos"
    r"|a meno)\b"
)
_IDIOM = _re(rf"if{IDLE_IF}")
_CONTRARY = _re(
    r"\b(?:if|wenn|si|se|als)\b[^.!?]{0,120}"
    r"\b(?:would have|wäre|hätte|aurait|habría|sarebbe)\b|"
    r"\b(?:would(?:n't)?(?: only)?(?: have)?(?: be| been)?|wäre|würde|serait|sería|sarebbe|zou"
    r"|seria)\b[^.!?]{0,60}\b(?:if|unless|wenn|falls|si|se|als)\b"
)


_RANKED = late_regex(rf"({ANY})(?:\s*(?:>|≻)\s*{ANY})+")
"""Candidates from the best to the worst."""


class _Opening(NamedTuple):
    """Where an answer is left open, and between which candidates if that is said."""

    at: int
    among: frozenset[int]
    either: bool = True


def settled(
    text: str, count: int, stressed: int | None = None, *, attributive: bool = False
) -> int | None:
    """The candidate that a text settles on; None if it names none, several or leaves it open.

    `stressed` is the only candidate in bold type, which a mere mention may need to count.
    """
    if len(re.findall(ANY, text)) > _MOST_MENTIONS:
        return None
    text = _RANKED.sub(r"\1", text)
    spans = sentences(text)
    mentions = mentions_in(text, attributive=attributive)
    cut, refused, unfinished = is_cut(text), refusal_in(text), asks_back(text)
    made = [m for m in mentions if m.level > 0 and _stands(m, refused)]
    if unfinished:
        made = [m for m in made if m.level >= 3]
    if cut:
        made = _before_the_cut(text, spans, made)
    if _ONE_LEFT.search(text) and all(m.level == 1 for m in made):
        made = []
    if _DEPENDS.match(text) and len({m.who for m in made}) > 1 and all(m.level < 4 for m in made):
        return None
    best = _last_committed(text, spans, made, stressed)
    openings = _openings(text, spans, mentions)
    if best is not None:
        if _left_open(text, spans, best, openings) or _taken_back(text, best, mentions):
            return None
        return best.who if best.who >= 0 else None
    if made or openings or cut or refused is not None or unfinished:
        return None
    leaning = _leaning(text, spans, mentions)
    return _left_over(text, mentions, count) if leaning is None else leaning


def _stands(mention: Mention, refused: int | None) -> bool:
    """Whether a mention counts beside a refusal: it concludes, or is stated well behind it."""
    return (
        mention.level >= 3 or refused is None or (mention.level == 2 and mention.at > refused + 40)
    )


_BOUNDARY = late_regex(
    r"\s(?:because|since|as|given|weil|da|denn|car|parce|puisque|porque|ya|perché|poiché|omdat"
    r"|pois)\s"
    r"|[,.;:!)\n—–。、」][\s\"'”»*]*[^\s\"'”»*]",
    re.IGNORECASE,
)


def _before_the_cut(
    text: str, spans: Sequence[tuple[int, int]], made: Sequence[Mention]
) -> list[Mention]:
    """The mentions that were whole before a reply was cut off, and would not be interim ones."""
    last = spans[-1][0]
    whole = [
        m
        for m in made
        if m.level == 4
        or _BOUNDARY.search(text, m.at + 1)
        or (m.firm and re.fullmatch(rf"{DRESS}*", text[m.at + 1 :]))
    ]
    firm = [m for m in whole if m.level == 4 or m.firm]
    early = [
        m
        for m in whole
        if m.level >= 2
        and m.at < spans[min(1, len(spans) - 1)][1]
        and (m.level == 3 or m.at < last)
    ]
    if len({m.who for m in made}) > 1 or PLANS.match(text):
        early = []
    kept = firm or early
    return list(kept) if len({m.who for m in kept}) == 1 else []


def _openings(
    text: str, spans: Sequence[tuple[int, int]], mentions: Sequence[Mention]
) -> list[_Opening]:
    """Where an answer is left open: words that say so, alternatives side by side, conditions."""
    found = [_Opening(m.start(), frozenset()) for m in _OPENED.finditer(text)]
    found += [_Opening(m.start(), frozenset()) for m in _SO_DOES.finditer(text)]
    at = {m.at: m for m in mentions}
    for match in JOIN.finditer(text):
        one, other = at.get(match.start() - 1), at.get(match.end())
        if one and other and one.who != other.who and min(one.level, other.level) >= 0:
            if not match[0].strip(" ,、") and one.part is not other.part:
                continue  # a comma between clauses, not between the items of a list
            both = _BOTH.search(text[max(0, one.at - 20) : one.at]) is not None
            either = both or _OR.search(match[0]) is not None
            found.append(_Opening(match.end(), frozenset((one.who, other.who)), either))
    found += [
        _Opening(m.at, frozenset())
        for m in mentions
        if m.level >= 0
        and _OR_MAY.search(re.sub(ANY, "\ue000", text[max(0, m.at - WINDOW) : m.at]))
    ]
    for start, end in spans:
        inside = [m for m in mentions if start <= m.at < end and m.level == 0]
        marked = [
            m
            for m in mentions
            if m.at < start and (m.level == 4 or (m.firm and "\n" in text[m.at : start]))
        ]
        sentence = text[start:end]
        if inside and not marked and not _CONTRARY.search(sentence):  # noqa: SIM102
            if any(not _IDIOM.match(sentence, m.start()) for m in _IF.finditer(sentence)):
                found.append(_Opening(inside[-1].at, frozenset()))
    return found


_SETTLES = _re(
    r"[.!?\n]|\b(?:but|so|yet|still|however|then|therefore|aber|also|doch|mais|donc|pero|así|ma"
    r"|quindi"
    r"|maar|dus|mas|então)\b"
)


def _left_open(
    text: str, spans: Sequence[tuple[int, int]], best: Mention, openings: Sequence[_Opening]
) -> bool:
    """Whether an answer is opened again, in its own sentence or later."""
    start = _sentence_start(spans, best.at)
    after = [o for o in openings if o.at >= start]
    if best.level < 3 and any(o.either and o.among and best.who not in o.among for o in openings):
        return True  # two others were left open before
    if best.level >= 3:
        after = [
            o
            for o in after
            if o.at >= best.at or not (o.among or _SETTLES.search(text, o.at, best.at))
        ]
        end = next((e for s, e in spans if s <= best.at < e), 0)
        after = [
            o for o in after if not o.among or (best.who in o.among and (o.either or o.at < end))
        ]
    return bool(after)


_SO_DOES = _re(
    rf"\b(?:so|as) (?:does|is|do|are|would|could|might) (?:the |an? |option )?{ANY}"
    rf"|{ANY}[^.!?\n]{{0,20}}"
    r"\b(?:fits|works|applies|is possible|is plausible) (?:just )?(?:as well|too|equally)"
)
_BOTH = _re(r"(?:^|[.!?\n])[\W_]*(?:both|sowohl|tanto|sia|zowel)\W+$")
_DEPENDS = _re(
    r"\W*(?:that|it|this) depends\b|\W*(?:das|es) (?:hängt|kommt)\b|\W*(?:cela|ça) dépend"
)
_OR = _re(r"\b(?:or|oder|ou|o|u|of)\b|[/|かまた]")


def _leaning(
    text: str, spans: Sequence[tuple[int, int]], mentions: Sequence[Mention]
) -> int | None:
    """The one candidate that a text leans to, with nothing else weighed against it."""
    weighed = [m for m in mentions if m.level >= 0 and m.part is not Part.ASIDE]
    if len({m.who for m in weighed}) != 1 or "?" in text:
        return None
    last = weighed[-1]
    start = _sentence_start(spans, last.at)
    left = re.sub(ANY, "x", text[max(start, last.at - WINDOW) : last.at])
    clear = _LEANS.search(left) and not _EARLIER.search(left) and not _IF.search(text, start)
    return last.who if clear and last.who >= 0 and last.part is Part.SAID else None


def _sentence_start(spans: Sequence[tuple[int, int]], at: int) -> int:
    return next((s for s, e in spans if s <= at < e), 0)


def _last_committed(
    text: str,
    spans: Sequence[tuple[int, int]],
    made: Sequence[Mention],
    stressed: int | None,
) -> Mention | None:
    """The last mention of the highest level; two statements without a correction are none."""
    if not made:
        return None
    top = max(m.level for m in made)
    best = [m for m in made if m.level == top]
    if top < 3 and stressed is not None and any(m.who == stressed for m in made):
        return [m for m in made if m.who == stressed][-1]
    if top < 3 and not _plainly(text, spans, made, top):
        return None
    chosen = ([m for m in best if m.firm] or best)[-1]
    if top >= 3 and _wavers(text, [m for m in best if m.firm] or best):
        return None
    before = [m for m in best if m.who != chosen.who and m.at < chosen.at]
    if before and (top < 3 or not _supersedes(spans, before[-1], chosen)):  # noqa: SIM102
        if not _CHANGED.search(text[before[-1].at : chosen.at]):
            return None
    for mention in made:
        start = _sentence_start(spans, mention.at)
        later = mention.at > chosen.at and mention.who != chosen.who and mention.level >= 2
        if later and _CHANGED.search(text[max(chosen.at + 1, start - 60) : mention.at]):
            chosen = mention
    return None if top < 3 and _outweighed(text, spans, chosen, made) else chosen


def _wavers(text: str, firm: Sequence[Mention]) -> bool:
    """Whether answers of one level go from one candidate to a third, or back, without a word."""
    turns = [m for n, m in enumerate(firm) if not n or firm[n - 1].who != m.who]
    return len(turns) > 2 and not _CHANGED.search(text[turns[-2].at : turns[-1].at])


_BUT = _re(r"\b(?:but|yet|however|aber|jedoch|mais|pero|ma|però|maar|mas|porém)\b")


def _outweighed(
    text: str, spans: Sequence[tuple[int, int]], chosen: Mention, made: Sequence[Mention]
) -> bool:
    """Whether a "but" in the same sentence leads from what is stated to another candidate."""
    end = next((e for s, e in spans if s <= chosen.at < e), len(text))
    return any(
        chosen.at < m.at < end and m.who != chosen.who and _BUT.search(text, chosen.at, m.at)
        for m in made
    )


def _supersedes(spans: Sequence[tuple[int, int]], before: Mention, after: Mention) -> bool:
    """Whether a later answer of the same level replaces one without saying so."""
    same_sentence = _sentence_start(spans, before.at) == _sentence_start(spans, after.at)
    return after.firm and not (same_sentence and before.firm)


def _plainly(
    text: str, spans: Sequence[tuple[int, int]], made: Sequence[Mention], top: int
) -> bool:
    """Whether mentions that conclude nothing still say one thing: the reply is short, or agrees."""
    if top == 1:
        said = [1 for start, end in spans if re.search(r"\w", text[start:end])]
        return len(said) <= 2 and len({m.who for m in made}) == 1 and "?" not in text
    if len({m.who for m in made}) == 1 or _CHANGED.search(text):
        return True
    stated = [m for m in made if m.level == 2]
    first = spans[0][1]
    if all(m.who == stated[0].who and m.at < first for m in stated):
        # said at once; other candidates are spoken of later
        return all(m.at >= first for m in made if m.who != stated[0].who)
    last = stated[-1]
    start = _sentence_start(spans, last.at)
    beside = [m for m in made if m.at >= start and m.who != last.who]
    return start == spans[-1][0] and not beside


def _taken_back(text: str, best: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether a correction after the answer weighs another candidate, or denies this one."""
    back = taken_back_at(text, best.at)
    if back is not None and not any(m.at > back and m.level >= 1 for m in mentions):
        return True
    return any(
        m.at > best.at
        and ((m.level in (0, 1) and m.who != best.who) or (m.level == -1 and m.who == best.who))
        and _CHANGED.search(text[best.at : m.at])
        for m in mentions
    )


_ONE_LEFT = _re(
    r"\bleaves? (?:us |me )?(?:with )?(?:only|just) one\b|"
    r"\bonly one\b[^.!?]{0,40}\b(?:left|remains|remaining)\b|\bby elimination\b|\bthe (?:only"
    r" )?(?:remaining|last remaining) (?:one|option)\b"
)


def _left_over(text: str, mentions: Sequence[Mention], count: int) -> int | None:
    """The only candidate that is not denied; or not even named, where one is said to be left."""
    out = {m.who for m in mentions if m.level == -1}
    if _ONE_LEFT.search(text):
        out = {m.who for m in mentions if m.level <= 1}
    rest = set(range(count)) - out
    return rest.pop() if len(rest) == 1 and count > 1 and out else None
