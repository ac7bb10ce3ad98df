"""Insertion of text into a prompt: before the answer cue, for format rules, around the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from falter.perturbations.base import protected_spans
from falter.perturbations.options import shows_labels, untouched
from falter.records.lazy_regex import lazy_regex, named_regex
from falter.records.types import Prompt, Section, Span
from falter.text.code import fences, is_code
from falter.text.protection import blocked
from falter.text.spans import Replacement, added, overlaps, replace_spans
from falter.text.words import sentences

_bundled_regex = partial(named_regex, "perturbations")

_MAX_CUE_WORDS = 4  # "Answer:" and "The answer is:" are replaced; a longer cue may hold a rule


def answer_phrase(prompt: Prompt) -> str:
    """Return the phrase that names the expected answer, such as "your answer".

    For options the phrase is "the label of the option you choose" or "the text of the option you
    choose".
    """
    if not prompt.choices or not any(s.kind == "choices" for s in prompt.sections):
        return "your answer"
    if prompt.answer_as == "label" and shows_labels(prompt.choice_format):
        return "the label of the option you choose"
    return "the text of the option you choose"


def cue_at(sections: Sequence[Section]) -> int | None:
    """Return the index of the answer cue among the sections, or None.

    The cue is the last section of kind `cue` that is not blank. Only blank sections, additions and
    system messages may follow it.
    """
    for at in range(len(sections) - 1, -1, -1):
        section = sections[at]
        if section.kind == "cue" and section.text.strip():
            return at
        if section.kind not in ("added", "system") and section.text.strip():
            return None
    return None


def cue_line(text: str) -> tuple[int, int]:
    """Return the span of the last line of a cue's text, without trailing white space.

    Earlier lines of the section are not part of the cue.
    """
    end = len(text.rstrip())
    return text.rfind("\n", 0, end) + 1, end


def with_instruction(
    sections: Sequence[Section], name: str, text: str, cue: str | None = None
) -> tuple[Section, ...]:
    """Return the sections with a new paragraph before the answer cue, or at the end without a cue.

    The added section is called `name`. It is on separate lines and keeps the line breaks before the
    cue.

    `cue` replaces a cue of at most four words. A longer cue may contain a rule, so `cue` is then
    added after it. If the prompt has no cue, or a blocked cue, `cue` is ignored.
    """
    cue_place = cue_at(sections)
    if cue_place is None:
        return (*sections, added(name, _line_break(sections, len(sections)) + text))
    cue_section = sections[cue_place]
    start, end = cue_line(cue_section.text)
    before = len(cue_section.text[:start].rstrip())
    inside = before > 0 and not overlaps(blocked(cue_section), before, before)
    changes: list[Replacement] = []
    if inside:
        changes.append((before, before, cue_section.text[before:start] + text))
    own_cue: tuple[Section, ...] = ()
    if cue is not None and not overlaps(blocked(cue_section), start, end):
        if len(cue_section.text[start:end].split()) <= _MAX_CUE_WORDS:
            changes.append((start, end, cue))
        else:
            own_cue = (added(f"{name}_cue", f"\n{cue}"),)
    changed = replace_spans(cue_section, changes)
    paragraph = () if inside else (added(name, _with_line_breaks(sections, cue_place, text)),)
    return (*sections[:cue_place], *paragraph, changed, *own_cue, *sections[cue_place + 1 :])


# "- milk", "B) Rome", "(2) Rome", "# Task"; not "Rome" or "I think".
_LIST_ITEM = lazy_regex(r"\s*(?:[-*•#]|\(?(?:\d{1,2}|[A-Za-z])[.):])\s")


def with_sentence(prompt: Prompt, name: str, text: str) -> Prompt:
    """Return the prompt with a sentence after its last prose, ahead of answer cue and code.

    The sentence continues a line that ends a sentence. After a list, options or a heading it is a
    paragraph. If it fits nowhere, it is put before the whole prompt.
    """
    sections = prompt.sections
    cue = cue_at(sections)
    if cue is not None:
        start, _ = cue_line(sections[cue].text)
        before = len(sections[cue].text[:start].rstrip())
        if before and not overlaps(blocked(sections[cue]), before, before):
            new = _separator(sections[cue].text[:before], "\n") + text
            changed = replace_spans(sections[cue], [(before, before, new)])
            return prompt.with_sections((*sections[:cue], changed, *sections[cue + 1 :]))
    last = len(sections) if cue is None else cue
    for at in range(last, 0, -1):
        section = sections[at - 1]
        if section.kind == "system" or not section.text.strip():
            continue
        text_before, after = _joined_text(sections[:at]), _joined_text(sections[at:])
        if _ends_in_code(text_before) or (prompt.program is not None and section.kind == "input"):
            continue
        lines = text_before.endswith("\n") or after.startswith("\n")
        if at == last or (lines and text_before.rstrip().endswith((".", "?", "!"))):
            return prompt.with_sections(
                (*sections[:at], *_sentence_and_rest(prompt, at, name, text))
            )
    return framed(prompt, name, before=f"{text}\n\n")


def _ends_in_code(before: str) -> bool:
    """Return True if the text ends in a code fence or with a line of code."""
    text = before.rstrip()
    return overlaps(fences(text), len(text) - 1, len(text)) or is_code(text.rpartition("\n")[2])


def _sentence_and_rest(prompt: Prompt, at: int, name: str, text: str) -> tuple[Section, ...]:
    """Return the sentence as a new section, followed by the sections from index `at` on."""
    before, after = _joined_text(prompt.sections[:at]), prompt.sections[at:]
    breaks = before[len(before.rstrip()) :]
    gap = "\n\n" if "\n\n" in before.rstrip() else "\n"
    lead = "" if "\n" in breaks else _separator(before, gap)
    follows = _joined_text(after)
    tail = "" if not follows or follows[0].isspace() else breaks or gap
    return added(name, f"{lead}{text}{tail}"), *after


def _separator(before: str, gap: str) -> str:
    """Return the separator between the text `before` and a new sentence.

    It is a blank line after a list item, a space after prose that ends a sentence, and otherwise
    `gap`.
    """
    line = before.rstrip().rpartition("\n")[2]
    if _LIST_ITEM.match(line):
        return "\n\n"
    prose = line.endswith((".", "?", "!"))
    return "" if prose and before.endswith(" ") else " " if prose else gap


def _line_break(sections: Sequence[Section], at: int) -> str:
    """Return the line break needed before an insertion at index `at`, or an empty string."""
    before = _joined_text(sections[:at])
    return "\n" if before and not before.endswith("\n") else ""


def _with_line_breaks(sections: Sequence[Section], at: int, text: str) -> str:
    """Return the text with the line breaks that it needs before the section at index `at`."""
    following = sections[at].text
    breaks = following[: len(following) - len(following.lstrip())].replace(" ", "")
    lead = _line_break(sections, at) and (breaks or "\n")
    return lead + text + ("" if breaks.startswith("\n") else "\n")


def _joined_text(sections: Sequence[Section]) -> str:
    return "".join(s.text for s in sections if s.kind != "system")


def has_rules(sections: Sequence[Section]) -> bool:
    """Return True if the prompt has rules for the answer, all on untouched, separate lines."""
    rules = _rule_sections(sections)
    return bool(rules) and all(_is_on_separate_lines(sections, i) for i in rules)


def has_format(sections: Sequence[Section]) -> bool:
    """Return True if the rules state a form for the answer that can be replaced.

    No sentence may mix the form with another rule. All rules must be untouched, on separate
    lines.
    """
    rules = _rule_sections(sections)
    kinds = [kind for i in rules for _, kind in _rule_kinds(sections[i].text)]
    return (
        "form" in kinds
        and "mixed" not in kinds
        and all(_is_on_separate_lines(sections, i) for i in rules)
    )


def instead_of_format(
    sections: Sequence[Section], rule: str, *, keeping: bool = True
) -> tuple[Section, ...]:
    """Return the sections with `rule` in place of their first rule for the form of the answer.

    Further rules of form are removed. Other rules, such as a language or a length, stay. Without
    `keeping` they are removed, too. The blank line before the rules stays.
    """
    out = list(sections)
    written = False
    for i in _rule_sections(sections):
        text = sections[i].text
        whole, rules = len(text.rstrip()), _rule_kinds(text)
        changes: list[Replacement] = []
        if not keeping or (written and all(kind == "form" for _, kind in rules)):
            start = 0 if written else len(text) - len(text.lstrip())
            changes = [(start, whole, "" if written else rule)]
            written = True
        else:
            for (start, end), kind in rules:
                if kind == "form":
                    new = (_start_with_gap(text, start), end, "") if written else (start, end, rule)
                    changes.append(new)
                    written = True
        out[i] = replace_spans(sections[i], changes)
    return tuple(out)


def _rule_sections(sections: Sequence[Section]) -> list[int]:
    return [i for i, s in enumerate(sections) if s.kind == "output_format" and s.text.strip()]


# `_FORM_RULE` finds rules about the look of an answer; `_OTHER_RULE` about its content and length.
# `_NOT_ELSE` finds "do not write anything else", which is no rule about content.
_FORM_RULE = _bundled_regex("form")
_OTHER_RULE = _bundled_regex("other_rule")
_NOT_ELSE = _bundled_regex("not_else")
RuleKind = Literal["form", "other", "mixed"]


def _rule_kinds(text: str) -> list[tuple[tuple[int, int], RuleKind]]:
    """Return the span and the kind of every sentence and line of a text of rules."""
    told: list[tuple[tuple[int, int], RuleKind]] = []
    for line in re.finditer(r"[^\n]+", text):
        for start, end in sentences(line[0]):
            span = line.start() + start, line.start() + end
            told.append((span, _kind_of_rule(text[slice(*span)])))
    return told


def _kind_of_rule(rule: str) -> RuleKind:
    form = _FORM_RULE.search(rule) is not None
    other = _OTHER_RULE.search(_NOT_ELSE.sub("", rule)) is not None
    if form and other:
        return "mixed"
    return "form" if form else "other"


def _start_with_gap(text: str, start: int) -> int:
    """Return the offset, moved before one preceding blank or line break."""
    return start - 1 if start and text[start - 1] in " \n" else start


def _is_on_separate_lines(sections: Sequence[Section], at: int) -> bool:
    """Return True if the section is untouched and on separate lines."""
    before, own, after = _joined_text(sections[:at]), sections[at], _joined_text(sections[at + 1 :])
    starts = not before or before.endswith("\n") or own.text.lstrip(" \t").startswith("\n")
    ends = not after or own.text.rstrip(" \t").endswith("\n") or after.startswith("\n")
    return starts and ends and untouched(own)


# Text added around the whole prompt


def framed(prompt: Prompt, name: str, before: str = "", after: str = "") -> Prompt:
    """Return the prompt with `before` after its system message and `after` at its end.

    If there are demonstrations, `before` is put before the first of them, because a model reads it
    first. Empty text adds nothing.
    """
    if before and prompt.demonstrations:
        first, *rest = prompt.demonstrations
        opened = replace(first, sections=(added(f"{name}_before", before), *first.sections))
        prompt = replace(prompt, demonstrations=(opened, *rest))
        before = ""
    start, end = _body_range(prompt.sections)
    if start == end or not (before or after):
        return prompt
    sections = [*prompt.sections]
    if after:
        sections.insert(end, added(f"{name}_after", after))
    if before:
        sections.insert(start, added(f"{name}_before", before))
    return prompt.with_sections(tuple(sections))


def _body_range(sections: Sequence[Section]) -> Span:
    """Return the index range of the sections, without system messages at either end."""
    start, end = 0, len(sections)
    while start < end and sections[start].kind == "system":
        start += 1
    while start < end and sections[end - 1].kind == "system":
        end -= 1
    return start, end


def ends_in_space(prompt: Prompt) -> bool:
    """Return True if the prompt is empty or ends in white space."""
    for section in reversed(prompt.sections):
        if section.kind != "system" and section.text:
            return section.text[-1].isspace()
    return True


# The one section that a person wrote: text around it or in it reads as that person's words

HEADING = _bundled_regex("heading")
"""Pattern of the first line of a table or of a mail; nothing may precede it on that line."""


def prose_at(prompt: Prompt) -> int | None:
    """Return the index of the only input section if it is prose with unedited ends, else None.

    None if the prompt has a program, if more than half of the input is protected, or if the input
    begins with code or markup.
    """
    if prompt.program is not None:
        return None  # nobody chats with a function's signature
    inputs = [n for n, s in enumerate(prompt.sections) if s.kind == "input" and s.text.strip()]
    if len(inputs) != 1:
        return None
    section = prompt.sections[inputs[0]]
    start = len(section.text) - len(section.text.lstrip())
    end = len(section.text.rstrip())
    closed = protected_spans(prompt, section)
    inside = overlaps(closed, start, start + 1) and section.text[start].isascii()
    covered = sum(b - a for a, b in closed) > (end - start) / 2
    edited = any(e.new_start <= start or e.new_end >= end for e in section.edits)
    return None if covered or edited or (inside and section.text[start] in "`{<[") else inputs[0]
