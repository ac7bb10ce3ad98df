"""The OpenAI-compatible client against a server that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import math
import os
import re
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

import aiohttp
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falter.clients import ClientSettings, Transport, UnusableAnswer, clients, connection
from falter.clients.connection import is_loopback, normal_url, proxy_for
from falter.clients.limiter import Limiter
from falter.clients.openai import OpenAI, connect
from falter.clients.openai_replies import Scoring, _spell_prompt, read_chat, read_completion
from falter.clients.retry import asked_wait, read_error
from falter.clients.transport import listed_models
from falter.records.codec import from_json, to_json
from falter.records.errors import (
    AuthenticationError,
    EndpointError,
    FalterError,
    InvalidValue,
    PreflightError,
    RunStopped,
)
from falter.records.types import (
    BASELINE,
    Item,
    Message,
    Prompt,
    Request,
    Response,
    Sampling,
    Variant,
)
from faulty_server import FaultyServer, _completion, logprob, tokens_of
from idle_time import run_in_idle_time
from odd_replies import odd_replies

T = TypeVar("T")
KEY = "sk-very-secret-0123456789"
VARIANT = Variant(
    item=Item(task="t", key="k", fields={}),
    recipe=BASELINE,
    draw=0,
    prompt=Prompt(sections=()),
    status="baseline",
)
SETTINGS: dict[str, Any] = {"name": "mock", "timeout": 5.0, "max_attempts": 4, "max_wait": 0.02}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and proxies of the machine that runs the tests stay out."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name == "OPENAI_API_KEY":
            monkeypatch.delenv(name)


def client_of(server: FaultyServer | str, **given: Any) -> OpenAI:
    base_url = server if isinstance(server, str) else server.base_url
    return OpenAI(ClientSettings(**{**SETTINGS, "base_url": base_url, **given}))


def request_of(
    client: OpenAI,
    text: str = "Which one?",
    *,
    key: str = "key",
    messages: tuple[Message, ...] | None = None,
    context: str = "",
    continuations: tuple[str, ...] = (),
    sampling: Sampling | None = None,
) -> Request:
    if messages is None:
        messages = () if context or continuations else (("user", text),)
    return Request(
        key=key,
        variant=VARIANT,
        model=client.model,
        sampling=sampling or Sampling(max_tokens=16),
        repeat=0,
        messages=messages,
        context=context,
        continuations=continuations,
    )


def served(
    body: Callable[[FaultyServer, OpenAI], Awaitable[T]],
    *,
    client: dict[str, Any] | None = None,
    **server: Any,
) -> tuple[T, FaultyServer]:
    """Run `body` with a server and a client of it, both closed afterwards, in idle time."""

    async def main() -> tuple[T, FaultyServer]:
        async with FaultyServer(**server) as faulty:
            connected = client_of(faulty, **(client or {}))
            try:
                return await body(faulty, connected), faulty
            finally:
                await connected.close()

    clock = {"clock": lambda: asyncio.get_running_loop().time()}
    with mock.patch.dict(Limiter.__init__.__kwdefaults__ or {}, clock):
        return run_in_idle_time(asyncio.wait_for(main(), 600))


def ask(**given: Any) -> tuple[Response, FaultyServer]:
    """One question to a server."""

    async def body(_: FaultyServer, connected: OpenAI) -> Response:
        return await connected.generate(request_of(connected))

    return served(body, **given)


async def until(true: Callable[[], bool]) -> None:
    """Wait until something has happened in the server."""
    while not true():
        await asyncio.sleep(0.002)


# Generating


def test_chat_sends_what_was_asked() -> None:
    """A chat body holds model, messages and every sampling setting; the answer fills the record."""

    async def body(server: FaultyServer, connected: OpenAI) -> Response:
        sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=7, stop=("\n",), seed=3)
        turns = (("system", "Be brief."), ("user", "Grüße, „wer“?"))
        return await connected.generate(
            request_of(connected, messages=turns, sampling=sampling, key="abc")
        )

    before, started = time.time(), time.perf_counter()
    response, server = served(body)
    assert server.bodies == [
        {
            "model": "mock",
            "stream": False,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Grüße, „wer“?"},
            ],
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 7,
            "stop": ["\n"],
            "seed": 3,
        }
    ]
    assert response.key == "abc"
    assert response.text is not None
    assert response.text.startswith("Answer: ")
    assert response.finish_reason == "stop"
    assert response.usage.prompt_tokens == 40
    assert response.usage.completion_tokens == 3
    assert response.served_by == "fp_mock"
    assert response.failure is None
    assert 0 < response.latency < time.perf_counter() - started
    assert before <= response.received_at <= time.time()


def test_unset_stop_and_seed_are_left_out() -> None:
    """Stop and seed are sent only when they are set."""
    _, server = ask()
    assert set(server.bodies[0]) == {
        "model", "messages", "temperature", "max_tokens", "stream",
    }  # fmt: skip


def test_a_plain_prompt_becomes_one_user_turn_in_chat() -> None:
    """A request without messages is sent to a chat API as one user message."""

    async def body(server: FaultyServer, connected: OpenAI) -> Response:
        return await connected.generate(request_of(connected, context="Once upon"))

    _, server = served(body)
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "Once upon"}]


def test_completions_send_the_plain_prompt() -> None:
    """With the completions API the context goes out as it is, and messages are joined."""

    async def body(server: FaultyServer, connected: OpenAI) -> list[Response]:
        first = await connected.generate(request_of(connected, context="Once upon"))
        turns = (("system", "Be brief."), ("user", "Who?"))
        second = await connected.generate(request_of(connected, messages=turns))
        return [first, second]

    responses, server = served(body, client={"api": "completions"})
    assert [b["prompt"] for b in server.bodies] == ["Once upon", "Be brief.\n\nWho?"]
    assert all(r.text is not None and "Answer: " in r.text for r in responses)


def test_options_are_body_fields_and_part_of_the_model() -> None:
    """Options go into every body; None leaves a field out; both are part of the model record."""
    options = {"top_k": 5, "extra": {"a": [1, None]}, "temperature": None, "max_tokens": None}

    async def body(_: FaultyServer, connected: OpenAI) -> OpenAI:
        await connected.generate(request_of(connected))
        return connected

    connected, server = served(body, client={"options": options})
    assert set(server.bodies[0]) == {"model", "stream", "messages", "top_k", "extra"}
    assert server.bodies[0]["extra"] == {"a": [1, None]}
    assert connected.model.options == {"api": "chat", **options}
    assert connected.model.id != client_of(server).model.id


@pytest.mark.parametrize("name", ["messages", "model", "stream", "n", "echo", "api"])
def test_fields_falter_sets_are_refused(name: str) -> None:
    """An option cannot replace what falter itself sends."""
    with pytest.raises(InvalidValue, match=f"options.{name}"):
        client_of("http://localhost:1/v1", options={name: 1})


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens", "seed", "stop"])
def test_sampling_belongs_in_the_sampling_settings(name: str) -> None:
    """A sampling value among the options is refused, with the place where it belongs."""
    with pytest.raises(InvalidValue, match="the experiment's settings"):
        client_of("http://localhost:1/v1", options={name: 1})


def test_openai_itself_gets_its_own_limit_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's chat models take max_completion_tokens; its completions take max_tokens."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for api, field in (("chat", "max_completion_tokens"), ("completions", "max_tokens")):
        connected = OpenAI(ClientSettings(name="m", api=api))  # type: ignore[arg-type]
        assert orjson.loads(connected._body(request_of(connected)))[field] == 16


ANSWERS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"message": {"content": None}, "finish_reason": "length"}, "", "length"),
    ({"message": {}}, "", "stop"),
    ({"message": {"content": ""}}, "", "stop"),
    ({"message": {"content": "x", "refusal": None}}, "x", "stop"),
    ({"message": {"content": None, "refusal": "I can't."}}, "I can't.", "refusal"),
    ({"message": {"content": ""}, "finish_reason": "content_filter"}, "", "content_filter"),
    ({"message": {"content": "x"}, "finish_reason": None}, "x", None),
    ({"message": {"content": "x"}, "finish_reason": 3}, "x", None),
    ({"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}, 3]}}, "ab", "stop"),
]


@pytest.mark.parametrize(("choice", "text", "finish"), ANSWERS)
def test_answers_of_every_shape(choice: dict[str, Any], text: str, finish: str | None) -> None:
    """Empty content, refusals, filters and lists of parts are read for what they are."""
    response, _ = ask(replies=[_completion(**choice)])
    assert (response.text, response.finish_reason, response.failure) == (text, finish, None)


def test_missing_usage_and_fingerprint_are_no_failure() -> None:
    """Usage that is absent or odd counts as nothing; the model's name stands in as served_by."""
    reply = _completion(message={"content": "x"})
    reply["usage"], reply["system_fingerprint"] = {"prompt_tokens": None}, None
    response, _ = ask(replies=[reply])
    assert response.usage.prompt_tokens == response.usage.completion_tokens == 0
    assert response.served_by == "mock"


