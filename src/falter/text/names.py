"""Names, words that a text asks about, and words to be copied: noise would change the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.records.types import Span
from falter.text.spans import merged
from falter.text.words import data_text, edit_distance, word_set

_bundled_regex = partial(named_regex, "text")


@cache
def common_words(language: str = "en") -> frozenset[str]:
    """Return about 40,000 common English words in lower case; other languages have none."""
    if language != "en":
        return frozenset()
    lines = data_text("words_en.txt").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


# Names

# The letter goes before the look behind it: a search for it is several times faster.
_CAPITALISED = _bundled_regex("capitalised")
_OPENING = _bundled_regex("sentence_opening")
_TITLES = lazy_regex(r"\b(?:Mr|Mrs|Ms|Mx|Dr|Prof|St|Sr|Jr|Gen|Col|Lt|Rev|Mt|Ft|[A-Z])\.\s\Z")
# Words that begin a sentence and are not part of a name after them: *Is Paris …*, *In France …*.
_OPENERS = word_set("sentence_openers")
_JOINT = lazy_regex(r" (?:of |of the |de |de la |von |van |van der |du |da |di |del |la |le )?")
_I_FORMS = frozenset(["I", "I'm", "I've", "I'd", "I'll", "I’m", "I’ve", "I’d", "I’ll"])
# A lower-case word that would have a capital in a headline: "tree"; not "of", "the".
_LOWER_WORD = _bundled_regex("lower_word")


def names(text: str, language: str = "en") -> tuple[Span, ...]:
    """Return the spans of names: *Eve Moreau*, *France*, *Statue of Liberty*.

    A name is made of words with a capital, and of words such as *of the* between them. A word that
    begins a sentence counts if it is not a common word or if another capital follows. In a text
    where nearly every word has a capital, only uncommon words are names. German has capitals on all
    nouns, so it has no names here.
    """
    if language == "de":
        return ()
    found = [m for m in _CAPITALISED.finditer(text) if m[0] not in _I_FORMS]
    if not found:
        return ()
    inside = [not _begins_sentence(text, match.start()) for match in found]
    if sum(inside) > 2 and _LOWER_WORD.search(text) is None:
        return tuple(m.span() for m in found if _is_uncommon(m[0], language))
    spans: list[Span] = []
    for n, match in enumerate(found):
        if inside[n] or _opens_with_name(text, found, inside, n, language):
            start, end = match.span()
            if spans and _JOINT.fullmatch(text, spans[-1][1], start):
                start = spans.pop()[0]
            spans.append((start, end))
    return tuple(spans)


def _begins_sentence(text: str, start: int) -> bool:
    """Return True if a sentence begins at `start`; False after *Mr.* or an initial."""
    if start == 0:
        return True
    before = text[max(0, start - 2) : start - 1]
    if text[start - 1] == " " and (before.isalnum() or before == ","):
        return False
    before = text[max(0, start - 12) : start]
    return _OPENING.search(before) is not None and _TITLES.search(before) is None


def _opens_with_name(
    text: str, found: Sequence[re.Match[str]], inside: Sequence[bool], n: int, language: str
) -> bool:
    """Return True if the first word of a sentence is a name or part of one."""
    word, end = found[n][0], found[n].end()
    if word.lower() in _OPENERS or len(word) == 1:
        return False
    following = n + 1 < len(found) and inside[n + 1]
    if following and _JOINT.fullmatch(text, end, found[n + 1].start()):
        return True
    return language == "en" and _is_uncommon(word, language)


def _is_uncommon(word: str, language: str) -> bool:
    low = word.lower().partition("'")[0].partition("’")[0]
    return low not in common_words(language) and low not in _OPENERS


# Words that are mentioned

# '"banana"', "‘i before e’"; not the apostrophes of "don't" and "dogs' and cats'".
_QUOTED = lazy_regex(r"""["“]([^"“”\n]{1,40})["”]|(?<!\w)['‘]([^'‘’\n]{1,30})['’](?!\w)""")
_WORD_CUES = _bundled_regex("word_cues")
_CUE_STEM = _bundled_regex("cue_stem")
_TARGET = lazy_regex(r"(?:(?:the|a|an|word|of|is|are|in)[ ]){0,3}([^\W\d_]{2,40})", re.IGNORECASE)
_LINK = lazy_regex(r"[,]? (?:or|and|vs\.?|versus) (?=[^\W\d_]{4})")
_LAST_WORD = lazy_regex(r"(?<!\w)[^\W\d_]{4,40}\Z")
_FIRST_WORD = lazy_regex(r"[^\W\d_]{4,40}(?!\w)")
_NEXT_IN_LIST = lazy_regex(r"(?:,|,? and|,? or) ([^\W\d_]{2,40})(?!\w)")


def mentioned_words(text: str) -> tuple[Span, ...]:
    """Return the spans of words that a text asks about as words.

    These are words in quotation marks, words after a cue (*letters in banana*), and pairs of
    similar words (*recieve or receive*).
    """
    spans: list[Span] = []
    if '"' in text or "“" in text or "'" in text or "‘" in text:
        spans += [match.span() for match in _QUOTED.finditer(text)]
    if _CUE_STEM.search(text) is not None:
        spans += _behind_cues(text)
    if " or " in text or " and " in text or " v" in text:
        spans += _alike_spans(text)
    return merged(spans) if spans else ()


def _behind_cues(text: str) -> Iterator[Span]:
    for cue in _WORD_CUES.finditer(text):
        target = _TARGET.match(text, cue.end())
        if target is not None:
            yield target.span(1)
            another = _NEXT_IN_LIST.match(text, target.end()) if "ords " in cue[0] else None
            if another is not None:
                yield another.span(1)


def _alike_spans(text: str) -> Iterator[Span]:
    for link in _LINK.finditer(text):
        before = _LAST_WORD.search(text, max(0, link.start() - 41), link.start())
        after = _FIRST_WORD.match(text, link.end())
        if before is None or after is None:
            continue
        first, second = before[0].lower(), after[0].lower()
        close = abs(len(first) - len(second)) < 3 and first[0] == second[0]
        if close and first != second and edit_distance(first, second) < 3:
            yield before.span()
            yield after.span()


# Words to be copied

_ANSWER_WORD = lazy_regex(r"[^\W_]{2,40}")
SHORT_ANSWER_WORDS = 5  # words; a longer answer is only searched for as a whole phrase


def copied_words(text: str, answers: Sequence[str], *, each_word: bool) -> tuple[Span, ...]:
    """Return the spans at which answers occur verbatim in a text, in any case.

    An answer may have to be put together from the text. So with `each_word`, single words of an
    answer of at most `SHORT_ANSWER_WORDS` words count as well, except short words and function
    words.
    """
    low = text.lower()
    spans: list[Span] = []
    for answer in answers:
        phrase = answer.strip().rstrip(".!?").lower()
        if len(phrase) < 2:
            continue
        spans += _occurrences(low, phrase)
        words = _ANSWER_WORD.findall(phrase) if each_word else []
        if 1 < len(words) <= SHORT_ANSWER_WORDS:
            for word in words:
                if len(word) > 3 and word not in _OPENERS:
                    spans += _occurrences(low, word)
    return merged(spans) if spans else ()


def _occurrences(text: str, phrase: str) -> Iterator[Span]:
    at = text.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            yield at, end
        at = text.find(phrase, end)
