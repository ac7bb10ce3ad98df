"""What a changed text must keep: protected spans, numbers, negations, quantifiers, and more."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from falter.core.late_regex import late_regex
from falter.text._kept import kept_words, negations, number_words, quantifiers
from falter.text._names import common_words, names
from falter.text._protect import protect
from falter.text._read_once import SHORT, of_short_texts
from falter.text._relations import lost_relations, lost_symbols
from falter.text._spelling import edit_distance

__all__ = ["MeaningCheck", "MeaningFlag", "meaning_flags"]

MeaningCheck = Literal[
    "span", "number", "negation", "quantifier", "relation", "symbol", "word", "name"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningFlag:
    """One difference in meaning: what was lost, or, behind a plus sign, what was added."""

    check: MeaningCheck
    lost: str


def meaning_flags(before: str, after: str, language: str = "en") -> tuple[MeaningFlag, ...]:
    """The losses of meaning that can be found without a model, in the order of the checks.

    *span*: a protected span of `before` stands fewer times in `after`. *number*: a number in
    figures or words is lost, changed or new (`1,000` and `1000` are the same, `five` and `5` are
    not). *negation*: there are fewer or more of them; contracted and expanded ones count alike.
    *quantifier*: one is lost. *relation*: a passive has its participle still, and no auxiliary or
    no agent. *symbol*: a single letter that stands for something is lost. *word*: a common English
    word became another by a letter or two. *name*: one is lost. A language without word lists
    raises.
    """
    if len(before) + len(after) > SHORT:
        return _flags(before, after, language)
    return _known_flags(before, after, language)


def _flags(before: str, after: str, language: str) -> tuple[MeaningFlag, ...]:
    spans = Counter(before[start:end].strip() for start, end in protect(before))
    lost_spans = [text for text, count in spans.items() if after.count(text) < count]
    losses: list[tuple[MeaningCheck, list[str]]] = [("span", lost_spans)]
    old, new = _held(before, language), _held(after, language)
    losses += [
        ("number", [*_more(old.numbers, new.numbers), *_plus(_more(new.numbers, old.numbers))]),
        ("negation", _negations(old.denials, new.denials)),
        ("quantifier", list(_more(old.amounts, new.amounts))),
        ("relation", lost_relations(before, after, language)),
        ("symbol", lost_symbols(before, after) if language == "en" else []),
        ("word", list(_other_words(old.wholes, new.wholes)) if language == "en" else []),
        ("name", _lost_names(before, after, language)),
    ]
    return tuple(MeaningFlag(check=check, lost=text) for check, texts in losses for text in texts)


class _Held(NamedTuple):
    """What a text holds that is counted: its numbers, negations, quantifiers, and all its words."""

    numbers: Counter[str]
    denials: Counter[str]
    amounts: Counter[str]
    wholes: list[str]


def _read(text: str, language: str) -> _Held:
    words = _words(text, language)
    return _Held(
        _counted(words, _folded("number", language)) + _figures(text, language),
        _counted(words, _folded("negation", language)),
        _counted(words, _folded("quantifier", language)),
        _WHOLE.findall(text.lower()),
    )


# Every recipe is held against the same few texts: each is read once.
_held = of_short_texts(_read)


# A report asks twice about the same two texts, of each model and for each form. Memory stays
# bounded: at most 4,096 pairs, none of them long.
_known_flags = lru_cache(maxsize=4_096)(_flags)


def _negations(before: Counter[str], after: Counter[str]) -> list[str]:
    """Negations lost or added, if their number differs: *no* may become *not any*."""
    if before.total() == after.total():
        return []
    return (
        list(_more(before, after))
        if before.total() > after.total()
        else _plus(_more(after, before))
    )


def _more(larger: Counter[str], smaller: Counter[str]) -> Iterator[str]:
    """What the larger has more of than the smaller."""
    return (larger - smaller).elements()


def _plus(added: Iterator[str]) -> list[str]:
    return [f"+{text}" for text in added]


def _counted(words: Counter[str], names: frozenset[str]) -> Counter[str]:
    return Counter({word: count for word, count in words.items() if word in names})


@cache
def _folded(check: MeaningCheck, language: str) -> frozenset[str]:
    source = {"number": number_words, "negation": negations, "quantifier": quantifiers}[check]
    return frozenset(map(_fold, source(language)))


def _fold(word: str) -> str:
    """The word without case and with composed accents, so that AUSSER equals außer."""
    return unicodedata.normalize("NFC", word).casefold()


# No *one* in *2one* and no *not* in *not1ced*, which a scanner made of *zone* and *noticed*.
_TOKEN = late_regex(
    r"(?<![^\W_])(?<!\\)(?<![^\W\d_][\u0300-\u036f'’])[^\W\d_][^\W\d_\u0300-\u036f]*+"
    r"(?:[\u0300-\u036f'’][^\W\d_]*+)*+(?![^\W_])"
)


def _words(text: str, language: str) -> Counter[str]:
    words: Counter[str] = Counter()
    for token, count in Counter(_TOKEN.findall(text)).items():
        for word in _parts(token, language):
            words[word] += count
    return words


@lru_cache(maxsize=16_384)
def _parts(token: str, language: str) -> Sequence[str]:
    """The words in a token: *isn't* holds *not*, *n'est* holds *ne*."""
    word = _fold(token)
    if "'" not in word and "’" not in word:
        return [word]
    parts = word.replace("’", "'").strip("'").split("'")
    if language == "en" and parts[-1] == "t" and parts[-2:-1] and parts[-2].endswith("n"):
        return ["not"]
    return ["ne" if language == "fr" and part == "n" else part for part in parts]


_FIGURES = late_regex(
    # no w0rd, no 5km
    r"(?<![\w.,!@|])(?:(?<![)\]])[-+−])?\d++(?:[.,\u00a0\u202f'’]\d++)*+"
    r"(?![!@|$]?[^\W\d_])"
)
_SIGNED = late_regex(r"[A-Za-z\d@!$|+]*[@!$|+][A-Za-z\d@!$|+]*")
_SUM = late_regex(r"[+$]?\d*[A-Za-z]?\d*(?:\+\d*[A-Za-z]?\d*)*")
_GROUPED = {
    True: late_regex(r"(?<=\d)[,\u00a0\u202f'’](?=\d{3}(?!\d))"),
    False: late_regex(r"(?<=\d)[.\u00a0\u202f'’](?=\d{3}(?!\d))"),
}


def _figures(text: str, language: str) -> Counter[str]:
    """The numbers in figures, with their sign and without marks between thousands."""
    grouped = _GROUPED[language == "en"]
    plain = _SIGNED.sub(_no_leet, text).replace("{,}", ",").replace("−", "-")  # as in LaTeX
    return Counter(grouped.sub("", match[0]) for match in _FIGURES.finditer(plain))


def _no_leet(match: re.Match[str]) -> str:
    """Nothing for a word with signs for letters (*5+@r7*); a sum or a price as it is."""
    piece = match[0]
    return piece if piece == piece.upper() or _SUM.fullmatch(piece) is not None else " "


_LETTERS, _WHOLE = late_regex(r"[^\W\d_]+"), late_regex(r"\w+")
_MOST_COMPARED, _MOST_ALIGNED = 100, 400
_ENDINGS = late_regex(r"(?:['’]s|es|s|ed|d|ing|ly|er|est|y|ies|e)\Z")


def _other_words(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Words that became other common words by a letter or two, as *water → wager*.

    Words that are gone are compared with new ones in their places. A text that is much longer or
    shorter than before is another text, and nothing is said of its words.
    """
    gone, added = Counter(old) - Counter(new), Counter(new) - Counter(old)
    if not gone or not added:
        return
    pairs: Iterable[tuple[str, str]] = ()
    if len(old) == len(new):
        pairs = zip(old, new, strict=True)
    elif len(old) < _MOST_ALIGNED and len(new) < _MOST_ALIGNED:
        pairs = _aligned(old, new)
    for first, second in pairs:
        if first in gone and second in added and _is_other_word(first, second):
            yield f"{first} → {second}"


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Single words that stand in the place of single words."""
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "replace" and b - a == d - c == 1:
            yield old[a], new[c]


def _is_other_word(first: str, second: str) -> bool:
    common = common_words()
    if first not in common or second not in common or first in kept_words():
        return False
    if abs(len(first) - len(second)) > 2 or min(len(first), len(second)) < 3:
        return False
    if _ENDINGS.sub("", first) == _ENDINGS.sub("", second):
        return False  # another form of the same word
    return edit_distance(first, second) <= (1 if len(first) < 6 else 2)


_names = of_short_texts(names)


def _lost_names(before: str, after: str, language: str) -> list[str]:
    """Names of which a word is no longer there, whatever its case."""
    low = _fold(after)
    words = set(_LETTERS.findall(low))
    lost: list[str] = []
    for start, end in _names(before, language):
        parts = _LETTERS.findall(_fold(before[start:end]))
        if not words.issuperset(parts) and not all(part in low for part in parts):
            lost.append(before[start:end])
            if len(lost) == _MOST_COMPARED:
                break
    return lost
