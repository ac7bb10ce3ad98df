"""JSON over HTTP for model servers: one session, the limiter, the retry loop, and no key shown."""

from __future__ import annotations

import asyncio
import io
import os
import re
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import aiohttp
import orjson
from yarl import URL

from falter.clients._base import ClientSettings, is_loopback
from falter.clients._limiter import Limiter
from falter.clients._retry import GiveUp, Outcome, RetryPolicy, Stop, retry_after
from falter.core.errors import (
    AuthenticationError,
    EndpointError,
    PreflightError,
    nearest,
)

__all__ = ["Http", "RejectedError", "UnusableError", "said"]

T = TypeVar("T")

LARGEST_BODY = 32 * 2**20
LONGEST_MESSAGE = 500
CHECK_SECONDS = 10.0
SECRET_LENGTH = 8
"""Keys from this length on are also cut out of answers; a shorter one is a stand-in ("EMPTY")."""


class UnusableError(Exception):
    """An answer that arrived and says nothing usable; asking again may help."""


class RejectedError(EndpointError):
    """A request that failed for good, with the HTTP status if there was one."""

    def __init__(self, reason: str, status: int | None) -> None:
        super().__init__(reason)
        self.status = status


class _TooLargeError(Exception):
    """A body beyond what one answer can reasonably be."""


