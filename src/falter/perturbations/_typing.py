"""Slips of the finger in one word."""

from __future__ import annotations

from collections.abc import Callable

from falter.core.rng import Rng
from falter.perturbations._resources import keyboard, known_words, misspellings

__all__ = ["mistyped"]

_ATTEMPTS = 8
Slip = Callable[[str, str, Rng], str | None]


def mistyped(word: str, kind: str, language: str, rng: Rng) -> str | None:
    """The word with one slip of the given kind, its first letter in the case it had.

    Never the same word, nor another one that is known to be right; None when no try gives one.
    """
    slips, known = _SLIPS[kind], known_words(language)
    for _ in range(_ATTEMPTS):
        slip = slips[rng.below(len(slips))]
        made = slip(word, language, rng)
        if made is None:
            continue
        low = made.lower()
        if low in known:
            continue
        made = _capitalised(low) if word[0].isupper() else low
        if made is not None and made != word:
            return made
    return None


def _capitalised(word: str) -> str | None:
    """The word with a capital, where its first letter has one: ß has none."""
    first = word[0].upper()
    return first + word[1:] if len(first) == 1 else None


def _neighbour(word: str, language: str, rng: Rng) -> str | None:
    at = rng.below(len(word))
    near = keyboard(language).get(word[at].lower())
    return None if not near else word[:at] + near[rng.below(len(near))] + word[at + 1 :]


def _misspelling(word: str, language: str, rng: Rng) -> str | None:
    wrong = misspellings(language).get(word.lower())
    return wrong[rng.below(len(wrong))] if wrong else None


def _swap(word: str, language: str, rng: Rng) -> str | None:
    """Two inner letters change places."""
    if len(word) < 4:
        return None
    at = 1 + rng.below(len(word) - 3)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _drop(word: str, language: str, rng: Rng) -> str | None:
    at = 1 + rng.below(len(word) - 1)
    return word[:at] + word[at + 1 :]


def _double(word: str, language: str, rng: Rng) -> str | None:
    at = rng.below(len(word))
    return word[: at + 1] + word[at:]


_SLIPS: dict[str, tuple[Slip, ...]] = {
    "keyboard": (_neighbour,),
    "misspelling": (_misspelling,),
    "charmix": (_swap, _drop, _double),
    "all": (_neighbour, _misspelling, _swap, _drop, _double),
}
