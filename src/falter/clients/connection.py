"""HTTP connections to one server, with time-outs, size limits and masked secrets."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ipaddress
import os
import re
import ssl
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from yarl import URL

from falter.clients.retry import Outcome
from falter.records.errors import InvalidValue

JSON = "application/json"
ENDPOINT_PATHS = ("chat/completions", "completions", "models")
"""Paths that users most often paste along with a base URL."""
MAX_MESSAGE_CHARACTERS = 500  # characters
MAX_BODY_BYTES = 32 * 2**20
"""Maximum size of a reply, more than an answer can reasonably have: a server may send for ever."""
MIN_SECRET_LENGTH = 8
"""Minimum length of a key that is masked in texts. A shorter key is a placeholder ("EMPTY"), which
occurs in texts by chance."""

Reply = tuple[int, Mapping[str, str], bytes]
"""A server's reply: status, headers, and a body in which the key is masked."""


class TooLargeError(Exception):
    """Raised if a reply is larger than its limit."""


CONNECTION_ERRORS = (TimeoutError, aiohttp.ClientError, OSError, TooLargeError)


class Connection:
    """Connections to one server, opened by the first request in its event loop.

    Failures below HTTP are returned as an `Outcome`. Redirects are not followed, cookies are not
    kept, and the environment's proxy is not used for this machine.
    """

    def __init__(
        self,
        base_url: str,
        *,
        connections: int,
        timeout: float,
        headers: Mapping[str, str],
        secrets: Sequence[str],
    ) -> None:
        self._base_url = base_url
        self._connections = connections
        self._timeout = timeout
        # Decompressing a body costs more time than it saves on a local network.
        self._headers = {
            "Content-Type": JSON, "Accept-Encoding": "identity", "User-Agent": "falter", **headers,
        }  # fmt: skip
        # Short secrets occur in texts by chance.
        self._secrets = tuple(secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH)
        self._secret_forms = {
            form
            for secret in self._secrets
            for form in (secret.encode(), orjson.dumps(secret)[1:-1])
        }
        self._session: aiohttp.ClientSession | None = None
        self._deadlines: _Deadlines | None = None
        self._options: dict[str, Any] = {}

    async def post(self, url: URL, body: bytes) -> Reply | Outcome:
        """Make one attempt to post a body; the time-out ends the attempt."""
        session, deadlines = self._session_and_deadlines()
        task = deadlines.start()
        try:
            # aiohttp warns about large bodies that are bytes, and sends files in pieces.
            data = body if len(body) < 2**20 else io.BytesIO(body)
            return await self._read_reply(await session.post(url, data=data, **self._options))
        # A time-out arrives as a cancellation, and so does Ctrl-C, which has to end the task.
        except asyncio.CancelledError:
            if not deadlines.is_over(task):
                raise
            return self._failed_attempt(TimeoutError(), self._timeout)
        except CONNECTION_ERRORS as error:
            return self._failed_attempt(error, self._timeout)
        finally:
            deadlines.stop(task)

    async def exchange(
        self,
        url: URL,
        body: bytes | None = None,
        *,
        seconds: float,
        kind: str = JSON,
        most: int | None = None,
    ) -> Reply | Outcome:
        """Make one attempt at another endpoint: a GET, or a POST of a body of this content type."""
        session, _ = self._session_and_deadlines()
        method, data = ("GET", None) if body is None else ("POST", io.BytesIO(body))
        headers = None if body is None else {"Content-Type": kind}
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            response = await session.request(
                method, url, data=data, headers=headers, timeout=limit, **self._options
            )
            return await self._read_reply(response, most)
        except CONNECTION_ERRORS as error:
            return self._failed_attempt(error, seconds, most)

    async def lines(self, url: URL, silence: float) -> AsyncIterator[bytes | Reply | Outcome]:
        """Yield the lines of a file as they arrive, and last the failure, if there is one.

        `silence` is the maximum time in seconds without a byte.
        """
        session, _ = self._session_and_deadlines()
        limit = aiohttp.ClientTimeout(total=None, sock_connect=silence, sock_read=silence)
        try:
            response = await session.get(url, timeout=limit, **self._options)
            if response.status >= 300:
                yield await self._read_reply(response)
                return
            async with contextlib.aclosing(_body_lines(response)) as lines:
                async for line in lines:
                    yield self._without_secrets(line)
        except CONNECTION_ERRORS as error:
            yield self._failed_attempt(error, silence)

    async def close(self) -> None:
        """Close the connections. Safe to call twice; the next request opens new ones."""
        session, self._session = self._session, None
        if self._deadlines is not None:
            self._deadlines.close()
        if session is not None:
            await session.close()
            # aiohttp closes its sockets in the next pass of the event loop. A loop that ends before
            # that pass warns of open sockets.
            await asyncio.sleep(0)

    def clean(self, text: str) -> str:
        """Return a message that can be shown: one line, bounded in length, secrets masked."""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        text = " ".join(text[: 8 * MAX_MESSAGE_CHARACTERS].split())
        text = "".join(c for c in text if c.isprintable())
        return (
            text
            if len(text) <= MAX_MESSAGE_CHARACTERS
            else text[: MAX_MESSAGE_CHARACTERS - 1] + "…"
        )

    def masked(self, data: Any) -> Any:
        """Return JSON with secrets masked, also secrets that were written with escapes."""
        if not self._secrets:
            return data
        if isinstance(data, str):
            for secret in self._secrets:
                data = data.replace(secret, "…")
            return data
        if isinstance(data, list):
            return [self.masked(value) for value in data]
        if isinstance(data, dict):
            return {self.masked(name): self.masked(value) for name, value in data.items()}
        return data

    def _session_and_deadlines(self) -> tuple[aiohttp.ClientSession, _Deadlines]:
        if self._session is None or self._deadlines is None:
            # The environment's proxy is resolved once. aiohttp's trust_env would do it for every
            # request, in a thread, and send passwords from ~/.netrc along.
            proxy = proxy_for(self._base_url)
            self._options = {"allow_redirects": False}
            if proxy is not None:
                self._options["proxy"] = URL(proxy)
            tls = _tls_context() if self._base_url.startswith("https:") else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, ttl_dns_cache=300, ssl=tls),
                timeout=aiohttp.ClientTimeout(total=None),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._deadlines = _Deadlines(self._timeout)
        return self._session, self._deadlines

    async def _read_reply(self, response: aiohttp.ClientResponse, most: int | None = None) -> Reply:
        """Read a reply; raise `TooLargeError` if its body exceeds `most` bytes."""
        most = most or MAX_BODY_BYTES
        length, headers = response.content_length, response.headers
        if length is None or length > most or "Content-Encoding" in headers:
            raw = await _read_bounded(response, most)
        else:
            raw = await response.read()
        return response.status, headers, self._without_secrets(raw)

    def _without_secrets(self, raw: bytes) -> bytes:
        for secret_form in self._secret_forms:
            if secret_form in raw:
                raw = raw.replace(secret_form, "…".encode())
        return raw

    def _failed_attempt(self, error: Exception, seconds: float, most: int | None = None) -> Outcome:
        """Return the outcome of an attempt without a complete reply."""
        if isinstance(error, TooLargeError):
            size = f"more than {(most or MAX_BODY_BYTES) // 2**20} MiB"
            return Outcome(what="unusable answer", message=size, final=True)
        if isinstance(error, TimeoutError):
            return Outcome(what="timed out", message=f"no answer within {seconds:g} s")
        return Outcome(
            what="connection failed",
            message=self.clean(describe_error(error)),
            final=isinstance(error, aiohttp.ClientConnectorCertificateError),
        )


