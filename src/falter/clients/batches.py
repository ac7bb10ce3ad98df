"""Base class of providers' batch APIs: list batches, submit one, poll its state, read results."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from falter.clients.answers import Answer, RequestRefused, UnusableAnswer, failed_key, refused_key
from falter.clients.retry import RETRYABLE_STATUSES, read_error
from falter.clients.transport import FILTERED, ODD_JSON, Transport
from falter.records.batches import BatchLine, BatchStatus, ListedBatch
from falter.records.errors import EndpointError, PreflightError, refusal
from falter.records.types import Request

# A name comes from a server and is put into a URL with the key in the header: "batch_68a1-x" is
# taken, "../files", "batches/123" and "x?y" are not.
BATCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
"""Pattern of valid names of batches and files; no such name leads to another path of the server."""
NO_BATCHES_STATUSES = (404, 405, 501)

Build = Callable[[Request], Any]
Read = Callable[[Any], Answer]


class ProviderBatches(ABC):
    """A model's batches at one provider: base class for `falter.records.batches.BatchDesk`.

    A provider sets the `path` of its list and three names of fields. `page_size` requests a length
    of a page, `rows` holds a page's batches, and `cursor` names the batch that the next page
    follows. `newest_first` is True if the list is sorted.
    """

    form: str
    most_requests: int
    most_bytes: int
    path = "batches"
    page_size = "limit"
    rows = "data"
    cursor = "after"
    newest_first = True

    def __init__(self, transport: Transport, body: Build, read: Read) -> None:
        self._transport, self._body, self._read = transport, body, read

    @property
    def asked(self) -> str:
        return self._transport.dialect.note(None) or ""

    @abstractmethod
    def batch_line(self, request: Request) -> bytes: ...

    def file_line(self, request: Request) -> bytes:
        return self.batch_line(request)

    @abstractmethod
    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None: ...

    @abstractmethod
    def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]: ...

    @abstractmethod
    def entry(self, row: dict[str, Any]) -> ListedBatch:
        """Return a row of the list as a batch; `listed` leaves out batches with invalid names."""

    @abstractmethod
    def state(self, data: Any) -> BatchStatus:
        """Return the status of a batch from its JSON."""

    async def check(self) -> None:
        """Raise `PreflightError` if the server cannot list its batches; costs nothing."""
        base_url = self._transport.base_url
        try:
            await self.call(f"{self.path}?{self.page_size}=1")
        except RequestRefused as error:
            if error.status in NO_BATCHES_STATUSES:
                raise refusal(
                    PreflightError, "clients.no_batch_api", base_url=base_url, status=error.status
                ) from error
            raise PreflightError(
                f"Cannot list the batches at {base_url}: {error.message}",
                hint="without that list an interrupted run could pay for a batch twice; leave "
                "--batch out to send every request separately",
            ) from error

    async def listed(self, since: float) -> AsyncIterator[ListedBatch]:
        cursor = ""
        while True:
            page = await self.call(f"{self.path}?{self.page_size}=100{cursor}")
            page = page if isinstance(page, dict) else {}
            rows = [row for row in page.get(self.rows) or () if isinstance(row, dict)]
            found = [each for each in map(self.entry, rows) if is_name(each.name)]
            for each in found:
                if each.created_at is None or each.created_at >= since:
                    yield each
                # An account may list years of batches; in this order all that follow are older.
                elif self.newest_first:
                    return
            cursor = self.following(page, found)
            if not rows or not cursor:
                return

    def following(self, page: Mapping[str, Any], found: Sequence[ListedBatch]) -> str:
        """Return the end of the next page's URL; empty after the last page."""
        return f"&{self.cursor}={found[-1].name}" if found and page.get("has_more") else ""

    async def status(self, name: str) -> BatchStatus:
        try:
            data = await self.call(f"{self.path}/{name}")
        except RequestRefused as error:
            if error.status == 404:
                return BatchStatus(ended=True, said="not found", gone=True)
            raise
        try:
            return self.state(data)
        except ODD_JSON as error:
            said = self._transport.clean(repr(error))
            raise EndpointError(
                f"the provider's JSON about a batch has an unexpected form: {said}"
            ) from None

    async def call(self, path: str) -> Any:
        """Return the JSON at a path of the server."""
        return await self._transport.call(self._transport.url(path))

    async def submit_once(self, path: str, body: bytes, field: str) -> str | None:
        """Submit a batch once; return its name, or None if the provider may have received it.

        Return an empty text if the batch arrived but its name is not valid.
        """
        try:
            data = await self._transport.call(self._transport.url(path), body, once=True)
        # Without a complete reply, or with one of a gateway (5xx), the provider may have taken the
        # batch. The caller must check the list before it submits, and pays for, another batch.
        except RequestRefused as error:
            if error.status is None or error.status >= 500:
                return None
            raise
        value = data.get(field) if isinstance(data, dict) else None
        value = value.removeprefix("batches/") if isinstance(value, str) else value
        return value if is_name(value) else ""


def printable_text(value: Any, most: int = 60) -> str:
    """Return a server's text, shortened and printable; empty if the value is no text."""
    return "".join(c for c in value[:most] if c.isprintable()) if isinstance(value, str) else ""


def whole_number(value: Any) -> int | None:
    """Return a count, which some servers write as text; None if the value is no count."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return int(value)
    return value if type(value) is int and value >= 0 else None


def timestamp(value: Any) -> float | None:
    """Return seconds since 1970 from a number or an RFC 3339 date; None if it is neither."""
    # 1e11 seconds are the year 5138: a larger number is in milliseconds, or nonsense.
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e11:
        return float(value)
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def is_name(value: Any) -> bool:
    """Return True if the value is a valid name of a batch or file."""
    return isinstance(value, str) and BATCH_NAME.fullmatch(value) is not None


def answered(key: str, data: Any, read: Read, asked: str) -> BatchLine:
    """Return the line of a request that was answered; an unreadable answer is a failure.

    `asked` notes how the request differed from its usual form; it is added to `served_by`.
    """
    try:
        response = read(data).stored(key)
    except UnusableAnswer as error:
        return BatchLine(key=key, response=failed_key(key, f"unusable answer: {error}"[:500]))
    except ODD_JSON as error:
        return BatchLine(key=key, response=failed_key(key, f"odd JSON: {error!r}"[:500]))
    if asked:
        served_by = ", ".join(filter(None, (response.served_by, asked)))
        response = replace(response, served_by=served_by)
    return BatchLine(key=key, response=response)


def declined(key: str, status: int | None, error: Any, clean: Callable[[str], str]) -> BatchLine:
    """Return the line of a request that failed: refused for good, or to be sent again."""
    said = read_error(orjson.dumps({"error": error}))
    reason = f"HTTP {status}: {said.message}" if status else said.message
    reason = clean(reason) or "an error without a message"
    if said.code in FILTERED:
        return BatchLine(key=key, response=refused_key(key, "content_filter"))
    if status is None or status in RETRYABLE_STATUSES or status >= 500:
        return BatchLine(key=key, reason=reason)
    return BatchLine(key=key, response=failed_key(key, reason))
