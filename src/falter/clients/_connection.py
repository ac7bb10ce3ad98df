"""The connections to one server: the key in its header, time-outs, bounds, and nothing leaked."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
import orjson
from yarl import URL

from falter.clients import _replies as replies
from falter.clients._address import proxy_for
from falter.clients._deadlines import Deadlines
from falter.clients._http1 import Http1
from falter.clients._retry import Outcome

__all__ = ["Connection", "Reply"]

LONGEST_MESSAGE = 500
SECRET_LENGTH = 8
"""Keys from this length on are masked wherever they appear; a shorter one is a stand-in ("EMPTY"),
and what would be cut out of texts with it is not the key."""


WITH_AIOHTTP = "FALTER_WITH_AIOHTTP"
"""The environment variable that sends requests through aiohttp, should a server need it."""
TROUBLE = (TimeoutError, aiohttp.ClientError, OSError, replies.BadReply, replies.TooLargeError)
UNTRUSTED = (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError)

Reply = tuple[int, Mapping[str, str], bytes]
"""What a server answered: status, headers, and a body in which the key is masked."""


class Connection:
    """Connections to one server, opened by the first request in the loop it runs in.

    What goes wrong below HTTP is an `Outcome`. Redirects are not followed, cookies not kept, and
    the environment's proxy is used for other machines only. Requests go through `Http1`, and
    through aiohttp where there is a proxy or the environment variable `WITH_AIOHTTP` is set;
    everything else goes through aiohttp.
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
        self._headers = {
            "Content-Type": "application/json", "Accept-Encoding": "identity",
            "User-Agent": "falter", **headers,
        }  # fmt: skip
        # What is short occurs in every text by chance.
        self._secrets = tuple(secret for secret in secrets if len(secret) >= SECRET_LENGTH)
        self._written = {
            form
            for secret in self._secrets
            for form in (secret.encode(), orjson.dumps(secret)[1:-1])
        }
        self._session: aiohttp.ClientSession | None = None
        self._http1: Http1 | None = None
        self._deadlines: Deadlines | None = None
        self._proxy: dict[str, Any] = {}

    @property
    def way(self) -> str:
        """What carries the requests, in words."""
        if proxy_for(self._base_url) is not None:
            return "aiohttp, since there is a proxy"
        return "aiohttp" if os.environ.get(WITH_AIOHTTP) else "HTTP/1.1, kept connections"

    async def post(self, url: URL, body: bytes) -> Reply | Outcome:
        """One attempt, ended by the time-out."""
        session, deadlines = self._open()
        task = deadlines.start()
        try:
            if self._http1 is not None:
                status, headers, raw, _ = await self._http1.post(url, body)
                return status, headers, self._without_secrets(raw)
            # aiohttp warns about large bodies that are bytes, and sends files in pieces.
            data = body if len(body) < 2**20 else io.BytesIO(body)
            response = await session.post(url, data=data, allow_redirects=False, **self._proxy)
            return await self._reply(response)
        except asyncio.CancelledError:
            if not deadlines.is_over(task):
                raise
            return self._broken(TimeoutError(), self._timeout)
        except TROUBLE as error:
            return self._broken(error, self._timeout)
        finally:
            deadlines.stop(task)

    async def get(self, url: URL, most_seconds: float) -> Reply | Outcome:
        """A question that costs nothing and is not worth a long wait."""
        session, _ = self._open()
        seconds = min(most_seconds, self._timeout)
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            response = await session.get(url, allow_redirects=False, timeout=limit, **self._proxy)
            return await self._reply(response)
        except TROUBLE as error:
            return self._broken(error, seconds)

    async def exchange(
        self, url: URL, body: bytes | None, kind: str, seconds: float, most: int
    ) -> Reply | Outcome:
        """One attempt at something larger than a request: a POST of this kind of body, or a GET."""
        session, _ = self._open()
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            if body is None:
                coming = session.get(url, allow_redirects=False, timeout=limit, **self._proxy)
            else:
                coming = session.post(
                    url, data=io.BytesIO(body), headers={"Content-Type": kind},
                    allow_redirects=False, timeout=limit, **self._proxy,
                )  # fmt: skip
            return await self._reply(await coming, most)
        except TROUBLE as error:
            return self._broken(error, seconds, most)

    async def lines(self, url: URL, silence: float) -> AsyncIterator[bytes | Reply | Outcome]:
        """The lines of a file as they come, each bounded; last, what went wrong if anything did.

        `silence` is how many seconds may pass without a byte.
        """
        session, _ = self._open()
        limit = aiohttp.ClientTimeout(total=None, sock_connect=silence, sock_read=silence)
        try:
            response = await session.get(url, allow_redirects=False, timeout=limit, **self._proxy)
            if response.status >= 300:
                yield await self._reply(response)
                return
            async with contextlib.aclosing(replies.read_lines(response)) as lines:
                async for line in lines:
                    yield self._without_secrets(line)
        except TROUBLE as error:
            yield self._broken(error, silence)

    async def close(self) -> None:
        """Close the connections. Safe to call twice; the next request opens new ones."""
        session, self._session = self._session, None
        if self._deadlines is not None:
            self._deadlines.close()
        if self._http1 is not None:
            self._http1.close()
        if session is not None:
            await session.close()
            await asyncio.sleep(0)

    def clean(self, text: str) -> str:
        """A message fit to be shown: on one line, bounded, without the key."""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        text = " ".join(text[: 8 * LONGEST_MESSAGE].split())
        text = "".join(c for c in text if c.isprintable())
        return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"

    def masked(self, data: Any) -> Any:
        """JSON without the key, also where it was written with escapes."""
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

    def _open(self) -> tuple[aiohttp.ClientSession, Deadlines]:
        if self._session is None or self._deadlines is None:
            # The environment's proxy is resolved once. aiohttp's trust_env would do it for every
            # request, in a thread, and send passwords from ~/.netrc along.
            proxy = proxy_for(self._base_url)
            self._proxy = {} if proxy is None else {"proxy": URL(proxy)}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, ttl_dns_cache=300),
                timeout=aiohttp.ClientTimeout(total=None),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._deadlines = Deadlines(self._timeout)
            if proxy is None and not os.environ.get(WITH_AIOHTTP):
                self._http1 = Http1(URL(self._base_url), self._headers)
        return self._session, self._deadlines

    async def _reply(self, response: aiohttp.ClientResponse, most: int | None = None) -> Reply:
        """The whole body, bounded; read in one go where its size is known."""
        most = replies.LARGEST_BODY if most is None else most
        length, headers = response.content_length, response.headers
        if length is None or length > most or "Content-Encoding" in headers:
            raw = await replies.read_bounded(response, most)
        else:
            raw = await response.read()
        return response.status, headers, self._without_secrets(raw)

    def _without_secrets(self, raw: bytes) -> bytes:
        for written in self._written:
            if written in raw:
                raw = raw.replace(written, "…".encode())
        return raw

    def _broken(self, error: Exception, seconds: float, most: int | None = None) -> Outcome:
        """No whole answer came."""
        if isinstance(error, replies.TooLargeError):
            size = f"more than {(most or replies.LARGEST_BODY) // 2**20} MiB"
            return Outcome(what="unusable answer", message=size, final=True)
        if isinstance(error, TimeoutError):
            return Outcome(what="timed out", message=f"no answer within {seconds:g} s")
        return Outcome(
            what="connection failed",
            message=self.clean(replies.connection_trouble(error)),
            final=isinstance(error, UNTRUSTED),
        )
