"""Notice that a server has died, pause its queue, and try it again at growing intervals."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from falter.records.errors import RunStopped
from falter.records.interfaces import Client

POLL_SECONDS = 0.1
OUTAGE_SECONDS = 30.0
OUTAGE_ATTEMPTS = 20
FIRST_PROBE_SECONDS = 2.0
MAX_PAUSE_SECONDS = 120.0
"""A server is dead when all of at least so many attempts in so many seconds failed alike. It is
tried again after 2, 4, 8, … seconds, for two minutes, and given up within three."""


class Pausable(Protocol):
    """The counts of a queue that a breaker reads and pauses."""

    label: str
    total: int
    stored: int
    landed: int
    paused: str | None


class Breaker:
    """Judge a server by the attempts of its client's transport.

    A server that answers at all, be it with a refusal, is alive. So may be one that turns requests
    away while it still works on those that it took before. A client without a transport
    says nothing of its attempts, and is never paused. `workers` counts those that go on. `in_vain`
    is called when a pause begins: what has failed since the last answer is to be sent again.
    """

    def __init__(
        self, client: Client, progress: Pausable, workers: int, in_vain: Callable[[], None]
    ) -> None:
        self.workers = workers
        self._progress, self._in_vain = progress, in_vain
        self._alive = _now()
        self._failed: deque[tuple[float, str]] = deque()
        self._began = _now()
        self._transport = getattr(client, "transport", None)
        if self._transport is not None:
            self._transport.on_attempt = self._attempted

    def opens(self, *, at_the_end: bool = False) -> bool:
        """Pause if enough attempts have failed alike; at the end of a plan without more delay."""
        kinds = {trouble.partition(":")[0] for _, trouble in self._failed}
        enough = len(self._failed) >= OUTAGE_ATTEMPTS and not self._is_at_work()
        alike = enough and len(kinds) == 1
        if alike and (at_the_end or _now() - self._alive >= OUTAGE_SECONDS):
            self._progress.paused = self._failed[-1][1]
            self._in_vain()
        return self._progress.paused is not None

    async def watch(
        self, try_one: Callable[[float], Awaitable[None]], stopped: Callable[[], bool]
    ) -> None:
        """While the server is dead, try one request at growing intervals, within so many seconds.

        RunStopped: it has not answered for two minutes.
        """
        progress = self._progress
        while self.workers and not stopped():
            if not self.opens():
                await asyncio.sleep(POLL_SECONDS)
                continue
            end, interval = _now() + MAX_PAUSE_SECONDS, FIRST_PROBE_SECONDS
            due = _now() + interval
            while progress.paused and not stopped():
                if _now() >= end:
                    raise RunStopped(
                        f"{progress.label}: the server has died: {progress.paused}; "
                        f"{progress.stored + progress.landed:,} of {progress.total:,} cells are "
                        "answered",
                        hint="'falter doctor' checks the server; run the same command again to "
                        "resume",
                    )
                if _now() < due:
                    await asyncio.sleep(POLL_SECONDS)
                    continue
                await try_one(end - _now())
                interval *= 2
                due = min(_now() + interval, end)

    def _is_at_work(self) -> bool:
        """Return True if the server has not let go of what it took before the first failure."""
        since = None if self._transport is None else self._transport.waits_since
        return since is not None and since < self._began

    def _attempted(self, trouble: str | None) -> None:
        now = _now()
        if not self._failed:
            self._began = now
        if trouble is None:
            self._alive = now
            self._failed.clear()
            self._progress.paused = None
            return
        self._failed.append((now, trouble))
        while self._failed[0][0] < now - OUTAGE_SECONDS:
            self._failed.popleft()


def _now() -> float:
    return asyncio.get_running_loop().time()
