"""Tagging of words and phrases that show the role of an answer: "the answer is", "not", "maybe".

The phrases are in `data/`, one YAML file for each language. One pass turns a text into a row of
items: candidates, phrases and other words. Each item and the gap before it have a one-letter tag.
Answers are then found by short expressions over tags instead of long expressions over words.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from operator import itemgetter

from falter.records.lazy_regex import lazy_regex

LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pt", "ja")
TAGS = {
    "answer": "a", "is": "i", "so": "s", "filler": "d", "right": "v", "wrong": "r", "not": "n",
    "or": "o", "if": "f", "but": "b", "correction": "x", "soft": "h", "open": "p", "choose": "m",
    "check": "k", "would": "j", "and": "e", "refuse": "z", "sure": "u",
}  # fmt: skip
"""Tag of each kind of phrase. A candidate has the tag `c`, any other word `w`."""
WILD = "..."
_MAX_WILD_WORDS = 8  # words that "..." may stand for

Phrase = tuple[tuple[str, ...], str]
Trie = Mapping[str, str | tuple[Phrase, ...]]
"""Phrases by first word. The value is a tag if the word alone is the only phrase."""

_CJK = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
HAS_CJK = re.compile(f"[{_CJK}]")
_HEAD_WORDS = 100  # words from which the language is detected


@cache
def words_of(language: str) -> dict[str, str]:
    """Return the bundled word lists of a language by name, each as written in its file."""
    import yaml

    file = files("falter.scorers.reading").joinpath("data", f"{language}.yaml")
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    lists: dict[str, str] = yaml.load(file.read_text("utf-8"), Loader=loader)
    return lists


def phrases(language: str, name: str) -> list[str]:
    """Return the phrases of one word list of a language."""
    return [part.strip() for part in words_of(language).get(name, "").split(",") if part.strip()]


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the most frequent words of a language."""
    return frozenset(words_of(language).get("stop", "").split())


@cache
def all_stop_words() -> Mapping[str, tuple[str, ...]]:
    """Return the most frequent words of all languages, each with its languages."""
    found: dict[str, tuple[str, ...]] = {}
    for language in LANGUAGES:
        for word in stop_words(language):
            found[word] = (*found.get(word, ()), language)
    return found


def language_of(words: Iterable[str]) -> str:
    """Return the language with the most stop words among `words`; English if there are none."""
    counts = dict.fromkeys(LANGUAGES, 0)
    known = all_stop_words()
    for word in words:
        for language in known.get(word, ()):
            counts[language] += 1
    return max(LANGUAGES, key=counts.__getitem__)


@cache
def _phrase_trie(main: str) -> Trie:
    """Return the phrases by first word, longest first: phrases of `main`, then of other languages.

    A word that `main` uses otherwise keeps that meaning: "also" in English, "no" in Italian.
    """
    found: dict[str, dict[tuple[str, ...], str]] = {}
    known = stop_words(main)
    for language in (main, *(name for name in LANGUAGES if name != main)):
        for name, tag in TAGS.items():
            for phrase in phrases(language, name):
                words = tuple(phrase.split())
                if language == main or (words[0] not in known or len(words) > 2):
                    found.setdefault(words[0], {}).setdefault(words[1:], tag)
    return {
        first: rest[()] if rest.keys() == {()} else tuple(sorted(rest.items(), key=_longest_first))
        for first, rest in found.items()
    }


def _longest_first(phrase: Phrase) -> int:
    return -len(phrase[0])


@cache
def _japanese() -> re.Pattern[str]:
    """Return the pattern for a text with Japanese: phrases, Latin words, else single characters."""
    known = {p for name in TAGS for p in phrases("ja", name)}
    longest = sorted(known, key=len, reverse=True)
    latin = rf"[^\W_{_CJK}]+(?:'[^\W_{_CJK}]+)*"
    return re.compile("|".join([*map(re.escape, longest), latin, f"[{_CJK}]"]))


