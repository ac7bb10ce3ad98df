"""Conversations and tools in the form of each API: Responses, Anthropic, Gemini, chat templates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from falter.records.chats import Part, json_line, merged_turns, openai_tools, system_text, turns
from falter.records.errors import EndpointError, PreflightError, refusal
from falter.records.types import Message

CACHE_CONTROL = {"cache_control": {"type": "ephemeral"}}
OPENAPI_KEYS = frozenset({
    "type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems",
    "properties", "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern",
    "example", "anyOf", "propertyOrdering", "default", "minimum", "maximum",
})  # fmt: skip
"""The keys of schemas that Gemini takes as `parameters`: a part of OpenAPI, not JSON schema."""


# The Responses API


def responses_items(side: str, parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    """Yield a turn as items of the input; the server finds a result's call by the call's id."""
    for kind, value in parts:
        if kind == "text":
            yield {"role": side, "content": value}
        elif kind == "call":
            named = {"call_id": value["id"], "name": value["name"]}
            yield {"type": "function_call", **named, "arguments": json_line(value["arguments"])}
        else:
            yield {
                "type": "function_call_output",
                "call_id": value["id"],
                "output": value["content"],
            }


# Anthropic


def anthropic_turns(messages: tuple[Message, ...], keeps: bool) -> tuple[Any, list[dict[str, Any]]]:
    """Return the system text and the turns.

    If `keeps`, the last turn but one is marked to be cached, or the system text if there is only
    one turn. Results come first in a user turn, the only place where Anthropic takes them.
    """
    text = system_text(messages)
    turns: list[dict[str, Any]] = []
    for side, parts in merged_turns(messages):
        blocks = [_content_block(*part) for part in parts]
        if side == "user" and turns and turns[-1]["content"][0]["type"] == "tool_result":
            turns[-1]["content"] += blocks
        elif side != "system":
            role = "user" if side == "result" else side
            turns.append({"role": role, "content": blocks})
    system: Any = text or None
    if keeps and len(turns) > 1:
        turns[-2]["content"][-1] |= CACHE_CONTROL
    elif keeps and text:
        system = [{"type": "text", "text": text, **CACHE_CONTROL}]
    for turn in turns:
        first, *more = turn["content"]
        if not more and first.keys() == {"type", "text"}:
            turn["content"] = first["text"]
    return system, turns


def _content_block(kind: str, value: Any) -> dict[str, Any]:
    if kind == "text":
        return {"type": "text", "text": value}
    if kind == "call":
        named = {"id": value["id"], "name": value["name"]}
        return {"type": "tool_use", **named, "input": value["arguments"]}
    return {"type": "tool_result", "tool_use_id": value["id"], "content": value["content"]}


def anthropic_tool(text: str) -> dict[str, Any]:
    tool = json.loads(text)
    about = {k: tool[k] for k in ("name", "description") if k in tool}
    return {**about, "input_schema": tool["parameters"]}


# Gemini


def gemini_contents(messages: Sequence[Message], signs: bool) -> Iterator[dict[str, Any]]:
    """Yield the turns; with `signs`, the first call of each turn gets a placeholder signature.

    Gemini finds a result's call by name and order. A result is always sent as one text: if it were
    sent as an object whenever it parses, a perturbation that breaks its JSON would change its form.
    """
    names = {"": ""}
    for side, parts in merged_turns(messages):
        made: list[dict[str, Any]] = []
        for kind, value in parts:
            if kind == "text":
                made.append({"text": value})
            elif kind == "call":
                names[value["id"]] = value["name"]
                first = signs and not any("functionCall" in part for part in made)
                signed = {"thoughtSignature": "skip_thought_signature_validator"} if first else {}
                call = {"name": value["name"], "args": value["arguments"]}
                made.append({"functionCall": call, **signed})
            else:
                result = {"name": names[value["id"]], "response": {"output": value["content"]}}
                made.append({"functionResponse": result})
        if side != "system":
            yield {"role": "model" if side == "assistant" else "user", "parts": made}


def gemini_declaration(text: str, plain: bool) -> dict[str, Any]:
    tool = json.loads(text)
    about = {k: tool[k] for k in ("name", "description") if k in tool}
    if not plain:
        return {**about, "parametersJsonSchema": tool["parameters"]}
    _require_plain(tool["parameters"], tool["name"])
    return {**about, "parameters": tool["parameters"]}


def _require_plain(schema: Any, tool: str) -> None:
    """Raise `EndpointError` for a schema with keys that Gemini's `parameters` does not take."""
    rest = set(schema) - OPENAPI_KEYS if isinstance(schema, dict) else {"true or false"}
    if not rest and isinstance(schema.get("type"), list):
        rest = {"a list of types"}
    if rest:
        raise refusal(
            EndpointError, "clients.foreign_schema", tool=tool, rest=", ".join(sorted(rest))
        )
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for part in [*inner, *([schema["items"]] if "items" in schema else [])]:
        _require_plain(part, tool)


# Chat templates of tokenizers


def chat_text(
    tokenizer: Any,
    messages: Sequence[Message],
    offered: Sequence[str] = (),
    system: str | None = None,
) -> str:
    """Return a chat in the tokenizer's template, with the offered tools.

    Templates expect arguments as a mapping and every content as a text. Raise `PreflightError` if
    the template ignores the tools.
    """
    made = turns(messages, arguments=dict, silent="")
    if system is not None and all(role != "system" for role, _ in messages):
        made.insert(0, {"role": "system", "content": system})
    usual: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True}
    text: str = tokenizer.apply_chat_template(made, **usual)
    if offered:
        without = text
        text = tokenizer.apply_chat_template(made, tools=openai_tools(offered), **usual)
        if text == without:
            raise refusal(PreflightError, "clients.tools_ignored")
    return text
