"""What the batches of all providers have in common: their names, and what a line says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from falter.clients import _replies as replies
from falter.clients._answers import Answer, RequestRefused, UnusableAnswer, failed_key, refused_key
from falter.clients._transport import FILTERED, ODD_JSON, Transport
from falter.core.batches import BatchLine, BatchStatus
from falter.core.errors import EndpointError, PreflightError
from falter.core.records import Response

__all__ = [
    "answered",
    "check_batches",
    "declined",
    "handed_in",
    "is_name",
    "named",
    "noted",
    "status_or_gone",
    "timestamp",
    "whole_number",
    "word",
]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
"""What a provider may call a batch or a file: nothing that could lead elsewhere in a URL."""
NO_BATCHES = (404, 405, 501)
PASSING = (408, 409, 425, 429)


def word(value: Any, most: int = 60) -> str:
    """A short word of a server's, fit to be shown and stored."""
    return "".join(c for c in value[:most] if c.isprintable()) if isinstance(value, str) else ""


def whole_number(value: Any) -> int | None:
    """A count, which some write as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return int(value)
    return value if type(value) is int and value >= 0 else None


def timestamp(value: Any) -> float | None:
    """Seconds since 1970 of a number, or of a date in the form of RFC 3339."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e11:
        return float(value)
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def is_name(value: Any) -> bool:
    """Whether that may be a provider's name for something."""
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def named(value: Any, what: str = "batch") -> str:
    """The provider's name for something. Raises where it is none that may stand in a URL."""
    if is_name(value):
        return str(value)
    raise EndpointError(f"the server calls its {what} {word(value)!r}, which is no id")


async def check_batches(transport: Transport, path: str) -> None:
    """Raise `PreflightError` where a server has no list of batches, which costs nothing."""
    try:
        await transport.call(transport.url(path))
    except RequestRefused as error:
        if error.status in NO_BATCHES:
            raise PreflightError(
                f"{transport.base_url} takes no batches (HTTP {error.status})",
                hint="leave --batch out, and every request is sent by itself",
            ) from error
        raise PreflightError(
            f"the batches at {transport.base_url} cannot be listed: {error.message}",
            hint="what a batch costs must not be asked twice, so they have to be",
        ) from error


async def handed_in(transport: Transport, path: str, body: bytes, name: str) -> str | None:
    """Hand a batch in, once: its name, None where nobody knows whether it arrived."""
    try:
        data = await transport.call(transport.url(path), body, once=True)
    except RequestRefused as error:
        if error.status is None or error.status >= 500:
            return None
        raise
    value = data.get(name) if isinstance(data, dict) else None
    value = value.removeprefix("batches/") if isinstance(value, str) else value
    return value if is_name(value) else ""


async def status_or_gone(
    transport: Transport, path: str, read: Callable[[Any], BatchStatus]
) -> BatchStatus:
    """How a batch stands, as `read` from its JSON."""
    try:
        data = await transport.call(transport.url(path))
    except RequestRefused as error:
        if error.status == 404:
            return BatchStatus(ended=True, said="not found", gone=True)
        raise
    try:
        return read(data)
    except ODD_JSON as error:
        raise EndpointError(f"odd JSON about a batch: {transport.clean(repr(error))}") from None


def answered(key: str, data: Any, read: Callable[[Any], Answer], asked: str) -> BatchLine:
    """A line with an answer; one that cannot be read is a failure."""
    try:
        response = read(data).stored(key)
    except UnusableAnswer as error:
        return BatchLine(key=key, response=failed_key(key, f"unusable answer: {error}"[:500]))
    except ODD_JSON as error:
        return BatchLine(key=key, response=failed_key(key, f"odd JSON: {error!r}"[:500]))
    return BatchLine(key=key, response=noted(response, asked))


def noted(response: Response, asked: str) -> Response:
    """A response that says how the server was asked, where that was not the usual way."""
    parts = [part for part in (response.served_by, asked) if part]
    return replace(response, served_by=", ".join(parts)) if asked else response


def declined(key: str, status: int | None, error: Any, clean: Callable[[str], str]) -> BatchLine:
    """A line with an error: a refusal for good, or a reason to ask again."""
    said = replies.read_error(orjson.dumps({"error": error}))
    reason = f"HTTP {status}: {said.message}" if status else said.message
    reason = clean(reason) or "an error without a word"
    if said.code in FILTERED:
        return BatchLine(key=key, response=refused_key(key, "content_filter"))
    if status is None or status in PASSING or status >= 500:
        return BatchLine(key=key, reason=reason)
    return BatchLine(key=key, response=failed_key(key, reason))
