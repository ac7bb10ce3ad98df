"""What servers send beside answers: errors, waits, model lists; all of it read with mistrust."""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from falter.clients._retry import retry_after

__all__ = [
    "LARGEST_BODY",
    "BadReply",
    "Disconnected",
    "ServerError",
    "TooLargeError",
    "UnknownHost",
    "asked_wait",
    "connection_trouble",
    "inner_status",
    "listed_models",
    "read_bounded",
    "read_error",
    "read_lines",
]

LARGEST_BODY = 32 * 2**20
LONGEST_RAW = 4000


class TooLargeError(Exception):
    """A body beyond what one answer can reasonably be."""


class BadReply(Exception):
    """Bytes that are no whole reply of HTTP/1.1."""


class Disconnected(ConnectionError):
    """The server closed the connection before a whole reply."""


class UnknownHost(OSError):
    """No address is known for a host."""


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error as a server words it: its message, its code, and the field that it is about."""

    message: str
    code: str = ""
    field: str = ""


def read_error(raw: bytes) -> ServerError:
    """What a server said went wrong, from the usual places of a body."""
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return ServerError(raw[:LONGEST_RAW].decode("utf-8", "replace"))
    if isinstance(data, list) and len(data) == 1:
        (data,) = data
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return ServerError(error if isinstance(error, str) else orjson.dumps(error).decode())
    message = error.get("message") or error.get("detail") or error
    code = error.get("code") or error.get("type") or ""
    return ServerError(
        message if isinstance(message, str) else orjson.dumps(message).decode(),
        str(code),
        _field(error),
    )


def inner_status(data: Any) -> int | None:
    """The status of an error that came with a good one: routers send HTTP 200 with an error inside.

    Its code counts, where it is a status of an error or says that the quota is used up.
    """
    error = data.get("error") if isinstance(data, dict) and not data.get("choices") else None
    if not isinstance(error, dict):
        return None
    code = error.get("code")
    if code in ("insufficient_quota", "rate_limit_exceeded"):
        return 429
    if isinstance(code, str) and code.isascii() and code.isdigit():
        code = int(code)
    return code if type(code) is int and 400 <= code < 600 else None


def _field(error: dict[str, Any]) -> str:
    """`param`, or the end of the path in a list of validation errors, as FastAPI writes it."""
    if isinstance(error.get("param"), str):
        return str(error["param"])
    detail = error.get("detail")
    first = detail[0] if isinstance(detail, list) and detail else None
    path = first.get("loc") if isinstance(first, dict) else None
    return path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait; milliseconds are more exact and come first."""
    milliseconds = headers.get("Retry-After-Ms", "")
    if re.fullmatch(r"\d{1,9}(\.\d*)?", milliseconds):
        return float(milliseconds) / 1000
    return retry_after(headers.get("Retry-After"), time.time())


def listed_models(data: Any) -> list[str]:
    """The models of a list: `id` or `name` in `data` or `models`; none when it is no list."""
    rows = data
    if isinstance(data, dict):
        rows = data.get("data") or data.get("models")
    if not isinstance(rows, list):
        return []
    names = (row.get("id") or row.get("name") for row in rows if isinstance(row, dict))
    return [name for name in names if isinstance(name, str)]


async def read_bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body of a reply of unknown size: chunked, compressed, or too large."""
    if (response.content_length or 0) > most:
        response.close()
        raise TooLargeError
    parts, size = [], 0
    try:
        async for part in response.content.iter_any():
            size += len(part)
            if size > most:
                raise TooLargeError
            parts.append(part)
    except BaseException:
        response.close()
        raise
    return b"".join(parts)


async def read_lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    """The lines of a body of any size, of which none may be too large, as they come."""
    begun = b""
    try:
        async for part in response.content.iter_any():
            *whole, begun = (begun + part).split(b"\n") if b"\n" in part else (begun + part,)
            if len(begun) > LARGEST_BODY:
                raise TooLargeError
            for line in whole:
                if line.strip():
                    yield line
        if begun.strip():
            yield begun
    finally:
        response.close()


def connection_trouble(error: Exception) -> str:
    """A connection error in a few words."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"unknown host '{error.host}'"
    if isinstance(error, UnknownHost):
        return f"unknown host '{error}'"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"certificate not accepted: {error.certificate_error}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not accepted: {error}"
    if isinstance(error, aiohttp.ServerDisconnectedError | Disconnected):
        return "the server closed the connection"
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number).lower()
    return str(error) or type(error).__name__
