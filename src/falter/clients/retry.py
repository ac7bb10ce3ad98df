"""Errors of servers, and the policy that decides about retries; it does no I/O."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from falter.clients.answers import read_json
from falter.records.rng import Rng

# RFC 9110 and RFC 8470 on errors of the caller that may pass: 408 request timeout, 409 conflict
# with the state of the resource, 425 too early. 429 (RFC 6585) is a rate limit.
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
AUTH_FAILURE_STATUSES = frozenset({401, 403})
# Maximum bytes read of a body that is no JSON, such as a gateway's HTML page; messages show 500
# characters.
MAX_RAW_BYTES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One failed attempt.

    `status` is the HTTP status. It is None if there was no connection, no reply in time, or a reply
    that cannot be read. `final` marks failures that a retry would only repeat. `code` and `field`
    are the server's code for the error and the field that the server names.
    """

    what: str
    message: str = ""
    status: int | None = None
    retry_after: float | None = None
    final: bool = False
    code: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """The decision to send the request again after some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The decision to record the request as failed, with a reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class AbortRun:
    """The decision to end the run: the credentials were refused, as for every other request."""

    message: str


Decision = Wait | GiveUp | AbortRun


class RetryPolicy:
    """Exponential back-off with full jitter.

    Before attempt n + 1 the wait is uniform on 0 … min(cap, base · 2ⁿ⁻¹) seconds. If the server
    said how long to wait, the wait is that long instead, up to the cap. Refused credentials stop
    the run. Other client errors (4xx) are final at once, except `RETRYABLE_STATUSES`. All remaining
    failures are tried `max_attempts` times.
    """

    __slots__ = ("_rng", "base", "cap", "max_attempts")

    def __init__(
        self, max_attempts: int = 6, base: float = 0.5, cap: float = 60.0, *, seed: int = 0
    ) -> None:
        self.max_attempts = max_attempts
        self.base = base
        self.cap = cap
        self._rng = Rng(seed)

    def decide(self, attempt: int, outcome: Outcome) -> Decision:
        """Decide whether to wait, give up or stop after failed attempt number `attempt`, from 1."""
        if outcome.status in AUTH_FAILURE_STATUSES:
            return AbortRun(_failure_reason(outcome, 1))
        if attempt >= self.max_attempts or not _is_retryable(outcome):
            return GiveUp(_failure_reason(outcome, attempt))
        if outcome.retry_after is not None:
            return Wait(min(self.cap, outcome.retry_after))
        # The exponent is bounded, since 2.0**1024 raises OverflowError. Jitter over the whole range
        # keeps requests that failed together from coming back together.
        ceiling = min(self.cap, self.base * 2.0 ** min(attempt - 1, 60))
        return Wait(self._rng.random() * ceiling)


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for: a number, or an HTTP date after `now`.

    Return None if the header is absent or unreadable, and 0 for a date that has passed.
    """
    if not value:
        return None
    # RFC 9110 permits whole seconds ("120") or a date ("Fri, 07 Nov 2025 23:59:59 GMT"); some
    # gateways send fractions.
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, now)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    # A date in "-0000", or without a zone, is parsed without one; HTTP dates are always in UTC.
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)


def _is_retryable(outcome: Outcome) -> bool:
    """Return True if the same request may succeed a little later."""
    if outcome.final:
        return False
    return outcome.status is None or outcome.status in RETRYABLE_STATUSES or outcome.status >= 500


def _failure_reason(outcome: Outcome, attempts: int) -> str:
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    return f"{outcome.what}{tries}: {outcome.message}" if outcome.message else outcome.what + tries


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error that a server describes: its message, its code, and the field that it is about."""

    message: str
    code: str = ""
    field: str = ""


def read_error(raw: bytes) -> ServerError:
    """Return the error that a server describes, from the usual places of a body."""
    try:
        data = read_json(raw)
    except ValueError:
        return ServerError(raw[:MAX_RAW_BYTES].decode("utf-8", "replace"))
    # Google's OpenAI-compatible endpoint wraps the error object into a list of one.
    if isinstance(data, list) and len(data) == 1:
        (data,) = data
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return ServerError(error if isinstance(error, str) else orjson.dumps(error).decode())
    message = error.get("message") or error.get("detail") or error
    code = error.get("code") or error.get("type") or ""
    return ServerError(
        message if isinstance(message, str) else orjson.dumps(message).decode(),
        str(code)[:100],
        _named_field(error),
    )


def inner_status(data: Any) -> int | None:
    """Return the HTTP status of an error inside a reply with HTTP 200, as routers send it.

    The error's code counts if it is an error status (400 to 599) or the name of a rate limit.
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


def _named_field(error: dict[str, Any]) -> str:
    """Return the field that an error names, or an empty text.

    The field is `param`, or the end of the path in FastAPI's list of validation errors.
    """
    if isinstance(error.get("param"), str):
        return str(error["param"])
    detail = error.get("detail")
    first = detail[0] if isinstance(detail, list) and detail else None
    path = first.get("loc") if isinstance(first, dict) else None
    return path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, or None; milliseconds take precedence."""
    # OpenAI and Azure send "retry-after-ms: 1500" next to "retry-after: 2". The pattern takes
    # "1500" and "1500.5" and leaves out "-1", "1e3" and "soon".
    milliseconds = headers.get("Retry-After-Ms", "")
    if re.fullmatch(r"\d{1,9}(\.\d*)?", milliseconds):
        return float(milliseconds) / 1000
    return retry_after(headers.get("Retry-After"), time.time())
