"""Extraction of an answer from a required form (JSON, XML, …) or from the end of reasoning.

Responses are untrusted. Long responses, and XML and YAML that could expand, are refused before they
are parsed. Any error of a parser means that the response is unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from html.parser import HTMLParser
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import orjson

from falter.records.lazy_regex import lazy_regex
from falter.records.types import Prompt
from falter.text.code import fenced_blocks

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


ANSWER_KEY = "answer"
MAX_CHARACTERS = 20_000  # characters
_MAX_DEPTH = 50  # nested brackets of YAML
_NULL_WORDS = frozenset({"", "~", "null", "Null", "NULL"})  # what YAML 1.1 reads as null


class Unreadable(Exception):
    """Error for a text that does not hold exactly one answer in the required form."""


def in_form(text: str, form: str, *, reasoned: bool = False) -> str | None:
    """Return the answer inside a response in the given form, or None unless there is exactly one.

    The form is the whole response or its only fenced block. If `reasoned`, it may also be the text
    after the last "Answer:".
    """
    if len(text) > MAX_CHARACTERS:
        return None
    for candidate in candidates(text.strip(), reasoned):
        try:
            return _PARSERS[form](candidate)
        except Unreadable:
            continue
    return None


def candidates(text: str, reasoned: bool) -> Iterator[str]:
    """Yield the parts of a response that may be in the required form, in the order to try."""
    # With several blocks it is not clear which is the answer, so only the whole response is tried.
    fenced = [block for block in fenced_blocks(text) if block.closed]
    if len(fenced) == 1:
        yield text[slice(*fenced[0].inside)].removesuffix("\n")
    yield text
    if reasoned and (markers := list(_ANSWER_LINE.finditer(text))):
        yield text[markers[-1].end() :].strip()


def json_value(text: str) -> Any:
    """Return the parsed JSON value. Raise `Unreadable` if the text is not JSON."""
    try:
        return orjson.loads(text)
    except ValueError:
        raise Unreadable from None


def yaml_value(text: str) -> Any:
    """Return the parsed YAML with scalars as written: `No` stays a word, and `1_0` is no number.

    Raise `Unreadable` for invalid YAML, for aliases and for brackets nested more than 50 deep.
    """
    import yaml

    depths = accumulate((c in "[{") - (c in "]}") for c in text)
    if max(depths, default=0) > _MAX_DEPTH:  # its parser takes seconds over a few thousand
        raise Unreadable

    class Plain(yaml.BaseLoader):
        """A YAML loader that refuses aliases, since a few can expand to text of any length."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("YAML aliases are not supported")
            return super().compose_node(parent, index)

        def construct_scalar(self, node: Any) -> Any:
            bare = node.style is None
            return None if bare and node.value in _NULL_WORDS else super().construct_scalar(node)

    try:
        return yaml.load(text, Loader=Plain)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        raise Unreadable from None


def _answer_value(value: Any) -> str:
    """Return the text under the key `answer`. Raise `Unreadable` if there is none."""
    if not isinstance(value, dict) or value.get(ANSWER_KEY) is None:
        raise Unreadable
    return flat_value(value[ANSWER_KEY])


