"""Which one of a closed set a text settles on.

Every mention of a candidate has been replaced by one character (`token`), so that the words around
it can be looked at in any language. A mention is denied, weighed or made; what is made has a level:
marked as the answer, concluded, stated, or merely there. The last one of the highest level counts,
unless something later takes it back or leaves it open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from falter.scorers.reading._cleaning import is_cut
from falter.scorers.reading._refusals import asks_back, refusal_in
from falter.scorers.reading._words import (
    ADVERSATIVE,
    COMMIT,
    CONCLUSION,
    CORRECTION,
    EARLIER,
    FINAL,
    JOINED,
    LEAN,
    NEGATION,
    NEGATION_AFTER,
    OPEN,
    SOFT,
    SOFT_AFTER,
)

__all__ = ["ANY", "CLASH", "MOST", "sentences", "settled", "sole", "token", "who"]

_WINDOW = 120  # characters around a mention that are looked at
_MOST_MENTIONS = 100
_BASE, _INFLECTED = 0xE000, 0xF000
MOST = _INFLECTED - _BASE - 1
CLASH = chr(_INFLECTED - 1)
"""Stands for a letter followed by another option's text."""
ANY = "[\ue000-\uf8ff]"
_QUOTE = "[\"'“”„«»‘’(\\[*_「」『』]"
_DRESS = "[\\s\"'“”„«»‘’()\\[\\]*_.,:;!`{}<>「」『』。、✅✓✔☑👉🎉•–—-]"


def token(index: int, *, inflected: bool = False) -> str:
    """The character for a mention of the candidate with this index."""
    return chr((_INFLECTED if inflected else _BASE) + index)


def who(char: str) -> int:
    """The candidate that a character stands for; -1 for a clash."""
    if char == CLASH:
        return -1
    code = ord(char)
    return code - (_INFLECTED if code >= _INFLECTED else _BASE)


def sole(text: str) -> int | None:
    """The candidate that a short text names, and nothing else with it."""
    found = {who(c) for c in re.findall(ANY, text)}
    if len(found) != 1 or not re.fullmatch(rf"{_DRESS}*{ANY}{_DRESS}*(?:{ANY}{_DRESS}*)?", text):
        return None
    index = found.pop()
    return None if index < 0 else index


@dataclass(frozen=True, slots=True)
class _Mention:
    at: int
    who: int
    level: int  # 4 marked, 3 concluded, 2 stated, 1 merely there, 0 weighed, -1 denied


