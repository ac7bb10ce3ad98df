"""Bundled word lists and tables, read when they are first needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from falter.core.errors import InvalidValue

__all__ = ["keyboard", "lines", "listed", "misspellings", "stop_words", "unnatural", "user_lines"]


def _read(name: str) -> str:
    return files("falter.perturbations").joinpath("data", name).read_text(encoding="utf-8")


def listed(text: str) -> tuple[str, ...]:
    """The lines of a list, without blank ones and comments."""
    stripped = (line.strip() for line in text.splitlines())
    return tuple(line for line in stripped if line and not line.startswith("#"))


@cache
def lines(name: str) -> tuple[str, ...]:
    """A bundled list, one entry a line."""
    return listed(_read(name))


@cache
def stop_words(language: str) -> frozenset[str]:
    """Function words that may be dropped, in lower case."""
    return frozenset(lines(f"stop_words_{language}.txt"))


@cache
def keyboard(language: str) -> Mapping[str, str]:
    """Each lower-case letter with the letters next to it on the keyboard."""
    table: dict[str, list[str]] = json.loads(_read(f"keyboard_{language}.json"))
    return {key: "".join(near) for key, near in table.items()}


@cache
def misspellings(language: str) -> Mapping[str, tuple[str, ...]]:
    """Words with the ways people misspell them."""
    table: dict[str, list[str]] = json.loads(_read(f"misspellings_{language}.json"))
    return {word: tuple(wrong) for word, wrong in table.items()}


@cache
def unnatural(language: str) -> frozenset[str]:
    """Known misspellings, in lower case; a word that is also right is none."""
    right = misspellings(language)
    return frozenset(w.lower() for wrong in right.values() for w in wrong if w not in right)


@cache
def user_lines(argument: str, path: str) -> tuple[str, ...]:
    """The user's own list, one entry a line; read once."""
    try:
        with open(path, encoding="utf-8") as file:
            found = listed(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(argument, path, f"a readable UTF-8 text file ({error})") from None
    if not found:
        raise InvalidValue(argument, path, "a file with at least one line of text")
    return found
