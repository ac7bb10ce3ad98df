"""Perturbations of speakers and turns: the instruction as a system message, a request in parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise

from falter.perturbations.additions import prose_at
from falter.perturbations.base import locked_spans, prompt_perturbation, protected_spans
from falter.perturbations.template_parts import template_range, template_units
from falter.records.rng import Rng
from falter.records.types import Prompt, Section, Span
from falter.text.spans import added, overlaps, replace_spans
from falter.text.words import sentences


def _leading_lines(sections: tuple[Section, ...]) -> str:
    """Return the template's own lines before the substituted text.

    Empty if there are no such lines, or if they cannot be separated.
    """
    parts = template_units(sections)
    if len(parts) < 2 or parts[0].role != "instruction" or parts[1].role != "context":
        return ""
    first, last = template_range(sections)
    return "".join(s.text for s in sections[first:last])[: parts[0].end]


# The instruction as a system message


def _can_place(prompt: Prompt, place: str) -> bool:
    if place == "user":
        filled = {section.kind == "system" for section in prompt.sections if section.text.strip()}
        return len(filled) == 2  # a system message, and something else
    return _without_lead(prompt.sections, _leading_lines(prompt.sections)) is not None


def _without_lead(sections: tuple[Section, ...], lead: str) -> tuple[Section, ...] | None:
    """Return the sections without the lines `lead` at the beginning.

    None if the text does not begin with these lines, or if they are protected, edited or
    substituted text.
    """
    first, last = template_range(sections)
    text = "".join(section.text for section in sections[first:last])
    if not lead.strip() or not text.startswith(lead) or text[len(lead) : len(lead) + 1] != "\n":
        return None
    left = len(lead)
    out = list(sections)
    for at in range(first, last):
        section = sections[at]
        gone = min(left, len(section.text))
        if not gone:
            break
        kept = locked_spans(section)
        if section.kind in ("input", "document", "choices") or overlaps(kept, 0, gone):
            return None
        left -= gone
        if not left:
            gone = len(section.text) - len(section.text[gone:].lstrip("\n"))
        out[at] = replace_spans(section, [(0, gone, "")])
    return _without_blank_start(out, first, last)


def _without_blank_start(sections: list[Section], first: int, last: int) -> tuple[Section, ...]:
    """Return the sections without the empty lines at the start of the range `first` to `last`."""
    for at in range(first, last):
        section = sections[at]
        rest = section.text.lstrip("\n")
        blank = len(section.text) - len(rest)
        closed = locked_spans(section)
        if section.kind in ("input", "document", "choices") or overlaps(closed, 0, blank):
            break
        if blank:
            sections[at] = replace_spans(section, [(0, blank, "")])
        if rest:
            break
    return tuple(sections)


@prompt_perturbation("role_placement", eligible=_can_place)
def role_placement(prompt: Prompt, rng: Rng, place: str) -> Prompt:
    """Makes the instruction the system message, or the system message a part of the user's.

    The instruction are the template's own lines before what is put in. Examples of the same
    template lose it, too.
    """
    if place == "user":
        return prompt.with_sections(tuple(_as_user(prompt.sections)))
    lead = _leading_lines(prompt.sections)
    rest = _without_lead(prompt.sections, lead) or prompt.sections
    start = next((n for n, s in enumerate(rest) if s.kind != "system"), 0)
    gap = "\n\n" if any(s.text.strip() for s in rest[:start]) else ""
    system = added("role_placement", gap + lead.strip("\n"), "system")
    if place == "both":
        sections = prompt.sections
        return prompt.with_sections((*sections[:start], system, *sections[start:]))
    shown = tuple(
        replace(example, sections=_without_lead(example.sections, lead) or example.sections)
        for example in prompt.demonstrations
    )
    return replace(prompt, sections=(*rest[:start], system, *rest[start:]), demonstrations=shown)


def _as_user(sections: Sequence[Section]) -> Iterator[Section]:
    """Yield the sections with system messages as the user's instruction, before everything else."""
    for section in sections:
        if section.kind == "system":
            end = len(section.text.rstrip())
            gap = [(end, len(section.text), "\n\n")] if end else []
            yield replace(replace_spans(section, gap), kind="instruction")
    yield from (section for section in sections if section.kind != "system")


# A request over several turns

_REPLIES = (
    "Okay, go on.", "I see. Please go on.", "Got it. What else?", "Understood. Please continue.",
    "Thanks, noted. What comes next?",
)  # fmt: skip
_MIN_WORDS = 4  # words of a sentence; fewer may be the number of a list, or an initial
# A line of a chat or a log: a turn among such lines would read as one of them.
_RECORD_LINE = re.compile(r"^(?:\W?\d{1,2}:\d\d\b|[A-Z][^\n:]{0,40}: )", re.MULTILINE)
_MIN_RECORD_LINES = 3


