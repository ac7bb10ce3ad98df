"""Text added around the whole prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from falter.core.records import Prompt, Section, Span
from falter.perturbations._asking import added

__all__ = ["ends_in_space", "framed"]


def framed(
    prompt: Prompt, name: str, before: str = "", after: str = "", *, often: bool = True
) -> Prompt:
    """The prompt with text before everything but its system message, and after its answer cue.

    If there are demonstrations, the text before goes ahead of the first of them, where a model
    starts to read. Empty text adds nothing. `often`: many prompts get the same text, so that its
    section is built once and shared.
    """
    section = _shared if often else added
    if before and prompt.demonstrations:
        first, *rest = prompt.demonstrations
        opened = replace(first, sections=(section(f"{name}_before", before), *first.sections))
        prompt = replace(prompt, demonstrations=(opened, *rest))
        before = ""
    start, end = _body(prompt.sections)
    if start == end or not (before or after):
        return prompt
    sections = [*prompt.sections]
    if after:
        sections.insert(end, section(f"{name}_after", after))
    if before:
        sections.insert(start, section(f"{name}_before", before))
    return prompt.with_sections(tuple(sections))


def _body(sections: Sequence[Section]) -> Span:
    """From the first section that is not a system message to behind the last."""
    start, end = 0, len(sections)
    while start < end and sections[start].kind == "system":
        start += 1
    while start < end and sections[end - 1].kind == "system":
        end -= 1
    return start, end


_shared = lru_cache(maxsize=512)(added)


def ends_in_space(prompt: Prompt) -> bool:
    """Whether the prompt is empty or ends in white space."""
    for section in reversed(prompt.sections):
        if section.kind != "system" and section.text:
            return section.text[-1].isspace()
    return True
