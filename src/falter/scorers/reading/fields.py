"""Extraction of the JSON object in a response, repaired if that is unambiguous."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple, TypeVar

import orjson

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.scorers.reading.cleaning import MAX_CHARACTERS, Cleaned, answer_part
from falter.scorers.reading.reading import Reading
from falter.text.code import fenced_blocks

T = TypeVar("T")
MAX_DEPTH = 50
MAX_ATTEMPTS = 20  # opening brackets at which an object is tried
MAX_QUOTES = 100  # quotation marks examined for the end of one string
_NAMES: dict[str, Any] = {
    "true": True, "True": True, "false": False, "False": False,
    "null": None, "None": None, "undefined": None, "NaN": None,
}  # fmt: skip
# Lenient JSON between two values: blanks and comments. " // a note⏎",
# "/* a note */", "# a note⏎"; not "a".
_BLANKS = lazy_regex(r"(?:\s|//[^\n]*|/\*[^*]*\*/|#[^\n]*)*")
# A value or key without quotation marks. "high priority", "True"; not '"x"', ": x".
_BARE_WORDS = lazy_regex(r"(?:(?!//)[^\s,:{}\[\]\"'])+(?:[ \t]+(?:(?!//)[^\s,:{}\[\]\"'])+)*")
# After the quotation mark that ends a string: ",", ": 1", "}", " // x"; not " said he".
_AFTER_QUOTE = lazy_regex(r"\s*(?:[,:}\]=]|//|/\*|#|\Z)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "”": "”", "„": "“", "「": "」"}
_MAX_DIGITS = 400  # of a number


class _NoObject(Exception):
    """Error for a text that is no object even to the lenient parser."""


class _LenientParser:
    """A parser of one object that accepts other quotes, extra commas, comments and "True".

    `at` is the offset after the parsed text. If the text ends after a complete value, the object is
    closed and `whole` becomes False. If it ends inside a value or after a number, parsing fails.
    """

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.whole = text, at, True

    def space(self) -> str:
        """Skip blanks and comments. Return the next character, empty at the end of the text."""
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _NoObject
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
                raise _NoObject
            self.at += 1
            value = self.value(depth + 1)
            # With two values under one key it is unclear which counts.
            if key in found and found[key] != value:
                raise _NoObject
            found[key] = value
            if (head := self.space()) not in (",", "}"):
                if head or not isinstance(value, (str, list, dict)) or self.text[-1:].isalnum():
                    raise _NoObject
                self.whole = False
                return found
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
                raise _NoObject
        self.at += 1
        return found

    def string(self) -> str:
        """Parse a quoted string.

        A quotation mark ends it only before a separator, bracket or comment, or at the end of the
        text.
        """
        closing, start = _QUOTES[self.text[self.at]], self.at + 1
        at = start
        for _ in range(MAX_QUOTES):
            if (at := self.text.find(closing, at)) < 0:
                break
            slashes = 0
            while at - slashes > start and self.text[at - slashes - 1] == "\\":
                slashes += 1
            # An even number of backslashes escape one another and not the quote.
            if slashes % 2 == 0 and _AFTER_QUOTE.match(self.text, at + 1):
                self.at = at + 1
                return _unescaped(self.text[start:at])
            at += 1
        raise _NoObject

    def word(self) -> str:
        match = _BARE_WORDS.match(self.text, self.at)
        if match is None:
            raise _NoObject
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


class FoundObject(NamedTuple):
    """A JSON object in a text, its start and end offsets; `whole` is False if it was not closed."""

    value: dict[str, Any]
    start: int
    end: int
    whole: bool


def objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects of a text in order."""
    return [found.value for found in _located_objects(text)]


def _located_objects(text: str) -> list[FoundObject]:
    found = list[FoundObject]()
    at = attempts = 0
    while attempts < MAX_ATTEMPTS and (at := text.find("{", at)) >= 0:
        attempts += 1
        reader = _LenientParser(text, at)
        try:
            value = reader.object()
        except _NoObject:
            at += 1
            while text[at : at + 1] == "{":  # one attempt for a whole run of brackets
                at += 1
            continue
        found.append(FoundObject(value, at, reader.at, reader.whole))
        at = reader.at
    return found


_REPLACED = named_regex("scorers/reading", "replaced")
_PLACEHOLDER = named_regex("scorers/reading", "placeholder")


