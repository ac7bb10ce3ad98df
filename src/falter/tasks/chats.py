"""Conversations as items: turns, tools, documents and expected calls.

Every row is checked before anything is sent. A row that does not fit raises a TaskError that names
the row and the turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from falter.records.chats import (
    CHAT_TAG,
    DOCUMENTS,
    SCHEMA_KEYS,
    chat_sections,
    json_line,
    plain_json,
    target_calls,
)
from falter.records.errors import TaskError, TemplateError, UsageError, nearest, refusal
from falter.records.ids import digest, short
from falter.records.types import Item, Prompt, Section
from falter.tasks import items as rows_as_items
from falter.tasks.rows import DataSpec, Row, chat_column, lists_turns
from falter.tasks.task import Piece, Template

MESSAGES = "messages"
_FALTER_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user",
    "assistant": "assistant", "gpt": "assistant", "model": "assistant",
    "tool": "tool", "observation": "tool", "function_call": "function_call",
}  # fmt: skip
_KNOWN_ROLES = ("system", "user", "assistant", "tool")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_TOOLS = 128
NO_TARGET = (
    "no right answers: name their column with --target, or compare with the clean answer: "
    "--same text"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat(Template):
    """The template of a conversation with its turns, tools and documents.

    `system` replaces the rows' system turns. Each document is formatted by `each`, with the
    placeholders `{text}` and `{n}`, and `join` separates documents.
    """

    pieces: tuple[Piece, ...] = ()
    system: str = ""
    join: str = "\n\n"
    each: str = "{text}"

    def build(self, item: Item) -> Prompt:
        """Return the item's prompt."""
        turns = json.loads(item.fields[MESSAGES])
        if self.system:
            rest = next((n for n, t in enumerate(turns) if t["role"] != "system"), len(turns))
            turns = [{"role": "system", "content": self.system}, *turns[rest:]]
        documents = tuple(self._document_sections(json.loads(item.fields.get("documents", "[]"))))
        tools = json.loads(item.fields.get("tools", "[]"))
        return Prompt(
            sections=chat_sections(turns, tools, documents),
            target=item.target,
            contrast=item.fields.get("contrast"),
        )

    def _document_sections(self, texts: Sequence[str]) -> Iterator[Section]:
        for n, text in enumerate(texts, 1):
            before, _, after = self.each.replace("{n}", str(n)).partition("{text}")
            before = before if n == 1 else self.join + before
            if before:
                yield Section(name=f"before_{n}", kind="instruction", text=before)
            yield Section(name=f"doc_{n}", kind="document", text=text)
            if after:
                yield Section(name=f"after_{n}", kind="instruction", text=after)


def conversations_in(first: Row, source: Any = None) -> str | None:
    """Return the column of the first row that holds conversations, or None.

    The result is None if the template `source` is a text, or has parts but no part `messages`.
    Then the columns are plain fields. Raises TemplateError if a text contains a column of turns.
    """
    column = chat_column(first)
    if column is None or source is None:
        return column
    if isinstance(source, str):
        if lists_turns(first[column]) and re.search(rf"\{{\s*{column}\s*\}}", source):
            raise refusal(TemplateError, "tasks.chat_in_text")
        return None
    return column if MESSAGES in source else None


