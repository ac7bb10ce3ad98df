"""Reordering of a template: runs of lines with one role move, the line breaks between them stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from typing import Literal, NamedTuple

from falter.perturbations.additions import cue_at, cue_line
from falter.perturbations.base import locked_spans
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Prompt, Section, Span
from falter.text.spans import Replacement, added, overlaps, replace_spans

_bundled_regex = partial(named_regex, "perturbations")

Role = Literal["instruction", "context", "output", "cue"]
_RANK: dict[Role, int] = {"instruction": 0, "context": 1, "output": 2, "cue": 3}
_SUBSTITUTED_KINDS = ("input", "document", "choices")
_ADDED_FORMAT = "output_format_added"
Order = tuple[int, ...]


class Unit(NamedTuple):
    """A run of lines with one role: its span in the text of the sections."""

    role: Role
    start: int
    end: int


def another_order(texts: Sequence[str], rng: Rng) -> list[int]:
    """Return an order that reads differently: for each place, the index of its new text.

    The texts must not all be equal; otherwise the function does not return.
    """
    while True:
        order = list(rng.order(len(texts)))
        if any(texts[now] != texts[place] for place, now in enumerate(order)):
            return order


def template_range(sections: Sequence[Section]) -> tuple[int, int]:
    """Return the index range of the template itself, without system messages and text around it."""
    at = [i for i, s in enumerate(sections) if s.kind != "system"]
    while at and _is_frame(sections[at[0]]):
        at.pop(0)
    while at and _is_frame(sections[at[-1]]):
        at.pop()
    return (at[0], at[-1] + 1) if at else (0, 0)


def _is_frame(section: Section) -> bool:
    return section.kind == "added" and section.name not in (_ADDED_FORMAT, _MOVED)


_MOVED = "moved"


# Lines and their roles


@lru_cache(maxsize=64)  # needed several times for each prompt
def units(sections: tuple[Section, ...]) -> tuple[Unit, ...]:
    """Return the sections' text as runs of lines with one role, without the breaks between them."""
    text, spans = joined_sections(sections)
    # One search over the text: a pattern that requires a character in a line that is no white space
    # would search the line again from each of its characters.
    lines = [m.span() for m in re.finditer(r"[^\n]+", text) if not m[0].isspace()]
    roles = _roles(sections, spans, lines)
    _attach_headers(text, lines, roles)
    runs: list[Unit] = []
    for role, run in groupby(range(len(lines)), key=roles.__getitem__):
        numbers = list(run)
        start, end = lines[numbers[0]][0], lines[numbers[-1]][1]
        runs.append(Unit(role, start, end))
    return tuple(runs)


def joined_sections(sections: Sequence[Section]) -> tuple[str, list[Span]]:
    """Return the joined text of the sections, and the span of each section in it."""
    spans: list[Span] = []
    at = 0
    for section in sections:
        spans.append((at, at + len(section.text)))
        at += len(section.text)
    return "".join(s.text for s in sections), spans


def _roles(sections: Sequence[Section], spans: Sequence[Span], lines: Sequence[Span]) -> list[Role]:
    """Return the role of each line: the strongest role of the sections on it.

    Substituted text keeps its lines together: they all take the strongest role of any of them.
    """
    roles: list[Role] = ["instruction"] * len(lines)
    cores = (_stripped_span(s.text, at) for s, (at, _) in zip(sections, spans, strict=True))
    lines_of_section = [_touched_lines(core, lines) for core in cores]
    for section, section_lines in zip(sections, lines_of_section, strict=True):
        for at in section_lines:
            roles[at] = max(roles[at], _section_role(section), key=_RANK.__getitem__)
    cue = cue_at(sections)
    if cue is not None:
        start, end = cue_line(sections[cue].text)
        shift = spans[cue][0]
        for at in _touched_lines((shift + start, shift + end), lines):
            roles[at] = "cue"
    for _ in sections:
        before = list(roles)
        for section, section_lines in zip(sections, lines_of_section, strict=True):
            if section.kind in _SUBSTITUTED_KINDS and section_lines:
                strongest = max((roles[at] for at in section_lines), key=_RANK.__getitem__)
                for at in section_lines:
                    roles[at] = strongest
        if roles == before:
            break
    return roles


