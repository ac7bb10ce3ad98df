"""Conversations with tools as OpenAI's chat API gets them, and calls as it returns them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import falter
from falter.analysis.table import scored_cells
from falter.clients.openai_replies import read_chat
from falter.engine.scoring import run_scorers
from falter.records.types import Call
from falter.store.store import Store
from local_server import Asked, LocalServer, Reply
from routers import TOOLS, exact, rows

OPENED = {"role": "user", "content": "What do I owe on invoice A777?"}
MADE = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_invoice", "arguments": '{"invoice_number": "A777"}'},
}
HISTORY = [
    OPENED,
    {"role": "assistant", "content": None, "tool_calls": [MADE]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"total": "48.20 EUR"}'},
]


def faults(body: dict[str, Any]) -> list[str]:
    """Everything for which OpenAI's API would refuse a body."""
    found = [f"unknown field {name}" for name in body.keys() - FIELDS]
    for entry in body.get("tools", [{"type": "function", "function": TOOLS[0]}]):
        if entry.keys() != {"type", "function"} or entry["type"] != "function":
            found.append(f"tool {entry}")
        elif entry["function"].keys() - {"name", "description", "parameters", "strict"}:
            found.append(f"function {entry['function'].keys()}")
    waiting: list[str] = []
    for turn in body["messages"]:
        if turn["role"] == "tool":
            if turn.get("tool_call_id") not in waiting or not isinstance(turn["content"], str):
                found.append(f"result {turn}")
            else:
                waiting.remove(turn["tool_call_id"])
            continue
        if waiting:
            found.append(f"{turn['role']} before the result of {waiting}")
        calls = turn.get("tool_calls", ())
        if turn["role"] not in ("system", "user", "assistant") or (
            calls and turn["role"] != "assistant"
        ):
            found.append(f"turn {turn}")
        if not calls and not isinstance(turn["content"], str):
            found.append(f"content {turn}")
        for call in calls:
            json.loads(call["function"]["arguments"])
            waiting.append(call["id"])
    return found


FIELDS = {
    "model", "messages", "tools", "stream", "temperature", "max_tokens", "max_completion_tokens",
    "top_p", "stop", "seed",
}  # fmt: skip


def served(asked: Asked) -> Reply:
    """Calls as `exact` makes them, after a look at the body."""
    if asked.method == "GET":
        return 200, {"data": [{"id": "m"}]}
    found = faults(asked.body)
    if found:
        return 400, {"error": {"message": "; ".join(found)}}
    reply = exact(asked.body["messages"], asked.body.get("tools", []))
    message: dict[str, Any] = {"role": "assistant", "content": reply}
    if isinstance(reply, dict):
        function = {"name": reply["name"], "arguments": json.dumps(reply["arguments"])}
        call = {"id": "x", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "tool_calls" if isinstance(reply, dict) else "stop"
    return 200, {"choices": [{"message": message, "finish_reason": reason}], "model": "m"}


def test_a_run_sends_turns_tools_calls_and_results_and_reads_native_calls(tmp_path: Path) -> None:
    data = [*rows(6), {"messages": [*HISTORY, OPENED], "tools": TOOLS, "target": [
        {"name": "get_invoice", "arguments": {"invoice_number": "A777"}}]}]  # fmt: skip

    async def run() -> tuple[falter.Result, LocalServer]:
        async with LocalServer(served) as server:
            model = {"name": "openai:m", "base_url": server.base_url, "api_key_env": None}
            settings: dict[str, Any] = {
                "models": model,
                "recipes": ["tools", "controls", "persona"],
            }
            result = await asyncio.to_thread(
                falter.run,
                data={"rows": data, "target": "target"},
                store=str(tmp_path / "falter.db"),
                **settings,
            )
            return result, server

    result, server = asyncio.run(run())
    (panel,) = result.analysis.panels
    assert panel.counts.failed == 0 and panel.counts.unread == 0
    assert panel.baseline.value == 1.0
    bodies = [asked.body for asked in server.posted]
    assert all("tools" in body for body in bodies)
    assert any(body["messages"][:3] == HISTORY for body in bodies)
    assert any(entry["function"]["name"] == "cancelOrder" for b in bodies for entry in b["tools"])
    assert any(len(body["tools"]) == len(TOOLS) + 4 for body in bodies)
    with Store(tmp_path / "falter.db") as store:
        run_ = store.find_run().run
        how = {s.reason for _, s in scored_cells(store, run_, run_scorers(run_)) if s is not None}
    assert "native" in how


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
