"""A rewrite bank for tests, which makes up its rewrites on the spot."""

from __future__ import annotations

import re

from falter.core.records import Rewrite
from falter.text import natural_words, protect

__all__ = ["MadeUpRewrites"]

_UNTOUCHED = re.compile(
    r"(?:no|not|never|none|nor|without|cannot|all|any|every|each|few|many|most|some|only"
    r"|one|two|three|four|five|six|seven|eight|nine|ten)",
    re.IGNORECASE,
)


class MadeUpRewrites:
    """Reverses every ordinary word of four letters or more.

    Protected text, negations and numbers stay as they are, just as a careful author leaves them.
    """

    def find(self, key: str, text: str) -> Rewrite | None:
        return Rewrite(
            key=key,
            perturbation="any",
            version=1,
            params={},
            source=text,
            draw=0,
            author="made up",
            status="ok",
            text=_reworded(text),
        )


def _reworded(text: str) -> str:
    parts: list[str] = []
    at = 0
    for start, end in natural_words(text, protect(text)):
        word = text[start:end]
        if len(word) >= 4 and not _UNTOUCHED.fullmatch(word):
            parts += [text[at:start], word[::-1].lower()]
            at = end
    return "".join([*parts, text[at:]])
