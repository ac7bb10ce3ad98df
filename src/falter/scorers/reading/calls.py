"""Extraction of tool calls from text: tagged, fenced or bare JSON, or Python syntax.

A text counts as a call only if it names an offered tool. It does not count if the words before it
say that the call is not made. Responses are untrusted: the text, the number of attempts and the
number of calls are bounded, and nothing is executed.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from falter.records.chats import MAX_DEPTH, depth, json_line, plain_json
from falter.records.lazy_regex import named_regex
from falter.records.types import Call

# A reply of nothing but brackets would otherwise be parsed once from each of them.
MAX_CHARACTERS = 100_000
MAX_STARTS = 300
"""Maximum number of brackets in a response at which a call may begin."""
MAX_CALLS = 64
MAX_PYTHON_CHARACTERS = 2_000
"""Maximum number of characters in a list of calls in Python syntax."""
_ARGUMENTS = ("arguments", "parameters", "input")
_START = re.compile(r"[\[{]")
# '[get_invoice(number="7")]', as Llama 3.2 writes a call; not "[see get_invoice(7)]".
_PYTHON = re.compile(r"\[\s*([A-Za-z_][\w-]*)\(")
# What leads into a call as its form: ```json, <tool_call>, the bracket of a list.
_CALL_OPENING = re.compile(r"(?:```\w*|<tool_call>|[\s\[(,:`*])+\Z")
_UNSAID = named_regex("scorers/reading", "unsaid")


def read_calls(text: str, offered: Collection[str]) -> tuple[Call, ...]:
    """Return the calls of offered tools in a text, in order.

    >>> read_calls('{"name": "get_invoice", "arguments": {"number": "7"}}', ["get_invoice"])
    (Call(name='get_invoice', arguments='{"number": "7"}'),)
    """
    return tuple(islice(_calls(text[:MAX_CHARACTERS], frozenset(offered)), MAX_CALLS))


def _calls(text: str, offered: frozenset[str]) -> Iterator[Call]:
    end = 0
    for match in islice(_START.finditer(text), MAX_STARTS):
        start = match.start()
        if start < end:
            continue
        read = _parse_json_at(text, start) or _parse_python_at(text, start)
        if read is None:
            continue
        value, stop = read
        calls = list(_calls_in(value, offered))
        if calls and not _is_unsaid(text[end:start]):
            yield from calls
        end = stop


def _is_unsaid(before: str) -> bool:
    """Return True if the clause before a call says that it is not made, or only shown."""
    clause = re.split(r"[.!?](?:\s|\Z)|\n", _CALL_OPENING.sub("", before[-500:]))[-1]
    return _UNSAID.search(clause) is not None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse_json_at(text: str, start: int) -> tuple[Any, int] | None:
    """Return the JSON value that begins at `start` and its end offset, or None."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return (value, end) if depth(value) < MAX_DEPTH else None


def _calls_in(value: Any, offered: frozenset[str]) -> Iterator[Call]:
    """Yield the calls in a JSON value: the value itself, list entries, or `tool_calls`."""
    if isinstance(value, list):
        for inner in value:
            yield from _calls_in(inner, offered)
    elif isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        yield from _calls_in(value["tool_calls"], offered)
    elif isinstance(value, dict):
        inner = value.get("function", value)
        call = _as_call(inner, offered) if isinstance(inner, dict) else None
        if call is not None:
            yield call


def _as_call(value: dict[str, Any], offered: frozenset[str]) -> Call | None:
    """Return an object as a call, or None if it does not call an offered tool."""
    name = value.get("name")
    key = next((key for key in _ARGUMENTS if key in value), None)
    # With a description the tool is listed, as the prompt does it, and not called.
    if not isinstance(name, str) or name not in offered or key is None or "description" in value:
        return None
    arguments = value[key]
    if isinstance(arguments, str):
        try:
            arguments = plain_json(arguments)
        except ValueError:
            return None
    if not isinstance(arguments, dict) or _is_schema(arguments):
        return None
    return Call(name=name, arguments=json_line(arguments))


def _is_schema(arguments: dict[str, Any]) -> bool:
    return arguments.get("type") == "object" and isinstance(arguments.get("properties"), dict)


def _parse_python_at(text: str, start: int) -> tuple[Any, int] | None:
    """Return the calls in `[name(key="value")]` as JSON values and the end offset, or None."""
    if _PYTHON.match(text, start) is None:
        return None
    window = text[start : start + MAX_PYTHON_CHARACTERS]
    # A text in the call may hold ")]" itself: try each end, but not any number of them.
    for end in islice((m.end() for m in re.finditer(r"\)\s*\]", window)), 20):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(window[:end], mode="eval").body
            if isinstance(tree, ast.List):
                return [_as_json(node) for node in tree.elts], start + end
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return None


def _as_json(node: ast.expr) -> dict[str, Any]:
    """Return a call with literal keyword arguments. Raise `ValueError` for any other expression."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError("no call with named arguments")
    arguments = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords if k.arg}
    return {"name": node.func.id, "arguments": json.loads(json.dumps(arguments))}
