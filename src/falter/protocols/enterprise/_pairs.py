"""Pairs of replies: each with the reply to the clean prompt that it is compared with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from falter.core.ids import digest
from falter.core.records import Prompt, Recipe
from falter.protocols._protocol import PartResult, ScoredCell
from falter.protocols._rubrics import VERSION
from falter.protocols.enterprise._parts import (
    FORMAT,
    REFERENCE_FORM,
    category_of,
    languages_of,
    name_of,
)
from falter.scorers import answer_parts

__all__ = ["Pair", "Reply", "pairs_in", "replies_to"]

_MATERIAL = ("input", "document")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote; `parts` are None where the reply is not in the form asked for."""

    text: str
    parts: Mapping[str, str] | None

    @property
    def shown(self) -> str:
        """The reply without its markup where it could be read, else as it is."""
        if self.parts is None:
            return self.text.strip()
        return "\n".join(f"{name}: {text}" for name, text in self.parts.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two replies to one item; None where nothing arrived. `material` is what both are about.

    `run` counts the repeats from 0. `target` is the item's gold under the recipe, `sources` the
    documents that answer.
    """

    model: str
    task: str
    item: str
    recipe: Recipe
    category: str
    run: int
    reference: Reply | None
    candidate: Reply | None
    material: str
    target: str | None
    reference_target: str | None
    sources: tuple[str, ...]
    choices: tuple[str, ...]

    @property
    def missing(self) -> bool:
        """Whether a reply never arrived."""
        return self.reference is None or self.candidate is None

    @property
    def unread(self) -> bool:
        """Whether one reply can be read and the other cannot; of formats, the new one cannot."""
        if self.reference is None or self.candidate is None:
            return False
        if self.category == FORMAT:
            return self.candidate.parts is None
        return (self.reference.parts is None) != (self.candidate.parts is None)

    @property
    def languages(self) -> tuple[str, str]:
        """The language of the input, and of the answer."""
        return languages_of(self.recipe)

    @property
    def crosses(self) -> bool:
        """Whether the two replies are in different languages."""
        return self.languages[1] != "en"

    @property
    def same(self) -> bool:
        """Whether the replies are the same to the letter, so that nobody need compare them."""
        assert self.reference is not None and self.candidate is not None
        if self.reference.text.strip() == self.candidate.text.strip():
            return True
        parts = self.reference.parts
        return parts is not None and parts == self.candidate.parts

    @property
    def key(self) -> str:
        """What a judge sees of the pair, as a key."""
        assert self.reference is not None and self.candidate is not None
        return digest("replies", VERSION, self.reference.shown, self.candidate.shown)

    def rating_key(self, measure: str, reply: Reply) -> str:
        """What a judge of one measure sees of one of the replies, as a key."""
        return digest("reply", VERSION, measure, self.material, reply.shown)


def pairs_in(results: Sequence[PartResult]) -> tuple[Pair, ...]:
    """Every pair of the parts whose prompt really changed, or was asked again."""
    return tuple(pair for result in results for pair in _pairs(result))


def replies_to(result: PartResult, recipe: str) -> Iterator[tuple[str, str, Reply | None]]:
    """The model, the task and every reply under the recipe with this label."""
    for answered in result.cells():
        variant = answered.cell.variant
        if variant.recipe.label == recipe and variant.status in ("changed", "baseline"):
            yield answered.panel.model.label, answered.panel.task, _reply(answered)


def _pairs(result: PartResult) -> Iterator[Pair]:
    places: dict[tuple[str, str, str], dict[tuple[str, int], ScoredCell]] = {}
    repeats = result.run.repeats
    for answered in result.cells():
        variant = answered.cell.variant
        if variant.draw:
            continue
        place = answered.panel.model.label, name_of(answered.panel.task), variant.item.key
        run = answered.cell.repeat - variant.recipe.repeat * repeats
        places.setdefault(place, {})[variant.recipe.label, run] = answered
    clean = result.run.recipes[0].label
    for (model, task, item), cells in places.items():
        for (label, run), answered in cells.items():
            variant = answered.cell.variant
            category = category_of(variant.recipe)
            changed = variant.status == "changed" or variant.recipe.repeat
            if category is None or label == REFERENCE_FORM or not changed:
                continue
            base = cells.get((REFERENCE_FORM if category == FORMAT else clean, run))
            origin = cells.get((clean, run)) or base
            if base is None or origin is None:
                continue
            prompt, original = variant.prompt, origin.cell.variant.prompt
            schema = prompt.schema
            yield Pair(
                model=model,
                task=task,
                item=item,
                recipe=variant.recipe,
                category=category,
                run=run,
                reference=_reply(base),
                candidate=_reply(answered),
                material=_material(original),
                target=None if prompt.target is None else str(prompt.target),
                reference_target=None if original.target is None else str(original.target),
                sources=_sources(variant.item.fields.get("sources", "")),
                choices=() if schema is None else tuple(k.name for k in schema.keys if k.choices),
            )


def _material(prompt: Prompt) -> str:
    """What the user gave: the case, the chat, the question with its documents."""
    texts = [s.text.strip() for s in prompt.sections if s.kind in _MATERIAL and s.text.strip()]
    return "\n\n".join(texts)


def _sources(text: str) -> tuple[str, ...]:
    try:
        value = json.loads(text)
    except ValueError:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _reply(answered: ScoredCell) -> Reply | None:
    cell = answered.cell
    if cell.response is None or cell.response.failure is not None or cell.response.text is None:
        return None
    text, schema = cell.response.text, cell.variant.prompt.schema
    form = cell.variant.recipe.output_format
    if schema is None:
        return Reply(text, {"reply": text.strip()} if form is None and text.strip() else None)
    return Reply(text, answer_parts(text, form or schema.form, schema))
