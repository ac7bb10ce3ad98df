"""One API, many dialects: what a server refuses is learnt once, before the first answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from falter.clients import ClientSettings, RequestRefused
from falter.clients.dialect import Dialect
from falter.clients.openai import OpenAI
from falter.clients.retry import read_error
from falter.records.types import (
    BASELINE,
    Item,
    Prompt,
    Recipe,
    Request,
    Response,
    Sampling,
    Variant,
)
from local_server import Asked, LocalServer, Reply

MAX_TOKENS = {
    "error": {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        "type": "invalid_request_error",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
}
TEMPERATURE = {
    "error": {
        "message": "Unsupported value: 'temperature' does not support 0 with this model. Only the "
        "default (1) value is supported.",
        "type": "invalid_request_error",
        "param": "temperature",
        "code": "unsupported_value",
    }
}
GOOD = {
    "model": "mock",
    "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 4, "completion_tokens": 1},
}


def refusing(**refusals: Any) -> Any:
    """A server that refuses a body that has one of these fields, with the body given for it."""

    def answer(asked: Asked) -> Reply:
        for field, error in refusals.items():
            if field in asked.body:
                return 400, error
        return 200, GOOD

    return answer


def request_of(client: OpenAI, n: int = 0, recipe: Recipe = BASELINE, **sampling: Any) -> Request:
    variant = Variant(
        item=Item(task="t", key=str(n), fields={}), recipe=recipe, draw=0,
        prompt=Prompt(sections=()), status="baseline",
    )  # fmt: skip
    return Request(
        key=f"key {n}", variant=variant, model=client.model, repeat=0,
        sampling=Sampling(**{"max_tokens": 16, **sampling}), messages=(("user", f"Question {n}?"),),
    )  # fmt: skip


def asked_in_turn(
    answer: Any, *samplings: dict[str, Any], **settings: Any
) -> tuple[list[Response], LocalServer, OpenAI]:
    """Requests one after the other, each with its sampling settings."""

    async def main() -> tuple[list[Response], LocalServer, OpenAI]:
        async with LocalServer(answer) as server:
            given: dict[str, Any] = {"base_url": server.base_url, "max_wait": 0.01, **settings}
            client = OpenAI(ClientSettings(name="mock", **given))
            try:
                responses = [
                    await client.generate(request_of(client, n, **sampling))
                    for n, sampling in enumerate(samplings)
                ]
                return responses, server, client
            finally:
                await client.close()

    return asyncio.run(asyncio.wait_for(main(), 20))


def sent(server: LocalServer) -> list[set[str]]:
    """The fields of every body, without those that are always there."""
    return [set(asked.body) - {"model", "messages", "stream"} for asked in server.posted]


def test_a_limit_under_another_name_is_learnt_from_the_first_refusal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only the first request is sent twice, nothing is left out, and one line says it."""
    responses, server, client = asked_in_turn(refusing(max_tokens=MAX_TOKENS), {}, {})
    assert [r.text for r in responses] == ["yes", "yes"]
    assert sent(server) == [
        {"temperature", "max_tokens"},
        {"temperature", "max_completion_tokens"},
        {"temperature", "max_completion_tokens"},
    ]
    assert [asked.body.get("max_completion_tokens") for asked in server.posted] == [None, 16, 16]
    assert responses[0].served_by == "mock"
    assert client.transport.dialect.changes == {"max_tokens": "sent as max_completion_tokens"}
    said = capsys.readouterr().err
    assert said.startswith("openai:mock: max_tokens is sent as max_completion_tokens (Unsupported")
    assert said.count("\n") == 1


