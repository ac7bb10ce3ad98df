"""Parts of a template in another order: lines with one role move, the breaks between them stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

from falter.core.records import Prompt, Section, Span
from falter.core.rng import Rng
from falter.perturbations._asking import added, cue_at, cue_line
from falter.text import Replacement, merged, overlaps, replace_spans

__all__ = [
    "Order",
    "Unit",
    "another_order",
    "both",
    "inner",
    "moves",
    "possible",
    "rearranged",
    "reordered",
    "template_units",
    "units",
]

Role = Literal["instruction", "context", "output", "cue"]
_RANK: dict[Role, int] = {"instruction": 0, "context": 1, "output": 2, "cue": 3}
_SUBSTITUTED = ("input", "document", "choices")
_OUTPUT = "output_format_added"
Order = tuple[int, ...]


class Unit(NamedTuple):
    """A run of lines with one role: its span in the text of the sections."""

    role: Role
    start: int
    end: int


def another_order(texts: Sequence[str], rng: Rng) -> list[int]:
    """Which text comes to each place; never so that it reads as before. They must not be equal."""
    while True:
        order = list(rng.order(len(texts)))
        if any(texts[now] != texts[place] for place, now in enumerate(order)):
            return order


def inner(sections: Sequence[Section]) -> tuple[int, int]:
    """The sections that belong to the template: no system words, no text put around the whole."""
    at = [i for i, s in enumerate(sections) if s.kind != "system"]
    while at and _is_frame(sections[at[0]]):
        at.pop(0)
    while at and _is_frame(sections[at[-1]]):
        at.pop()
    return (at[0], at[-1] + 1) if at else (0, 0)


def _is_frame(section: Section) -> bool:
    return section.kind == "added" and section.name not in (_OUTPUT, _MOVED)


_MOVED = "moved"


# Lines and their roles


@lru_cache(maxsize=64)  # asked for several times for each prompt
def units(sections: tuple[Section, ...]) -> tuple[Unit, ...]:
    """The sections' text as runs of lines with one role, without the breaks between them."""
    text, spans = _laid_out(sections)
    lines = [m.span() for m in re.finditer(r"[^\n]*[^\s][^\n]*", text)]
    roles = _roles(sections, spans, lines)
    _attach_headers(text, lines, roles)
    found: list[Unit] = []
    for role, run in groupby(range(len(lines)), key=roles.__getitem__):
        numbers = list(run)
        start, end = lines[numbers[0]][0], lines[numbers[-1]][1]
        found.append(Unit(role, start, end))
    return tuple(found)


def _laid_out(sections: Sequence[Section]) -> tuple[str, list[Span]]:
    """The text of the sections, and where each of them is in it."""
    spans: list[Span] = []
    at = 0
    for section in sections:
        spans.append((at, at + len(section.text)))
        at += len(section.text)
    return "".join(s.text for s in sections), spans


def _roles(sections: Sequence[Section], spans: Sequence[Span], lines: Sequence[Span]) -> list[Role]:
    """The role of each line: the strongest of what stands on it.

    A text that was put in keeps its lines together: the strongest role of one is that of all.
    """
    roles: list[Role] = ["instruction"] * len(lines)
    cores = (_core(s.text, at) for s, (at, _) in zip(sections, spans, strict=True))
    held = [_touched(core, lines) for core in cores]
    for section, touched in zip(sections, held, strict=True):
        for at in touched:
            roles[at] = _stronger(roles[at], _role(section))
    cue = cue_at(sections)
    if cue is not None:
        start, end = cue_line(sections[cue].text)
        shift = spans[cue][0]
        for at in _touched((shift + start, shift + end), lines):
            roles[at] = "cue"
    for _ in sections:
        before = list(roles)
        for section, touched in zip(sections, held, strict=True):
            if section.kind in _SUBSTITUTED and touched:
                strongest = max((roles[at] for at in touched), key=_RANK.__getitem__)
                for at in touched:
                    roles[at] = strongest
        if roles == before:
            break
    return roles


def _core(text: str, shift: int) -> Span:
    """Where the text is without the white space around it."""
    end = len(text.rstrip())
    return shift + min(end, len(text) - len(text.lstrip())), shift + end


def _touched(span: Span, lines: Sequence[Span]) -> list[int]:
    start, end = span
    return [i for i, (a, b) in enumerate(lines) if a < end and start < b] if start < end else []


def _role(section: Section) -> Role:
    if section.kind == "output_format" or section.name == _OUTPUT:
        return "output"
    return "context" if section.kind in _SUBSTITUTED else "instruction"


def _stronger(one: Role, other: Role) -> Role:
    return one if _RANK[one] >= _RANK[other] else other


_HEADER = re.compile(r"\S.*[:：]\s*$")
_OPENING = re.compile(r"\s*(?:`{3,}\w*|~{3,}\w*|\"{3}|'{3}|-{3,}|={3,}|<\w[\w-]*>)\s*$")
_CLOSING = re.compile(r"\s*(?:`{3,}|~{3,}|\"{3}|'{3}|-{3,}|={3,}|</\w[\w-]*>)\s*$")