def _stripped_span(text: str, shift: int) -> Span:
    """Return the span of the text without surrounding white space, moved by `shift`."""
    end = len(text.rstrip())
    return shift + min(end, len(text) - len(text.lstrip())), shift + end


def _touched_lines(span: Span, lines: Sequence[Span]) -> list[int]:
    """Return the indices of the lines that share a character with the span."""
    start, end = span
    return [i for i, (a, b) in enumerate(lines) if a < end and start < b] if start < end else []


def _section_role(section: Section) -> Role:
    if section.kind == "output_format" or section.name == _ADDED_FORMAT:
        return "output"
    return "context" if section.kind in _SUBSTITUTED_KINDS else "instruction"


# A line that heads what follows. "Question:", "Input text:"; not "Question: why", "12".
_HEADER = re.compile(r"\S.*[:：]\s*$")
# A line that opens a delimited part; its counterpart closes it. "```json", "<input>", "---"; not
# "a ```".
_OPENING = re.compile(r"\s*(?:`{3,}\w*|~{3,}\w*|\"{3}|'{3}|-{3,}|={3,}|<\w[\w-]*>)\s*$")
_CLOSING = re.compile(r"\s*(?:`{3,}|~{3,}|\"{3}|'{3}|-{3,}|={3,}|</\w[\w-]*>)\s*$")


def _attach_headers(text: str, lines: Sequence[Span], roles: list[Role]) -> None:
    """Give the role of a substituted text to the fence around it, or to the heading above it."""
    before = list(roles)
    for at, role in enumerate(before):
        if role != "context" or (at and before[at - 1] == "context"):
            continue
        last = at
        while last + 1 < len(before) and before[last + 1] == "context":
            last += 1
        first = at
        if (
            first
            and last + 1 < len(before)
            and before[first - 1] == before[last + 1] == "instruction"
        ):
            above, below = (text[slice(*lines[i])] for i in (first - 1, last + 1))
            if _OPENING.match(above) and _CLOSING.match(below):
                roles[first - 1] = roles[last + 1] = "context"
                first -= 1
        above = text[slice(*lines[first - 1])] if first else ""
        if first and before[first - 1] == "instruction" and _HEADER.match(above):
            roles[first - 1] = "context"


# Moves


def single_moves(parts: Sequence[Unit], role: Role) -> list[Order]:
    """Return the orders in which one unit with this role has moved; the answer cue stays last.

    Empty if a cue is not the last unit.
    """
    free = [i for i, unit in enumerate(parts) if unit.role != "cue"]
    fixed = tuple(i for i, unit in enumerate(parts) if unit.role == "cue")
    if fixed and fixed != (len(parts) - 1,):
        return []
    orders: dict[Order, None] = {}
    for moving in (i for i in free if parts[i].role == role):
        rest = [i for i in free if i != moving]
        for place in range(len(rest) + 1):
            orders[(*rest[:place], moving, *rest[place:], *fixed)] = None
    orders.pop(tuple(range(len(parts))), None)
    return list(orders)


def double_moves(parts: Sequence[Unit], first: Role, second: Role) -> list[Order]:
    """Return the orders in which one unit of each role has moved, without single moves."""
    orders: dict[Order, None] = {}
    for order in single_moves(parts, first):
        for then in single_moves([parts[i] for i in order], second):
            orders[tuple(order[i] for i in then)] = None
    single = {*single_moves(parts, first), *single_moves(parts, second), tuple(range(len(parts)))}
    return [order for order in orders if order not in single]


def allowed_orders(prompt: Prompt, orders: Iterable[Order]) -> list[Order]:
    """Return the orders of the prompt's units that are allowed.

    They cut through nothing protected or edited, and leave no *question below* above the question.
    """
    first, last = template_range(prompt.sections)
    part = prompt.sections[first:last]
    text, parts = "".join(section.text for section in part), units(part)
    pointing = [n for n, unit in enumerate(parts) if _has_place_word(text, unit)]
    return [
        order
        for order in orders
        if _keeps_contexts(parts, pointing, order)
        and _rearranged_sections(prompt.sections, order) is not None
    ]


_PLACE_WORD = _bundled_regex("place_word")


def _has_place_word(text: str, unit: Unit) -> bool:
    """Return True if a template unit says where something else is, such as "below"."""
    return unit.role != "context" and _PLACE_WORD.search(text, unit.start, unit.end) is not None


