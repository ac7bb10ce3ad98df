"""Perturbations of format: another form of the answer, or another layout of the prompt's fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any, Literal, NamedTuple

from falter.perturbations import tools  # noqa: F401  (it registers)
from falter.perturbations.additions import (
    answer_phrase,
    cue_at,
    has_format,
    has_rules,
    instead_of_format,
    with_instruction,
)
from falter.perturbations.base import prompt_perturbation
from falter.perturbations.options import is_listed, relisted, shows_labels
from falter.perturbations.vocabulary import table
from falter.records.answers import AnswerSchema
from falter.records.rng import Rng
from falter.records.types import Demonstration, Prompt, Section
from falter.text.protection import blocked
from falter.text.spans import Replacement, added, overlaps, replace_spans

# By form: the rule that asks for it and a template of an answer in it. For answers with several
# fields, also the start of the rule and a sketch of each field.
_FORMATS: dict[str, dict[str, Any]] = table("formats.json")


def _with_format_rule(form: str, prompt: Prompt, rng: Rng) -> Prompt:
    """Return the prompt with a rule for the form of the answer; demonstrations follow the rule.

    The new rule replaces rules of form, and other rules stay. If an old rule does both, the new
    rule is added after it. For an answer with several fields, the rule names and describes each
    field.
    """
    if prompt.schema is not None:
        rule = _parts_rule(form, prompt.schema)
        if has_rules(prompt.sections):
            return prompt.with_sections(instead_of_format(prompt.sections, rule, keeping=False))
        return prompt.with_sections(with_instruction(prompt.sections, _ADDED_SECTION, rule))
    what, shape = answer_phrase(prompt), _formatted_answer(form, "...")

    def ruled(sections: Sequence[Section]) -> tuple[Section, ...]:
        rule = _FORMATS[form]["rule"]
        if has_format(sections):
            return instead_of_format(sections, rule.format(what=what, shape=shape, anyway=""))
        anyway = ", whatever form was asked for before"
        text = rule.format(what=what, shape=shape, anyway=anyway)
        return with_instruction(sections, _ADDED_SECTION, text)

    demonstrations = tuple(
        Demonstration(sections=ruled(d.sections), answer=_formatted_answer(form, d.answer))
        for d in prompt.demonstrations
    )
    return replace(prompt, sections=ruled(prompt.sections), demonstrations=demonstrations)


_ADDED_SECTION = "output_format_added"


def _formatted_answer(form: str, answer: str) -> str:
    """Return the answer written in a form."""
    quoted, escaped = json.dumps(answer, ensure_ascii=False), escape(answer, quote=False)
    written: str = _FORMATS[form]["answer"]
    return written.format(answer=answer, quoted=quoted, escaped=escaped)


def _parts_rule(form: str, schema: AnswerSchema) -> str:
    """Return the rule that asks for the fields of an answer in a form, with a sketch of it."""
    if form == "text" and schema.plain:
        return schema.plain.strip()
    words, keys = _FORMATS[form]["parts"], schema.keys
    single = "{name}: ..." if form == "text" and schema.lines else ""
    sketches = (
        (single or words["many" if key.many else "one"]).format(
            name=key.name, quoted=json.dumps(key.name, ensure_ascii=False),
        )
        for key in keys
    )  # fmt: skip
    sketch = words["around"].format(parts=words["between"].join(sketches))
    listed = "\n".join(
        f"- {key.name}: {key.about}" if key.about else f"- {key.name}" for key in keys
    )
    without = words["without_value"] if any(key.optional for key in keys) else ""
    return f"{words['lead']}:\n{listed}\nIt looks like this:\n{sketch}{without}"


for _form in _FORMATS:
    prompt_perturbation(f"format_{_form}")(partial(_with_format_rule, _form))

# The same fields in another layout: labels, separators, the list of options

Layout = Literal["key_value", "markdown", "plain", "xml"]
_LAYOUTS: tuple[Layout, ...] = ("plain", "markdown", "xml", "key_value")
_SEPARATORS = (": ", " - ", ":\n", "\t", " :: ", " > ", ":   ")
_CASINGS: tuple[Callable[[str], str], ...] = (str, str.upper, str.lower, str.title)
_LIST_LINES = ("{label}) {text}\n", "({label}) {text}\n", "[{label}] {text}\n", "{label}: {text}\n",
          "- {label}. {text}\n", "{label}.\t{text}\n")  # fmt: skip
# Before a number or a formula, these separators would read as a part of it.
_SIGNS = (" - ", " > ")
# "3 + 4", "x = 1", "(2"; not "xylophone", "Words".
_FORMULA = re.compile(r"\s*(?:[\d+=<>(\[√π−–-]|[a-z]\s*[+=<>*/^(−–-])")
# The label of a field, at the start of a line. "Question: ", "First, think.⏎Final answer:⏎"; not
# "question: ".
_LABEL = re.compile(r"(?:\A|(?<=\n))([A-Z][A-Za-z]*(?: [A-Za-z\d]+){0,2})(:[ \t]?|:\n)\Z")


class _Place(NamedTuple):
    """A label in the template: its section, its span with the separator, and its words."""

    section: int
    start: int
    end: int
    label: str
    field: int | None  # the section that it labels; None for the answer cue


def _label_places(prompt: Prompt) -> list[_Place]:
    """Return the labels right before a field, and the answer cue, unless these are blocked."""
    sections = prompt.sections
    places: list[_Place] = []
    for at, section in enumerate(sections[:-1]):
        field = sections[at + 1]
        if section.kind in ("instruction", "added") and field.kind in ("input", "document"):
            places += _label_place(section, at, at + 1)
    cue = cue_at(sections)
    if cue is not None:
        places += _label_place(sections[cue], cue, None)
    return places


def _label_place(section: Section, at: int, field: int | None) -> list[_Place]:
    text = section.text.rstrip(" \n") if field is None else section.text
    match = _LABEL.search(text)
    if match is None or overlaps(blocked(section), *match.span()):
        return []
    return [_Place(at, match.start(), match.end(), match[1], field)]


def _can_format(prompt: Prompt, layout: str) -> bool:
    if prompt.demonstrations:
        return False
    return any(place.field is not None for place in _label_places(prompt)) or _can_relist(prompt)


def _can_relist(prompt: Prompt) -> bool:
    return is_listed(prompt) and shows_labels(prompt.choice_format)


@prompt_perturbation("input_format", eligible=_can_format)
def input_format(prompt: Prompt, rng: Rng, layout: str) -> Prompt:
    """Lays the same fields out in another way: plain text, Markdown, tags or key and value.

    Separators, the case of labels and the list of options are drawn from a grammar, a point of it
    for each item and draw. What is put in stays as it is.
    """
    places = _label_places(prompt)
    chosen = _LAYOUTS[rng.below(len(_LAYOUTS))] if layout == "draw" else layout
    if chosen == "xml" and not any(place.field is not None for place in places):
        chosen = "plain"
    cased, separator = rng.choice(_CASINGS), rng.choice(_SEPARATORS)
    fields = (prompt.sections[place.field].text for place in places if place.field is not None)
    if any(map(_FORMULA.match, fields)):
        chosen = "plain" if chosen == "key_value" else chosen
        separator = ": " if separator in _SIGNS else separator
    heading, line = rng.below(2), rng.choice(_LIST_LINES)
    changes: dict[int, list[Replacement]] = {}
    closing: dict[int, Section] = {}
    for place in places:
        if chosen == "xml" and place.field is not None:
            tag = place.label.lower().replace(" ", "_")
            label = f"<{tag}>\n"
            closing[place.field] = added(f"{tag}_end", f"\n</{tag}>")
        else:
            label = _label_text(cased(place.label), chosen, separator, heading, place.field is None)
        changes.setdefault(place.section, []).append((place.start, place.end, label))
    if _can_relist(prompt):
        choices, labels = prompt.choices, prompt.labels
        new = line if line != prompt.choice_format else _LIST_LINES[0]
        prompt = relisted(prompt, choices, labels, prompt.target, choice_format=new)
    out: list[Section] = []
    for at, section in enumerate(prompt.sections):
        out.append(replace_spans(section, changes.get(at, ())))
        out += [closing[at]] if at in closing else []
    return prompt.with_sections(tuple(out))


def _label_text(label: str, layout: str, separator: str, heading: int, cue: bool) -> str:
    """Return the label with its separator, as the layout writes it."""
    if cue and (layout == "xml" or separator == "\t"):
        return f"{label}:"
    if layout == "markdown":
        return f"## {label}\n" if heading and not cue else f"**{label}:**{'' if cue else ' '}"
    if layout == "key_value":
        return f"{label} =" if cue else f"{label} = "
    return f"{label}{separator}".rstrip() if cue else f"{label}{separator}"
