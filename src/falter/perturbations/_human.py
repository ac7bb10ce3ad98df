"""A model of how people misspell English words, fitted to misspellings that people made.

An edit is drawn among all that a word allows, in proportion to the rate of its letters times a
factor for its place: *e* for *a* is common, a neighbouring key rare, a first letter hardly ever
wrong. `bench/human_typos_fit.py` fits the rates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

from falter.core.rng import Rng
from falter.perturbations._resources import keyboard, misspellings, never_produced, table

__all__ = ["PLACES", "band_of", "length_weights", "misspelt", "misspelt_by_model", "place_of"]

PLACES = ("first", "second", "early", "middle", "late", "last", "end")
_ATTEMPTS = 8
_SHORT = 7
_ATTESTED = 0.5  # of the words whose misspellings are known, this share gets a known one
Candidate = tuple[str, float, bool]  # spelling, weight, whether a slip of the hand


def place_of(at: int, length: int) -> str:
    """The part of a word in which a letter stands; `end` is behind the last one."""
    if at >= length:
        return "end"
    if at < 2:
        return PLACES[at]
    if at == length - 1:
        return "last"
    return ("early", "middle", "late")[min(2, 3 * at // length)]


def band_of(length: int) -> str:
    """Whether a word is one of the short ones, in which people make fewer mistakes at once."""
    return "short" if length <= _SHORT else "long"


@cache
def _model() -> Mapping[str, Any]:
    fitted: dict[str, Any] = table("human_typos_en.json")
    return fitted


_LONGEST = 64


@cache
def _rates(start: str) -> tuple[tuple[str, float], ...]:
    """The edits that begin with these letters, each with its rate."""
    rates = _model()["rates"]
    return tuple(
        (key.partition(">")[2], rate) for key, rate in rates.items() if key.startswith(f"{start}>")
    )


@cache
def length_weights() -> Sequence[float]:
    """How often words of 0, 1, … 16 letters or more are misspelt, relative to others."""
    weights: Mapping[str, float] = _model()["lengths"]
    return tuple(weights[str(max(2, length))] for length in range(17))


def _candidates(word: str) -> Iterator[Candidate]:
    """Every single edit of a word in small letters, with its weight."""
    places = _model()["places"]
    near = keyboard("en")
    padded, length = f"^{word}", len(word)
    for at in range(length + 1):
        place, before = PLACES.index(place_of(at, length)), padded[at]
        head, rest = word[:at], word[at:]
        for new, rate in _rates(f"add {before}"):
            if new == rest[:1]:
                continue
            slip = new in near.get(before, "") or new in near.get(rest[:1], "")
            yield head + new + rest, rate * places["add"][place], slip
        if at == length:
            return
        letter = rest[0]
        for new, rate in _rates(f"replace {letter}"):
            slip = new in near.get(letter, "")
            yield head + new + rest[1:], rate * places["replace"][place], slip
        for _, rate in _rates(f"double {letter}"):
            yield head + letter + rest, rate * places["add"][place], False
        double = letter if rest[1:2] == letter else ""
        for _, rate in _rates(f"drop {double}{letter}"):
            yield head + rest[1:], rate * places["drop"][place], False
        for _, rate in _rates(f"swap {rest[:2]}"):
            yield head + rest[1] + letter + rest[2:], rate * places["swap"][place], True


@lru_cache(maxsize=8192)
def _drawable(word: str, kind: str) -> tuple[Sequence[str], Sequence[float]]:
    """The misspellings of a word and their weights, added up."""
    weights: dict[str, float] = {}
    for spelling, weight, slip in _candidates(word):
        if kind == "all" or slip == (kind == "slip"):
            weights[spelling] = weights.get(spelling, 0.0) + weight
    weights.pop(word, None)
    return tuple(weights), tuple(accumulate(weights.values()))


@lru_cache(maxsize=8192)
def _attested(word: str) -> tuple[Sequence[str], Sequence[float]]:
    """The known misspellings of a word, the likelier the more the model expects them."""
    known = [spelling for spelling in misspellings("en").get(word, ()) if spelling.islower()]
    if not known:
        return (), ()
    spellings, sums = _drawable(word, "all")
    weights = dict(zip(spellings, _differences(sums), strict=True))
    rare = min(weights.values(), default=1.0)
    return tuple(known), tuple(accumulate(weights.get(spelling, rare) for spelling in known))


def _differences(sums: Sequence[float]) -> Iterator[float]:
    before = 0.0
    for value in sums:
        yield value - before
        before = value


def _drawn(spellings: Sequence[str], sums: Sequence[float], rng: Rng) -> str | None:
    if not spellings:
        return None
    return spellings[min(len(sums) - 1, bisect_right(sums, rng.random() * sums[-1]))]


def misspelt_by_model(word: str, rng: Rng, kind: str = "all") -> str | None:
    """A word in small letters with one to three edits; None if it has none."""
    shares = _model()["edits"][band_of(len(word))]
    u, edits = rng.random(), 1
    while edits < len(shares) and u > sum(shares[:edits]):
        edits += 1
    changed = word
    for _ in range(edits):
        edited = _drawn(*_drawable(changed, kind), rng)
        changed = changed if edited is None else edited
    return None if changed == word else changed


def misspelt(word: str, kind: str, rng: Rng) -> str | None:
    """The word as a person may misspell it, its first letter in the same case.

    Never another common word, nor a coarse one; None if no attempt gives such a result, and for
    what is too long to be a word.
    """
    if len(word) > _LONGEST:
        return None
    low, unwanted = word.lower(), never_produced("en")
    for _ in range(_ATTEMPTS):
        known = kind == "all" and rng.random() < _ATTESTED
        wrong = _drawn(*_attested(low), rng) if known else None
        wrong = wrong or misspelt_by_model(low, rng, kind)
        if wrong is not None and wrong not in unwanted and len(wrong) > 1:
            return wrong[0].upper() + wrong[1:] if word[0].isupper() else wrong
    return None
