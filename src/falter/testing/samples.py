"""Sample prompts for the perturbation property suite. All text written for falter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import yaml

from falter.records.chats import chat_sections
from falter.records.types import Demonstration, Prompt, Section, SectionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A prompt, and the strings in its input that no perturbation may touch."""

    name: str
    prompt: Prompt
    untouchable: tuple[str, ...] = field(default=())


def _sample(row: dict[str, Any]) -> Sample:
    untouchable = tuple(row.get("untouchable", ()))
    return Sample(name=row["name"], prompt=_prompt(row), untouchable=untouchable)


def _prompt(row: dict[str, Any]) -> Prompt:
    """Return the prompt of a row: a conversation if it has `turns`, otherwise sections."""
    if "turns" in row:
        documents = tuple(Section(**section) for section in row.get("documents", ()))
        sections = chat_sections(row["turns"], row.get("tools", ()), documents)
        return Prompt(sections=sections, target=row.get("target"), contrast=row.get("wrong_answer"))
    shots = (
        Demonstration(sections=_sections(parts, row), answer=answer)
        for parts, answer in row.get("shots", ())
    )
    return Prompt(
        sections=_sections(row["sections"], row),
        demonstrations=tuple(shots),
        choices=tuple(row.get("choices", ())),
        labels=tuple(row.get("labels", ())),
        answer_as=row.get("answer_as", "text"),
        target=row.get("target"),
    )


def _sections(parts: Sequence[tuple[SectionKind, str]], row: dict[str, Any]) -> tuple[Section, ...]:
    """Return sections of these kinds and texts.

    A `text` of the row is put in place of an empty input.
    """
    if "text" not in row:
        named = ((f"{kind}#{n}", kind, text) for n, (kind, text) in enumerate(parts))
    else:
        own = row["text"] * row.get("times", 1)
        named = ((k, k, own if k == "input" and not text else text) for k, text in parts)
    return tuple(Section(name=name, kind=kind, text=text) for name, kind, text in named)


_ROWS = yaml.safe_load(
    resources.files("falter.testing").joinpath("data", "samples.yaml").read_text("utf-8")
)
SAMPLES: tuple[Sample, ...] = tuple(map(_sample, _ROWS["samples"]))
CHATS = tuple(sample for sample in SAMPLES if sample.name.startswith("chat: "))
"""Conversations, which every perturbation must leave intact: turns, links, tools."""
