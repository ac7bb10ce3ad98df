"""When to ask again, and when not. The policy decides and does no I/O; the client waits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from falter.core.rng import Rng

__all__ = ["Decision", "GiveUp", "Outcome", "RetryPolicy", "Stop", "Wait", "retry_after"]

PASSING = frozenset({408, 409, 425, 429})
REFUSING = frozenset({401, 403})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one attempt failed.

    `status` is the HTTP status, or None when the trouble was below or above HTTP: no connection,
    no answer in time, an answer that cannot be read. `final` is for what would only repeat.
    `code` and `field` are the server's words for what it refused.
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
    """Ask again after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Record the request as failed, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run: the credentials were refused, and every other request would be."""

    message: str


Decision = Wait | GiveUp | Stop


class RetryPolicy:
    """Exponential back-off with full jitter.

    Before attempt n + 1 the wait is uniform on 0 … min(cap, base · 2ⁿ⁻¹) seconds, unless the
    server said how long: then it is that, up to the cap. Refused credentials stop the run; other
    errors of the caller (4xx) are final at once; everything else is tried `max_attempts` times.
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
        """What to do after the attempt with this number, counted from 1, failed like this."""
        if outcome.status in REFUSING:
            return Stop(_reason(outcome, 1))
        if attempt >= self.max_attempts or not _passes(outcome):
            return GiveUp(_reason(outcome, attempt))
        if outcome.retry_after is not None:
            return Wait(min(self.cap, outcome.retry_after))
        ceiling = min(self.cap, self.base * 2.0 ** min(attempt - 1, 60))
        return Wait(self._rng.random() * ceiling)


def retry_after(value: str | None, now: float) -> float | None:
    """The seconds a Retry-After header asks for: a number, or an HTTP date after `now`.

    None when the header is absent or unreadable; a date that has passed is 0.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _until(value, now)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)


def _passes(outcome: Outcome) -> bool:
    """Whether the same request may well succeed a little later."""
    if outcome.final:
        return False
    return outcome.status is None or outcome.status in PASSING or outcome.status >= 500


def _reason(outcome: Outcome, attempts: int) -> str:
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    return f"{outcome.what}{tries}: {outcome.message}" if outcome.message else outcome.what + tries
