"""Limit the rate of requests: at a time, per minute, tokens per minute, and a shared cool-down."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

# A token that is not taken when the bucket is full is lost for good, so a timer that fires late
# would cost throughput. A tenth of a second is more than a busy event loop is late.
BURST_SECONDS = 0.1
"""Seconds' worth of the rate that may leave at once."""
UNLIMITED = float("inf")


class Handle(Protocol):
    """The handle that cancels a scheduled call."""

    def cancel(self) -> None: ...


class Bucket:
    """A token bucket that keeps any minute within the limit.

    The bucket starts full with a small burst and refills a little slower than the limit, so that
    burst and refill together stay within the limit in every minute. A request that costs more than
    the burst passes when the bucket is full; the requests after it wait until the debt is paid.
    """

    __slots__ = ("_at", "capacity", "level", "rate")

    def __init__(self, per_minute: float, now: float) -> None:
        self.capacity = max(1.0, per_minute / 60 * BURST_SECONDS)
        # In 60 s the burst and the refill add up to `per_minute + 1`; the last of these requests
        # leaves exactly at the end of the minute, which belongs to the next one.
        self.rate = (per_minute - (self.capacity - 1)) / 60
        self.level = self.capacity
        self._at = now

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` may be taken; 0 when it may be taken now."""
        self.level = min(self.capacity, self.level + (now - self._at) * self.rate)
        self._at = now
        lacking = min(cost, self.capacity) - self.level
        # After the wait that was asked for, rounding may leave some 1e-15 of a token lacking.
        return lacking / self.rate if lacking > 1e-9 else 0.0

    def take(self, cost: float) -> None:
        """Take `cost`, into debt if need be; a negative cost gives back."""
        self.level = min(self.capacity, self.level - cost)


class Limiter:
    """Admit requests in the order in which they came.

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
        self._free: float = UNLIMITED if concurrency is None else concurrency
        self._clock = clock
        self._schedule = schedule
        now = clock()
        self._requests = None if requests_per_minute is None else Bucket(requests_per_minute, now)
        self._tokens = None if tokens_per_minute is None else Bucket(tokens_per_minute, now)
        self._paced = self._requests is not None or self._tokens is not None
        self._paused_until = 0.0
        self._line: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._timer: Handle | None = None

    async def acquire(self, tokens: float) -> None:
        """Wait for a place and for `tokens`; every `acquire` that returns needs a `release`."""
        # Nobody overtakes: a small request would otherwise starve a large one at the head.
        if not self._line and self._admit(tokens):
            return
        turn = asyncio.get_running_loop().create_future()
        self._line.append((tokens, turn))
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
        """Give the place to the next in line."""
        self._free += 1
        if self._line:
            self._serve()

    def settle(self, estimated: float, used: float) -> None:
        """Replace a request's estimated token count by the count that the server reports.

        At most a minute's worth is charged, so that an absurd count cannot stall a run for hours.
        """
        if self._tokens is not None:
            self._tokens.take(min(used - estimated, 60 * self._tokens.rate))
            if self._line:
                self._serve()

    def pause(self, seconds: float) -> None:
        """Admit nothing for `seconds`; a shorter pause does not end a longer one."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _admit(self, tokens: float) -> bool:
        if self._free < 1:
            return False
        if (self._paced or self._paused_until) and self._delay(tokens) > 0:
            return False
        self._free -= 1
        if self._requests is not None:
            self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)
        return True

    def _delay(self, tokens: float) -> float:
        """Seconds until pace and cool-down would let this request through."""
        now = self._clock()
        delay = self._paused_until - now
        if delay <= 0:
            delay = self._paused_until = 0.0
        if self._requests is not None:
            delay = max(delay, self._requests.wait(1, now))
        if self._tokens is not None:
            delay = max(delay, self._tokens.wait(tokens, now))
        return delay

    def _serve(self) -> None:
        """Admit requests from the head of the queue while they may go; set a timer for the next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._line:
            tokens, turn = self._line[0]
            if not turn.done():
                if not self._admit(tokens):
                    break
                turn.set_result(None)
            self._line.popleft()
        if self._line and self._free >= 1:
            schedule = self._schedule or asyncio.get_running_loop().call_later
            # uvloop counts whole milliseconds: a shorter delay would fire at once, and spin.
            self._timer = schedule(max(self._delay(self._line[0][0]), 0.001), self._serve)
