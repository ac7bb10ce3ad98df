"""The sentences of documents that the expected summary is based on, and as many others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from falter.core.records import Prompt, SectionKind
from falter.core.rng import Rng
from falter.perturbations._rewriting import Rewritten
from falter.perturbations._rewritten import has_letters, put
from falter.text import blocked, overlaps, relevance_map, relevant_sentences, sentences

__all__ = ["Place", "other_sentences", "put_sentences", "relevant_places"]


class Place(NamedTuple):
    """A sentence: its section, its span there, and whether it may be rewritten."""

    at: int
    start: int
    end: int
    open: bool


def relevant_places(
    prompt: Prompt,
    scope: Sequence[SectionKind],
    patterns: Sequence[str],
    top: int,
    method: str,
) -> tuple[list[Place], list[Place]]:
    """The sentences behind the expected summary, and the rest; protected ones are in neither."""
    places = _places(prompt, scope, patterns)
    gold = _expected(prompt)
    texts = [prompt.sections[p.at].text[p.start : p.end] for p in places]
    summary = [gold[start:end] for start, end in sentences(gold)]
    relevance = relevance_map(summary, texts, top=top, method=method)  # type: ignore[arg-type]
    chosen = set(relevant_sentences(relevance))
    relevant = [place for n, place in enumerate(places) if n in chosen and place.open]
    irrelevant = [place for n, place in enumerate(places) if n not in chosen and place.open]
    return relevant, irrelevant


def other_sentences(
    relevant: Sequence[Place], irrelevant: Sequence[Place], rng: Rng
) -> list[Place]:
    """As many irrelevant sentences as there are relevant, at random; none if there are too few."""
    if len(irrelevant) < len(relevant):
        return []
    drawn = islice(rng.order(len(irrelevant)), len(relevant))
    return [irrelevant[n] for n in sorted(drawn)]


def put_sentences(prompt: Prompt, rewritten: Rewritten, places: Sequence[Place]) -> Prompt:
    """The prompt with these sentences rewritten, each by itself."""
    sections = list(prompt.sections)
    for at in sorted({place.at for place in places}):
        text = sections[at].text
        spans = [(p.start, p.end) for p in places if p.at == at]
        rewrites = [(start, end, rewritten(text[start:end])) for start, end in spans]
        sections[at] = put(sections[at], rewrites)
    return prompt.with_sections(tuple(sections))


def _expected(prompt: Prompt) -> str:
    """The expected answer in words."""
    if isinstance(prompt.target, int):
        return prompt.choices[prompt.target] if prompt.choices else ""
    return prompt.target or ""


def _places(prompt: Prompt, scope: Sequence[SectionKind], patterns: Sequence[str]) -> list[Place]:
    places: list[Place] = []
    for at, section in enumerate(prompt.sections):
        if section.kind not in scope:
            continue
        closed = blocked(section, patterns)
        edited = [(edit.new_start, edit.new_end) for edit in section.edits]
        for start, end in sentences(section.text):
            inside = [(max(a, start) - start, min(b, end) - start) for a, b in closed]
            spans = [(a, b) for a, b in inside if a < b]
            words = has_letters(section.text[start:end], spans)
            places.append(Place(at, start, end, words and not overlaps(edited, start, end)))
    return places
