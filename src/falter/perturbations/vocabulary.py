"""Bundled word lists and tables, and the words that noise may touch."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from falter.records.errors import InvalidValue
from falter.records.types import Span
from falter.text.meaning import cached_by_text, letter_symbols
from falter.text.names import common_words, mentioned_words, names
from falter.text.spans import merged, uncovered
from falter.text.words import kept_words, natural_words


def _bundled_text(name: str) -> str:
    return files("falter.perturbations").joinpath("data", name).read_text(encoding="utf-8")


def table(name: str) -> Any:
    """Return the value of a bundled JSON file."""
    return json.loads(_bundled_text(name))


def listed(text: str) -> tuple[str, ...]:
    """Return the lines of a list, without blank lines and comments."""
    stripped = (line.strip() for line in text.splitlines())
    return tuple(line for line in stripped if line and not line.startswith("#"))


@cache
def lines(name: str) -> tuple[str, ...]:
    """Return a bundled list, one entry per line."""
    return listed(_bundled_text(name))


def word_set(name: str) -> frozenset[str]:
    """Return one of the small sets of English words."""
    return frozenset(" ".join(_word_sets()[name]).split())


@cache
def _word_sets() -> Mapping[str, Sequence[str]]:
    sets: dict[str, list[str]] = table("word_sets_en.json")
    return sets


@cache
def proper_names() -> tuple[frozenset[str], ...]:
    """Return the first names of women, the first names of men, and towns.

    A name may take the place of another name of the same set.
    """
    return tuple(frozenset(" ".join(words).split()) for words in table("names.json").values())


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the function words that may be dropped, in lower case."""
    return frozenset(lines(f"stop_words_{language}.txt"))


@cache
def never_produced(language: str) -> frozenset[str]:
    """Return words that noise must not produce: correctly spelt words, slurs and coarse words."""
    right = (word.lower() for word in misspellings(language))
    own = lines(f"common_{language}.txt")
    return kept_words(language).union(own, right, common_words(language), never_written())


@cache
def never_written() -> frozenset[str]:
    """Return slurs and coarse words of all languages, in lower case."""
    return frozenset(codecs.decode(word, "rot13") for word in lines("never_written.txt"))


