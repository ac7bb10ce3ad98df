"""Read an answer with several parts from the required form, with a parser of that form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from falter.records.answers import AnswerSchema
from falter.records.lazy_regex import late_regex
from falter.scorers.replies import (
    HEADING,
    LONGEST,
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
FREE = "reply"
"""The one part of a free text."""
_SEPARATORS = late_regex(r"[\s_-]+")
# A line of a key and a value, whatever marks it: "Name: Ada", "- **Due date**: Monday" or, of full
# width, "姓名：Ada". A line without a colon is no part: "Ada, on Monday".
_LINE = late_regex(r"^[ \t>*#-]*([^:：\n]{1,80}?)[ \t*`]*[:：][ \t*]*(.*)$", re.MULTILINE)


def answer_parts(text: str, form: str, schema: AnswerSchema) -> Parts | None:
    """The parts of a reply by key, as texts; None unless it is in the form and has all of them.

    Plain text is free, and one part, unless the schema has lines. The form is the whole reply, or
    its only fenced block. A list is its entries, one a line. A part without a value is left out;
    that is a fault unless it is optional. Of all optional ones, one at least has to be named. What
    the schema does not know is ignored.
    """
    if len(text) > LONGEST:
        return None
    if form == "text" and not schema.lines:
        return {FREE: text.strip()} if text.strip() else None
    for candidate in candidates(text.strip(), False):
        try:
            found = _READERS[form](candidate, schema)
        except Unreadable:
            continue
        parts = {key.name: found[key.name] for key in schema.keys if found.get(key.name)}
        named = any(key.name in found for key in schema.keys)
        if named and all(key.optional or key.name in parts for key in schema.keys):
            return parts
    return None


def parts_as_json(parts: Mapping[str, str]) -> str:
    """The parts as one JSON object of texts."""
    return json.dumps(dict(parts), ensure_ascii=False)


def _mapping(value: Any, schema: AnswerSchema) -> Parts:
    """A JSON or YAML mapping; under its one key where that wraps all the others."""
    if not isinstance(value, dict):
        raise Unreadable
    names = {_folded(key.name): key.name for key in schema.keys}
    # {"answer": {"name": "Ada", "due": "Monday"}}: a wrapper of the model's own.
    inner = next(iter(value.values()), None)
    if len(value) == 1 and isinstance(inner, dict) and _folded(next(iter(value))) not in names:
        value = inner
    return {
        names[_folded(str(key))]: "" if part is None else _words(part)
        for key, part in value.items()
        if _folded(str(key)) in names
    }


def _words(value: Any) -> str:
    """A value as text: the entries of a list one a line, those of a mapping one after another."""
    if isinstance(value, list):
        return "\n".join(_words(entry) for entry in value if entry is not None)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(entry)}" for key, entry in value.items())
    return flat_value(value).strip() if value is not None else ""


def _xml(text: str, schema: AnswerSchema) -> Parts:
    """Elements below the root, each named like a key; those inside a part are its entries."""
    root = xml_root(text)
    names = {_folded(key.name): key.name for key in schema.keys}
    return _once((names[tag], _entries(e)) for e in root if (tag := _folded(str(e.tag))) in names)


def _entries(element: Element) -> str:
    if not len(element):
        return "".join(element.itertext()).strip()
    lines = [element.text or "", *("".join(child.itertext()) for child in element)]
    return "\n".join(line.strip() for line in lines if line.strip())


def _html(text: str, schema: AnswerSchema) -> Parts:
    """Elements whose ids are keys; the pieces of text inside are lines."""
    found = html_elements(text, [key.name for key in schema.keys])
    if not found:
        raise Unreadable
    return _once((name, _lines(pieces)) for name, pieces in found)


def _markdown(text: str, schema: AnswerSchema) -> Parts:
    """Headings named like keys, each with the text below it."""
    headings = list(HEADING.finditer(text))
    if not headings:
        raise Unreadable
    ends = [*(m.start() for m in headings[1:]), len(text)]
    return _sections(
        [(m[1], text[m.end() : end]) for m, end in zip(headings, ends, strict=True)], schema
    )


def _plain(text: str, schema: AnswerSchema) -> Parts:
    """Lines `name: value`."""
    names = {_folded(key.name): key.name for key in schema.keys}
    found = [(_folded(m[1]), m[2].strip()) for m in _LINE.finditer(text)]
    empty = {"", "null", schema.empty.casefold()}
    return _once(
        (names[name], "" if value.rstrip(".").casefold() in empty else value)
        for name, value in found
        if name in names
    )


def _sections(sections: Iterable[tuple[str, str]], schema: AnswerSchema) -> Parts:
    names = {_folded(key.name): key.name for key in schema.keys}
    parts = _once(
        (names[_folded(title)], _lines(body.splitlines()))
        for title, body in sections
        if _folded(title) in names
    )
    empty = {"", "null", schema.empty.casefold()}
    return {name: "" if text.casefold() in empty else text for name, text in parts.items()}


def _lines(pieces: Iterable[str]) -> str:
    """Pieces of text as lines without list marks."""
    # "- milk", "• milk", "2) milk" lose their mark; "1.5 litres" and "-3" keep all they have.
    lines = (re.sub(r"^[ \t]*(?:[-*+•・]|\d{1,2}[.)])[ \t]+", "", piece) for piece in pieces)
    return "\n".join(line.strip() for line in lines if line.strip())


def _once(found: Iterable[tuple[str, str]]) -> Parts:
    """Return the parts by name; raise for a part that is there twice, which is ambiguous."""
    parts: Parts = {}
    for name, text in found:
        if name in parts:
            raise Unreadable
        parts[name] = text
    if not parts:
        raise Unreadable
    return parts


def _folded(title: str) -> str:
    """A name as a key or a heading may write it: case, marks and separators do not count."""
    return _SEPARATORS.sub("_", title.strip(" \t#*_:：`").casefold())


_READERS: dict[str, Callable[[str, AnswerSchema], Parts]] = {
    "json": lambda text, schema: _mapping(json_value(text), schema),
    "yaml": lambda text, schema: _mapping(yaml_value(text), schema),
    "xml": _xml,
    "markdown": _markdown,
    "html": _html,
    "text": _plain,
}
