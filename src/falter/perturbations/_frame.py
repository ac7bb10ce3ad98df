"""Text added around the whole prompt."""

from __future__ import annotations

from dataclasses import replace

from falter.core.records import Edit, Prompt, Section

__all__ = ["ends_in_space", "framed"]


def framed(prompt: Prompt, name: str, before: str = "", after: str = "") -> Prompt:
    """The prompt with text before all but its system words, and after its answer cue.

    With demonstrations the text before goes ahead of the first of them, where the prompt a model
    reads begins. Empty text adds nothing.
    """
    if before and prompt.demonstrations:
        first, *others = prompt.demonstrations
        opened = replace(first, sections=(_added(f"{name}_before", before), *first.sections))
        prompt = replace(prompt, demonstrations=(opened, *others))
        before = ""
    body = [at for at, section in enumerate(prompt.sections) if section.kind != "system"]
    if not body or not (before or after):
        return prompt
    sections = list(prompt.sections)
    if after:
        sections.insert(body[-1] + 1, _added(f"{name}_after", after))
    if before:
        sections.insert(body[0], _added(f"{name}_before", before))
    return prompt.with_sections(tuple(sections))


def _added(name: str, text: str) -> Section:
    """A section that is one edit as a whole."""
    edit = Edit(start=0, end=0, new_start=0, new_end=len(text))
    return Section(name=name, kind="added", text=text, edits=(edit,))


def ends_in_space(prompt: Prompt) -> bool:
    """Whether the last character before the answer is white space, or there is none."""
    text = next((s.text for s in reversed(prompt.sections) if s.kind != "system" and s.text), "")
    return not text or text[-1].isspace()
