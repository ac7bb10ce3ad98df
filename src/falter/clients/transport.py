"""JSON over HTTP for model servers, with rate limits, retries, preflight and hidden keys."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import orjson
from yarl import URL

from falter.clients.answers import (
    Answer,
    RequestRefused,
    TooLargeJson,
    UnusableAnswer,
    failed,
    read_json,
    refused_key,
)
from falter.clients.connection import (
    ENDPOINT_PATHS,
    JSON,
    Connection,
    Reply,
    is_loopback,
    normal_url,
    read_key,
)
from falter.clients.dialect import Dialect, Habit
from falter.clients.limiter import Limiter
from falter.clients.retry import (
    AbortRun,
    GiveUp,
    Outcome,
    RetryPolicy,
    asked_wait,
    inner_status,
    read_error,
)
from falter.clients.settings import ClientSettings
from falter.records.errors import (
    AuthenticationError,
    EndpointError,
    InvalidValue,
    PreflightError,
    RunStopped,
    nearest,
    refusal,
)
from falter.records.types import Request, Response

Build = Callable[[Request], Mapping[str, Any] | bytes]
Read = Callable[[Any], Answer]

# A rule of thumb for English, in bytes of JSON. It only serves the token rate; the usage that the
# server reports corrects the count (`Limiter.settle`).
CHARACTERS_A_TOKEN = 4
CHECK_SECONDS = 10.0
MAX_UPLOAD_SECONDS, MAX_SILENCE_SECONDS = 900.0, 120.0
"""Maximum seconds for the upload of a batch, and without a byte while its results are read."""
MAX_CALL_BYTES = 256 * 2**20
QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
FILTERED = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
"""Error codes with which a provider refuses a prompt."""
MISSING_ENDPOINT_STATUSES = frozenset({404, 405})
"""HTTP statuses of a missing endpoint, most likely because the base URL is wrong."""
ODD_JSON = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""Errors that reading JSON of an unexpected form raises."""


UNUSABLE_ANSWER = "unusable answer"


def _server_trouble(result: Answer | Outcome) -> str | None:
    """Return the reason of a failed attempt if the server is unreachable or broken, else None.

    A server that refuses a request, or replies in an unexpected form, is working.
    """
    if isinstance(result, Answer) or result.final or result.what == UNUSABLE_ANSWER:
        return None
    if result.status is not None and result.status < 500:
        return None
    return f"{result.what}: {result.message}" if result.message else result.what


def listed_models(data: Any) -> list[str]:
    """Return the model names in a server's list: `id` or `name` in `data` or `models`.

    JSON of another form has no names.
    """
    rows = data
    if isinstance(data, dict):
        rows = data.get("data") or data.get("models")
    if not isinstance(rows, list):
        return []
    names = (row.get("id") or row.get("name") for row in rows if isinstance(row, dict))
    return [name for name in names if isinstance(name, str)]


