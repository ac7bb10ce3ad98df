"""The transport's arguments: what makes one provider different from another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from falter.clients import Answer, ClientSettings, Transport, UnusableAnswer
from falter.records.errors import AuthenticationError, FalterError, InvalidValue, PreflightError
from falter.records.types import BASELINE, Item, Model, Prompt, Request, Response, Sampling, Variant
from local_server import Asked, LocalServer, Reply

T = TypeVar("T")
KEY = "pk-very-secret-0123456789"
HOME = "https://api.parrot.example/v1"


def echo(asked: Asked) -> Reply:
    """Says what it was asked; lists two models."""
    if asked.method == "GET":
        return 200, {"models": [{"name": "models/polly"}, {"name": "models/jaco"}]}
    return 200, {"said": asked.body["say"]}


def request_of(text: str = "hello") -> Request:
    variant = Variant(
        item=Item(task="t", key="k", fields={}), recipe=BASELINE, draw=0,
        prompt=Prompt(sections=()), status="baseline",
    )  # fmt: skip
    return Request(
        key="k", variant=variant, model=Model(client="parrot", name="polly"),
        sampling=Sampling(), repeat=0, context=text,
    )  # fmt: skip


def say(request: Request) -> dict[str, Any]:
    return {"say": request.context}


def read(data: Any) -> Answer:
    return Answer.from_server(data["said"])


def served(
    body: Callable[[Transport, LocalServer], Awaitable[T]],
    answer: Callable[[Asked], Any] = echo,
    settings: dict[str, Any] | None = None,
    **arguments: Any,
) -> tuple[T, LocalServer]:
    """Run `body` with a transport to a local server."""

    async def main() -> tuple[T, LocalServer]:
        async with LocalServer(answer) as server:
            given = {"base_url": server.base_url, "max_wait": 0.01, **(settings or {})}
            transport = Transport(
                ClientSettings(name="polly", **given), **{"default_url": HOME, **arguments}
            )
            try:
                return await body(transport, server), server
            finally:
                await transport.close()

    return asyncio.run(asyncio.wait_for(main(), 20))


async def ask(transport: Transport, _: LocalServer) -> Response:
    return await transport.answer(request_of(), transport.url("say"), say, read)


async def check(transport: Transport, _: LocalServer) -> None:
    await transport.check("polly")


def test_a_key_travels_in_the_providers_own_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """With whatever else the provider wants in every request, and nowhere else."""
    monkeypatch.setenv("PARROT_KEY", KEY)
    response, server = served(
        ask,
        settings={"api_key_env": "PARROT_KEY"},
        key_header="x-api-key: {key}",
        headers={"parrot-version": "2025-06-01"},
    )
    assert response.text == "hello"
    (asked,) = server.asked
    assert asked.headers["x-api-key"] == KEY
    assert asked.headers["parrot-version"] == "2025-06-01"
    assert "authorization" not in asked.headers
    assert asked.path == "/v1/say" and KEY not in repr(response)


def test_a_model_may_be_part_of_the_path() -> None:
    """As it is written, with a colon."""

    async def body(transport: Transport, _: LocalServer) -> Response:
        return await transport.answer(request_of(), transport.url("models/polly:say"), say, read)

    _, server = served(body)
    assert server.asked[0].path == "/v1/models/polly:say"


def test_a_key_is_masked_whatever_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """In answers and in the messages of errors."""
    monkeypatch.setenv("PARROT_KEY", KEY)
    parrot: dict[str, Any] = {
        "settings": {"api_key_env": "PARROT_KEY"},
        "key_header": "x-api-key: {key}",
    }

    def leak(asked: Asked) -> Reply:
        return 200, {"said": asked.headers["x-api-key"]}

    def refuse(asked: Asked) -> Reply:
        return 401, {"type": "error", "error": {"message": f"bad {asked.headers['x-api-key']}"}}

    response, _ = served(ask, leak, **parrot)
    assert response.text == "…"
    with pytest.raises(AuthenticationError, match="PARROT_KEY") as caught:
        served(ask, refuse, **parrot)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "variable", "sent", "needed"),
    [
        (None, None, True, True),
        ("https://mirror.example/v1", None, False, False),
        ("https://mirror.example/v1", "PARROT_KEY", True, True),
        ("http://localhost:1/v1", None, False, False),
        ("http://localhost:1/v1", "PARROT_KEY", True, True),
    ],
)
def test_whose_key_it_is(
    base_url: str | None,
    variable: str | None,
    sent: bool,
    needed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider's own host gets it; any other, this machine too, only where it is named."""

    def transport() -> Transport:
        settings = ClientSettings(name="polly", base_url=base_url, api_key_env=variable)
        return Transport(settings, default_url=HOME, key_variable="PARROT_KEY")

    monkeypatch.delenv("PARROT_KEY", raising=False)
    assert transport()._key_missing is needed
    monkeypatch.setenv("PARROT_KEY", KEY)
    assert transport()._key == (KEY if sent else None)
    assert transport().is_home is (base_url is None)


def test_a_provider_on_this_machine_needs_no_key() -> None:
    """Nor one that has no keys at all."""
    settings = ClientSettings(name="m")
    local = Transport(settings, default_url="http://localhost:11434/api", key_variable="NO_SUCH")
    keyless = Transport(settings, default_url=HOME)
    assert not local._key_missing and not keyless._key_missing


