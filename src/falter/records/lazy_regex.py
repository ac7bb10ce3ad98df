"""Regular expressions that are compiled when they are first used.

Hundreds of them read replies and protect texts; a command needs a few, and compiling all of them at
import takes longer than everything else that a start does.
"""

from __future__ import annotations

import re
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
