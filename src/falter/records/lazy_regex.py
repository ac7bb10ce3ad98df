"""Regular expressions that are compiled when they are first used.

Hundreds of them read replies and protect texts; a command needs a few, and compiling all of them at
import takes longer than everything else that a start does.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import cast


class _LateRegex:
    """Becomes the compiled expression, method by method, as it is asked for them."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        # Kept on the instance, so that the next look-up comes no more through here.
        value = self.__dict__[name] = getattr(re.compile(*self._source), name)
        return value

    def __repr__(self) -> str:
        return f"late_regex({self._source[0]!r})"


def late_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, later: has its methods, but cannot be handed to the functions of `re`.

    Nor is it the `re` of its matches: ask which search it was, not which expression.

    >>> late_regex("b+").sub("c", "abba")
    'aca'
    """
    return cast("re.Pattern[str]", _LateRegex(pattern, flags))


def named_regex(room: str, name: str) -> re.Pattern[str]:
    """An expression of a room's `data/patterns.txt`, compiled when it is first used."""
    return late_regex(named_patterns(room)[name])


@cache
def named_patterns(room: str) -> dict[str, str]:
    """The sources of the expressions in a room's `data/patterns.txt`, by name.

    Each stands indented below its name, in as many lines as it takes, which are joined without the
    blanks around them. `⟨name⟩` stands for an earlier one, a `#` in front of a name for a comment.
    """
    named: dict[str, str] = {}
    text = (files("falter") / room / "data" / "patterns.txt").read_text("utf-8")
    for block in re.split(r"\n+(?=\S)", text):
        name, *lines = block.split("\n")
        pattern = "".join(map(str.strip, lines))
        named[name] = re.sub(r"⟨(\w+)⟩", lambda other: named[other[1]], pattern)
    return named