def _attach_headers(text: str, lines: Sequence[Span], roles: list[Role]) -> None:
    """Lines of the template that belong to what was put in: a fence around it, a heading above."""
    own = list(roles)
    for at, role in enumerate(own):
        if role != "context" or (at and own[at - 1] == "context"):
            continue
        last = at
        while last + 1 < len(own) and own[last + 1] == "context":
            last += 1
        first = at
        if first and last + 1 < len(own) and own[first - 1] == own[last + 1] == "instruction":
            above, below = (text[slice(*lines[i])] for i in (first - 1, last + 1))
            if _OPENING.match(above) and _CLOSING.match(below):
                roles[first - 1] = roles[last + 1] = "context"
                first -= 1
        above = text[slice(*lines[first - 1])] if first else ""
        if first and own[first - 1] == "instruction" and _HEADER.match(above):
            roles[first - 1] = "context"


# Moves


def moves(found: Sequence[Unit], role: Role) -> list[Order]:
    """The orders in which one unit with this role stands elsewhere; the answer cue stays last."""
    free = [i for i, unit in enumerate(found) if unit.role != "cue"]
    fixed = tuple(i for i, unit in enumerate(found) if unit.role == "cue")
    if fixed and fixed != (len(found) - 1,):
        return []
    orders: dict[Order, None] = {}
    for moving in (i for i in free if found[i].role == role):
        others = [i for i in free if i != moving]
        for place in range(len(others) + 1):
            orders[(*others[:place], moving, *others[place:], *fixed)] = None
    orders.pop(tuple(range(len(found))), None)
    return list(orders)


def both(found: Sequence[Unit], one: Role, other: Role) -> list[Order]:
    """The orders in which a unit of either role stands elsewhere, that no single move makes."""
    orders: dict[Order, None] = {}
    for order in moves(found, one):
        for then in moves([found[i] for i in order], other):
            orders[tuple(order[i] for i in then)] = None
    single = {*moves(found, one), *moves(found, other), tuple(range(len(found)))}
    return [order for order in orders if order not in single]


def possible(prompt: Prompt, orders: Iterable[Order]) -> list[Order]:
    """Those orders of the prompt's units that need nothing closed to be cut."""
    return [order for order in orders if _rearranged(prompt.sections, order) is not None]


def rearranged(prompt: Prompt, order: Order) -> Prompt:
    """The prompt with its units in this order, and so the demonstrations with the same template."""
    sections = _rearranged(prompt.sections, order) or prompt.sections
    roles = [unit.role for unit in template_units(prompt.sections)]
    shown = []
    for one in prompt.demonstrations:
        same = [unit.role for unit in template_units(one.sections)] == roles
        made = _rearranged(one.sections, order) if same else None
        shown.append(one if made is None else replace(one, sections=made))
    return replace(prompt, sections=sections, demonstrations=tuple(shown))


def template_units(sections: tuple[Section, ...]) -> tuple[Unit, ...]:
    """The units of the sections without system words and what stands around the template."""
    first, last = inner(sections)
    return units(sections[first:last])


def _rearranged(sections: tuple[Section, ...], order: Order) -> tuple[Section, ...] | None:
    first, last = inner(sections)
    part = sections[first:last]
    made = reordered(part, [(u.start, u.end) for u in units(part)], order)
    return None if made is None else (*sections[:first], *made, *sections[last:])


def reordered(
    sections: Sequence[Section], parts: Sequence[Span], order: Sequence[int]
) -> tuple[Section, ...] | None:
    """The sections with spans of their text in another order; what lies between them stays.

    A section of which a piece goes elsewhere keeps its name and longest piece; the others become
    additions. None where that would cut into something protected or edited.
    """
    _, spans = _laid_out(sections)
    pieces = list(_pieces(_flow(parts, order, spans[-1][1] if spans else 0), spans))
    homes = {at: _home(sections[at], [p for p in pieces if p[0] == at]) for at, _, _ in pieces}
    out: list[Section] = []
    for piece in pieces:
        at, start, end = piece
        home = homes[at]
        if home is None:
            return None
        own = piece == home
        out.append(_kept(sections[at], start, end) if own else _cut(sections[at], start, end))
    return (*out, *(s for i, s in enumerate(sections) if i not in homes))


def _flow(parts: Sequence[Span], order: Sequence[int], length: int) -> Iterator[Span]:
    """Spans of the old text in their new order."""
    at = 0
    for place, now in enumerate(order):
        yield at, parts[place][0]
        yield parts[now]
        at = parts[place][1]
    yield at, length


def _pieces(flow: Iterable[Span], spans: Sequence[Span]) -> Iterator[tuple[int, int, int]]:
    """The flow as pieces of sections, neighbouring ones of the same section joined."""
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
    """The piece that keeps the section's name; None when more than one is closed to edits."""
    if len(pieces) == 1:
        return pieces[0]
    closed = merged((*section.protected, *((e.new_start, e.new_end) for e in section.edits)))
    held = [piece for piece in pieces if overlaps(closed, *piece[1:])]
    if len(held) > 1:
        return None
    return held[0] if held else max(pieces, key=lambda p: len(section.text[p[1] : p[2]].strip()))


def _kept(section: Section, start: int, end: int) -> Section:
    gone: list[Replacement] = [(0, start, ""), (end, len(section.text), "")]
    return replace_spans(section, [change for change in gone if change[0] < change[1]])


def _cut(section: Section, start: int, end: int) -> Section:
    return added(_MOVED, section.text[start:end])
