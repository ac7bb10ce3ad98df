"""Extract a short free answer: "The capital of France is **Paris**." gives "Paris"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.scorers.reading.candidates import CORRECTED, DOUBT
from falter.scorers.reading.cleaning import Cleaned, clean, is_cut
from falter.scorers.reading.fields import set_off
from falter.scorers.reading.labels import folded
from falter.scorers.reading.numbers import read_number
from falter.scorers.reading.phrases import Row, all_stop_words, refusal_at, tag_text
from falter.scorers.reading.reading import Reading
from falter.text.words import sentences

MAX_WORDS = 8  # of an answer
MAX_SPAN = 400  # characters read after a mark, in the same sentence
_ASKS_FOR_NUMBER = named_regex("scorers/reading", "asks_for_number")
_MAX_BARE_WORDS = 6  # maximum words of a response that is only an answer, without a verb
_QUESTION_END = 1_000  # characters read at the end of a question, which follows its passage
_EDGES = " \t\r\n\"'“”‘’«»„`*_.,;:!。、()[]"
# "The answer to the question is", "Answer:": an answer noun, a few words, then a copula or a colon.
_ANSWER_MARK = re.compile(r"a(?:[ (][wdvae]){0,6}?(?:[ ,][ij](?:[ ][sd](?=[ ,:]))?|[:>-])")
_REASON = named_regex("scorers/reading", "reason")
_POLITE = named_regex("scorers/reading", "polite")
_LEAD = named_regex("scorers/reading", "lead")
# "It depends", "They’re red": a sentence, and no answer by itself; not "Italy".
_PRONOUN = lazy_regex(r"\A(?:it|he|she|they|this|that|there|i|we|you)['’\s]", re.IGNORECASE)
_BY = named_regex("scorers/reading", "by_whom")
_PASSIVE = named_regex("scorers/reading", "passive")
_NAMING = lazy_regex(r"\A(?:called|named|known as|held in|made of|made with)\s", re.IGNORECASE)
# "located in the Alps": the answer is what follows.
_VERB_FIRST = lazy_regex(r"\A[a-zà-ÿ]+\s(?:in|at|on|for|from|to|as|im|am|en|à|nel|op)\s(?:the )?")
_TIME = named_regex("scorers/reading", "time")
_ARTICLE = re.compile(r"\A[Oo]\s")  # Portuguese; "o" is also a word for "or"
_QUOTED = lazy_regex(r"[\"“„«「][^\"”“»」\n]*[\"”“»」]")
_OPENER = named_regex("scorers/reading", "opener")
_AFTERTHOUGHT = named_regex("scorers/reading", "afterthought")
_DESCRIPTION = named_regex("scorers/reading", "description")
_COPULA_AT_END = lazy_regex(r"(?:です|でした|である|だ)\Z")
# Points, apostrophes and hyphens inside a word are part of it: O'Neill, well-known.
_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*")
_VALUE_KEYS = r"answer|result|response|antwort|réponse|respuesta|risposta|antwoord|resposta|final"


def read_answer(reply: str, question: str = "", *, cut: bool = False) -> Reading[str]:
    """Return the short answer that a response marks, or that a sentence gives to the question.

    With `cut` (a truncated response), only a marked answer, a short line or a guess counts.
    """
    cleaned = clean(reply)
    if cleaned.reason:
        return Reading(reason=cleaned.reason)
    found = set_off(cleaned, _value_text, _VALUE_KEYS)
    if found is not None:
        return found
    cleaned.text = _POLITE.sub("", cleaned.text)
    tagged = tag_text(cleaned.text, (), question)
    marked = list(_marked_answers(tagged))
    if marked:
        return _agreed_answer(tagged, marked)
    if not cleaned.is_whole:
        return Reading(reason="the reply is too long, and its end marks no answer")
    if (refused := refusal_at(tagged)) is not None or "u" in tagged.tags:
        guess = _guessed_answer(tagged, tagged.tags.find("u") // 2 if refused is None else refused)
        if guess is not None:
            return Reading(answer=guess, tier="inferred")
    if refused is not None:
        return Reading(reason="the reply declines to answer")
    if "p" in tagged.tags[1::2] or tagged.tags[-1] == "?":
        return Reading(reason="the reply leaves the answer open")
    question_stems = _stems(_asking_part(question))
    if (alone := _bare_answer(tagged, cleaned, question_stems)) is not None:
        return Reading(answer=_without_preposition(alone, question), tier="stated")
    if (bold := _bold_answer(cleaned.bold, question_stems)) is not None:
        return Reading(answer=bold, tier="stated")
    if cut or is_cut(cleaned.text):
        return Reading(reason="the reply was cut off before it marked an answer")
    if CORRECTED.search(tagged.tags):
        return Reading(reason="the reply corrects itself")
    if _ASKS_FOR_NUMBER.search(question):
        number = read_number(reply, question, cut=cut)
        if number.answer is not None:
            return Reading(answer=format(number.answer, "f"), tier="inferred")
    told = _added_words(cleaned.text, question_stems)
    if told is None or _DESCRIPTION.match(told):
        return Reading(reason="the reply does not settle on one short answer")
    return Reading(answer=_without_preposition(told, question), tier="inferred")


def _without_preposition(answer: str, question: str) -> str:
    """Return an answer without the preposition that also begins the question: "In which …?"."""
    first, _, rest = answer.partition(" ")
    return rest if rest and _low_words(question)[:1] == [folded(first)] else answer


_GUESS = re.compile(r".[^hm]*?[hm](?:[ ,:(][hmdi])*[ ,:(]w(?: w){0,3}[.?\n]\Z")


def _guessed_answer(row: Row, at: int) -> str | None:
    """Return the name or number that a hedge ends with: "I don't know, maybe Nairobi?"."""
    if not _GUESS.match(row.tags, 2 * at + 2):
        return None
    words = len(row.tags) // 2 - (max(row.tags.rfind(tag) for tag in "hmdi") + 1) // 2
    answer = _short_answer(row.text[row.spans[-words][0] :].strip(" ?\n"))
    return answer if answer and not answer[0].islower() else None


def _asking_part(question: str) -> str:
    """Return the last sentence of a question that ends in "?"; without one, the end of the text.

    Quotations are removed, because their words may be the answer.
    """
    text = _QUOTED.sub(" ", question[-_QUESTION_END:])
    asking = [text[s:e] for s, e in sentences(text) if text[s:e].rstrip().endswith(("?", "？"))]
    return asking[-1] if asking else text


def _trimmed(text: str) -> str:
    text = text.strip().strip(_EDGES if not re.fullmatch(r"\W+", text.strip()) else " ")
    text = _COPULA_AT_END.sub("", text)
    return " ".join(text.split())


def _value_text(value: object) -> str | None:
    """Return a JSON value as a short answer, or None."""
    return _short_answer(str(value)) if isinstance(value, (str, int, float)) else None


def _short_answer(text: str) -> str | None:
    """Return a trimmed answer; None if it is empty, longer than 8 words or 200 characters."""
    text = _trimmed(text)
    return text if text and len(text.split()) <= MAX_WORDS and len(text) <= 200 else None


def _marked_answers(row: Row) -> Iterator[tuple[int, str]]:
    """Yield (offset, answer) for each mark such as "The answer is Paris."."""
    bounds = list(sentences(row.text))
    for first, last in row.sentences():
        part = row.part(first, last)
        if part[-1] == "?" or "a" not in part[1::2]:
            continue
        mark = next(iter(_ANSWER_MARK.finditer(part)), None)
        if mark is None or not DOUBT.isdisjoint(part[: mark.start()][1::2]):
            continue
        start = row.spans[first + (mark.end() - 2) // 2][1]
        colon = mark[0][-1] in ":>-"
        if colon and row.tags[2 * (first + mark.start() // 2)] not in "\n.>" and "i" not in mark[0]:
            words = row.text[: row.spans[first + mark.start() // 2][0]].rpartition("\n")[2]
            if len(words.split()) > 4:
                continue
        end = next((e for s, e in bounds if s <= start < e), len(row.text))
        if colon:
            rest = row.text[start : start + MAX_SPAN].lstrip(" \t:*=→⇒>-—–\n")
            text = rest.partition("\n")[0]
            inside = [text[s:e] for s, e in sentences(text)[:1]]
            text = inside[0] if inside else text
        else:
            text = row.text[start : min(end, start + MAX_SPAN)].lstrip(" \t:*").partition("\n")[0]
        if set(part[mark.end() :][:3]) & set("nro"):
            continue
        if (quoted := _QUOTED.match(text)) is not None:
            text = quoted[0]
        answer = _short_answer(text) or _short_answer(_REASON.sub("", text))
        said = tag_text(text).tags[1::2]
        led = row.text[max(0, start - 5) : start].lower() == " that"
        if (
            answer is not None
            and not led
            and not text.lower().startswith(("that ", "not "))
            and ("i" not in said or len(said) < 4)
        ):
            tail = (
                _short_answer(_REASON.sub("", answer))
                if not colon or "," in answer[12:]
                else answer
            )
            yield start, tail or answer


def _agreed_answer(row: Row, marked: list[tuple[int, str]]) -> Reading[str]:
    """Return the answer that all marks give, or the last answer if it is a correction."""
    at, last = marked[-1]
    behind = tag_text(row.text[at:]).tags
    if CORRECTED.search(behind):
        return Reading(reason="the reply takes its answer back")
    if len({folded(answer) for _, answer in marked}) == 1:
        return Reading(answer=last, tier="stated")
    if "final" in row.text[max(0, at - 30) : at].lower():
        return Reading(answer=last, tier="stated")
    between = tag_text(row.text[marked[-2][0] : at]).tags
    if CORRECTED.search(between):
        return Reading(answer=last, tier="inferred")
    return Reading(reason="two different answers are marked")


def _stems(text: str) -> frozenset[str]:
    """Return the first five letters of each word that is not a stop word."""
    # Five letters identify a word in all its forms, in eight languages and without dictionaries.
    known = all_stop_words()
    return frozenset(w[:5] for w in _low_words(text) if w not in known)


def _low_words(text: str) -> list[str]:
    return [folded(w) for w in _WORD.findall(text)]


def _bare_answer(row: Row, cleaned: Cleaned, asked: frozenset[str]) -> str | None:
    """Return the only or first line of a response if it is a short answer and no sentence."""
    line, _, rest = cleaned.text.partition("\n")
    line = _AFTERTHOUGHT.sub("", line.strip())
    pieces = [line[s:e] for s, e in sentences(line)]
    opens = bool(rest.strip()) or any(re.match(r"\W*[A-Z]", piece) for piece in pieces[1:])
    if opens:  # more follows: it must not be a heading, a greeting or an answer that is taken back
        line = pieces[0] if pieces else line
        heads = line.endswith("!") or cleaned.raw.startswith("#") or line.rstrip(".)").isdigit()
        if heads or len(_low_words(line)) > 4 or _OPENER.search(line) or CORRECTED.search(row.tags):
            return None
    head, colon, value = line.partition(":")
    if colon and _stems(head) and _stems(head) <= asked and value.strip():
        line = value.strip()  # "Company: Norvik", of a question for the company
    if _PRONOUN.match(line) and not _LEAD.match(line):
        return None
    body = re.sub(r"\s\([^()]*\)\W*\Z", "", _ARTICLE.sub("", _LEAD.sub("", line)))
    words = _low_words(body)
    tags = tag_text(body).tags[1::2]
    if not words and body.strip():
        return body.strip() if len(body.strip()) <= 12 else None
    if len(words) > _MAX_BARE_WORDS or set(tags) & set("nhoxpzj") or line.endswith(("?", ":")):
        return None
    repeats = _stems(body) & asked
    if "i" in tags or (repeats and (opens or len(words) > 3)):
        return None
    return _short_answer(body)


def _bold_answer(marked: Sequence[str], asked: frozenset[str]) -> str | None:
    """Return the only short span in bold that does more than repeat the question."""
    spans = {folded(_trimmed(span)): _trimmed(span) for span in marked}
    fresh = [span for span in spans.values() if len(_stems(span) & asked) * 2 <= len(_stems(span))]
    if len(fresh) != 1 or marked[0].rstrip().endswith(":") or len(fresh[0].split()) > 6:
        return None
    return _short_answer(fresh[0])


def _added_words(text: str, asked: frozenset[str]) -> str | None:
    """Return the answer in the sentence that repeats the most words of the question."""
    if not asked:
        return None
    best, share = "", 0.0
    for start, end in sentences(text)[:6]:
        sentence = text[start:end]
        found = len(_stems(sentence) & asked) / len(asked)
        if found > share and not sentence.endswith("?"):
            best, share = sentence, found
    if share < 0.3:
        return None
    if set(tag_text(best).tags[1::2]) & set("nofpj") or _DOUBTED.search(best):
        return None
    return _added_part(best, asked)


_DOUBTED = lazy_regex(r"\b(?:might|could|maybe|perhaps|possibly|may|thought|seems?)\b", re.I)


def _added_part(sentence: str, asked: frozenset[str]) -> str | None:
    """Return the part of a sentence before or after its copula that the question lacks."""
    row = tag_text(sentence)
    copulas = [n for n, tag in enumerate(row.tags[1::2]) if tag in "i"]
    by = next((m for m in _BY.finditer(sentence) if _PASSIVE.search(sentence, 0, m.start())), None)
    if by and _stems(sentence[: by.start()]) & asked and not copulas[1:]:
        agent = _TIME.sub("", _REASON.sub("", sentence[by.end() :]))
        if agent[:1].isupper():  # "von Goethe geschrieben"
            agent = re.sub(r"(?:\s[a-zß-ÿ]+)+\W*\Z", "", agent)
        return _short_answer(agent)
    for n in copulas:
        before, after = sentence[: row.spans[n][0]], sentence[row.spans[n][1] :]
        told, said = _stems(before), _stems(after)
        repeated = said & asked and not said - asked
        enough = len(told & asked) * 2 >= len(asked) or (told and told <= asked)
        if enough and len(told & asked) >= len(said & asked):
            after = _NAMING.sub("", _REASON.sub("", after).strip())
            head, _, tail = after.partition(" of ")
            after = tail if tail and frozenset() < _stems(head) <= asked else after
            return None if repeated else _short_answer(_VERB_FIRST.sub("", after))
        if told - asked and len(said & asked) * 2 >= min(len(asked), len(said)) and said & asked:
            head = _LEAD.sub("", before)
            return _short_answer(head.rpartition(",")[2] if "," in head else head)
    return None if copulas else _only_new_words(sentence, asked)


def _only_new_words(sentence: str, asked: frozenset[str]) -> str | None:
    """Return the only run of words that the question does not have: "Tokyo hosted the Games"."""
    known, runs, last = all_stop_words(), list[tuple[int, int]](), False
    for match in _WORD.finditer(sentence):
        word = folded(match[0])
        if word in known:
            continue
        is_new = word[:5] not in asked
        if is_new and last:
            runs[-1] = (runs[-1][0], match.end())
        elif is_new:
            runs.append(match.span())
        last = is_new
    share = len(_stems(sentence) & asked) / len(asked)
    return (
        _short_answer(_REASON.sub("", sentence[slice(*runs[0])]))
        if len(runs) == 1 and share > 0.5
        else None
    )
