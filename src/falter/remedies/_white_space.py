"""Spaces and line breaks set right."""

from __future__ import annotations

import re

from falter.core.records import Prompt, Section
from falter.remedies._base import remedy
from falter.text import Replacement, overlaps, protect, replace_spans

__all__ = ["tidy_lines", "tidy_spaces"]

_SPACES = re.compile(r"[ \t\u00a0\u2000-\u200b\u202f\u205f\u3000]+")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n(?:[^\S\n]*\n)+")
_LEADING, _TRAILING = re.compile(r"\A\s+"), re.compile(r"\s+\Z")


@remedy("tidy_spaces")
def tidy_spaces(prompt: Prompt) -> Prompt:
    """Runs of spaces, tabs and exotic blanks become one space; code stays as it is."""
    return prompt.with_sections(tuple(map(_spaced, prompt.sections)))


def _spaced(section: Section) -> Section:
    if section.kind == "system":
        return section
    kept = protect(section.text)
    changes: list[Replacement] = []
    for match in _SPACES.finditer(section.text):
        start, end = match.span()
        at_line = start > 0 and section.text[start - 1] == "\n"  # an indent belongs to a list
        in_order = match[0] == " " or (at_line and set(match[0]) == {" "})
        if not in_order and not overlaps(kept, start, end):
            changes.append((start, end, " "))
    return replace_spans(section, changes)


@remedy("tidy_lines")
def tidy_lines(prompt: Prompt) -> Prompt:
    """Several blank lines become one, and those around the whole prompt go; code stays."""
    sections = [_lined(section) for section in prompt.sections]
    body = [n for n, section in enumerate(sections) if section.kind != "system"]
    for places, pattern in ((body, _LEADING), (body[::-1], _TRAILING)):
        for n in places:
            section = sections[n]
            match = pattern.search(section.text)
            if match is not None:
                sections[n] = replace_spans(section, [(*match.span(), "")])
            if sections[n].text:
                break
    return prompt.with_sections(tuple(sections))


def _lined(section: Section) -> Section:
    if section.kind == "system" or "\n" not in section.text:
        return section
    kept = protect(section.text)
    places = [match.span() for match in _BLANK_LINES.finditer(section.text)]
    changes = [(start, end, "\n\n") for start, end in places if not overlaps(kept, start, end)]
    return replace_spans(section, changes)