def _from_json(value: Any) -> Any:
    """Return the parsed value of a cell that holds a JSON list or object, else the value."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return plain_json(value)
        except ValueError:
            return value
    return value


def chat_template(source: Any, spec: DataSpec) -> Chat:
    """Return the template of a file of conversations from its parts `system` and `messages`.

    Both parts are optional. Raises UsageError if `each` lacks `{text}`, and TemplateError for other
    parts.
    """
    parts = dict(source or {})
    turns, system = parts.pop(MESSAGES, "{messages}"), parts.pop("system", "")
    if spec.each.count("{text}") != 1:
        raise refusal(UsageError, "tasks.each_without_text", each=spec.each)
    if parts or turns.strip() != "{messages}":
        raise refusal(TemplateError, "tasks.template_of_chat")
    return Chat(system=system, join=spec.join, each=spec.each)


# Items


def chat_items(
    rows: Iterable[Row], spec: DataSpec, column: str, task: str, *, same: bool
) -> tuple[tuple[Item, ...], list[str]]:
    """Return the items of a file of conversations, and remarks about them.

    Without a target column, a last turn of the assistant is the correct answer and is not sent. If
    `same`, that turn is left out and the items have no target, because responses are compared with
    the response to the clean prompt.
    """
    if spec.choices:
        raise refusal(UsageError, "tasks.choices_in_chat")
    key_setting, spec = spec.key, replace(spec, key=rows_as_items.key_column(rows, spec))
    numbered: list[tuple[int, Item]] = []
    answered = 0
    for number, row in enumerate(rows, 1):
        made = list(_row_items(row, spec, column, task, _Place(spec.path, number), same))
        answered += sum(ends for _, ends in made)
        numbered += [(number, item) for item, _ in made]
    if spec.drop_duplicates:
        numbered = rows_as_items.first_of_each(numbered)
    rows_as_items.require_unique(numbered, spec, key_setting)
    items = tuple(item for _, item in numbered)
    _require_one_kind(items, spec.path)
    told = (
        "is not sent"
        if same and spec.target is None
        else "is used as the right answer and is not sent"
    )
    remarks = [f"the last turn of {answered:,} conversations is the assistant's: it {told}"]
    return items, remarks if answered else []


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a file for error messages; `turn` is 0 for the whole row."""

    path: str
    row: int
    turn: int = 0

    def error(self, text: str, hint: str | None = None) -> TaskError:
        turn = f", turn {self.turn}" if self.turn else ""
        gap = "" if text.startswith(":") else " "
        return TaskError(f"{self.path}, row {self.row}{turn}{gap}{text}", hint=hint)

    def at(self, turn: int) -> _Place:
        return replace(self, turn=turn)


def _row_items(
    row: Row, spec: DataSpec, column: str, task: str, where: _Place, same: bool
) -> Iterator[tuple[Item, bool]]:
    """Yield a row's items, each with True if the last turn is the assistant's and its answer.

    With `turns: all`, a row has an item for each turn of the assistant, otherwise one item.
    """
    turns = list(_turns(row.get(column), column, where))
    tools = _tools(row.get("tools"), where)
    _check_links(turns, tools, where)
    target_value = None if spec.target is None else row.get(spec.target)
    has_target = target_value is not None
    if spec.target is not None and not has_target:
        raise where.error(f"has no target '{spec.target}'", "fill or drop the row")
    ends_with_reply = turns[-1]["role"] == "assistant"
    if ends_with_reply and (has_target or len(turns) == 1):
        what = "a call" if turns[-1].get("calls") else "the assistant's"
        raise where.error(
            f"ends in a turn that is {what}, so there is nothing to answer",
            "drop that turn, or leave --target out to use it as the right answer",
        )
    if not ends_with_reply and not has_target and not same:
        raise where.error(f"has {NO_TARGET}")
    key = str(row[spec.key]) if spec.key and row.get(spec.key) not in (None, "") else None
    tags = tuple(str(row.get(tag, "")) for tag in spec.tags)
    prefix_lengths = [len(turns) - 1] if ends_with_reply else [len(turns)]
    if spec.turns == "all":
        if has_target:
            raise where.error(
                "has a target, but with 'turns: all' each turn of the assistant is a target"
            )
        asked = [n for n, t in enumerate(turns) if t["role"] == "assistant" and n]
        prefix_lengths = asked or prefix_lengths
    for length in prefix_lengths:
        answer = turns[length] if length < len(turns) else None
        target = _target_text(target_value, tools, where) if has_target else None
        if answer is not None and not same:
            target = _target_of_turn(answer)
        fields = {MESSAGES: json_line(turns[:length])}
        fields |= {"tools": json_line(tools)} if tools else {}
        fields |= _document_fields(row, spec, turns, length, where)
        fields |= _contrast_fields(row, turns[:length], tools, column, where)
        usual = short(digest("key", fields, [], target), 16) if key is None else key
        several = len(prefix_lengths) > 1
        yield (
            Item(
                task=task,
                key=f"{usual}#{length}" if several and key is not None else usual,
                fields=fields,
                target=target,
                tags=(*tags, f"{CHAT_TAG}{short(digest('chat', turns), 8)}")
                if spec.turns == "all"
                else tags,
            ),
            length == len(turns) - 1,
        )