@dataclass(slots=True)
class Row:
    """A text as items. `tags` alternates gaps and items, and ends with the gap after the last item.

    A gap is a line break, ".", "?", ":", ">" (an arrow), ",", "(", "-", or a space. `spans` has the
    offsets of each item; `values` has a candidate's number, or −1 for other items.
    """

    text: str
    tags: str = ""
    spans: list[tuple[int, int]] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    bounds: list[tuple[int, int]] | None = None

    def sentences(self) -> list[tuple[int, int]]:
        """Return the items of each sentence or line as (first, last + 1)."""
        if self.bounds is None:
            self.bounds = self._sentences()
        return self.bounds

    def sentence_at(self, item: int) -> tuple[int, int]:
        """Return the sentence that contains an item, as (first, last + 1)."""
        bounds = self.sentences()
        n = bisect_right(bounds, item, key=itemgetter(0)) - 1
        return bounds[n] if n >= 0 else (0, len(self.values))

    def _sentences(self) -> list[tuple[int, int]]:
        gaps = self.tags[2::2]
        found, start = [], 0
        for n, gap in enumerate(gaps, 1):
            if gap in "\n.?>":
                found.append((start, n))
                start = n
        if start < len(gaps):
            found.append((start, len(gaps)))
        return found

    def part(self, start: int, end: int) -> str:
        """Return the tags of the items from `start` to before `end`, with the gaps around them."""
        return self.tags[2 * start : 2 * end + 1]


# One character for one, so that offsets stay valid: "İ" in small letters would be two.
_QUOTES = str.maketrans("’‘ʼİ", "'''I")
# Most gaps are ", " or " ": a look-up is cheaper than the search for signs. Replies are untrusted,
# so the number of gaps is bounded.
_cached_gap_tags: dict[str, str] = {}
_MAX_KNOWN_GAPS = 2_000


def _gap_tag(text: str) -> str:
    """Return the tag of the text between two items."""
    if (known := _cached_gap_tags.get(text)) is not None:
        return known
    if len(_cached_gap_tags) > _MAX_KNOWN_GAPS:
        _cached_gap_tags.clear()
    short = text if len(text) <= 40 else text[:20] + text[-20:]
    tag = " "
    for signs, name in (
        ("?？", "?"), ("→⇒➡∴👉", ">"), (":：=≈", ":"), ("\n", "\n"), (".!;。！；…", "."),
        (",、，|", ","), ("(（)）[{", "("), ("–—", "-"),
    ):  # fmt: skip
        if any(sign in short for sign in signs):
            tag = name
            break
    if "=>" in short or "->" in short:
        tag = ">"
    elif tag == " " and " - " in short:
        tag = "-"
    if len(text) <= 40:
        _cached_gap_tags[text] = tag
    return tag


_GAP_CHARACTERS = frozenset(" \t-_'\"*/,.")


def tag_text(text: str, candidates: Sequence[tuple[int, int, int]] = (), hint: str = "") -> Row:
    """Return a text as a row of items. `candidates` are (start, end, number), in order.

    `hint` is more text in the same language, such as the question, for short texts.
    """
    low = text.lower().translate(_QUOTES)
    if len(low) != len(text):  # a letter that is two in lower case
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text).translate(_QUOTES)
    cjk = HAS_CJK.search(low) is not None
    matches = [(m.start(), m.end(), m[0]) for m in (_japanese() if cjk else _WORD).finditer(low)]
    if cjk:
        main = "ja"
    else:
        head = [word for _, _, word in matches[:_HEAD_WORDS]]
        main = language_of([*head, *_WORD.findall(hint[-300:].lower())] if len(head) < 5 else head)
    return _Tagger(low, matches, _phrase_trie(main)).row(text, candidates)