def said(raw: bytes) -> tuple[str, str]:
    """What the server said went wrong, and its code for it, from the usual places."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw[: 8 * LONGEST_MESSAGE].decode("utf-8", "replace"), ""
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else orjson.dumps(error).decode()), ""
    message = error.get("message") or error.get("detail") or error
    text = message if isinstance(message, str) else orjson.dumps(message).decode()
    return text, str(error.get("code") or error.get("type") or "")


class _Deadlines:
    """Time-outs for all requests in flight, with one timer.

    All have the same length, so the oldest is due first. A timer for each request, as aiohttp
    would set, costs a tenth of the throughput.
    """

    __slots__ = ("_due", "_loop", "_over", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._due: dict[asyncio.Task[Any], float] = {}
        self._over: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> asyncio.Task[Any]:
        """Begin the running task's time; end it with `stop`."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        due = self._due[task] = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._sweep)
        return task

    def stop(self, task: asyncio.Task[Any]) -> None:
        """End a task's time."""
        self._due.pop(task, None)
        self._over.discard(task)

    def is_over(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task was cancelled because its time was over, and for no other reason."""
        return task in self._over and task.uncancel() == 0

    def close(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        now = self._loop.time()
        self._timer = None
        for task, due in list(self._due.items()):
            if due > now:
                self._timer = self._loop.call_at(due, self._sweep)
                return
            del self._due[task]
            self._over.add(task)
            task.cancel()


class Http:
    """Posts JSON to one server and gets JSON back, however many attempts that takes.

    `missing_key` names the variable that should hold a key and does not: nothing is sent then.
    """

    def __init__(
        self,
        base_url: str,
        settings: ClientSettings,
        *,
        key: str | None,
        key_variable: str,
        missing_key: bool = False,
    ) -> None:
        self.base_url = base_url
        self.limiter = Limiter(
            concurrency=settings.concurrency,
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
        )
        self.policy = RetryPolicy(settings.max_attempts, cap=settings.max_wait)
        self._settings = settings
        self._key = key
        self._key_variable = key_variable
        self._missing_key = missing_key
        self._secrets = _spellings(key)
        self._session: aiohttp.ClientSession | None = None
        self._deadlines: _Deadlines | None = None
        self._proxy: dict[str, Any] = {}

    def url(self, path: str) -> URL:
        """Where an endpoint lives."""
        return URL(f"{self.base_url}/{path}")

    async def ask(
        self, url: URL, body: bytes, tokens: float, read: Callable[[Any], T]
    ) -> tuple[T, float]:
        """What `read` makes of the answer, and the seconds the successful attempt took.

        `read` raises `UnusableError` for an answer worth asking again for. Raises `RejectedError`
        when the request failed for good, `AuthenticationError` when the key was refused.
        """
        session, deadlines = self._opened()
        attempt = 0
        while True:
            attempt += 1
            await self.limiter.acquire(tokens)
            started = time.perf_counter()
            try:
                result = await self._attempt(session, deadlines, url, body, read)
            finally:
                self.limiter.release()
            if not isinstance(result, Outcome):
                return result, time.perf_counter() - started
            await self._after(attempt, result, tokens)

    async def check(self, model: str) -> None:
        """Raise `PreflightError` when the server is away, refuses the key or lacks the model."""
        status, raw = await self._models(self.base_url)
        if status in (401, 403):
            told = self.clean(said(raw)[0])
            raise PreflightError(
                f"{self.base_url} refused the credentials: HTTP {status}: {told}",
                hint=self._key_hint(),
            )
        if status == 404 and URL(self.base_url).path == "/":
            status, _ = await self._models(f"{self.base_url}/v1")
            if status == 200:
                raise PreflightError(
                    f"{self.base_url} has no API at its root", hint=f"use {self.base_url}/v1"
                )
        if status == 200:
            self._check_listed(model, raw)

    async def close(self) -> None:
        """Close the connections. Safe to call twice; the next request opens new ones."""
        session, self._session = self._session, None
        if self._deadlines is not None:
            self._deadlines.close()
        if session is not None:
            await session.close()
            await asyncio.sleep(0)

    def clean(self, text: str) -> str:
        """A message fit to be shown: on one line, bounded, without the key."""
        if self._key is not None:
            text = text.replace(self._key, "…")
        text = " ".join(text[: 8 * LONGEST_MESSAGE].split())
        text = "".join(c for c in text if c.isprintable())
        return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"

    def _opened(self) -> tuple[aiohttp.ClientSession, _Deadlines]:
        """The session with its time-outs, opened by the first request in the loop it runs in."""
        if self._session is not None and self._deadlines is not None:
            return self._session, self._deadlines
        if self._missing_key:
            raise PreflightError(
                f"No API key: the environment variable {self._key_variable} is not set",
                hint=f"export {self._key_variable}=…, or name another variable with api_key_env",
            )
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        # The environment's proxy is resolved once. aiohttp's trust_env would do it for every
        # request, in a thread, and send passwords from ~/.netrc along.
        self._proxy = _proxy_for(URL(self.base_url))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.concurrency, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(total=None),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._deadlines = _Deadlines(self._settings.timeout)
        return self._session, self._deadlines

    async def _attempt(
        self,
        session: aiohttp.ClientSession,
        deadlines: _Deadlines,
        url: URL,
        body: bytes,
        read: Callable[[Any], T],
    ) -> T | Outcome:
        # aiohttp warns about large bodies that are bytes, and sends files in pieces.
        data = body if len(body) < 2**20 else io.BytesIO(body)
        task = deadlines.start()
        try:
            response = await session.post(url, data=data, allow_redirects=False, **self._proxy)
            raw = await self._body(response)
        except asyncio.CancelledError:
            if not deadlines.is_over(task):
                raise
            return self._broken(TimeoutError())
        except (TimeoutError, aiohttp.ClientError, OSError, _TooLargeError) as error:
            return self._broken(error)
        finally:
            deadlines.stop(task)
        if response.status >= 300:
            return self._refused(response.status, response.headers, raw)
        try:
            return read(orjson.loads(raw))
        except orjson.JSONDecodeError as error:
            return Outcome(what="unusable answer", message=f"not JSON: {error}")
        except UnusableError as error:
            return Outcome(what="unusable answer", message=self.clean(str(error)))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        """The whole body, bounded also when it is chunked or compressed, without the key."""
        length = response.content_length
        if length is not None and length <= LARGEST_BODY and not _compressed(response):
            raw = await response.read()
        else:
            raw = await _read_bounded(response, LARGEST_BODY)
        for secret in self._secrets:
            if secret in raw:
                raw = raw.replace(secret, "…".encode())
        return raw

    def _broken(self, error: Exception) -> Outcome:
        """No whole answer came."""
        if isinstance(error, _TooLargeError):
            size = f"more than {LARGEST_BODY // 2**20} MiB"
            return Outcome(what="unusable answer", message=size, final=True)
        if isinstance(error, TimeoutError):
            seconds = f"no answer within {self._settings.timeout:g} s"
            return Outcome(what="timed out", message=seconds)
        return Outcome(
            what="connection failed",
            message=self.clean(_describe(error)),
            final=isinstance(error, aiohttp.ClientConnectorCertificateError),
        )

    def _refused(self, status: int, headers: Mapping[str, str], raw: bytes) -> Outcome:
        """An answer came, with an error status."""
        after = _asked_wait(headers)
        if status == 429 and after is not None:
            self.limiter.pause(min(after, self.policy.cap))
        message, code = said(raw)
        if status < 400:
            message = (
                f"moved to {headers.get('Location', 'an unnamed place')}; use that as base_url"
            )
        return Outcome(
            what=f"HTTP {status}",
            message=self.clean(message),
            status=status,
            retry_after=after,
            final=code == "insufficient_quota",
        )

    async def _after(self, attempt: int, outcome: Outcome, tokens: float) -> None:
        """Wait for the next attempt, or raise."""
        if outcome.status is not None:
            self.limiter.settle(tokens, 0)
        decision = self.policy.decide(attempt, outcome)
        if isinstance(decision, Stop):
            raise AuthenticationError(
                f"{self.base_url} refused the credentials: {decision.message}",
                hint=self._key_hint(),
            )
        if isinstance(decision, GiveUp):
            raise RejectedError(decision.reason, outcome.status)
        if outcome.status == 429 and outcome.retry_after is not None:
            return  # the limiter's cool-down holds this request back with all others
        await asyncio.sleep(decision.seconds)

    async def _models(self, base_url: str) -> tuple[int, bytes]:
        session, _ = self._opened()
        seconds = min(CHECK_SECONDS, self._settings.timeout)
        try:
            response = await session.get(
                URL(f"{base_url}/models"),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds),
                **self._proxy,
            )
            return response.status, await self._body(response)
        except TimeoutError:
            self._unreachable(f"no answer within {seconds:g} s")
        except (aiohttp.ClientError, OSError) as error:
            self._unreachable(self.clean(_describe(error)))
        except _TooLargeError:
            return 0, b""

    def _unreachable(self, why: str) -> NoReturn:
        hint = "is the server running, and is base_url right?"
        raise PreflightError(f"cannot reach {self.base_url}: {why}", hint=hint) from None

    def _check_listed(self, model: str, raw: bytes) -> None:
        listed = _listed(raw)
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
            return f"check the key in the environment variable {self._key_variable}"
        return "name the environment variable that holds this server's key with api_key_env"


def _spellings(key: str | None) -> tuple[bytes, ...]:
    """The key as it would stand in a JSON body."""
    if key is None or len(key) < SECRET_LENGTH:
        return ()
    return tuple({key.encode(), orjson.dumps(key)[1:-1]})


def _proxy_for(url: URL) -> dict[str, Any]:
    """The environment's proxy for this server, as aiohttp's arguments; none for this machine."""
    host = url.host or ""
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy is None or is_loopback(host) or urllib.request.proxy_bypass(host):
        return {}
    return {"proxy": URL(proxy)}


def _compressed(response: aiohttp.ClientResponse) -> bool:
    return "Content-Encoding" in response.headers


async def _read_bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    if (response.content_length or 0) > most:
        response.close()
        raise _TooLargeError
    parts, size = [], 0
    try:
        async for part in response.content.iter_any():
            size += len(part)
            if size > most:
                raise _TooLargeError
            parts.append(part)
    except BaseException:
        response.close()
        raise
    return b"".join(parts)


def _asked_wait(headers: Mapping[str, str]) -> float | None:
    milliseconds = headers.get("Retry-After-Ms", "")
    if re.fullmatch(r"\d{1,9}(\.\d*)?", milliseconds):
        return float(milliseconds) / 1000
    return retry_after(headers.get("Retry-After"), time.time())


def _describe(error: Exception) -> str:
    """A connection error in a few words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"unknown host '{error.host}'"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"certificate not accepted: {error.certificate_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number).lower()
    return str(error) or type(error).__name__


def _listed(raw: bytes) -> list[str]:
    """The ids of a model list; empty when this is none."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return []
    rows = data.get("data") if isinstance(data, dict) else data
    if not isinstance(rows, list):
        return []
    names = (row.get("id") for row in rows if isinstance(row, dict))
    return [name for name in names if isinstance(name, str)]
