"""Conversations with tools, as sections, as messages, and in the format of OpenAI's chat API."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from falter.records.types import Response, Section, SectionKind

SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
"""The keys of a tool's schema: OpenAI's, Anthropic's and MCP's."""
MAX_DEPTH = 40
"""Largest nesting depth of a call or a tool. Python's recursion ends at 1,000."""


def json_line(value: Any) -> str:
    """Return one line of JSON. Keys keep their order, because models see the text."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def plain_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raise ValueError if the text is no JSON, is nested too deeply, or contains NaN.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if depth(value) > MAX_DEPTH:
        raise ValueError("nested too deeply")
    return value


def mappings_in(text: str, key: str) -> list[dict[str, Any]]:
    """Return the mappings with a key in a list of JSON; none if the text is no such list."""
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        return [each for each in json.loads(text) if isinstance(each, dict) and key in each]
    return []


def is_json(text: str) -> bool:
    """Return True for a JSON text."""
    try:
        plain_json(text)
    except ValueError:
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def depth(value: Any) -> int:
    """Return the nesting depth of lists and mappings, counted without recursion.

    Counting ends at `MAX_DEPTH` + 1.
    """
    level, count = [value], 0
    while level and count <= MAX_DEPTH:
        inner = (
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, NESTED_TYPES)
        )
        level = [v for values in inner for v in values]
        count += bool(level)
    return count


NESTED_TYPES = (dict, list)


# Texts of calls and results in sections and messages


def call_text(call_id: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as the text of its section."""
    return json_line({"id": call_id, "name": name, "arguments": dict(arguments)})


def result_text(call_id: str, content: str) -> str:
    """Return the result of a call as the text of its message."""
    return json_line({"id": call_id, "content": content})


def target_calls(target: Any) -> list[dict[str, Any]] | None:
    """Return the calls that a target lists; None if the target is a text or an option."""
    if not isinstance(target, str) or not target.startswith("["):
        return None
    try:
        calls = plain_json(target)
    except ValueError:
        return None
    listed = isinstance(calls, list) and all(isinstance(c, dict) and "name" in c for c in calls)
    return calls if listed else None


def texts_in(value: Any) -> Iterable[str]:
    """Yield the texts and numbers in a JSON value, without keys."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield str(value)


def target_texts(target: Any) -> list[str] | None:
    """Return the values of the arguments that a target lists; None if it lists no calls."""
    calls = target_calls(target)
    if calls is None:
        return None
    return [t for c in calls for part in (c.get("arguments"), c.get("or")) for t in texts_in(part)]


# Parts of turns, from which every API's format is built

Part = tuple[str, Any]
"""Kind of a part of a turn (`text`, `call` or `result`), and its text or mapping."""


def merged_turns(messages: Sequence[tuple[str, str]]) -> list[tuple[str, list[Part]]]:
    """Return messages as (side, parts). Calls belong to the assistant's turn, results are grouped.

    The sides are `system`, `user`, `assistant` and `result`.
    """
    out: list[tuple[str, list[Part]]] = []
    for role, text in messages:
        side = "assistant" if role == "call" else role
        part = (role, json.loads(text)) if role in ("call", "result") else ("text", text)
        if role in ("call", "result") and out and out[-1][0] == side:
            out[-1][1].append(part)
        else:
            out.append((side, [part]))
    return out


def system_text(messages: Sequence[tuple[str, str]]) -> str:
    """Return the system turns as one text, for an API that takes them separately."""
    return "\n\n".join(text for role, text in messages if role == "system")


def turns(
    messages: Sequence[tuple[str, str]],
    arguments: Callable[[Any], Any] = json_line,
    silent: str | None = None,
) -> list[dict[str, Any]]:
    """Return messages in the format of OpenAI's chat API.

    `arguments` encodes the arguments of a call. `silent` is the content of a turn without text.
    """
    out: list[dict[str, Any]] = []
    for side, parts in merged_turns(messages):
        if side == "result":
            out += [
                {"role": "tool", "tool_call_id": result["id"], "content": result["content"]}
                for _, result in parts
            ]
            continue
        turn = {"role": side, "content": next((v for k, v in parts if k == "text"), silent)}
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": arguments(call["arguments"])},
            }
            for kind, call in parts
            if kind == "call"
        ]
        out.append(turn | ({"tool_calls": calls} if calls else {}))
    return out


def openai_tools(tools: Iterable[str]) -> list[dict[str, Any]]:
    """Return tools in the format of OpenAI's chat API."""
    return [{"type": "function", "function": json.loads(tool)} for tool in tools]


