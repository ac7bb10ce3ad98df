"""`openai:NAME`: any server that speaks OpenAI's chat or completions API.

Chat generates. Completions generate and score: a scoring request sends context + continuation
and asks for the prompt's own log-probabilities back (`echo`).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from time import time
from typing import Any

import orjson
from yarl import URL

from falter.clients._base import ClientSettings, clients, is_loopback, normal_url, read_key
from falter.clients._http import Http, RejectedError, UnusableError
from falter.core.errors import EndpointError, InvalidValue
from falter.core.interfaces import Capabilities
from falter.core.records import ContinuationScore, Model, Request, Response, Sampling, Usage

__all__ = ["OpenAI", "connect"]

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
LONGEST_TEXT = 1_000_000
CHARACTERS_A_TOKEN = 4
OURS = frozenset(
    {"api", "model", "messages", "prompt", "stream", "stream_options", "n", "best_of", "suffix",
     "echo", "logprobs", "top_logprobs"}
)  # fmt: skip
SAMPLED = frozenset({"temperature", "top_p", "max_tokens", "stop", "seed"})
SPECIAL = re.compile(r"<.*>|\[[A-Z_]+\]|", re.S)
ENOUGH_EVIDENCE = 8


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one body said."""

    text: str | None
    scores: tuple[ContinuationScore, ...]
    finish_reason: str | None
    usage: Usage
    served_by: str | None


class _UnfitError(EndpointError):
    """The server cannot score at all: no request of this kind will ever succeed."""


@clients.registers("openai")
def connect(settings: ClientSettings) -> OpenAI:
    """A client of OpenAI, or of the server at `base_url`."""
    return OpenAI(settings)


