"""Gemini's batches: requests go in with the call that makes one, answers come with its state."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import orjson

from falter.clients import _batch_lines as batch
from falter.clients._answers import Answer, RequestRefused
from falter.clients._transport import Transport
from falter.core.batches import BatchLine, BatchStatus, ListedBatch, custom_id, key_of
from falter.core.records import Request

__all__ = ["GeminiBatches"]

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
# Codes of Google's own: what would only repeat. The others may pass.
FINAL = (3, 5, 7, 9, 11, 12)


class GeminiBatches:
    """Batches of one model, of as many requests as go in without a file of their own."""

    form = "gemini"
    most_requests = 5_000
    most_bytes = 15_000_000  # 20 MB with all that stands around them

    def __init__(
        self,
        transport: Transport,
        model: str,
        body: Callable[[Request], Mapping[str, Any]],
        read: Callable[[Any], Answer],
    ) -> None:
        self._transport, self._model = transport, model
        self._body, self._read = body, read

    @property
    def asked(self) -> str:
        return self._transport.shape.note(None)

    def line(self, request: Request) -> bytes:
        metadata = {"key": custom_id(request.key)}
        return orjson.dumps({"request": self._body(request), "metadata": metadata})

    def file_line(self, request: Request) -> bytes:
        """A line of a file has the key outside."""
        key = custom_id(request.key)
        return orjson.dumps({"key": key, "request": self._body(request)})

    async def check(self) -> None:
        await batch.check_batches(self._transport, "batches?pageSize=1")

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        requests = b'{"requests":{"requests":[' + b",".join(lines) + b"]}}"
        body = b'{"batch":{"displayName":%b,"inputConfig":%b}}' % (orjson.dumps(mark), requests)
        path = f"models/{self._model}:batchGenerateContent"
        return await batch.handed_in(self._transport, path, body, "name")

    async def listed(self, since: float) -> AsyncIterator[ListedBatch]:
        """All pages: nobody says in which order they come."""
        token = ""
        while True:
            page = await self._transport.call(self._transport.url(f"batches?pageSize=100{token}"))
            rows = page.get("operations") if isinstance(page, dict) else None
            for row in rows or ():
                each = _listed(row)
                if each is not None and (each.created_at is None or each.created_at >= since):
                    yield each
            following = page.get("nextPageToken") if isinstance(page, dict) else None
            if not rows or not isinstance(following, str) or not following:
                return
            token = f"&pageToken={quote(following[:2000], safe='')}"

    async def status(self, name: str) -> BatchStatus:
        return await batch.status_or_gone(self._transport, f"batches/{name}", _status)

    async def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        data = await self._transport.call(self._transport.url(f"batches/{name}"))
        for line in _lines(data):
            yield read_line(line, self._read, asked, self._transport.clean)


def read_line(
    line: Any, read: Callable[[Any], Answer], asked: str, clean: Callable[[str], str]
) -> BatchLine:
    """One of the inlined answers, or a line of a file of results, which has its key outside."""
    line = line if isinstance(line, dict) else {}
    metadata = line.get("metadata")
    key = key_of(metadata.get("key") if isinstance(metadata, dict) else line.get("key"))
    if isinstance(line.get("response"), dict):
        return batch.answered(key, line["response"], read, asked)
    error = line.get("error")
    final = isinstance(error, dict) and (error.get("code") in FINAL or error.get("code") == 400)
    return batch.declined(key, 400 if final else None, error or "no answer", clean)


def _lines(data: Any) -> list[Any]:
    """The answers of a batch, at either depth where servers put them."""
    output = (data.get("response") if isinstance(data, dict) else None) or {}
    output = output.get("output") or output if isinstance(output, dict) else {}
    inlined = output.get("inlinedResponses")
    inlined = inlined.get("inlinedResponses") if isinstance(inlined, dict) else inlined
    if inlined is None and output.get("responsesFile"):
        raise RequestRefused("the results are in a file, which falter did not ask for", status=None)
    return inlined if isinstance(inlined, list) else []


def _metadata(data: Mapping[str, Any]) -> dict[str, Any]:
    inner = data.get("metadata")
    return inner if isinstance(inner, dict) else {}


def _listed(row: Any) -> ListedBatch | None:
    """A batch of the list; None where it has no name that could be one."""
    inner = _metadata(row) if isinstance(row, dict) else {}
    name, stats = (
        str(row.get("name") if inner else "").removeprefix("batches/"),
        inner.get("batchStats"),
    )
    if not batch.is_name(name):
        return None
    return ListedBatch(
        name=name,
        mark=batch.word(inner.get("displayName"), 100) or None,
        requests=batch.whole_number(stats.get("requestCount")) if isinstance(stats, dict) else None,
        created_at=batch.timestamp(inner.get("createTime")),
    )


def _status(data: Any) -> BatchStatus:
    state = batch.word(_metadata(data).get("state") or data.get("state"))
    state = state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    error = data.get("error") if isinstance(data.get("error"), dict) else {}
    failed = state == "FAILED" or bool(error)
    return BatchStatus(
        ended=state in ENDED or bool(data.get("done")),
        said=state.lower() or "unknown",
        failure=(batch.word(error.get("message"), 400) or "failed") if failed else "",
        too_much=error.get("code") in (8, 429),
        cancelled=state == "CANCELLED",
    )
