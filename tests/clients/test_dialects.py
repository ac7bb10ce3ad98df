"""Every dialect of the table: what is sent, what is stored, and what the doctor says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dialects import DIALECTS, KEY, PAGE, Dialect, table, with_table
from falter.cli.app import invoke
from falter.clients import ClientSettings
from falter.clients.openai import OpenAI
from falter.clients.retry import RetryPolicy
from falter.engine.execution import run_async
from falter.records.errors import RunStopped
from falter.records.types import BASELINE, Item, Prompt, Request, Response, Sampling, Variant
from local_server import Asked, LocalServer, Reply

SLOWEST = 0.01


def served(answer: Callable[[Asked], Reply]) -> LocalServer:
    """A server that has no list of models, and answers whatever is posted."""
    return LocalServer(lambda asked: answer(asked) if asked.method == "POST" else (404, {}))


def request_of(client: OpenAI) -> Request:
    variant = Variant(
        item=Item(task="t", key="k", fields={}), recipe=BASELINE, draw=0,
        prompt=Prompt(sections=()), status="baseline",
    )  # fmt: skip
    return Request(
        key="k", variant=variant, model=client.model, repeat=0,
        sampling=Sampling(max_tokens=64, seed=3),
        messages=(("system", "Be brief."), ("user", "And France?")),
    )  # fmt: skip


async def asked_twice(dialect: Dialect) -> tuple[Response | Exception, list[Asked]]:
    """The last of two responses, or what was raised, and all that was posted."""
    async with served(dialect.serve()) as server:
        client = OpenAI(
            ClientSettings(
                name="m", base_url=server.base_url, api_key_env="DIALECT_KEY", max_attempts=2
                if dialect.name != "retry_after" else 4, max_wait=SLOWEST,
            )
        )  # fmt: skip
        try:
            await client.generate(request_of(client))
            return await client.generate(request_of(client)), server.posted
        except RunStopped as error:
            return error, server.posted
        finally:
            await client.close()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_a_dialect_is_understood(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """By evidence, never by a name: all of them are one model at one address."""
    monkeypatch.setenv("DIALECT_KEY", KEY)
    response, posted = run_async(lambda: asked_twice(dialect))
    assert len(posted) == dialect.sent
    body = posted[-1].body
    assert not set(dialect.lacks) & set(body)
    assert {name: body[name] for name in dialect.has} == dict(dialect.has)
    if dialect.raises:
        assert isinstance(response, RunStopped) and dialect.raises in str(response)
        return
    assert isinstance(response, Response)
    assert (response.failure or "").startswith(dialect.failure or "")
    assert (response.failure is None) == (dialect.failure is None)
    assert (response.text, response.finish_reason) == (dialect.text, dialect.finish)
    assert (response.served_by, response.reasoning) == (dialect.served_by, dialect.reasoning)
    assert KEY not in repr(response)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_the_doctor_says_what_it_met(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two short requests at most, of 16 tokens, beside the list of models."""
    monkeypatch.setenv("DIALECT_KEY", KEY)
    hasty = RetryPolicy(2, cap=SLOWEST)
    monkeypatch.setattr("falter.clients.transport.RetryPolicy", lambda *_, **__: hasty)

    async def main() -> tuple[int, LocalServer]:
        async with served(dialect.serve()) as server:
            command = ["doctor", "-m", "openai:m", "--base-url", server.base_url, "--probe"]
            command += ["--api-key-env", "DIALECT_KEY"]
            return await asyncio.to_thread(invoke, command), server

    code, server = run_async(main)
    out = capsys.readouterr().out
    assert dialect.doctor in out
    assert KEY not in out
    assert code == (2 if dialect.raises else 0)
    limits = {asked.body.get("max_tokens", asked.body.get("max_completion_tokens"))
              for asked in server.posted}  # fmt: skip
    assert limits == {16}


def test_the_page_has_the_table() -> None:
    """docs/clients.md is made from it: `python tests/support/dialects.py`."""
    page = PAGE.read_text("utf-8")
    assert table() in page
    assert with_table(page) == page


def test_every_dialect_is_named_once() -> None:
    names = [dialect.name for dialect in DIALECTS]
    assert len(set(names)) == len(names)


def test_the_doctor_probes_log_probabilities(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a server that echoes, and of one that does not."""

    def answer(asked: Asked) -> Reply:
        prompts = asked.body["prompt"]
        if isinstance(prompts, str):
            return 200, {"model": "m", "choices": [{"text": "Paris", "finish_reason": "stop"}]}
        choices = []
        for number, prompt in enumerate(prompts):
            head, tail = prompt.rsplit(" ", 1)
            tokens, values = [head, " " + tail], [None, -1.0 - number]
            logprobs = {"tokens": tokens, "token_logprobs": values}
            choices.append({"index": number, "text": prompt, "logprobs": logprobs})
        return 200, {"model": "m", "choices": choices}

    async def main() -> int:
        async with served(answer) as server:
            command = ["doctor", "-m", "openai:m", "--base-url", server.base_url, "--probe"]
            return await asyncio.to_thread(invoke, [*command, "--api", "completions"])

    assert run_async(main) == 0
    out = capsys.readouterr().out
    assert "log-probabilities: ' Paris' -1.000, ' London' -2.000" in out
    assert "tokens: the server does not count them" in out