def _re(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


_FILLER = (
    r"(?:\s|the|an?|my|of|one|option|answer|choice|label|category|class|tag|letter|queue|number"
    r"|called|itself|simply|just|quite|rather|very|only|probably|likely|most likely|definitely"
    r"|clearly|therefore|really|still|indeed"
    r"|die|der|das|dem|den|ein|eine|einer|wohl|option|la|le|les|l'|un|une|el|los|il|lo|uno|una"
    r"|de|het|een|o|a|um|uma|opción|opzione|optie|opção|réponse|antwort|respuesta|risposta"
    r"|antwoord|resposta|type)"
)
_LEADING = rf"(?:{_FILLER}*\s*{_QUOTE}*\s*)"
_BOUNDARY = _re(r"[;:—–。]|\s-\s|,\s(?=(?:so|but|and|which|aber|mais|pero|ma|also)\b)|,|、")
_MARKED = _re(r"(?:^|\n)[\W_]*(?:\d+[.)]\s*)?(?:", FINAL, rf"){_LEADING}$")
_CONCLUDED = _re(
    CONCLUSION,
    rf"[\s,:：*_-]*(?:(?:{COMMIT}|it|this|this one|them|him|her|that|ticket"
    rf"|one)[\s:,]*){{0,3}}{_LEADING}$",
)
_STATED = _re(COMMIT, rf"[\s:：*_]*{_LEADING}$")
_TICK = re.compile(r"^[\s*_•-]*[✅✔☑👉][\s*_]*$")
_WOULD = _re(r"^[\s\"*_]*(?:that|this|it)(?: would|'d) be\b")
_DENIED = _re(NEGATION)
_DENIED_AFTER = _re(NEGATION_AFTER)
_BUT = _re(ADVERSATIVE)
_WEIGHED = _re(SOFT)
_EARLIER = _re(EARLIER)
_LEANS = _re(rf"(?:{LEAN})[^.!?]{{0,40}}$")
_OR_MAY = _re(
    r"\b(?:but|though|although|however|or|aber|mais|pero|ma|maar"
    r"|mas)\b[^.!?\ue000-\uf8ff]{0,30}\b(?:might|may|could|perhaps|maybe|possibly|könnte"
    r"|pourrait|podría|potrebbe|poderia)\b[^.!?\ue000-\uf8ff]{0,20}$"
)
_WEIGHED_AFTER = _re(SOFT_AFTER)
_OPENED = _re(OPEN)
_CHANGED = _re(CORRECTION)
_JOIN = re.compile(rf"(?<={ANY}){JOINED}(?={ANY})", re.IGNORECASE)
_IF = _re(
    r"\b(?:if|unless|otherwise|assuming|provided that|wenn|falls|sofern|tenzij|à moins|a menos"
    r"|a meno)\b"
)
_IDIOM = _re(
    r"\bif (?:you ask|i had to|i must|pressed|i ever|you want|you (?:need|would like)|anything"
    r"|i'm (?:right|not)|i may|i am|any)|\beven if\b|\bas if\b"
)
_CONFIRMED = _re(
    r"['\"”»)\]*_]*\s*(?:,?\s*(?:then|it is|it will be|it must be|i'd say|i would say|i think|i "
    r"guess|i believe|naturally|obviously)\s*[.!,;:]"
    r"|(?:it is|is it)\b|(?:is|was|would be|seems|being) (?:the |my )?(?:\w+ )?(?:one|answer"
    r"|choice|option|label|match|pick|winner|correct|right|best|only|odd|most)\b"
    r"|(?:team |queue |desk |department )?(?:should|must|has to|will|can) (?:handle|take|deal"
    r"|get|receive)\b|(?:is|was|seems) (?:correct|right|best|what|left|where|how|it)\b|(?:fits"
    r"|wins|applies|remains|follows|matches)\b|ist (?:richtig|korrekt|es)|est (?:correcte?"
    r"|juste|la bonne)"
    r"|es (?:la )?(?:correct[ao]|respuesta)|è (?:corrett[ao]|giust[ao])|is (?:juist|correct)|é "
    r"(?:a )?(?:corret[ao]|resposta))"
    r"|\s*(?:です|にします|に分類|が正解|が正しい|と判断|だと思|となります|になります)"
)
_SENTENCE = re.compile(r"[.!?…]+[\"'”»)\]]*(?=\s|$)|[。！？]|\n+|;\s")


def sentences(text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    for match in _SENTENCE.finditer(text):
        if match.end() > start:
            spans.append((start, match.end()))
            start = match.end()
    if start < len(text):
        spans.append((start, len(text)))
    return [s for s in spans if text[s[0] : s[1]].strip()]


def _denied(left: str, right: str) -> bool:
    """Whether the words around a mention deny it."""
    clause = left[-60:]
    cut = max((m.end() for m in _BUT.finditer(clause)), default=0)
    clause = clause[cut:]
    hits = list(_DENIED.finditer(clause))
    if hits:
        between = clause[hits[-1].end() :]
        if len(between) < 45 and not re.search(
            r"[;:。—–]|[,、](?!\s*(?:or|nor|oder|ni|né)\s*$)|\bbecause\b|\bso\b", between
        ):
            return True
    return _DENIED_AFTER.match(right) is not None


_GOES_ON = _re(
    r"['\"”»)*_]*\s*(?:[,;:—–-]\s*\w|\(|(?:because|since|weil|denn|parce que|car|porque|perché"
    r"|omdat|pois)\b)"
)


def _level(
    left: str, right: str, lines: str, *, question: bool, after_question: bool, opening: bool
) -> int:
    """How firmly a mention is made, by the words before and after it."""
    if _MARKED.search(lines):
        return 4
    lead = left.strip(" \t\"'“„«*_([-•>=→👉✅❌✔☑✓✗")
    if _TICK.search(lines):
        return 3
    if re.fullmatch(rf"{_FILLER}*", lead, re.IGNORECASE) and re.fullmatch(
        rf"{_DRESS}*", right.strip()
    ):
        return 1 if question else 2 if after_question else 3
    if opening and not lead and _GOES_ON.match(right):
        return 3
    boundaries = [m.end() for m in _BOUNDARY.finditer(left)]
    clause = left[boundaries[-1] :] if boundaries else left
    bare = re.fullmatch(rf"{_DRESS}*", right) is not None
    if question:
        return 0
    if _EARLIER.search(clause):
        return 0
    if _CONCLUDED.search(left) or _CONFIRMED.match(right):
        return 3
    if _WEIGHED_AFTER.match(right) or _WEIGHED.search(clause):
        return 0
    if boundaries and not clause.strip(" \"'“„«*_([") and bare:
        return 3
    stated = _STATED.search(left) and not re.match(
        r"\s+(?:has|have|had|is|was|would|will|can)\b", right
    )
    return 2 if stated else 1


def _mentions(text: str) -> list[_Mention]:
    """The mentions of a text in order, each with its level."""
    found: list[_Mention] = []
    asked = False
    for start, end in sentences(text):
        sentence = text[start:end]
        question = sentence.rstrip("\"'”») \n").endswith(("?", "？"))
        positions = [m.start() for m in re.finditer(ANY, sentence)]
        line_start = text.rfind("\n", 0, start) + 1
        for n, at in enumerate(positions):
            left = sentence[max(0, at - _WINDOW) : at]
            right = sentence[at + 1 : at + _WINDOW].rstrip("\n")
            index, inflected = who(sentence[at]), ord(sentence[at]) >= _INFLECTED
            joined = n > 0 and _JOIN.fullmatch(sentence, positions[n - 1] + 1, at)
            own = joined and _DENIED.search(joined[0])
            if joined and not own and found and found[-1].level <= 0:
                level = found[-1].level
            elif _denied(re.sub(ANY, "x", left), right):
                level = -1
            else:
                level = _level(
                    re.sub(ANY, "x", left),
                    right,
                    re.sub(ANY, "x", text[max(line_start, start + at - _WINDOW) : start + at]),
                    question=question,
                    after_question=asked,
                    opening=not found and not text[:start].strip(),
                )
                if _conditional(sentence, at) and level < 4:
                    level = 0
            if inflected and 0 < level < 3:
                level = 1
            found.append(_Mention(start + at, index, level))
        asked = question
    return found


def _conditional(sentence: str, at: int) -> bool:
    hits = [m for m in _IF.finditer(sentence) if not _IDIOM.match(sentence, m.start())]
    return any(m.start() < at for m in hits) or any(
        m.start() > at and re.match(r"\s*,?\s*$", sentence[at + 1 : m.start()]) for m in hits
    )


def _openings(text: str, mentions: Sequence[_Mention]) -> list[int]:
    """Where an answer is left open: words that say so, and alternatives side by side."""
    found = [m.start() for m in _OPENED.finditer(text)]
    levels = {m.at: m for m in mentions}
    for match in _JOIN.finditer(text):
        one, other = levels.get(match.start() - 1), levels.get(match.end())
        if one and other and one.who != other.who and one.level >= 0 and other.level >= 0:
            found.append(match.end())
    found += [
        m.at
        for m in mentions
        if m.level >= 0
        and _OR_MAY.search(re.sub(ANY, "\ue000", text[max(0, m.at - _WINDOW) : m.at]))
    ]
    for start, end in sentences(text):
        inside = [m for m in mentions if start <= m.at < end and m.level == 0]
        marked = [m for m in mentions if m.level == 4 and m.at < start]
        if (
            inside
            and not marked
            and any(not _IDIOM.match(text, m.start()) for m in _IF.finditer(text, start, end))
        ):
            found.append(inside[-1].at)
    return found


def settled(text: str, count: int, stressed: int | None = None) -> int | None:
    """The candidate that a text settles on; None if it names none, several or leaves it open.

    `stressed` is the only candidate in bold type, which a mere mention may need to count.
    """
    if len(re.findall(ANY, text)) > _MOST_MENTIONS:
        return None
    mentions = _mentions(text)
    cut, refused = is_cut(text), refusal_in(text)
    made = [m for m in mentions if m.level > 0 and _stands(m, cut=cut, refused=refused)]
    if asks_back(text):
        made = [m for m in made if m.level >= 3]
    if cut:
        if len({m.who for m in made}) > 1:
            return None
        head = [end for _, end in sentences(text)][:2]
        made = [m for m in made if m.level == 4 or m.at < head[-1]]
    best = _last_committed(text, made, stressed)
    openings = _openings(text, mentions)
    if best is not None:
        after = [at for at in openings if at >= _sentence_start(text, best.at)]
        if after and not (best.level >= 3 and all(at < best.at for at in after)):
            return None
        if _taken_back(text, best, mentions):
            return None
        return best.who if best.who >= 0 else None
    if made or openings or cut or refused is not None or asks_back(text):
        return None
    leaning = _leaning(text, mentions)
    return _left_over(mentions, count) if leaning is None else leaning


def _leaning(text: str, mentions: Sequence[_Mention]) -> int | None:
    """The one candidate that a text leans to, with nothing else weighed against it."""
    weighed = [m for m in mentions if m.level >= 0]
    if len({m.who for m in weighed}) != 1 or "?" in text:
        return None
    start = _sentence_start(text, weighed[-1].at)
    left = re.sub(ANY, "x", text[max(start, weighed[-1].at - _WINDOW) : weighed[-1].at])
    clear = _LEANS.search(left) and not _EARLIER.search(left) and not _IF.search(text, start)
    return weighed[0].who if clear and weighed[0].who >= 0 else None


def _sentence_start(text: str, at: int) -> int:
    return next((s for s, e in sentences(text) if s <= at < e), 0)


def _stands(mention: _Mention, *, cut: bool, refused: int | None) -> bool:
    if mention.level >= 3:
        return True
    if cut:
        return False
    return refused is None or (mention.level == 2 and mention.at > refused + 40)


def _last_committed(text: str, made: Sequence[_Mention], stressed: int | None) -> _Mention | None:
    """The last mention of the highest level; two statements without a correction are none."""
    if not made:
        return None
    top = max(m.level for m in made)
    best = [m for m in made if m.level == top]
    chosen = best[-1]
    if top < 3 and stressed is not None and any(m.who == stressed for m in made):
        return [m for m in made if m.who == stressed][-1]
    if top < 3 and not _plainly(text, made, top):
        return None
    if top < 3 and len({m.who for m in best}) > 1:
        before = [m for m in best if m.who != chosen.who][-1]
        if not _CHANGED.search(text[before.at : chosen.at]):
            return None
    later = [m for m in made if m.at > chosen.at and m.who != chosen.who]
    for mention in later:
        start = _sentence_start(text, mention.at)
        if mention.level >= 2 and _CHANGED.search(
            text[max(chosen.at + 1, start - 60) : mention.at]
        ):
            chosen = mention
    return chosen


def _plainly(text: str, made: Sequence[_Mention], top: int) -> bool:
    """Whether mentions that conclude nothing still say one thing: the reply is short, or agrees."""
    spans = sentences(text)
    if top == 1:
        return len(spans) <= 2 and len({m.who for m in made}) == 1 and "?" not in text
    if len({m.who for m in made}) == 1 or _CHANGED.search(text):
        return True
    last = [m for m in made if m.level == 2][-1]
    start = _sentence_start(text, last.at)
    beside = [m for m in made if m.at >= start and m.who != last.who]
    return start == spans[-1][0] and not beside


def _taken_back(text: str, best: _Mention, mentions: Sequence[_Mention]) -> bool:
    """Whether a correction after the answer weighs another candidate, or denies this one."""
    for mention in mentions:
        if mention.at <= best.at or not _CHANGED.search(text[best.at : mention.at]):
            continue
        if (mention.level == 0 and mention.who != best.who) or (
            mention.level == -1 and mention.who == best.who
        ):
            return True
    return False


def _left_over(mentions: Sequence[_Mention], count: int) -> int | None:
    """The only candidate that is not denied."""
    denied = {m.who for m in mentions if m.level == -1}
    rest = set(range(count)) - denied
    return rest.pop() if len(rest) == 1 and count > 1 and denied else None