class Transport:
    """A sender of JSON requests to one model server, with retries, rate limits and time-outs.

    The settings hold the server's address and the limits. A provider adds:

    - `default_url`, its base URL, and `key_variable`, the environment variable with its key. This
      key is sent to the provider's own host only, which requires a key. Any other server, also a
      server on this machine, gets a key only if `api_key_env` names it.
    - `key_header`, the header of the key (`x-api-key: {key}`), and further `headers`.
    - `endpoints`, paths that are refused at the end of a base URL.
    - `models_path`, the path of the list of models (None without a list), and `models_of`, which
      reads the names from the list.
    - `renames`, `may_drop` and `habits`: the permitted changes of the dialect, see `Dialect`.

    `on_attempt` is called after every attempt: with a reason if the server was unreachable or
    broken, otherwise with None.

    Redirects are not followed. Bodies and messages are limited in size. The key is in no message,
    record or log.
    """

    def __init__(
        self,
        settings: ClientSettings,
        *,
        default_url: str | None = None,
        key_variable: str | None = None,
        key_header: str = "Authorization: Bearer {key}",
        headers: Mapping[str, str] = MappingProxyType({}),
        endpoints: Sequence[str] = ENDPOINT_PATHS,
        models_path: str | None = "models",
        models_of: Callable[[Any], Sequence[str]] = listed_models,
        renames: Mapping[str, str] = MappingProxyType({}),
        may_drop: Collection[str] = (),
        habits: Mapping[str, Habit] = MappingProxyType({}),
    ) -> None:
        if settings.base_url is None and default_url is None:
            raise InvalidValue("base_url", None, "the URL of a server")
        self.base_url = normal_url(settings.base_url or default_url or "", endpoints)
        home = URL(default_url or "")
        # The scheme and the port too: a key never goes to the provider's host in plain text.
        self.is_home = bool(home.host) and URL(self.base_url).origin() == home.origin()
        self.limiter = Limiter(
            concurrency=settings.concurrency,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
        )
        self.dialect = Dialect(renames, may_drop, habits)
        self.on_attempt: Callable[[str | None], None] = lambda trouble: None
        self._sent_at: dict[object, float] = {}
        self._policy = RetryPolicy(settings.max_attempts, cap=settings.max_wait)
        self._models_path, self._models_of = models_path, models_of
        self._check_seconds = min(CHECK_SECONDS, settings.timeout)
        self._usual_path = home.path if default_url else "/v1"
        # Keys
        self._key_name = settings.api_key_env or key_variable
        named = settings.api_key_env is not None
        wanted = self._key_name is not None and (named or self.is_home)
        self._key = read_key(self._key_name) if wanted and self._key_name else None
        # A provider's default server on this machine may need no key.
        local = is_loopback(home.host or "")
        self._key_missing = self._key is None and wanted and (named or not local)
        name, _, value = key_header.partition(": ")
        given = {h: read_key(v, spaces=True) for h, v in (settings.headers or {}).items()}
        self._unset_variables = [v for h, v in (settings.headers or {}).items() if given[h] is None]
        extra = {header: text for header, text in given.items() if text is not None}
        key_headers = {} if self._key is None else {name: value.replace("{key}", self._key)}
        self._connection = Connection(
            self.base_url,
            connections=settings.concurrency,
            timeout=settings.timeout,
            headers={**headers, **key_headers, **extra},
            secrets=[text for text in (self._key, *extra.values()) if text is not None],
        )

    @property
    def key_variable(self) -> str | None:
        """The environment variable whose value is sent as the key; None if no key is sent.

        A plan shows this name, also if the variable is not set.
        """
        return self._key_name if self._key is not None or self._key_missing else None

    @property
    def waits_since(self) -> float | None:
        """Time at which the oldest attempt in flight was sent, by the event loop's clock.

        None if no attempt is in flight.
        """
        # A dictionary keeps the order of insertion, so that the first entry is the oldest.
        return next(iter(self._sent_at.values()), None)

    def url(self, path: str) -> URL:
        """Return the URL of an endpoint."""
        return URL(f"{self.base_url}/{path}")

    async def answer(self, request: Request, url: URL, build: Build, read: Read) -> Response:
        """Return the response to a request: its answer, or the reason of its failure.

        `build` returns the body; `read` returns the answer in the JSON of a reply, as for `ask`. A
        mapping is sent in the server's `dialect`; a body in bytes must have the dialect already.
        Raise `PreflightError` if the endpoint is missing and the server has answered nothing yet.
        """
        dialect = self.dialect
        while True:
            version = dialect.version
            try:
                if dialect.dropped:
                    dialect.require(request.variant.recipe.sampling or {})
                body = build(request)
                if not isinstance(body, bytes):
                    body = orjson.dumps(dialect.fields(body))
                tokens = len(body) // CHARACTERS_A_TOKEN + request.sampling.max_tokens
                answer, seconds = await self.ask(url, body, tokens, read)
            except RequestRefused as refusal:
                if refusal.code in FILTERED:
                    return refused_key(request.key, "content_filter")
                if refusal.status in MISSING_ENDPOINT_STATUSES and not dialect.settled:
                    raise PreflightError(
                        f"{self.base_url} does not support this client: {refusal.message}",
                        hint="check the base URL, the model's name and the client; 'falter list "
                        "clients' lists the clients",
                    ) from refusal
                # A concurrent request may have learnt the change meanwhile; then only send again.
                if version == dialect.version and not self._learn(request, refusal):
                    return failed(request, refusal.message)
            except EndpointError as error:
                return failed(request, error.message)
            except orjson.JSONEncodeError as error:
                return failed(request, f"the prompt cannot be sent as JSON: {error}")
            else:
                if version == dialect.version:
                    dialect.settled = True
                    answer = replace(answer, served_by=dialect.note(answer.served_by))
                    return answer.response(request, seconds)

    async def ask(self, url: URL, body: bytes, tokens: float, read: Read) -> tuple[Answer, float]:
        """Send a request; return the answer that `read` found, and the seconds of the last attempt.

        `tokens` estimates the tokens of the request, for the token rate. If `read` raises
        `UnusableAnswer`, or the reply has an unexpected form, the request is sent again. Raise
        `RequestRefused` if the request failed for good, `AuthenticationError` if the key was
        refused, and `RunStopped` if the quota is used up.
        """
        self._require_variables()
        attempt = 0
        while True:
            attempt += 1
            await self.limiter.acquire(tokens)
            started, mark = time.perf_counter(), object()
            self._sent_at[mark] = asyncio.get_running_loop().time()
            try:
                result = self._read_reply(await self._connection.post(url, body), read)
            finally:
                del self._sent_at[mark]
                self.limiter.release()
            self.on_attempt(_server_trouble(result))
            if isinstance(result, Answer):
                seconds = time.perf_counter() - started
                used = result.usage.prompt_tokens + result.usage.completion_tokens
                if used:
                    self.limiter.settle(tokens, used)
                return result, seconds
            await self._wait_or_raise(attempt, result, tokens, url)

    async def call(
        self, url: URL, body: bytes | None = None, *, kind: str = JSON, once: bool = False
    ) -> Any:
        """Return the JSON of an endpoint other than a model: a POST, or a GET if there is no body.

        With `once`, an attempt that the server may have carried out is not repeated. Raise the same
        exceptions as `ask`.
        """
        self._require_variables()
        attempt = 0
        while True:
            attempt += 1
            await self.limiter.acquire(0)
            try:
                reply = await self._connection.exchange(
                    url, body, seconds=MAX_UPLOAD_SECONDS, kind=kind, most=MAX_CALL_BYTES
                )
            finally:
                self.limiter.release()
            data = self._parse_reply(reply)
            if not isinstance(data, Outcome):
                return data
            if once and (data.status is None or data.status >= 500):
                raise RequestRefused(self.clean(data.message), status=data.status)
            await self._wait_or_raise(attempt, data, 0, url)

    async def lines(self, url: URL) -> AsyncIterator[Any]:
        """Yield the JSON of each line of a file; None for a line that is not JSON.

        Raise the same exceptions as `ask`. If the connection breaks after the first line, raise
        `RequestRefused`; the caller must start again.
        """
        self._require_variables()
        attempt = begun = 0
        while True:
            attempt += 1
            outcome: Outcome | None = None
            async for line in self._connection.lines(url, MAX_SILENCE_SECONDS):
                if isinstance(line, bytes):
                    begun += 1
                    yield self._parsed_line(line)
                else:
                    outcome = line if isinstance(line, Outcome) else self._refusal_outcome(*line)
            if outcome is None:
                return
            # A second attempt would yield the first lines again, and the caller counts lines.
            if begun:
                raise RequestRefused(
                    f"the connection broke while the results were read: {outcome.message}",
                    status=None,
                )
            await self._wait_or_raise(attempt, outcome, 0, url)

    async def check(self, model: str) -> None:
        """Raise `PreflightError` if the server is away, refuses the key or lacks the model."""
        self._require_variables()
        if self._models_path is None:
            return
        status, _, raw = await self._request_models(self.base_url)
        if status in (401, 403):
            message = self.clean(read_error(raw).message)
            raise PreflightError(
                f"{self.base_url} refused the credentials: HTTP {status}: {message}",
                hint=self._key_hint(),
            )
        if status == 404 and URL(self.base_url).path == "/":
            usual = self.base_url + self._usual_path
            if (await self._request_models(usual))[0] == 200:
                raise PreflightError(f"{self.base_url} has no API at its root", hint=f"use {usual}")
        if status == 200:
            self._check_listed(model, raw)

    async def close(self) -> None:
        """Close the connections. Safe to call twice; the next request opens new ones."""
        await self._connection.close()

    def clean(self, text: str) -> str:
        """Return a message that can be shown: one line, bounded in length, secrets masked."""
        return self._connection.clean(text)

    # -- asking ------------------------------------------------------------------------------

    def _require_variables(self) -> None:
        """Raise `PreflightError` if the variable of the key or of a header is not set."""
        if self._key_missing:
            raise refusal(PreflightError, "clients.no_key", variable=self._key_name)
        if self._unset_variables:
            raise refusal(PreflightError, "clients.no_header", variable=self._unset_variables[0])

    def _learn(self, request: Request, refusal: RequestRefused) -> bool:
        """Return True if the refusal changed the dialect; print each change once."""
        field = self.dialect.learn(refusal)
        if field is None:
            return False
        change = self.dialect.changes[field]
        print(f"{request.model.label}: {field} is {change} ({refusal.said})", file=sys.stderr)
        return True

    def _parse_reply(self, reply: Reply | Outcome) -> Any:
        """Return the JSON in a reply, or an `Outcome` if the attempt failed."""
        if isinstance(reply, Outcome):
            return reply
        if reply[0] >= 300:
            return self._refusal_outcome(*reply)
        try:
            return self._connection.masked(read_json(reply[2]))
        except TooLargeJson as error:
            return Outcome(what=UNUSABLE_ANSWER, message=str(error), final=True)
        except ValueError as error:
            return Outcome(what=UNUSABLE_ANSWER, message=f"not JSON: {error}")

    def _read_reply(self, reply: Reply | Outcome, read: Read) -> Answer | Outcome:
        """Return the answer in a reply, or an `Outcome` if the attempt failed."""
        data = self._parse_reply(reply)
        if isinstance(data, Outcome):
            return data
        assert not isinstance(reply, Outcome)
        try:
            status = inner_status(data)
            return read(data) if status is None else self._refusal_outcome(status, *reply[1:])
        except UnusableAnswer as error:
            message = str(error)
        except ODD_JSON as error:
            message = f"odd JSON: {error!r}"
        return Outcome(what="unusable answer", message=self.clean(message))

    def _parsed_line(self, line: bytes) -> Any:
        try:
            return self._connection.masked(read_json(line))
        except ValueError:
            return None

    def _refusal_outcome(self, status: int, headers: Mapping[str, str], raw: bytes) -> Outcome:
        """Return the outcome of a reply with an error status; a rate limit pauses all requests."""
        after = asked_wait(headers)
        # A rate limit holds for the key and not for one request: without a common pause each of
        # the others would fail once more, and count against the limit.
        if status == 429 and after is not None:
            self.limiter.pause(min(after, self._policy.cap))
        error = read_error(raw)
        message = error.message
        if status < 400:
            place = headers.get("Location", "an unnamed place")
            message = f"the server moved to {place}; set base_url to that address"
        return Outcome(
            what=f"HTTP {status}",
            message=self.clean(message),
            status=status,
            retry_after=after,
            final=error.code in QUOTA_CODES,
            code=error.code,
            field=error.field,
        )

    async def _wait_or_raise(self, attempt: int, outcome: Outcome, tokens: float, url: URL) -> None:
        """Wait until the next attempt is due, or raise if there is none."""
        if outcome.status in MISSING_ENDPOINT_STATUSES:
            outcome = replace(outcome, what=f"{outcome.what} at {url}")
        # A request that the server refused used none of the tokens that were reserved for it. After
        # a time-out this is unknown, so the tokens stay reserved.
        if outcome.status is not None:
            self.limiter.settle(tokens, 0)
        decision = self._policy.decide(attempt, outcome)
        if isinstance(decision, AbortRun):
            raise AuthenticationError(
                f"{self.base_url} refused the credentials: {decision.message}",
                hint=self._key_hint(),
            )
        if isinstance(decision, GiveUp) and outcome.code in QUOTA_CODES:
            raise RunStopped(
                f"{self.base_url}: the quota of this key is exhausted: {decision.reason}",
                hint="all responses so far are stored; run the same command again when there is "
                "more quota",
            )
        if isinstance(decision, GiveUp):
            raise RequestRefused(
                decision.reason,
                status=outcome.status,
                said=outcome.message,
                code=outcome.code,
                field=outcome.field,
            )
        if outcome.status == 429 and outcome.retry_after is not None:
            return  # the limiter's cool-down holds this request back with all others
        await asyncio.sleep(decision.seconds)

    # -- before the first request ------------------------------------------------------------

    async def _request_models(self, base_url: str) -> Reply:
        """Return the reply with the list of models; status 0 and no body if it is too long."""
        url = URL(f"{base_url}/{self._models_path}")
        reply = await self._connection.exchange(url, seconds=self._check_seconds)
        if not isinstance(reply, Outcome):
            return reply
        if reply.final and reply.what == "unusable answer":
            return 0, {}, b""
        raise refusal(PreflightError, "clients.away", base_url=self.base_url, message=reply.message)

    def _check_listed(self, model: str, raw: bytes) -> None:
        try:
            listed = list(self._models_of(read_json(raw)))
        except ODD_JSON:
            return
        # Some servers list a name with a tag or a folder that requests need not contain.
        known = {name.removesuffix(":latest") for name in listed} | set(listed)
        if not listed or model in known | {name.rpartition("/")[2] for name in known}:
            return
        close = nearest(model, listed)
        shown = ", ".join(listed[:12]) + (", …" if len(listed) > 12 else "")
        raise PreflightError(
            f"{self.base_url} has no model '{model}'",
            hint=f"did you mean '{close}'?" if close else f"it has {self.clean(shown)}",
        )

    def _key_hint(self) -> str:
        if self._key is not None:
            return f"check the key in the environment variable {self._key_name}"
        return "name the environment variable that holds this server's key with api_key_env"
