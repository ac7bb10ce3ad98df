"""Checks that a changed text keeps protected spans, numbers, negations, quantifiers, and more."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import filterfalse
from typing import Literal, NamedTuple, TypeVar

from falter.records.lazy_regex import lazy_regex
from falter.records.types import Span
from falter.text.names import common_words, names
from falter.text.protection import protect
from falter.text.words import (
    data_text,
    edit_distance,
    kept_words,
    negations,
    number_words,
    quantifiers,
)

T = TypeVar("T")
MAX_CACHED_CHARACTERS = 16_000
"""Characters: what is longer is not worth its memory."""


def cached_by_text(read: Callable[[str, str], T]) -> Callable[[str, str], T]:
    """Return `read` with a cache of the last 64 short texts. Do not change its results."""
    remembered = lru_cache(maxsize=64)(read)

    def once(text: str, language: str) -> T:
        return (remembered if len(text) <= MAX_CACHED_CHARACTERS else read)(text, language)

    return once


# What turns a sentence round when it is lost: the parts of a passive, letters that are symbols

_RELATION_TOKEN = lazy_regex(r"[^\W\d_](?<![\w'’/-].)[^\W\d_]*+(?:['’][^\W\d_]++)?(?![\w/\-])")

_MAX_TOKEN_DISTANCE = 6  # words between an auxiliary and its participle
# "a, b", "a⏎⏎b"; not "a⏎b".
_CLAUSE_END = lazy_regex(r"[.,;:?!]|\n[ \t]*\n")


class _Passives(NamedTuple):
    """The signs of a passive in a language; without the auxiliary its subject would act."""

    auxiliaries: frozenset[str]
    participle: re.Pattern[str]
    agents: frozenset[str]


@cache
def _passive_signs(language: str) -> _Passives:
    entry = json.loads(data_text("passives.json"))[language]
    participles = "|".join((entry["participles"], *" ".join(entry.get("irregular", ())).split()))
    return _Passives(
        frozenset(entry["auxiliaries"].split()),
        re.compile(rf"(?:{participles})\Z", re.IGNORECASE),
        frozenset(entry["agents"].split()),
    )


def passive_auxiliaries(text: str, language: str = "en") -> list[Span]:
    """Return the spans of auxiliaries that a participle follows in the same clause."""
    return [auxiliary.span() for auxiliary, _ in _passives(text, language)]


@cached_by_text
def word_tokens(text: str, language: str) -> tuple[list[re.Match[str]], list[str]]:
    """Return the words of a text, and each in small letters with a straight apostrophe."""
    tokens = list(_RELATION_TOKEN.finditer(text))
    lows = [token[0].lower() for token in tokens]
    return tokens, [low.replace("’", "'") for low in lows] if "’" in text else lows


def _find_passives(text: str, language: str) -> list[tuple[re.Match[str], re.Match[str]]]:
    auxiliaries, participle, _ = _passive_signs(language)
    tokens, lows = word_tokens(text, language)
    found: list[tuple[re.Match[str], re.Match[str]]] = []
    for n, low in enumerate(lows):
        if low not in auxiliaries and not ("'" in low and _is_short(low, auxiliaries, language)):
            continue
        for ahead in range(n + 1, min(n + 1 + _MAX_TOKEN_DISTANCE, len(tokens))):
            if _CLAUSE_END.search(text, tokens[ahead - 1].end(), tokens[ahead].start()):
                break
            if tokens[ahead][0].islower() and participle.match(lows[ahead]):
                found.append((tokens[n], tokens[ahead]))
                break
    return found


def _is_short(low: str, auxiliaries: frozenset[str], language: str) -> bool:
    """Return True if the word holds an auxiliary: *it's*, *wasn't*."""
    ending = language == "en" and low.endswith(_SHORT_FORMS)
    return ending or low.removesuffix("n't") in auxiliaries


_passives = cached_by_text(_find_passives)
_SHORT_FORMS = ("'s", "'re", "'m")


def _lower(token: re.Match[str]) -> str:
    return token.group().replace("’", "'").lower()


def lost_relations(before: str, after: str, language: str) -> list[str]:
    """Return passives whose participle is still there, but not its auxiliary or its agent.

    A passive that became an active sentence has another form of the verb, and is no loss; nor is a
    word that was misspelt, joined to the next or moved: only one that is gone.
    """
    passives = _passives(before, language)
    if not passives or len(before.split()) == len(after.split()):
        return []
    still = Counter(_lower(participle) for _, participle in _passives(after, language))
    words = Counter(word_tokens(after, language)[1])
    gone = Counter(word_tokens(before, language)[1]) - words
    letters = _squeezed(after)
    lost: list[str] = []
    for auxiliary, participle in passives:
        low = _lower(participle)
        if not words[low]:
            continue
        still[low] -= 1
        if (
            still[low] < 0
            and gone[_lower(auxiliary)]
            and _joined_with_next(before, auxiliary) not in letters
        ):
            lost.append(f"{_lower(auxiliary)} … {low}")
        agent = _agent(before, participle, language)
        if agent is not None and not words[agent] and low + agent not in letters:
            lost.append(f"{low} {agent}")
    return lost


_SPACED = lazy_regex(r"\S+")


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _joined_with_next(text: str, token: re.Match[str]) -> str:
    """Return a word joined with the next one: merged and split words look alike in this form."""
    following = _SPACED.search(text, token.end())
    return _squeezed(token.group() + ("" if following is None else following[0]))


def _agent(text: str, participle: re.Match[str], language: str) -> str | None:
    """Return the word for *by* after a participle, or None."""
    following = _RELATION_TOKEN.search(text, participle.end())
    low = "" if following is None else _lower(following)
    return low if low in _passive_signs(language).agents else None


# A letter by itself may be a symbol: the side a, the current I.
_OTHER_SYMBOL = lazy_regex(r"(?<![\w'’.-])[b-hj-zB-HJ-Z](?![\w'’-])")
_NO_ARTICLE = lazy_regex(
    r"[ ](?:and|or|are|be|by|but|divided|equals?|for|from|gives?|has|if|in|is|minus|of|on|over|plus"
    r"|such|that|then|times|to|was|were|when|where|which|with)\b|[^\s\w]"
    r"|[ ][^\s\w$€£¥\"“‘'(\[{<*_`]|\Z|\n",
)
# "side a"; not "don't", "x-ray".
_LETTER = lazy_regex(r"(?<![\w'’-])[A-Za-z](?![\w'’-])")


_BEFORE_WORD = ("", " ", "\n", '"', "“", "‘", "(")


def letter_symbols(text: str) -> list[Span]:
    """Return the spans of single letters that are symbols: no article and no pronoun."""
    letters = list(_LETTER.finditer(text))
    if not letters:
        return []
    others = _OTHER_SYMBOL.search(text) is not None
    return [match.span() for match in letters if _is_symbol(text, match, others)]


def _is_symbol(text: str, match: re.Match[str], others: bool) -> bool:
    start, end = match.span()
    if match.group() not in ("a", "A", "I"):
        return True
    if text[end : end + 1] not in (" ", "") or text[start - 1 : start] not in _BEFORE_WORD:
        return match.group() != "I" or text[end : end + 1] in "=)]"
    if match.group() == "I":
        return False
    return _NO_ARTICLE.match(text, end) is not None and (others or match.group() == "a")


@cached_by_text
def _symbol_counts(text: str, language: str) -> Counter[str]:
    return Counter(text[start:end] for start, end in letter_symbols(text))


def lost_symbols(before: str, after: str) -> list[str]:
    """Return the symbolic letters that occur less often in the second text."""
    old = _symbol_counts(before, "en")
    return list((old - _text_features(after, "en").letters).elements()) if old else []


MeaningCheck = Literal[
    "span", "number", "negation", "quantifier", "relation", "symbol", "word", "name"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningFlag:
    """One difference in meaning: the lost text, or the added text after a plus sign."""

    check: MeaningCheck
    lost: str


def meaning_flags(before: str, after: str, language: str = "en") -> tuple[MeaningFlag, ...]:
    """Return the losses of meaning that are found without a model, in the order of the checks.

    *span*: a protected span of `before` stands fewer times in `after`. *number*: a number in
    figures or words is lost, changed or new (`1,000` and `1000` are the same, `five` and `5` are
    not). *negation*: there are fewer or more of them; contracted and expanded ones count alike.
    *quantifier*: one is lost. *relation*: a passive has its participle still, and no auxiliary or
    no agent. *symbol*: a single letter that stands for something is lost. *word*: a common English
    word became another by a letter or two. *name*: one is lost. A language without word lists
    raises.
    """
    if len(before) + len(after) > MAX_CACHED_CHARACTERS:
        return _find_flags(before, after, language)
    return _known_flags(before, after, language)


def _find_flags(before: str, after: str, language: str) -> tuple[MeaningFlag, ...]:
    old = _text_features(before, language)
    if before.strip() == after.strip():
        return ()
    new = _text_features(after, language)
    spans = _protected_counts(before, language)
    lost_spans = [text for text, count in spans.items() if after.count(text) < count]
    losses: list[tuple[MeaningCheck, list[str]]] = [("span", lost_spans)]
    losses += [
        ("number", [*_excess(old.numbers, new.numbers), *_plus(_excess(new.numbers, old.numbers))]),
        ("negation", _negations(old.denials, new.denials)),
        ("quantifier", list(_excess(old.amounts, new.amounts))),
        ("relation", lost_relations(before, after, language)),
        ("symbol", lost_symbols(before, after) if language == "en" else []),
        ("word", list(_other_words(old, new)) if language == "en" else []),
        ("name", _lost_names(before, after, language)),
    ]
    return tuple(MeaningFlag(check=check, lost=text) for check, texts in losses for text in texts)


class _Features(NamedTuple):
    """The counted features of a text: numbers, negations, quantifiers, lone letters, all words."""

    numbers: Counter[str]
    denials: Counter[str]
    amounts: Counter[str]
    letters: Counter[str]
    wholes: list[str]
    counts: Counter[str]


def _count_features(text: str, language: str) -> _Features:
    kinds: dict[str, Counter[str]] = {kind: Counter() for kind in (*_KINDS, "symbol")}
    pieces, empty = Counter(text.split(" ")), _empty_pieces(language)
    for piece in filterfalse(empty.__contains__, pieces):
        short = len(piece) < _MAX_CACHED_PIECE
        counted = (_counted_words if short else _counted_words.__wrapped__)(piece, language)
        if short and not counted and len(empty) < _MAX_CACHED_PIECES:
            empty.add(piece)
        for kind, word in counted:
            kinds[kind][word] += pieces[piece]
    wholes = _WHOLE.findall(text.lower())
    figures = _digit_counts(" ".join(filterfalse(str.isalpha, text.split(" "))), language)
    numbers, denials, amounts, letters = kinds.values()
    return _Features(numbers + figures, denials, amounts, letters, wholes, Counter(wholes))


# Every recipe is held against the same few texts: each is read once.
_text_features = cached_by_text(_count_features)


@cached_by_text
def _protected_counts(text: str, language: str) -> Counter[str]:
    return Counter(text[start:end].strip() for start, end in protect(text))


# A report asks twice about the same two texts, of each model and for each form. Memory stays
# bounded: at most 4,096 pairs, none of them long.
_known_flags = lru_cache(maxsize=4_096)(_find_flags)


def _negations(before: Counter[str], after: Counter[str]) -> list[str]:
    """Return negations lost or added, if their number differs: *no* may become *not any*."""
    if before.total() > after.total():
        return list(_excess(before, after))
    return _plus(_excess(after, before)) if before.total() < after.total() else []


def _excess(larger: Counter[str], smaller: Counter[str]) -> Iterator[str]:
    """Return the surplus of one multiset over another."""
    return (larger - smaller).elements()


def _plus(added: Iterator[str]) -> list[str]:
    return [f"+{text}" for text in added]


_MAX_CACHED_PIECE = 40  # characters: some scripts write a sentence without a space
_MAX_CACHED_PIECES = 16_384
_KINDS: tuple[MeaningCheck, ...] = ("number", "negation", "quantifier")


@cache
def _empty_pieces(language: str) -> set[str]:
    """Return the known pieces without counted features, a set that callers extend."""
    return set()


@lru_cache(maxsize=_MAX_CACHED_PIECES)
def _counted_words(piece: str, language: str) -> Sequence[tuple[MeaningCheck, str]]:
    """Return the counted words between two spaces, each with the check that counts it."""
    words = [word for token in _TOKEN.findall(piece) for word in _parts(token, language)]
    found = [
        (kind, word) for word in words for kind in _KINDS if word in _checked_words(kind, language)
    ]
    return [*found, *(("symbol", letter) for letter in _LETTER.findall(piece))]


@cache
def _checked_words(check: MeaningCheck, language: str) -> frozenset[str]:
    source = {"number": number_words, "negation": negations, "quantifier": quantifiers}[check]
    return frozenset(map(_fold, source(language)))


def _fold(word: str) -> str:
    """Return the word without case and with composed accents, so that AUSSER equals außer."""
    return unicodedata.normalize("NFC", word).casefold()


# No *one* in *2one* and no *not* in *not1ced*, which a scanner made of *zone* and *noticed*.
_TOKEN = lazy_regex(
    r"(?<![^\W_])(?<!\\)(?<![^\W\d_][\u0300-\u036f'’])[^\W\d_][^\W\d_\u0300-\u036f]*+"
    r"(?:[\u0300-\u036f'’][^\W\d_]*+)*+(?![^\W_])"
)


def _parts(token: str, language: str) -> Sequence[str]:
    """Return the words in a token: *isn't* contains *not*, *n'est* contains *ne*."""
    word = _fold(token)
    if "'" not in word and "’" not in word:
        return [word]
    parts = word.replace("’", "'").strip("'").split("'")
    if language == "en" and parts[-1] == "t" and parts[-2:-1] and parts[-2].endswith("n"):
        return ["not"]
    return ["ne" if language == "fr" and part == "n" else part for part in parts]


_DIGITS = lazy_regex(
    # no w0rd, no 5km
    r"(?<![\w.,!@|])(?:(?<![)\]])[-+−])?\d++(?:[.,\u00a0\u202f'’]\d++)*+"
    r"(?![!@|$]?[^\W\d_])"
)
_LEET_SIGN = lazy_regex(r"[@!$|+]")
# A word or sum with signs that leet writes for letters. "p@ssword", "1+1"; not "password".
_SIGNED = lazy_regex(r"[A-Za-z\d@!$|+]*[@!$|+][A-Za-z\d@!$|+]*")
# "1+1", "$5", "x+2"; not "p@ss".
_SUM = lazy_regex(r"[+$]?\d*[A-Za-z]?\d*(?:\+\d*[A-Za-z]?\d*)*")
_GROUPED = {
    True: lazy_regex(r"(?<=\d)[,\u00a0\u202f'’](?=\d{3}(?!\d))"),
    False: lazy_regex(r"(?<=\d)[.\u00a0\u202f'’](?=\d{3}(?!\d))"),
}


@cached_by_text
def _digit_counts(text: str, language: str) -> Counter[str]:
    """Return the numbers in digits, with their sign and without thousands separators."""
    grouped = _GROUPED[language == "en"]
    signed = _LEET_SIGN.search(text) is not None
    plain = (
        (_SIGNED.sub(_no_leet, text) if signed else text).replace("{,}", ",").replace("−", "-")
    )  # as in LaTeX
    return Counter(grouped.sub("", match[0]) for match in _DIGITS.finditer(plain))


def _no_leet(match: re.Match[str]) -> str:
    """Return nothing for a word with signs for letters (*5+@r7*); keep a sum or a price."""
    piece = match[0]
    return piece if piece == piece.upper() or _SUM.fullmatch(piece) is not None else " "


_LETTERS, _WHOLE = lazy_regex(r"[^\W\d_]+"), lazy_regex(r"\w+")
_MAX_COMPARED, _MAX_ALIGNED = 100, 400
# Endings that inflect: two words that differ in them alone are one. "cats", "walked"; not "man".
_ENDINGS = lazy_regex(r"(?:['’]s|es|s|ed|d|ing|ly|er|est|y|ies|e)\Z")


def _other_words(before: _Features, after: _Features) -> Iterator[str]:
    """Yield words that became other common words by a letter or two, as *water → wager*.

    Words that are gone are compared with new ones in their places. A text that is much longer or
    shorter than before is another text, and nothing is said of its words.
    """
    gone, added = _surplus(before.counts, after.counts), _surplus(after.counts, before.counts)
    if not gone or not added:
        return
    old, new = before.wholes, after.wholes
    pairs: Iterable[tuple[str, str]] = ()
    if len(old) == len(new):
        pairs = zip(old, new, strict=True)
    # Aligning takes longer than all other checks together. What it pairs has the same neighbours.
    elif max(len(old), len(new)) < _MAX_ALIGNED:
        places, around = _words_by_neighbours(new, added), ("", *old, "")
        if any(
            _is_other_word(first, second)
            for left, first, right in zip(around, old, around[2:], strict=False)
            if first in gone
            for second in places.get((left, right), ())
        ):
            pairs = _aligned_words(old, new)
    for first, second in pairs:
        if first in gone and second in added and _is_other_word(first, second):
            yield f"{first} → {second}"


def _surplus(larger: Counter[str], smaller: Counter[str]) -> set[str]:
    """Return the common words that one text has more often than the other."""
    count_in_smaller = smaller.get
    more = {word for word, count in larger.items() if count > count_in_smaller(word, 0)}
    return more & common_words()


def _words_by_neighbours(words: Sequence[str], chosen: set[str]) -> dict[tuple[str, str], set[str]]:
    """Return the chosen words between two other words, by these two."""
    found: dict[tuple[str, str], set[str]] = {}
    around = ("", *words, "")
    for n in [n for n, word in enumerate(words) if word in chosen]:
        found.setdefault((around[n], around[n + 2]), set()).add(words[n])
    return found


def _aligned_words(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of words: a single word, and the single word in its place."""
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "replace" and b - a == d - c == 1:
            yield old[a], new[c]


def _is_other_word(first: str, second: str) -> bool:
    """Return True for two common words that are a letter or two apart."""
    if abs(len(first) - len(second)) > 2 or min(len(first), len(second)) < 3:
        return False
    if first in kept_words():
        return False
    if _ENDINGS.sub("", first) == _ENDINGS.sub("", second):
        return False  # another form of the same word
    return edit_distance(first, second) <= (1 if len(first) < 6 else 2)


_names = cached_by_text(names)


def _lost_names(before: str, after: str, language: str) -> list[str]:
    """Return names of which a word is no longer there, in any case."""
    lost: list[str] = []
    if not (spans := _names(before, language)):
        return lost
    low = _fold(after)
    words = set(_LETTERS.findall(low))
    for start, end in spans:
        parts = _LETTERS.findall(_fold(before[start:end]))
        if not words.issuperset(parts) and not all(part in low for part in parts):
            lost.append(before[start:end])
            if len(lost) == _MAX_COMPARED:
                break
    return lost
