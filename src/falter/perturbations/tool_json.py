"""Tool descriptions as JSON in a text: finding them, their values, and their layout.

A tool is an object with a name and a schema of its parameters, as OpenAI, Anthropic and MCP write
it. The schema is under `parameters`, `input_schema` or `inputSchema`, with or without `function`
around both. Tools are in a list, in an object under `tools` or `functions`, or one after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from falter.records.types import Span


@dataclass(frozen=True, slots=True)
class Leaf:
    """A string, a number, true, false or null, spelled as in the source."""

    text: str


@dataclass(frozen=True, slots=True)
class Array:
    """The values of a list."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Object:
    """Keys with their values; a key is spelled as in the source, quotation marks included."""

    pairs: tuple[tuple[str, Node], ...]

    def get(self, key: str) -> Node | None:
        """Return the value of a key given without quotation marks, or None."""
        return next((value for name, value in self.pairs if name == f'"{key}"'), None)


Node = Leaf | Array | Object
T = TypeVar("T")


def with_values(node: Node, change: Callable[[str, Node], Node]) -> Node:
    """Return the node with each value of its objects replaced by `change(key, value)`.

    In a list, the values of its objects are replaced. Deeper objects are left to `change`.
    """
    if isinstance(node, Array):
        return Array(tuple(with_values(item, change) for item in node.items))
    if isinstance(node, Object):
        return Object(tuple((key, change(key.strip('"'), value)) for key, value in node.pairs))
    return node


def nodes(node: Node, key: str = "") -> Iterator[tuple[str, Node]]:
    """Yield the node and all nodes inside, in order, each with its key.

    The key is an empty string if the node has none.
    """
    yield key, node
    if isinstance(node, Array):
        for item in node.items:
            yield from nodes(item)
    elif isinstance(node, Object):
        for name, value in node.pairs:
            yield from nodes(value, name.strip('"'))


class Style(NamedTuple):
    """A JSON layout: on one line, with a line for each tool, or indented by a number of spaces."""

    comma: str
    colon: str
    indent: int | None = None
    lines: bool = False


SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")  # OpenAI, Anthropic, MCP
LIST_KEYS = ("tools", "functions")
# Most texts describe no tools: one search for a schema spares them all the parsing.
_CUE = re.compile(r'"(?:parameters|input_schema|inputSchema)"\s*:\s*\{')
_START = re.compile(r'[\[{](?=\s{0,40}["{])')
# Strings, marks, and the rest, each as it is written: "1.0" must not become 1, nor "\u00e9" é.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_MAX_STARTS = 200  # places in a text where JSON could begin
_MAX_DEPTH = 40  # the parser of `_parse_node` recurses


def tool_blocks(text: str) -> list[tuple[Span, Node]]:
    """Return the JSON values in a text that describe tools, in order, each with its span.

    No value is inside another.
    """
    if _CUE.search(text) is None:
        return []
    found: list[tuple[Span, Node]] = []
    at = 0
    for start in islice((match.start() for match in _START.finditer(text)), _MAX_STARTS):
        end = None if start < at else _end_of_json(text, start)
        if end is None:
            continue
        node = _parse_node(_TOKEN.findall(text, start, end)[::-1])
        if tools_in(node):
            found.append(((start, end), node))
            at = end
    return found


def _end_of_json(text: str, start: int) -> int | None:
    """Return the end of the JSON that begins at `start`.

    None if there is no JSON, if a key is repeated, or if it is nested too deeply.
    """
    try:
        _, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    deepest = depth = 0
    for mark in re.findall(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', text[start:end]):
        depth += (mark in "{[") - (mark in "}]")
        deepest = max(deepest, depth)
    return end if deepest <= _MAX_DEPTH else None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Parsers disagree about which of two equal keys counts, so such JSON is left alone.
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates)


def _parse_node(tokens: list[str]) -> Node:
    """Return the value at the end of the reversed tokens, and remove its tokens."""
    token = tokens.pop()
    if token == "[":
        return Array(tuple(_parse_values("]", tokens, _parse_node)))
    if token == "{":
        return Object(tuple(_parse_values("}", tokens, _parse_pair)))
    return Leaf(token)


def _parse_pair(tokens: list[str]) -> tuple[str, Node]:
    key, _ = tokens.pop(), tokens.pop()
    return key, _parse_node(tokens)


def _parse_values(mark: str, tokens: list[str], take: Callable[[list[str]], T]) -> Iterator[T]:
    """Yield values, each parsed by `take`, up to the closing mark."""
    while tokens[-1] != mark:
        if tokens[-1] == ",":
            tokens.pop()
        else:
            yield take(tokens)
    tokens.pop()


def is_tool(node: Node) -> bool:
    """Return True if the node is a tool with a name and a schema."""
    if not isinstance(node, Object):
        return False
    inner = node.get("function")
    if isinstance(inner, Object):
        return is_tool(inner)
    named = isinstance(node.get("name"), Leaf)
    return named and any(isinstance(node.get(key), Object) for key in SCHEMA_KEYS)


def tools_in(node: Node) -> tuple[Node, ...]:
    """Return the tools of a block: the block itself, or the tools that it lists.

    Empty if the block is neither a tool nor a list of tools, nor an object with such a list.
    """
    if is_tool(node):
        return (node,)
    if isinstance(node, Array):
        return node.items if node.items and all(map(is_tool, node.items)) else ()
    if isinstance(node, Object):
        lists = (node.get(key) for key in LIST_KEYS)
        return next(
            (tools for one in lists if isinstance(one, Array) and (tools := tools_in(one))), ()
        )
    return ()


COMPACT, SPACED = Style(",", ":"), Style(", ", ": ")
LINES = Style(", ", ": ", lines=True)
STYLES = (COMPACT, SPACED, LINES, Style(", ", ": ", indent=2), Style(", ", ": ", indent=4))
_INDENT = re.compile(r"\n( *)\S")


def style_of(text: str, node: Node) -> Style:
    """Return the layout of a JSON text, approximated by one of `STYLES`."""
    if "\n" not in text:
        return SPACED if re.search(r'"\s*: ', text) else COMPACT
    if isinstance(node, Array) and text.count("\n") <= len(node.items) + 1:
        return LINES
    first = _INDENT.search(text)
    return STYLES[4] if first is not None and len(first[1]) > 3 else STYLES[3]


def written(node: Node, style: Style, depth: int = 0) -> str:
    """Return the JSON in a layout; strings and numbers keep their spelling."""
    if isinstance(node, Leaf):
        return node.text
    if isinstance(node, Array):
        parts = [written(item, style, depth + 1) for item in node.items]
    else:
        parts = [f"{k}{style.colon}{written(v, style, depth + 1)}" for k, v in node.pairs]
    opening, closing = "[]" if isinstance(node, Array) else "{}"
    if style.lines and isinstance(node, Array) and not depth and parts:
        return "[\n" + ",\n".join(parts) + "\n]"
    if style.indent is None or not parts:
        return opening + style.comma.join(parts) + closing
    margin = " " * (style.indent * depth)
    line = f"\n{margin}{' ' * style.indent}"
    return f"{opening}{line}" + f",{line}".join(parts) + f"\n{margin}{closing}"
