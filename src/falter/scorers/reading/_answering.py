"""The candidate of the clause that answers its question, where nothing else gives one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from falter.scorers.reading._clauses import is_question, sentences
from falter.scorers.reading._cleaning import answer_part, boxed, is_cut, plain
from falter.scorers.reading._mentions import ANY, mentions_in, who
from falter.scorers.reading._refusals import asks_back, refusal_in
from falter.scorers.reading._restated import DENIAL, HEDGED, content_words
from falter.scorers.reading._text_words import same_noun
from falter.scorers.reading._words import CORRECTION, OPEN
from falter.scorers.reading._wrapped import objects

_APART = re.compile(
    r"[,;:—]\s|\s(?:and|but|while|whereas|und|aber|während|et|mais|tandis que|y|pero|mientras|e|ma"
    r"|mentre|en|maar|terwijl|mas|enquanto)\s",
    re.IGNORECASE,
)
_UNSURE = re.compile(rf"{OPEN}|{CORRECTION}", re.IGNORECASE)
_MOST_SENTENCES = 4


def plain_answer(reply: str, mark: Callable[[str], str]) -> str | None:
    """A short reply in prose that is whole and says nothing firm of any candidate."""
    text = plain(answer_part(reply) or "")
    if not text or boxed(reply) or objects(text) or len(sentences(text)) > _MOST_SENTENCES:
        return None
    if is_cut(text) or asks_back(text) or refusal_in(text) is not None or _UNSURE.search(text):
        return None
    return None if any(m.level > 2 or m.who < 0 for m in mentions_in(mark(text))) else text


def by_question(text: str, mark: Callable[[str], str], question: str) -> int | None:
    """The only candidate in a clause that says most of what the question asks about."""
    wanted = content_words(question)
    least = 0.6 if len(wanted) > 2 else 1.0
    if len(wanted) < 2 or DENIAL.search(question[-300:]):
        return None
    firm, others = list[tuple[set[int], frozenset[str]]](), list[tuple[set[int], frozenset[str]]]()
    for start, end in sentences(text):
        sentence = text[start:end]
        for clause in _APART.split(sentence):
            named = {who(c) for c in re.findall(ANY, mark(clause))}
            words = _shared(clause, wanted)
            share = len(words) / len(wanted)
            plainly = not (is_question(sentence) or DENIAL.search(clause) or HEDGED.search(clause))
            if named and share >= least and plainly:
                firm.append((named, words))
            elif named and share > 0.3:
                others.append((named, words))
    answers = set[int]().union(*(named for named, _ in firm))
    said = frozenset[str]().union(*(words for _, words in firm))
    rivals = [words for named, words in others if named - answers and not words < said]
    return answers.pop() if len(answers) == 1 and not rivals else None


def _shared(clause: str, wanted: Sequence[str]) -> frozenset[str]:
    """The words of a question that a clause has."""
    words = content_words(clause)
    return frozenset(x for x in wanted if any(same_noun(w, x) for w in words))
