"""Time-outs for many requests at once."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Deadlines"]


class Deadlines:
    """Time-outs for all requests in flight, with one timer.

    All have the same length, so the oldest is due first. A timer for each request, as aiohttp
    would set, costs a tenth of the throughput.
    """

    __slots__ = ("_due", "_loop", "_over", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._due: dict[asyncio.Task[Any], float] = {}
        self._over: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> asyncio.Task[Any]:
        """Begin the running task's time; end it with `stop`."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        due = self._due[task] = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._sweep)
        return task

    def stop(self, task: asyncio.Task[Any]) -> None:
        """End a task's time."""
        self._due.pop(task, None)
        self._over.discard(task)

    def is_over(self, task: asyncio.Task[Any]) -> bool:
        """Whether a task was cancelled because its time was over, and for no other reason."""
        return task in self._over and task.uncancel() == 0

    def close(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        now = self._loop.time()
        self._timer = None
        for task, due in list(self._due.items()):
            if due > now:
                self._timer = self._loop.call_at(due, self._sweep)
                return
            del self._due[task]
            self._over.add(task)
            task.cancel()
