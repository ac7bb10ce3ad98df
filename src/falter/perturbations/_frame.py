"""Text added around the whole prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from falter.core.records import Edit, Prompt, Section, Span

__all__ = ["ends_in_space", "framed"]


def framed(
    prompt: Prompt, name: str, before: str = "", after: str = "", *, often: bool = True
) -> Prompt:
    """The prompt with text before all but its system words, and after its answer cue.

    With demonstrations the text before goes ahead of the first of them, where the prompt a model
    reads begins. Empty text adds nothing.
    `often`: the same text is added to many prompts, so that its section is made once.
    """
    added = _shared if often else _added
    if before and prompt.demonstrations:
        first, *others = prompt.demonstrations
        opened = replace(first, sections=(added(f"{name}_before", before), *first.sections))
        prompt = replace(prompt, demonstrations=(opened, *others))
        before = ""
    start, end = _body(prompt.sections)
    if start == end or not (before or after):
        return prompt
    sections = [*prompt.sections]
    if after:
        sections.insert(end, added(f"{name}_after", after))
    if before:
        sections.insert(start, added(f"{name}_before", before))
    return prompt.with_sections(tuple(sections))


def _body(sections: Sequence[Section]) -> Span:
    """From the first to behind the last section that is not system words."""
    start, end = 0, len(sections)
    while start < end and sections[start].kind == "system":
        start += 1
    while start < end and sections[end - 1].kind == "system":
        end -= 1
    return start, end


def _added(name: str, text: str) -> Section:
    """A section that is one edit as a whole."""
    edit = Edit(start=0, end=0, new_start=0, new_end=len(text))
    return Section(name=name, kind="added", text=text, edits=(edit,))


_shared = lru_cache(maxsize=512)(_added)


def ends_in_space(prompt: Prompt) -> bool:
    """Whether the last character before the answer is white space, or there is none."""
    for section in reversed(prompt.sections):
        if section.kind != "system" and section.text:
            return section.text[-1].isspace()
    return True
