"""Format: the answer is required in another form and read back from it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Literal, NamedTuple

from falter.core.answers import AnswerKey, AnswerSchema
from falter.core.interfaces import Parameter
from falter.core.records import Demonstration, Prompt, Section
from falter.core.rng import Rng
from falter.perturbations import (  # noqa: F401  (they register)
    tools,
)
from falter.perturbations.additions import (
    added,
    cue_at,
    has_format,
    has_rules,
    instead_of_format,
    what_to_give,
    with_instruction,
)
from falter.perturbations.base import PromptPerturbation, prompt_perturbation
from falter.perturbations.options import is_listed, relisted, shows_labels
from falter.text import Replacement, blocked, overlaps, replace_spans

# Rules for the form of an answer with several parts: what each is called, and a sketch.


Sketch = Callable[[AnswerSchema], str]


def parts_rule(form: str, schema: AnswerSchema) -> str:
    """The rule that asks for the parts of an answer in a form, with a sketch of it."""
    lead, empty, sketch = _FORMS[form]
    if form == "text" and schema.plain:
        return schema.plain.strip()
    listed = "\n".join(f"- {k.name}: {k.about}" if k.about else f"- {k.name}" for k in schema.keys)
    without = f" {empty}" if any(key.optional for key in schema.keys) else ""
    return f"{lead}:\n{listed}\nIt looks like this:\n{sketch(schema)}{without}"


def _sample(key: AnswerKey) -> str | list[str]:
    return ["...", "..."] if key.many else "..."


def _json(schema: AnswerSchema) -> str:
    return json.dumps({key.name: _sample(key) for key in schema.keys}, ensure_ascii=False)


def _yaml(schema: AnswerSchema) -> str:
    return "\n".join(
        f"{key.name}:\n  - ...\n  - ..." if key.many else f"{key.name}: ..." for key in schema.keys
    )


def _xml(schema: AnswerSchema) -> str:
    inner = (
        f"<{key.name}>" + ("<item>...</item>" * 2 if key.many else "...") + f"</{key.name}>"
        for key in schema.keys
    )
    return f"<answer>{''.join(inner)}</answer>"


def _markdown(schema: AnswerSchema) -> str:
    return "\n".join(
        f"## {key.name}\n" + ("- ...\n- ..." if key.many else "...") for key in schema.keys
    )


def _html(schema: AnswerSchema) -> str:
    return "".join(
        f'<ul id="{key.name}"><li>...</li><li>...</li></ul>'
        if key.many
        else f'<p id="{key.name}">...</p>'
        for key in schema.keys
    )


def _text(schema: AnswerSchema) -> str:
    if schema.lines:
        return "\n".join(f"{key.name}: ..." for key in schema.keys)
    return "\n".join(f"{key.heading or key.name}\n..." for key in schema.keys)


_FORMS: Mapping[str, tuple[str, str, Sketch]] = {
    "json": (
        "Reply with one JSON object and nothing else. Its keys are",
        "\nA key without a value is null.",
        _json,
    ),
    "yaml": (
        "Reply with YAML and nothing else: one mapping. Its keys are",
        "\nA key without a value is null.",
        _yaml,
    ),
    "xml": (
        "Reply with XML and nothing else: one element answer. The elements inside it are",
        "\nAn element without a value is left empty.",
        _xml,
    ),
    "markdown": (
        "Reply in Markdown and with nothing else. The headings of the second level are",
        "\nA heading without a value has nothing below it.",
        _markdown,
    ),
    "html": (
        "Reply with HTML and nothing else. The ids of its elements are",
        "\nAn element without a value is left empty.",
        _html,
    ),
    "text": (
        "Reply in plain text and with nothing else, without any markup. Its parts are",
        "\nA part without a value is left empty.",
        _text,
    ),
}


# The same fields in another layout: labels, separators, the list of options.


Layout = Literal["key_value", "markdown", "plain", "xml"]
_LAYOUTS: tuple[Layout, ...] = ("plain", "markdown", "xml", "key_value")
_LAYOUT = Parameter(
    name="layout",
    type=str,
    default="draw",
    help="plain: label, separator, field; markdown: bold labels or headings; xml: tags; key_value: "
    "label = field; draw: one of them for each item and draw",
    options=("draw", *_LAYOUTS),
)
_SEPARATORS = (": ", " - ", ":\n", "\t", " :: ", " > ", ":   ")
_CASINGS: tuple[Callable[[str], str], ...] = (str, str.upper, str.lower, str.title)
_LISTS = ("{label}) {text}\n", "({label}) {text}\n", "[{label}] {text}\n", "{label}: {text}\n",
          "- {label}. {text}\n", "{label}.\t{text}\n")  # fmt: skip
# Before a number or a formula these would read as a part of it.
_SIGNS = (" - ", " > ")
_FORMULA = re.compile(r"\s*(?:[\d+=<>(\[√π−–-]|[a-z]\s*[+=<>*/^(−–-])")
_LABEL = re.compile(r"(?:\A|(?<=\n))([A-Z][A-Za-z]*(?: [A-Za-z\d]+){0,2})(:[ \t]?|:\n)\Z")


class _Place(NamedTuple):
    """A label in the template: its section, its span with the separator, and its words."""

    section: int
    start: int
    end: int
    label: str
    field: int | None  # the section that it labels; None for the answer cue


def _places(prompt: Prompt) -> list[_Place]:
    """The labels right before a field, and the answer cue, where nothing closes them."""
    sections = prompt.sections
    places: list[_Place] = []
    for at, section in enumerate(sections[:-1]):
        field = sections[at + 1]
        if section.kind in ("instruction", "added") and field.kind in ("input", "document"):
            places += _place(section, at, at + 1)
    cue = cue_at(sections)
    if cue is not None:
        places += _place(sections[cue], cue, None)
    return places


def _place(section: Section, at: int, field: int | None) -> list[_Place]:
    text = section.text.rstrip(" \n") if field is None else section.text
    match = _LABEL.search(text)
    if match is None or overlaps(blocked(section), *match.span()):
        return []
    return [_Place(at, match.start(), match.end(), match[1], field)]


def _can_format(prompt: Prompt, layout: str) -> bool:
    if prompt.demonstrations:
        return False
    return any(place.field is not None for place in _places(prompt)) or _relists(prompt)


def _relists(prompt: Prompt) -> bool:
    return is_listed(prompt) and shows_labels(prompt.choice_format)


@prompt_perturbation(
    "input_format",
    title="another layout of the question",
    family="format",
    group="input format",
    scope=("instruction", "choices", "cue"),
    parameters=(_LAYOUT,),
    invariants=("target", "choices", "target text", "negations", "code"),
    eligible=_can_format,
)
def input_format(prompt: Prompt, rng: Rng, layout: str) -> Prompt:
    """Lays the same fields out in another way: plain text, Markdown, tags or key and value.

    Separators, the case of labels and the list of options are drawn from a grammar, a point of it
    for each item and draw. What is put in stays as it is.
    """
    places = _places(prompt)
    chosen = _LAYOUTS[rng.below(len(_LAYOUTS))] if layout == "draw" else layout
    if chosen == "xml" and not any(place.field is not None for place in places):
        chosen = "plain"
    cased, separator = rng.choice(_CASINGS), rng.choice(_SEPARATORS)
    fields = (prompt.sections[place.field].text for place in places if place.field is not None)
    if any(map(_FORMULA.match, fields)):
        chosen = "plain" if chosen == "key_value" else chosen
        separator = ": " if separator in _SIGNS else separator
    heading, line = rng.below(2), rng.choice(_LISTS)
    changes: dict[int, list[Replacement]] = {}
    closing: dict[int, Section] = {}
    for place in places:
        if chosen == "xml" and place.field is not None:
            tag = place.label.lower().replace(" ", "_")
            label = f"<{tag}>\n"
            closing[place.field] = added(f"{tag}_end", f"\n</{tag}>")
        else:
            label = _labelled(cased(place.label), chosen, separator, heading, place.field is None)
        changes.setdefault(place.section, []).append((place.start, place.end, label))
    if _relists(prompt):
        choices, labels = prompt.choices, prompt.labels
        new = line if line != prompt.choice_format else _LISTS[0]
        prompt = relisted(prompt, choices, labels, prompt.target, choice_format=new)
    return prompt.with_sections(_laid_out(prompt.sections, changes, closing))


def _labelled(label: str, layout: str, separator: str, heading: int, cue: bool) -> str:
    if cue and (layout == "xml" or separator == "\t"):
        return f"{label}:"
    if layout == "markdown":
        return f"## {label}\n" if heading and not cue else f"**{label}:**{'' if cue else ' '}"
    if layout == "key_value":
        return f"{label} =" if cue else f"{label} = "
    return f"{label}{separator}".rstrip() if cue else f"{label}{separator}"


def _laid_out(
    sections: Sequence[Section],
    changes: dict[int, list[Replacement]],
    closing: dict[int, Section],
) -> tuple[Section, ...]:
    out: list[Section] = []
    for at, section in enumerate(sections):
        out.append(replace_spans(section, changes[at]) if at in changes else section)
        if at in closing:
            out.append(closing[at])
    return tuple(out)


_FAMILY = _GROUP = "format"
_TOKENS = 192
_Write = Callable[[str], str]


def _format(
    form: str, title: str
) -> Callable[[Callable[[Prompt, Rng], Prompt]], PromptPerturbation]:
    return prompt_perturbation(
        f"format_{form}",
        title=f"an answer in {title}",
        family=_FAMILY,
        group=_GROUP,
        version=2,
        scope=("output_format",),
        invariants=("target", "choices", "target text", "choice set"),
        reply_tokens=_TOKENS,
        output_format=form,
    )


def _asking(prompt: Prompt, form: str, rule: str, write: _Write) -> Prompt:
    """The prompt with a rule for the form of the answer; the demonstrations follow it.

    It replaces rules of form. What else the prompt asks for stays; where one rule does both, the
    new one is added behind it.

    An answer with several parts has a rule that names them.
    """
    if prompt.schema is not None:
        return prompt.with_sections(_asking_parts(prompt.sections, parts_rule(form, prompt.schema)))
    what, shape = what_to_give(prompt), write("...")

    def ruled(sections: Sequence[Section]) -> tuple[Section, ...]:
        if has_format(sections):
            return instead_of_format(sections, rule.format(what=what, shape=shape, anyway=""))
        anyway = ", whatever form was asked for before"
        text = rule.format(what=what, shape=shape, anyway=anyway)
        return with_instruction(sections, "output_format_added", text)

    demonstrations = tuple(
        Demonstration(sections=ruled(d.sections), answer=write(d.answer))
        for d in prompt.demonstrations
    )
    return replace(prompt, sections=ruled(prompt.sections), demonstrations=demonstrations)


def _asking_parts(sections: Sequence[Section], rule: str) -> tuple[Section, ...]:
    """The rule says how long each part is, so that nothing of the old one is left to say."""
    if has_rules(sections):
        return instead_of_format(sections, rule, keeping=False)
    return with_instruction(sections, "output_format_added", rule)


@_format("json", "JSON")
def format_json(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks for a JSON object with the single key `answer`."""
    return _asking(
        prompt,
        "json",
        "Reply with one JSON object and nothing else{anyway}. It has the single key "
        '"answer", whose value is {what}, as in {shape}',
        lambda answer: json.dumps({"answer": answer}, ensure_ascii=False),
    )