def test_models_are_listed_where_and_how_the_provider_says() -> None:
    """The name of a model is compared with what the list holds, folders left out."""
    _, server = served(check, models_path="catalogue?size=1000")
    assert server.asked[0].path == "/v1/catalogue?size=1000"
    with pytest.raises(PreflightError, match="has no model 'polly'"):
        served(check, models_of=lambda data: ["owl"])
    served(check, models_of=lambda data: data["no such place"])


def test_a_provider_without_a_list_is_taken_at_its_word() -> None:
    """Nothing is sent; a missing key is found all the same."""
    _, server = served(check, models_path=None)
    assert server.asked == []
    with pytest.raises(PreflightError, match="variable NO_SUCH_KEY is not set"):
        served(check, settings={"api_key_env": "NO_SUCH_KEY"}, models_path=None)


def test_a_forgotten_path_is_the_providers_own() -> None:
    """A server without an API at its root is tried at the path that the provider has."""

    def rooted(asked: Asked) -> Reply:
        return (200, []) if asked.path == "/api/beta/models" else (404, {})

    async def at_root(_: Transport, server: LocalServer) -> None:
        settings = ClientSettings(name="polly", base_url=f"http://127.0.0.1:{server.port}")
        transport = Transport(settings, default_url="https://api.parrot.example/api/beta")
        try:
            await transport.check("polly")
        finally:
            await transport.close()

    with pytest.raises(PreflightError) as caught:
        served(at_root, rooted)
    assert (caught.value.hint or "").endswith("/api/beta")


def test_endpoints_do_not_belong_into_a_base_url() -> None:
    """What people paste along is the provider's to say."""
    settings = ClientSettings(name="polly", base_url=f"{HOME}/say")
    with pytest.raises(InvalidValue, match="the part before the endpoint"):
        Transport(settings, endpoints=("say",))
    assert Transport(settings).base_url == f"{HOME}/say"
    with pytest.raises(InvalidValue, match="base_url is None; expected the URL of a server"):
        Transport(ClientSettings(name="polly"))


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        ({"sad": 3}, "unusable answer after 2 attempts: odd JSON: KeyError('said')"),
        ([], "unusable answer after 2 attempts: odd JSON: TypeError"),
        ({"said": 3}, "unusable answer after 2 attempts: odd JSON: TypeError"),
        ({"said": "empty"}, "unusable answer after 2 attempts: it said nothing"),
    ],
)
def test_json_of_another_form_is_a_failure(reply: Any, failure: str) -> None:
    """A provider may read its replies as they are documented: what is otherwise is asked again."""

    def strict(data: Any) -> Answer:
        if data["said"] == "empty":
            raise UnusableAnswer("it said\nnothing")
        return read(data)

    async def body(transport: Transport, _: LocalServer) -> Response:
        return await transport.answer(request_of(), transport.url("say"), say, strict)

    response, server = served(body, lambda _: (200, reply), {"max_attempts": 2})
    assert (response.failure or "").startswith(failure)
    assert len(server.asked) == 2


def test_a_body_that_is_no_json_is_a_failure() -> None:
    """Of its own request, and nothing is sent."""

    async def body(transport: Transport, _: LocalServer) -> Response:
        request = request_of("half \ud800 a character")
        return await transport.answer(request, transport.url("say"), say, read)

    response, server = served(body)
    assert "cannot be sent as JSON" in (response.failure or "")
    assert server.asked == []


def test_values_of_a_server_are_taken_with_care() -> None:
    """Wrong types count as absent, and long texts are cut."""
    odd = Answer.from_server(
        "x" * 1_000_001, finish_reason=[], prompt_tokens="7", completion_tokens=True, served_by=3
    )
    stored = odd.stored("sha256:0")
    assert len(stored.text or "") == 1_000_000
    assert (stored.finish_reason, stored.served_by) == ("length", None)
    assert (odd.usage.prompt_tokens, odd.usage.completion_tokens) == (0, 0)
    good = Answer.from_server("x", finish_reason="s" * 200, prompt_tokens=7, completion_tokens=1)
    assert len(good.finish_reason or "") == 100
    assert (good.usage.prompt_tokens, good.usage.completion_tokens) == (7, 1)


def test_a_body_in_words_goes_out_in_the_servers_shape(capsys: pytest.CaptureFixture[str]) -> None:
    """A provider gets the learning of dialects by naming what may change."""

    def picky(asked: Asked) -> Reply:
        if "mood" in asked.body:
            return 422, {"error": "'mood' is not supported"}
        return echo(asked)

    async def body(transport: Transport, _: LocalServer) -> Response:
        def moody(request: Request) -> dict[str, Any]:
            return {**say(request), "mood": "good"}

        return await transport.answer(request_of(), transport.url("say"), moody, read)

    response, server = served(body, picky, may_drop=("mood",))
    assert (response.text, response.served_by) == ("hello", "asked without mood")
    assert [set(asked.body) for asked in server.asked] == [{"say", "mood"}, {"say"}]
    assert "parrot:polly: mood is not sent" in capsys.readouterr().err


def test_errors_are_falters_own() -> None:
    """Whatever the transport raises, the command line can show."""
    with pytest.raises(FalterError):
        served(check, lambda _: (403, {"error": {"message": "no"}}))
