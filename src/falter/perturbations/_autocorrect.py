"""What automatic correction makes of words that were right, or nearly so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._resources import skipped, table
from falter.perturbations._wording import FAMILY, MEANING, NOISE, capitalised_like, spelt_spans
from falter.text import Replacement, natural_words, overlaps, passive_auxiliaries, uncovered

__all__ = ["autocorrect"]


@cache
def _corrections(language: str) -> Mapping[str, tuple[str, ...]]:
    entries: dict[str, list[str]] = table(f"autocorrect_{language}.json")
    return {word: tuple(wrong) for word, wrong in entries.items()}


_AUXILIARIES = frozenset({"been", "being", "is", "was", "were"})
# A share of something (*half if the balls*) or a condition with a number (*of 20 people vote*)
# would read as another sentence.
_SHARE = re.compile(
    r"(?:[\d%]|\b(?:half|per ?cent|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)"
    r"s?)) of\b|\bif (?=\d)",
    re.IGNORECASE,
)


def _corrected(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    known = _corrections(language)
    spans = natural_words(text, blocked, skipped(language))
    found = [span for span in spans if text[span[0] : span[1]].lower() in known]
    found = uncovered(found, spelt_spans(text, language)) if found else found
    shares = [match.span() for match in _SHARE.finditer(text)] if found else []
    if shares:
        found = [span for span in found if not overlaps(shares, *span)]
    words = {text[start:end] for start, end in found}
    if not all(word.islower() for word in words):
        found = [span for span in found if _changes(text[span[0] : span[1]], known)]
    if words.isdisjoint(_AUXILIARIES):
        return found
    passives = passive_auxiliaries(text, language)
    return [span for span in found if not overlaps(passives, *span)] if passives else found


def _changes(word: str, known: Mapping[str, Sequence[str]]) -> bool:
    """Whether a correction reads differently: *May* at the start of a sentence is *May* already."""
    return any(capitalised_like(word, wrong) != word for wrong in known[word.lower()])


@site_perturbation(
    "autocorrect",
    version=2,
    title="wrong automatic corrections",
    sites=_corrected,
    family=FAMILY,
    group=NOISE,
    default_rate=0.1,
    invariants=MEANING,
    languages=("en",),
)
def autocorrect(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Puts the word that a phone or a word processor makes of another one: *were* and *we're*.

    The rate is the share of the words that are in the table. A word in the wrong place is the
    point of it, so that the check of words finds some of them.
    """
    start, end = site
    wrong = rng.choice(_corrections(language)[text[start:end].lower()])
    return start, end, capitalised_like(text[start:end], wrong)