@_format("yaml", "YAML")
def format_yaml(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks for a YAML mapping with the single key `answer`."""
    return _asking(
        prompt,
        "yaml",
        "Reply with YAML and nothing else{anyway}: a mapping with the single key "
        '"answer", whose value is {what}, as in\n{shape}',
        lambda answer: f"answer: {json.dumps(answer, ensure_ascii=False)}",
    )


@_format("xml", "XML")
def format_xml(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks for one XML element named `answer`."""
    return _asking(
        prompt,
        "xml",
        "Reply with XML and nothing else{anyway}: one element with the name answer that "
        "holds {what}, as in {shape}",
        lambda answer: f"<answer>{escape(answer, quote=False)}</answer>",
    )


@_format("markdown", "Markdown")
def format_markdown(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks for Markdown: a heading `Answer` with the answer below it."""
    return _asking(
        prompt,
        "markdown",
        "Reply in Markdown and with nothing else{anyway}: a heading of the second level, "
        '"Answer", and below it {what}, as in\n{shape}',
        "## Answer\n{}".format,
    )


@_format("html", "HTML")
def format_html(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks for one HTML paragraph with the id `answer`."""
    return _asking(
        prompt,
        "html",
        'Reply with HTML and nothing else{anyway}: one paragraph with the id "answer" that '
        "holds {what}, as in {shape}",
        lambda answer: f'<p id="answer">{escape(answer, quote=False)}</p>',
    )


@_format("text", "plain text")
def format_text(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks for plain text without any markup, several parts under headings."""
    return _asking(
        prompt,
        "text",
        "Reply in plain text and with nothing else{anyway}: {what}, without any markup",
        str,
    )