class OpenAI:
    """One model behind one base URL. Failures become responses; only a refused key raises."""

    def __init__(self, settings: ClientSettings) -> None:
        if not settings.name:
            raise InvalidValue("name", settings.name, "the model's name, as in 'openai:NAME'")
        _check_fields(settings.options)
        base_url = normal_url(settings.base_url or DEFAULT_URL)
        host = URL(base_url).host or ""
        official = host == "api.openai.com"
        self._http = _connection(base_url, settings, host, official)
        self._chat = settings.api == "chat"
        self._limit_name = "max_completion_tokens" if official and self._chat else "max_tokens"
        self._left_out = {name for name, value in settings.options.items() if value is None}
        fields = {name: value for name, value in settings.options.items() if value is not None}
        self._head = orjson.dumps({"model": settings.name, **fields})[:-1]
        self._tails: dict[Sampling, bytes] = {}
        path = "chat/completions" if self._chat else "completions"
        self._url = self._http.url(path)
        self._scoring = _ScoringState()
        self.capabilities = Capabilities(generates=True, scores=not self._chat, chats=self._chat)
        self.model = Model(
            client="openai",
            name=settings.name,
            base_url=base_url,
            options={"api": settings.api, **settings.options},
        )

    async def check(self) -> None:
        """Ask for the model list: free of charge, and it says if the first request can work."""
        await self._http.check(self.model.name)

    async def generate(self, request: Request) -> Response:
        """One answer, or a response that says why there is none."""
        try:
            body = self._body(request)
            estimate = len(body) // CHARACTERS_A_TOKEN + request.sampling.max_tokens
            answer, latency = await self._http.ask(
                self._url, body, estimate, _read_chat if self._chat else _read_completion
            )
        except EndpointError as error:
            return _failed(request, error.message)
        return self._landed(request, answer, estimate, latency)

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Log-likelihoods, one call a request. Raises when the server cannot score at all."""
        if len(requests) == 1:
            return [await self._score(requests[0])]
        tasks = [asyncio.ensure_future(self._score(request)) for request in requests]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _body(self, request: Request) -> bytes:
        if self._chat:
            turns = request.messages or (("user", request.context),)
            asked = [{"role": role, "content": text} for role, text in turns]
            payload = b',"messages":' + _json(asked)
        else:
            # A completion has no turns: messages, where they come all the same, are joined.
            turns = request.messages
            text = "\n\n".join(text for _, text in turns) if turns else request.context
            payload = b',"prompt":' + _json(text)
        return self._head + payload + self._tail(request.sampling)

    def _tail(self, sampling: Sampling) -> bytes:
        """The end of a body: how to decode, spelled out because servers' defaults differ."""
        tail = self._tails.get(sampling)
        if tail is None:
            fields: dict[str, Any] = {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_tokens,
            }
            if sampling.stop:
                fields["stop"] = sampling.stop
            if sampling.seed is not None:
                fields["seed"] = sampling.seed
            kept = {
                self._limit_name if name == "max_tokens" else name: value
                for name, value in fields.items()
                if name not in self._left_out
            }
            tail = b"," + orjson.dumps(kept)[1:] if kept else b"}"
            self._tails[sampling] = tail
        return tail

    def _landed(self, request: Request, answer: _Answer, estimate: int, latency: float) -> Response:
        used = answer.usage.prompt_tokens + answer.usage.completion_tokens
        if used:
            self._http.limiter.settle(estimate, used)
        return Response(
            key=request.key,
            text=answer.text,
            scores=answer.scores,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            latency=latency,
            served_by=answer.served_by,
            received_at=time(),
        )

    async def _score(self, request: Request) -> Response:
        try:
            if self._chat:
                raise EndpointError("the chat API gives no log-probabilities of a given text")
            prompts = [request.context + text for text in request.continuations]
            estimate = sum(map(len, prompts)) // CHARACTERS_A_TOKEN
            answer, latency = await self._echo(prompts, request.context.rstrip(), estimate)
        except EndpointError as error:
            if isinstance(error, _UnfitError) and not self._scoring.proven:
                raise
            return _failed(request, error.message)
        self._scoring.proven = True
        return self._landed(request, answer, estimate, latency)

    async def _echo(self, prompts: list[str], context: str, estimate: int) -> tuple[_Answer, float]:
        """Have the prompts echoed; with one token generated where a server refuses none."""
        if not context:
            raise EndpointError("the context is empty: its first token has no log-probability")
        state = self._scoring
        try:
            found = await self._ask_echo(prompts, context, estimate, state.generated)
        except RejectedError as error:
            if state.settled or state.generated or error.status not in (400, 422):
                raise
            found = await self._ask_echo(prompts, context, estimate, 1)
            state.generated = 1
        state.settled = True
        return found

    async def _ask_echo(
        self, prompts: list[str], context: str, estimate: int, generated: int
    ) -> tuple[_Answer, float]:
        tail = orjson.dumps(
            {"max_tokens": generated, "temperature": 0, "echo": True, "logprobs": 1}
        )
        body = self._head + b',"prompt":' + _json(prompts) + b"," + tail[1:]
        read = self._scoring.reader(prompts, context)
        return await self._http.ask(self._url, body, estimate, read)


def _connection(base_url: str, settings: ClientSettings, host: str, official: bool) -> Http:
    """The default key is for OpenAI and for servers on this machine; others get the one named."""
    variable = settings.api_key_env or DEFAULT_KEY
    named = settings.api_key_env is not None
    key = read_key(variable) if named or official or is_loopback(host) else None
    return Http(
        base_url,
        settings,
        key=key,
        key_variable=variable,
        missing_key=key is None and (named or official),
    )


