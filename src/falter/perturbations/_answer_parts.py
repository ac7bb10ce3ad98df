"""Rules for the form of an answer with several parts: what each is called, and a sketch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from falter.core.answers import AnswerKey, AnswerSchema

__all__ = ["parts_rule"]

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
