"""The way something is said, by rule: the tone of a request, a learner's grammar, speech."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from falter.core.interfaces import Parameter
from falter.core.records import Prompt, Section, Span
from falter.core.rng import Rng
from falter.perturbations._base import closed_spans, prompt_perturbation, site_perturbation
from falter.perturbations._casing import lowered_words
from falter.perturbations._learner import learner_errors
from falter.perturbations._marks import loose_marks
from falter.perturbations._parameters import PROTECT, scope_parameter
from falter.perturbations._prose import prose_at, with_section
from falter.perturbations._resources import table
from falter.text import (
    Replacement,
    mentioned_words,
    merged,
    names,
    overlaps,
    replace_spans,
)

__all__ = ["learner", "tone_rules", "voice"]

_FAMILY, _GROUP = "wording", "everyday wording"
_MEANING = ("target", "choices", "numbers", "code", "negations")
TONES = ("casual", "chatty", "formal", "impatient", "polite")
_TONE = Parameter(
    name="tone",
    type=str,
    default="any",
    help="how the request is made; any: drawn for each item",
    options=("any", *TONES),
)


@cache
def _phrases() -> dict[str, dict[str, list[str]]]:
    phrases: dict[str, dict[str, list[str]]] = table("tones_en.json")
    return phrases


# Words around a text that is itself worked on would be worked on, too.
_TEXT_AS_OBJECT = re.compile(
    r"\b(?:translat\w*|summari\w*|paraphras\w*|rephras\w*|rewrit\w*|reword\w*|proofread\w*|shorten\w*"
    r"|sentiment|politeness|formality|tone|(?:correct|continue|complete|finish) (?:the|this))\b",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"[.?!][\"'”’)\]]?\Z")
_RULES_OF_A_TASK = ("system", "instruction", "output_format", "cue")


def _can_tone(prompt: Prompt, tone: str, language: str) -> bool:
    return prose_at(prompt) is not None and not any(
        s.kind in _RULES_OF_A_TASK and _TEXT_AS_OBJECT.search(s.text) for s in prompt.sections
    )


@prompt_perturbation(
    "tone_rules",
    version=2,
    title="another tone around the question",
    family=_FAMILY,
    group=_GROUP,
    scope=("input",),
    parameters=(_TONE,),
    invariants=(*_MEANING, "lines"),
    languages=("en",),
    eligible=_can_tone,
)
def tone_rules(prompt: Prompt, rng: Rng, tone: str, language: str) -> Prompt:
    """Puts polite, casual, formal, impatient or chatty words around the input, by rule.

    The input itself stays as it is, word for word.
    """
    at = prose_at(prompt)
    if at is None:
        return prompt
    chosen = _phrases()[rng.choice(TONES) if tone == "any" else tone]
    before, after = rng.choice(chosen["before"]), rng.choice(chosen["after"])
    section = prompt.sections[at]
    start, end = len(section.text) - len(section.text.lstrip()), len(section.text.rstrip())
    changes: list[Replacement] = []
    if before:
        changes.append((start, start, f"{before} "))
    if after and _SENTENCE_ENDS.search(section.text, start, end):
        changes.append((end, end, f" {after}"))
    return with_section(prompt, at, replace_spans(section, changes))


# A learner's English


def _error_sites(text: str, blocked: Sequence[Span], language: str) -> list[Replacement]:
    return learner_errors(text, blocked)


@site_perturbation(
    "learner",
    version=2,
    title="a learner's mistakes",
    sites=_error_sites,
    family=_FAMILY,
    group=_GROUP,
    default_rate=0.5,
    invariants=(*_MEANING, "lines"),
    languages=("en",),
)
def learner(text: str, site: Replacement, rng: Rng, language: str) -> Replacement:
    """Makes mistakes that learners of English make: articles, agreement, set prepositions.

    Only mistakes that leave one way to understand the sentence; names, numbers, negations and
    letters that are symbols stay.
    """
    return site


# Speech

_FILLERS = ("um", "uh", "er", "you know")
_SOUNDS = _FILLERS[:-1]
# Elsewhere *you know* may read as a question or a claim: *did you know*, *what you know*.
_ASIDE = re.compile(
    r"(?<=\b(?:of|in|on|at|by) )(?=(?:the|an?|my|your|his|her|its|our|their|this|these|those)\b)"
)
_GAP = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_EVERY = 9  # words between two fillers, on average
_APART = 12  # characters between two fillers, at least


def _can_say(prompt: Prompt, scope: Sequence[str], protect: Sequence[str], language: str) -> bool:
    return prompt.program is None and any(
        section.kind in scope and any(True for _ in _spoken(prompt, section, protect, Rng(0)))
        for section in prompt.sections
    )


def _spoken(
    prompt: Prompt, section: Section, protect: Sequence[str], rng: Rng
) -> Iterator[Replacement]:
    text, closed = section.text, closed_spans(prompt, section, protect)
    yield from ((start, end, "") for start, end in loose_marks(text, closed))
    yield from ((a, b, text[a:b].lower()) for a, b in lowered_words(text, closed))
    closed = merged((*closed, *names(text), *mentioned_words(text)))
    last = -_APART
    for gap in _GAP.finditer(text):
        inside = overlaps(closed, gap.start(), gap.end())
        if rng.random() * _EVERY < 1 and not inside and gap.end() - last >= _APART:
            last = gap.end()
            aside = _ASIDE.match(text, last)
            yield last, last, f"{rng.choice(_FILLERS if aside else _SOUNDS)} "


@prompt_perturbation(
    "voice",
    version=2,
    title="dictated text",
    family=_FAMILY,
    group=_GROUP,
    scope=("input",),
    parameters=(PROTECT, scope_parameter(("input",))),
    invariants=(*_MEANING, "lines"),
    languages=("en",),
    eligible=_can_say,
)
def voice(
    prompt: Prompt, rng: Rng, scope: Sequence[str], protect: Sequence[str], language: str
) -> Prompt:
    """Writes the input as a dictation has it: small letters, no punctuation, fillers.

    Numbers stay in figures, as dictation writes them; names lose their capitals.
    """
    sections = list(prompt.sections)
    for at, section in enumerate(sections):
        if section.kind in scope and section.text:
            changes = sorted(set(_spoken(prompt, section, protect, rng)))
            sections[at] = replace_spans(section, changes)
    return prompt.with_sections(tuple(sections))