def _check_fields(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name in OURS:
            raise InvalidValue(f"options.{name}", value, "no field that falter sets itself")
        if name in SAMPLED and value is not None:
            raise InvalidValue(
                f"options.{name}",
                value,
                "None, which leaves the field out",
                hint="its value belongs in the sampling settings",
            )


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise EndpointError(f"the prompt cannot be sent as JSON: {error}") from None


def _failed(request: Request, reason: str) -> Response:
    return Response(key=request.key, failure=reason, received_at=time())


# Reading answers


def _read_chat(data: Any) -> _Answer:
    choice = _choices(data)[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnusableError("the first choice has no message")
    refusal = message.get("refusal")
    if refusal and isinstance(refusal, str):
        return _answer(data, refusal, "refusal")
    return _answer(data, _content(message.get("content")), choice.get("finish_reason"))


def _read_completion(data: Any) -> _Answer:
    choice = _choices(data)[0]
    return _answer(data, _content(choice.get("text")), choice.get("finish_reason"))


def _choices(data: Any) -> list[dict[str, Any]]:
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        error = data.get("error") if isinstance(data, dict) else None
        told = f": {orjson.dumps(error).decode()}" if error else ""
        raise UnusableError(f"no choices{told}")
    return choices


def _content(content: Any) -> str:
    """Text, or the text parts of a list of parts; nothing at all is the empty text."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    raise UnusableError("the content is not text")


def _answer(data: dict[str, Any], text: str, finish: Any) -> _Answer:
    if len(text) > LONGEST_TEXT:
        text, finish = text[:LONGEST_TEXT], "length"
    reason = finish[:100] if isinstance(finish, str) else None
    return _Answer(text, (), reason, _usage(data), _served_by(data))


def _usage(data: dict[str, Any]) -> Usage:
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    sent, got = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(
        prompt_tokens=sent if type(sent) is int and sent > 0 else 0,
        completion_tokens=got if type(got) is int and got > 0 else 0,
    )


def _served_by(data: dict[str, Any]) -> str | None:
    served = data.get("system_fingerprint") or data.get("model")
    return served[:200] if isinstance(served, str) else None


# Reading log-probabilities


class _ScoringState:
    """What has been learnt about a server's way of scoring.

    `generated` is the fewest tokens it agrees to generate, `settled` whether it has agreed,
    `proven` whether it has scored. `same` and `following` count where the likeliest token was
    the token itself, as it should be, and where it was the one after it.
    """

    __slots__ = ("following", "generated", "proven", "same", "settled")

    def __init__(self) -> None:
        self.generated = 0
        self.settled = self.proven = False
        self.same = self.following = 0

    def reader(self, prompts: list[str], context: str) -> Callable[[Any], _Answer]:
        def read(data: Any) -> _Answer:
            echoes = [_echo_of(choice) for choice in _in_order(data, len(prompts))]
            self._check_shift(echoes[0])
            scores = tuple(
                echo.score(context, prompt) for echo, prompt in zip(echoes, prompts, strict=True)
            )
            return _Answer(None, scores, None, _usage(data), _served_by(data))

        return read

    def _check_shift(self, echo: _Echo) -> None:
        """Refuse a server whose log-probabilities belong to the token before.

        Some blank the first entry all the same. But what such a server holds most likely at a
        token is then what follows it, and hardly ever the token itself.
        """
        if self.same + self.following < ENOUGH_EVIDENCE:
            for top, token, following in zip(
                echo.tops, echo.tokens, [*echo.tokens[1:], ""], strict=False
            ):
                if top and token != following:
                    likeliest = max(top, key=top.__getitem__)
                    self.same += likeliest == token
                    self.following += likeliest == following
        if self.same + self.following >= ENOUGH_EVIDENCE and self.following > 3 * self.same:
            raise _UnfitError(
                "the server's log-probabilities are shifted by one: the likeliest token of an "
                "entry is the token after it; its scores would be wrong"
            )


@dataclass(frozen=True, slots=True)
class _Echo:
    """A prompt's tokens as a server sees them."""

    tokens: list[str]
    logprobs: list[float | None]
    starts: list[int]
    tops: list[dict[str, float]]

    def score(self, context: str, prompt: str) -> ContinuationScore:
        """The log-likelihood of what `prompt` has beyond `context`."""
        beyond = self._beyond(context, prompt)
        values = [self.logprobs[n] for n in beyond]
        known = [v for v in values if v is not None and math.isfinite(v) and v < 1e-3]
        if not values or len(known) < len(values):
            raise EndpointError("a token of the continuation has no log-probability")
        greedy = None
        if self.tops and all(self.tops[n] for n in beyond):
            best = (max(self.tops[n].values()) for n in beyond)
            greedy = all(v >= top - 1e-6 for v, top in zip(known, best, strict=True))
        return ContinuationScore(logprob=math.fsum(known), tokens=len(known), greedy=greedy)

    def _beyond(self, context: str, prompt: str) -> list[int]:
        """The tokens that reach beyond the context, in characters or else in bytes.

        A token across the boundary counts: a tokenizer that joins the two sides has no other
        place for the continuation's first letters. A special token that a server puts before
        the prompt is stepped over; a token it generates after the prompt is left out.
        """
        tokens, starts = self.tokens, self.starts
        special = SPECIAL.fullmatch(tokens[0]) and not (tokens[0] and prompt.startswith(tokens[0]))
        first = 1 if special and len(tokens) > 1 else 0
        begins = [start - starts[first] for start in starts]
        ends = [*begins[1:], begins[-1] + len(tokens[-1])]
        for measure in (len, _bytes):
            whole, boundary = measure(prompt), measure(context)
            inside = [n for n in range(first, len(tokens)) if begins[n] < whole]
            generated = len(tokens) - first - len(inside)
            if inside and generated <= 1 and ends[inside[-1]] == whole:
                return [n for n in inside if ends[n] > boundary or begins[n] >= boundary]
        raise EndpointError(
            f"the echoed tokens do not add up to the prompt: they end at {ends[-1]}, the prompt "
            f"has {len(prompt)} characters"
        )


def _bytes(text: str) -> int:
    return len(text.encode())


def _in_order(data: Any, number: int) -> list[dict[str, Any]]:
    """One choice a prompt, in the prompts' order."""
    choices = _choices(data)
    if len(choices) != number or not all(isinstance(choice, dict) for choice in choices):
        raise UnusableError(f"{len(choices)} choices for {number} prompts")
    places = [choice.get("index") for choice in choices]
    if all(place is None for place in places):
        return choices
    if not _all(places, int) or set(places) != set(range(number)):
        raise UnusableError("the choices are not numbered from 0 to the last")
    return sorted(choices, key=lambda choice: int(choice["index"]))


def _echo_of(choice: dict[str, Any]) -> _Echo:
    found = choice.get("logprobs")
    if not isinstance(found, dict):
        raise _UnfitError("the server gives no log-probabilities with echo; it cannot score")
    tokens = _list(found, "tokens", str)
    logprobs = _list(found, "token_logprobs", (float, int, type(None)))
    if len(tokens) != len(logprobs):
        raise UnusableError(f"{len(tokens)} tokens with {len(logprobs)} log-probabilities")
    if len(tokens) < 2:
        raise _UnfitError(
            "the server does not echo the prompt's log-probabilities; it cannot score"
        )
    if logprobs[0] is not None:
        raise _UnfitError(
            f"the server's log-probabilities are shifted by one: its first entry is {logprobs[0]}, "
            "and nothing stands before the first token; its scores would be wrong"
        )
    if found.get("text_offset"):
        offsets = _list(found, "text_offset", int)
    else:
        offsets = list(accumulate(map(len, tokens), initial=0))[:-1]
    if len(offsets) != len(tokens) or offsets != sorted(offsets):
        raise UnusableError("the text offsets do not fit the tokens")
    tops = found.get("top_logprobs")
    if not isinstance(tops, list) or len(tops) != len(tokens):
        tops = []
    return _Echo(tokens, logprobs, offsets, [_numbers(top) for top in tops])


def _list(found: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> list[Any]:
    values = found.get(name)
    if not _all(values, kind):
        raise UnusableError(f"the log-probabilities have no usable list '{name}'")
    return list(values or ())


def _all(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, kind) and not isinstance(value, bool) for value in values
    )


def _numbers(top: Any) -> dict[str, float]:
    if not isinstance(top, dict):
        return {}
    return {token: value for token, value in top.items() if isinstance(value, (int, float))}
