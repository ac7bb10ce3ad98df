"""The label of a closed set, and the yes or no, that a reply settles on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from falter.scorers.reading.candidates import Finder, Span, settle
from falter.scorers.reading.cleaning import clean, is_cut
from falter.scorers.reading.reading import Reading

MOST = 200  # labels of one set
_SEPARATOR = r"[\s_/'\"-]{0,3}"
_AND = r"(?:&|and|und|et|y|e|en)"
_ENDINGS = ("ment", "ness", "tion", "ion", "ing", "ly", "ed", "os", "as", "o", "a", "e", "d", "s")
_SHORT = 3  # letters of a label that counts only in its own case
_EDGE = r"[^\W\u3040-\u9fff]"


def folded(text: str) -> str:
    """Return a text in lower case without accents, character by character."""
    low = text.lower()
    if low.isascii() and len(low) == len(text):
        return low
    return "".join(map(_folded_character, text))


@lru_cache(maxsize=4096)
def _folded_character(char: str) -> str:
    base = unicodedata.normalize("NFD", char.lower())[:1]
    return base if len(base) == 1 and "\u3040" > base else char


@lru_cache(maxsize=256)
def _pattern(labels: tuple[str, ...]) -> tuple[re.Pattern[str], list[int]]:
    """Return the expression of all labels, a group each, and the label of each group."""
    parts: list[tuple[str, int]] = []
    for n, label in enumerate(labels):
        words = re.findall(r"[^\W_]+|[^\w\s]", folded(label))
        words = [w for w in words if w.isalnum() or w not in "-/_'\""] or [folded(label)]
        body = _SEPARATOR.join(_AND if w == "&" else re.escape(w) for w in words)
        if len(words) == 1 and label[-1:].isalpha() and not re.search("[\u3040-\u9fff]", label):
            body = _inflected(words[0], [folded(x) for x in labels])
        parts.append((body, n))
    parts.sort(key=lambda part: -len(part[0]))
    inner = "|".join(f"({body})" for body, _ in parts)
    return re.compile(rf"(?<!{_EDGE})(?:{inner})(?!{_EDGE})"), [n for _, n in parts]


def _inflected(word: str, others: Sequence[str]) -> str:
    """Return an expression for a word and its forms: "entailment", "entails", "negativa"."""
    if len(word) <= _SHORT:
        return re.escape(word)
    stem = word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 5:
            stem = word[: -len(ending)]
            break
    if any(other != word and other.startswith(stem) for other in others):
        return rf"{re.escape(word)}s?"
    forms = "s|es|d|ed|ly|al|ally|ing|er|e|n|en|r|o|a|os|as|ness|tion|ion|ment"
    return rf"{re.escape(stem)}(?:{re.escape(word[len(stem) :])}|{forms})?(?:s|ly)?"


def label_finder(labels: Sequence[str]) -> Finder:
    """Return a finder of labels in any case, with other separators, accents and endings."""
    pattern, order = _pattern(tuple(labels))

    def find(text: str) -> list[Span]:
        found = []
        for match in pattern.finditer(folded(text)):
            who = order[(match.lastindex or 1) - 1]
            start, end = match.span()
            label = labels[who]
            cased = len(label) <= _SHORT and label != label.lower() and len(text) > 20
            if not cased or text[start:end] == label:
                found.append((start, end, who))
        return found

    return find


def read_label(
    reply: str, labels: Sequence[str], question: str = "", *, cut: bool = False
) -> Reading[str]:
    """Return the label that a reply settles on, as it is written in `labels`."""
    if not labels or len(labels) > MOST:
        return Reading(reason=f"a label cannot be read among {len(labels)}")
    cleaned = clean(reply, keeps_tags=any("<" in label for label in labels))
    if cleaned.reason:
        return Reading(reason=cleaned.reason)
    found = settle(cleaned, label_finder(labels), len(labels), question)
    if found.answer is None:
        return Reading(reason=found.reason)
    if found.tier == "inferred" and (cut or is_cut(cleaned.text)):
        return Reading(reason="the reply was cut off before it marked an answer")
    return Reading(answer=labels[found.answer], tier=found.tier)


def read_yes_no(reply: str, question: str = "", *, cut: bool = False) -> Reading[str]:
    raise NotImplementedError
