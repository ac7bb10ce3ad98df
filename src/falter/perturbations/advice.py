"""Which perturbations fit which prompts: the traits of a prompt, and what to ask of each."""

from __future__ import annotations

import re
from typing import NamedTuple

from falter.core.records import Prompt
from falter.perturbations.additions import prose_at
from falter.perturbations.position import placed_documents
from falter.perturbations.template_parts import template_units
from falter.text import sentences


class Advice(NamedTuple):
    """What to run on prompts with a trait, and why."""

    trait: str
    why: str
    recipes: tuple[str, ...]


ADVICE = (
    Advice(
        "prose",
        "The input is written by people: they mistype, forget capitals, and say it in other words.",
        ("human_typos", "casing", "tone_rules", "paraphrase_rules"),
    ),
    Advice(
        "options",
        "The options are listed: a model may go by their place instead of by what they say.",
        ("shuffle_choice_order", "shuffle_choice_texts"),
    ),
    Advice(
        "labels",
        "The answer is a label: another set of labels asks the same.",
        ("relabel_choices",),
    ),
    Advice(
        "fields",
        "The template names its fields: how these names are set is nobody's question.",
        ("input_format",),
    ),
    Advice(
        "instruction",
        "The instruction has lines of its own: it may as well be the system message.",
        ("role_placement",),
    ),
    Advice(
        "sentences",
        "The input has several sentences: they may come turn by turn, or with others among them.",
        ("sharded_turns", "distractor_context"),
    ),
    Advice(
        "documents",
        "Documents stand before the question: their order and place mean nothing.",
        ("reorder_documents", "move_context"),
    ),
    Advice(
        "examples",
        "Solved examples are shown: their order and the marks between them mean nothing.",
        ("demonstration_order", "demonstration_delimiter"),
    ),
    Advice(
        "rules",
        "The form of the answer has rules of its own: they may stand elsewhere.",
        ("move_output_instructions",),
    ),
    Advice(
        "json",
        "The answer is to be JSON: whether the content survives another form is worth knowing.",
        ("format_yaml", "format_xml", "format_text"),
    ),
    Advice(
        "code",
        "The input is code that is run: names, shape and annotations may change with its tests.",
        ("camel_case", "to_class", "remove_type_hints"),
    ),
    Advice(
        "expressions",
        "The input has sums: another way to write one has the same value.",
        ("symmetric_addition", "symmetric_multiplication", "latexify"),
    ),
    Advice(
        "tools",
        "The prompt describes tools as JSON: their order and the layout mean nothing.",
        ("tool_schema",),
    ),
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


# Sets of recipes under one name, so that nobody has to choose from seventy.


RECIPE_SETS: dict[str, tuple[str, ...]] = {
    "brittlebench": (
        "typos", "drop_stop_words", "punctuation_spaces", "space_sequences", "word_split",
        "word_merge", "persona", "emotion", "pad_quotes", "pad_spaces", "pad_newlines", "identity",
    ),
    "context": (
        "reorder_documents", "move_context", "demonstration_order", "demonstration_delimiter",
        "distractor_context", "role_placement", "sharded_turns", "ignore_above", "identity",
    ),
    "everyday": (
        "human_typos", "autocorrect", "casing", "punctuation", "whitespace", "voice", "learner",
        "tone_rules", "paraphrase_rules", "identity",
    ),
    "format": (
        "input_format", "format_json", "format_yaml", "format_xml", "format_markdown",
        "format_html", "format_text", "identity",
    ),
    "quick": (
        "human_typos", "casing", "input_format", "shuffle_choice_order", "pad_newlines", "identity",
    ),
}  # fmt: skip
"""What each name stands for, where it stands alone among the recipes."""

DEFAULT_RECIPES = RECIPE_SETS["brittlebench"]
