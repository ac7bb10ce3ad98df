"""Typing mistakes in one word."""

from __future__ import annotations

from collections.abc import Callable

from falter.core.rng import Rng
from falter.perturbations._resources import keyboard, misspellings, never_produced

__all__ = ["mistyped"]

_ATTEMPTS = 8
Slip = Callable[[str, str, Rng], str | None]


def mistyped(word: str, kind: str, language: str, rng: Rng) -> str | None:
    """The word with one typing mistake of the given kind, its first letter in the same case.

    Never the same word, another correctly spelt one or a coarse one; None if no attempt gives such
    a result.
    """
    slips, unwanted = _SLIPS[kind], never_produced(language)
    for _ in range(_ATTEMPTS):
        changed = rng.choice(slips)(word, language, rng)
        if changed is None:
            continue
        low = changed.lower()
        if low in unwanted:
            continue
        first = low[0].upper() if word[0].isupper() else low[0]
        changed = first + low[1:]
        if len(first) == 1 and changed != word:  # the capital of ß is two letters
            return changed
    return None


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