def read_fields(reply: str) -> Reading[dict[str, Any]]:
    """Return the JSON object of a response, repaired if that is unambiguous.

    If several objects differ, the last counts only if the words before it announce a correction.
    """
    text, is_whole, reason = answer_part(reply)
    if reason:
        return Reading(reason=reason)
    if not is_whole and reply.lstrip()[:1] == "{":
        return Reading(reason=f"the object is longer than {MAX_CHARACTERS:,} characters")
    if text.startswith('"{'):  # an object inside a JSON string
        text = _unescaped(text.strip('"'))
    located = [one for one in _located_objects(text) if one.value and not _is_template(one.value)]
    blocks = [block.inside for block in fenced_blocks(text)] if "```" in text else []
    fenced = [one for one in located if any(a <= one.start < b for a, b in blocks)]
    if fenced and fenced[-1] is located[-1]:  # an object before a fence is an example of the form
        located = fenced
    if not located:
        return Reading(reason="the reply holds no JSON object with values")
    last = located[-1]
    if any(one.value != last.value for one in located):
        if not _REPLACED.search(text[located[-2].end : last.start][-300:]):
            return Reading(reason="the reply holds several JSON objects that differ")
        return Reading(answer=last.value, tier="inferred")
    return Reading(answer=last.value, tier="stated" if last.whole else "inferred")


def _is_template(value: dict[str, Any]) -> bool:
    """Return True if an object is a schema or has only placeholders as values."""
    empty = all(isinstance(v, str) and _PLACEHOLDER.fullmatch(v) for v in value.values())
    return empty or "properties" in value or "$schema" in value


# Answers set off from the prose by a box, a tag or an object


# Keys whose value is no answer. "second_choice", "rejected", "reason"; not "answer".
_OTHER_KEYS = lazy_regex(r"second|alternativ|other|previous|reject|reason|explan|note", re.I)
SEVERAL_ANSWERS = "two different answers are marked"


def set_off(
    reply: Cleaned, take: Callable[[Any], T | None], keys: str, asked: Collection[str] | None = ()
) -> Reading[T] | None:
    """Return the answer in an answer tag, a box or the last object; None if there is none of these.

    `take` returns the answer in a value, or None. Three places of an object are tried in order:
    values under keys that match `keys`; values under keys made of words in `asked`; an only value.
    The words of a key are compared by their first five letters. If `asked` is None, the third place
    is the only value that is an answer.
    """
    for parts in (reply.tagged, reply.boxed):
        known = {found for part in parts if (found := take(part)) is not None}
        if len(known) == 1:
            return Reading(answer=known.pop(), tier="stated")
        if known:
            return Reading(reason=SEVERAL_ANSWERS)
    values = objects(reply.raw) if "{" in reply.raw else []
    readings = [answer_of_object(value, take, keys, asked) for value in values]
    if len({one.answer for one in readings} - {None}) > 1:
        return Reading(reason=SEVERAL_ANSWERS)
    return readings[-1] if readings else None


def answer_of_object(
    value: dict[str, Any],
    take: Callable[[Any], T | None],
    keys: str,
    asked: Collection[str] | None = (),
) -> Reading[T]:
    """Return the answer in an object, chosen as `set_off` describes."""
    leaves = [(path, leaf, take(leaf)) for path, leaf in _leaves(value)]
    if any(path[-1].lower() == "error" and isinstance(leaf, str) for path, leaf, _ in leaves):
        return Reading(reason="the object reports an error")
    pattern = re.compile(keys, re.IGNORECASE)
    named = [found for path, _, found in leaves if any(map(pattern.search, path))]
    words = [({w[:5].rstrip("s") for w in _key_words(path)}, found) for path, _, found in leaves]
    wanted = [found for own, found in words if own and own <= set(asked or ())]
    alone = [found for _, _, found in leaves] if asked is None or len(leaves) == 1 else []
    for some in (named, wanted, alone):
        known = {found for found in some if found is not None}
        if len(known) == 1:
            return Reading(answer=known.pop(), tier="stated")
        if some is named and some and not known:
            break
    return Reading(reason="no single value of the object is an answer")


def _leaves(
    value: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (path, value) for the values of an object and of its nested objects.

    Keys such as "reason" are left out, and a list of one entry gives that entry.
    """
    for key, inner in value.items():
        if isinstance(inner, dict) and len(path) < MAX_DEPTH:
            yield from _leaves(inner, (*path, str(key)))
        elif not _OTHER_KEYS.search(str(key)):
            one = isinstance(inner, list) and len(inner) == 1
            yield (*path, str(key)), inner[0] if one else inner


def _key_words(path: tuple[str, ...]) -> list[str]:
    """Return the words of an object's keys, without generic words such as "value"."""
    text = re.sub(r"([A-Z])", r" \1", " ".join(path)).lower()
    return [w for w in re.findall(r"[^\W\d_]{3,}", text) if w not in ("value", "amount", "answer")]
