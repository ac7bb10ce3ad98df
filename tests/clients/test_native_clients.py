"""`anthropic:`, `gemini:` and `responses:` against servers that check every field."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import falter
from falter.clients import ClientSettings, clients
from falter.engine.execution import run_async
from falter.records.errors import AuthenticationError, InvalidValue, PreflightError
from falter.records.types import BASELINE, Item, Prompt, Request, Response, Sampling, Usage, Variant
from local_server import Asked, LocalServer, Reply

KEY = "nk-very-secret-0123456789"
VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY", "responses": "OPENAI_API_KEY",
}  # fmt: skip
HEADERS = {
    "anthropic": ("x-api-key", KEY),
    "gemini": ("x-goog-api-key", KEY),
    "responses": ("authorization", f"Bearer {KEY}"),
}
TURNS = (("system", "Be brief."), ("user", "Two?"), ("assistant", "2"), ("user", "Three?"))


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.setenv(variable, KEY)


def claude(*blocks: dict[str, Any], stop: str = "end_turn", **usage: int) -> Reply:
    """An answer of the Messages API."""
    return 200, {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-20250101",
        "content": list(blocks), "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 30, "output_tokens": 5, **usage},
    }  # fmt: skip


def gemini(*parts: dict[str, Any], finish: str = "STOP", **more: Any) -> Reply:
    """An answer of `generateContent`."""
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    usage = {"promptTokenCount": 30, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    return 200, {
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-x-001",
        "responseId": "g1", **more,
    }  # fmt: skip


def openai(*output: dict[str, Any], status: str = "completed", **more: Any) -> Reply:
    """An answer of the Responses API."""
    usage = {
        "input_tokens": 30, "output_tokens": 12,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens_details": {"reasoning_tokens": 7},
    }  # fmt: skip
    return 200, {
        "id": "resp_1", "model": "gpt-x-2025", "status": status, "error": None,
        "incomplete_details": None, "output": list(output), "usage": usage, **more,
    }  # fmt: skip


def message(**part: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [part]}


def asked(
    client: str,
    answer: Callable[[Asked], Reply],
    *,
    sampling: Sampling | None = None,
    turns: Any = TURNS,
    **options: Any,
) -> tuple[Response, list[Asked]]:
    """One request to a server that checks the key; the response, and what was posted."""

    def serve(request: Asked) -> Reply:
        name, value = HEADERS[client]
        assert request.headers.get(name) == value
        assert request.headers["content-type"] == "application/json"
        return answer(request)

    async def main() -> tuple[Response, list[Asked]]:
        async with LocalServer(serve) as server:
            settings = ClientSettings(
                name="model-x", base_url=server.base_url, options=options, max_attempts=2,
                max_wait=0.01, api_key_env=VARIABLES[client],
            )  # fmt: skip
            connected = clients.get(client)(settings)
            variant = Variant(
                item=Item(task="t", key="k", fields={}), recipe=BASELINE, draw=0,
                prompt=Prompt(sections=()), status="baseline",
            )  # fmt: skip
            request = Request(
                key="k", variant=variant, model=connected.model, repeat=0, messages=turns,
                context="" if turns else "Plain?",
                sampling=sampling or Sampling(max_tokens=64),
            )  # fmt: skip
            try:
                return await connected.generate(request), server.posted
            finally:
                await connected.close()

    return run_async(main)


FULL = Sampling(max_tokens=64, temperature=0.5, top_p=0.9, stop=("\n\n",), seed=3)
GOOD: dict[str, Reply] = {
    "anthropic": claude({"type": "text", "text": "3"}),
    "gemini": gemini({"text": "3"}),
    "responses": openai(message(type="output_text", text="3")),
}
MESSAGES = [
    {"role": "user", "content": "Two?"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "Three?"},
]
CONTENTS = [
    {"role": "user", "parts": [{"text": "Two?"}]},
    {"role": "model", "parts": [{"text": "2"}]},
    {"role": "user", "parts": [{"text": "Three?"}]},
]
SYSTEM = {"role": "system", "content": "Be brief."}

# client, sampling, options, path, body
SENT: list[tuple[str, Sampling | None, dict[str, Any], str, dict[str, Any]]] = [
    ("anthropic", None, {}, "/v1/messages", {
        "model": "model-x", "stream": False, "system": "Be brief.", "messages": MESSAGES,
        "max_tokens": 64,
        "temperature": 0.0,
    }),
    ("anthropic", FULL, {"top_k": 5}, "/v1/messages", {
        "model": "model-x", "stream": False, "system": "Be brief.", "messages": MESSAGES,
        "max_tokens": 64,
        "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["\n\n"], "top_k": 5,
    }),
    ("anthropic", None, {"thinking_tokens": 2000, "cache": True}, "/v1/messages", {
        "model": "model-x", "stream": False, "system": "Be brief.", "max_tokens": 2064,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "messages": [MESSAGES[0], {"role": "assistant", "content": [
            {"type": "text", "text": "2", "cache_control": {"type": "ephemeral"}},
        ]}, MESSAGES[2]],
    }),
    ("anthropic", None, {"temperature": None}, "/v1/messages", {
        "model": "model-x", "stream": False, "system": "Be brief.", "messages": MESSAGES,
        "max_tokens": 64,
    }),
    ("gemini", None, {}, "/v1/models/model-x:generateContent", {
        "contents": CONTENTS, "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0.0, "maxOutputTokens": 64},
    }),
    ("gemini", FULL, {"topK": 5, "thinking_budget": 0}, "/v1/models/model-x:generateContent", {
        "contents": CONTENTS, "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {
            "temperature": 0.5, "topP": 0.9, "maxOutputTokens": 64, "stopSequences": ["\n\n"],
            "seed": 3, "topK": 5, "thinkingConfig": {"thinkingBudget": 0},
        },
    }),
    ("gemini", None, {"thinking_budget": 512, "safety_threshold": "BLOCK_NONE"},
     "/v1/models/model-x:generateContent", {
        "contents": CONTENTS, "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {
            "temperature": 0.0, "maxOutputTokens": 576, "thinkingConfig": {"thinkingBudget": 512},
        },
        "safetySettings": [
            {"category": f"HARM_CATEGORY_{name}", "threshold": "BLOCK_NONE"}
            for name in ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
        ],
    }),
    ("responses", None, {}, "/v1/responses", {
        "model": "model-x", "input": [SYSTEM, *MESSAGES], "max_output_tokens": 64,
        "temperature": 0.0, "store": False, "stream": False,
    }),
    ("responses", FULL, {"reasoning": {"effort": "low"}}, "/v1/responses", {
        "model": "model-x", "input": [SYSTEM, *MESSAGES], "max_output_tokens": 64,
        "temperature": 0.5, "top_p": 0.9, "store": False, "stream": False,
        "reasoning": {"effort": "low"},
    }),
]  # fmt: skip


@pytest.mark.parametrize(("client", "sampling", "options", "path", "body"), SENT)
def test_what_is_sent(
    client: str,
    sampling: Sampling | None,
    options: dict[str, Any],
    path: str,
    body: dict[str, Any],
) -> None:
    """Every field and no other; the key in the header that the provider wants."""
    response, (sent,) = asked(client, lambda _: GOOD[client], sampling=sampling, **options)
    assert (sent.path, sent.body) == (path, body)
    assert (response.text, response.finish_reason) == ("3", "stop")


@pytest.mark.parametrize("base", ["http://localhost:4000", "http://gateway.example/anthropic"])
def test_anthropics_address_may_end_with_v1_or_not(base: str) -> None:
    """Its own library writes it without, and both are one model with the same stored answers."""
    given = [ClientSettings(name="x", base_url=base + end) for end in ("", "/", "/v1", "/v1/")]
    models = [clients.get("anthropic")(settings).model for settings in given]
    assert {model.base_url for model in models} == {f"{base}/v1"}


@pytest.mark.parametrize("client", VARIABLES)
def test_a_plain_prompt_is_one_user_turn(client: str) -> None:
    _, (sent,) = asked(client, lambda _: GOOD[client], turns=())
    turns = sent.body.get("messages") or sent.body.get("input") or sent.body.get("contents")
    assert len(turns) == 1 and "Plain?" in str(turns[0])


def test_a_system_turn_is_the_prefix_where_there_is_no_other() -> None:
    _, (sent,) = asked(
        "anthropic", lambda _: GOOD["anthropic"], turns=(TURNS[0], TURNS[3]), cache=True
    )
    kept = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    assert sent.body["system"] == [kept]


TEXT = {"type": "text", "text": "3"}
READ: list[tuple[str, Reply, dict[str, Any]]] = [
    ("anthropic", claude({"type": "thinking", "thinking": "Easy.", "signature": "x"},
                         {"type": "redacted_thinking", "data": "y"}, TEXT,
                         cache_read_input_tokens=100, cache_creation_input_tokens=7),
     {"text": "3", "reasoning": "Easy.", "tokens": (137, 5, 0, 100), "finish_reason": "stop",
      "served_by": "claude-x-20250101", "request_id": "msg_1"}),
    ("anthropic", claude({"type": "thinking", "thinking": "Well"}, stop="max_tokens"),
     {"text": "", "reasoning": "Well", "finish_reason": "length", "ran_out": True}),
    ("anthropic", claude(stop="refusal"), {"text": "", "finish_reason": "refusal"}),
    ("anthropic", claude(TEXT, stop="stop_sequence"), {"text": "3", "finish_reason": "stop"}),
    ("anthropic", (200, {"content": "odd"}), {"failed": "unusable answer after 2 attempts"}),
    ("anthropic", (529, {"type": "error", "error": {"type": "overloaded", "message": "busy"}}),
     {"failed": "HTTP 529 after 2 attempts: busy"}),
    ("gemini", gemini({"text": "Easy.", "thought": True}, {"text": "3"}),
     {"text": "3", "reasoning": "Easy.", "tokens": (30, 12, 7, 0), "finish_reason": "stop",
      "served_by": "gemini-x-001", "request_id": "g1"}),
    ("gemini", gemini(finish="MAX_TOKENS"),
     {"text": "", "finish_reason": "length", "ran_out": True}),
    ("gemini", gemini(finish="SAFETY"), {"text": "", "finish_reason": "safety"}),
    ("gemini", gemini(finish="RECITATION"), {"text": "", "finish_reason": "recitation"}),
    ("gemini", (200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
     {"text": "", "finish_reason": "content_filter"}),
    ("gemini", (200, {"promptFeedback": {"blockReason": "SAFETY"}}),
     {"text": "", "finish_reason": "safety"}),
    ("gemini", (200, {}), {"failed": "unusable answer after 2 attempts: no candidates"}),
    ("responses", openai({"type": "reasoning", "summary": [{"type": "x", "text": "Easy."}]},
                         message(type="output_text", text="3")),
     {"text": "3", "reasoning": "Easy.", "tokens": (30, 12, 7, 20), "finish_reason": "stop",
      "served_by": "gpt-x-2025", "request_id": "resp_1"}),
    ("responses", openai({"type": "reasoning", "summary": []}, status="incomplete",
                         incomplete_details={"reason": "max_output_tokens"}),
     {"text": "", "finish_reason": "length", "ran_out": True}),
    ("responses", openai(message(type="refusal", refusal="I can't.")),
     {"text": "I can't.", "finish_reason": "refusal"}),
    ("responses", openai(status="incomplete", incomplete_details={"reason": "content_filter"}),
     {"text": "", "finish_reason": "content_filter"}),
    ("responses", openai(status="failed", error={"code": "server_error", "message": "oops"}),
     {"failed": "unusable answer after 2 attempts: failed: {'code': 'server_error'"}),
]  # fmt: skip


@pytest.mark.parametrize(("client", "reply", "expected"), READ)
def test_what_is_read(client: str, reply: Reply, expected: dict[str, Any]) -> None:
    """Thinking apart, tokens by kind, and every reason to stop in one set of words."""
    response, _ = asked(client, lambda _: reply)
    failure = expected.pop("failed", None)
    assert (response.failure or "").startswith(failure or "")
    assert (response.failure is None) == (failure is None)
    usage = response.usage
    counted = (
        usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens,
    )  # fmt: skip
    assert counted == expected.pop("tokens", counted)
    assert {name: getattr(response, name) for name in expected} == expected


def test_stop_sequences_that_the_responses_api_lacks_are_cut_here() -> None:
    reply = openai(message(type="output_text", text="3\n\nAnd four?"))
    response, _ = asked("responses", lambda _: reply, sampling=FULL)
    assert (response.text, response.finish_reason) == ("3", "stop")


@pytest.mark.parametrize(
    ("client", "words", "gone"),
    [
        ("anthropic", "`temperature` is deprecated for this model.", "temperature"),
        ("anthropic", "`temperature` may only be set to 1 when thinking is on", "temperature"),
        ("gemini", 'Unknown name "temperature" at \'generation_config\': Cannot find field.',
         "temperature"),
        ("responses", "Unsupported parameter: 'temperature' is not supported with this model.",
         "temperature"),
    ],
)  # fmt: skip
def test_a_field_that_is_refused_is_left_out(client: str, words: str, gone: str) -> None:
    """As for `openai:`: learnt once, and stored with the answer."""

    def answer(request: Asked) -> Reply:
        fields = request.body.get("generationConfig", request.body)
        return (400, {"error": {"message": words}}) if gone in fields else GOOD[client]

    response, posted = asked(client, answer)
    assert len(posted) == 2
    assert (response.served_by or "").endswith("asked without temperature")


def run_at(client: str, answer: Callable[[Asked], Reply], tmp_path: Path, name: str = "x") -> Any:
    async def main() -> Any:
        async with LocalServer(answer) as server:
            return await asyncio.to_thread(
                falter.run, task="basics", recipes=["identity"], limit=3, scorer="choice_letter",
                models=[{"name": f"{client}:{name}", "base_url": server.base_url,
                         "api_key_env": VARIABLES[client]}],
                store=tmp_path / "falter.db",
            )  # fmt: skip

    return run_async(main)


@pytest.mark.parametrize("client", VARIABLES)
def test_a_whole_run(client: str, tmp_path: Path) -> None:
    """From preflight to the report."""
    listed = {"data": [{"id": "x"}], "models": [{"name": "models/x"}]}

    def answer(request: Asked) -> Reply:
        return GOOD[client] if request.method == "POST" else (200, listed)

    result = run_at(client, answer, tmp_path)
    (panel,) = result.analysis.panels
    assert panel.counts.cells == 6 and panel.counts.failed == 0


@pytest.mark.parametrize("client", VARIABLES)
def test_a_refused_key_ends_it_unseen(client: str, tmp_path: Path) -> None:
    """Before the first request where the list says so, else with it."""
    refused: Reply = (401, {"error": {"message": f"bad {KEY}"}})
    with pytest.raises(PreflightError, match=VARIABLES[client]) as caught:
        run_at(client, lambda _: refused, tmp_path)
    assert KEY not in str(caught.value)
    with pytest.raises(AuthenticationError) as stopped:
        run_at(client, lambda a: refused if a.method == "POST" else (404, {}), tmp_path)
    assert KEY not in str(stopped.value)


@pytest.mark.parametrize("client", VARIABLES)
def test_a_missing_key_is_named_before_anything_is_sent(
    client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLES[client])
    connected = clients.get(client)(ClientSettings(name="x"))

    async def check() -> None:
        await connected.check()

    with pytest.raises(PreflightError, match=f"variable {VARIABLES[client]} is not set"):
        run_async(check)


@pytest.mark.parametrize("client", VARIABLES)
def test_fields_of_falters_own_are_refused(client: str) -> None:
    for settings in ({"name": ""}, {"name": "x", "options": {"temperature": 1}},
                     {"name": "x", "base_url": "http://localhost/v1/models"}):  # fmt: skip
        with pytest.raises(InvalidValue):
            clients.get(client)(ClientSettings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("client", VARIABLES)
def test_a_native_client_is_short(client: str) -> None:
    """What a provider costs beside the transport."""
    from falter import clients as room

    code = (Path(room.__file__).parent / f"{client}.py").read_text("utf-8")
    assert len(code.partition("\n# Batches")[0].splitlines()) <= 190


def test_no_count_of_tokens_is_negative() -> None:
    """Of an Inspect model, whose counts are a provider's."""
    from falter.integrations.inspect_client import _usage

    said = SimpleNamespace(
        input_tokens=-9, output_tokens=-5, input_tokens_cache_read=None, input_tokens_cache_write=2
    )
    assert _usage(said) == Usage()