class _Deadlines:
    """Time-outs for all requests in flight, with one timer.

    All have the same length, so the oldest is due first. A timer for each request, as aiohttp
    would set, costs a tenth of the throughput.
    """

    __slots__ = ("_due_times", "_loop", "_seconds", "_timed_out", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._due_times: dict[asyncio.Task[Any], float] = {}
        self._timed_out: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> asyncio.Task[Any]:
        """Start the running task's time-out and return the task, for `stop`."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        due = self._due_times[task] = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._cancel_overdue)
        return task

    def stop(self, task: asyncio.Task[Any]) -> None:
        """End a task's time-out."""
        self._due_times.pop(task, None)
        self._timed_out.discard(task)

    def is_over(self, task: asyncio.Task[Any]) -> bool:
        """Return True if a task was cancelled only because its time was over."""
        # `uncancel` takes back the sweep's cancellation. If one is left, it came from elsewhere.
        return task in self._timed_out and task.uncancel() == 0

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _cancel_overdue(self) -> None:
        """Cancel the tasks whose time is over; set the timer for the oldest of the others."""
        now = self._loop.time()
        self._timer = None
        for task, due in list(self._due_times.items()):
            if due > now:
                self._timer = self._loop.call_at(due, self._cancel_overdue)
                return
            del self._due_times[task]
            self._timed_out.add(task)
            task.cancel()


def _tls_context() -> ssl.SSLContext:
    """Return a TLS context with the environment's certificates of now, not of aiohttp's import."""
    context = ssl.create_default_context()
    # As aiohttp's own context does, which this one replaces.
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _read_bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return a body of unknown size, or raise `TooLargeError` beyond `most` bytes."""
    parts, size = [], response.content_length or 0
    try:
        if size > most:
            raise TooLargeError
        size = 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > most:
                raise TooLargeError
            parts.append(part)
    except BaseException:
        response.close()
        raise
    return b"".join(parts)


async def _body_lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    """Yield the lines of a body of any size as they arrive; raise for a line that is too large."""
    begun = b""
    try:
        async for part in response.content.iter_any():
            *whole, begun = (begun + part).split(b"\n") if b"\n" in part else (begun + part,)
            if len(begun) > MAX_BODY_BYTES:
                raise TooLargeError
            for line in whole:
                if line.strip():
                    yield line
        if begun.strip():
            yield begun
    finally:
        response.close()


def describe_error(error: Exception) -> str:
    """Return a connection error in a few words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"unknown host '{error.host}'"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"certificate not accepted: {error.certificate_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(error, (aiohttp.ClientHttpProxyError, aiohttp.InvalidURL)):  # with a password
        return f"the environment's proxy failed: {getattr(error, 'status', 'it is no URL')}"
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number).lower()
    return str(error) or type(error).__name__