def test_every_odd_reply_is_an_answer_or_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a key to be masked: nothing is raised, and what comes can be stored."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    shapes = dict(odd_replies())

    async def body(_: FaultyServer, connected: OpenAI) -> list[Response]:
        return [await connected.generate(request_of(connected, name)) for name in shapes]

    replies = list(shapes.values())
    got, _ = served(
        body, replies=replies, client={"max_attempts": 1, "api_key_env": "OPENAI_API_KEY"}, key=KEY
    )
    said = dict(zip(shapes, got, strict=True))
    for name, response in said.items():
        assert (response.text is None) is (response.failure is not None), name
        assert from_json(Response, orjson.loads(orjson.dumps(to_json(response)))) == response
    assert len(shapes) >= 200 and all(read_error(raw) for raw in shapes.values())
    assert said["content: surrogate"].text == "\ufffd x"
    assert said["content: nested text"].text == "[" * 100_000
    assert "nested more than 100 deep" in str(said["usage: deep list"].failure)
    assert "more than 3,000,000 brackets" in str(said["brackets"].failure)


def test_an_overlong_text_is_cut() -> None:
    """A text beyond a million characters is cut there and says so in its finish reason."""
    response, _ = ask(replies=[_completion(message={"content": "é" * 1_200_000})])
    assert response.text == "é" * 1_000_000
    assert response.finish_reason == "length"


def test_a_prompt_that_is_no_text_is_a_failure() -> None:
    """A lone surrogate, which UTF-8 cannot carry, fails its own request only; nothing is sent."""

    async def body(_: FaultyServer, connected: OpenAI) -> Response:
        return await connected.generate(request_of(connected, "a\ud800b"))

    response, server = served(body)
    assert "cannot be sent as JSON" in (response.failure or "")
    assert server.requests == 0


def test_a_large_prompt_is_sent_without_a_warning() -> None:
    """A prompt of several megabytes arrives whole."""

    async def body(_: FaultyServer, connected: OpenAI) -> Response:
        return await connected.generate(request_of(connected, "word " * 700_000))

    response, server = served(body)
    assert response.failure is None
    assert len(server.bodies[0]["messages"][0]["content"]) == 3_500_000


# Faults


@pytest.mark.parametrize("fault", ["429", "500", "truncated", "closed", "utf8", "nochoices"])
def test_a_passing_fault_is_survived(fault: str) -> None:
    """After two faulty answers the third one counts, and nothing shows that it took three."""
    response, server = ask(script=[fault, fault])
    assert response.failure is None
    assert response.text is not None
    assert server.requests == 3


LASTING = {
    "429": r"HTTP 429 after 4 attempts: Rate limit reached",
    "500": r"HTTP 500 after 4 attempts: mock 500",
    "truncated": r"unusable answer after 4 attempts: not JSON: .*",
    "closed": r"connection failed after 4 attempts: .*",
    "utf8": r"unusable answer after 4 attempts: not JSON: .*",
    "nochoices": r"unusable answer after 4 attempts: no choices",
}


@pytest.mark.parametrize("fault", sorted(LASTING))
def test_a_lasting_fault_is_a_failure_with_its_reason(fault: str) -> None:
    """When every attempt fails, the response says how often and with what, and has no text."""
    response, server = ask(faults={fault: 1.0})
    assert response.failure is not None
    assert re.fullmatch(LASTING[fault], response.failure), response.failure
    assert response.text is None
    assert response.key == "key"
    assert response.received_at > 0
    assert server.requests == 4


def test_a_hung_connection_times_out() -> None:
    """A server that never answers is left after the time-out, and asked again."""
    response, server = ask(script=["hang"], client={"timeout": 0.4})
    assert response.failure is None
    assert server.requests == 2
    assert 0.4 < server.times[1] - server.times[0] < 2

    response, _ = ask(faults={"hang": 1.0}, client={"timeout": 0.05, "max_attempts": 2})
    assert response.failure == "timed out after 2 attempts: no answer within 0.05 s"


def test_many_time_outs_at_once() -> None:
    """Each request in flight has its own time-out, and those answered keep their answer."""

    async def body(_: FaultyServer, connected: OpenAI) -> list[Response]:
        asked = [request_of(connected, f"q{n}", key=str(n)) for n in range(60)]
        return list(await asyncio.gather(*map(connected.generate, asked)))

    responses, server = served(
        body, faults={"hang": 0.3}, client={"timeout": 1.0, "max_attempts": 1}
    )
    hung = [r for r in responses if r.failure is not None]
    assert len(hung) == server.faulted["hang"] > 5
    assert {r.failure for r in hung} == {"timed out: no answer within 1 s"}
    assert sum(r.text is not None for r in responses) == 60 - len(hung)


def test_a_time_out_leaves_no_trace_of_cancelling() -> None:
    """After a time-out the asking task is in nobody's eyes cancelled."""

    async def body(_: FaultyServer, connected: OpenAI) -> int:
        response = await connected.generate(request_of(connected))
        assert response.failure is None
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    count, server = served(body, script=["hang"], client={"timeout": 0.4})
    assert count == 0
    assert server.requests == 2


