"""Format: the answer is required in another form and read back from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape

from falter.core.records import Demonstration, Prompt, Section
from falter.core.rng import Rng
from falter.perturbations._answer_parts import parts_rule
from falter.perturbations._asking import (
    has_format,
    has_rules,
    instead_of_format,
    what_to_give,
    with_instruction,
)
from falter.perturbations._base import PromptPerturbation, prompt_perturbation
from falter.perturbations._input_format import input_format
from falter.perturbations._tool_schema import tool_schema

__all__ = [
    "format_html",
    "format_json",
    "format_markdown",
    "format_text",
    "format_xml",
    "format_yaml",
    "input_format",
    "tool_schema",
]

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