def _split_places(prompt: Prompt) -> list[tuple[int, int, int]]:
    """Return places to split the request: section, end of one piece, start of the next."""
    cuts: list[tuple[int, int, int]] = []
    lead = _leading_lines(prompt.sections)
    rest = _without_lead(prompt.sections, lead)
    if rest is not None and lead:
        pairs = enumerate(zip(prompt.sections, rest, strict=True))
        changed = [(at, len(a.text) - len(b.text)) for at, (a, b) in pairs if a is not b]
        at, gone = changed[-1]
        before = sum(gone for _, gone in changed[:-1])
        cuts.append((at, max(0, len(lead) - before), gone))
    at_input = prose_at(prompt)
    if at_input is not None and _can_be_split(prompt.sections[at_input]):
        section = prompt.sections[at_input]
        closed = protected_spans(prompt, section)
        cuts += [
            (at_input, end, start)
            for (begin, end), (start, _) in pairwise(sentences(section.text))
            if section.text[end - 1] in ".!?"
            and len(section.text[begin:end].split()) >= _MIN_WORDS
            and not overlaps(closed, end, start)
            and not overlaps(section.protected, end - 1, start + 1)
        ]
    return cuts


def _can_be_split(section: Section) -> bool:
    return not section.edits and len(_RECORD_LINE.findall(section.text)) < _MIN_RECORD_LINES


def _can_shard(prompt: Prompt, turns: int, way: str) -> bool:
    return bool(_split_places(prompt)) and not any(s.kind == "reply" for s in prompt.sections)


@prompt_perturbation("sharded_turns", eligible=_can_shard)
def sharded_turns(prompt: Prompt, rng: Rng, turns: int, way: str) -> Prompt:
    """Tells the prompt over several turns of a chat, in its own order and words.

    Cut are the instruction from the rest, and the sentences of the input from each other, where it
    is no chat or log. Between two turns the assistant says that it listens.
    """
    cuts = _split_places(prompt)
    chosen = sorted(islice(rng.order(len(cuts)), turns - 1))
    out: list[Section] = []
    for at, section in enumerate(prompt.sections):
        own = [cuts[n][1:] for n in chosen if cuts[n][0] == at]
        for n, piece in enumerate(_section_pieces(section, own)):
            if n and way == "turns":
                out.append(added("sharded_turns", f"\n\n{rng.choice(_REPLIES)}\n\n", "reply"))
            elif n:
                out.append(added("sharded_turns", "\n"))
            if piece is not None:
                out.append(piece)
    return prompt.with_sections(tuple(out))


def _section_pieces(section: Section, cuts: Sequence[Span]) -> list[Section | None]:
    """Return the pieces of a section, without the white space between them.

    The longest piece keeps the section's name. An empty piece is None.
    """
    text = section.text
    starts, ends = [0, *(start for _, start in cuts)], [*(end for end, _ in cuts), len(text)]
    spans = list(zip(starts, ends, strict=True))
    home = max(spans, key=lambda span: span[1] - span[0])
    return [
        _subsection(section, span)
        if span == home
        else added(f"{section.name}_{n}", text[slice(*span)], section.kind)
        if span[0] < span[1]
        else None
        for n, span in enumerate(spans)
    ]


def _subsection(section: Section, span: Span) -> Section:
    gone = [(0, span[0], ""), (span[1], len(section.text), "")]
    return replace_spans(section, [change for change in gone if change[0] < change[1]])


# Other marks between solved examples, and between the examples and the question


# Text before each example, and before the question
_MARKS = {
    "blank": ("\n\n", "\n\n"),
    "brackets": ("[example]\n", "[question]\n"),
    "dashes": ("---\n", "---\n"),
    "equals": ("==========\n", "==========\n"),
    "hashes": ("###\n", "###\n"),
    "headings": ("## Example\n", "## Question\n"),
    "words": ("Here is an example.\n", "Now it is your turn.\n"),
}


def _has_examples(prompt: Prompt, style: str) -> bool:
    return bool(prompt.demonstrations) and any(s.kind != "system" for s in prompt.sections)


@prompt_perturbation("demonstration_delimiter", eligible=_has_examples)
def demonstration_delimiter(prompt: Prompt, rng: Rng, style: str) -> Prompt:
    """Puts another mark before each solved example, and before the question.

    A rule, a heading, a word in brackets, a sentence or more empty lines. The words of examples
    and question stay as they are.
    """
    of_example, of_question = _MARKS[rng.choice(tuple(_MARKS)) if style == "draw" else style]
    name = "demonstration_delimiter"
    shown = tuple(
        replace(d, sections=(added(name, of_example), *d.sections))
        if n or of_example.strip()
        else d  # empty lines before everything would mark nothing off
        for n, d in enumerate(prompt.demonstrations)
    )
    sections = prompt.sections
    start = next(n for n, section in enumerate(sections) if section.kind != "system")
    sections = (*sections[:start], added(name, of_question), *sections[start:])
    return replace(prompt, demonstrations=shown, sections=sections)