def test_cancelling_is_not_a_time_out() -> None:
    """A request whose task is cancelled ends cancelled, is not retried, and frees its place."""

    async def body(server: FaultyServer, connected: OpenAI) -> int:
        task = asyncio.ensure_future(connected.generate(request_of(connected)))
        await until(lambda: server.requests > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        response = await connected.generate(request_of(connected))
        assert response.failure is None
        return server.requests

    asked, _ = served(body, script=["hang"], client={"concurrency": 1})
    assert asked == 2


def test_a_huge_body_is_given_up() -> None:
    """An answer beyond 32 MiB is not read to its end and not asked for again."""
    response, server = ask(faults={"huge": 1.0})
    assert response.failure == "unusable answer: more than 32 MiB"
    assert server.requests == 1


def test_a_huge_compressed_body_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds for what a small body unpacks to."""
    monkeypatch.setattr(connection, "MAX_BODY_BYTES", 2**20)
    body = gzip.compress(b" " * 2**22)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}]")
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    response = asyncio.run(against(answer))
    assert response.failure == "unusable answer: more than 1 MiB"


@pytest.mark.parametrize(
    "raw", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b""]
)
def test_what_is_no_http_is_a_failure(raw: bytes) -> None:
    """A server that does not speak HTTP gives a failed response and no exception."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}]")
        writer.write(raw)
        writer.close()

    response = asyncio.run(against(answer))
    assert (response.failure or "").startswith("connection failed after 2 attempts: ")


