"""A local server with the batches of OpenAI, Anthropic and Gemini, scripted from a test.

It answers a prompt the same way directly and in a batch, and counts how often each was paid for.
"""

from __future__ import annotations

import asyncio
import email
import email.policy
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

__all__ = ["KEY", "BatchServer"]

KEY = "bk-very-secret-0123456789"
CREATED = 4_000_000_000.0
DATE = "2096-10-02T07:06:40Z"


def letter(prompt: str) -> str:
    return "ABCD"[hashlib.sha256(prompt.encode()).digest()[0] % 4]


def prompt_of(body: dict[str, Any]) -> str:
    """The last turn of a request in any dialect."""
    if "contents" in body:
        return str(body["contents"][-1]["parts"][0]["text"])
    return str(body["messages"][-1]["content"])


def answer(body: dict[str, Any], gemini: bool, claude: bool) -> dict[str, Any]:
    """Return a model's answer, in its provider's words."""
    text = letter(prompt_of(body))
    if gemini:
        content = {"role": "model", "parts": [{"text": text}]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 30, "candidatesTokenCount": 5},
            "modelVersion": "m",
        }
    if claude:
        return {
            "id": "msg_1", "model": "m", "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 30, "output_tokens": 5},
        }  # fmt: skip
    message = {"role": "assistant", "content": text}
    return {
        "id": "c1", "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 5},
    }  # fmt: skip


class Batch:
    """One batch: the dialect, the requests by key, and how many times it was looked at."""

    def __init__(self, name: str, dialect: str, requests: dict[str, Any], mark: str | None) -> None:
        self.name, self.dialect, self.requests, self.mark = name, dialect, requests, mark
        self.looks = 0
        self.state = "in_progress"
        self.error: dict[str, Any] | None = None


