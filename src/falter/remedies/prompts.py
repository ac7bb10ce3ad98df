"""Registry of remedies, and remedies that change white space, case or the words around a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from falter.records.errors import InvalidValue
from falter.records.registry import Registry
from falter.records.types import Prompt, Section
from falter.text.protection import protect
from falter.text.spans import Replacement, added, overlaps, replace_spans

# Places for the words of a remedy: around the prompt, or before the answer cue


def with_text_around(prompt: Prompt, name: str, before: str, after: str = "") -> Prompt:
    """Return the prompt with text before and after everything but its system message."""
    sections = list(prompt.sections)
    body = [n for n, section in enumerate(sections) if section.kind != "system"]
    if not body:
        return prompt
    if after:
        sections.insert(body[-1] + 1, added(f"{name}_after", after))
    if before:
        sections.insert(body[0], added(f"{name}_before", before))
    return prompt.with_sections(tuple(sections))


def ahead_of_cue(prompt: Prompt, name: str, text: str) -> Prompt:
    """Return the prompt with a paragraph before its answer cue, or at its end without a cue."""
    sections = prompt.sections
    cues = [n for n, s in enumerate(sections) if s.kind == "cue" and s.text.strip()]
    at = cues[-1] if cues else len(sections)
    before, following = _body_text(sections[:at]), _body_text(sections[at:])
    lead = "" if not before or before.endswith("\n") else "\n"
    end = "" if not following or following.startswith("\n") else "\n"
    paragraph = added(name, f"{lead}{text}{end}")
    return prompt.with_sections((*sections[:at], paragraph, *sections[at:]))


def _body_text(sections: Sequence[Section]) -> str:
    return "".join(s.text for s in sections if s.kind != "system")


Change = Callable[[Prompt], Prompt]
PLACEHOLDER = "{prompt}"
"""Placeholder for the prompt in a remedy that the user writes as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A mitigation applied to every prompt before it is sent, perturbed or not: a pure function.

    It gets the prompt as it arrives, and neither the item nor the recipe. It must not use the
    correct answer, which the prompt carries as `target`.

    - `reasons`: it asks for reasoning before the answer, which takes `reply_tokens`.
    - `examples`: number of solved examples that it shows before every prompt.
    - `noise`: these examples are perturbed as the items of the experiment are.
    """

    name: str
    summary: str
    change: Change
    reasons: bool = False
    reply_tokens: int = 0
    examples: int = 0
    noise: bool = False

    def __call__(self, prompt: Prompt) -> Prompt:
        return self.change(prompt)


remedies: Registry[Remedy] = Registry("remedy", "falter.remedies")


def remedy(name: str, **about: Any) -> Callable[[Change], Change]:
    """Register a function from prompt to prompt as a remedy.

    The first line of its docstring is the remedy's summary. `about` are further fields of `Remedy`,
    such as `reasons`.
    """

    def register(change: Change) -> Change:
        summary = (change.__doc__ or "").strip().partition("\n")[0]
        remedies.register(name, Remedy(name=name, summary=summary, change=change, **about))
        return change

    return register


def remedy_from(text: str) -> Remedy:
    """Return a remedy by its name, or from a text of the user that contains `{prompt}` once.

    Raise `UnknownName` for an unknown name. Raise `InvalidValue` for a vote, and for a text without
    exactly one `{prompt}`.
    """
    if text.partition(":")[0] == "vote":
        raise InvalidValue(
            "remedy", text, "a remedy of one prompt, because a vote sends several for one answer",
            hint="'falter mend' compares votes with other remedies",
        )  # fmt: skip
    if "{" not in text:
        return remedies.get(text)
    before, place, after = text.partition(PLACEHOLDER)
    if not place or PLACEHOLDER in after:
        raise InvalidValue(
            "remedy", text, "the name of a remedy, or a text with {prompt} in it, once",
            hint=f"known remedies: {', '.join(remedies.names())}",
        )  # fmt: skip
    return Remedy(
        name=text,
        summary="words of your own around the prompt",
        change=lambda prompt: with_text_around(prompt, "remedy", before, after),
    )


# Corrected letter case

_LETTERS = re.compile(r"[^\W\d_]{2,}")
_MIN_ODD_SHARE = 0.5
"""Minimum share of words with capitals after their first letter; such a text is corrected."""


@remedy("even_case")
def even_case(prompt: Prompt) -> Prompt:
    """An input that is mostly in capitals, or in a mixture of cases, is written small."""
    return prompt.with_sections(tuple(map(_with_even_case, prompt.sections)))


def _with_even_case(section: Section) -> Section:
    """Return the section in small letters if many of its words have odd capitals.

    A word at the start of a sentence gets a capital.
    """
    if section.kind not in ("input", "document"):
        return section
    words = list(_LETTERS.finditer(section.text))
    odd = [word for word in words if word[0][1:] != word[0][1:].lower()]
    if len(odd) < _MIN_ODD_SHARE * len(words):
        return section
    changes: list[Replacement] = []
    for word in odd:
        start, end = word.span()
        before = section.text[:start].rstrip()
        begins = not before or before[-1] in ".?!"
        changes.append((start, end, word[0].capitalize() if begins else word[0].lower()))
    return replace_spans(section, changes)


# Solved examples before the prompt: the engine takes them from the task, and shows them

EXAMPLE_COUNT = 4


@remedy("examples", examples=EXAMPLE_COUNT)
def examples(prompt: Prompt) -> Prompt:
    """Shows four solved items of the task ahead of the prompt, which are not asked then."""
    return prompt


@remedy("noisy_examples", examples=EXAMPLE_COUNT, noise=True)
def noisy_examples(prompt: Prompt) -> Prompt:
    """Shows solved items of the task, or the examples there are, perturbed as the items are."""
    return prompt


# Reasoning asked for before the answer

_REASONING_TOKENS = 512
_REASONING_CUE = "Reasoning:"
_MAX_CUE_WORDS = 4


@remedy("think_first", reasons=True, reply_tokens=_REASONING_TOKENS)
def think_first(prompt: Prompt) -> Prompt:
    """Asks for the reasoning first, and for the answer on a last line of its own.

    Prompts whose answer has a form of its own, with several parts or code, stay as they are.
    """
    if prompt.schema is not None or prompt.program is not None or not prompt.sections:
        return prompt
    asked = ahead_of_cue(
        prompt,
        "think_first",
        "First work out step by step what is asked and what follows, in a few sentences, even if "
        f"a short answer was asked for. Then write, on a last line by itself:\nAnswer: X\n"
        f"where X is {_answer_words(prompt)}.",
    )
    return _with_cue(asked)


def _answer_words(prompt: Prompt) -> str:
    """Return the phrase that names the expected answer, such as "your answer"."""
    if not prompt.choices or not any(s.kind == "choices" for s in prompt.sections):
        return "your answer"
    labelled = prompt.answer_as == "label" and "{label}" in prompt.choice_format
    return f"the {'label' if labelled else 'text'} of the option you choose"


def _with_cue(prompt: Prompt) -> Prompt:
    """Return the prompt with a cue for reasoning in place of a short cue for the answer.

    A cue of more than four words stays.
    """
    sections = list(prompt.sections)
    for at in range(len(sections) - 1, -1, -1):
        section = sections[at]
        line = section.text.rstrip()
        start = line.rfind("\n") + 1
        if section.kind == "cue" and line:
            if len(line[start:].split()) <= _MAX_CUE_WORDS:
                sections[at] = replace_spans(section, [(start, len(line), _REASONING_CUE)])
            break
    return replace(prompt, sections=tuple(sections))


# Corrected spaces and line breaks

_SPACES = re.compile(r"[ \t\u00a0\u2000-\u200b\u202f\u205f\u3000]+")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n(?:[^\S\n]*\n)+")
_LEADING, _TRAILING = re.compile(r"\A\s+"), re.compile(r"\s+\Z")


@remedy("tidy_spaces")
def tidy_spaces(prompt: Prompt) -> Prompt:
    """Runs of spaces, tabs and exotic blanks become one space; code stays as it is."""
    return prompt.with_sections(tuple(map(_with_tidy_spaces, prompt.sections)))


def _with_tidy_spaces(section: Section) -> Section:
    """Return the section with one space for each run of blanks, but not in protected text."""
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
    sections = [_with_tidy_lines(section) for section in prompt.sections]
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


def _with_tidy_lines(section: Section) -> Section:
    if section.kind == "system" or "\n" not in section.text:
        return section
    kept = protect(section.text)
    places = [match.span() for match in _BLANK_LINES.finditer(section.text)]
    changes = [(start, end, "\n\n") for start, end in places if not overlaps(kept, start, end)]
    return replace_spans(section, changes)


# Words that help to understand the prompt: delimiters, the question repeated, a hint at slips

_DELIMITER = '"""'
_SLIPS_NOTE = (
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
    before, after = _body_text(sections[:first]), _body_text(sections[last:])
    lead = "" if not before or before.endswith("\n") else "\n"
    opening = added("delimiter_before", f"{lead}{_DELIMITER}\n")
    end = "" if inner.endswith("\n") else "\n"
    tail = "" if not after or after.startswith("\n") else "\n"
    closing = added("delimiter_after", f"{end}{_DELIMITER}{tail}")
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
    return with_text_around(prompt, "slips", _SLIPS_NOTE)