async def against(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> Response:
    """One question to a hand-made server."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connected = client_of(f"http://127.0.0.1:{port}/v1", max_attempts=2)
    try:
        return await connected.generate(request_of(connected))
    finally:
        await connected.close()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("status", "content", "failure"),
    [
        (400, {"error": {"message": "too long"}}, "HTTP 400: too long"),
        (422, {"detail": [{"loc": ["n"]}]}, 'HTTP 422: [{"loc":["n"]}]'),
        (402, {"message": "pay"}, "HTTP 402: pay"),
        (400, b"<html>\n  <b>Bad</b>\x00\x1b[31m\n", "HTTP 400: <html> <b>Bad</b>[31m"),
        (400, b"", "HTTP 400"),
        (400, {"error": {"message": "x" * 9000}}, "HTTP 400: " + "x" * 499 + "…"),
    ],
)
def test_the_callers_errors_are_not_repeated(status: int, content: Any, failure: str) -> None:
    """A refused request is sent once and fails with what the server said, bounded, on one line."""
    response, server = ask(replies=[(status, content)])
    assert response.failure == failure
    assert server.requests == 1


def test_a_missing_endpoint_is_the_runs_affair_until_something_was_answered() -> None:
    """Then it is the request's; the address is named in both cases."""

    async def body(server: FaultyServer, connected: OpenAI) -> None:
        url = f"HTTP 404 at {server.base_url}/chat/completions: gone"
        with pytest.raises(PreflightError, match="does not support this client") as refused:
            await connected.generate(request_of(connected))
        assert url in refused.value.message and server.requests == 1
        assert (await connected.generate(request_of(connected))).failure is None
        assert (await connected.generate(request_of(connected))).failure == url

    gone = (404, {"error": "gone"})
    served(body, replies=[gone, _completion(message={"content": "A"}), gone])


@pytest.mark.parametrize("status", [429, 200])
def test_a_quota_that_is_used_up_stops_the_run_at_once(status: int) -> None:
    """With the provider's words, after one request, also where it says so with a good status."""

    async def body(server: FaultyServer, connected: OpenAI) -> None:
        with pytest.raises(
            RunStopped, match=r"the quota of this key is exhausted: HTTP 429: pay first"
        ):
            await connected.generate(request_of(connected))

    error = {"error": {"message": "pay first", "code": "insufficient_quota"}}
    _, server = served(body, replies=[(status, error)] * 9)
    assert server.requests == 1


@pytest.mark.parametrize(
    ("code", "requests", "failure"),
    [
        (429, 4, "HTTP 429 after 4 attempts: wait"),
        ("503", 4, "HTTP 503 after 4 attempts: wait"),
        (400, 1, "HTTP 400: wait"),
        ("odd", 4, "unusable answer after 4 attempts: no choices"),
        (None, 4, "unusable answer after 4 attempts: no choices"),
    ],
)
def test_the_code_of_an_error_inside_a_good_answer_counts(
    code: Any, requests: int, failure: str
) -> None:
    """As a router sends it: HTTP 200, and the status of the provider behind it in the body."""
    reply = {"error": {"message": "wait", "code": code}}
    response, server = ask(replies=[(200, reply)] * 9)
    assert (response.failure or "").startswith(failure)
    assert server.requests == requests


def test_an_answer_that_says_it_is_an_error_is_a_failure() -> None:
    """No content with finish reason `error` is no empty answer; with content it is one."""
    said = {"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502}}
    response, _ = ask(replies=[_completion(**said)] * 9)
    assert "finish reason 'error': {\"code\":502}" in (response.failure or "")
    whole, _ = ask(replies=[_completion(message={"content": "A"}, finish_reason="error")])
    assert (whole.text, whole.failure) == ("A", None)


def test_a_huge_usage_does_not_stall_a_run() -> None:
    """What cannot be a count is none, and no count is charged beyond a minute of the rate."""
    huge = {"prompt_tokens": 10**15, "completion_tokens": 9_000_000}

    async def body(_: FaultyServer, connected: OpenAI) -> float:
        response = await connected.generate(request_of(connected))
        assert (response.usage.prompt_tokens, response.usage.completion_tokens) == (0, 9_000_000)
        limiter = connected.transport.limiter
        assert limiter._tpm_bucket is not None
        return limiter._tpm_bucket.level

    reply = {**_completion(message={"content": "A"}), "usage": huge}
    level, _ = served(body, replies=[reply], client={"tokens_per_minute": 60_000})
    assert level >= -61_000


def test_a_redirect_is_not_followed() -> None:
    """A moved endpoint is named, and the key is not sent after it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}]")
        writer.write(b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/v2\r\n")
        writer.write(b"Content-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    response = asyncio.run(against(answer))
    assert (
        response.failure
        == "HTTP 307: the server moved to http://127.0.0.1:1/v2; set base_url to that address"
    )


def test_an_error_in_a_good_answer_is_shown() -> None:
    """A server that reports its error with status 200 is retried, then quoted."""
    reply = {"error": {"message": "overloaded"}}
    response, _ = ask(replies=[reply] * 4)
    assert "overloaded" in (response.failure or "")


def test_retry_after_is_waited_by_all_connections() -> None:
    """A 429 with Retry-After holds back every request of the client, not only its own."""

    async def body(server: FaultyServer, connected: OpenAI) -> list[float]:
        await connected.generate(request_of(connected, "first"))
        asked = [request_of(connected, f"q{n}") for n in range(5)]
        await asyncio.gather(*map(connected.generate, asked))
        return server.times

    times, _ = served(
        body,
        script=["429", "429"],
        retry_after="0.15",
        client={"concurrency": 1, "max_wait": 5.0},
    )
    assert times[1] - times[0] >= 0.14
    assert times[2] - times[1] >= 0.14

    async def together(server: FaultyServer, connected: OpenAI) -> list[float]:
        first = asyncio.ensure_future(connected.generate(request_of(connected, "first")))
        await until(lambda: server.faulted["429"] > 0)
        await asyncio.sleep(0.02)
        asked = [request_of(connected, f"q{n}") for n in range(5)]
        await asyncio.gather(first, *map(connected.generate, asked))
        return server.times

    times, _ = served(together, script=["429"], retry_after="0.2", client={"max_wait": 5.0})
    assert len(times) == 7
    assert min(times[1:]) - times[0] >= 0.18


def test_a_long_retry_after_is_cut_at_max_wait() -> None:
    """A server that asks for an hour is asked again after max_wait."""
    response, server = ask(script=["429"], retry_after="3600", client={"max_wait": 0.05})
    assert response.failure is None
    assert server.requests == 2
    assert server.times[1] - server.times[0] < 2


def test_a_storm_of_faults_loses_nothing() -> None:
    """Under every fault at once, each request ends answered, and none is answered twice."""

    async def body(_: FaultyServer, connected: OpenAI) -> list[Response]:
        asked = [request_of(connected, f"q{n}", key=str(n)) for n in range(300)]
        return list(await asyncio.gather(*map(connected.generate, asked)))

    shares = dict.fromkeys(("429", "500", "truncated", "closed", "utf8", "nochoices", "hang"), 0.04)
    responses, server = served(
        body, faults=shares, seed=5, client={"max_attempts": 12, "timeout": 4, "concurrency": 64}
    )
    assert [r.key for r in responses] == [str(n) for n in range(300)]
    assert all(r.failure is None for r in responses)
    assert set(server.answered.values()) == {1}
    assert len(server.faulted) == len(shares)
    assert server.most_in_flight <= 64


def test_concurrency_is_kept() -> None:
    """No more requests are under way than the settings allow."""

    async def body(_: FaultyServer, connected: OpenAI) -> None:
        asked = [request_of(connected, f"q{n}") for n in range(40)]
        await asyncio.gather(*map(connected.generate, asked))

    _, server = served(body, latency=0.005, client={"concurrency": 3})
    assert server.most_in_flight == 3
    assert server.connections == 3


def test_the_time_in_line_is_not_part_of_the_time_out() -> None:
    """Waiting for a place costs a request nothing of its own time."""

    async def body(_: FaultyServer, connected: OpenAI) -> list[Response]:
        asked = [request_of(connected, f"q{n}") for n in range(12)]
        return list(await asyncio.gather(*map(connected.generate, asked)))

    started = time.perf_counter()
    responses, _ = served(
        body, latency=0.05, client={"concurrency": 1, "timeout": 0.5, "max_attempts": 1}
    )
    assert all(r.failure is None for r in responses)
    assert sum(r.latency for r in responses) < time.perf_counter() - started


def test_the_request_rate_limits() -> None:
    """With 1,200 requests a minute, nine requests take at least 0.35 seconds."""

    async def body(server: FaultyServer, connected: OpenAI) -> list[float]:
        asked = [request_of(connected, f"q{n}") for n in range(9)]
        await asyncio.gather(*map(connected.generate, asked))
        return server.times

    times, _ = served(body, client={"requests_per_minute": 1200})
    assert 0.3 <= times[-1] - times[0] < 3


def test_used_tokens_replace_the_estimate() -> None:
    """What a request really used is charged to the token rate, not its maximum."""

    async def body(_: FaultyServer, connected: OpenAI) -> float:
        large = Sampling(max_tokens=100_000)
        for n in range(5):
            await connected.generate(request_of(connected, f"q{n}", sampling=large))
        return asyncio.get_running_loop().time()

    took, _ = served(body, client={"tokens_per_minute": 60_000})
    assert took < 2


def test_a_refused_request_gives_its_tokens_back() -> None:
    """What a server did not serve is not charged to the token rate."""

    async def body(_: FaultyServer, connected: OpenAI) -> float:
        response = await connected.generate(
            request_of(connected, sampling=Sampling(max_tokens=100_000))
        )
        assert response.failure is None
        return asyncio.get_running_loop().time()

    took, _ = served(body, script=["500"] * 3, client={"tokens_per_minute": 60_000})
    assert took < 2


def test_reopening_after_close() -> None:
    """A closed client may be used again, in another event loop too; closing twice is fine."""

    async def main(connected: OpenAI, port: int) -> tuple[Response, int]:
        async with FaultyServer(port=port) as server:
            await connected.check()
            response = await connected.generate(request_of(connected))
            await connected.close()
            await connected.close()
            return response, server.port

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    connected = client_of(f"http://127.0.0.1:{port}/v1")
    for _ in range(2):
        response, _ = asyncio.run(main(connected, port))
        assert response.failure is None


# Keys


@pytest.mark.parametrize("status", ["401", "403"])
def test_refused_credentials_stop_the_run(status: str) -> None:
    """401 and 403 raise at once, from generate and from score_many."""

    async def body(_: FaultyServer, connected: OpenAI) -> None:
        reply = request_of(connected)
        with pytest.raises(AuthenticationError, match=f"HTTP {status}: no"):
            await connected.generate(reply)
        scoring = client_of(connected.transport.base_url, api="completions")
        asked = [request_of(scoring, context="a b", continuations=(" c", " d"))] * 3
        try:
            with pytest.raises(AuthenticationError, match="api_key_env"):
                await scoring.score_many(asked)
        finally:
            await scoring.close()

    replies = [(int(status), {"error": {"message": "no"}})] * 9
    _, server = served(body, replies=replies)
    assert server.requests <= 4


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key travels in its header; no record, message, hint, repr or traceback holds it."""
    monkeypatch.setenv("MY_KEY", KEY)
    shown: list[str] = []

    async def body(server: FaultyServer, connected: OpenAI) -> None:
        good = await connected.generate(request_of(connected))
        assert good.failure is None
        server.replies = [
            (400, {"error": {"message": f"bad key {KEY}!"}}),
            (400, f"raw {KEY}".encode()),
            _completion(message={"content": f"Your header was: Bearer {KEY}"}, finish_reason=KEY),
            {"error": f"{KEY} is overloaded"},
        ]
        asked = [request_of(connected)] * 4
        responses = [good, *[await connected.generate(r) for r in asked]]
        shown.extend(map(repr, responses))
        assert responses[1].failure == "HTTP 400: bad key …!"
        assert responses[3].text == "Your header was: Bearer …"
        server.key = "another"
        for attempt in (connected.generate(request_of(connected)), connected.check()):
            with pytest.raises(FalterError) as caught:
                await attempt
            shown.append("".join(traceback.format_exception(caught.value)) + str(caught.value))
            assert "MY_KEY" in str(caught.value)
        transport = connected.transport
        parts: list[Any] = [connected, connected.model, transport, transport._connection]
        parts.append(transport._connection._session)
        shown.extend(map(repr, parts))
        shown.append(json.dumps(to_json(connected.model)))

    _, server = served(body, client={"api_key_env": "MY_KEY"}, key=KEY)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert not [text for text in shown if KEY in text]


def test_a_key_written_with_escapes_is_masked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What JSON writes as `\\/` or `\\u0073` is the same letter to whoever reads it."""
    key = "sk/very/secret"
    monkeypatch.setenv("MY_KEY", key)
    written = key.replace("/", "\\/").replace("s", "\\u0073")
    good = '{"choices":[{"message":{"content":"it is %s"},"finish_reason":"stop"}]}'
    bad = '{"error":{"message":"bad key %s","code":"x"}}'

    async def body(server: FaultyServer, connected: OpenAI) -> None:
        server.replies = [(200, (good % written).encode()), (400, (bad % written).encode())]
        first, second = [await connected.generate(request_of(connected)) for _ in range(2)]
        assert first.text == "it is …"
        assert second.failure == "HTTP 400: bad key …"

    served(body, client={"api_key_env": "MY_KEY"}, key=key)


@pytest.mark.parametrize("key", ["x", "EMPTY", "sk-none"])
def test_a_short_key_garbles_no_text(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """One to seven letters stand for a key on local servers and occur in every text."""
    monkeypatch.setenv("MY_KEY", key)
    text = f"next {key} expects"

    async def body(server: FaultyServer, connected: OpenAI) -> None:
        server.replies = [
            _completion(message={"content": text}), (400, {"error": {"message": text}})
        ]  # fmt: skip
        first, second = [await connected.generate(request_of(connected)) for _ in range(2)]
        assert (first.text, second.failure) == (text, f"HTTP 400: {text}")

    served(body, client={"api_key_env": "MY_KEY"}, key=key)


def test_a_connection_error_does_not_show_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures below HTTP do not carry the request's headers."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    response, _ = ask(faults={"closed": 1.0})
    assert KEY not in repr(response)


def test_no_key_needed_on_this_machine() -> None:
    """A local server is asked without a key when none is set."""
    response, server = ask()
    assert response.failure is None
    assert "authorization" not in server.headers[0]


def test_the_default_key_goes_to_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other server, and no port of this machine, gets OPENAI_API_KEY unless it is named."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, server = ask()
    assert "authorization" not in server.headers[0]
    assert OpenAI(ClientSettings(name="m")).transport._key == KEY
    for elsewhere in ("https://models.example.org/v1", "http://x.localhost:8000/v1"):
        assert client_of(elsewhere).transport._key is None
        assert client_of(elsewhere, api_key_env="OPENAI_API_KEY").transport._key == KEY


@pytest.mark.parametrize(
    ("given", "variable"),
    [
        ({"base_url": None}, "OPENAI_API_KEY"),
        ({"base_url": None, "api_key_env": "MY_KEY"}, "MY_KEY"),
        ({"api_key_env": "MY_KEY"}, "MY_KEY"),
    ],
)
def test_a_missing_key_is_named_before_anything_is_sent(
    given: dict[str, Any], variable: str
) -> None:
    """Without its key a client plans, but neither checks nor sends; the variable is named."""
    connected = client_of("http://127.0.0.1:9/v1", **given)
    assert connected.capabilities.generates
    for attempt in (connected.check(), connected.generate(request_of(connected))):
        with pytest.raises(PreflightError, match=f"variable {variable} is not set"):
            asyncio.run(attempt)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [KEY + "\n", "sk-\u00e9" + KEY, KEY + " x", "\t" + KEY])
def test_a_malformed_key_is_refused_unseen(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A key with a line break or a letter beyond ASCII is refused without being shown."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InvalidValue, match="OPENAI_API_KEY") as caught:
        client_of("http://127.0.0.1:9/v1", api_key_env="OPENAI_API_KEY")
    assert "secret" not in str(caught.value) + repr(caught.value) + repr(vars(caught.value))


# Before the first request


def check(base_url: str | None = None, **server: Any) -> None:
    """Check a server; a path in `base_url` replaces the usual one."""
    name = server.pop("name", "mock")

    async def body(faulty: FaultyServer, connected: OpenAI) -> None:
        path = base_url if base_url is not None else "/v1"
        other = client_of(f"http://127.0.0.1:{faulty.port}{path}", name=name)
        try:
            await other.check()
        finally:
            await other.close()

    served(body, **server)


@pytest.mark.parametrize("base_url", ["/v1", "/v1/"])
def test_check_passes(base_url: str) -> None:
    """A server that lists the model passes, with and without a slash at the end of its URL."""
    check(base_url)


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("anything", []),
        ("llama3", ["llama3:latest"]),
        ("gemini-pro", ["models/gemini-pro"]),
        ("org/m", ["org/m"]),
    ],
)
def test_check_takes_names_as_servers_list_them(name: str, models: Sequence[str]) -> None:
    """An empty list says nothing; a tag or folder that need not be asked for is no difference."""
    check(name=name, models=models)


def test_check_names_the_nearest_model() -> None:
    """A model that the server does not list is refused, with the nearest one."""
    with pytest.raises(PreflightError, match="has no model 'gpt-5-mimi'") as caught:
        check(name="gpt-5-mimi", models=["gpt-5-mini", "whisper"])
    assert caught.value.hint == "did you mean 'gpt-5-mini'?"
    with pytest.raises(PreflightError) as caught:
        check(name="zzz", models=["gpt-5-mini", "whisper"])
    assert caught.value.hint == "it has gpt-5-mini, whisper"


def test_check_does_not_mind_a_server_without_a_list() -> None:
    """A server without a model list may still answer requests."""
    check("/v1/nothing/here")


def test_check_does_not_mind_an_endless_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model list beyond the bound is left unread and says nothing."""
    monkeypatch.setattr(connection, "MAX_BODY_BYTES", 100)
    check(models=[f"model-{n}" for n in range(100)])


def test_check_finds_a_forgotten_v1() -> None:
    """A base URL without its /v1 is noticed before every request fails."""
    with pytest.raises(PreflightError) as caught:
        check("")
    assert (caught.value.hint or "").endswith("/v1")


def test_check_reports_a_refused_key() -> None:
    """A wanted key that is not there is reported with the setting that names it."""
    with pytest.raises(PreflightError, match="refused the credentials: HTTP 401") as caught:
        check(key="wanted")
    assert "api_key_env" in (caught.value.hint or "")


def test_check_reports_an_unreachable_server() -> None:
    """A port where nobody listens is reported in plain words."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    connected = client_of(f"http://127.0.0.1:{port}/v1")

    async def main() -> Response:
        with pytest.raises(PreflightError) as caught:
            await connected.check()
        assert caught.value.message == (
            f"cannot reach http://127.0.0.1:{port}/v1: connection refused"
        )
        assert "correct base_url" in (caught.value.hint or "")
        response = await connected.generate(request_of(connected))
        await connected.close()
        return response

    response = asyncio.run(main())
    assert response.failure == "connection failed after 4 attempts: connection refused"


def test_check_does_not_wait_for_long() -> None:
    """A server that accepts and then says nothing is out of reach after the time-out."""

    async def main() -> None:
        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            writer.close()

        over = asyncio.Event()
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connected = client_of(f"http://127.0.0.1:{port}/v1", timeout=0.1)
        try:
            with pytest.raises(PreflightError, match=r"no answer within 0\.1 s"):
                await connected.check()
        finally:
            await connected.close()
            over.set()
            server.close()
            await server.wait_closed()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000"),
        ("HTTPS://Api.Example.ORG/v1//", "https://api.example.org/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_base_urls_are_normalised(given: str, normal: str) -> None:
    """Slashes at the end and capitals in the host make no other server, and no other model."""
    assert normal_url(given) == normal


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("localhost:8000/v1", "write http://localhost:8000/v1"),
        ("api.example.org", "write http://api.example.org"),
        ("ftp://example.org/v1", "write http://example.org/v1"),
        ("//example.org", "write http://example.org"),
        ("http://", None),
        ("http:///v1", None),
        ("http://example.org:port/v1", None),
        ("http://example.org:99999/v1", None),
        ("http://exa mple.org/v1", None),
        ("http://example.org/v1 ", None),
        ("http://example.org/v1/chat/completions", "leave out /chat/completions"),
        ("http://example.org/v1/completions/", "leave out /completions"),
        ("http://example.org/v1?key=hidden-thing", "api_key_env"),
        ("http://user:hidden-thing@example.org/v1", "api_key_env"),
        ("example.org/v1?key=hidden-thing", "write http://example.org/v1"),
        ("http://example.org:x/v1?key=hidden-thing", None),
        ("user:hidden-thing@example.org/v1", "write http"),
        ("", "write http"),
    ],
)
def test_bad_base_urls_are_refused(given: str, hint: str | None) -> None:
    """A URL that cannot work is refused with what would do, and without any secret in it."""
    with pytest.raises(InvalidValue, match="base_url") as caught:
        normal_url(given)
    assert (hint or "") in (caught.value.hint or "")
    assert "hidden-thing" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("a.localhost", True),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("api.openai.com", False),
    ],
)
def test_what_this_machine_is(host: str, local: bool) -> None:
    """Loopback names and addresses are this machine; look-alikes are not."""
    assert is_loopback(host) is local


def test_proxies_are_used_for_other_machines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment carries requests to elsewhere, and none to this machine."""

    async def body(server: FaultyServer, connected: OpenAI) -> None:
        monkeypatch.setenv("http_proxy", f"http://me:pass@127.0.0.1:{server.port}")
        response = await connected.generate(request_of(connected))
        assert response.failure is None
        assert "proxy-authorization" not in server.headers[-1]
        far = client_of("http://models.invalid/v1")
        try:
            response = await far.generate(request_of(far))
        finally:
            await far.close()
        assert response.failure is None
        assert server.headers[-1]["host"] == "models.invalid"
        assert server.headers[-1]["proxy-authorization"].startswith("Basic ")
        monkeypatch.setenv("no_proxy", "models.invalid")
        assert proxy_for(far.transport.base_url) is None

    served(body)


BAD_SETTINGS: list[tuple[str, Any]] = [
    ("name", " m"),
    ("name", "a\nb"),
    ("name", 3),
    ("base_url", 3),
    ("api_key_env", KEY),
    ("api_key_env", ""),
    ("api", "chats"),
    ("concurrency", 0),
    ("concurrency", 1.5),
    ("concurrency", True),
    ("requests_per_minute", 0),
    ("requests_per_minute", math.nan),
    ("tokens_per_minute", -1),
    ("tokens_per_minute", "many"),
    ("timeout", 0),
    ("timeout", math.inf),
    ("max_attempts", 0),
    ("max_wait", -1),
    ("options", [1]),
    ("options", {"a": math.inf}),
    ("options", {"a": {1: 2}}),
    ("options", {"a": {3}}),
    ("options", {"api_key": KEY}),
    ("options", {"headers": {"Authorization": KEY}}),
]


@pytest.mark.parametrize(("argument", "value"), BAD_SETTINGS)
def test_bad_settings_name_the_argument(argument: str, value: Any) -> None:
    """Every setting is checked when it is given, and a misplaced key is not shown."""
    with pytest.raises(InvalidValue) as caught:
        ClientSettings(**{"name": "m", argument: value})
    assert caught.value.argument.startswith(argument)
    assert KEY not in str(caught.value)


def test_settings_hint_at_the_nearest_api() -> None:
    """A misspelt API is answered with the nearest one."""
    with pytest.raises(InvalidValue, match="did you mean 'completions'"):
        ClientSettings(name="m", api="completion")  # type: ignore[arg-type]


def test_a_client_needs_a_model_name() -> None:
    """`openai` alone names no model."""
    with pytest.raises(InvalidValue, match="openai:NAME"):
        connect(ClientSettings(name=""))


def test_the_registry_knows_the_connector() -> None:
    """`openai` is registered and says what it can do before anything is sent."""
    connected = clients.get("openai")(ClientSettings(name="m", base_url="http://localhost/v1"))
    assert connected.capabilities.generates
    assert not connected.capabilities.scores
    scoring = client_of("http://localhost/v1", api="completions")
    assert scoring.capabilities.scores
    assert scoring.model.label == "openai:mock"
    assert scoring.model.base_url == "http://localhost/v1"


# Scoring


def score(
    context: str = "The sky is",
    continuations: tuple[str, ...] = (" blue", " a green field"),
    **s: Any,
) -> tuple[Response, FaultyServer]:
    """One scoring request to a server."""

    async def body(_: FaultyServer, connected: OpenAI) -> Response:
        asked = request_of(connected, context=context, continuations=continuations)
        (response,) = await connected.score_many([asked])
        return response

    return served(body, client={"api": "completions"}, **s)


def expected(context: str, continuation: str) -> tuple[float, int]:
    """Return the sum over the server's tokens of the continuation, a straddling one included."""
    tokens, total, count = tokens_of(context + continuation), 0.0, 0
    for n, token in enumerate(tokens):
        before = "".join(tokens[:n])
        if len(before) + len(token) > len(context.rstrip()):
            total, count = total + logprob(before, token), count + 1
    return total, count


def assert_scored(response: Response, context: str, continuations: Sequence[str]) -> None:
    assert response.failure is None
    assert response.text is None
    for found, text in zip(response.scores, continuations, strict=True):
        total, count = expected(context, text)
        assert found.tokens == count
        assert found.logprob == pytest.approx(total)


CONTEXTS = [
    ("The sky is", (" blue", " a green field")),
    ("The sky is ", ("blue", "green")),
    ("The sky is\n\n", ("blue",)),
    ("The sky is b", ("lue", "rown and wide")),
    ("Der Himmel üb€r 🦉 ist", (" größer", " 🦉 blau", " blue")),
    ("a", (" b",)),
    ("<b> is", (" bold", " a tag")),
    ("a b", (" c",) * 3),
    ("a b", (" c\n",)),
]


@pytest.mark.parametrize("echo", ["chars", "bytes", "no-offsets"])
@pytest.mark.parametrize(("context", "continuations"), CONTEXTS)
def test_scores_are_the_continuations_alone(
    echo: str, context: str, continuations: tuple[str, ...]
) -> None:
    """The tokens beyond the context add up, whether offsets count characters, bytes or nothing."""
    response, server = score(context, continuations, echo=echo)
    assert_scored(response, context, continuations)
    assert server.requests == 1
    assert server.bodies[0] == {
        "model": "mock",
        "prompt": [context + text for text in continuations],
        "max_tokens": 0,
        "temperature": 0,
        "stream": False,
        "echo": True,
        "logprobs": 1,
    }
    assert response.usage.prompt_tokens > 0
    assert response.served_by == "fp_mock"
    assert all(s.greedy for s in response.scores)


def test_a_special_first_token_is_stepped_over() -> None:
    """A server that puts a start token before the prompt is aligned all the same."""
    response, _ = score("The sky is", (" blue",), echo="bos")
    assert response.failure is None
    assert response.scores[0].tokens == 1
    assert response.scores[0].logprob == pytest.approx(logprob("<s>The sky is", " blue"))


def test_a_server_that_rejects_zero_tokens_is_asked_for_one() -> None:
    """The generated token is dropped, and the server is not asked for zero again."""

    async def body(_: FaultyServer, connected: OpenAI) -> list[Response]:
        out = []
        for context in ("The sky is", "The sea is"):
            asked = request_of(connected, context=context, continuations=(" blue", " a b"))
            out += await connected.score_many([asked])
        return out

    responses, server = served(body, rejects_zero=True, client={"api": "completions"})
    assert_scored(responses[0], "The sky is", (" blue", " a b"))
    assert_scored(responses[1], "The sea is", (" blue", " a b"))
    assert [b["max_tokens"] for b in server.bodies] == [0, 1, 1]


def test_a_request_rejected_for_its_own_sake_changes_nothing() -> None:
    """A 400 for another reason is tried with one token once, then fails; zero stays the way."""

    async def body(_: FaultyServer, connected: OpenAI) -> list[Response]:
        out = []
        for _ in range(2):
            asked = request_of(connected, context="The sky is", continuations=(" blue",))
            out += await connected.score_many([asked])
        return out

    too_long = (400, {"error": {"message": "too long"}})
    responses, server = served(body, replies=[too_long] * 2, client={"api": "completions"})
    assert responses[0].failure == "HTTP 400: too long"
    assert_scored(responses[1], "The sky is", (" blue",))
    assert [b["max_tokens"] for b in server.bodies] == [0, 1, 0]


def test_a_server_that_took_zero_tokens_is_not_asked_for_one() -> None:
    """Once zero tokens have worked, a 400 is about the request and is final."""

    async def body(server: FaultyServer, connected: OpenAI) -> list[Response]:
        asked = request_of(connected, context="The sky is", continuations=(" blue",))
        first = await connected.score_many([asked])
        server.replies = [(400, {"error": {"message": "too long"}})]
        return [*first, *await connected.score_many([asked])]

    (first, second), server = served(body, client={"api": "completions"})
    assert_scored(first, "The sky is", (" blue",))
    assert second.failure == "HTTP 400: too long"
    assert [b["max_tokens"] for b in server.bodies] == [0, 0]


def test_many_requests_in_one_batch() -> None:
    """Each request of a batch is one call, and its scores come back in its place."""

    async def body(_: FaultyServer, connected: OpenAI) -> list[Response]:
        asked = [
            request_of(
                connected, context=f"Number {n} is", continuations=(" odd", " even"), key=str(n)
            )
            for n in range(20)
        ]
        return list(await connected.score_many(asked))

    responses, server = served(
        body, faults={"500": 0.3}, client={"api": "completions", "max_attempts": 20}
    )
    assert [r.key for r in responses] == [str(n) for n in range(20)]
    for n, response in enumerate(responses):
        assert_scored(response, f"Number {n} is", (" odd", " even"))
    assert sum(server.answered.values()) == 20


@pytest.mark.parametrize(
    ("echo", "context", "told"),
    [
        ("numbered", "The sky is", "shifted by one: it reports -"),
        (
            "shifted",
            "one two three four five six seven eight nine ten",
            "shifted by one: the most likely",
        ),
        ("none", "The sky is", "it cannot compute log-likelihoods"),
    ],
)
def test_a_server_that_cannot_score_is_refused(echo: str, context: str, told: str) -> None:
    """Shifted or missing log-probabilities raise; no wrong number is ever returned."""
    with pytest.raises(EndpointError, match=told):
        score(context, echo=echo)


def test_repetitions_do_not_hide_a_shift() -> None:
    """Tokens equal to the next one are left out of the evidence, which the others give."""
    context = "x " * 20 + "one two three four five six seven eight nine ten"
    with pytest.raises(EndpointError, match="shifted by one"):
        score(context, echo="shifted")


def test_a_repetitive_text_is_no_evidence_of_a_shift() -> None:
    """Where a token equals the next one, it says nothing about whose log-probability it has."""
    context = "a a a a a a a a a a a a a a a a a a a a"
    response, _ = score(context, (" a a", " b"))
    assert_scored(response, context, (" a a", " b"))


def test_once_proven_an_odd_answer_fails_alone() -> None:
    """A server that has scored before is not given up for one answer without log-probabilities."""

    async def body(server: FaultyServer, connected: OpenAI) -> list[Response]:
        asked = request_of(connected, context="The sky is", continuations=(" blue",))
        first = await connected.score_many([asked])
        server.echo = "none"
        return [*first, *await connected.score_many([asked])]

    (first, second), _ = served(body, client={"api": "completions"})
    assert first.failure is None
    assert "it cannot compute log-likelihoods" in (second.failure or "")
    assert second.scores == ()


def test_chat_does_not_score() -> None:
    """Scoring through the chat API fails with its reason, and sends nothing."""

    async def body(_: FaultyServer, connected: OpenAI) -> Response:
        asked = request_of(connected, context="a", continuations=(" b",))
        (response,) = await connected.score_many([asked])
        return response

    response, server = served(body)
    assert "chat API" in (response.failure or "")
    assert server.requests == 0


@pytest.mark.parametrize("context", ["", " ", "\n\n"])
def test_an_empty_context_cannot_be_scored(context: str) -> None:
    """The first token of a prompt has no log-probability, so something must stand before."""
    response, server = score(context, ("blue",))
    assert "context is empty" in (response.failure or "")
    assert server.requests == 0


def echoed(tokens: list[str], values: list[Any], **more: Any) -> dict[str, Any]:
    return _completion(text="", logprobs={"tokens": tokens, "token_logprobs": values, **more})


ODD_ECHOES: list[tuple[dict[str, Any], str]] = [
    (echoed(["The", " sky", " is"], [None, -1, -1]), "do not cover the prompt"),
    (
        echoed(["The", " sky", " is", " blue", "!", "!"], [None, -1, -1, -1, -1, -1]),
        "do not cover the prompt",
    ),
    (echoed(["The", " sky", " is", " blue"], [None, -1, -1, None]), "no log-probability"),
    (echoed(["The", " sky", " is", " blue"], [None, -1, -1, 2.5]), "no log-probability"),
    (echoed(["The", " sky", " is", " blue"], [None, -1, -1]), "4 tokens with 3"),
    (echoed(["The", " sky", " is", " blue"], "x"), "no usable list 'token_logprobs'"),
    (echoed(["The", 3], [None, -1]), "no usable list 'tokens'"),
    (echoed(["The sky is", " blue"], [None, -1], text_offset=[5, 3]), "text offsets"),
    (echoed(["The sky is", " blue"], [None, -1], text_offset=[0]), "text offsets"),
    (echoed(["The sky is", " blue"], [None, -1], text_offset=[0, 4]), "do not cover the prompt"),
    ({**_completion(text=""), "choices": [{"index": 1, "logprobs": None}]}, "not numbered"),
    ({**_completion(text=""), "choices": [{"index": []}]}, "not numbered"),
    ({**_completion(text=""), "choices": [{}, {}]}, "2 choices for 1 prompts"),
]


@pytest.mark.parametrize(("reply", "told"), ODD_ECHOES)
def test_log_probabilities_that_do_not_fit_are_refused(reply: dict[str, Any], told: str) -> None:
    """Tokens that are not the prompt's, or have no number, fail the request unsummed."""
    response, _ = score("The sky is", (" blue",), replies=[reply] * 4)
    assert told in (response.failure or "")
    assert response.scores == ()


def test_an_echo_of_another_prompt_is_not_taken_for_this_one() -> None:
    """Choices with their numbers swapped fail the request, though their lengths are equal."""
    reply = echoed(["a", " b"], [None, -1.0])
    other = echoed(["a", " c"], [None, -2.0])
    reply["choices"] = [{**reply["choices"][0], "index": 1}, {**other["choices"][0], "index": 0}]
    response, _ = score("a", (" b", " c"), replies=[reply] * 4)
    assert "the echoed tokens are not the prompt's" in (response.failure or "")
    assert response.scores == ()


@pytest.mark.parametrize(
    ("tokens", "prompt", "fits"),
    [
        (["a", " b"], "a b", True),
        (["\u0120a", "\u0120b"], " a b", True),
        (["\u2581a", "\u2581b"], " a b", True),
        (["a", "\ufffd", "\ufffd\ufffd", "b"], "a🦉b", True),
        (["a", "bytes:\\xf0\\x9f", "bytes:\\xa6\\x89", "b"], "a🦉b", True),
        (["a", "\ufffd", "c"], "a🦉b", False),
        (["a", " c"], "a b", False),
        (["\ufffd"] * 5000, "a" * 5000, False),
        (["a\ufffd"] * 5000, "a" * 9999, False),
    ],
)
def test_tokens_spell_a_prompt(tokens: list[str], prompt: str, fits: bool) -> None:
    """Signs of tokenizers and parts of characters included; nonsense is soon given up."""
    assert _spell_prompt(tokens, prompt) is fits


def test_choices_out_of_order_are_put_in_order() -> None:
    """Choices are matched to continuations by their index."""
    reply = echoed(["a", " b"], [None, -1.0])
    other = echoed(["a", " c"], [None, -2.0])
    reply["choices"] = [{**other["choices"][0], "index": 1}, {**reply["choices"][0], "index": 0}]
    response, _ = score("a", (" b", " c"), replies=[reply])
    assert [s.logprob for s in response.scores] == [-1.0, -2.0]
    assert [s.greedy for s in response.scores] == [None, None]


def test_greedy_is_whether_each_token_was_the_likeliest() -> None:
    """A continuation is greedy when no other token was likelier anywhere in it."""
    tops = [None, {" b": -1.0}, {" z": -0.5, " c": -2.0}]
    reply = echoed(["a", " b", " c"], [None, -1.0, -2.0], top_logprobs=tops)
    response, _ = score("a", (" b c",), replies=[reply])
    assert response.scores[0].greedy is False
    assert response.scores[0].logprob == -3.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "content", "text", "logprobs", "tokens", "token_logprobs",
             "text_offset", "top_logprobs", "index", "usage", "refusal", "error", "model"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(JSON, st.booleans())
def test_any_json_is_read_or_refused(data: Any, wrap: bool) -> None:
    """No answer, however odd, raises anything but what the client turns to failures."""
    data = {"choices": [data]} if wrap else data
    for read in (read_chat, read_completion, Scoring().reader(["a b"], "a")):
        with contextlib.suppress(UnusableAnswer, EndpointError):
            read(data)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=50) | JSON.map(orjson.dumps))