class BatchServer:
    """Serves in a thread of its own; `with BatchServer() as server:`.

    The script: `looks` is how often a batch is looked at before it ends, `ends_as` how it ends,
    `finished` how many of its lines are answered then, `broken` which prompts are refused with 400.
    `stall` names a place (`upload`, `create`, `look`, `read`) where the server says nothing more,
    once; it sets `stalled` then. With `break` the results end in the middle, once. `on_create` may
    refuse a batch with a status and a body.
    """

    def __init__(self) -> None:
        self.port = 0
        self.reset()

    def reset(self) -> None:
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.paid: Counter[str] = Counter()
        self.direct = 0
        self.asked: list[tuple[str, str]] = []
        self.looks, self.ends_as, self.finished = 0, "completed", 10**9
        self.broken: Callable[[str], bool] = lambda prompt: False
        self.stall, self.stalled = "", threading.Event()
        self.on_create: Callable[[int], tuple[int, Any] | None] = lambda size: None
        self.fails: Callable[[Batch], dict[str, Any] | None] = lambda batch: None
        self.extra: list[dict[str, Any]] = []
        self.name: Callable[[int], str] = lambda number: f"batch_{number}"
        self.has_batches = True

    def url(self, dialect: str) -> str:
        return f"http://127.0.0.1:{self.port}/{'v1beta' if dialect == 'gemini' else 'v1'}"

    # A thread with a loop

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()

        async def start() -> None:
            app = web.Application(client_max_size=2**28)
            app.router.add_route("*", "/{path:.*}", self._handle)
            self._runner = web.AppRunner(app, shutdown_timeout=0.1)
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
            self.port = self._runner.addresses[0][1]
            ready.set()

        def serve() -> None:
            asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(start())
            self._loop.run_forever()

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        assert ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self.stall = ""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    # What it says

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw, path = await request.read(), request.path.lstrip("/")
        self.asked.append((request.method, path))
        rest = path.partition("/")[2]
        gemini, claude = path.startswith("v1beta"), rest.startswith("messages")
        if rest.startswith(("batches", "messages/batches")) or rest.endswith(
            "batchGenerateContent"
        ):
            if not self.has_batches:
                return _json({"error": {"message": "no such route"}}, 404)
            return await self._batch(request, raw, rest, gemini, claude)
        if rest == "files":
            await self._stalls("upload")
            name = f"file-{len(self.files)}"
            self.files[name] = _uploaded(request, raw)
            return _json({"id": name})
        if rest.startswith("files/"):
            return await self._results(request, rest.split("/")[1])
        if request.method == "GET":
            return _json({"data": [{"id": "m"}], "models": [{"name": "models/m"}]})
        body = json.loads(raw)
        self.direct += 1
        self.paid[prompt_of(body)] += 1
        return _json(answer(body, gemini, claude))

    async def _batch(
        self, request: web.Request, raw: bytes, path: str, gemini: bool, claude: bool
    ) -> web.StreamResponse:
        if request.method == "POST":
            return await self._create(json.loads(raw), gemini, claude)
        parts = path.removeprefix("messages/").split("/")
        if len(parts) == 1:
            rows = [self._said(batch) for batch in reversed(self.batches.values())]
            return _json({"operations": rows} if gemini else {"data": rows, "has_more": False})
        batch = self.batches.get(parts[1])
        if batch is None:
            return _json({"error": {"message": "no such batch"}}, 404)
        if len(parts) == 3:
            return await self._stream(request, _lines_of_claude(self, batch))
        await self._stalls("look")
        if batch.state == "in_progress":
            batch.error = self.fails(batch)
            if batch.error is not None:
                batch.state = "failed"
            elif batch.looks >= self.looks:
                batch.state = self.ends_as
                for _, prompt in self._answered(batch):
                    self.paid[prompt] += 1
            batch.looks += 1
        return _json(self._said(batch))

    async def _create(self, body: dict[str, Any], gemini: bool, claude: bool) -> web.Response:
        mark = None
        if gemini:
            mark = body["batch"]["displayName"]
            rows = body["batch"]["inputConfig"]["requests"]["requests"]
            requests = {row["metadata"]["key"]: row["request"] for row in rows}
        elif claude:
            requests = {row["custom_id"]: row["params"] for row in body["requests"]}
        else:
            mark = body["metadata"]["falter"]
            rows = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
            assert {row["url"] for row in rows} == {body["endpoint"]} == {"/v1/chat/completions"}
            requests = {row["custom_id"]: row["body"] for row in rows}
        assert all(len(key) == 64 for key in requests)
        refused = self.on_create(len(requests))
        if refused is not None:
            return _json(refused[1], refused[0])
        name = self.name(len(self.batches))
        dialect = "gemini" if gemini else "anthropic" if claude else "openai"
        self.batches[name] = batch = Batch(name, dialect, requests, mark)
        await self._stalls("create")
        return _json(self._said(batch))

    def _said(self, batch: Batch) -> dict[str, Any]:
        count, over = len(batch.requests), batch.state != "in_progress"
        if batch.dialect == "gemini":
            state = {"completed": "SUCCEEDED", "in_progress": "RUNNING"}.get(
                batch.state, batch.state.upper()
            )
            metadata = {
                "state": f"BATCH_STATE_{state}", "displayName": batch.mark, "createTime": DATE,
                "batchStats": {"requestCount": str(count)},
            }  # fmt: skip
            said: dict[str, Any] = {"name": f"batches/{batch.name}", "metadata": metadata}
            if over:
                lines = [
                    {"metadata": {"key": key}, **self._line_of_gemini(batch, key, prompt)}
                    for key, prompt in _mixed(self._all(batch))
                ]
                said |= {
                    "done": True,
                    "response": {"inlinedResponses": {"inlinedResponses": lines}},
                }
            return said
        if batch.dialect == "anthropic":
            counts = {"processing": 0 if over else count, "succeeded": count if over else 0}
            return {
                "id": batch.name, "created_at": DATE, "request_counts": counts,
                "processing_status": "ended" if over else "in_progress",
                "cancel_initiated_at": DATE if batch.state == "cancelled" else None,
                "results_url": "http://192.0.2.1/elsewhere",
            }  # fmt: skip
        done = sum(1 for _ in self._answered(batch)) if over else 0
        return {
            "id": batch.name, "status": batch.state, "created_at": CREATED,
            "metadata": {"falter": batch.mark},
            "request_counts": {"total": count, "completed": done, "failed": 0},
            "output_file_id": f"out-{batch.name}" if over and done else None,
            "error_file_id": f"err-{batch.name}" if over and done < count else None,
            "errors": {"data": [batch.error]} if batch.error else None,
        }  # fmt: skip

    def _all(self, batch: Batch) -> list[tuple[str, str]]:
        return [(key, prompt_of(body)) for key, body in batch.requests.items()]

    def _answered(self, batch: Batch) -> list[tuple[str, str]]:
        whole = [(key, prompt) for key, prompt in self._all(batch) if not self.broken(prompt)]
        return whole[: self.finished]

    def _line_of_gemini(self, batch: Batch, key: str, prompt: str) -> dict[str, Any]:
        if (key, prompt) in self._answered(batch):
            return {"response": answer(batch.requests[key], gemini=True, claude=False)}
        if self.broken(prompt):
            return {"error": {"code": 3, "message": f"the prompt is refused, says {KEY}"}}
        return {"error": {"code": 4, "message": "expired"}}

    async def _results(self, request: web.Request, file: str) -> web.StreamResponse:
        """OpenAI's two files."""
        kind, _, name = file.partition("-")
        batch = self.batches[name]
        answered = self._answered(batch)
        if kind == "out":
            lines: list[dict[str, Any]] = [
                {
                    "custom_id": key, "error": None,
                    "response": {
                        "status_code": 200, "body": answer(batch.requests[key], False, False)
                    },
                }
                for key, _ in _mixed(answered)
            ]  # fmt: skip
            return await self._stream(request, [*self.extra, *lines])
        rest = [row for row in self._all(batch) if row not in answered]
        error = {"message": f"the prompt is refused, says {KEY}", "code": "invalid"}
        lines = [
            {"custom_id": key, "response": {"status_code": 400, "body": {"error": error}}}
            if self.broken(prompt)
            else {"custom_id": key, "response": None, "error": {"code": "batch_expired"}}
            for key, prompt in rest
        ]
        return await self._stream(request, lines)

    async def _stream(
        self, request: web.Request, lines: list[dict[str, Any]]
    ) -> web.StreamResponse:
        """Line by line; it may stop in the middle, while somebody reads."""
        response = web.StreamResponse()
        await response.prepare(request)
        for number, line in enumerate(lines):
            if number == len(lines) // 2:
                await self._stalls("read")
                if self.stall == "break" and request.transport is not None:
                    self.stall = ""
                    await asyncio.sleep(0.05)
                    request.transport.abort()
            data = json.dumps(line).encode() + b"\n"
            await response.write(data[:9])
            await response.write(data[9:])
        await response.write_eof()
        return response

    async def _stalls(self, place: str) -> None:
        if self.stall == place and not self.stalled.is_set():
            await asyncio.sleep(0.05)  # what was written before is on its way
            self.stalled.set()
            while self.stall == place:  # until the next test
                await asyncio.sleep(0.05)
            raise ConnectionResetError


