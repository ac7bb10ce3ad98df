"""Words replaced by others: homophones, contractions, synonyms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations import _resources
from falter.perturbations._base import site_perturbation
from falter.perturbations._wording import (
    FAMILY,
    MEANING,
    NOISE,
    capitalised_like,
    is_no_name,
    plain_words,
)
from falter.text import Replacement, kept_words, overlaps, uncovered

__all__ = ["contractions", "homophones", "synonyms"]

_WORD = re.compile(r"(?<![\w'’/-])[^\W\d_]++(?:['’][^\W\d_]++)?(?![\w/\-])(?!['’]\w)")


def _sounding_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    table, protected_words = _resources.homophones(language), kept_words(language)
    spans: list[Span] = []
    for match in _WORD.finditer(text):
        word = match.group()
        low = word.lower().replace("’", "'")
        if low in table and low not in protected_words and is_no_name(text, match.start(), word):
            spans.append(match.span())
    return uncovered(spans, blocked)


@site_perturbation(
    "homophones",
    title="words that sound alike",
    sites=_sounding_sites,
    family=FAMILY,
    group=NOISE,
    default_rate=1.0,
    invariants=MEANING,
    languages=("en",),
)
def homophones(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Writes another word that sounds the same: their and there, to and too."""
    start, end = site
    word = text[start:end]
    homophone = rng.choice(_resources.homophones(language)[word.lower().replace("’", "'")])
    return start, end, capitalised_like(word, homophone)


_KIND = Parameter(
    name="kind",
    type=str,
    default="both",
    help="contract: full forms become short; expand: short forms become full; both: either way",
    options=("both", "contract", "expand"),
)
# Behind a short form with n't, a subject stands between verb and not when it is spelled out, if
# none stands before: *don't you* → *do you not*.
_SUBJECT = re.compile(r"[ ](i|you|he|she|it|we|they)(?![\w'’])", re.IGNORECASE)
_NO_SUBJECT = re.compile(
    r"(?:[^\w ]\s*|\b(?:why|what|who|where|how|when|which|and|but|so|or)[ ])\Z", re.IGNORECASE
)
# A clause that continues: *who is it?* and *that is, …* do not.
_GOES_ON = re.compile(
    r"[ ]+(?!(?:it|he|she|they|we|you|I|there|here)\s*(?:[^\w\s]|\Z))[^\W\d_]", re.IGNORECASE
)


@cache
def _forms(kind: str, language: str) -> re.Pattern[str]:
    """A pattern for the forms that can be contracted, expanded, or either."""
    tables = _resources.contractions(language)
    chosen = tables if kind == "both" else {kind: tables[kind]}
    forms = sorted({form for table in chosen.values() for form in table}, key=len, reverse=True)
    either = "|".join(map(re.escape, forms)).replace("'", "['’]")
    return re.compile(rf"(?<![\w'’-])(?:{either})(?![\w'’-])", re.IGNORECASE)


def _contraction_sites(
    text: str, blocked: Sequence[Span], kind: str, language: str
) -> list[Replacement]:
    tables = _resources.contractions(language)
    sites: list[Replacement] = []
    for match in _forms(kind, language).finditer(text):
        form = match.group().replace("’", "'")
        if not form[1:].islower():
            continue
        low = form.lower()
        expanded = tables["expand"].get(low) if kind != "contract" else None
        if expanded is not None:
            site = _expanded(text, match, expanded)
        elif low.endswith("not") or _GOES_ON.match(text, match.end()):
            site = (*match.span(), _apostrophes(text, tables["contract"][low]))
        else:
            continue
        sites.append((site[0], site[1], capitalised_like(form, site[2])))
    return [site for site in sites if not overlaps(blocked, site[0], site[1])]


def _expanded(text: str, match: re.Match[str], full: str) -> Replacement:
    start, end = match.span()
    subject = _SUBJECT.match(text, end) if full.endswith("not") else None
    before = text[max(0, start - 12) : start]
    if subject is None or (before.strip() and not _NO_SUBJECT.search(before)):
        return start, end, full
    verb = full.removesuffix("not").rstrip()
    if verb == "are" and subject[1] in "Ii":
        verb = "am"
    return start, subject.end(), f"{verb}{subject[0]} not"


def _apostrophes(text: str, form: str) -> str:
    """The form with the kind of apostrophe that the text uses."""
    return form.replace("'", "’") if "’" in text and "'" not in text else form


@site_perturbation(
    "contractions",
    title="contractions",
    sites=_contraction_sites,
    family=FAMILY,
    group=NOISE,
    default_rate=1.0,
    parameters=(_KIND,),
    invariants=MEANING,
    languages=("en",),
)
def contractions(text: str, site: Replacement, rng: Rng, kind: str, language: str) -> Replacement:
    """Contracts full forms and expands contractions: do not and don't, what is and what's.

    A verb without *not* is contracted only if its clause continues. Ambiguous short forms (*he's*,
    *she'd*) are not expanded. A negation changes its form but is never lost.
    """
    return site


_ARTICLE = re.compile(r"(?<![\w'’-])an? \Z", re.IGNORECASE)
# Vowels by sound, including words whose spelling misleads.
_VOWEL = re.compile(
    r"(?!uni(?!n|m)|us[aeiu]|ut[ei]|eu|ewe|on(?:e|ce)\b)[aeiou]|hour|heir|hono|honest",
    re.IGNORECASE,
)


def _replaceable(text: str, blocked: Sequence[Span], language: str) -> list[tuple[int, int, int]]:
    """Words with synonyms: start, end, and where an article before the word starts."""
    table = _resources.synonyms(language)
    sites: list[tuple[int, int, int]] = []
    for start, end in plain_words(text, blocked, language):
        word = text[start:end]
        if word.lower() not in table or "-" in (text[start - 1 : start], text[end : end + 1]):
            continue
        article = _ARTICLE.search(text, max(0, start - 4), start)
        first = start if article is None else article.start()
        if is_no_name(text, start, word) and not overlaps(blocked, first, start):
            sites.append((start, end, first))
    return sites


@site_perturbation(
    "synonyms",
    title="synonyms",
    sites=_replaceable,
    family=FAMILY,
    group=NOISE,
    default_rate=0.3,
    invariants=MEANING,
    languages=("en",),
)
def synonyms(text: str, site: tuple[int, int, int], rng: Rng, language: str) -> Replacement:
    """Replaces words by synonyms in the same form.

    The rate is the share of the words that are in the table. *a* and *an* follow the new word, and
    capitals stay; words with a capital inside a sentence count as names and are left alone.
    """
    start, end, first = site
    word = text[start:end]
    synonym = capitalised_like(word, rng.choice(_resources.synonyms(language)[word.lower()]))
    if first == start or bool(_VOWEL.match(word)) == bool(_VOWEL.match(synonym)):
        return start, end, synonym
    return first, end, f"{text[first]}{'n' if _VOWEL.match(synonym) else ''} {synonym}"