def test_a_temperature_that_is_refused_is_left_out_and_stored_with_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Refusals are learnt one by one; who served an answer says what it was asked without."""
    refuses = refusing(max_tokens=MAX_TOKENS, temperature=TEMPERATURE)
    responses, server, client = asked_in_turn(refuses, {"seed": 3}, {"seed": 3})
    assert len(server.posted) == 4
    assert sent(server)[-1] == {"seed", "max_completion_tokens"}
    assert {r.served_by for r in responses} == {"mock, asked without temperature"}
    assert client.transport.dialect.changes["temperature"] == "not sent"
    assert capsys.readouterr().err.count("\n") == 2


def test_a_model_keeps_its_identity(capsys: pytest.CaptureFixture[str]) -> None:
    """What was learnt is not in the record whose hash is in the keys of planned requests."""
    _, server, client = asked_in_turn(refusing(temperature=TEMPERATURE), {})
    fresh = OpenAI(ClientSettings(name="mock", base_url=server.base_url))
    assert client.model.id == fresh.model.id


def test_an_answer_settles_the_shape() -> None:
    """What is refused after the first answer fails: no change in the middle of a run."""

    def answer(asked: Asked) -> Reply:
        return (400, TEMPERATURE) if asked.body["temperature"] > 0 else (200, GOOD)

    responses, server, _ = asked_in_turn(answer, {}, {"temperature": 0.5}, {})
    assert [r.text for r in responses] == ["yes", None, "yes"]
    assert (responses[1].failure or "").startswith("HTTP 400: Unsupported value: 'temperature'")
    assert len(server.posted) == 3


def test_requests_under_way_are_asked_again_in_the_shape_that_another_learnt() -> None:
    """Forty at once: each is refused at most once, all are answered, and one line is printed."""

    async def main() -> tuple[Sequence[Response], LocalServer]:
        async with LocalServer(refusing(temperature=TEMPERATURE)) as server:
            client = OpenAI(ClientSettings(name="mock", base_url=server.base_url))
            try:
                asked = [client.generate(request_of(client, n)) for n in range(40)]
                return await asyncio.gather(*asked), server
            finally:
                await client.close()

    responses, server = asyncio.run(asyncio.wait_for(main(), 20))
    assert {r.text for r in responses} == {"yes"}
    assert {r.served_by for r in responses} == {"mock, asked without temperature"}
    assert len(server.posted) <= 80


def test_an_answer_to_the_old_shape_is_not_kept() -> None:
    """A gateway with two minds: what one of them said before the shape changed is asked again."""

    async def main() -> tuple[Sequence[Response], LocalServer]:
        changed = asyncio.Event()

        async def answer(asked: Asked) -> Reply:
            if "temperature" not in asked.body:
                changed.set()
            elif "Question 1" in asked.body["messages"][0]["content"]:
                return 400, TEMPERATURE
            else:
                await changed.wait()
            return 200, GOOD

        async with LocalServer(answer) as server:
            client = OpenAI(ClientSettings(name="mock", base_url=server.base_url))
            try:
                asked = [client.generate(request_of(client, n)) for n in range(2)]
                return await asyncio.gather(*asked), server
            finally:
                await client.close()

    responses, server = asyncio.run(asyncio.wait_for(main(), 20))
    assert {r.served_by for r in responses} == {"mock, asked without temperature"}
    assert sum("temperature" not in asked.body for asked in server.posted) == 2


def test_a_condition_about_a_field_that_is_not_sent_fails_with_that_reason() -> None:
    """Its answers would be the baseline's; it is not asked at all."""
    warm = Recipe(label="warm", group="sampling", sampling={"temperature": 0.7})

    async def main() -> tuple[list[Response], LocalServer]:
        async with LocalServer(refusing(temperature=TEMPERATURE)) as server:
            client = OpenAI(ClientSettings(name="mock", base_url=server.base_url))
            try:
                first = await client.generate(request_of(client))
                asked = request_of(client, 1, warm, temperature=0.7)
                return [first, await client.generate(asked)], server
            finally:
                await client.close()

    (first, second), server = asyncio.run(asyncio.wait_for(main(), 20))
    assert first.text == "yes"
    assert second.failure == "the condition sets temperature, which the server does not support"
    assert len(server.posted) == 2


def test_top_p_is_sent_below_one_only() -> None:
    """Some servers refuse a top_p of 1, and some refuse it beside a temperature."""
    _, server, _ = asked_in_turn(refusing(), {}, {"top_p": 0.9})
    assert [asked.body.get("top_p") for asked in server.posted] == [None, 0.9]


def openai_error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


