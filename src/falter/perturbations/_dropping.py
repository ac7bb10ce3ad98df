"""Function words dropped: those that only link, or everything that the published list holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from falter.core.errors import InvalidValue
from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._resources import lines, stop_words
from falter.perturbations._wording import (
    FAMILY,
    LANGUAGES,
    MANIPULATION,
    MEANING,
    is_no_name,
    spelt_spans,
)
from falter.text import (
    Replacement,
    letter_symbols,
    overlaps,
    passive_auxiliaries,
    uncovered,
)

__all__ = ["drop_stop_words"]

_STYLE = Parameter(
    name="style",
    type=str,
    default="careful",
    help="careful: words that only link; published: every word of the published list, negations "
    "included (English)",
    options=("careful", "published"),
)
_TOKEN = re.compile(r"(?<![\w'’/-])[^\W\d_]++(?:['’][^\W\d_]++)?(?![\w/\-])")

# Words of one set say who or where. Where a text has two of them, leaving them out mixes them up.
_CONTRASTS = {
    "en": (
        (
            "in inside into", "on upon onto", "at", "under below beneath", "over above", "off out",
            "behind", "beside", "for", "against", "outside", "between", "near",
        ),
        (
            "i me my myself i'm i've i'd i'll", "you your yours yourself you're you've you'd",
            "he him his himself he's he'd he'll", "she her hers herself she's she'd she'll",
            "we us our ours ourselves we're we've we'd we'll",
            "they them their theirs themselves they're they've they'd they'll",
        ),
        ("this these here", "that those there"),
    )
}  # fmt: skip


@cache
def _dropped_words(language: str, style: str) -> frozenset[str]:
    if style == "careful":
        return stop_words(language)
    if language != "en":
        raise InvalidValue(
            "drop_stop_words.style", style, f"careful for the language '{language}'",
            hint="the published list is English",
        )  # fmt: skip
    return frozenset(lines("published_stop_words_en.txt"))


def _drop_sites(text: str, blocked: Sequence[Span], style: str, language: str) -> list[Span]:
    words = _dropped_words(language, style)
    small = _find_words(text, _with_contrasts(language, style))
    kept = _kept_starts(text, small, language) if style == "careful" else ()
    spans: list[Span] = [
        (start, end)
        for start, end, word in small
        if start not in kept
        and word in words
        and is_no_name(text, start, text[start:end].replace("’", "'"), language)
    ]
    free = uncovered(uncovered(spans, blocked), spelt_spans(text, language))
    return list(_with_spaces(text, free, blocked))


@cache
def _with_contrasts(language: str, style: str) -> frozenset[str]:
    return _dropped_words(language, style).union(*_contrasts(language))


def _find_words(text: str, words: frozenset[str]) -> Sequence[tuple[int, int, str]]:
    """Where the text has one of the words, and which, in lower case."""
    plain = text.replace("’", "'")
    low = plain.lower()
    if len(low) != len(text):  # İ becomes two letters and would move what follows
        return [(*m.span(), w) for m in _TOKEN.finditer(plain) if (w := m[0].lower()) in words]
    return [(*m.span(), w) for m in _TOKEN.finditer(low) if (w := m[0]) in words]


def _kept_starts(text: str, small: Sequence[tuple[int, int, str]], language: str) -> set[int]:
    """Where the words begin that would be dropped, but carry meaning in this text."""
    kept = {start for start, _ in passive_auxiliaries(text, language)}
    kept |= {start for start, _ in letter_symbols(text)} if language == "en" else set()
    for contrast in _contrasts(language):
        sides = {start: contrast[word] for start, _, word in small if word in contrast}
        if len(set(sides.values())) > 1:
            kept |= sides.keys()
    return kept


@cache
def _contrasts(language: str) -> tuple[dict[str, int], ...]:
    return tuple(
        {word: number for number, words in enumerate(sets) for word in words.split()}
        for sets in _CONTRASTS.get(language, ())
    )


def _with_spaces(text: str, words: Sequence[Span], blocked: Sequence[Span]) -> Iterator[Span]:
    """Each word with the space behind it at the start of a line, else with the space before it."""
    head = 0
    for start, end in words:
        line = text.rfind("\n", 0, start) + 1
        leads = start in (line, head)
        if (leads or not _space(text, start - 1, blocked)) and _space(text, end, blocked):
            head = end + 1 if leads else head
            yield start, end + 1
        elif start and _space(text, start - 1, blocked):
            yield start - 1, end
        else:
            yield start, end


def _space(text: str, at: int, blocked: Sequence[Span]) -> bool:
    """Whether there is a space here that may go."""
    return at >= 0 and text[at : at + 1] == " " and not overlaps(blocked, at, at + 1)


@site_perturbation(
    "drop_stop_words",
    title="missing small words",
    sites=_drop_sites,
    family=FAMILY,
    group=MANIPULATION,
    version=2,
    default_rate=1.0,
    parameters=(_STYLE,),
    invariants=MEANING,
    languages=LANGUAGES,
    edit_draws=False,
)
def drop_stop_words(text: str, site: Span, rng: Rng, style: str, language: str) -> Replacement:
    """Drops function words, each with one space beside it.

    Question words, negation, quantifiers, comparison, logic and time are kept; so are the
    auxiliary and the agent of a passive, *with*, letters that are symbols, and words that a text
    contrasts (*in* and *on*, *he* and *she*). `style=published` drops every word of the published
    list. What follows a dropped first word is not given a capital.
    """
    return site[0], site[1], ""
