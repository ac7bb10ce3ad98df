"""Words compared apart from case, accents and inflection."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache


@lru_cache(maxsize=4096)
def folded_word(word: str) -> str:
    """A word in small letters without accents.

    >>> folded_word("Mètres"), folded_word("Größe")
    ('metres', 'grosse')
    """
    folded = unicodedata.normalize("NFD", word.casefold())
    return "".join(c for c in folded if not unicodedata.combining(c))


_PORTUGUESE = re.compile(r"[ãõ]|\b(?:é|são|foi|há|dos|das|ao|pelo|pela)\b", re.IGNORECASE)


def is_portuguese(text: str) -> bool:
    """Whether a text is in the language in which "no" means "in the".

    >>> is_portuguese("O valor no contrato é de 12 reais."), is_portuguese("There are no 12.")
    (True, False)
    """
    return _PORTUGUESE.search(text) is not None


def same_noun(one: str, other: str) -> bool:
    """Whether two folded words are forms of one: alike but for an ending.

    >>> same_noun("students", "student"), same_noun("knives", "knife"), same_noun("car", "cat")
    (True, True, False)
    """
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    shared = next(
        (n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if long.endswith(("ing", "ed", "er")) and shared == len(short) >= 4:
        return len(long) - shared <= 4  # stop, stopping
    return shared >= max(3, len(short) - 2) and len(long) - shared <= 3 and shared > len(long) / 2