def turn_lines(turn: Mapping[str, Any]) -> list[str]:
    """Return the text and calls of an OpenAI turn as lines, for display."""
    made = [call["function"] for call in turn.get("tool_calls", ())]
    said = [] if turn["content"] is None else [str(turn["content"])]
    return [*said, *(f"calls {call['name']} {call['arguments']}" for call in made)]


def reply_text(response: Response) -> str:
    """Return the text and calls of a response, for display."""
    calls = (f"calls {call.name} {call.arguments}" for call in response.calls)
    return "\n".join(filter(None, (response.text, *calls)))


def tool_name(tool: str) -> str:
    """Return the name of the tool in a section's text."""
    return str(json.loads(tool)["name"])


# Sections: one for each turn of a conversation, and one for each tool

CHAT_TAG = "chat:"
"""Prefix of the tag that turns of one conversation share."""
DOCUMENTS = "{documents}"
"""Placeholder for the documents of a row. Other braces in a turn are plain text."""
Turn = Mapping[str, Any]
"""A turn of an item: `role` and `content`, with `calls` or the `id` of the answered call."""


def chat_sections(
    turns: Sequence[Turn],
    tools: Sequence[Mapping[str, Any]] = (),
    documents: Sequence[Section] = (),
) -> tuple[Section, ...]:
    """Return a conversation as sections: the system turn, the tools, the other turns.

    The last turn of the user has the kind `input`, earlier ones have the kind `earlier`.
    `documents` replace `{documents}`.
    """
    lead = next((n for n, turn in enumerate(turns) if turn["role"] != "system"), len(turns))
    last = max((n for n, turn in enumerate(turns) if turn["role"] == "user"), default=-1)
    offered = [
        Section(name=f"tool:{tool['name']}", kind="tool", text=json_line(tool), opens=True)
        for tool in tools
    ]
    counts: Counter[str] = Counter()
    sections: list[Section] = []
    for n, turn in enumerate(turns):
        if n == lead:
            sections += offered
        counts[turn["role"]] += 1
        sections += _turn_sections(turn, counts[turn["role"]], n == last, documents)
    return tuple(sections)


def _turn_sections(
    turn: Turn, number: int, is_last: bool, documents: Sequence[Section]
) -> Iterable[Section]:
    role, text = turn["role"], turn["content"]
    if role == "system":
        name = "system" if number == 1 else f"system_{number}"
        yield from _sections_of_text(name, "system", text, documents, opens=number > 1)
    elif role == "user":
        kind: SectionKind = "input" if is_last else "earlier"
        yield from _sections_of_text(
            "input" if is_last else f"user_{number}", kind, text, documents
        )
    elif role == "tool":
        yield Section(name=f"result:{turn['id']}", kind="result", text=text, opens=True)
    else:
        if text:
            yield Section(name=f"assistant_{number}", kind="reply", text=text, opens=True)
        for call in turn.get("calls", ()):
            text = call_text(call["id"], call["name"], call["arguments"])
            yield Section(name=f"call:{call['id']}", kind="call", text=text, opens=True)


def _sections_of_text(
    name: str, kind: SectionKind, text: str, documents: Sequence[Section], opens: bool = True
) -> Iterable[Section]:
    """Yield the sections of a turn's text, with the documents in their place."""
    before, mark, after = text.partition(DOCUMENTS) if documents else (text, "", "")
    if not mark:
        yield Section(name=name, kind=kind, text=text, opens=opens)
        return
    pieces = [Section(name=f"{name}_before", kind="instruction", text=before)] if before else []
    pieces += documents
    pieces += [Section(name=name, kind=kind, text=after)] if after else []
    yield replace(pieces[0], opens=opens)
    yield from pieces[1:]


def is_chat(sections: Iterable[Section]) -> bool:
    """Return True if the sections are turns of a conversation."""
    return any(section.opens for section in sections)


def last_turn(sections: Sequence[Section]) -> tuple[int, int]:
    """Return the start and end of the user's last turn in `sections`; (0, 0) without one."""
    user_sections = [n for n, s in enumerate(sections) if s.kind == "input"]
    start = end = user_sections[-1] if user_sections else 0
    while start and not sections[start].opens:
        start -= 1
    while end < len(sections) and (end == start or _continues_turn(sections[end])):
        end += 1
    return (start, end) if user_sections else (0, 0)


def _continues_turn(section: Section) -> bool:
    return not section.opens and section.kind not in ("tool", "reply", "call", "result", "system")
