"""Limits on requests: concurrent, per minute, tokens per minute, and a shared cool-down."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

# A token that is not taken when the bucket is full is lost for good, so a timer that fires late
# would cost throughput. A tenth of a second is more than a busy event loop is late.
BURST_SECONDS = 0.1
"""Size of a burst: the requests of this many seconds may be sent at once."""
UNLIMITED = float("inf")


class Handle(Protocol):
    """The handle that cancels a scheduled call."""

    def cancel(self) -> None: ...


class Bucket:
    """A token bucket that keeps any minute within the limit.

    The bucket starts full with a small burst and refills a little slower than the limit. So burst
    and refill together stay within the limit in every minute. A request that costs more than the
    burst passes when the bucket is full; the requests after it wait until the debt is paid.
    """

    __slots__ = ("_updated_at", "capacity", "level", "rate")

    def __init__(self, per_minute: float, now: float) -> None:
        self.capacity = max(1.0, per_minute / 60 * BURST_SECONDS)
        # In 60 s the burst and the refill add up to `per_minute + 1`; the last of these requests
        # leaves exactly at the end of the minute, which belongs to the next one.
        self.rate = (per_minute - (self.capacity - 1)) / 60
        self.level = self.capacity
        self._updated_at = now

    def wait(self, cost: float, now: float) -> float:
        """Return the seconds until `cost` may be taken; 0 if it may be taken now."""
        self.level = min(self.capacity, self.level + (now - self._updated_at) * self.rate)
        self._updated_at = now
        lacking = min(cost, self.capacity) - self.level
        # After the wait that was asked for, rounding may leave some 1e-15 of a token lacking.
        return lacking / self.rate if lacking > 1e-9 else 0.0

    def take(self, cost: float) -> None:
        """Take `cost`, into debt if need be; a negative cost gives back."""
        self.level = min(self.capacity, self.level - cost)


class Limiter:
    """A queue that admits requests in order of arrival, within all limits.

    If no limit is in force, `acquire` returns without suspending. Otherwise the waiting requests
    form one queue, which a single timer serves. Tests replace `clock` and `schedule`;
    `schedule(seconds, callback)` defaults to the running loop's `call_later`.
    """

    def __init__(
        self,
        *,
        concurrency: int | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        schedule: Callable[[float, Callable[[], None]], Handle] | None = None,
    ) -> None:
        self._free_places: float = UNLIMITED if concurrency is None else concurrency
        self._clock = clock
        self._schedule = schedule
        now = clock()
        self._rpm_bucket = None if requests_per_minute is None else Bucket(requests_per_minute, now)
        self._tpm_bucket = None if tokens_per_minute is None else Bucket(tokens_per_minute, now)
        self._has_rates = self._rpm_bucket is not None or self._tpm_bucket is not None
        self._paused_until = 0.0
        self._queue: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._timer: Handle | None = None

    async def acquire(self, tokens: float) -> None:
        """Wait for a place and for `tokens`; every `acquire` that returns needs a `release`."""
        # Nobody overtakes: a small request would otherwise starve a large one at the head.
        if not self._queue and self._try_admit(tokens):
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((tokens, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            # The turn may have been granted in the same pass of the loop that cancelled the task.
            if turn.done() and not turn.cancelled():
                self.release()
            else:
                self._serve()
            raise

    def release(self) -> None:
        """Free a place and admit the next request of the queue."""
        self._free_places += 1
        if self._queue:
            self._serve()

    def settle(self, estimated: float, used: float) -> None:
        """Replace a request's estimated token count by the count that the server reports.

        At most a minute's worth is charged, so that an absurd count cannot stall a run for hours.
        """
        if self._tpm_bucket is not None:
            self._tpm_bucket.take(min(used - estimated, 60 * self._tpm_bucket.rate))
            if self._queue:
                self._serve()

    def pause(self, seconds: float) -> None:
        """Admit nothing for `seconds`; a shorter pause does not end a longer one."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _try_admit(self, tokens: float) -> bool:
        if self._free_places < 1:
            return False
        if (self._has_rates or self._paused_until) and self._wait_time(tokens) > 0:
            return False
        self._free_places -= 1
        if self._rpm_bucket is not None:
            self._rpm_bucket.take(1)
        if self._tpm_bucket is not None:
            self._tpm_bucket.take(tokens)
        return True

    def _wait_time(self, tokens: float) -> float:
        """Return the seconds until rates and cool-down permit this request; 0 or less means now."""
        now = self._clock()
        delay = self._paused_until - now
        if delay <= 0:
            delay = self._paused_until = 0.0
        if self._rpm_bucket is not None:
            delay = max(delay, self._rpm_bucket.wait(1, now))
        if self._tpm_bucket is not None:
            delay = max(delay, self._tpm_bucket.wait(tokens, now))
        return delay

    def _serve(self) -> None:
        """Admit requests from the head of the queue while they may go; set a timer for the next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            tokens, turn = self._queue[0]
            if not turn.done():
                if not self._try_admit(tokens):
                    break
                turn.set_result(None)
            self._queue.popleft()
        if self._queue and self._free_places >= 1:
            schedule = self._schedule or asyncio.get_running_loop().call_later
            # uvloop counts whole milliseconds: a shorter delay would fire at once, and spin.
            self._timer = schedule(max(self._wait_time(self._queue[0][0]), 0.001), self._serve)
