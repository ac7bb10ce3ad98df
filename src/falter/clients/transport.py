"""JSON over HTTP for model servers: limits, retries, preflight, and no key shown."""

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
    ENDPOINTS,
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

# A rule of thumb for English, counted in bytes of JSON. It only paces requests: the count is
# corrected by the usage that the server reports (`Limiter.settle`).
CHARACTERS_A_TOKEN = 4
CHECK_SECONDS = 10.0
LONG_CALL, SILENCE = 900.0, 120.0
"""Seconds that the upload of a batch may take, and that may pass without a byte of its results."""
LARGEST_CALL = 256 * 2**20
QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
FILTERED = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
"""Codes of an error that is the provider's refusal of this prompt."""
WRONG_PLACE = frozenset({404, 405})
"""Statuses of requests that went to no endpoint, most likely because the base URL is wrong."""
ODD_JSON = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""Errors that reading JSON of an unexpected form raises."""


UNUSABLE = "unusable answer"


def _trouble(result: Answer | Outcome) -> str | None:
    """Return the reason of a failed attempt if the server is away or broken, else None.

    A server that refuses a request, or answers it in an unexpected form, is at work.
    """
    if isinstance(result, Answer) or result.final or result.what == UNUSABLE:
        return None
    if result.status is not None and result.status < 500:
        return None
    return f"{result.what}: {result.message}" if result.message else result.what


def listed_models(data: Any) -> list[str]:
    """The models of a list: `id` or `name` in `data` or `models`; none when it is no list."""
    rows = data
    if isinstance(data, dict):
        rows = data.get("data") or data.get("models")
    if not isinstance(rows, list):
        return []
    names = (row.get("id") or row.get("name") for row in rows if isinstance(row, dict))
    return [name for name in names if isinstance(name, str)]


class Transport:
    """Posts JSON to one model server and gets JSON back, however many attempts that takes.

    The settings say where the server is and how hard to lean on it. A provider adds:

    - `default_url`, its base URL, and `key_variable`, the environment variable with its key. That
      key goes to the provider's own host, which has to have one. Any other server, also one on
      this machine, gets a key only where `api_key_env` names it.
    - `key_header`, how the key travels (`x-api-key: {key}`), and further `headers`.
    - `endpoints`, paths that do not belong into a base URL and are refused there.
    - `models_path`, where the list of models is (None: there is none), and `models_of`, which
      reads their names from it.
    - `renames`, `may_drop` and `habits`: that in which dialects differ, see `Dialect`.

    `on_attempt` is called after every attempt, with None if the server answered, else the reason.

    Redirects are not followed, bodies and messages are bounded, and the key is in no message,
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
        endpoints: Sequence[str] = ENDPOINTS,
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
        self._sent: dict[object, float] = {}
        self._policy = RetryPolicy(settings.max_attempts, cap=settings.max_wait)
        self._models_path, self._models_of = models_path, models_of
        self._check_seconds = min(CHECK_SECONDS, settings.timeout)
        self._usual_path = home.path if default_url else "/v1"
        # Keys
        self._variable = settings.api_key_env or key_variable
        named = settings.api_key_env is not None
        wanted = self._variable is not None and (named or self.is_home)
        self._key = read_key(self._variable) if wanted and self._variable else None
        # A server of the provider's own that runs on this machine may take none.
        local = is_loopback(home.host or "")
        self._key_missing = self._key is None and wanted and (named or not local)
        name, _, value = key_header.partition(": ")
        given = {h: read_key(v, spaces=True) for h, v in (settings.headers or {}).items()}
        self._unset = [v for h, v in (settings.headers or {}).items() if given[h] is None]
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
        """The name of the environment variable whose value goes to the server; None if none does.

        The name alone, for a plan to show; whether the variable is set does not matter.
        """
        return self._variable if self._key is not None or self._key_missing else None

    @property
    def waits_since(self) -> float | None:
        """Time at which the oldest attempt in flight was sent, by the loop's clock."""
        # A dictionary keeps the order of insertion, so that the first entry is the oldest.
        return next(iter(self._sent.values()), None)

    def url(self, path: str) -> URL:
        """Return the URL of an endpoint."""
        return URL(f"{self.base_url}/{path}")

    async def answer(self, request: Request, url: URL, build: Build, read: Read) -> Response:
        """The response to a request: its answer, or the reason why there is none.

        `build` makes the body, and `read` the answer from the JSON that came, as for `ask`. A body
        that is a mapping goes out in the server's `dialect`; one in bytes has it already. A server
        without such an endpoint is found out before it has answered anything: `PreflightError`.
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
                if refusal.status in WRONG_PLACE and not dialect.settled:
                    raise PreflightError(
                        f"{self.base_url} does not support this client: {refusal.message}",
                        hint="check the base URL, the model's name and the client; 'falter list "
                        "clients' lists the clients",
                    ) from refusal
                # Another request may have learnt it while this one was under way.
                if version == dialect.version and not self._learns(request, refusal):
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
        """Send a request; return the answer as parsed by `read`, and the seconds it took.

        `tokens` estimates the tokens of the request, for the token rate. `read` raises
        `UnusableAnswer` if the request is worth sending again; an answer of an unexpected form
        is treated in the same way. Raises `RequestRefused` when the request failed for good,
        `AuthenticationError` when the key was refused, `RunStopped` when the quota is used up.
        """
        self._require_variables()
        attempt = 0
        while True:
            attempt += 1
            await self.limiter.acquire(tokens)
            started, mark = time.perf_counter(), object()
            self._sent[mark] = asyncio.get_running_loop().time()
            try:
                result = self._read(await self._connection.post(url, body), read)
            finally:
                del self._sent[mark]
                self.limiter.release()
            self.on_attempt(_trouble(result))
            if isinstance(result, Answer):
                seconds = time.perf_counter() - started
                used = result.usage.prompt_tokens + result.usage.completion_tokens
                if used:
                    self.limiter.settle(tokens, used)
                return result, seconds
            await self._wait(attempt, result, tokens, url)

    async def call(
        self, url: URL, body: bytes | None = None, *, kind: str = JSON, once: bool = False
    ) -> Any:
        """The JSON of an endpoint that is no model's: a POST of the body, or a GET without one.

        `once` is for what must not happen twice: an attempt of which nobody knows whether it was
        carried out is not repeated. Raises what `ask` raises.
        """
        self._require_variables()
        attempt = 0
        while True:
            attempt += 1
            await self.limiter.acquire(0)
            try:
                reply = await self._connection.exchange(
                    url, body, seconds=LONG_CALL, kind=kind, most=LARGEST_CALL
                )
            finally:
                self.limiter.release()
            data = self._json(reply)
            if not isinstance(data, Outcome):
                return data
            if once and (data.status is None or data.status >= 500):
                raise RequestRefused(self.clean(data.message), status=data.status)
            await self._wait(attempt, data, 0, url)

    async def lines(self, url: URL) -> AsyncIterator[Any]:
        """The JSON of each line of a file; None for a line that is none.

        Raises what `ask` raises; where a file breaks off, whoever reads it begins again.
        """
        self._require_variables()
        attempt = begun = 0
        while True:
            attempt += 1
            outcome: Outcome | None = None
            async for line in self._connection.lines(url, SILENCE):
                if isinstance(line, bytes):
                    begun += 1
                    yield self._line(line)
                else:
                    outcome = line if isinstance(line, Outcome) else self._refused(*line)
            if outcome is None:
                return
            # A second attempt would yield the first lines again, and the caller counts lines.
            if begun:
                raise RequestRefused(
                    f"the connection broke while the results were read: {outcome.message}",
                    status=None,
                )
            await self._wait(attempt, outcome, 0, url)

    async def check(self, model: str) -> None:
        """Raise `PreflightError` when the server is away, refuses the key or lacks the model."""
        self._require_variables()
        if self._models_path is None:
            return
        status, _, raw = await self._models(self.base_url)
        if status in (401, 403):
            message = self.clean(read_error(raw).message)
            raise PreflightError(
                f"{self.base_url} refused the credentials: HTTP {status}: {message}",
                hint=self._key_hint(),
            )
        if status == 404 and URL(self.base_url).path == "/":
            usual = self.base_url + self._usual_path
            if (await self._models(usual))[0] == 200:
                raise PreflightError(f"{self.base_url} has no API at its root", hint=f"use {usual}")
        if status == 200:
            self._check_listed(model, raw)

    async def close(self) -> None:
        """Close the connections. Safe to call twice; the next request opens new ones."""
        await self._connection.close()

    def clean(self, text: str) -> str:
        """A message fit to be shown: on one line, bounded, without the key."""
        return self._connection.clean(text)

    # -- asking ------------------------------------------------------------------------------

    def _require_variables(self) -> None:
        """Raise where a variable that has to hold the key, or a header's value, is not set."""
        if self._key_missing:
            raise refusal(PreflightError, "clients.no_key", variable=self._variable)
        if self._unset:
            raise refusal(PreflightError, "clients.no_header", variable=self._unset[0])

    def _learns(self, request: Request, refusal: RequestRefused) -> bool:
        """Return True if another dialect is worth a try; print each change once."""
        field = self.dialect.learn(refusal)
        if field is None:
            return False
        change = self.dialect.changes[field]
        print(f"{request.model.label}: {field} is {change} ({refusal.said})", file=sys.stderr)
        return True

    def _json(self, reply: Reply | Outcome) -> Any:
        """The JSON in a reply, or how the attempt failed: an `Outcome`."""
        if isinstance(reply, Outcome):
            return reply
        if reply[0] >= 300:
            return self._refused(*reply)
        try:
            return self._connection.masked(read_json(reply[2]))
        except TooLargeJson as error:
            return Outcome(what=UNUSABLE, message=str(error), final=True)
        except ValueError as error:
            return Outcome(what=UNUSABLE, message=f"not JSON: {error}")

    def _read(self, reply: Reply | Outcome, read: Read) -> Answer | Outcome:
        """The answer in a reply, or how the attempt failed."""
        data = self._json(reply)
        if isinstance(data, Outcome):
            return data
        assert not isinstance(reply, Outcome)
        try:
            status = inner_status(data)
            return read(data) if status is None else self._refused(status, *reply[1:])
        except UnusableAnswer as error:
            message = str(error)
        except ODD_JSON as error:
            message = f"odd JSON: {error!r}"
        return Outcome(what="unusable answer", message=self.clean(message))

    def _line(self, line: bytes) -> Any:
        try:
            return self._connection.masked(read_json(line))
        except ValueError:
            return None

    def _refused(self, status: int, headers: Mapping[str, str], raw: bytes) -> Outcome:
        """An answer came, with an error status."""
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
            final=error.code in QUOTA,
            code=error.code,
            field=error.field,
        )

    async def _wait(self, attempt: int, outcome: Outcome, tokens: float, url: URL) -> None:
        """Wait for the next attempt, or raise."""
        if outcome.status in WRONG_PLACE:
            outcome = replace(outcome, what=f"{outcome.what} at {url}")
        # A request that the server answered with an error used none of the tokens that were
        # reserved for it. After a time-out nobody knows, so that they stay reserved.
        if outcome.status is not None:
            self.limiter.settle(tokens, 0)
        decision = self._policy.decide(attempt, outcome)
        if isinstance(decision, AbortRun):
            raise AuthenticationError(
                f"{self.base_url} refused the credentials: {decision.message}",
                hint=self._key_hint(),
            )
        if isinstance(decision, GiveUp) and outcome.code in QUOTA:
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

    async def _models(self, base_url: str) -> Reply:
        """The list of models; an empty reply with status 0 where it is too long to be read."""
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
        # Some servers list a name with a tag or a folder that they do not ask for in requests.
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
            return f"check the key in the environment variable {self._variable}"
        return "name the environment variable that holds this server's key with api_key_env"
