"""OpenAI's batches, and those of hosts with the same interface: a file goes in, two come out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

import orjson

from falter.clients import _batch_lines as batch
from falter.clients._answers import Answer
from falter.clients._transport import Transport
from falter.core.batches import BatchLine, BatchStatus, ListedBatch, custom_id, key_of
from falter.core.records import Request

__all__ = ["OpenAIBatches"]

ENDED = ("completed", "failed", "expired", "cancelled")
LINE = b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}'
PAGE = 100


class OpenAIBatches:
    """Batches of one endpoint, such as `/v1/chat/completions`, which is what a host calls it."""

    form = "openai"
    most_requests = 50_000
    most_bytes = 100_000_000  # OpenAI takes 200 MB; so much is held in memory here

    def __init__(
        self,
        transport: Transport,
        endpoint: str,
        body: Callable[[Request], bytes],
        read: Callable[[Any], Answer],
    ) -> None:
        self._transport, self._endpoint = transport, endpoint
        self._body, self._read = body, read

    @property
    def asked(self) -> str:
        return self._transport.shape.note(None)

    def line(self, request: Request) -> bytes:
        name = custom_id(request.key).encode()
        return LINE % (name, self._endpoint.encode(), self._body(request))

    def file_line(self, request: Request) -> bytes:
        return self.line(request)

    async def check(self) -> None:
        await batch.check_batches(self._transport, "batches?limit=1")

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        """A file that is uploaded twice costs nothing; only the batch itself is made once."""
        boundary = f"falter-{custom_id(mark)}"
        data = await self._transport.call(
            self._transport.url("files"),
            _form(boundary, b"\n".join(lines)),
            kind=f"multipart/form-data; boundary={boundary}",
        )
        asked = {
            "input_file_id": batch.named(
                data.get("id") if isinstance(data, dict) else None, "file"
            ),
            "endpoint": self._endpoint,
            "completion_window": "24h",
            "metadata": {"falter": mark},
        }
        return await batch.handed_in(self._transport, "batches", orjson.dumps(asked), "id")

    async def listed(self, since: float) -> AsyncIterator[ListedBatch]:
        after = ""
        while True:
            url = self._transport.url(f"batches?limit={PAGE}{after}")
            page = await self._transport.call(url)
            rows = page.get("data") if isinstance(page, dict) else None
            found = [_listed(row) for row in rows or () if _is_batch(row)]
            for each in found:
                if each.created_at is not None and each.created_at < since:
                    return
                yield each
            if not found or not page.get("has_more"):
                return
            after = f"&after={found[-1].name}"

    async def status(self, name: str) -> BatchStatus:
        return await batch.status_or_gone(self._transport, f"batches/{name}", _status)

    async def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        """The answers, then the errors; a batch that expired or was cancelled has both, too."""
        data = await self._transport.call(self._transport.url(f"batches/{name}"))
        for field in ("output_file_id", "error_file_id"):
            if isinstance(data, dict) and data.get(field):
                file = batch.named(data[field], "file")
                async for line in self._transport.lines(
                    self._transport.url(f"files/{file}/content")
                ):
                    yield read_line(line, self._read, asked, self._transport.clean)


def read_line(
    line: Any, read: Callable[[Any], Answer], asked: str, clean: Callable[[str], str]
) -> BatchLine:
    """A line of either file."""
    line = line if isinstance(line, dict) else {}
    key, response = key_of(line.get("custom_id")), line.get("response")
    if not isinstance(response, dict):
        return batch.declined(key, None, line.get("error") or "no answer", clean)
    status = response.get("status_code")
    body = response.get("body")
    if status is None or (type(status) is int and status < 300):
        return batch.answered(key, body, read, asked)
    error = body.get("error", body) if isinstance(body, dict) else body
    return batch.declined(key, status if type(status) is int else None, error, clean)


def _form(boundary: str, content: bytes) -> bytes:
    """A form with the purpose and the file."""
    start = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
        'filename="falter.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
    )
    return start.encode() + content + f"\n\r\n--{boundary}--\r\n".encode()


def _is_batch(row: Any) -> bool:
    return isinstance(row, dict) and batch.is_name(row.get("id"))


def _listed(row: dict[str, Any]) -> ListedBatch:
    metadata, counts = row.get("metadata"), row.get("request_counts")
    return ListedBatch(
        name=row["id"],
        mark=batch.word(metadata.get("falter"), 100) or None
        if isinstance(metadata, dict)
        else None,
        requests=batch.whole_number(counts.get("total")) if isinstance(counts, dict) else None,
        created_at=batch.timestamp(row.get("created_at")),
    )


def _status(data: Any) -> BatchStatus:
    state, counts = batch.word(data["status"]), data.get("request_counts") or {}
    total, done = (batch.whole_number(counts.get(name)) for name in ("total", "completed"))
    errors = (data.get("errors") or {}).get("data") or []
    first = errors[0] if state == "failed" and errors else {}
    code = batch.word(first.get("code"))
    return BatchStatus(
        ended=state in ENDED,
        said=f"{state}, {done:,} of {total:,}" if total and done is not None else state,
        failure=(batch.word(first.get("message"), 400) or code or "failed")
        if state == "failed"
        else "",
        too_much="token_limit" in code or "batch_limit" in code,
        cancelled=state == "cancelled",
    )
