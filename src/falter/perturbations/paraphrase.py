"""Paraphrases, tones and reworded templates, which a model writes beforehand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

from falter.perturbations.base import declared, register_all
from falter.perturbations.rewriting import (
    NoRewrite,
    RewritePerturbation,
    Rewritten,
    has_letters,
    open_core,
    put,
    put_sections,
)
from falter.perturbations.vocabulary import table
from falter.records.rng import Rng
from falter.records.types import Demonstration, Prompt, Section, SectionKind
from falter.text.protection import blocked
from falter.text.relevance import relevance_map, relevant_sentences
from falter.text.spans import overlaps
from falter.text.words import sentences

TONES: dict[str, str] = table("rewrites.json")["tones"]


def request(name: str) -> str:
    """Return the instruction of a request for a rewrite."""
    lines: list[str] = table("rewrites.json")["requests"][name]
    return "\n".join(lines)


def _reword(name: str, **described: str) -> str:
    return request(name).format(**described) + request("rules")


def _reword_sections(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str], **_: str,
) -> Prompt:  # fmt: skip
    return put_sections(prompt, rewritten, scope, protect)


# The sentences of documents that the expected summary is based on, and as many others


class _Sentence(NamedTuple):
    """A sentence: its section index, its span in that section, and whether it may be rewritten."""

    at: int
    start: int
    end: int
    open: bool


def _relevant_sentences(
    prompt: Prompt, scope: Sequence[SectionKind], patterns: Sequence[str], top: int, method: str
) -> tuple[list[_Sentence], list[_Sentence]]:
    """Return the sentences that the expected summary is based on, and all other sentences.

    Protected and edited sentences are in neither list.
    """
    gold = _expected_answer(prompt)
    return _mapped_sentences(prompt.sections, gold, tuple(scope), tuple(patterns), top, method)


@lru_cache(maxsize=1024)  # a plan makes the same prompts for several recipes and parts
def _mapped_sentences(
    sections: tuple[Section, ...], gold: str, scope: tuple[SectionKind, ...],
    patterns: tuple[str, ...], top: int, method: str,
) -> tuple[list[_Sentence], list[_Sentence]]:  # fmt: skip
    places = _sentences_in_scope(sections, scope, patterns)
    texts = [sections[p.at].text[p.start : p.end] for p in places]
    summary = [gold[start:end] for start, end in sentences(gold)]
    relevance = relevance_map(summary, texts, top=top, method=method)  # type: ignore[arg-type]
    chosen = set(relevant_sentences(relevance))
    relevant = [place for n, place in enumerate(places) if n in chosen and place.open]
    irrelevant = [place for n, place in enumerate(places) if n not in chosen and place.open]
    return relevant, irrelevant


def _put_sentences(prompt: Prompt, rewritten: Rewritten, places: Sequence[_Sentence]) -> Prompt:
    """Return the prompt with these sentences rewritten, each separately."""
    sections = list(prompt.sections)
    for at in sorted({place.at for place in places}):
        text = sections[at].text
        spans = [(p.start, p.end) for p in places if p.at == at]
        rewrites = [(start, end, rewritten(text[start:end])) for start, end in spans]
        sections[at] = put(sections[at], rewrites)
    return prompt.with_sections(tuple(sections))


def _expected_answer(prompt: Prompt) -> str:
    """Return the expected answer in words; empty if there is none."""
    if isinstance(prompt.target, int):
        return prompt.choices[prompt.target] if prompt.choices else ""
    return prompt.target or ""


def _sentences_in_scope(
    sections: Sequence[Section], scope: Sequence[SectionKind], patterns: Sequence[str]
) -> list[_Sentence]:
    """Return the sentences of all sections in scope, with a flag: the sentence may be rewritten."""
    places: list[_Sentence] = []
    for at, section in enumerate(sections):
        if section.kind not in scope:
            continue
        closed = blocked(section, patterns)
        edited = [(edit.new_start, edit.new_end) for edit in section.edits]
        for start, end in sentences(section.text):
            spans = [(max(a, start) - start, min(b, end) - start)
                     for a, b in closed if a < end and b > start and a < b]  # fmt: skip
            words = has_letters(section.text[start:end], spans)
            places.append(_Sentence(at, start, end, words and not overlaps(edited, start, end)))
    return places


def _reword_relevant(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str], top: int, method: str,
) -> Prompt:  # fmt: skip
    relevant, _ = _relevant_sentences(prompt, scope, protect, top, method)
    return _put_sentences(prompt, rewritten, relevant)


def _reword_irrelevant(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str], top: int, method: str,
) -> Prompt:  # fmt: skip
    """Rewrite as many irrelevant sentences, drawn at random, as there are relevant sentences.

    If there are too few irrelevant sentences, the prompt stays unchanged.
    """
    relevant, irrelevant = _relevant_sentences(prompt, scope, protect, top, method)
    if len(irrelevant) < len(relevant):
        return prompt
    drawn = islice(rng.order(len(irrelevant)), len(relevant))
    return _put_sentences(prompt, rewritten, [irrelevant[n] for n in sorted(drawn)])


# Templates reworded as a whole: their own words, with names in braces for the substituted texts.
# One rewrite serves all items. It is split again at the names in braces and at the line breaks.

_BRACES = re.compile(r"\{[^{}\n]{1,100}\}")


def _template_problem(text: str, new: str) -> str | None:
    """Return the reason why a reworded template cannot replace the old one, or None."""
    if _BRACES.findall(text) != _BRACES.findall(new):
        return "the names in braces are not the same ones in the same order"
    for old_run, new_run in zip(_BRACES.split(text), _BRACES.split(new), strict=True):
        if _non_blank_flags(old_run) != _non_blank_flags(new_run):
            return "its line breaks are in other places"
    return None


def _non_blank_flags(run: str) -> list[bool]:
    """Return a flag for each line: True if the line is not blank."""
    return [bool(line.strip()) for line in run.split("\n")]


class _Segment(NamedTuple):
    """A segment of the template: a section's `own` words, or a name in braces for a section."""

    at: int
    text: str
    own: bool