class _Tagger:
    """A tagger that joins the words of a text to phrases."""

    def __init__(self, low: str, words: list[tuple[int, int, str]], trie: Trie) -> None:
        self.low, self.words, self.trie = low, words, trie

    def row(self, text: str, candidates: Sequence[tuple[int, int, int]]) -> Row:
        """Return the row of items, with the candidates in place of the words that they cover."""
        row, tags, low, trie = Row(text), list[str](), self.low, self.trie
        words, at, last = self.words, 0, 0
        tag_gap, add_span, add_tag = _cached_gap_tags.get, row.spans.append, tags.append
        for start, end, value in [*candidates, (len(low) + 1, len(low) + 1, -1)]:
            while at < len(words):
                begin, finish, word = words[at]
                if begin >= start:
                    break
                at += 1
                if finish > start:  # a candidate inside a word
                    continue
                tag = trie.get(word, "w")
                if not isinstance(tag, str):
                    count, tag = self._longest_phrase(at - 1, start, tag)
                    at += count - 1
                    finish = words[at - 1][1]
                gap = low[last:begin]
                add_tag((tag_gap(gap) or _gap_tag(gap)) + tag if last or begin else f" {tag}")
                add_span((begin, finish))
                row.values.append(-1)
                last = finish
            if value < 0:
                break
            add_tag(_gap_tag(low[last:start]) + "c")
            add_span((start, end))
            row.values.append(value)
            last = end
            while at < len(words) and words[at][0] < end:
                at += 1
        row.tags = "\n" + "".join(tags)[1:] + (_gap_tag(low[last:]).replace(" ", "\n"))
        return row

    def _longest_phrase(self, at: int, limit: int, known: Sequence[Phrase]) -> tuple[int, str]:
        """Return the word count and tag of the longest phrase at a word."""
        words = self.words
        for rest, tag in known:
            if not rest:
                return 1, tag
            if WILD in rest:
                follows = rest[0] == WILD or (
                    words[at + 1 : at + 2] and words[at + 1][2] == rest[0]
                )
                if follows and self._is_wild(at, rest):
                    return 1, tag
                continue
            if at + len(rest) >= len(words):
                continue
            n = at
            for word in rest:
                n += 1
                if words[n][2] != word or not _GAP_CHARACTERS.issuperset(
                    self.low[words[n - 1][1] : words[n][0]]
                ):
                    break
            else:
                if words[n][1] <= limit:
                    return len(rest) + 1, tag
        return 1, "w"

    def _is_wild(self, at: int, rest: tuple[str, ...]) -> bool:
        """Return True if a phrase with "..." matches here, within one sentence."""
        first, last = rest[: rest.index(WILD)], rest[rest.index(WILD) + 1 :]
        words = self.words
        if tuple(w for _, _, w in words[at + 1 : at + 1 + len(first)]) != first:
            return False
        begin = at + 1 + len(first)
        for n in range(begin, min(len(words), begin + _MAX_WILD_WORDS + 1)):
            if _gap_tag(self.low[words[n - 1][1] : words[n][0]]) in "\n.?":
                return False
            if tuple(w for _, _, w in words[n : n + len(last)]) == last:
                return True
        return False


_DECLINE_BUT = lazy_regex(r"(?:but|however|aber|mais|pero|ma|maar|mas),? (?:i can\b(?!'t| ?not| only)|here|ich kann|je peux|puedo|posso|ik kan)")  # fmt: skip  # noqa: E501
MAX_SEARCHED_CHARACTERS = 20_000  # characters searched for a refusal


def refusal_at(row: Row) -> int | None:
    """Return the item at which the last refusal of a row begins; None if there is no refusal.

    A refusal followed by "but I can …" does not count.
    """
    at = row.tags.rfind("z")
    while at >= 0:
        end = row.spans[at // 2][1]
        if not _DECLINE_BUT.search(row.text[end : end + 160].lower()):
            return at // 2
        at = row.tags.rfind("z", 0, at)
    return None


def declines(text: str) -> bool:
    """Return True if a text refuses, asks back, or says that the answer is unknown."""
    return refusal_at(tag_text(text[:MAX_SEARCHED_CHARACTERS])) is not None
