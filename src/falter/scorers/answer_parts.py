"""Parsers of responses with several named parts: JSON, YAML, XML, Markdown, HTML and plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from falter.records.answers import AnswerSchema
from falter.records.lazy_regex import lazy_regex
from falter.scorers.replies import (
    HEADING,
    MAX_CHARACTERS,
    Unreadable,
    candidates,
    flat_value,
    html_elements,
    json_value,
    xml_root,
    yaml_value,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


Parts = dict[str, str]
FREE_TEXT_KEY = "reply"
"""Key of the single part of a plain-text answer without `name: value` lines."""
_SEPARATORS = lazy_regex(r"[\s_-]+")
# A line with a key and a value, with or without marks: "Name: Ada", "- **Due date**: Monday" or,
# with a full-width colon, "姓名：Ada". A line without a colon is no part: "Ada, on Monday".
_LINE = lazy_regex(r"^[ \t>*#-]*([^:：\n]{1,80}?)[ \t*`]*[:：][ \t*]*(.*)$", re.MULTILINE)


def answer_parts(text: str, form: str, schema: AnswerSchema) -> Parts | None:
    """Return the parts of a response as texts by key, or None if a required part is missing.

    None also if the response is not in `form` or is longer than `MAX_CHARACTERS`. The form is the
    whole response or its only fenced block. Plain text is a single part unless the schema has
    lines.

    The entries of a list become lines. An empty part counts as missing, which only an optional part
    may be. At least one key must be present. Keys unknown to the schema are ignored.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    if form == "text" and not schema.lines:
        return {FREE_TEXT_KEY: text.strip()} if text.strip() else None
    for candidate in candidates(text.strip(), False):
        try:
            found = _PARSERS[form](candidate, schema)
        except Unreadable:
            continue
        parts = {key.name: found[key.name] for key in schema.keys if found.get(key.name)}
        named = any(key.name in found for key in schema.keys)
        if named and all(key.optional or key.name in parts for key in schema.keys):
            return parts
    return None


def parts_as_json(parts: Mapping[str, str]) -> str:
    """Return the parts as a JSON object of strings."""
    return json.dumps(dict(parts), ensure_ascii=False)


def _mapping_parts(value: Any, schema: AnswerSchema) -> Parts:
    """Return the parts of a JSON or YAML mapping. Raise `Unreadable` for any other value.

    A mapping nested under a single key that is not in the schema is unwrapped.
    """
    if not isinstance(value, dict):
        raise Unreadable
    names = {_folded(key.name): key.name for key in schema.keys}
    # {"answer": {"name": "Ada", "due": "Monday"}}: a wrapper that the model added.
    inner = next(iter(value.values()), None)
    if len(value) == 1 and isinstance(inner, dict) and _folded(next(iter(value))) not in names:
        value = inner
    return {
        names[_folded(str(key))]: "" if part is None else _value_text(part)
        for key, part in value.items()
        if _folded(str(key)) in names
    }


def _value_text(value: Any) -> str:
    """Return a value as text: list entries as lines, a mapping as "key: value, key: value"."""
    if isinstance(value, list):
        return "\n".join(_value_text(entry) for entry in value if entry is not None)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_value_text(entry)}" for key, entry in value.items())
    return flat_value(value).strip() if value is not None else ""


def _xml_parts(text: str, schema: AnswerSchema) -> Parts:
    """Return the text of the root's child elements that are named like keys."""
    root = xml_root(text)
    names = {_folded(key.name): key.name for key in schema.keys}
    return _distinct_parts(
        (names[tag], _element_text(e)) for e in root if (tag := _folded(str(e.tag))) in names
    )


def _element_text(element: Element) -> str:
    """Return the text of an element; its child elements become lines."""
    if not len(element):
        return "".join(element.itertext()).strip()
    lines = [element.text or "", *("".join(child.itertext()) for child in element)]
    return "\n".join(line.strip() for line in lines if line.strip())


def _html_parts(text: str, schema: AnswerSchema) -> Parts:
    """Return the text of the elements whose ids are keys; each piece of text becomes a line."""
    found = html_elements(text, [key.name for key in schema.keys])
    if not found:
        raise Unreadable
    return _distinct_parts((name, _joined_lines(pieces)) for name, pieces in found)


def _markdown_parts(text: str, schema: AnswerSchema) -> Parts:
    """Return the text below each heading that is named like a key."""
    headings = list(HEADING.finditer(text))
    if not headings:
        raise Unreadable
    ends = [*(m.start() for m in headings[1:]), len(text)]
    return _titled_parts(
        [(m[1], text[m.end() : end]) for m, end in zip(headings, ends, strict=True)], schema
    )


def _plain_parts(text: str, schema: AnswerSchema) -> Parts:
    """Return the parts of `name: value` lines."""
    names = {_folded(key.name): key.name for key in schema.keys}
    found = [(_folded(m[1]), m[2].strip()) for m in _LINE.finditer(text)]
    empty = {"", "null", schema.empty.casefold()}
    return _distinct_parts(
        (names[name], "" if value.rstrip(".").casefold() in empty else value)
        for name, value in found
        if name in names
    )


def _titled_parts(sections: Iterable[tuple[str, str]], schema: AnswerSchema) -> Parts:
    """Return the parts of (title, body) pairs whose title is a key."""
    names = {_folded(key.name): key.name for key in schema.keys}
    parts = _distinct_parts(
        (names[_folded(title)], _joined_lines(body.splitlines()))
        for title, body in sections
        if _folded(title) in names
    )
    empty = {"", "null", schema.empty.casefold()}
    return {name: "" if text.casefold() in empty else text for name, text in parts.items()}


def _joined_lines(pieces: Iterable[str]) -> str:
    """Join pieces of text as lines, without list markers and blank lines."""
    # "- milk", "• milk", "2) milk" lose their mark; "1.5 litres" and "-3" keep all they have.
    lines = (re.sub(r"^[ \t]*(?:[-*+•・]|\d{1,2}[.)])[ \t]+", "", piece) for piece in pieces)
    return "\n".join(line.strip() for line in lines if line.strip())


def _distinct_parts(found: Iterable[tuple[str, str]]) -> Parts:
    """Return the parts by name. Raise `Unreadable` if a part occurs twice, or if there is none."""
    parts: Parts = {}
    for name, text in found:
        if name in parts:
            raise Unreadable
        parts[name] = text
    if not parts:
        raise Unreadable
    return parts


def _folded(title: str) -> str:
    """Return a key or heading in a form for comparison: case, marks and separators are ignored."""
    return _SEPARATORS.sub("_", title.strip(" \t#*_:：`").casefold())


_PARSERS: dict[str, Callable[[str, AnswerSchema], Parts]] = {
    "json": lambda text, schema: _mapping_parts(json_value(text), schema),
    "yaml": lambda text, schema: _mapping_parts(yaml_value(text), schema),
    "xml": _xml_parts,
    "markdown": _markdown_parts,
    "html": _html_parts,
    "text": _plain_parts,
}