def _keeps_contexts(parts: Sequence[Unit], pointing: Sequence[int], order: Order) -> bool:
    """Return True if every unit that points at contexts still has the same contexts after it."""
    place = {unit: at for at, unit in enumerate(order)}
    contexts = [n for n, unit in enumerate(parts) if unit.role == "context"]
    return all((c > p) == (place[c] > place[p]) for p in pointing for c in contexts)


def rearranged(prompt: Prompt, order: Order) -> Prompt:
    """Return the prompt with its units in this order.

    Demonstrations with the same template get the same order.
    """
    sections = _rearranged_sections(prompt.sections, order) or prompt.sections
    roles = [unit.role for unit in template_units(prompt.sections)]
    demonstrations = []
    for demonstration in prompt.demonstrations:
        same = [unit.role for unit in template_units(demonstration.sections)] == roles
        moved = _rearranged_sections(demonstration.sections, order) if same else None
        demonstrations.append(
            demonstration if moved is None else replace(demonstration, sections=moved)
        )
    return replace(prompt, sections=sections, demonstrations=tuple(demonstrations))


def template_units(sections: tuple[Section, ...]) -> tuple[Unit, ...]:
    """Return the units of the template itself, without system messages and text around it."""
    first, last = template_range(sections)
    return units(sections[first:last])


def _rearranged_sections(sections: tuple[Section, ...], order: Order) -> tuple[Section, ...] | None:
    first, last = template_range(sections)
    part = sections[first:last]
    moved = reordered(part, [(u.start, u.end) for u in units(part)], order)
    return None if moved is None else (*sections[:first], *moved, *sections[last:])


def reordered(
    sections: Sequence[Section], parts: Sequence[Span], order: Sequence[int]
) -> tuple[Section, ...] | None:
    """Return the sections with spans of their joined text reordered; the text between them stays.

    One piece of a split section keeps its name: the piece with protected or edited text, or else
    the longest. Its other pieces become additions. None if several pieces have protected or edited
    text.
    """
    _, spans = joined_sections(sections)
    pieces = list(_pieces(_moved_spans(parts, order, spans[-1][1] if spans else 0), spans))
    homes = {at: _home(sections[at], [p for p in pieces if p[0] == at]) for at, _, _ in pieces}
    out: list[Section] = []
    for piece in pieces:
        at, start, end = piece
        home = homes[at]
        if home is None:
            return None
        keep = _cut_to if piece == home else _cut_out
        out.append(keep(sections[at], start, end))
    return (*out, *(s for i, s in enumerate(sections) if i not in homes))


def _moved_spans(parts: Sequence[Span], order: Sequence[int], length: int) -> Iterator[Span]:
    """Yield spans of the old text in their new order."""
    at = 0
    for place, now in enumerate(order):
        yield at, parts[place][0]
        yield parts[now]
        at = parts[place][1]
    yield at, length


def _pieces(flow: Iterable[Span], spans: Sequence[Span]) -> Iterator[tuple[int, int, int]]:
    """Yield the flow as pieces of sections: section index, start and end in the section.

    Neighbouring pieces of the same section are joined.
    """
    last: tuple[int, int, int] | None = None
    for start, end in flow:
        for at, (a, b) in enumerate(spans):
            low, high = max(start, a) - a, min(end, b) - a
            if low >= high:
                continue
            if last is not None and last[0] == at and last[2] == low:
                last = (at, last[1], high)
                continue
            if last is not None:
                yield last
            last = (at, low, high)
    if last is not None:
        yield last


def _home(section: Section, pieces: Sequence[tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """Return the piece that keeps the section's name.

    None if several pieces hold protected or edited text.
    """
    if len(pieces) == 1:
        return pieces[0]
    closed = locked_spans(section)
    locked = [piece for piece in pieces if overlaps(closed, *piece[1:])]
    if len(locked) > 1:
        return None
    if locked:
        return locked[0]
    return max(pieces, key=lambda piece: len(section.text[piece[1] : piece[2]].strip()))


def _cut_to(section: Section, start: int, end: int) -> Section:
    gone: list[Replacement] = [(0, start, ""), (end, len(section.text), "")]
    return replace_spans(section, [change for change in gone if change[0] < change[1]])


def _cut_out(section: Section, start: int, end: int) -> Section:
    return added(_MOVED, section.text[start:end])
