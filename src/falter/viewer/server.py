"""HTTP server of the page, on the loopback interface, for one user who has its token.

The token is in the fragment of the address, and the page sends it in a header. So it is in no log
and no `Referer`, and pages of other sites cannot send it. Requests for another host, or from
another site's page, are refused before the token is checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web

from falter import __version__
from falter.records.errors import FalterError
from falter.viewer.page import CONTENT_TYPES, POLICY, REPORT_POLICY, index_page, page_files
from falter.viewer.panels import Bytes, JsonLinesFile
from falter.viewer.source import Arrivals, Source

TOKEN_HEADER = "X-Falter-Token"
LOOPBACK = "127.0.0.1"
EVENT_SECONDS = 0.25  # seconds
MAX_NOTE_BYTES = 200_000  # bytes
MAX_SEARCH_CHARACTERS = 1000  # characters
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NUMBER_PATTERN = "[0-9]{1,9}"
_LOG = logging.getLogger(__name__)  # bad requests, which anybody may send, stay off the terminal
_LOG.addHandler(logging.NullHandler())
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Viewer:
    """Server that answers the page's requests."""

    _source: Source

    def __init__(
        self, source: Source | Awaitable[Source], kept: Mapping[str, JsonLinesFile] | None = None
    ) -> None:
        self._awaitable_source, self._note_files = (
            asyncio.ensure_future(_awaited_source(source)),
            kept or {},
        )
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        self._event_queues: set[asyncio.Queue[bytes]] = set()
        self._allowed_hosts: dict[int, str] = {}
        self._reports: dict[str, str] = {}

    def app(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_NOTE_BYTES)
        app.router.add_get("/", self._index)
        app.router.add_get("/{name}", self._file)
        app.router.add_get("/api/panels", self._panels)
        app.router.add_get(f"/api/cells/{{panel:{NUMBER_PATTERN}}}", self._cells)
        app.router.add_get(
            f"/api/item/{{panel:{NUMBER_PATTERN}}}/{{row:{NUMBER_PATTERN}}}", self._item
        )
        app.router.add_get(f"/api/found/{{panel:{NUMBER_PATTERN}}}", self._search)
        app.router.add_get(f"/api/findings/{{study:{NUMBER_PATTERN}}}", self._findings)
        app.router.add_get("/report/{name}", self._report)
        app.router.add_get("/api/events", self._events)
        app.router.add_get("/api/{kind:notes|marks}", self._notes_reply)
        app.router.add_put("/api/notes", self._put_note)
        app.router.add_put("/api/marks", self._put_correction)
        return app

    @property
    def address(self) -> str:
        """Address of the page, with the token in its fragment."""
        return f"http://{LOOPBACK}:{self.port}/#token={self.token}"

    async def follow(self) -> None:
        """Poll the source for changes while pages are connected, and send them as events."""
        while True:
            await asyncio.sleep(EVENT_SECONDS)
            if not self._event_queues:
                continue
            with contextlib.suppress(FalterError):  # such as a locked store: it is read again
                for event in _events(self._source.arrivals()):
                    for queue in self._event_queues:
                        queue.put_nowait(event)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests of other hosts or sites or without the token; add security headers."""
        fault = self._refusal_reason(request)
        try:
            if not fault and request.path.startswith("/api/"):
                self._source = await asyncio.shield(self._awaitable_source)
            response = _refusal_response(fault) if fault else await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=error.reason)
        if not response.prepared:
            response.headers.update(_HEADERS)
            if request.path.startswith("/report/"):
                response.headers["Content-Security-Policy"] = REPORT_POLICY
        return response

    def _refusal_reason(self, request: web.Request) -> str:
        hosts = {f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"}
        if request.headers.getall("Host", []) not in ([host] for host in hosts):
            return "this server answers to 127.0.0.1 and localhost only"
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            return "the request comes from another site"
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "the request comes from another site"
        if request.path.startswith("/api/"):
            token = request.headers.get(TOKEN_HEADER, "")
            if not secrets.compare_digest(ascii(token), ascii(self.token)):
                return "the token is missing or wrong; open the address that 'falter view' printed"
        return ""

    async def _index(self, _: web.Request) -> web.Response:
        return web.Response(text=index_page("live"), content_type="text/html")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        content = page_files().get(name)
        if content is None:
            raise web.HTTPNotFound
        return web.Response(text=content, content_type=CONTENT_TYPES[name.rpartition(".")[2]])

    async def _panels(self, _: web.Request) -> web.Response:
        source = self._source
        return _json_response(panels_record(source))

    async def _cells(self, request: web.Request) -> web.Response:
        return _bytes(self._source.codes(self._panel(request)))

    async def _item(self, request: web.Request) -> web.Response:
        panel, row = self._panel(request), int(request.match_info["row"])
        if row >= len(self._source.panels()[panel].items):
            raise web.HTTPNotFound
        return _json_response(self._source.item(panel, row))

    async def _search(self, request: web.Request) -> web.Response:
        text = request.query.get("text", "")[:MAX_SEARCH_CHARACTERS]
        return _bytes(await _in_daemon_thread(self._source.found, self._panel(request), text))

    async def _findings(self, request: web.Request) -> web.Response:
        """Return the drops of a study's panels, and the secret address of its report."""
        study = int(request.match_info["study"])
        if study >= 1 + max(panel.study for panel in self._source.panels()):
            raise web.HTTPNotFound
        found = await _in_daemon_thread(self._source.findings, study)
        name = self._allowed_hosts.setdefault(study, secrets.token_urlsafe(24))
        self._reports[name] = found.page
        return _json_response({"drops": found.drops, "page": found.page and f"report/{name}"})

    async def _report(self, request: web.Request) -> web.Response:
        page = self._reports.get(request.match_info["name"])
        if not page:
            raise web.HTTPNotFound
        return web.Response(text=page, content_type="text/html")

    def _panel(self, request: web.Request) -> int:
        panel = int(request.match_info["panel"])
        if panel >= len(self._source.panels()):
            raise web.HTTPNotFound
        return panel

    async def _notes_reply(self, request: web.Request) -> web.Response:
        lines = self._note_files.get(request.match_info["kind"])
        return _json_response([] if lines is None else lines.rows())

    async def _put_note(self, request: web.Request) -> web.Response:
        with _bad_request():
            sent = orjson.loads(await request.read())
            about = self._note_subject(sent)
            about["note"] = str(sent["note"])
        return self._append_row("notes", about)

    async def _put_correction(self, request: web.Request) -> web.Response:
        """Store the answer that a person read: a text, null for no answer, or empty to retract."""
        with _bad_request():
            body = orjson.loads(await request.read())
            subject, column = self._note_subject(body), int(body["column"])
            panel, row = int(body["panel"]), int(body["row"])
            (cell,) = (c for c in self._source.item(panel, row)["cells"] if c["column"] == column)
            condition = self._source.panels()[panel].columns[column]
            subject |= {"recipe": condition.recipe, "draw": condition.draw}
            subject |= {"repeat": condition.repeat, "key": cell["key"]}
            subject["reading"] = None if body["reading"] is None else str(body["reading"])
        return self._append_row("marks", subject)

    def _note_subject(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return the item that a note is about."""
        panel, row = int(sent["panel"]), int(sent["row"])
        if panel < 0 or row < 0:
            raise IndexError
        info = self._source.panels()[panel]
        return {
            "run": info.run, "model": info.model, "task": info.task, "item": info.items[row],
        }  # fmt: skip

    def _append_row(self, kind: str, row: Mapping[str, Any]) -> web.Response:
        if kind not in self._note_files:
            raise web.HTTPNotFound
        self._note_files[kind].put(row)
        return _json_response({})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._event_queues.add(queue)
        try:
            await response.write(b": here\n\n")
            while True:
                await response.write(await queue.get())
        except (ConnectionResetError, asyncio.CancelledError):
            return response
        finally:
            self._event_queues.discard(queue)


@contextlib.contextmanager
def _bad_request() -> Iterator[None]:
    """Turn errors about an invalid body into HTTP 400."""
    try:
        yield
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise web.HTTPBadRequest from error


def panels_record(source: Source) -> dict[str, Any]:
    """Return all panels as a JSON value, with the page's title and falter's version."""
    panels = source.panels()
    return {
        "title": source.title,
        "version": __version__,
        "panels": [
            {**panel.plain(), "asked": source.request_settings(number)}
            for number, panel in enumerate(panels)
        ],
    }


def _events(arrivals: Sequence[Arrivals] | None) -> list[bytes]:
    if arrivals is None:
        return [b"event: reload\ndata: {}\n\n"]
    return [b"event: cells\ndata: " + orjson.dumps(a._asdict()) + b"\n\n" for a in arrivals]


async def _awaited_source(source: Source | Awaitable[Source]) -> Source:
    return await source if isinstance(source, Awaitable) else source


async def _in_daemon_thread(work: Callable[..., Any], *given: object) -> Any:
    """Call a function in a daemon thread, for which the program does not wait when it ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def call() -> None:
        report: Callable[[Any], object] = done.set_result
        value: Any = None
        try:
            value = work(*given)
        except Exception as error:
            report, value = done.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: done.done() or report(value))

    threading.Thread(target=call, daemon=True).start()
    return await done


def _bytes(cells: Bytes) -> web.Response:
    response = web.Response(body=cells.tobytes(), content_type="application/octet-stream")
    response.enable_compression()
    return response


def _json_response(value: Any) -> web.Response:
    body = orjson.dumps(value, default=str)
    return web.Response(body=body, content_type="application/json")


def _refusal_response(reason: str) -> web.Response:
    return web.Response(status=403, text=f"Refused: {reason}.\n")


@contextlib.asynccontextmanager
async def served(
    source: Source | Awaitable[Source],
    kept: Mapping[str, JsonLinesFile] | None = None,
    *,
    port: int = 0,
) -> AsyncIterator[Viewer]:
    """Serve the viewer for the duration of the context; port 0 selects a free port.

    `source` may be an awaitable. The page's requests wait for it.
    """
    viewer = Viewer(source, kept)
    runner = web.AppRunner(viewer.app(), access_log=None, logger=_LOG, shutdown_timeout=0.5)
    await runner.setup()
    following = asyncio.create_task(viewer.follow())
    try:
        site = web.TCPSite(runner, LOOPBACK, port)
        await site.start()
        viewer.port = runner.addresses[0][1]
        yield viewer
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        await runner.cleanup()