@cache
def _word_table(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return a bundled table: entries with their alternatives."""
    entries: dict[str, list[str]] = table(name)
    return {entry: tuple(alternatives) for entry, alternatives in entries.items()}


@cache
def keyboard(language: str) -> Mapping[str, str]:
    """Return, for each lower-case letter, the letters next to it on the keyboard."""
    near = _word_table(f"keyboard_{language}.json")
    return {key: "".join(letters) for key, letters in near.items()}


def misspellings(language: str) -> Mapping[str, tuple[str, ...]]:
    """Return words with the ways people misspell them."""
    return _word_table(f"misspellings_{language}.json")


def corrections(language: str) -> Mapping[str, tuple[str, ...]]:
    """Return words with the words that automatic correction makes of them."""
    return _word_table(f"autocorrect_{language}.json")


def confusions(name: str) -> Mapping[str, tuple[str, ...]]:
    """Return letters and pairs of letters with their replacements.

    `name` is the table: `ocr`, `homoglyphs` or `leet`.
    """
    return _word_table(f"{name}.json")


def synonym_table(language: str) -> Mapping[str, tuple[str, ...]]:
    """Return words, inflected ones included, with synonyms in the same form."""
    return _word_table(f"synonyms_{language}.json")


@cache
def homophone_table(language: str) -> Mapping[str, tuple[str, ...]]:
    """Return words with the words that sound the same."""
    groups: list[list[str]] = table(f"homophones_{language}.json")
    return {word: tuple(w for w in group if w != word) for group in groups for word in group}


@cache
def contraction_table(language: str) -> Mapping[str, Mapping[str, str]]:
    """Return two tables by name: `contract` and `expand`.

    `contract` has the short form of each full form, `expand` the full form of each short one.
    """
    entries: dict[str, dict[str, str]] = table(f"contractions_{language}.json")
    return entries


@cache
def skipped_words(language: str) -> frozenset[str]:
    """Return the words that noise leaves alone.

    They are words that carry meaning, such as negations, and known misspellings that are no words.
    """
    right = misspellings(language)
    wrong = (word.lower() for words in right.values() for word in words if word not in right)
    return kept_words(language).union(wrong)


@cache
def user_lines(argument: str, path: str) -> tuple[str, ...]:
    """Return the entries of the user's own list, one per line; the file is read once.

    Raise `InvalidValue` if the file is unreadable or has no entries.
    """
    try:
        with open(path, encoding="utf-8") as file:
            entries = listed(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(argument, path, f"a readable UTF-8 text file ({error})") from None
    if not entries:
        raise InvalidValue(argument, path, "a file with at least one line of text")
    return entries


# Words that noise may touch

# Articles and the like that are joined to the next word: l'eau, dell'acqua, d'água. The word after
# the apostrophe is an ordinary word; the part before it is not, and may be a negation (n'est).
_ELIDED = {
    language: re.compile(rf"(?<!\w)(?:{heads})['’](?=\w)", re.IGNORECASE)
    for language, heads in {
        "fr": "[cdjlmnst]|(?:jus|lors|puis|quoi|quel|pres)?qu|entr",
        "it": "[cdlmnstv]|(?:d|n|s|c)?[aeou]ll|gl|un|qu(?:est|ell|and)|(?:nessun|ciascun|qualcun"
        "|alcun)|tutt|nient|senz|mezz|anch|com|dov|cos|bell|buon|sant|pover|vent|trent",
        "pt": "d",
    }.items()
}


def plain_words(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    """Return the natural words that noise may touch.

    Negations, quantifiers, number words, names and words that the text mentions as words are left
    out. In French, Italian and Portuguese the word after an elision is included.
    """
    return uncovered(_plain_words(text, language), blocked)


def _find_plain_words(text: str, language: str) -> Sequence[Span]:
    """Return the natural words of the whole text that noise may touch, as `plain_words` does."""
    elided = _ELIDED.get(language)
    if elided is not None and ("'" in text or "’" in text):
        text = elided.sub(lambda match: " " * len(match[0]), text)
    words = natural_words(text, (), skipped_words(language))
    return uncovered(words, spelt_spans(text, language)) if words else words


def _find_spelt_spans(text: str, language: str) -> Sequence[Span]:
    """Return the spans in which spelling matters: names, and words that the text mentions."""
    name_spans, mentions = names(text, language), mentioned_words(text)
    return merged((*name_spans, *mentions)) if name_spans and mentions else name_spans or mentions


# Cached, because every recipe of an item needs the words of the same text.
_plain_words = cached_by_text(_find_plain_words)
spelt_spans = cached_by_text(_find_spelt_spans)


def long_words(text: str, blocked: Sequence[Span], language: str, least: int = 3) -> list[Span]:
    """Return the plain words of at least `least` letters."""
    return [span for span in plain_words(text, blocked, language) if span[1] - span[0] >= least]


def without_symbols(text: str, words: list[Span], language: str) -> list[Span]:
    """Return the words without single letters that are symbols: the side *a* is no article."""
    if language != "en" or all(end - start > 1 for start, end in words):
        return words
    return uncovered(words, letter_symbols(text))


# Words before *I* at the start of a clause: a capital does not make them a name.
_OPENERS = word_set("before_i")
_SENTENCE_START = re.compile(r"""(?:^|[.!?:\n])["'“”‘’«„¿¡(\s]{0,8}\Z""")


def is_no_name(text: str, start: int, word: str, language: str = "en") -> bool:
    """Return True if the word is not part of a name (Plan A, The Who, World War I).

    The word is then in lower case or begins a sentence.
    """
    if word.islower():
        return True
    if language == "en" and word.startswith("I'"):
        return True
    if language == "en" and word == "I":
        previous = text[max(0, start - 40) : start].rstrip().rpartition(" ")[2]
        return not (previous.isalpha() and previous.istitle()) or previous.lower() in _OPENERS
    before = text[max(0, start - 12) : start]
    return word.istitle() and _SENTENCE_START.search(before) is not None


def capitalised_like(model: str, word: str) -> str:
    """Return the word, with a capital first letter if `model` has one."""
    return word[0].upper() + word[1:] if model[0].isupper() else word