def scorer_of(items: Sequence[Item]) -> str | None:
    """Return the scorer `tool_call` if the correct answers are calls, or None for texts."""
    calls = any(target_calls(item.target) is not None for item in items)
    return "tool_call" if calls else None


def _require_one_kind(items: Sequence[Item], path: str) -> None:
    targets = [item.target for item in items if item.target is not None]
    kinds = {target_calls(target) is not None for target in targets}
    if len(kinds) > 1:
        raise refusal(TaskError, "tasks.two_kinds_of_target", path=path)


# Turns


def _turns(value: Any, column: str, where: _Place) -> Iterator[dict[str, Any]]:
    value = _from_json(value)
    if not isinstance(value, list):
        kind = "a text" if isinstance(value, str) else "missing" if value is None else "no list"
        raise where.error(f"'{column}' is {kind}, not a list of turns")
    if not value:
        raise where.error(f"'{column}' is an empty list")
    call_count = 0
    for number, turn in enumerate(value, 1):
        turn_place = where.at(number)
        if not isinstance(turn, dict):
            raise turn_place.error("is not a mapping with a role and a content")
        given_role = turn.get("role", turn.get("from"))
        role = _FALTER_ROLES.get(given_role) if isinstance(given_role, str) else None
        if role is None:
            close = nearest(str(given_role), _KNOWN_ROLES)
            hint = f"did you mean '{close or 'assistant'}'?"
            raise turn_place.error(
                f": the role {given_role!r:.40} is not one of {', '.join(_KNOWN_ROLES)}", hint
            )
        if role == "function_call":
            call = _from_json(turn.get("value"))
            turn, role = {"content": "", "tool_calls": [call]}, "assistant"
        for one in _one_turn(turn, role, turn_place):
            for call in one.get("calls", ()):
                call_count += 1
                call["id"] = call["id"] or f"c{call_count}"
            yield one


def _one_turn(turn: Mapping[str, Any], role: str, where: _Place) -> Iterator[dict[str, Any]]:
    """Yield a turn in falter's form; results in Anthropic's blocks come before the text."""
    content = turn.get("content", turn.get("value"))
    blocks = content if isinstance(content, list) else []
    own = [b for b in blocks if isinstance(b, dict)]
    for block in (b for b in own if b.get("type") == "tool_result"):
        text = _content_text(block.get("content", ""), where)
        yield {"role": "tool", "content": text, "id": str(block.get("tool_use_id", ""))}
    calls = [
        {"id": b.get("id"), "name": b.get("name"), "arguments": b.get("input")}
        for b in own
        if b.get("type") == "tool_use"
    ]
    rest = [b for b in blocks if not (isinstance(b, dict) and b.get("type") in _BLOCK_TYPES)]
    text = _content_text(rest if blocks else content, where)
    listed = turn.get("tool_calls") or []
    if not isinstance(listed, list):
        raise where.error("has 'tool_calls' that are not a list")
    calls += listed
    if role == "tool":
        yield {"role": "tool", "content": text, "id": _call_id(turn.get("tool_call_id"))}
    elif role == "assistant":
        made = [_normal_call(call, where) for call in calls]
        if not made and not text.strip():
            raise where.error("is an empty turn of the assistant")
        yield {"role": role, "content": text, **({"calls": made} if made else {})}
    elif text.strip() or not blocks:
        yield {"role": role, "content": text}


_BLOCK_TYPES = ("tool_use", "tool_result")


