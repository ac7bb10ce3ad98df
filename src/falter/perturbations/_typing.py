"""Slips of the finger in one word."""

from __future__ import annotations

from collections.abc import Callable

from falter.core.rng import Rng
from falter.perturbations._resources import keyboard, misspellings
from falter.perturbations._vocabulary import COMMON, KEPT

__all__ = ["can_misspell", "mistyped"]

_ATTEMPTS = 8
Slip = Callable[[str, str, Rng], str | None]


def known_misspellings(word: str, language: str) -> tuple[str, ...]:
    """How people misspell the word; a capital only at its start makes no difference."""
    table = misspellings(language)
    return table.get(word) or table.get(word.lower(), ())


def can_misspell(word: str, language: str) -> bool:
    """Whether the table knows misspellings of the word."""
    return bool(known_misspellings(word, language))


def mistyped(word: str, kind: str, language: str, rng: Rng) -> str | None:
    """The word with one slip of the given kind, its first letter in the case it had.

    Never the same word, nor another one that is known to be right; None when no try gives one.
    """
    slips = _SLIPS[kind]
    for _ in range(_ATTEMPTS):
        slip = slips[rng.below(len(slips))]
        made = slip(word, language, rng)
        if made is None:
            continue
        made = _same_case(word, made)
        if made != word and not _is_word(made, language):
            return made
    return None


def _same_case(word: str, made: str) -> str:
    first = made[0].upper() if word[0].isupper() else made[0].lower()
    return first + made[1:].lower()


def _is_word(made: str, language: str) -> bool:
    low = made.lower()
    return low in COMMON or low in KEPT or low in misspellings(language)


def _neighbour(word: str, language: str, rng: Rng) -> str | None:
    at = rng.below(len(word))
    near = keyboard(language).get(word[at].lower())
    return None if not near else word[:at] + near[rng.below(len(near))] + word[at + 1 :]


def _misspelling(word: str, language: str, rng: Rng) -> str | None:
    wrong = known_misspellings(word, language)
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
