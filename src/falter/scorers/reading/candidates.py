"""Choice of the candidate (an option, a label, yes or no) that a response gives as its answer.

A marked answer comes first (`stated`). Otherwise the answer is chosen among the candidates that the
response names without denying, doubting or excluding them (`inferred`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from falter.records.lazy_regex import lazy_regex, named_patterns, named_regex
from falter.scorers.reading.cleaning import Cleaned
from falter.scorers.reading.fields import SEVERAL_ANSWERS, set_off
from falter.scorers.reading.phrases import HAS_CJK, Row, refusal_at, tag_text
from falter.scorers.reading.reading import Reading

Span = tuple[int, int, int]
Finder = Callable[[str], list[Span]]
"""Function that returns the candidates in a plain text as (start, end, candidate index)."""

MAX_MENTIONS = 200  # last mentions in a response; with more, only a marked answer counts
NO_CANDIDATE = "the reply names no candidate"
RETRACTED = "the reply takes its answer back"

# Tags: see `phrases.TAGS`. A mark is an answer noun, then a copula or a colon, then the candidate:
# "The correct answer to this question is therefore option (B)".
_MARK = named_regex("scorers/reading", "candidate_mark")
# "Answer", then a separate line with the candidate.
_HEADED = re.compile(r"[\n.](?:v )?a\nc[\n.]")
_NAMED_RIGHT = named_regex("scorers/reading", "named_right")
# A line of a key and a value: "Team: billing".
_KEYED = re.compile(r"(?<=[\n.>])((?:[wdvae] ){0,2}[wva]):(?:[ (]d)?[ (]?c(?=[\n.,(-])")
# "It is Paris", "I choose Paris", "therefore Paris"; or "Paris is correct".
_COMMITTED = re.compile(r"[mis](?:[ ,(:-][wdva]){0,4}?[ ,(:-]c|c[ (,](?:i[ (](?:[dw][ (]){0,2})?v")
# The candidate that ends a refusal: "I can't say. But perhaps Paris."
_HEDGED = re.compile(r".[^hmc]*[hm](?:[ ,:(][hmdi])*[ ,:(]c[.?\n]\Z")
_FOR = named_regex("scorers/reading", "candidate_for")
_LEADS_TO = re.compile(r"[\n.?>:]s|>(?:. ){0,3}c")
DOUBT = frozenset("nhfrok")
UNMARKED = named_regex("scorers/reading", "unmarked")
# A correction that begins a clause, as "Paris. Wait, Rome", "but actually"; or a lone "No."
CORRECTED = re.compile(r"[.\n?,(>-]x|b[ ,]x|[.\n]n[.\n]")
_BEHIND = named_regex("scorers/reading", "behind")
# "Paris or Rome": all of them are named, and none is chosen.
_CHOICE = re.compile(r"c(?:[, (]c)*[ ,][oe][ (](?:[dwa][ (])?c")
_WEAKENED = re.compile(r"(?:[ (]c)?(?:[ ,]o|[ ,](?:d[ ])?[hj]|[ ,]f)")
_IGNORE_DENIAL = str.maketrans("nrk", "www")
_JOINED = re.compile(r"(?:[ (,:]|[ (,][oe][ (](?:[dwa][ (])?)c|\.c(?=[.\n])")
# A separate sentence that begins with "but" and refuses: "However, I cannot answer."
WITHDRAWN = re.compile(r"[.\n]b[^.\n]*[zp]")
# A long reply weighs several candidates: the first one that it affirms is often not its answer.
# A response longer than this must conclude in its last sentences.
_LONG_RESPONSE_CHARACTERS, _FINAL_SENTENCES = 400, 3
CLAUSE_TAGS = 120  # tags read before a candidate: 60 words
CLAUSE = re.compile(r"[,(](?=[^con])|[:>-]|b")


CLASH = -1  # for a mark with two candidates: a list, or a letter with another option's text


@dataclass(slots=True)
class Claim:
    """A candidate that a response marks as its answer.

    `at` is an item of the row, `who` the candidate's index or `CLASH`. A soft mark is "would be"; a
    line claim is a line or sentence that consists of the candidate.
    """

    at: int
    who: int
    is_final: bool = False
    is_soft: bool = False
    is_line: bool = False


def read_candidate(
    reply: Cleaned, find: Finder, count: int, question: str = "", *, opens: bool = False
) -> Reading[int]:
    """Return the index of the candidate that a response gives as its answer.

    `count` is the number of candidates: the last one that is not excluded may be the answer. With
    `opens`, a response that begins with a candidate states it, as "Yes, …" does.
    """
    spans = find(reply.text)[-MAX_MENTIONS:]
    reply.is_whole &= len(spans) < MAX_MENTIONS
    row = tag_text(reply.text, spans, question)
    if opens:  # "No, it is not": what follows denies something else
        row.tags = row.tags.translate(_IGNORE_DENIAL)
    alone = _bare_candidate(row)
    if alone is not None:
        return Reading(answer=alone, tier="stated")
    if (found := _set_off_candidate(reply, find)) is not None:
        return found
    if "c" not in row.tags:
        return Reading(reason=NO_CANDIDATE)
    return _prose_candidate(row, reply, find, question, count, opens)


def _bare_candidate(row: Row) -> int | None:
    """Return the candidate if a text is only that and up to three introductory words, else None."""
    rest = row.tags[1::2].replace("c", "")
    who = {v for v in row.values if v >= 0}
    if len(who) == 1 and len(rest) <= 3 and not rest.strip("dav") and "?" not in row.tags:
        return who.pop()
    return None


def only_candidate(text: str, find: Finder) -> int | None:
    """Return the candidate if a short text consists of it, else None."""
    return _bare_candidate(tag_text(text, find(text))) if len(text) < 200 else None


_TICK = lazy_regex("[✅✓✔☑]|\\[x\\]", re.IGNORECASE)
_VALUE_KEYS = named_patterns("scorers/reading")["value_keys"]


def _set_off_candidate(reply: Cleaned, find: Finder) -> Reading[int] | None:
    """Return the candidate in a box, answer tag, object or ticked line; None if there is none."""
    found = set_off(reply, lambda value: only_candidate(str(value), find), _VALUE_KEYS, None)
    if found is not None and found.answer is None and found.reason != SEVERAL_ANSWERS:
        found = found if len(reply.raw) < 300 else None
    if found is None and _TICK.search(reply.text):
        ticked = set[int]()
        for line in reply.text.split("\n"):
            ticked |= {who for _, _, who in find(line)[:2]} if _TICK.search(line) else set()
        found = Reading(answer=ticked.pop(), tier="stated") if len(ticked) == 1 else None
    return found


def _prose_candidate(
    row: Row, reply: Cleaned, find: Finder, question: str, count: int, opens: bool
) -> Reading[int]:
    """Return the candidate that prose marks or affirms."""
    # Marks come first: they count in a reply too long to be read as a whole, and before a refusal.
    claims = _marked_claims(row, question)
    if opens and row.values[0] >= 0:
        claims = [Claim(0, row.values[0]), *(c for c in claims if c.at and not c.is_soft)]
        again = [m.end() // 2 - 1 for m in re.finditer(r"[.\n]c(?=[,.\n])", row.tags)]
        claims += [Claim(n, row.values[n]) for n in again if n > claims[-1].at]
    if claims:
        return _agreed_candidate(row, claims, count)
    if not reply.is_whole:
        return Reading(reason="the reply is too long, and its end marks no answer")
    refused = refusal_at(row)
    if refused is not None:
        row = _row_from(row, refused + 1)
        if _HEDGED.match(row.tags):
            return Reading(answer=max(row.values), tier="inferred")
        if not _COMMITTED.search(row.tags):
            return Reading(reason="the reply declines to answer")
    if "p" in row.tags[1::2]:
        return Reading(reason="the reply leaves the answer open")
    found = _inferred_candidate(row, count)
    bold = {who for span in reply.bold if (who := only_candidate(span, find)) is not None}
    if len(bold) == 1 and refused is None and found.answer in (None, *bold):
        who = bold.pop()
        firm = any(who in _candidates_by_stance(row, *s)[0] for s in row.sentences())
        return Reading(answer=who, tier="stated") if firm else found
    return found if bold <= {found.answer} else Reading(reason=SEVERAL_ANSWERS)


def _marked_claims(row: Row, question: str) -> list[Claim]:
    """Return the candidates that a row marks as its answer, in order."""
    tags, claims, lines = row.tags, list[Claim](), list[Claim]()
    for first, last in row.sentences():
        start, end = 2 * first, 2 * last + 1
        part = tags[start:end]
        if "c" not in part or part[-1] == "?":
            continue
        for mark in (*_MARK.finditer(part), *_NAMED_RIGHT.finditer(part)):
            at = mark.end() - 1 if part[mark.end() - 1] == "c" else mark.start()
            before = part[: mark.start()]
            if DOUBT.isdisjoint(before[1::2]) and not UNMARKED.match(part, at):
                if _has_neighbour(row, (start + at) // 2):
                    claims.append(Claim((start + at) // 2, CLASH))
                    continue
                begin = row.spans[max(first, (start + mark.start()) // 2 - 1)][0]
                is_final = "final" in row.text[begin : begin + 40].lower()
                n, is_soft = (start + at) // 2, "j" in mark[0]
                claims.append(Claim(n, row.values[n], is_final, is_soft))
        who = {v for v in row.values[first:last] if v >= 0}
        if len(who) == 1 and not part[1::2].replace("c", "").strip("davs"):
            lines.append(Claim(last - 1, who.pop(), is_line=True))
    claims += _line_claims(row, lines)
    for mark in _HEADED.finditer(tags):
        at = (mark.end() - 2) // 2
        claims.append(Claim(at, row.values[at]))
    if question and not claims:
        claims += _keyed_claims(row, question)
    # "The answer would be A" is a mark only where there is no firmer one.
    firm = [claim for claim in claims if not claim.is_soft]
    return sorted(firm or claims, key=lambda claim: claim.at)


def _has_neighbour(row: Row, n: int) -> bool:
    """Return True if another candidate follows directly: a list, or a letter with other text."""
    behind = row.tags[2 * n + 2 : 2 * n + 12]
    if (
        behind[:1] == ":"
        and row.tags[2 * n] == ":"
        and row.values[n] not in row.values[n + 1 : n + 2]
    ):
        return True  # the first entry of a list below "the options:"
    joined = _JOINED.match(behind)
    if joined is None:
        return False
    further = n + (joined.end() + 1) // 2
    return row.values[further] != row.values[n]


def _line_claims(row: Row, lines: list[Claim]) -> Iterator[Claim]:
    """Yield the claims of the first and the last line, if all line claims name one candidate."""
    if len({claim.who for claim in lines}) != 1:
        return
    for claim in lines:
        ends = claim.at >= len(row.values) - 1 and (
            row.tags[-1] == "." or set(row.tags[2 * claim.at - 4 : 2 * claim.at + 1]) & set("\n>:")
        )
        if claim.at <= 2 or ends:
            yield claim


def _keyed_claims(row: Row, question: str) -> list[Claim]:
    """Return the candidate of the only line whose key has a word of the question: "Team: db"."""
    words = set(re.findall(r"[^\W\d_]{4,}", question.lower()))
    found = []
    for match in _KEYED.finditer(row.tags):
        first, at = match.start() // 2, (match.end() - 1) // 2
        key = row.text[row.spans[first][0] : row.spans[at - 1][1]].lower()
        if not words.isdisjoint(re.findall(r"[^\W\d_]{4,}", key)):
            found.append(Claim(at, row.values[at]))
    return found if len(found) == 1 else []


def _agreed_candidate(row: Row, claims: list[Claim], count: int) -> Reading[int]:
    """Return the candidate that all marks give, or the last one if it is a correction."""
    last = claims[-1]
    behind = row.tags[2 * last.at + 2 :]
    taken_back = CORRECTED.search(behind)
    rest = _row_from(row, last.at + 1 + (taken_back.start() // 2 if taken_back else 0))
    if taken_back:
        return _inferred_candidate(rest, count) if "c" in rest.tags else Reading(reason=RETRACTED)
    if (last.is_line and "p" in behind[1::2]) or WITHDRAWN.search(behind):
        return Reading(reason=RETRACTED)
    named = {claim.who for claim in claims}
    # A conclusion after a mark may contradict it; then it is unclear which of them counts.
    later = _concluded_candidate(rest)
    if later is not None and later not in named:
        return Reading(reason=SEVERAL_ANSWERS)
    if len(named) == 1 and last.who != CLASH:
        return Reading(answer=last.who, tier="stated")
    if CLASH in named:
        return Reading(reason=SEVERAL_ANSWERS)
    earlier = max(c.at for c in claims if c.who != last.who)
    between = row.tags[2 * earlier + 2 : 2 * last.at + 1]
    if last.is_final:
        return Reading(answer=last.who, tier="stated")
    if CORRECTED.search(between):
        return Reading(answer=last.who, tier="inferred")
    return Reading(reason=SEVERAL_ANSWERS)


def _row_from(row: Row, start: int) -> Row:
    """Return the row from the item `start` on."""
    return Row(row.text, row.tags[2 * start :], row.spans[start:], row.values[start:])


def _concluded_candidate(row: Row) -> int | None:
    """Return the candidate of the last sentence that draws a conclusion, or None."""
    found = None
    for start, end in row.sentences():
        part = row.part(start, end)
        if "c" in part and _LEADS_TO.search(part[:4]) and part[-1] != "?":
            firm = _candidates_by_stance(row, start, end)[0]
            found = next(iter(firm)) if len(firm) == 1 else found
    return found


def _inferred_candidate(row: Row, count: int) -> Reading[int]:
    """Return the only affirmed candidate, or the only candidate that is not excluded."""
    corrected = list(CORRECTED.finditer(row.tags))
    if corrected:
        row = _row_from(row, corrected[-1].end() // 2)
        if "c" not in row.tags:
            return Reading(reason=RETRACTED)
    firm, soft, out = set[int](), set[int](), set[int]()
    committed: list[int | None] = []
    bounds, at = row.sentences(), 0
    for n, (start, end) in enumerate(bounds):
        part = row.part(start, end)
        if "c" not in part or part[-1] == "?":
            continue
        at = n
        here = _candidates_by_stance(row, start, end)
        firm, soft, out = firm | here[0], soft | here[1], out | here[2]
        led = [m.end() for m in _FOR.finditer(part)]
        who = row.values[start + led[-1] // 2 - 1] if led else -1
        if who in here[0]:
            committed.append(who)
        elif len(here[0]) == 1:
            who = next(iter(here[0]))
            committed.append(who if _LEADS_TO.search(part[:4]) or _COMMITTED.search(part) else None)
        elif here[0]:
            committed.append(None)
    last = committed[-1] if committed else None
    if len(firm) > 1:
        # A candidate that is named first and excluded later is out; if all are, exclusions decide
        # nothing.
        firm = firm - out or firm
    is_long = len(row.text) > _LONG_RESPONSE_CHARACTERS
    if last is not None and last in firm and not (is_long and at < len(bounds) - _FINAL_SENTENCES):
        return Reading(answer=last, tier="inferred")
    if is_long and firm:
        return Reading(reason="a long reply that concludes nothing")
    if len(firm) == 1 and not soft - firm and (at == 0 or not count):
        return Reading(answer=firm.pop(), tier="inferred")
    if firm:
        return Reading(reason=f"the reply names {len(firm)} candidates")
    left = set(range(count)) - out
    if not soft - out and len(left) == 1:
        return Reading(answer=left.pop(), tier="inferred")
    return Reading(reason="the reply affirms no candidate")


def _candidates_by_stance(row: Row, start: int, end: int) -> tuple[set[int], set[int], set[int]]:
    """Return three sets of candidates in a sentence: affirmed, doubted and excluded."""
    firm, soft, out = set[int](), set[int](), set[int]()
    part = row.part(start, end)
    is_japanese = HAS_CJK.search(row.text) is not None
    choices = {n for m in _CHOICE.finditer(part) for n in range(*m.span())} if "c" in part else ()
    for n in range(start, end):
        who = row.values[n]
        if who < 0:
            continue
        at = 2 * (n - start) + 1
        after = part[at + 1 : at + 10]
        whole = set(part[max(0, at - CLAUSE_TAGS) : at])
        led = part[max(0, at - CLAUSE_TAGS) : at] if part[at - 1] not in ":>-" else ""
        # A "not" denies all that its own clause names, which a comma before a candidate does not
        # end: "not A, B" affirms neither.
        clause = set(CLAUSE.split(led)[-1])
        if is_japanese:  # a negation follows its word
            denied = after[1:2] in ("n", "r")
        else:
            denied = bool(clause & {"n", "r"} or _BEHIND.match(after))
        if denied:
            out.add(who)
        elif (
            clause & {"h", "o", "j", "k"}
            or ("f" in whole and "s" not in whole)
            or _WEAKENED.match(after)
            or at in choices
            or in_brackets(row, n)
        ):
            soft.add(who)
        else:
            firm.add(who)
    return firm, soft - firm, out - firm


def in_brackets(row: Row, n: int) -> bool:
    """Return True if an item is in brackets together with other words."""
    start, end = row.spans[n]
    opened = row.text.rfind("(", max(0, start - 150), start)
    if opened < 0 or row.text.rfind(")", opened, start) >= 0:
        return False
    closed = row.text.find(")", end, end + 150)
    return closed - opened > end - start + 4
