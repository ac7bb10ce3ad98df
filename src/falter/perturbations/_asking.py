"""Words of our own put into a prompt: before the answer cue, or in place of a format's rules."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.records import Edit, Prompt, Section
from falter.perturbations._choices import shows_labels, untouched
from falter.text import Replacement, blocked, overlaps, replace_spans

__all__ = [
    "added",
    "asked",
    "cue_at",
    "cue_line",
    "has_format",
    "instead_of_format",
    "what_to_give",
]

_CUE_WORDS = 4


def added(name: str, text: str) -> Section:
    """A section of its own, one edit as a whole."""
    edit = Edit(start=0, end=0, new_start=0, new_end=len(text))
    return Section(name=name, kind="added", text=text, edits=(edit,))


def what_to_give(prompt: Prompt) -> str:
    """What an answer to the prompt consists of, in words."""
    if not prompt.choices or not any(s.kind == "choices" for s in prompt.sections):
        return "your answer"
    if prompt.answer_as == "label" and shows_labels(prompt.choice_format):
        return "the label of the option you choose"
    return "the text of the option you choose"


def cue_at(sections: Sequence[Section]) -> int | None:
    """Where the answer cue is: the last section of its kind, nothing but additions behind it."""
    for at in range(len(sections) - 1, -1, -1):
        section = sections[at]
        if section.kind == "cue" and section.text.strip():
            return at
        if section.kind not in ("added", "system") and section.text.strip():
            return None
    return None


def cue_line(text: str) -> tuple[int, int]:
    """The last line of a cue: the lines before it, of the same section, say something else."""
    end = len(text.rstrip())
    return text.rfind("\n", 0, end) + 1, end


def asked(
    sections: Sequence[Section], name: str, text: str, cue: str | None = None
) -> tuple[Section, ...]:
    """The sections with a paragraph of our own before the answer cue, or at the end without one.

    It stands on lines of its own, as far from the cue as the text before it was. A short cue
    gives way to `cue`; a long one says more than "answer now", and `cue` comes after it.
    """
    at = cue_at(sections)
    if at is None:
        return (*sections, added(name, _gap(sections, len(sections)) + text))
    own = sections[at]
    start, end = cue_line(own.text)
    before = len(own.text[:start].rstrip())
    inside = before > 0 and not overlaps(blocked(own), before, before)
    changes: list[Replacement] = []
    if inside:
        changes.append((before, before, own.text[before:start] + text))
    after: tuple[Section, ...] = ()
    if cue is not None and not overlaps(blocked(own), start, end):
        if len(own.text[start:end].split()) <= _CUE_WORDS:
            changes.append((start, end, cue))
        else:
            after = (added(f"{name}_cue", f"\n{cue}"),)
    made = replace_spans(own, changes)
    ahead = () if inside else (added(name, _apart(sections, at, text)),)
    return (*sections[:at], *ahead, made, *after, *sections[at + 1 :])


def _gap(sections: Sequence[Section], at: int) -> str:
    """The line break that is needed before something put at this place."""
    before = _text(sections[:at])
    return "\n" if before and not before.endswith("\n") else ""


def _apart(sections: Sequence[Section], at: int, text: str) -> str:
    """The text with the line breaks it needs around it, before the section at this place."""
    following = sections[at].text
    breaks = following[: len(following) - len(following.lstrip())].replace(" ", "")
    lead = _gap(sections, at) and (breaks or "\n")
    return lead + text + ("" if breaks.startswith("\n") else "\n")


def _text(sections: Sequence[Section]) -> str:
    return "".join(s.text for s in sections if s.kind != "system")


def has_format(sections: Sequence[Section]) -> bool:
    """Whether there are rules for the form of the answer that can be taken out whole."""
    rules = _rules(sections)
    return bool(rules) and all(_loose(sections, i) for i in rules)


def instead_of_format(sections: Sequence[Section], text: str) -> tuple[Section, ...]:
    """The sections with another rule for the form of the answer, in place of the first they have.

    The others are taken out.
    """
    rules = _rules(sections)
    out = list(sections)
    for i in rules:
        own = sections[i].text
        end = len(own.rstrip())
        start = len(own) - len(own.lstrip()) if i == rules[0] else 0
        out[i] = replace_spans(sections[i], [(start, end, text if i == rules[0] else "")])
    return tuple(out)


def _rules(sections: Sequence[Section]) -> list[int]:
    return [i for i, s in enumerate(sections) if s.kind == "output_format" and s.text.strip()]


def _loose(sections: Sequence[Section], at: int) -> bool:
    """Whether the section is untouched and stands on lines of its own."""
    before, own, after = _text(sections[:at]), sections[at], _text(sections[at + 1 :])
    starts = not before or before.endswith("\n") or own.text.lstrip(" \t").startswith("\n")
    ends = not after or own.text.rstrip(" \t").endswith("\n") or after.startswith("\n")
    return starts and ends and untouched(own)
