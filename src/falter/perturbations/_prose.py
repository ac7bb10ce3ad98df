"""The one section that a person wrote: what is said around it or in it reads as theirs."""

from __future__ import annotations

from falter.core.records import Prompt, Section
from falter.perturbations._base import closed_spans
from falter.text import overlaps

__all__ = ["prose_at", "with_section"]


def prose_at(prompt: Prompt) -> int | None:
    """The input section, if there is one that begins with words and has not been edited there."""
    if prompt.program is not None:
        return None  # nobody chats with a function's signature
    inputs = [n for n, s in enumerate(prompt.sections) if s.kind == "input" and s.text.strip()]
    if len(inputs) != 1:
        return None
    section = prompt.sections[inputs[0]]
    start = len(section.text) - len(section.text.lstrip())
    end = len(section.text.rstrip())
    closed = closed_spans(prompt, section)
    inside = overlaps(closed, start, start + 1) and section.text[start].isascii()
    covered = sum(b - a for a, b in closed) > (end - start) / 2
    edited = any(e.new_start <= start or e.new_end >= end for e in section.edits)
    return None if covered or edited or (inside and section.text[start] in "`{<[") else inputs[0]


def with_section(prompt: Prompt, at: int, section: Section) -> Prompt:
    """The prompt with another section at this place."""
    sections = (*prompt.sections[:at], section, *prompt.sections[at + 1 :])
    return prompt.with_sections(sections)