def test_any_error_body_is_quoted(raw: bytes) -> None:
    """Whatever stands in an error's body, a message comes out."""
    error = read_error(raw)
    assert isinstance(error.message, str)
    assert isinstance(error.code, str)
    assert isinstance(error.field, str)


def test_messages_are_bounded_and_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shown message is one line of printable characters, at most 500 of them."""
    monkeypatch.setenv("K", "abcdefgh")
    settings = ClientSettings(name="m", base_url="http://localhost", api_key_env="K")
    transport = Transport(settings)
    assert transport.clean("a\n\tb\x00 abcdefgh ") == "a b …"
    assert len(transport.clean("x" * 10_000)) == 500


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After-Ms": "soon", "Retry-After": "9"}, 9.0),
        ({}, None),
    ],
)
def test_milliseconds_to_wait_come_first(headers: dict[str, str], seconds: float | None) -> None:
    """A wait in milliseconds is more exact than one in seconds, and is preferred."""
    assert asked_wait(headers) == seconds


@pytest.mark.parametrize("raw", [b"[]", b"{}", b"3", b'{"data": 3}', b'{"data": [3]}', b"[[]]"])
def test_a_model_list_that_is_none_says_nothing(raw: bytes) -> None:
    """What is not a list of models is read as an empty one."""
    assert listed_models(orjson.loads(raw)) == []


def test_a_model_list_that_is_not_json_says_nothing() -> None:
    """A page in the place of the list is no reason to stop."""
    connected = client_of("http://127.0.0.1:9/v1")
    connected.transport._check_listed("mock", b"<html>")


def test_connection_errors_are_described_in_few_words() -> None:
    """Unknown hosts, bad certificates and closed connections are told apart."""
    key: Any = SimpleNamespace(host="nowhere.invalid", port=443, ssl=True)
    unknown = aiohttp.ClientConnectorDNSError(key, OSError(-2, "Name or service not known"))
    assert connection.describe_error(unknown) == "unknown host 'nowhere.invalid'"
    certificate = aiohttp.ClientConnectorCertificateError(key, Exception("self-signed"))
    assert connection.describe_error(certificate) == "certificate not accepted: self-signed"
    assert connection.describe_error(aiohttp.ClientPayloadError()) == "ClientPayloadError"


def test_nothing_is_left_open(recwarn: pytest.WarningsRecorder) -> None:
    """After a run with time-outs and broken connections, collecting garbage warns of nothing."""
    ask(script=["hang", "closed", "500"], client={"timeout": 0.05, "max_attempts": 5})
    gc.collect()
    assert not list(recwarn)


def test_the_faulty_server_runs_as_a_program() -> None:
    """As a subprocess the server prints its port, serves, counts, and ends by its time limit."""
    script = Path(__file__).parents[1] / "support" / "faulty_server.py"
    command = [sys.executable, str(script), "--port", "0", "--fault", "500=0.2", "--limit", "1.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())

        async def main() -> list[Response]:
            connected = client_of(f"http://127.0.0.1:{port}/v1", max_attempts=20)
            asked = [request_of(connected, f"q{n}") for n in range(30)]
            try:
                return list(await asyncio.gather(*map(connected.generate, asked)))
            finally:
                await connected.close()

        assert all(r.failure is None for r in asyncio.run(main()))
        assert process.wait(10) == 0
