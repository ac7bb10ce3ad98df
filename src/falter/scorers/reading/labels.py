"""Extraction of the label of a closed set, or of yes or no, from a response."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from itertools import islice

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.scorers.reading.candidates import MAX_MENTIONS, Finder, Span, read_candidate
from falter.scorers.reading.cleaning import clean, is_cut
from falter.scorers.reading.phrases import LANGUAGES, phrases
from falter.scorers.reading.reading import Reading

MAX_LABELS = 200  # labels of one set
_WORD = named_regex("scorers/reading", "word")
# Characters between two words of a label: "follow-up", "follow up", "Follow_Up".
_GAP_CHARACTERS = frozenset(" \t\n_/-'\"’,;.()&:*")
_MAX_GAP = 5  # characters between two words of a label
_AND_WORDS = frozenset(["and", "und", "et", "y", "e", "en"])
_ENDINGS = ("ment", "ness", "tion", "ion", "ing", "ly", "ed", "os", "as", "o", "a", "e", "d", "s")
_INFLECTION_WORDS = " s es d ed ly al ally ing er e n en r o a os as ness tion ion ment able ive"
_INFLECTIONS = frozenset(_INFLECTION_WORDS.split(" "))
_SHORT_LABEL_LETTERS = 3  # letters; a label up to this length that has capitals must match in case
_STEM_LETTERS = 4  # first letters by which inflected labels are looked up
_NEGATING_PREFIXES = ("in", "un", "im", "ir", "dis", "non")


def folded(text: str) -> str:
    """Return a text in lower case without accents, character by character."""
    low = text.lower()
    if low.isascii() and len(low) == len(text):
        return low
    return "".join(map(_folded_character, text))


@lru_cache(maxsize=4096)
def _folded_character(char: str) -> str:
    base = unicodedata.normalize("NFD", char.lower())[:1]
    # One character for one, so that places stay. Kana keep their marks: か and が are two sounds.
    return base if len(base) == 1 and base < "\u3040" else char


def _label_words(label: str) -> tuple[str, ...]:
    words = _WORD.findall(folded(label))
    return tuple(w for n, w in enumerate(words) if n == 0 or w not in _AND_WORDS)


class _LabelIndex:
    """A search index of labels by first word, and of one-word labels by first letters."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.by_word: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        self.by_stem: dict[str, list[tuple[str, str, int]]] = {}
        self.symbols: list[tuple[str, int]] = []
        names = [folded(label) for label in labels]
        self.names = {name.strip(" .\"'`*"): n for n, name in enumerate(names)}
        for n, label in enumerate(labels):
            words = _label_words(label)
            if not words or any(c in "<>{}[]=^|\\" for c in label):
                self.symbols.append((label, n))
                continue
            self._add(words, n)
            if len(words) > 1 and words[0].isalpha() and len(label) <= 30:
                # "follow-up" is also written "followup".
                self._add(("".join(words),), n)
            if len(words) == 1 and words[0].isalpha() and len(words[0]) > _SHORT_LABEL_LETTERS:
                stem = _stem(words[0])
                # A stem that begins two labels identifies neither.
                if not any(other != words[0] and other.startswith(stem) for other in names):
                    self.by_stem.setdefault(stem[:_STEM_LETTERS], []).append((stem, words[0], n))
                if len(labels) == 2:
                    for prefix in _NEGATING_PREFIXES:
                        # With two labels, "unhelpful" denies "helpful" and so means the other.
                        if prefix + words[0] not in names:
                            self._add((prefix + words[0],), 1 - n)
        for found in self.by_word.values():
            found.sort(key=lambda entry: -len(entry[0]))

    def _add(self, words: tuple[str, ...], n: int) -> None:
        self.by_word.setdefault(words[0], []).append((words[1:], n))

    @cached_property
    def longest(self) -> int:
        """Maximum number of words of a label in a text, with an "and" before each further word."""
        rests = (rest for known in self.by_word.values() for rest, _ in known)
        return 1 + 2 * max(map(len, rests), default=0)

    def find(self, text: str) -> list[Span]:
        """Return the labels in a text as (start, end, label index)."""
        low = folded(text)
        if len(text) < 200:
            name = low.strip(" .\"'`*")
            n = self.names.get(name, self.names.get(name.replace("-", "")))
            if n is not None:
                return [(0, len(text), n)]
        by_word, by_stem, found, behind = self.by_word, self.by_stem, list[Span](), 0
        hits = [
            m for m in _WORD.finditer(low) if m[0] in by_word or m[0][:_STEM_LETTERS] in by_stem
        ]
        for hit in hits:
            if hit.start() < behind:
                continue
            further = islice(_WORD.finditer(low, hit.start()), self.longest)
            words = [(m.start(), m.end(), m[0]) for m in further]
            count, who = self._match(low, words, 0)
            if count and self._has_right_case(text, words[0][0], words[count - 1][1], who):
                behind = words[count - 1][1]
                found.append((hit.start(), behind, who))
        return self._with_symbols(text, found) if self.symbols else found

    def _with_symbols(self, text: str, found: list[Span]) -> list[Span]:
        """Return the found labels plus labels that are formulas or signs, longest first."""
        taken = list[Span]()
        for label, n in sorted(self.symbols, key=lambda entry: -len(entry[0])):
            start = text.find(label)
            while start >= 0 and len(taken) < MAX_LABELS:
                end = start + len(label)
                beside = (
                    text[max(0, start - 1) : start] + label[:1],
                    label[-1:] + text[end : end + 1],
                )
                joined = any(len(pair) == 2 and pair.isalnum() for pair in beside)
                if not joined and not any(s < end and start < e for s, e, _ in taken):
                    taken.append((start, end, n))
                start = text.find(label, end)
        free = [f for f in found if not any(s < f[1] and f[0] < e for s, e, _ in taken)]
        return sorted([*taken, *free])

    def _match(self, low: str, words: list[tuple[int, int, str]], at: int) -> tuple[int, int]:
        """Return the word count and index of the longest label at a word, or (0, -1)."""
        word = words[at][2]
        for rest, n in self.by_word.get(word, ()):
            end = at
            for wanted in rest:
                end += 1
                # "billing and refunds", for a label that has another sign between the words.
                if end < len(words) and words[end][2] in _AND_WORDS:
                    end += 1
                if end >= len(words) or words[end][2] != wanted:
                    break
                gap = low[words[end - 1][1] : words[end][0]]
                if len(gap) > _MAX_GAP or not _GAP_CHARACTERS.issuperset(gap):
                    break
            else:
                return end - at + 1, n
        for stem, _, n in self.by_stem.get(word[:_STEM_LETTERS], ()):
            if word.startswith(stem) and word[len(stem) :] in _INFLECTIONS:
                return 1, n
        return 0, -1

    def _has_right_case(self, text: str, start: int, end: int, who: int) -> bool:
        """Return False if a short label occurs in another case inside a text: "go" is not Go."""
        label = self.labels[who]
        if len(label) > _SHORT_LABEL_LETTERS or label == label.lower() or len(text) <= 20:
            return True
        return text[start:end] == label


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= (_STEM_LETTERS + (len(ending) > 2)):
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=256)
def _label_index(labels: tuple[str, ...]) -> _LabelIndex:
    return _LabelIndex(labels)


