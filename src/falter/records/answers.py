"""Answers with several parts: the schema of the parts, and their form in the prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """One part of an answer that has several parts.

    `many`: the part is a list. `choices`: the values that it may take, empty for any. `optional`:
    it may be left out. `heading` is for stores of earlier versions, which named parts of plain
    text.
    """

    name: str
    about: str = ""
    heading: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSchema:
    """The parts of an answer, and the form in which the prompt asks for them.

    `plain` is the rule for plain text, in the prompt's language. With `lines` each part is one
    line, `name: value`, and `empty` is the word for a part without a value. Without `lines`, plain
    text is a single free part.
    """

    keys: tuple[AnswerKey, ...]
    form: str = "json"
    plain: str = ""
    lines: bool = False
    empty: str = ""

    def identity(self) -> list[Any]:
        """Return everything that distinguishes two schemas, as plain JSON."""
        keys = [[k.name, k.about, k.heading, k.many, k.choices, k.optional] for k in self.keys]
        return [keys, self.form, self.plain, self.lines, self.empty]


def written(parts: Mapping[str, str], form: str, schema: AnswerSchema) -> str:
    """Return the parts of an answer in a form: `json`, `xml`, `markdown`, `text`, …

    The entries of a list are the lines of its part.
    """
    many = {key.name for key in schema.keys if key.many}
    if form in ("json", "yaml"):
        values = {k: v.split("\n") if k in many else v for k, v in parts.items()}
        return json.dumps(values, ensure_ascii=False)
    if form == "xml":
        return "<a>" + "".join(f"<{k}>{escape(v)}</{k}>" for k, v in parts.items()) + "</a>"
    if form == "html":
        return "".join(f'<p id="{k}">{escape(v)}</p>' for k, v in parts.items())
    if form == "markdown":
        return "\n".join(f"## {k}\n{v}" for k, v in parts.items())
    if schema.lines:
        return "\n".join(f"{k}: {v}" for k, v in parts.items())
    return "\n".join(parts.values())


# Results that a function under test may return instead of a plain text.


@dataclass(frozen=True, slots=True)
class Scored:
    """A text, and a score from 0 to 1 that the tested function computes itself.

    >>> Scored("Paris", 1.0)
    Scored(text='Paris', score=1.0)
    """

    text: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A text with tool calls. Each call is a mapping with a `name` and its `arguments`.

    >>> Reply("", [{"name": "cancel_order", "arguments": {"order_id": "A-1042"}}]).calls[0]["name"]
    'cancel_order'
    """

    text: str = ""
    calls: Sequence[Mapping[str, Any]] = ()
