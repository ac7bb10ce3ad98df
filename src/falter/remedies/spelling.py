"""Rule-based spelling repair: a word that is in no list becomes the only nearest listed word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from string import ascii_lowercase

from falter.records.types import Prompt, Section, Span
from falter.remedies.prompts import remedy
from falter.text.names import common_words, mentioned_words, names
from falter.text.protection import protect
from falter.text.spans import Replacement, merged, replace_spans, uncovered
from falter.text.words import kept_words, natural_words

MIN_LETTERS = 3
MIN_KNOWN_SHARE = 1 / 3
"""Minimum share of listed words; a text with fewer is taken for another language."""
_QUESTION_WORDS = ("what", "when", "where", "which", "while", "whose", "why", "who", "how", "the")
_KEYBOARD_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SUFFIXES = ("ed", "er", "est", "ing", "ly", "ness", "less")

# Costs of a slip: letters swapped; a letter doubled or undoubled; a letter added, left out or
# replaced by a neighbouring key; another letter.
_SWAP_COST, _DOUBLING_COST, _SLIP_COST, _OTHER_COST = 1.0, 1.0, 2.0, 3.0
# Added to the cost if the first letter changes, and if the repair is a usual word.
_FIRST_LETTER_COST, _USUAL_WORD_COST = 1.0, -1.5
# For words of at most `SHORT_WORD_LETTERS`, the next repair must cost more by `_MIN_COST_LEAD`.
_MIN_COST_LEAD, SHORT_WORD_LETTERS = 0.5, 4


@remedy("correct_spelling")
def correct_spelling(prompt: Prompt) -> Prompt:
    """Misspelt English words become the word one slip away; names, numbers and code stay."""
    said = Counter(w for s in prompt.sections for w in _lower_case_words(s.text))
    offered = {w for choice in prompt.choices for w in _lower_case_words(choice)}
    repeated = {w for w, times in said.items() if times > 1 and repaired(w) not in _usual_words()}
    own = offered | repeated
    return prompt.with_sections(tuple(_corrected_section(s, own) for s in prompt.sections))


def _lower_case_words(text: str) -> list[str]:
    return [text[start:end].lower() for start, end in natural_words(text, ())]


def _corrected_section(section: Section, own: set[str]) -> Section:
    """Return the section with its slips repaired.

    `own` are words of the prompt that are meant as they are spelled.
    """
    if section.kind not in ("input", "document"):
        return section
    text = section.text
    words = natural_words(text, _protected_spans(section))
    known = sum(text[start:end].lower() in common_words() for start, end in words)
    if known < MIN_KNOWN_SHARE * len(words):
        return section
    mentions = mentioned_words(text)
    changes: list[Replacement] = list(_openers(text, words, mentions))
    for start, end in uncovered(words, merged((*names(text), *mentions))):
        word = text[start:end]
        right = repaired(word.lower())
        if right is not None and word.lower() not in own:
            changes.append((start, end, right.capitalize() if word[0].isupper() else right))
    return replace_spans(section, sorted(changes))


def _protected_spans(section: Section) -> Sequence[Span]:
    return merged((*protect(section.text), *section.protected))


def _openers(text: str, words: Sequence[Span], mentions: Sequence[Span]) -> Iterator[Replacement]:
    """Yield the repair of the first word, if it is one slip away from a word that begins questions.

    Any other unknown first word may be a name.
    """
    first = next(iter(uncovered(words, mentions)), None)
    if first is None or text[: first[0]].strip(" \n\t\"'“‘"):
        return
    start, end = first
    word = text[start:end].lower()
    is_name = text[end : end + 2].strip()[:1].isupper()  # another capital follows
    if text[start].isupper() and word.isascii() and not is_name and word not in common_words():
        near = [right for right in _near_spellings(word) if right in _QUESTION_WORDS]
        if len(near) == 1:
            yield start, end, near[0].capitalize()


@cache
def repaired(word: str) -> str | None:
    """Return the only nearest word for a misspelt word in small letters; None if the word stays.

    A word stays if it, or a form of it, is in the list, or if two words are equally near. It also
    stays if the nearest word is a negation, a quantifier or a number: a wrong guess would change
    the question.
    """
    if len(word) < MIN_LETTERS or not word.isascii() or _is_known(word):
        return None
    ranked = sorted(
        (cost, right) for right, cost in _near_spellings(word).items() if right in common_words()
    )
    lead = _MIN_COST_LEAD if len(word) <= SHORT_WORD_LETTERS else 0.0
    if not ranked or (len(ranked) > 1 and ranked[1][0] - ranked[0][0] <= lead):
        return None
    right = ranked[0][1]
    guessed = len(word) <= SHORT_WORD_LETTERS and right not in _usual_words()
    return None if guessed or right in kept_words() else right


def _is_known(word: str) -> bool:
    """Return True if a word, its stem or both parts of a compound are listed."""
    if word in common_words() or word in _listed_words("known_en.txt"):
        return True
    stems = [word.removesuffix(suffix) for suffix in _SUFFIXES if word.endswith(suffix)]
    forms = {form for stem in stems for form in (stem, stem + "e")}
    forms |= {stem[:-1] for stem in stems if stem[-1:] == stem[-2:-1]}
    if word.endswith("s") and word[-2:-1] != "s":
        forms.add(word[:-1])
    joined = ((word[:at], word[at:]) for at in range(MIN_LETTERS, len(word) - MIN_LETTERS + 1))
    return any(len(form) > 3 and form in common_words() for form in forms) or any(
        _is_part(first) and _is_part(second) for first, second in joined
    )


def _is_part(word: str) -> bool:
    """Return True if a word makes compounds; of three letters, only usual ones do."""
    return word in _usual_words() or (len(word) > MIN_LETTERS and word in common_words())


def _near_spellings(word: str) -> dict[str, float]:
    """Return every spelling one slip away, with the cost of that slip."""
    costs: dict[str, float] = {}
    usual = _usual_words()
    for right, cost in _possible_slips(word):
        cost += _FIRST_LETTER_COST * (right[:1] != word[:1]) + _USUAL_WORD_COST * (right in usual)
        costs[right] = min(cost, costs.get(right, cost))
    return costs


def _possible_slips(word: str) -> Iterator[tuple[str, float]]:
    """Yield the spellings that one slip may have turned into `word`, each with the slip's cost.

    Slips are letters swapped, added, left out or replaced.
    """
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        if len(tail) > 1 and tail[0] != tail[1]:
            yield head + tail[1] + tail[0] + tail[2:], _SWAP_COST
        if tail:
            yield head + tail[1:], _DOUBLING_COST if head[-1:] == tail[0] else _SLIP_COST
        for letter in ascii_lowercase:
            near = letter in (head[-1:], tail[:1])
            yield head + letter + tail, _DOUBLING_COST if near else _SLIP_COST
            if tail and letter != tail[0]:
                beside = letter in _neighbours()[tail[0]]
                yield head + letter + tail[1:], _SLIP_COST if beside else _OTHER_COST


def _usual_words() -> frozenset[str]:
    """Return words that occur in most texts; of two words equally near, such a one is meant."""
    return _listed_words("usual_en.txt")


@cache
def _listed_words(name: str) -> frozenset[str]:
    lines = files("falter.remedies").joinpath("data", name).read_text("utf-8").splitlines()
    return frozenset(w for line in lines if not line.startswith("#") for w in line.split())


@cache
def _neighbours() -> dict[str, set[str]]:
    """Return, for each letter, the keys next to it on an English keyboard."""
    beside: dict[str, set[str]] = {letter: set() for letter in ascii_lowercase}
    for row, letters in enumerate(_KEYBOARD_ROWS):
        for at, letter in enumerate(letters):
            below = _KEYBOARD_ROWS[row + 1] if row + 1 < len(_KEYBOARD_ROWS) else ""
            for other in (letters[at + 1 : at + 2], below[at : at + 1], below[max(0, at - 1) : at]):
                for key in other:
                    beside[letter].add(key)
                    beside[key].add(letter)
    return beside
