"""Anthropic's message batches: requests go in as JSON, results come out as lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import orjson

from falter.clients import _batch_lines as batch
from falter.clients._answers import Answer
from falter.clients._transport import Transport
from falter.core.batches import BatchLine, BatchStatus, ListedBatch, custom_id, key_of
from falter.core.records import Request

__all__ = ["AnthropicBatches"]

PATH = "messages/batches"
FINAL = ("invalid_request_error", "not_found_error", "permission_error", "request_too_large")


class AnthropicBatches:
    """Batches of one model. They take no mark: one is known again by its requests."""

    form = "anthropic"
    most_requests = 100_000
    most_bytes = 100_000_000  # Anthropic takes 256 MB; so much is held in memory here

    def __init__(
        self,
        transport: Transport,
        body: Callable[[Request], Mapping[str, Any]],
        read: Callable[[Any], Answer],
    ) -> None:
        self._transport, self._body, self._read = transport, body, read

    @property
    def asked(self) -> str:
        return self._transport.shape.note(None)

    def line(self, request: Request) -> bytes:
        params = self._transport.shape.fields(self._body(request))
        return orjson.dumps({"custom_id": custom_id(request.key), "params": params})

    def file_line(self, request: Request) -> bytes:
        return self.line(request)

    async def check(self) -> None:
        await batch.check_batches(self._transport, f"{PATH}?limit=1")

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        return await batch.handed_in(self._transport, PATH, body, "id")

    async def listed(self, since: float) -> AsyncIterator[ListedBatch]:
        after = ""
        while True:
            page = await self._transport.call(self._transport.url(f"{PATH}?limit=100{after}"))
            rows = page.get("data") if isinstance(page, dict) else None
            found = [_listed(row) for row in rows or () if _is_batch(row)]
            for each in found:
                if each.created_at is not None and each.created_at < since:
                    return
                yield each
            if not found or not page.get("has_more"):
                return
            after = f"&after_id={found[-1].name}"

    async def status(self, name: str) -> BatchStatus:
        return await batch.status_or_gone(self._transport, f"{PATH}/{name}", _status)

    async def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        """From the batch's own address: the one that the server names could be anywhere."""
        url = self._transport.url(f"{PATH}/{name}/results")
        async for line in self._transport.lines(url):
            yield read_line(line, self._read, asked, self._transport.clean)


def read_line(
    line: Any, read: Callable[[Any], Answer], asked: str, clean: Callable[[str], str]
) -> BatchLine:
    """A line of the results."""
    line = line if isinstance(line, dict) else {}
    key, result = key_of(line.get("custom_id")), line.get("result")
    result = result if isinstance(result, dict) else {}
    kind = result.get("type")
    if kind == "succeeded":
        return batch.answered(key, result.get("message"), read, asked)
    if kind != "errored":
        return BatchLine(key=key, reason=batch.word(kind) or "no answer")
    error = result.get("error")
    inner = error.get("error", error) if isinstance(error, dict) else error
    final = isinstance(inner, dict) and inner.get("type") in FINAL
    return batch.declined(key, 400 if final else None, inner, clean)


def _counts(data: Mapping[str, Any]) -> tuple[int | None, int]:
    """How many requests a batch has, and how many are done with."""
    counts = data.get("request_counts")
    if not isinstance(counts, dict):
        return None, 0
    known = {name: batch.whole_number(value) or 0 for name, value in counts.items()}
    return sum(known.values()), sum(known.values()) - known.get("processing", 0)


def _is_batch(row: Any) -> bool:
    return isinstance(row, dict) and batch.is_name(row.get("id"))


def _listed(row: dict[str, Any]) -> ListedBatch:
    return ListedBatch(
        name=row["id"],
        requests=_counts(row)[0],
        created_at=batch.timestamp(row.get("created_at")),
    )


def _status(data: Any) -> BatchStatus:
    state, (total, done) = batch.word(data["processing_status"]), _counts(data)
    return BatchStatus(
        ended=state == "ended",
        said=f"{state}, {done:,} of {total:,}" if total else state,
        cancelled=bool(data.get("cancel_initiated_at")),
    )
