"""Where a remedy puts its words: around the prompt, or ahead of the answer cue."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.records import Edit, Prompt, Section

__all__ = ["ahead_of_cue", "around", "written"]


def written(name: str, text: str) -> Section:
    """A section of a remedy's own words."""
    edit = Edit(start=0, end=0, new_start=0, new_end=len(text))
    return Section(name=name, kind="added", text=text, edits=(edit,))


def around(prompt: Prompt, name: str, before: str, after: str = "") -> Prompt:
    """The prompt with text before and after everything but its system message."""
    sections = list(prompt.sections)
    body = [n for n, section in enumerate(sections) if section.kind != "system"]
    if not body:
        return prompt
    if after:
        sections.insert(body[-1] + 1, written(f"{name}_after", after))
    if before:
        sections.insert(body[0], written(f"{name}_before", before))
    return prompt.with_sections(tuple(sections))


def ahead_of_cue(prompt: Prompt, name: str, text: str) -> Prompt:
    """The prompt with a paragraph ahead of its answer cue, or at its end if there is none."""
    sections = prompt.sections
    cues = [n for n, s in enumerate(sections) if s.kind == "cue" and s.text.strip()]
    at = cues[-1] if cues else len(sections)
    before, following = _body(sections[:at]), _body(sections[at:])
    lead = "" if not before or before.endswith("\n") else "\n"
    end = "" if not following or following.startswith("\n") else "\n"
    paragraph = written(name, f"{lead}{text}{end}")
    return prompt.with_sections((*sections[:at], paragraph, *sections[at:]))


def _body(sections: Sequence[Section]) -> str:
    return "".join(s.text for s in sections if s.kind != "system")
