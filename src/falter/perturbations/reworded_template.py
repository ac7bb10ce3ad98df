"""A template reworded as a whole: its own words, with names in braces for the substituted texts.

One rewrite serves all items. It is split again at the names in braces and at the line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from falter.core.records import Demonstration, Prompt, Section, SectionKind
from falter.perturbations.rewriting import NoRewrite, Rewritten, open_core, put

_BRACES = re.compile(r"\{[^{}\n]{1,100}\}")


def template_problem(text: str, new: str) -> str | None:
    """Why a reworded template cannot replace the old one, or None."""
    if _BRACES.findall(text) != _BRACES.findall(new):
        return "the names in braces are not the same ones in the same order"
    for old_run, new_run in zip(_BRACES.split(text), _BRACES.split(new), strict=True):
        if _filled(old_run) != _filled(new_run):
            return "its line breaks are in other places"
    return None


def _filled(run: str) -> list[bool]:
    """Which lines are not blank."""
    return [bool(line.strip()) for line in run.split("\n")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A stretch of the template: a section's own words, or the name that stands for a section."""

    at: int
    text: str
    own: bool


def put_template(
    prompt: Prompt, rewritten: Rewritten, scope: Sequence[SectionKind], patterns: Sequence[str]
) -> Prompt:
    """The prompt, examples included, with the words of its template reworded."""
    parts = list(_parts(prompt.sections, scope, patterns))
    if not any(part.own for part in parts):
        return prompt
    whole = "".join(part.text for part in parts)
    core = whole.strip()
    new = rewritten(core)
    problem = template_problem(core, new)
    if problem is not None:
        raise NoRewrite(problem)
    lead = whole[: len(whole) - len(whole.lstrip())]
    texts = _cut(parts, lead + new + whole[len(lead) + len(core) :])
    sections = list(prompt.sections)
    for at, text in texts.items():
        sections[at] = _reworded(sections[at], text)
    reworded = {
        (s.name, s.text): sections[at] for at, s in enumerate(prompt.sections) if at in texts
    }
    demonstrations = tuple(
        _reworded_example(example, reworded) for example in prompt.demonstrations
    )
    return replace(prompt, sections=tuple(sections), demonstrations=demonstrations)


def _parts(
    sections: Sequence[Section], scope: Sequence[SectionKind], patterns: Sequence[str]
) -> Iterator[_Part]:
    """The template for all items: sections out of scope become names in braces."""
    names_in_use = {
        name for s in sections if s.kind in scope for name in _BRACES.findall(s.text)
    }  # braces that the template's own words have
    shared = False  # whether the present line has words of a section already
    for at, section in enumerate(sections):
        text, core = section.text, section.text.strip()
        fresh = not shared or "\n" in text[: text.find(core)]
        if section.kind in scope and not core and not section.edits:
            yield _Part(at=at, text=text, own=False)
            shared = shared and "\n" not in text
        elif section.kind in scope and fresh and open_core(section, patterns) is not None:
            yield _Part(at=at, text=text, own=True)
            shared = "\n" not in text[text.index(core) + len(core) :]
        elif section.kind != "system":
            yield _Part(at=at, text=_name(section, names_in_use), own=False)
            shared = False


def _name(section: Section, names_in_use: set[str]) -> str:
    plain = re.sub(r"[{}\n]", "", section.name) or "text"
    name = f"{{{plain}}}"
    while name in names_in_use:
        plain += "_"
        name = f"{{{plain}}}"
    names_in_use.add(name)
    return name


def _cut(parts: Sequence[_Part], new: str) -> dict[int, str]:
    """The new text of every section of the template, split at the names and, between neighbouring
    sections, at the same line break as before."""
    texts: dict[int, str] = {}
    run: list[_Part] = []
    at = 0
    for part in (*parts, None):
        if part is not None and not _is_name(part):
            run.append(part)
            continue
        end = len(new) if part is None else new.index(part.text, at)
        texts.update(_shared_out(run, new[at:end]))
        run = []
        at = end + (0 if part is None else len(part.text))
    return texts


def _is_name(part: _Part) -> bool:
    return not part.own and part.text.startswith("{")


def _shared_out(run: Sequence[_Part], text: str) -> Iterator[tuple[int, str]]:
    """The sections of one run with their lines of its new text; no two share a line."""
    lines = text.split("\n")
    at = 0
    for part in run:
        if part.own:
            core = part.text.strip()
            first = at + part.text[: part.text.index(core)].count("\n")
            yield part.at, "\n".join(lines[first : first + core.count("\n") + 1])
        at += part.text.count("\n")


def _reworded(section: Section, text: str) -> Section:
    """The section with new text, its surrounding white space kept."""
    core, new = section.text.strip(), text.strip()
    if not new:
        raise NoRewrite("a part of the template has no words left")
    start = section.text.index(core)
    return put(section, [(start, start + len(core), new)])


def _reworded_example(
    example: Demonstration, reworded: dict[tuple[str, str], Section]
) -> Demonstration:
    """A solved example with the template reworded in the same way."""
    sections = tuple(reworded.get((s.name, s.text), s) for s in example.sections)
    return replace(example, sections=sections)