def _mixed(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Another order, which no request was sent in."""
    return sorted(rows, key=lambda row: hashlib.sha256(row[0].encode()).digest())


def _lines_of_claude(server: BatchServer, batch: Batch) -> list[dict[str, Any]]:
    lines = []
    answered = server._answered(batch)
    for key, prompt in _mixed(server._all(batch)):
        if (key, prompt) in answered:
            message = answer(batch.requests[key], gemini=False, claude=True)
            result: dict[str, Any] = {"type": "succeeded", "message": message}
        elif server.broken(prompt):
            error = {
                "type": "invalid_request_error",
                "message": f"the prompt is refused, says {KEY}",
            }
            result = {"type": "errored", "error": {"type": "error", "error": error}}
        else:
            result = {"type": "expired"}
        lines.append({"custom_id": key, "result": result})
    return [*server.extra, *lines]


def _json(data: Any, status: int = 200) -> web.Response:
    return web.json_response(data, status=status)


def _uploaded(request: web.Request, raw: bytes) -> bytes:
    """The file of a form, as any reader of forms sees it."""
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    form = email.message_from_bytes(head + raw, policy=email.policy.HTTP)
    fields = {
        part.get_param("name", header="content-disposition"): part for part in form.iter_parts()
    }
    assert fields["purpose"].get_content().strip() == "batch"
    content = fields["file"].get_payload(decode=True)
    assert isinstance(content, bytes)
    return content