def _reword_template(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str],
) -> Prompt:  # fmt: skip
    """Return the prompt, examples included, with the words of its template reworded.

    Raise `NoRewrite` if the reworded template cannot replace the old one.
    """
    parts = list(_template_segments(prompt.sections, scope, protect))
    if not any(part.own for part in parts):
        return prompt
    whole = "".join(part.text for part in parts)
    core = whole.strip()
    new = rewritten(core)
    problem = _template_problem(core, new)
    if problem is not None:
        raise NoRewrite(problem)
    lead = whole[: len(whole) - len(whole.lstrip())]
    texts = _section_texts(parts, lead + new + whole[len(lead) + len(core) :])
    sections = list(prompt.sections)
    for at, text in texts.items():
        sections[at] = _reworded_section(sections[at], text)
    reworded = {
        (s.name, s.text): sections[at] for at, s in enumerate(prompt.sections) if at in texts
    }
    demonstrations = tuple(
        _reworded_example(example, reworded) for example in prompt.demonstrations
    )
    return replace(prompt, sections=tuple(sections), demonstrations=demonstrations)


def _template_segments(
    sections: Sequence[Section], scope: Sequence[SectionKind], patterns: Sequence[str]
) -> Iterator[_Segment]:
    """Yield the template that all items share: sections out of scope become names in braces."""
    names_in_use = {
        name for s in sections if s.kind in scope for name in _BRACES.findall(s.text)
    }  # names in braces in the template's own words
    shared = False  # True once the current line has words of a section
    for at, section in enumerate(sections):
        text, core = section.text, section.text.strip()
        fresh = not shared or "\n" in text[: text.find(core)]
        if section.kind in scope and not core and not section.edits:
            yield _Segment(at=at, text=text, own=False)
            shared = shared and "\n" not in text
        elif section.kind in scope and fresh and open_core(section, patterns) is not None:
            yield _Segment(at=at, text=text, own=True)
            shared = "\n" not in text[text.index(core) + len(core) :]
        elif section.kind != "system":
            yield _Segment(at=at, text=_placeholder_name(section, names_in_use), own=False)
            shared = False


def _placeholder_name(section: Section, names_in_use: set[str]) -> str:
    plain = re.sub(r"[{}\n]", "", section.name) or "text"
    name = f"{{{plain}}}"
    while name in names_in_use:
        plain += "_"
        name = f"{{{plain}}}"
    names_in_use.add(name)
    return name


def _section_texts(parts: Sequence[_Segment], new: str) -> dict[int, str]:
    """Return the new text of every section of the template, by section index.

    The text is split at the names in braces. Between neighbouring sections, it is split at the same
    line break as before.
    """
    texts: dict[int, str] = {}
    run: list[_Segment] = []
    at = 0
    for part in (*parts, None):
        if part is not None and not _is_placeholder(part):
            run.append(part)
            continue
        end = len(new) if part is None else new.index(part.text, at)
        texts.update(_lines_by_section(run, new[at:end]))
        run = []
        at = end + (0 if part is None else len(part.text))
    return texts


def _is_placeholder(part: _Segment) -> bool:
    return not part.own and part.text.startswith("{")


def _lines_by_section(run: Sequence[_Segment], text: str) -> Iterator[tuple[int, str]]:
    """Yield the sections of one run, as indices, with their lines of the new text.

    No two sections share a line.
    """
    lines = text.split("\n")
    at = 0
    for part in run:
        if part.own:
            core = part.text.strip()
            first = at + part.text[: part.text.index(core)].count("\n")
            yield part.at, "\n".join(lines[first : first + core.count("\n") + 1])
        at += part.text.count("\n")


def _reworded_section(section: Section, text: str) -> Section:
    """Return the section with new text between its surrounding white space."""
    core, new = section.text.strip(), text.strip()
    if not new:
        raise NoRewrite("a part of the template has no words left")
    start = section.text.index(core)
    return put(section, [(start, start + len(core), new)])


def _reworded_example(
    example: Demonstration, reworded: dict[tuple[str, str], Section]
) -> Demonstration:
    """Return a solved example with the template reworded in the same way."""
    sections = tuple(reworded.get((s.name, s.text), s) for s in example.sections)
    return replace(example, sections=sections)


_PARAPHRASES: dict[str, tuple[Callable[..., Prompt], dict[str, Any]]] = {
    "paraphrase_lexical": (_reword_sections, {"ask": partial(_reword, "lexical")}),
    "paraphrase_syntactic": (_reword_sections, {"ask": partial(_reword, "syntactic")}),
    "paraphrase_free": (_reword_sections, {"ask": partial(_reword, "free")}),
    "paraphrase_relevant": (_reword_relevant, {"ask": partial(_reword, "sentence")}),
    "paraphrase_irrelevant": (_reword_irrelevant, {"ask": partial(_reword, "sentence")}),
    "tone": (_reword_sections, {"ask": lambda tone: _reword("tone", tone=TONES[tone])}),
    "template_paraphrase": (
        _reword_template,
        {"ask": partial(request, "template"), "problem": _template_problem},
    ),
}
register_all(
    RewritePerturbation(name, change=change, **own, **declared(name))
    for name, (change, own) in _PARAPHRASES.items()
)
