"""Perturbations of spelling: typing mistakes, common misspellings and automatic correction."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from math import floor, log
from typing import Any, Unpack

from falter.perturbations.base import (
    Description,
    SitePerturbation,
    checked_parameters,
    declared,
    perturbations,
    site_perturbation,
    with_changes,
)
from falter.perturbations.vocabulary import (
    capitalised_like,
    corrections,
    keyboard,
    long_words,
    misspellings,
    never_produced,
    plain_words,
    skipped_words,
    spelt_spans,
    table,
)
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Prompt, Span
from falter.text.meaning import passive_auxiliaries
from falter.text.spans import Replacement, overlaps, uncovered

# Typing mistakes in one word

_MAX_ATTEMPTS = 8
Slip = Callable[[str, str, Rng], str | None]


def mistyped(word: str, kind: str, language: str, rng: Rng) -> str | None:
    """Return the word with one typing mistake of the given kind, or None.

    The first letter keeps its case. The result is never the same word, another correctly spelt word
    or a coarse word. None if no attempt gives such a result.
    """
    slips, unwanted = _SLIPS[kind], never_produced(language)
    for _ in range(_MAX_ATTEMPTS):
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
    """Return the word with two inner letters exchanged, or None if it is too short."""
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


def _typo_sites(text: str, blocked: Sequence[Span], kind: str, language: str) -> list[Span]:
    words = long_words(text, blocked, language)
    return words if kind != "misspelling" else _words_in_table(text, words, language)


def _words_in_table(text: str, words: Sequence[Span], language: str) -> list[Span]:
    table = misspellings(language)
    return [(start, end) for start, end in words if text[start:end].lower() in table]


@site_perturbation("typos", sites=_typo_sites)
def typos(text: str, site: Span, rng: Rng, kind: str, language: str) -> Replacement | None:
    """Mistypes a word: a neighbouring key, a swap, a drop, a double, a misspelling.

    Words of three letters or more; the first letter keeps its case, and the result is never a
    correctly spelt word. Negations, quantifiers and number words stay as they are.
    """
    start, end = site
    mistake = mistyped(text[start:end], kind, language, rng)
    return None if mistake is None else (start, end, mistake)


def _spelling_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    return _words_in_table(text, plain_words(text, blocked, language), language)


@site_perturbation("spelling", sites=_spelling_sites)
def spelling(text: str, site: Span, rng: Rng, language: str) -> Replacement | None:
    """Misspells words as people do, from a table.

    The rate is the share of the words that are in the table. It is the table of
    `typos:kind=misspelling`, but the results appear in a group of their own.
    """
    start, end = site
    misspelt = mistyped(text[start:end], "misspelling", language, rng)
    return None if misspelt is None else (start, end, misspelt)


# A model of how people misspell English words, fitted to misspellings that people made.
#
# An edit is drawn among all that a word allows, in proportion to the rate of its letters times a
# factor for its place: *e* for *a* is common, a neighbouring key rare, a first letter hardly ever
# wrong. `bench/human_typos_fit.py` fits the rates.


WORD_PLACES = ("first", "second", "early", "middle", "late", "last", "end")
_MAX_HUMAN_ATTEMPTS = 8
_SHORT_WORD_LETTERS = 7
_ATTESTED_SHARE = 0.5  # of the words whose misspellings are known, this share gets a known one
Candidate = tuple[str, float, bool]  # spelling, weight, True for a slip of the hand


def place_of(at: int, length: int) -> str:
    """Return the part of a word in which a letter is; `end` is the place after the last letter."""
    if at >= length:
        return "end"
    if at < 2:
        return WORD_PLACES[at]
    if at == length - 1:
        return "last"
    return ("early", "middle", "late")[min(2, 3 * at // length)]


def band_of(length: int) -> str:
    """Return the length class of a word. In short words people make fewer mistakes at once."""
    return "short" if length <= _SHORT_WORD_LETTERS else "long"


@cache
def _typo_model() -> Mapping[str, Any]:
    fitted: dict[str, Any] = table("human_typos_en.json")
    return fitted


_MAX_WORD_LETTERS = 64


@cache
def _edit_rates(start: str) -> tuple[tuple[str, float], ...]:
    """Return the edits whose key begins with `start`, such as `add a`, each with its rate."""
    rates = _typo_model()["rates"]
    return tuple(
        (key.partition(">")[2], rate) for key, rate in rates.items() if key.startswith(f"{start}>")
    )


@cache
def length_weights() -> Sequence[float]:
    """Return relative frequencies of misspelling for words of 0, 1, … 16 letters or more."""
    weights: Mapping[str, float] = _typo_model()["lengths"]
    return tuple(weights[str(max(2, length))] for length in range(17))


def _weighted_edits(word: str) -> Iterator[Candidate]:
    """Yield every single edit of a word in small letters, with its weight."""
    places = _typo_model()["places"]
    near = keyboard("en")
    padded, length = f"^{word}", len(word)
    for at in range(length + 1):
        place, before = WORD_PLACES.index(place_of(at, length)), padded[at]
        head, rest = word[:at], word[at:]
        for new, rate in _edit_rates(f"add {before}"):
            if new == rest[:1]:
                continue
            slip = new in near.get(before, "") or new in near.get(rest[:1], "")
            yield head + new + rest, rate * places["add"][place], slip
        if at == length:
            return
        letter = rest[0]
        for new, rate in _edit_rates(f"replace {letter}"):
            slip = new in near.get(letter, "")
            yield head + new + rest[1:], rate * places["replace"][place], slip
        for _, rate in _edit_rates(f"double {letter}"):
            yield head + letter + rest, rate * places["add"][place], False
        double = letter if rest[1:2] == letter else ""
        for _, rate in _edit_rates(f"drop {double}{letter}"):
            yield head + rest[1:], rate * places["drop"][place], False
        for _, rate in _edit_rates(f"swap {rest[:2]}"):
            yield head + rest[1] + letter + rest[2:], rate * places["swap"][place], True


@lru_cache(maxsize=8192)
def _weighted_misspellings(word: str, kind: str) -> tuple[Sequence[str], Sequence[float]]:
    """Return the misspellings of a word, and the cumulative sums of their weights."""
    weights: dict[str, float] = {}
    for spelling, weight, slip in _weighted_edits(word):
        if kind == "all" or slip == (kind == "slip"):
            weights[spelling] = weights.get(spelling, 0.0) + weight
    weights.pop(word, None)
    return tuple(weights), tuple(accumulate(weights.values()))


@lru_cache(maxsize=8192)
def _attested_misspellings(word: str) -> tuple[Sequence[str], Sequence[float]]:
    """Return the known misspellings of a word, and the cumulative sums of their weights.

    The weights are those of the model. A misspelling that the model cannot produce gets the
    smallest of them.
    """
    known = [spelling for spelling in misspellings("en").get(word, ()) if spelling.islower()]
    if not known:
        return (), ()
    spellings, sums = _weighted_misspellings(word, "all")
    weights = dict(zip(spellings, _single_weights(sums), strict=True))
    rare = min(weights.values(), default=1.0)
    return tuple(known), tuple(accumulate(weights.get(spelling, rare) for spelling in known))


def _single_weights(sums: Sequence[float]) -> Iterator[float]:
    before = 0.0
    for value in sums:
        yield value - before
        before = value


def _draw_spelling(spellings: Sequence[str], sums: Sequence[float], rng: Rng) -> str | None:
    """Return a spelling drawn in proportion to its weight, or None if there is none."""
    if not spellings:
        return None
    return spellings[min(len(sums) - 1, bisect_right(sums, rng.random() * sums[-1]))]


def misspelt_by_model(word: str, rng: Rng, kind: str = "all") -> str | None:
    """Return a word in small letters with one to three edits; None if it has none."""
    shares = _typo_model()["edits"][band_of(len(word))]
    u, edits = rng.random(), 1
    while edits < len(shares) and u > sum(shares[:edits]):
        edits += 1
    changed = word
    for _ in range(edits):
        edited = _draw_spelling(*_weighted_misspellings(changed, kind), rng)
        changed = changed if edited is None else edited
    return None if changed == word else changed


def misspelt(word: str, kind: str, rng: Rng) -> str | None:
    """Return the word as a person may misspell it, or None.

    The first letter keeps its case. The result is never another common word, nor a coarse one. None
    if no attempt gives such a result, and for a text too long to be a word.
    """
    if len(word) > _MAX_WORD_LETTERS:
        return None
    low, unwanted = word.lower(), never_produced("en")
    for _ in range(_MAX_HUMAN_ATTEMPTS):
        known = kind == "all" and rng.random() < _ATTESTED_SHARE
        wrong = _draw_spelling(*_attested_misspellings(low), rng) if known else None
        wrong = wrong or misspelt_by_model(low, rng, kind)
        if wrong is not None and wrong not in unwanted and len(wrong) > 1:
            return wrong[0].upper() + wrong[1:] if word[0].isupper() else wrong
    return None


# Misspellings as people make them, in doses as people make them

DOSES = {"heavy": 0.15, "light": 0.02, "medium": 0.05}
"""Shares of all words: heavy as on a phone on a bus, light as in an e-mail, medium as in a chat."""


class _HumanTypos(SitePerturbation):
    """A perturbation that misspells a share of all words, long ones more often than short ones.

    The dose is a share of all words of the sections in scope. A remaining fraction of an edit is
    made by chance, so that a short question often has none. A weaker dose is part of a stronger
    one.
    """

    def __init__(self, name: str, summary: str, **described: Unpack[Description]) -> None:
        super().__init__(name, summary, _misspell, sites=long_words, **described)
        ours = {parameter.name: parameter for parameter in self.parameters}
        order = ("dose", "count", "kind", "protect", "scope", "language")
        self.parameters = tuple(ours[name] for name in order)
        self._own_names = ("language",)

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        chance, edits_left = rng.random(), full["count"]
        if edits_left is None:
            texts = (s.text for s in prompt.sections if s.kind in full["scope"])
            words = sum(text.count(" ") + 1 for text in texts)
            edits_left = floor(DOSES[full["dose"]] * words + chance)
        if not edits_left:
            return prompt
        own = {name: full[name] for name in self._own_names}
        found = self._find_sites(prompt, full, own)
        places = [(at, site) for at, sites in found for site in sites]
        weights, draw = length_weights(), rng.random
        # Weighted order without replacement: exponential times whose rates are the weights.
        keys = [-log(1.0 - draw()) / weights[min(16, b - a)] for _, (a, b) in places]
        edits: dict[int, list[Replacement]] = {}
        for n in sorted(range(len(places)), key=keys.__getitem__):
            at, site = places[n]
            change = _misspell(prompt.sections[at].text, site, rng, full["kind"])
            if change is not None:
                edits.setdefault(at, []).append(change)
                edits_left -= 1
                if not edits_left:
                    break
        return with_changes(prompt, edits)


def _misspell(text: str, site: Span, rng: Rng, kind: str) -> Replacement | None:
    start, end = site
    wrong = misspelt(text[start:end], kind, rng)
    return None if wrong is None else (start, end, wrong)


human_typos = _HumanTypos("human_typos", **declared("human_typos"))
perturbations.register("human_typos", human_typos)


# What automatic correction makes of words that were right, or nearly so


@cache
def _correctable(language: str) -> re.Pattern[str]:
    """Return a pattern for the ordinary words of the table, with or without a capital."""
    words = sorted(word for word in corrections(language) if word not in skipped_words(language))
    spelt = "|".join(re.escape(word) for low in words for word in (low, low.title()))
    joined = "\\w\u0300-\u036f"
    return re.compile(rf"(?<![{joined}])(?<!\w['’])(?:{spelt})(?![{joined}])(?!['’]\w)")


_AUXILIARIES = frozenset({"been", "being", "is", "was", "were"})
# A share of something (*half if the balls*) or a condition with a number (*of 20 people vote*)
# would read as another sentence.
_SHARE_NOUN = named_regex("perturbations", "share")


def _corrected_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    """Return the words of the table that a correction may replace.

    Names, shares such as *half of the*, and auxiliaries of a passive stay.
    """
    known = corrections(language)
    spans = [match.span() for match in _correctable(language).finditer(text)]
    found = uncovered(spans, blocked) if spans else spans
    found = uncovered(found, spelt_spans(text, language)) if found else found
    shares = [match.span() for match in _SHARE_NOUN.finditer(text)] if found else []
    if shares:
        found = [span for span in found if not overlaps(shares, *span)]
    words = {text[start:end] for start, end in found}
    if not all(word.islower() for word in words):
        found = [span for span in found if _has_correction(text[span[0] : span[1]], known)]
    if words.isdisjoint(_AUXILIARIES):
        return found
    passives = passive_auxiliaries(text, language)
    return [span for span in found if not overlaps(passives, *span)] if passives else found


def _has_correction(word: str, known: Mapping[str, Sequence[str]]) -> bool:
    """Return True if a correction changes the word: a *May* that begins a sentence stays *May*."""
    return any(capitalised_like(word, wrong) != word for wrong in known[word.lower()])


@site_perturbation("autocorrect", sites=_corrected_sites)
def autocorrect(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Puts the word that a phone or a word processor makes of another one: *were* and *we're*.

    The rate is the share of the words that are in the table. A word in the wrong place is the
    point of it, so that the check of words finds some of them.
    """
    start, end = site
    wrong = rng.choice(corrections(language)[text[start:end].lower()])
    return start, end, capitalised_like(text[start:end], wrong)
