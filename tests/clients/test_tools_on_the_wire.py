"""Conversations with tools as each API gets them, and calls as it returns them."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import falter
from falter.analysis.table import scored_cells
from falter.cli.app import invoke
from falter.clients.openai_replies import read_chat
from falter.engine.scoring import run_scorers
from falter.records.errors import FalterError
from falter.records.types import Call
from falter.store.store import Store
from local_server import Asked, LocalServer, Reply
from routers import TOOLS, Tools, Turns, exact, rows

OPENED = {"role": "user", "content": "What do I owe on invoice A777?"}
MADE = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_invoice", "arguments": '{"invoice_number": "A777"}'},
}
SECOND = {
    "id": "c2",
    "type": "function",
    "function": {"name": "track_parcel", "arguments": '{"parcel_id": "A1"}'},
}
HISTORY = [
    {"role": "system", "content": "You help customers."},
    {"role": "user", "content": "Good morning."},
    {"role": "assistant", "content": "How can I help?"},
    OPENED,
    {"role": "assistant", "content": "I look it up.", "tool_calls": [MADE, SECOND]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"total": "48.20 EUR"}'},
    {"role": "tool", "tool_call_id": "c2", "content": "near\nUtrecht"},
    {"role": "user", "content": "Again, please."},
    {"role": "assistant", "content": None, "tool_calls": [{**MADE, "id": "c3"}]},
    {"role": "tool", "tool_call_id": "c3", "content": '{"total": "48.20 EUR"}'},
    OPENED,
]


def same_answer(turns: Turns, tools: Tools) -> Any:
    """A call as `exact` makes it, or its text."""
    return exact([turn for turn in turns if turn["role"] == "user"], tools)


# One server a dialect: it refuses what the real one refuses, and reads the turns and tools back


def from_openai(body: dict[str, Any]) -> tuple[Turns, Tools]:
    allowed = {
        "model", "messages", "tools", "stream", "temperature", "max_tokens", "seed",
        "max_completion_tokens",
    }  # fmt: skip
    require(body.keys() <= allowed, f"unknown fields {body.keys() - allowed}")
    waiting: list[str] = []
    for turn in body["messages"]:
        calls = turn.get("tool_calls", ())
        if turn["role"] == "tool":
            require(turn["tool_call_id"] in waiting, f"result {turn}")
            waiting.remove(turn["tool_call_id"])
            continue
        require(not waiting, f"no result of {waiting}")
        require(bool(calls) or isinstance(turn["content"], str), f"content {turn}")
        for call in calls:
            require(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments")
            waiting.append(call["id"])
    for entry in body["tools"]:
        require(entry.keys() == {"type", "function"}, f"tool {entry}")
    return body["messages"], body["tools"]


def from_responses(body: dict[str, Any]) -> tuple[Turns, Tools]:
    turns: Turns = []
    for item in body["input"]:
        require("id" not in item, "ids begin with fc_")
        if item.get("type") == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            made = {"id": item["call_id"], "type": "function", "function": function}
            if turns[-1]["role"] != "assistant":
                turns.append({"role": "assistant", "content": None})
            turns[-1].setdefault("tool_calls", []).append(made)
        elif item.get("type") == "function_call_output":
            known = {c["id"] for t in turns for c in t.get("tool_calls", ())}
            require(item["call_id"] in known, f"no tool call found for {item['call_id']}")
            answered = {"tool_call_id": item["call_id"], "content": item["output"]}
            turns.append({"role": "tool", **answered})
        else:
            require(item.keys() == {"role", "content"}, f"item {item}")
            turns.append(item)
    for tool in body["tools"]:
        require(tool["type"] == "function" and tool["strict"] is False, f"tool {tool}")
    about = ("name", "description", "parameters")
    return turns, [
        {"type": "function", "function": {k: tool[k] for k in about}} for tool in body["tools"]
    ]


def from_anthropic(body: dict[str, Any]) -> tuple[Turns, Tools]:
    turns: Turns = [{"role": "system", "content": body["system"]}]
    waiting: list[str] = []
    before = ""
    for turn in body["messages"]:
        require(turn["role"] in ("user", "assistant"), f"role {turn['role']}")
        require(not waiting or turn["role"] != before, "results of one turn in two")
        before, content = turn["role"], turn["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kinds = [block["type"] for block in blocks]
        require(kinds == sorted(kinds, key=lambda kind: kind != "tool_result"), "results first")
        said: dict[str, Any] = {"role": turn["role"], "content": None}
        for block in blocks:
            if block["type"] == "tool_result":
                require(block["tool_use_id"] in waiting, f"unexpected tool_use_id {block}")
                waiting.remove(block["tool_use_id"])
                answered = {"tool_call_id": block["tool_use_id"], "content": block["content"]}
                turns.append({"role": "tool", **answered})
            elif block["type"] == "tool_use":
                require(isinstance(block["input"], dict), "input is no object")
                waiting.append(block["id"])
                function = {"name": block["name"], "arguments": json.dumps(block["input"])}
                said.setdefault("tool_calls", []).append(
                    {"id": block["id"], "type": "function", "function": function}
                )
            else:
                require(not waiting and bool(block["text"]), "text before results, or empty")
                said["content"] = block["text"]
        require(turn["role"] == "assistant" or not waiting, f"no result of {waiting}")
        if said["content"] is not None or "tool_calls" in said:
            turns.append(said)
    about = {"name", "description", "input_schema"}
    require(all(tool.keys() == about for tool in body["tools"]), "tools")
    return turns, openai_form(body["tools"], "input_schema")


def from_gemini(body: dict[str, Any]) -> tuple[Turns, Tools]:
    turns: Turns = [{"role": "system", "content": body["systemInstruction"]["parts"][0]["text"]}]
    waiting: list[str] = []
    made = 0
    for content in body["contents"]:
        require(content["role"] in ("user", "model"), f"role {content['role']}")
        said: dict[str, Any] = {
            "role": {"model": "assistant"}.get(content["role"], "user"), "content": None,
        }  # fmt: skip
        results = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
        require([r["name"] for r in results] == waiting, "as many responses as calls, in order")
        for n, answer in enumerate(results):
            require(isinstance(answer["response"], dict), "response is no object")
            number = made - len(waiting) + n + 1
            answered = {"tool_call_id": f"c{number}", "content": answer["response"]["output"]}
            turns.append({"role": "tool", **answered})
        waiting = []
        for part in content["parts"]:
            if "functionCall" in part:
                made += 1
                if not waiting and part.get("thoughtSignature") != SKIP:
                    raise Refused("Function call is missing a thought_signature in functionCall")
                require(not waiting or "thoughtSignature" not in part, "siblings are unsigned")
                call = part["functionCall"]
                waiting.append(call["name"])
                function = {"name": call["name"], "arguments": json.dumps(call["args"])}
                said.setdefault("tool_calls", []).append(
                    {"id": f"c{made}", "type": "function", "function": function}
                )
            elif "text" in part:
                said["content"] = part["text"]
        if said["content"] is not None or "tool_calls" in said:
            turns.append(said)
    (tools,) = body["tools"]
    if any("parametersJsonSchema" in tool for tool in tools["functionDeclarations"]):
        raise Refused("Unknown name \"parametersJsonSchema\" at 'tools[0]': Cannot find field.")
    return turns, openai_form(tools["functionDeclarations"], "parameters")


SKIP = "skip_thought_signature_validator"


class Refused(Exception):
    """A refusal that a server answers with HTTP 400."""


def require(holds: bool, said: str) -> None:
    if not holds:
        raise Refused(said)


def openai_form(tools: list[dict[str, Any]], key: str) -> Tools:
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"], "description": tool["description"], "parameters": tool[key],
            },
        }
        for tool in tools
    ]  # fmt: skip


def as_openai(reply: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply}
    if isinstance(reply, dict):
        function = {"name": reply["name"], "arguments": json.dumps(reply["arguments"])}
        call = {"id": "x", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "model": "m"}


def as_responses(reply: Any) -> dict[str, Any]:
    said = {"type": "message", "content": [{"type": "output_text", "text": reply}]}
    if isinstance(reply, dict):
        arguments = json.dumps(reply["arguments"])
        said = {"type": "function_call", "call_id": "x", "name": reply["name"]}
        said["arguments"] = arguments
    return {"status": "completed", "output": [said], "model": "m"}


def as_anthropic(reply: Any) -> dict[str, Any]:
    block = {"type": "text", "text": reply}
    if isinstance(reply, dict):
        block = {"type": "tool_use", "id": "x", "name": reply["name"], "input": reply["arguments"]}
    usage = {"input_tokens": 3, "output_tokens": 1}
    return {"content": [block], "stop_reason": "tool_use", "usage": usage, "model": "m"}


def as_gemini(reply: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"text": reply}
    if isinstance(reply, dict):
        part = {"functionCall": {"name": reply["name"], "args": reply["arguments"]}}
    return {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}


DIALECTS: dict[str, tuple[Callable[[Any], tuple[Turns, Tools]], Callable[[Any], Any]]] = {
    "openai": (from_openai, as_openai),
    "responses": (from_responses, as_responses),
    "anthropic": (from_anthropic, as_anthropic),
    "gemini": (from_gemini, as_gemini),
}


@pytest.mark.parametrize("client", DIALECTS)
def test_one_conversation_goes_out_in_every_dialect_and_native_calls_are_read(
    client: str, tmp_path: Path
) -> None:
    """The server reads turns and tools back out of the body: they are those of the file."""
    last = {"name": "get_invoice", "arguments": {"invoice_number": "A777"}}
    data = [*rows(6), {"messages": HISTORY, "tools": TOOLS, "target": [last]}]
    decode, encode = DIALECTS[client]
    heard: list[tuple[Turns, Tools]] = []
    refused: list[str] = []

    def served(asked: Asked) -> Reply:
        if asked.method == "GET":
            return 200, {"data": [{"id": "m"}]}
        try:
            heard.append(decode(asked.body))
        except Refused as error:
            refused.append(str(error))
            return 400, {"error": {"message": str(error)}}
        return 200, encode(same_answer(*heard[-1]))

    async def run() -> falter.Result:
        async with LocalServer(served) as server:
            return await asyncio.to_thread(
                falter.run,
                data={"rows": data, "target": "target"},
                models={"name": f"{client}:m", "base_url": server.base_url},
                recipes=["tools", "controls", "persona"],
                store=str(tmp_path / "falter.db"),
            )

    result = asyncio.run(run())
    (panel,) = result.analysis.panels
    assert panel.counts.failed == 0 and panel.counts.unread == 0
    assert panel.baseline.value == 1.0
    assert (HISTORY, openai_form(TOOLS, "parameters")) in [(t, o) for t, o in heard]
    offered = [[entry["function"]["name"] for entry in tools] for _, tools in heard]
    assert any("cancelOrder" in names for names in offered)
    assert any(len(names) == len(TOOLS) + 4 for names in offered)
    with Store(tmp_path / "falter.db") as store:
        run_ = store.find_run().run
        cells = list(scored_cells(store, run_, run_scorers(run_)))
        how = {s.reason for _, s in cells if s is not None}
        served_by = {c.response.served_by for c, _ in cells if c.response is not None}
    assert "native" in how and "from text" not in how
    if client == "gemini":
        assert {word.partition(" ")[0] for word in refused} == {"Unknown", "Function"}
        assert any(SKIP in str(name) for name in served_by)
    else:
        assert not refused


def asked_of(
    client: str,
    served: Callable[[Asked], Reply],
    tools: Tools = TOOLS,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[falter.Result | FalterError, LocalServer]:
    """A run of the conversation with one server; the error where it ends in one."""

    async def run() -> tuple[falter.Result | FalterError, LocalServer]:
        async with LocalServer(served) as server:
            how = options if "api" in options else {"options": options}
            remote = {} if client == "smollm2" else {"base_url": server.base_url}
            try:
                return await asyncio.to_thread(
                    falter.run,
                    data={"rows": [{"messages": HISTORY, "tools": tools}]},
                    same="call",
                    models={"name": client, "max_attempts": 1, **how, **remote},
                    recipes=["persona"],
                    store=Path(tempfile.mkdtemp()) / "falter.db",
                ), server
            except FalterError as error:
                return error, server

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("client", "options", "words", "advice"),
    [
        ("anthropic:m", {"thinking_tokens": 2000}, "with earlier tool calls", "drop the option"),
        ("openai:m", {"api": "completions"}, "with tools, which", "use a chat server"),
        ("smollm2", {}, "with tools, which", "serve the file with llama-server --jinja"),
        ("responses:m", {"tools": [{"type": "web_search"}]}, "tools", "falter does not set itself"),
    ],
)
def test_what_a_client_cannot_send_is_refused_before_anything_is_sent(
    client: str, options: dict[str, Any], words: str, advice: str
) -> None:
    error, server = asked_of(client, lambda _: (200, {}), options=options)
    assert isinstance(error, FalterError)
    assert words in error.message and advice in f"{error.message} {error.hint}"
    assert server.asked == []


def test_what_geminis_older_schema_cannot_hold_is_a_failure_and_not_cut() -> None:
    schema = {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}
    tools = [*TOOLS, {"name": "f", "description": "d", "parameters": schema}]

    def served(asked: Asked) -> Reply:
        if asked.method == "GET":
            return 200, {"models": [{"name": "models/m"}]}
        said = 'Unknown name "parametersJsonSchema": Cannot find field.'
        assert "parametersJsonSchema" in str(asked.body)
        return 400, {"error": {"message": said}}

    result, server = asked_of("gemini:m", served, tools)
    assert "the schema of the tool f uses a list of types" in str(result)
    assert server.posted


@pytest.mark.parametrize(("client", "told"), [("anthropic:m", True), ("openai:m", False)])
def test_a_system_turn_in_the_middle_moves_to_the_front_where_there_is_no_other_place(
    client: str, told: bool
) -> None:
    late = [HISTORY[0], HISTORY[1], {"role": "system", "content": "Be brief."}, OPENED]
    settings = {"data": {"rows": [{"messages": late, "tools": TOOLS}]}, "same": "call"}
    planned = falter.plan({**settings, "models": client, "recipes": ["persona"]})
    said = "which anthropic:m receives before all other turns"
    assert any(said in note for note in planned.notes) == told


def test_an_absent_content_that_a_server_refuses_is_sent_as_an_empty_text() -> None:
    def served(asked: Asked) -> Reply:
        if asked.method == "GET":
            return 200, {"data": [{"id": "m"}]}
        if any(turn["content"] is None for turn in asked.body["messages"]):
            return 400, {"error": {"message": "messages[8].content: invalid type: null"}}
        return 200, as_openai("Hello.")

    result, server = asked_of("openai:m", served)
    assert isinstance(result, falter.Result)
    (panel,) = result.analysis.panels
    assert panel.counts.failed == 0
    assert panel.served_by == ("m, absent content sent as an empty text",)
    assert [turn["content"] for turn in server.posted[-1].body["messages"]].count("") == 1


def test_odd_calls_of_a_server_are_no_calls() -> None:
    """Hostile replies: no list, no name, arguments that are no text, a thousand calls."""
    odd: list[Any] = [None, 3, "x", [3], [{}], [{"function": 3}], [{"function": {"name": 3}}]]
    for calls in odd:
        answer = read_chat({"choices": [{"message": {"content": "", "tool_calls": calls}}]})
        assert answer.calls == ()
    many = [{"function": {"name": "f" * 999, "arguments": {"a": [1]}}}] * 1000
    calls = read_chat({"choices": [{"message": {"content": None, "tool_calls": many}}]}).calls
    assert len(calls) == 128
    assert calls[0] == Call(name="f" * 200, arguments='{"a": [1]}')
    halved = [{"function": {"name": "f", "arguments": '{"a": "\ud800"}'}}]
    answer = read_chat({"choices": [{"message": {"tool_calls": halved}}]})
    assert answer.calls[0].arguments == '{"a": "\ufffd"}'


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({"name": "track_parcel", "arguments": {"parcel_id": "A1042"}}, "tools: native call: [{"),
        ('{"name": "track_parcel", "arguments": {}}', "tools: call in the text: [{"),
        ("It is in Utrecht.", "tools: no call: 'It is in Utrecht.'"),
    ],
)
def test_the_doctor_says_how_a_call_comes(
    reply: Any, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One request that offers one tool, beside the list of models."""

    async def main() -> LocalServer:
        async with LocalServer(lambda asked: (200, as_openai(reply))) as server:
            command = ["doctor", "-m", "openai:m", "--base-url", server.base_url, "--tools"]
            assert await asyncio.to_thread(invoke, command) == 0
            return server

    (asked,) = asyncio.run(main()).posted
    assert [entry["function"]["name"] for entry in asked.body["tools"]] == ["track_parcel"]
    assert told in capsys.readouterr().out


def test_the_doctor_offers_no_tool_to_who_takes_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "-m", "simulated:m", "--tools"]) == 0
    assert "tools: takes none" in capsys.readouterr().out