LEARNT: list[tuple[str, Any]] = [
    ("temperature", TEMPERATURE),
    ("max_tokens", MAX_TOKENS),
    (
        "max_tokens",
        openai_error(
            "litellm.BadRequestError: OpenAIException - Unsupported parameter: 'max_tokens' is not "
            "supported with this model. Use 'max_completion_tokens' instead."
        ),
    ),
    ("temperature", openai_error("`temperature` is deprecated for this model.")),
    ("temperature", openai_error("temperature: Extra inputs are not permitted")),
    ("temperature", openai_error("This route: temperature is not supported by the provider")),
    ("seed", [openai_error('Invalid JSON payload. Unknown name "seed": Cannot find field.')]),
    ("seed", {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs "
     "are not permitted"}]}),
    ("stop", openai_error("Unsupported parameter: 'stop' is not supported with this model.",
     param="stop")),
    ("stop", openai_error("Unrecognized request argument supplied", param="body.stop")),
]  # fmt: skip


@pytest.mark.parametrize(("field", "body"), LEARNT)
def test_what_servers_say_of_fields_that_they_do_not_take(field: str, body: Any) -> None:
    """By the field that an error names, or the first one that its message does."""
    shape = openai_shape()
    assert shape.learn(refusal_of(body)) == field
    assert field in shape.changes and shape.version == 1
    assert shape.learn(refusal_of(body)) is None


NOT_LEARNT: list[Any] = [
    openai_error("Invalid 'temperature': must be between 0 and 2.", param="temperature"),
    openai_error("max_tokens is too large: 99999. This model supports at most 4096."),
    openai_error("This model's maximum context length is 8192 tokens", code="context_length"),
    openai_error("`temperature` and `top_p` cannot both be specified for this model."),
    openai_error("Unknown parameter: 'top_k'. Known: 'temperature', 'seed', 'stop'."),
    openai_error("Unsupported parameter: 'reasoning'. Did you mean 'temperature'?"),
    openai_error("The content filter did not permit this prompt, so we stop here."),
    b"<html>bad temperature</html>",
    "temperature",
    [],
    3,
]


@pytest.mark.parametrize("body", NOT_LEARNT, ids=str)
def test_what_is_no_reason_to_ask_in_another_way(body: Any) -> None:
    """A value out of range, another field, a text in which the name happens to stand."""
    shape = openai_shape()
    assert shape.learn(refusal_of(body)) is None
    assert shape.version == 0


@pytest.mark.parametrize("status", [404, 413, 429, 500, None])
def test_other_statuses_teach_nothing(status: int | None) -> None:
    """Only a request that the server could read and did not want."""
    assert openai_shape().learn(refusal_of(TEMPERATURE, status=status)) is None


def openai_shape() -> Dialect:
    return Dialect({"max_tokens": "max_completion_tokens"}, ("temperature", "seed", "stop"))


def refusal_of(body: Any, status: int | None = 400) -> RequestRefused:
    error = read_error(body if isinstance(body, bytes) else orjson.dumps(body))
    return RequestRefused(
        f"HTTP {status}", status=status, said=error.message, code=error.code, field=error.field
    )


SYSTEM_REFUSALS = [
    "System role not supported",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "Only user and assistant roles are supported!",
]


@pytest.mark.parametrize("words", SYSTEM_REFUSALS)
def test_a_system_turn_that_a_template_refuses_is_folded_into_the_users(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, before the first answer, for all that follow; who served it says so."""

    async def main() -> tuple[list[Response], LocalServer]:
        def answer(asked: Asked) -> Reply:
            roles = [turn["role"] for turn in asked.body["messages"]]
            return (400, {"error": {"message": words}}) if "system" in roles else (200, GOOD)

        async with LocalServer(answer) as server:
            client = OpenAI(ClientSettings(name="mock", base_url=server.base_url))
            turns = (("system", "Be brief."), ("user", "Hello?"))
            asked = [replace(request_of(client, n), messages=turns) for n in range(2)]
            asked.append(request_of(client, 3))
            try:
                return [await client.generate(request) for request in asked], server
            finally:
                await client.close()

    responses, server = asyncio.run(asyncio.wait_for(main(), 20))
    assert [r.text for r in responses] == ["yes"] * 3
    assert [len(asked.body["messages"]) for asked in server.posted] == [2, 1, 1, 1]
    folded = {"role": "user", "content": "Be brief.\n\nHello?"}
    assert server.posted[1].body["messages"] == [folded]
    assert responses[0].served_by == "mock, system turn folded into the user's"
    said = capsys.readouterr().err
    assert said.startswith("openai:mock: the system turn is folded into the first user turn (")
    assert said.count("\n") == 1
