"""Limit the rate of requests: at a time, per minute, tokens per minute, and a shared cool-down."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

BURST_SECONDS = 0.1
"""Seconds' worth of the rate that may leave at once, so that a late timer costs no throughput."""
UNLIMITED = float("inf")


class Handle(Protocol):
    """The handle that cancels a scheduled call."""

    def cancel(self) -> None: ...


class Bucket:
    """A token bucket that keeps any minute within the limit.

    It starts full with a small burst and refills a little slower than the limit, so that burst
    and refill together make no more than the limit in a minute. A cost above the burst is let
    through when the bucket is full, and paid off by those that follow.
    """

    __slots__ = ("_at", "capacity", "level", "rate")

    def __init__(self, per_minute: float, now: float) -> None:
        self.capacity = max(1.0, per_minute / 60 * BURST_SECONDS)
        self.rate = (per_minute - (self.capacity - 1)) / 60
        self.level = self.capacity
        self._at = now

    def wait(self, cost: float, now: float) -> float:
        """Seconds until `cost` may be taken; 0 when it may be taken now."""
        self.level = min(self.capacity, self.level + (now - self._at) * self.rate)
        self._at = now
        lacking = min(cost, self.capacity) - self.level
        return lacking / self.rate if lacking > 1e-9 else 0.0

    def take(self, cost: float) -> None:
        """Take `cost`, into debt if need be; a negative cost gives back."""
        self.level = min(self.capacity, self.level - cost)


class Limiter:
    """Lets requests through in the order they came.

    Without a limit in force, `acquire` returns without ever suspending. With one, the waiting
    requests stand in one line and a single timer serves it. `clock` and `schedule` are there for
    tests; `schedule(seconds, callback)` defaults to the running loop's `call_later`.
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
        if not self._line and self._admit(tokens):
            return
        turn = asyncio.get_running_loop().create_future()
        self._line.append((tokens, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
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
        """Correct the token count once the server has said what a request really took.

        By no more than a minute's worth: what a server counts must not hold back a run for hours.
        """
        if self._tokens is not None:
            self._tokens.take(min(used - estimated, 60 * self._tokens.rate))
            if self._line:
                self._serve()

    def pause(self, seconds: float) -> None:
        """Let nothing through for so long; a shorter pause does not end a longer one."""
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
        """Let through from the head of the line what may go; set the timer for the next."""
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
            self._timer = schedule(max(self._delay(self._line[0][0]), 0.001), self._serve)