def _content_text(content: Any, where: _Place) -> str:
    if content is None:
        return ""
    if isinstance(content, list):
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if kind not in ("text", "input_text", "output_text") or "text" not in part:
                what = "an image" if "image" in str(kind) else f"a part of the type {kind!r:.30}"
                raise where.error(
                    f"contains {what}, but falter changes only texts", "leave such rows out"
                )
        content = "".join(str(part["text"]) for part in content)
    if not isinstance(content, str):
        raise where.error(f"has a content that is not text: {content!r:.60}")
    if not rows_as_items.is_encodable(content):
        raise where.error("contains half of a surrogate pair", "repair or drop the row")
    return content


def _normal_call(call: Any, where: _Place) -> dict[str, Any]:
    """Return a call in the form of OpenAI, Anthropic or ShareGPT with id, name and arguments.

    The arguments become a mapping.
    """
    inner = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        raise where.error("makes a call without a name")
    arguments = inner.get("arguments", inner.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = plain_json(arguments or "{}")
        except ValueError:
            arguments = None
    if not isinstance(arguments, dict):
        raise where.error(f"calls '{inner['name']}' with arguments that are not a JSON object")
    return {"id": _call_id(call.get("id")), "name": inner["name"], "arguments": arguments}


def _call_id(value: Any) -> str:
    """Return the id of a call as a text, empty without one."""
    return str(value)[:200] if isinstance(value, (str, int)) else ""


def _check_links(
    turns: Sequence[dict[str, Any]], tools: Sequence[Mapping[str, Any]], where: _Place
) -> None:
    """Raise TaskError for a result without a call, a call without a result, or an unknown tool.

    A result without an id gets the id of the first open call. Calls in a last turn of the assistant
    need no result, because they are the answer.
    """
    waiting: list[str] = []
    for number, turn in enumerate(turns, 1):
        here = where.at(number)
        if turn["role"] == "tool":
            turn["id"] = turn["id"] or (waiting[0] if waiting else "")
            if turn["id"] not in waiting:
                raise here.error(f"answers the call '{turn['id']}', which no earlier turn makes")
            waiting.remove(turn["id"])
            continue
        if waiting:
            raise here.error(f"comes before the result of the call '{waiting[0]}'")
        for call in turn.get("calls", ()):
            _check_call(call, tools, here, "calls")
            waiting.append(call["id"])
    if waiting and turns[-1]["role"] == "tool":
        raise where.error(f"has no result for the call '{waiting[0]}'")
    if not any(turn["role"] == "user" for turn in turns):
        raise where.error("has no turn of the user")


def _check_call(
    call: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], where: _Place, verb: str
) -> None:
    names = {tool["name"]: tool for tool in tools}
    if call["name"] not in names:
        close = nearest(call["name"], names)
        raise where.error(
            f"{verb} '{call['name']}', which is not one of its tools",
            f"did you mean '{close}'?" if close else "list it in the column 'tools'",
        )
    schema = names[call["name"]].get("parameters") or {}
    known = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(known, dict) and schema.get("additionalProperties", False) is False:
        for name in call["arguments"]:
            if name not in known:
                close = nearest(name, known)
                raise where.error(
                    f"{verb} '{call['name']}' with '{name}', which its schema does not have",
                    f"did you mean '{close}'?" if close else None,
                )


# Tools, documents, targets, contrasts


def _tools(value: Any, where: _Place) -> list[dict[str, Any]]:
    value = _from_json(value)
    if value in (None, "", []):
        return []
    if not isinstance(value, list):
        raise where.error("has 'tools' that are not a list")
    tools = [_tool(tool, where) for tool in value]
    names = [tool["name"] for tool in tools]
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        raise where.error(f"offers two tools of the name '{twice}'", "rename one of the two")
    if len(tools) > _MAX_TOOLS:
        raise where.error(f"offers {len(tools)} tools; APIs accept at most {_MAX_TOOLS}")
    return tools


def _tool(value: Any, where: _Place) -> dict[str, Any]:
    """Return a tool with name, description and parameters.

    The forms of OpenAI, Anthropic and MCP, and a flat mapping, are accepted.
    """
    tool = value.get("function", value) if isinstance(value, dict) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(name, str):
        raise where.error(f"offers a tool without a name: {value!r:.60}")
    if not _TOOL_NAME.fullmatch(name):
        raise where.error(
            f"offers the tool {name!r:.80}, a name that APIs reject",
            "letters, digits, _ and -, at most 64",
        )
    key = next((key for key in SCHEMA_KEYS if key in tool), "parameters")
    others = {k: v for k, v in tool.items() if k not in ("name", "description", "type", key)}
    schema = tool.get(key) or {"type": "object", "properties": {}}
    described = {"description": str(tool["description"])} if tool.get("description") else {}
    return {"name": name, **described, "parameters": schema, **others}


