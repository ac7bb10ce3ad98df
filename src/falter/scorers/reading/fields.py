"""The JSON object in a reply, repaired where that is unambiguous."""

from __future__ import annotations

import re
from typing import Any

import orjson

from falter.records.lazy_regex import late_regex
from falter.scorers.reading.cleaning import answer_part
from falter.scorers.reading.reading import Reading

MAX_OBJECT = 100_000  # characters
MAX_DEPTH = 50
MAX_ATTEMPTS = 20
_NAMES: dict[str, Any] = {
    "true": True, "True": True, "false": False, "False": False,
    "null": None, "None": None, "undefined": None, "NaN": None,
}  # fmt: skip
_SPACE = late_regex(r"(?:\s|//[^\n]*|/\*[^*]*\*/|#[^\n]*)*")
_BARE = late_regex(r"[^\s,:{}\[\]\"']+(?:[ \t]+[^\s,:{}\[\]\"']+)*")
_CLOSES = late_regex(r"\s*(?:[,:}\]=]|//|/\*|#|\Z)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "”": "”"}
_MAX_DIGITS = 400  # of a number


class _Broken(Exception):
    """The text is no object, however leniently it is read."""


class _Lenient:
    """A reader of one object that forgives quotes, commas, comments and names of other languages.

    `at` is behind what was read. An object that never closes is broken.
    """

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at

    def space(self) -> str:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _Broken
        head = self.space()
        if head == "{":
            return self.object(depth)
        if head == "[":
            return self.array(depth)
        return self.string() if head in _QUOTES else self.bare()

    def object(self, depth: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        while (head := self.space()) != "}":
            if head == ",":
                self.at += 1
                continue
            key = self.string() if head and head in _QUOTES else self.word()
            if self.space() not in (":", "="):
                raise _Broken
            self.at += 1
            value = self.value(depth + 1)
            if key in found and found[key] != value:
                raise _Broken
            found[key] = value
            if self.space() not in (",", "}"):
                raise _Broken
        self.at += 1
        return found

    def array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while (head := self.space()) != "]":
            if head == ",":
                self.at += 1
                continue
            found.append(self.value(depth + 1))
            if self.space() not in (",", "]"):
                raise _Broken
        self.at += 1
        return found

    def string(self) -> str:
        """Read a text in quotes; a quote inside it that closes nothing belongs to it."""
        closing, start = _QUOTES[self.text[self.at]], self.at + 1
        at = start
        while (at := self.text.find(closing, at)) >= 0:
            slashes = len(self.text[start:at]) - len(self.text[start:at].rstrip("\\"))
            if slashes % 2 == 0 and _CLOSES.match(self.text, at + 1):
                self.at = at + 1
                return _unescaped(self.text[start:at])
            at += 1
            if at - start > MAX_OBJECT // 10:
                break
        raise _Broken

    def word(self) -> str:
        match = _BARE.match(self.text, self.at)
        if match is None:
            raise _Broken
        self.at = match.end()
        return match[0]

    def bare(self) -> Any:
        word = self.word()
        if word in _NAMES:
            return _NAMES[word]
        if len(word) <= _MAX_DIGITS:
            try:
                return orjson.loads(word.lstrip("+"))
            except ValueError:
                pass
        return word


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    inner = text.replace("\\'", "'").replace('\\"', '"').replace('"', '\\"').replace("\n", "\\n")
    try:
        return str(orjson.loads(f'"{inner}"'))
    except ValueError:
        return text


def objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a text in order, those inside others left out."""
    return [value for value, _, _ in _located(text)]


def _located(text: str) -> list[tuple[dict[str, Any], int, int]]:
    found = []
    at = attempts = 0
    while attempts < MAX_ATTEMPTS and (at := text.find("{", at)) >= 0:
        attempts += 1
        reader = _Lenient(text, at)
        try:
            value = reader.object()
        except _Broken:
            at += 1
            continue
        found.append((value, at, reader.at))
        at = reader.at
    return found


def read_fields(reply: str) -> Reading[dict[str, Any]]:
    """Return the JSON object of a reply, repaired where that is unambiguous."""
    text, is_whole, reason = answer_part(reply)
    if reason:
        return Reading(reason=reason)
    found = [value for value in objects(text) if value]
    if not found:
        return Reading(reason="the reply holds no JSON object")
    if any(value != found[0] for value in found):
        return Reading(reason="the reply holds several JSON objects that differ")
    return Reading(answer=found[0], tier="stated")
