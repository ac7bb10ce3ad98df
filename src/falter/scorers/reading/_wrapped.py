"""Objects in a reply, read leniently: JSON as models break it, elements, lines and rows of keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from falter.records.lazy_regex import late_regex

_DEEPEST = 50
_MOST = 40  # attempts to read one


class Found(NamedTuple):
    """A value that was read, where it stands, and whether its end was there."""

    value: Any
    start: int
    end: int
    whole: bool


class Bare(str):
    """A value without quotes that is no number and no name."""

    __slots__ = ()


class _Cut(Exception):
    """The text ends inside a value."""


class _Broken(Exception):
    """Not an object, however leniently it is read."""


_SPACE = late_regex(r"(?:\s|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_BARE = late_regex(r"[^\s,:{}\[\]\"']+(?:[ \t]+[^\s,:{}\[\]\"']+)*")
_NAMES: dict[str, Any] = {
    "true": True, "True": True, "false": False, "False": False,
    "null": None, "None": None, "undefined": None, "NaN": None,
}  # fmt: skip
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "”": "”"}


class _Reader:
    """A recursive reader of JSON that forgives quotes, commas, comments and a missing brace."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.whole = text, at, True

    def space(self) -> str:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def value(self, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise _Broken
        head = self.space()
        if not head:
            raise _Cut
        if head == "{":
            return self.object(depth)
        if head == "[":
            return self.array(depth)
        return self.string() if head in _QUOTES else self.bare()

    def object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        try:
            while (head := self.space()) != "}":
                if not head:
                    raise _Cut
                if head == ",":
                    self.at += 1
                    continue
                key = self.string() if head in _QUOTES else str(self.bare(key=True))
                if self.space() not in (":", "="):
                    raise _Cut if not self.space() else _Broken
                self.at += 1
                value = self.value(depth + 1)
                found[key] = None if key in found and found[key] != value else value
                if self.space() not in (",", "}", ""):
                    raise _Broken
            self.at += 1
        except _Cut:
            self.whole = False
            if not found and depth:
                raise
        return found

    def array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while (head := self.space()) != "]":
            if not head:
                raise _Cut
            if head == ",":
                self.at += 1
                continue
            found.append(self.value(depth + 1))
            if not self.whole:
                raise _Cut
            if self.space() not in (",", "]", ""):
                raise _Broken
        self.at += 1
        return found

    def string(self) -> str:
        closing = _QUOTES[self.text[self.at]]
        out, at = [], self.at + 1
        while at < len(self.text):
            char = self.text[at]
            if char == "\\" and at + 1 < len(self.text):
                out.append(self.text[at : at + 2])
                at += 2
                continue
            if char == closing and re.match(r"\s*(?:[,:}\]=]|//|/\*|#|$)", self.text[at + 1 :]):
                self.at = at + 1
                return _unescaped("".join(out))
            out.append(char)
            at += 1
        self.at = at
        raise _Cut

    def bare(self, *, key: bool = False) -> Any:
        match = _BARE.match(self.text, self.at)
        if match is None:
            raise _Broken
        self.at = match.end()
        word = match[0]
        if self.at >= len(self.text) and not key:
            raise _Cut  # a number that might go on
        if key:
            return word
        if word in _NAMES:
            return _NAMES[word]
        try:
            return orjson.loads(word.lstrip("+"))
        except ValueError:
            return Bare(word)


def _unescaped(text: str) -> str:
    try:
        return str(
            orjson.loads(
                '"'
                + text.replace("\\'", "'")
                .replace('\\"', '"')
                .replace('"', '\\"')
                .replace("\n", "\\n")
                + '"'
            )
        )
    except ValueError:
        return text


def objects(text: str) -> list[Found]:
    """The objects of a text in order, those inside others left out."""
    found: list[Found] = []
    at = tried = 0
    while tried < _MOST and (at := text.find("{", at)) >= 0:
        tried += 1
        reader = _Reader(text, at)
        try:
            value = reader.object(0)
        except (_Broken, _Cut, RecursionError):
            at += 1
            continue
        if value or reader.whole:
            found.append(Found(value, at, reader.at, reader.whole))
        at = max(at + 1, reader.at)
    return found


def is_schema(value: Any) -> bool:
    """Whether an object describes a form and fills nothing in."""
    return isinstance(value, dict) and (
        "properties" in value or "$schema" in value or "enum" in value
    )


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values of an object that are no objects, with the keys that lead to them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, str(key)))
    elif isinstance(value, list) and len(value) == 1:
        yield from leaves(value[0], path)
    else:
        yield path, value


_ELEMENT = late_regex(
    r"<([A-Za-z_][\w.-]{0,40})((?:\s[^<>]{0,200})?)>([^<>]{0,400})</\1\s*>", re.IGNORECASE
)


_FORMATTING = frozenset(
    [
        "b",
        "i",
        "u",
        "s",
        "em",
        "strong",
        "small",
        "big",
        "sup",
        "sub",
        "span",
        "p",
        "li",
        "ul",
        "ol",
        "td",
        "th",
        "tr",
        "br",
        "code",
        "pre",
        "div",
        "font",
        "mark",
    ]
)


def elements(text: str) -> list[tuple[str, str]]:
    """The innermost elements of a text: name and content."""
    return [
        (m[1], m[3].strip()) for m in _ELEMENT.finditer(text) if m[1].casefold() not in _FORMATTING
    ]


_PAIR = late_regex(
    r"^[ \t]*(?:[-*+•>]|\d{1,2}[.)])?[ \t>#*_]{0,6}['\"`]?([^\W\d][^:：=\n|]{0,60}?)['\"`]?[ \t*_]*"
    r"(?::|：|=(?!=)|→|->|=>|⇒)[ \t*_`]*([^\n]*?)[ \t]*$",
    re.MULTILINE,
)


def pairs(text: str) -> list[tuple[str, str]]:
    """The lines of a text that are a key and a value, bold type and bullets left out."""
    return [(m[1].strip(" *_`"), m[2].strip(" *_`,")) for m in _PAIR.finditer(text)]


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of Markdown tables, without the rule under the heading."""
    lines = [line.strip() for line in text.split("\n") if line.strip().startswith("|")]
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not all(re.fullmatch(r":?-+:?", c) for c in row)]


def folded_key(key: str) -> str:
    """A key without case and separators."""
    return re.sub(r"[\W_]+", "", key.casefold())
