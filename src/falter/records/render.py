"""Rendering of prompts as chat messages, or as plain contexts with continuations; requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from falter.records.chats import result_text
from falter.records.ids import digest
from falter.records.types import (
    Edit,
    Message,
    Model,
    Prompt,
    Recipe,
    Request,
    Sampling,
    Section,
    SectionKind,
    Variant,
    Way,
)


def choice_block(labels: Sequence[str], choices: Sequence[str], line: str) -> str:
    """Return the listed options, formatted by `line`, without the last line break."""
    rows = (line.format(label=a, text=b) for a, b in zip(labels, choices, strict=True))
    return "".join(rows).rstrip("\n")


def with_choices(
    prompt: Prompt, choices: Sequence[str], labels: Sequence[str], target: int | str | None
) -> Prompt:
    """Return the prompt with other options; sections that list them are rewritten as one edit."""
    text = choice_block(labels, choices, prompt.choice_format)
    sections = tuple(
        _rewritten_section(s, text) if s.kind == "choices" else s for s in prompt.sections
    )
    return replace(
        prompt, sections=sections, choices=tuple(choices), labels=tuple(labels), target=target
    )


def _rewritten_section(section: Section, text: str) -> Section:
    grown = sum(e.new_end - e.new_start - e.end + e.start for e in section.edits)
    whole = Edit(start=0, end=len(section.text) - grown, new_start=0, new_end=len(text))
    return replace(section, text=text, edits=(whole,) if text != section.text else section.edits)


def _joined(sections: Sequence[Section]) -> str:
    said = [s for s in sections if s.kind != "system"]
    texts = [f"\n\n{s.text}" if s.opens else s.text for s in said]
    return "".join(texts)[2 if said and said[0].opens else 0 :]


def plain(prompt: Prompt) -> str:
    """Return the prompt as one text: system message, demonstrations with answers, the item."""
    parts = [s.text + "\n\n" for s in prompt.sections if s.kind == "system"]
    for demonstration in prompt.demonstrations:
        parts.append(
            f"{_joined(demonstration.sections)}{prompt.delimiter}{demonstration.answer}\n\n"
        )
    parts.append(_joined(prompt.sections))
    return "".join(parts)


def messages(prompt: Prompt) -> tuple[Message, ...]:
    """Return the prompt as chat messages: system turn, two turns for each demonstration, item.

    A section of the kind `reply` is an earlier turn of the assistant. Sections that open a turn
    begin one, also a system turn in the middle. Tools are not among the messages.
    """
    system = "".join(s.text for s in prompt.sections if s.kind == "system" and not s.opens)
    out: list[Message] = [("system", system)] if system else []
    for demonstration in prompt.demonstrations:
        out += [("user", _joined(demonstration.sections)), ("assistant", demonstration.answer)]
    turns: list[Message] = []
    for section in prompt.sections:
        role, before = _ROLES.get(section.kind, "user"), turns[-1][0] if turns else ""
        if section.kind == "tool" or (role == "system" and not section.opens):
            continue
        if role == "user" and before == "user" and not section.opens:
            turns[-1] = "user", turns[-1][1] + section.text
            continue
        if role == "assistant" and before != "user" and not section.opens:
            turns.append(("user", ""))
        turns.append((role, _turn_text(section)))
    if not turns or turns[-1][0] == "assistant":
        turns.append(("user", ""))
    return (*out, *turns)


def _turn_text(section: Section) -> str:
    if section.kind == "result":
        return result_text(section.name.partition(":")[2], section.text)
    return section.text.strip() if section.kind == "reply" else section.text


_ROLES: dict[SectionKind, str] = {
    "system": "system", "reply": "assistant", "call": "call", "result": "result",
}  # fmt: skip


def tools(prompt: Prompt) -> tuple[str, ...]:
    """Return the offered tools, each as one line of JSON."""
    return tuple(s.text for s in prompt.sections if s.kind == "tool" and s.text)


def continuations(prompt: Prompt) -> tuple[str, ...]:
    """Return the texts that may follow the prompt: each option after the delimiter."""
    answers = prompt.choices if prompt.answer_as == "text" else prompt.labels
    return tuple(prompt.delimiter + answer for answer in answers)


def request(variant: Variant, model: Model, way: Way, repeat: int) -> Request:
    """Return the request for one variant. Its key hashes everything that the model would see."""
    prompt, sampling = variant.prompt, _recipe_sampling(variant.recipe, way.sampling)
    turns: tuple[Message, ...] = ()
    context = ""
    options: tuple[str, ...] = ()
    if way.asking == "chat":
        turns = messages(prompt)
    else:
        context = plain(prompt)
        if way.asking == "score":
            options = continuations(prompt)
    decoding = None if way.asking == "score" else sampling.identity()
    answers = None
    if way.constrained:
        answers = tuple(prompt.labels) if way.answers is None else way.answers
    seen = [turns, context, options, model.id, decoding, repeat]
    seen += [] if answers is None else [answers]
    offered = tools(prompt)
    key = digest("request", *seen, *([{"tools": offered}] if offered else []))
    return Request(
        key=key,
        variant=variant,
        model=model,
        sampling=sampling,
        repeat=repeat,
        messages=turns,
        context=context,
        continuations=options,
        answers=answers,
        tools=offered,
    )


def _recipe_sampling(recipe: Recipe, usual: Sampling) -> Sampling:
    """Return the panel's sampling settings, overridden by the recipe's.

    The longer token limit counts.
    """
    if not recipe.sampling:
        return usual
    longest = max(usual.max_tokens, recipe.sampling.get("max_tokens", 0))
    return replace(usual, **{**recipe.sampling, "max_tokens": longest})