# Addresses and keys


def normal_url(base_url: str, endpoints: Sequence[str] = ENDPOINT_PATHS) -> str:
    """Return a base URL with its host in lower case and without a slash at the end.

    Raise `InvalidValue` if the URL is malformed or ends in one of `endpoints`, longest first.
    """
    shown = _shown_url(base_url)
    if not re.match(r"https?://", base_url, re.I):
        # "ftp://host" and "//host" leave "host" for the hint; "localhost:8000" stays as it is.
        bare = re.sub(r"^[a-z+]*:?//", "", shown, flags=re.I)
        hint = f"write http://{bare} or https://{bare}"
        raise InvalidValue("base_url", shown, "an http or https URL", hint=hint)
    try:
        url = urlsplit(base_url)
        host, _ = url.hostname, url.port
    except ValueError:
        host = None
    if not host or re.search(r"\s", base_url):
        raise InvalidValue("base_url", shown, "an http or https URL")
    if "@" in url.netloc or url.query or url.fragment:
        hint = "name the variable that holds the key with api_key_env"
        expected = "a URL without user, password, query or fragment"
        raise InvalidValue("base_url", shown + "…", expected, hint=hint)
    path = url.path.rstrip("/")
    for endpoint in endpoints:
        if path.endswith(f"/{endpoint}"):
            hint = f"leave out /{endpoint}"
            raise InvalidValue("base_url", shown, "the part before the endpoint", hint=hint)
    return f"{url.scheme}://{url.netloc.lower()}{path}"


def is_loopback(host: str) -> bool:
    """Return True if the host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def read_key(variable: str, *, spaces: bool = False) -> str | None:
    """Return the key in an environment variable, or None if the variable is empty or not set.

    Raise `InvalidValue` for a malformed key, without showing the key.
    """
    key = os.environ.get(variable) or None
    # Printable ASCII: "sk-1" passes, "sk-1\n" would inject a header. With `spaces`, "Bearer x" too.
    if key is not None and not re.fullmatch(r"[!-~]+( +[!-~]+)*" if spaces else r"[!-~]+", key):
        raise InvalidValue(
            variable,
            "…",
            f"printable ASCII without {'' if spaces else 'spaces or '}line breaks",
            hint=f"set the environment variable {variable} again without its line break or space",
        )
    return key


def _shown_url(url: str) -> str:
    """Return a URL for messages, without user, password and query."""
    # "https://u:secret@host/v1?key=k" is shown as "https://…@host/v1".
    return re.sub(r"[^/@]*@", "…@", re.split(r"[?#]", url)[0])


def proxy_for(url: str) -> str | None:
    """Return the environment's proxy for a server; None without a proxy or for this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy is None or is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    return proxy
