"""HTTP/1.1 to one server: posts a body, gets a reply, keeps the connection for the next.

It does what a run does a million times, and nothing else; a general client takes several times the
processor time for it. Proxies, files and everything but a POST go through aiohttp, see
`_connection.py`.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping
from typing import cast

import aiohappyeyeballs
from yarl import URL

from falter.clients import _replies as replies
from falter.clients._http1_reply import RawReply, ReplyParser
from falter.clients._replies import BadReply, Disconnected, TooLargeError, UnknownHost

__all__ = ["Http1"]

IDLE_SECONDS = 15.0
"""How long a connection is kept without a request: many servers close theirs soon after."""
ADDRESS_SECONDS = 300.0
NEXT_ADDRESS = 0.25
_LINE_BREAK = re.compile(r"[\r\n\0]")


class Http1:
    """Connections to the server of a URL, as many as there are requests at once."""

    def __init__(self, base_url: URL, headers: Mapping[str, str]) -> None:
        self._url = base_url
        fields = {"Host": base_url.host_port_subcomponent or "", "Accept": "*/*"}
        for name, value in headers.items():
            if _LINE_BREAK.search(name + value):
                raise ValueError(f"the header '{name}' holds a line break")
            fields = {n: v for n, v in fields.items() if n.lower() != name.lower()}
            fields[name] = value
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._heads: dict[URL, bytes] = {}
        self._idle: list[_Line] = []
        self._loop = asyncio.get_running_loop()
        self._addresses: tuple[float, list[aiohappyeyeballs.AddrInfoType]] | None = None
        self._tls: ssl.SSLContext | None = None

    async def post(self, url: URL, body: bytes) -> RawReply:
        """The reply to one request. Raises OSError, `BadReply` or `TooLargeError`.

        A kept connection that turns out to be closed is replaced, once for each: the server has
        let go of it before it read the request.
        """
        head = self._heads.get(url) or self._head_of(url)
        data = b"%b%d\r\n\r\n%b" % (head, len(body), body)
        while True:
            line, is_kept = self._kept_line(), True
            if line is None:
                line, is_kept = await self._new_line(), False
            reply: RawReply | None = None
            try:
                reply = await line.exchange(data)
            except Disconnected:
                if is_kept and not line.answered:
                    continue
                raise
            finally:
                if reply is not None and reply.keeps and not line.is_closed:
                    line.idle_since = self._loop.time()
                    self._idle.append(line)
                else:
                    line.abort()
            return reply

    def close(self) -> None:
        """Close what is idle; requests under way end with their tasks."""
        for line in self._idle:
            line.abort()
        self._idle.clear()

    def _head_of(self, url: URL) -> bytes:
        """The request up to the length of its body."""
        head = f"POST {url.raw_path_qs} HTTP/1.1\r\n{self._fields}Content-Length: ".encode()
        self._heads[url] = head
        return head

    def _kept_line(self) -> _Line | None:
        """The connection used last; those that were idle for long are closed."""
        while self._idle:
            line = self._idle.pop()
            if not line.is_closed and self._loop.time() - line.idle_since < IDLE_SECONDS:
                return line
            line.abort()
        return None

    async def _new_line(self) -> _Line:
        addresses = await self._resolved()
        connected = await aiohappyeyeballs.start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS, interleave=1, loop=self._loop
        )
        secure = self._url.scheme == "https"
        if secure and self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        try:
            _, line = await self._loop.create_connection(
                _Line,
                sock=connected,
                ssl=self._tls if secure else None,
                server_hostname=(self._url.raw_host or "").rstrip(".") if secure else None,
            )
        except BaseException:
            connected.close()
            raise
        return line

    async def _resolved(self) -> list[aiohappyeyeballs.AddrInfoType]:
        """The server's addresses, looked up again after a while."""
        now = self._loop.time()
        if self._addresses is None or now > self._addresses[0]:
            host = self._url.raw_host or ""
            try:
                found = await self._loop.getaddrinfo(
                    host, self._url.port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
                )
            except OSError:
                raise UnknownHost(host) from None
            self._addresses = now + ADDRESS_SECONDS, list(found)
        return self._addresses[1]


class _Line(asyncio.Protocol):
    """One connection: a request goes out, its reply comes in."""

    __slots__ = ("_loop", "_parser", "_transport", "_waiter", "idle_since", "is_closed")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = ReplyParser(replies.LARGEST_BODY)
        self._waiter: asyncio.Future[RawReply] | None = None
        self.idle_since = 0.0
        self.is_closed = False

    @property
    def answered(self) -> bool:
        """Whether a byte came for the last request."""
        return self._parser.began

    async def exchange(self, data: bytes) -> RawReply:
        """The reply to these bytes."""
        assert self._transport is not None
        self._parser = ReplyParser(replies.LARGEST_BODY)
        if self.is_closed:
            raise Disconnected
        self._waiter = self._loop.create_future()
        self._transport.write(data)
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def abort(self) -> None:
        """Close at once."""
        self.is_closed = True
        if self._transport is not None:
            self._transport.abort()

    # -- what the loop calls -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            self.abort()  # nobody asked
            return
        try:
            reply = self._parser.feed(data)
        except (BadReply, TooLargeError) as error:
            waiter.set_exception(error)
        else:
            if reply is not None:
                waiter.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        reply = self._parser.end() if exc is None else None
        if reply is not None:
            waiter.set_result(reply)
        elif exc is None or not self.answered:
            waiter.set_exception(Disconnected())
        else:
            waiter.set_exception(exc)