def flat_value(value: Any) -> str:
    """Return a value as text: scalars as written, list entries as lines, anything else as JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    # 7.0 and 7 are one answer, and 1e3 is written out, as a target would be.
    if isinstance(value, (int, float)):
        return format(Decimal(str(value)).normalize(), "f")
    if isinstance(value, list) and not any(isinstance(v, (list, dict)) for v in value):
        return "\n".join(flat_value(v) for v in value if v is not None)
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        raise Unreadable from None


def xml_root(text: str) -> Element:
    """Return the root element of a text. A text with a declaration (`<!`) is refused unparsed."""
    from xml.etree import ElementTree

    # "<!DOCTYPE … <!ENTITY …": nine nested entities can expand to a billion ("billion laughs").
    if "<!" in text:
        raise Unreadable
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError):
        raise Unreadable from None


def _xml_answer(text: str) -> str:
    """Return the text of the only element `answer`."""
    elements = list(xml_root(text).iter(ANSWER_KEY))
    if len(elements) != 1:
        raise Unreadable
    return "".join(elements[0].itertext()).strip()


HEADING = lazy_regex(r"^#{1,6}[ \t]([^\n]*)$", re.MULTILINE)


def _markdown_answer(text: str) -> str:
    """Return the text below the only heading `Answer`, up to the next heading."""
    headings = list(HEADING.finditer(text))
    named = [i for i, m in enumerate(headings) if m[1].strip(" \t#*_:").casefold() == ANSWER_KEY]
    if len(named) != 1:
        raise Unreadable
    at = named[0]
    end = headings[at + 1].start() if at + 1 < len(headings) else len(text)
    return text[headings[at].end() : end].strip()


class _Page(HTMLParser):
    """An HTML parser that collects the texts inside the elements with certain ids."""

    def __init__(self, ids: Collection[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.answers: list[tuple[str, list[str]]] = []
        self._ids = ids
        self._tag: str | None = None
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs).get("id")
        if self._tag is None and named in self._ids:
            self.answers.append((named or "", []))
            self._tag, self._depth = tag, 1
        elif tag == self._tag:
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == self._tag:
            self._depth -= 1
            if not self._depth:
                self._tag = None

    def handle_data(self, data: str) -> None:
        if self._tag is not None:
            self.answers[-1][1].append(data)


_DOCTYPE = lazy_regex(r"\s*<!doctype html>", re.IGNORECASE)
# '<p id="answer">', "</h2>"; not "<3", "a < b" or a tag that is never closed.
_TAG = lazy_regex(r"</?[A-Za-z][A-Za-z0-9-]{0,30}(?:\s[^<>]{0,200})?>")


def html_elements(text: str, ids: Collection[str]) -> list[tuple[str, list[str]]]:
    """Return the elements with certain ids, in order, as pairs of id and texts inside.

    Raise `Unreadable` unless every `<` begins a short, closed tag: other text can keep Python's
    parser busy for minutes.
    """
    text = _DOCTYPE.sub("", text, count=1)
    if text.count("<") != len(_TAG.findall(text)):
        raise Unreadable
    page = _Page(ids)
    try:
        page.feed(text)
        page.close()
    except (AssertionError, ValueError):
        raise Unreadable from None
    return page.answers


def _html_answer(text: str) -> str:
    """Return the text of the only element with the id `answer`."""
    answers = html_elements(text, (ANSWER_KEY,))
    if len(answers) != 1:
        raise Unreadable
    return "".join(answers[0][1]).strip()


def _plain_answer(text: str) -> str:
    """Return plain text, stripped. Raise `Unreadable` if it is empty."""
    if not text.strip():
        raise Unreadable
    return text.strip()


_PARSERS: dict[str, Callable[[str], str]] = {
    "json": lambda text: _answer_value(json_value(text)),
    "yaml": lambda text: _answer_value(yaml_value(text)),
    "xml": _xml_answer,
    "markdown": _markdown_answer,
    "html": _html_answer,
    "text": _plain_answer,
}


# After reasoning

# "Answer: B", "**So the final answer is:** B", "> The answer is B"; not "My answers: B", nor "…, so
# the answer is B" within a line, which reasoning also says of intermediate steps.
_ANSWER_LINE = lazy_regex(
    r"^[ \t>*_#`-]*(?:(?:so|thus|therefore|hence)\b,?[ \t]*)?(?:(?:the|my)[ \t]+)?"
    r"(?:(?:final|correct|right|best)[ \t]+)?answer[ \t*_]*(?:is\b[ \t]*:?|:)[ \t*_]*",
    re.IGNORECASE | re.MULTILINE,
)


def final_answer(text: str) -> str | None:
    """Return the rest of the line after the last "Answer:" that begins a line, or None.

    If nothing follows on that line, the next line with text is returned.
    """
    markers = list(_ANSWER_LINE.finditer(text))
    if not markers:
        return None
    line = text[markers[-1].end() :].strip().partition("\n")[0].strip()
    return line or None


def without_sequel(text: str, prompt: Prompt, *, reasoned: bool) -> str:
    """Return the response without the further items that a base model may append.

    An appended item begins with the first line of the template, at the start of a line. After
    reasoning, only text after an "Answer:" is removed, since the reasoning may repeat the question.
    """
    body = [s for s in prompt.sections if s.kind not in ("system", "added")]
    opening = body[0].text.strip().partition("\n")[0] if body else ""
    first = _ANSWER_LINE.search(text) if reasoned else None
    if not opening or body[0].kind != "instruction" or (reasoned and first is None):
        return text
    at = text.find(f"\n{opening}", first.end() if first else 0)
    return text if at < 0 else text[:at]
