"""A local HTTP server whose answers a function makes, for tests of clients."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Reply = tuple[int, Any] | tuple[int, Any, dict[str, str]]


@dataclass
class Asked:
    """One request that came in; `body` is its JSON, None for a GET."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class LocalServer:
    """Serves status and JSON that `answer` makes of each request, and remembers all of them.

    `answer` may be a coroutine. A reply that is bytes goes out as it is; headers may follow it.
    """

    answer: Callable[[Asked], Reply | Awaitable[Reply]]
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def posted(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == "POST"]

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(raw) if raw else None
        asked = Asked(request.method, request.path_qs, headers, body)
        self.asked.append(asked)
        answer = self.answer(asked)
        status, reply, *more = answer if isinstance(answer, tuple) else await answer
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        headers = {"Content-Type": "application/json", **(more[0] if more else {})}
        return web.Response(status=status, body=data, headers=headers)