def label_finder(labels: Sequence[str]) -> Finder:
    """Return a finder that ignores case, accents, separators and endings of labels."""
    return _label_index(tuple(labels)).find


def read_label(
    reply: str, labels: Sequence[str], question: str = "", *, cut: bool = False
) -> Reading[str]:
    """Return the label that a response gives as its answer, as written in `labels`.

    With `cut` (a truncated response), only a `stated` answer counts.
    """
    if not labels or len(labels) > MAX_LABELS:
        return Reading(reason=f"a label cannot be read among {len(labels)}")
    cleaned = clean(reply, keeps_tags=any("<" in label for label in labels))
    if cleaned.reason:
        return Reading(reason=cleaned.reason)
    found = read_candidate(cleaned, label_finder(labels), len(labels), question)
    if found.answer is None:
        return Reading(reason=found.reason)
    if found.tier == "inferred" and (cut or is_cut(cleaned.text)):
        return Reading(reason="the reply was cut off before it marked an answer")
    return Reading(answer=labels[found.answer], tier=found.tier)


# Yes or no.


_STRONG_WORDS = (
    "yes no ja nein oui non sí sì sim não nee nope yep yeah はい いいえ si nao incorrect"
)
_STRONG = frozenset(_STRONG_WORDS.split())
"""Words that are an answer even if the sentence continues: "No it is not"."""
_YES_NO_OPENING = named_regex("scorers/reading", "opens")
# The end of a one-word answer. ".", ", because", "⏎", " — so", '"'; not " it", "-one".
_CLAUSE_END = lazy_regex(r"[\s\"'*_”»)\]]*(?:\Z|[.,!;:\n—–|。、」}…=]|-\W)", re.IGNORECASE)
_GOES_ON = named_regex("scorers/reading", "goes_on")
_IDLE_WORDS = named_regex("scorers/reading", "idle")
_BOTH = named_regex("scorers/reading", "both")


