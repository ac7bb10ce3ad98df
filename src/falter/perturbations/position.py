"""Position: the parts of a template, its documents and its lists in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from falter.core.interfaces import Parameter
from falter.core.records import Demonstration, Prompt, Section, Span
from falter.core.rng import Rng
from falter.perturbations._base import prompt_perturbation
from falter.perturbations._documents import Split, documents_in, placed_documents
from falter.perturbations._lists import open_lists
from falter.perturbations._rearranging import (
    Order,
    another_order,
    both,
    moves,
    possible,
    rearranged,
    reordered,
    template_units,
)
from falter.perturbations._shown import demonstration_delimiter
from falter.perturbations._turns import role_placement, sharded_turns
from falter.text import Replacement, replace_spans

__all__ = [
    "demonstration_delimiter",
    "demonstration_order",
    "mixed_positions",
    "move_context",
    "move_output_instructions",
    "reorder_bullets",
    "reorder_documents",
    "role_placement",
    "sharded_turns",
]

_FAMILY = _GROUP = "position"
_MEANING = ("target", "choices", "lines", "words", "negations")


# Parts of the template


@lru_cache(maxsize=16)  # called once to see whether there are any, and once to draw one
def _context_orders(prompt: Prompt) -> list[Order]:
    return possible(prompt, moves(template_units(prompt.sections), "context"))


@lru_cache(maxsize=16)
def _output_orders(prompt: Prompt) -> list[Order]:
    return possible(prompt, moves(template_units(prompt.sections), "output"))


def _can_move_context(prompt: Prompt) -> bool:
    return bool(_context_orders(prompt))


def _can_move_output(prompt: Prompt) -> bool:
    return bool(_output_orders(prompt))


@prompt_perturbation(
    "move_context",
    title="the input moved",
    family=_FAMILY,
    group=_GROUP,
    version=2,
    scope=("input", "document", "choices"),
    invariants=_MEANING,
    eligible=_can_move_context,
)
def move_context(prompt: Prompt, rng: Rng) -> Prompt:
    """Moves the task's input, with its labels, to another place in the template."""
    return rearranged(prompt, rng.choice(_context_orders(prompt)))


@prompt_perturbation(
    "move_output_instructions",
    title="the answer rules moved",
    family=_FAMILY,
    group=_GROUP,
    version=2,
    scope=("output_format",),
    invariants=_MEANING,
    eligible=_can_move_output,
)
def move_output_instructions(prompt: Prompt, rng: Rng) -> Prompt:
    """Moves the rules for the form of the answer to another place in the template."""
    return rearranged(prompt, rng.choice(_output_orders(prompt)))


# Documents and lists

_SPLIT = Parameter(
    name="split",
    type=str,
    default="marked",
    options=("marked", "paragraphs"),
    help="how to tell the documents in one text apart",
)


def _texts(text: str, parts: Sequence[Span]) -> list[str]:
    return [text[start:end] for start, end in parts]


def _swapped(section: Section, lists: Sequence[Sequence[Span]], rng: Rng) -> Section:
    """The section with the parts of each list reordered; the text between them stays."""
    changes: list[Replacement] = []
    for parts in lists:
        texts = _texts(section.text, parts)
        for (start, end), now in zip(parts, another_order(texts, rng), strict=True):
            if section.text[start:end] != texts[now]:
                changes.append((start, end, texts[now]))
    return replace_spans(section, changes)


def _can_reorder_documents(prompt: Prompt, split: Split) -> bool:
    return placed_documents(prompt.sections) is not None or any(
        documents_in(section, split) for section in prompt.sections
    )


@prompt_perturbation(
    "reorder_documents",
    title="documents in another order",
    family=_FAMILY,
    group=_GROUP,
    scope=("document",),
    parameters=(_SPLIT,),
    invariants=_MEANING,
    eligible=_can_reorder_documents,
)
def reorder_documents(prompt: Prompt, rng: Rng, split: Split) -> Prompt:
    """Reorders the documents; each keeps its own label."""
    sections = prompt.sections
    placed = placed_documents(sections)
    if placed is None:
        spans_by_section = [documents_in(section, split) for section in sections]
        return prompt.with_sections(
            tuple(
                _swapped(s, [spans] if spans else [], rng)
                for s, spans in zip(sections, spans_by_section, strict=True)
            )
        )
    (first, last), parts = placed
    text = "".join(section.text for section in sections[first:last])
    order = another_order(_texts(text, parts), rng)
    moved = reordered(sections[first:last], parts, order) or sections[first:last]
    return prompt.with_sections((*sections[:first], *moved, *sections[last:]))


def _can_reorder_bullets(prompt: Prompt) -> bool:
    return any(open_lists(prompt.sections, at) for at in range(len(prompt.sections)))


@prompt_perturbation(
    "reorder_bullets",
    title="bullets in another order",
    family=_FAMILY,
    group=_GROUP,
    version=2,
    scope=("instruction", "input", "document", "output_format"),
    invariants=_MEANING,
    eligible=_can_reorder_bullets,
)
def reorder_bullets(prompt: Prompt, rng: Rng) -> Prompt:
    """Reorders the items of bullet lists; nested lines move with their item."""
    sections = prompt.sections
    return prompt.with_sections(
        tuple(_swapped(s, open_lists(sections, at), rng) for at, s in enumerate(sections))
    )


def _can_reorder_demonstrations(prompt: Prompt) -> bool:
    return len({_shown(d) for d in prompt.demonstrations}) > 1


def _shown(demonstration: Demonstration) -> str:
    return "".join(s.text for s in demonstration.sections) + f"\n{demonstration.answer}"


@prompt_perturbation(
    "demonstration_order",
    title="examples in another order",
    family=_FAMILY,
    group="demonstrations",
    invariants=_MEANING,
    eligible=_can_reorder_demonstrations,
)
def demonstration_order(prompt: Prompt, rng: Rng) -> Prompt:
    """Shows the same solved examples in another order."""
    shown = prompt.demonstrations
    order = another_order([_shown(demonstration) for demonstration in shown], rng)
    return replace(prompt, demonstrations=tuple(shown[n] for n in order))


# Several at once


def _mixed_orders(prompt: Prompt) -> list[Order]:
    """The moves of both kinds together; of one kind if the other has nowhere to go."""
    template_parts = template_units(prompt.sections)
    together = possible(prompt, both(template_parts, "context", "output"))
    return together or _context_orders(prompt) or _output_orders(prompt)


def _kinds(prompt: Prompt) -> int:
    """How many kinds of change the prompt allows."""
    can = (_can_move_context, _can_move_output, _can_reorder_bullets)
    return sum(able(prompt) for able in can) + _can_reorder_documents(prompt, "marked")


def _can_mix(prompt: Prompt) -> bool:
    return _kinds(prompt) > 1


@prompt_perturbation(
    "mixed_positions",
    title="several parts moved",
    family=_FAMILY,
    group=_GROUP,
    version=2,
    invariants=_MEANING,
    eligible=_can_mix,
)
def mixed_positions(prompt: Prompt, rng: Rng) -> Prompt:
    """Makes all of these changes at once that the prompt allows, at least two kinds."""
    if _can_reorder_bullets(prompt):
        prompt = reorder_bullets(prompt, rng)
    if _can_reorder_documents(prompt, "marked"):
        prompt = reorder_documents(prompt, rng)
    orders = _mixed_orders(prompt)
    return rearranged(prompt, rng.choice(orders)) if orders else prompt
