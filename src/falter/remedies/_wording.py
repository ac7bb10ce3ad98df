"""Words that help to read on: delimiters, the question once more, a hint at slips."""

from __future__ import annotations

from falter.core.records import Prompt
from falter.remedies._base import remedy
from falter.remedies._placing import ahead_of_cue, around, written

__all__ = ["delimiters", "mention_slips", "restate"]

_MARK = '"""'
_SLIPS = (
    "The text below may contain slips, such as typing errors, odd spacing or stray line breaks. "
    "Read it as it was meant.\n\n"
)


@remedy("delimiters")
def delimiters(prompt: Prompt) -> Prompt:
    """Puts the input between lines of quotation marks, so that it is plain where it ends."""
    sections = prompt.sections
    places = [n for n, s in enumerate(sections) if s.kind == "input" and s.text.strip()]
    if not places:
        return prompt
    first, last = places[0], places[-1] + 1
    inner = "".join(section.text for section in sections[first:last])
    before = "".join(section.text for section in sections[:first] if section.kind != "system")
    after = "".join(section.text for section in sections[last:] if section.kind != "system")
    lead = "" if not before or before.endswith("\n") else "\n"
    opening = written("delimiter_before", f"{lead}{_MARK}\n")
    end = "" if inner.endswith("\n") else "\n"
    tail = "" if not after or after.startswith("\n") else "\n"
    closing = written("delimiter_after", f"{end}{_MARK}{tail}")
    body = sections[first:last]
    return prompt.with_sections((*sections[:first], opening, *body, closing, *sections[last:]))


@remedy("restate")
def restate(prompt: Prompt) -> Prompt:
    """Says the input once more ahead of the answer, in one line and without stray blanks."""
    said = " ".join("".join(s.text for s in prompt.sections if s.kind == "input").split())
    return ahead_of_cue(prompt, "restated", f"Once more: {said}") if said else prompt


@remedy("mention_slips")
def mention_slips(prompt: Prompt) -> Prompt:
    """Says first that the text may contain slips, and is to be read as it was meant."""
    return around(prompt, "slips", _SLIPS)