@cache
def _yes_no_index() -> _LabelIndex:
    """Return an index of the phrases that mean yes or no, in all languages."""
    index = _LabelIndex(())
    for language in LANGUAGES:
        for n, name in enumerate(("yes", "no")):
            for phrase in phrases(language, name):
                words = tuple(_WORD.findall(folded(phrase)))
                if all(known[0] != words[1:] for known in index.by_word.get(words[0], ())):
                    index.by_word.setdefault(words[0], []).append((words[1:], n))
    for found in index.by_word.values():
        found.sort(key=lambda entry: -len(entry[0]))
    index.labels = ("yes", "no")
    return index


def _find_yes_no(text: str) -> list[Span]:
    """Return the words for yes and no in the positions of an answer, as spans."""
    found, asides = list[Span](), list[Span]()
    for start, end, who in _yes_no_index().find(text)[-2 * MAX_MENTIONS :]:
        before, word = text[max(0, start - 80) : start], text[start:end].lower()
        if not _YES_NO_OPENING.search(before[-30:]) or _IDLE_WORDS.match(text, end):
            continue
        inside = before.endswith(", ")
        if inside and (word not in _STRONG or _CONTRAST.match(text, end)):
            continue
        goes_on = word in _STRONG and _GOES_ON.match(text, end) and not text.startswith(" es ", end)
        if _CLAUSE_END.match(text, end) or goes_on:
            own = _OWN_ANSWER.search(before) and not text[end : end + 2].strip(" .*|")
            (asides if own else found).append((start, end, who))
    return sorted([*found, *asides]) if len(asides) < 2 else found


# "Sure, yes, but …" grants a point and goes on. ", but", " aber"; not ", and".
_CONTRAST = lazy_regex(r",? (?:but|aber|mais|pero|ma|maar|mas)\b", re.IGNORECASE)
_OWN_ANSWER = named_regex("scorers/reading", "own_answer")
"""A question or heading in the response itself, to which a yes or no belongs."""


def read_yes_no(reply: str, question: str = "", *, cut: bool = False) -> Reading[str]:
    """Return "yes" or "no" as a response says it, in phrases such as "it does" or "that's right".

    With `cut` (a truncated response), only a `stated` answer counts.
    """
    cleaned = clean(reply)
    if cleaned.reason:
        return Reading(reason=cleaned.reason)
    if _BOTH.search(cleaned.text[:500]):
        return Reading(reason="the reply says yes under a condition, or both")
    found = read_candidate(cleaned, _find_yes_no, 0, question, opens=True)
    if found.answer is None:
        return Reading(reason=found.reason)
    if found.tier == "inferred" and (cut or is_cut(cleaned.text)):
        return Reading(reason="the reply was cut off before it marked an answer")
    return Reading(answer=("yes", "no")[found.answer], tier=found.tier)
