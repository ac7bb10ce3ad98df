"""Regular expressions that are compiled at their first use.

Hundreds of expressions read responses and protect texts, and a command needs few. Compiling all of
them at import takes longer than the rest of the start.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import cast


class _LazyRegex:
    """Proxy of a compiled expression. It compiles at the first access and caches each method."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        # Stored on the instance, so that the next look-up does not reach `__getattr__`.
        value = self.__dict__[name] = getattr(re.compile(*self._source), name)
        return value

    def __repr__(self) -> str:
        return f"lazy_regex({self._source[0]!r})"


def lazy_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a proxy with the methods of a compiled expression; functions of `re` refuse it.

    `match.re` is the compiled expression, not this proxy, so do not test `match.re is pattern`.

    >>> lazy_regex("b+").sub("c", "abba")
    'aca'
    """
    return cast("re.Pattern[str]", _LazyRegex(pattern, flags))


def named_regex(package: str, name: str) -> re.Pattern[str]:
    """Return an expression of a package's `data/patterns.txt`, compiled at its first use."""
    return lazy_regex(named_patterns(package)[name])


@cache
def named_patterns(package: str) -> dict[str, str]:
    """Return the sources of the expressions in a package's `data/patterns.txt`, by name.

    An expression is indented below its name. Its lines are joined without the blanks around them.
    `⟨name⟩` inserts an earlier expression. A name that begins with `#` is a comment.
    """
    named: dict[str, str] = {}
    text = (files("falter") / package / "data" / "patterns.txt").read_text("utf-8")
    for block in re.split(r"\n+(?=\S)", text):
        name, *lines = block.split("\n")
        pattern = "".join(map(str.strip, lines))
        named[name] = re.sub(r"⟨(\w+)⟩", lambda other: named[other[1]], pattern)
    return named
