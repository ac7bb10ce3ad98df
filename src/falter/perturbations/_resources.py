"""Bundled word lists and tables, read when they are first needed."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from falter.core.errors import InvalidValue
from falter.text import common_words, kept_words

__all__ = [
    "confusions",
    "contractions",
    "homophones",
    "keyboard",
    "known_words",
    "lines",
    "listed",
    "misspellings",
    "never_produced",
    "never_written",
    "skipped",
    "stop_words",
    "synonyms",
    "table",
    "unnatural",
    "user_lines",
]


def _bundled_text(name: str) -> str:
    return files("falter.perturbations").joinpath("data", name).read_text(encoding="utf-8")


def table(name: str) -> Any:
    """A bundled JSON file."""
    return json.loads(_bundled_text(name))


def listed(text: str) -> tuple[str, ...]:
    """The lines of a list, without blank ones and comments."""
    stripped = (line.strip() for line in text.splitlines())
    return tuple(line for line in stripped if line and not line.startswith("#"))


@cache
def lines(name: str) -> tuple[str, ...]:
    """A bundled list, one entry a line."""
    return listed(_bundled_text(name))


@cache
def stop_words(language: str) -> frozenset[str]:
    """Function words that may be dropped, in lower case."""
    return frozenset(lines(f"stop_words_{language}.txt"))


@cache
def known_words(language: str) -> frozenset[str]:
    """Correctly spelt words, in lower case: noise must not turn one into another."""
    right = (word.lower() for word in misspellings(language))
    own = lines(f"common_{language}.txt")
    return kept_words(language).union(own, right, common_words(language))


@cache
def never_produced(language: str) -> frozenset[str]:
    """What noise must not turn a word into: correctly spelt words, slurs and coarse words."""
    return known_words(language).union(never_written())


@cache
def never_written() -> frozenset[str]:
    """Slurs and coarse words of all languages, in lower case."""
    return frozenset(codecs.decode(word, "rot13") for word in lines("never_written.txt"))


@cache
def keyboard(language: str) -> Mapping[str, str]:
    """Each lower-case letter with the letters next to it on the keyboard."""
    entries: dict[str, list[str]] = table(f"keyboard_{language}.json")
    return {key: "".join(near) for key, near in entries.items()}


@cache
def misspellings(language: str) -> Mapping[str, tuple[str, ...]]:
    """Words with the ways people misspell them."""
    entries: dict[str, list[str]] = table(f"misspellings_{language}.json")
    return {word: tuple(wrong) for word, wrong in entries.items()}


@cache
def unnatural(language: str) -> frozenset[str]:
    """Known misspellings, in lower case, except those that are also words."""
    right = misspellings(language)
    return frozenset(w.lower() for wrong in right.values() for w in wrong if w not in right)


@cache
def skipped(language: str) -> frozenset[str]:
    """Words that noise leaves alone: known misspellings, and words that carry meaning."""
    return unnatural(language) | kept_words(language)


@cache
def confusions(name: str) -> Mapping[str, tuple[str, ...]]:
    """Letters and pairs of letters with their replacements: `ocr`, `homoglyphs`, `leet`."""
    entries: dict[str, list[str]] = table(f"{name}.json")
    return {letters: tuple(replacements) for letters, replacements in entries.items()}


@cache
def homophones(language: str) -> Mapping[str, tuple[str, ...]]:
    """Words with the words that sound the same."""
    groups: list[list[str]] = table(f"homophones_{language}.json")
    return {word: tuple(w for w in group if w != word) for group in groups for word in group}


@cache
def contractions(language: str) -> Mapping[str, Mapping[str, str]]:
    """`contract`: full forms with their short ones; `expand`: short forms with their full ones."""
    entries: dict[str, dict[str, str]] = table(f"contractions_{language}.json")
    return entries


@cache
def synonyms(language: str) -> Mapping[str, tuple[str, ...]]:
    """Words, inflected ones included, with synonyms in the same form."""
    entries: dict[str, list[str]] = table(f"synonyms_{language}.json")
    return {word: tuple(alternatives) for word, alternatives in entries.items()}


@cache
def user_lines(argument: str, path: str) -> tuple[str, ...]:
    """The user's own list, one entry a line; read once."""
    try:
        with open(path, encoding="utf-8") as file:
            entries = listed(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(argument, path, f"a readable UTF-8 text file ({error})") from None
    if not entries:
        raise InvalidValue(argument, path, "a file with at least one line of text")
    return entries