def _document_fields(
    row: Row, spec: DataSpec, turns: Sequence[Mapping[str, Any]], cut: int, where: _Place
) -> dict[str, str]:
    value = _from_json(row.get(spec.fields.get("documents", "documents")))
    if value in (None, "", []):
        return {}
    listed = value if isinstance(value, list) else [value]
    texts = [d.get("text") if isinstance(d, dict) else d for d in listed]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise where.error("has a document without a text")
    places = sum(t["content"].count(DOCUMENTS) for t in turns if t["role"] in ("system", "user"))
    if not places:
        raise where.error(f"has documents, but no turn contains {DOCUMENTS}")
    if places > 1:
        raise where.error(f"says {DOCUMENTS} in {places} places, and documents are sent once")
    # With `turns: all`, an item may end before the turn with the documents.
    there = any(DOCUMENTS in turn["content"] for turn in turns[:cut])
    return {"documents": json_line(texts)} if there else {}


def _target_text(value: Any, tools: Sequence[Mapping[str, Any]], where: _Place) -> str:
    """Return the correct answer: a text, or the correct calls as JSON."""
    read = _from_json(value)
    listed = [read] if isinstance(read, dict) else read
    if isinstance(listed, list) and all(isinstance(call, dict) for call in listed):
        return json_line([_target_call(call, tools, where) for call in listed])
    text = rows_as_items.target_text(value, f"{where.path}, row {where.row}")
    if not text.strip():
        raise where.error(
            "has an empty target", "fill or drop the row; [] means that no call is right"
        )
    return text


def _target_call(
    value: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], where: _Place
) -> dict[str, Any]:
    call = _normal_call(value, where)
    del call["id"]
    _check_call(call, tools, where, "has a target that calls")
    free, others = value.get("free", []), value.get("or", {})
    if not isinstance(free, list) or not isinstance(others, dict):
        raise where.error("has a target whose 'free' is not a list or whose 'or' is not a mapping")
    marks = {name: value[name] for name in ("exact", "ordered") if name in value}
    if not all(isinstance(mark, bool) for mark in marks.values()):
        raise where.error("has a target whose 'exact' or 'ordered' is neither true nor false")
    marks = {name: True for name, mark in marks.items() if mark}
    return call | ({"free": free} if free else {}) | ({"or": others} if others else {}) | marks


def _target_of_turn(turn: Mapping[str, Any]) -> str:
    calls = [{k: c[k] for k in ("name", "arguments")} for c in turn.get("calls", ())]
    return json_line(calls) if calls else str(turn["content"])


def _contrast_fields(
    row: Row,
    turns: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    column: str,
    where: _Place,
) -> dict[str, str]:
    """Return the field with the user's contrasts: versions of the conversation with other meaning.

    A contrast has a different last turn (`say`) or different `messages`. Without contrasts, the
    mapping is empty.
    """
    value = _from_json(row.get("contrast"))
    versions: list[dict[str, Any]] = []
    for one in value if isinstance(value, list) else [value] if value else []:
        version = {"say": one} if isinstance(one, str) else one
        if not isinstance(version, dict) or not {"say", MESSAGES} & version.keys():
            raise where.error("has a contrast without messages or other content")
        if MESSAGES in version:
            others = list(_turns(version[MESSAGES], f"contrast.{MESSAGES}", where))
            _check_links(others, tools, where)
            said: dict[str, Any] = {MESSAGES: others}
        else:
            said = {"say": _content_text(version["say"], where)}
        target = version.get("target")
        versions.append(
            said | ({} if target is None else {"target": _target_text(target, tools, where)})
        )
    return {"contrast": json_line(versions)} if versions else {}
