"""Which perturbations fit which prompts: the traits of a prompt, and what to ask of each."""

from __future__ import annotations

import re
from typing import NamedTuple

from falter.core.records import Prompt
from falter.perturbations.additions import prose_at
from falter.perturbations.position import placed_documents
from falter.perturbations.template_parts import template_units
from falter.perturbations.vocabulary import table
from falter.text import sentences


class Advice(NamedTuple):
    """What to run on prompts with a trait, and why."""

    trait: str
    why: str
    recipes: tuple[str, ...]


_BUNDLED = table("advice.json")
RECIPE_SETS: dict[str, tuple[str, ...]] = {
    name: tuple(recipes.split()) for name, recipes in _BUNDLED["recipe_sets"].items()
}
"""Recipes under one name, which stands for them where it stands alone among the recipes."""
DEFAULT_RECIPES = RECIPE_SETS["brittlebench"]
ADVICE = tuple(
    Advice(entry["trait"], entry["why"], tuple(entry["recipes"].split()))
    for entry in _BUNDLED["advice"]
)
"""In the order in which they are proposed."""

NOISE_FLOOR = "identity"
"""What every set of recipes needs beside it: the same prompt again."""

_JSON = re.compile(r"\bJSON\b")
_TOOL = re.compile(r'"(?:parameters|input_schema|inputSchema)"\s*:\s*\{')
_EXPRESSION = re.compile(r"\d\s?[-+*/×÷−^=]\s?\(?[-−]?\d|\$[^$\n]+\$")
_FIELD = re.compile(r"[A-Z][a-z]+(?: [a-z]+)?:\s*\Z")


def traits_of(prompt: Prompt) -> frozenset[str]:
    """What a prompt has, by the names of the advice."""
    sections, at = prompt.sections, prose_at(prompt)
    listed = len(prompt.choices) > 1 and any(s.kind == "choices" for s in sections)
    text = "".join(s.text for s in sections)
    rules = [s.text for s in sections if s.kind == "output_format" and s.text.strip()]
    units = template_units(sections)
    inputs = [s.text for s in sections if s.kind in ("input", "document")]
    documents = placed_documents(sections) is not None
    has = {
        "prose": at is not None,
        "options": listed,
        "labels": listed and prompt.answer_as == "label",
        "fields": any(_FIELD.search(s.text) for s in sections if s.kind == "instruction"),
        "instruction": len(units) > 1 and units[0].role == "instruction",
        "sentences": at is not None and len(sentences(sections[at].text)) > 1,
        "documents": documents or any(s.kind == "document" for s in sections),
        "examples": len(prompt.demonstrations) > 0,
        "rules": bool(rules),
        "json": prompt.schema is not None or any(map(_JSON.search, rules)),
        "code": prompt.program is not None,
        "expressions": prompt.program is None and any(map(_EXPRESSION.search, inputs)),
        "tools": _TOOL.search(text) is not None,
    }
    return frozenset(trait for trait, there in has.items() if there)
