"""Responses on their way to the store, committed when they are many or old enough."""

from __future__ import annotations

import asyncio

from falter.core.interfaces import ResponseStore
from falter.core.records import Request, Response

__all__ = ["Buffer"]

COUNT = 256
AGE = 0.05


class Buffer:
    """Collects landed responses and commits them inline, in small batches.

    Not in a thread: under load a writer thread starves on the interpreter lock, and whatever it
    holds back is lost if the process is killed. A batch waits at most `AGE` seconds.
    """

    def __init__(self, store: ResponseStore) -> None:
        self._store = store
        self._landed: list[tuple[Request, Response]] = []
        self._failed: list[Response] = []
        self._keys: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.error: BaseException | None = None

    def add(self, request: Request, response: Response) -> None:
        """Add one response; failures are stored apart, so that a later run asks again."""
        if response.failure is None:
            self._landed.append((request, response))
            self._keys.add(request.key)
        else:
            self._failed.append(response)
        if len(self._landed) + len(self._failed) >= COUNT:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(AGE, self._flush_by_age)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def flush(self) -> None:
        """Commit everything that is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        landed, self._landed = self._landed, []
        failed, self._failed = self._failed, []
        self._keys.clear()
        if landed:
            self._store.put_responses(landed)
        if failed:
            self._store.put_failures(failed)

    def _flush_by_age(self) -> None:
        self._timer = None
        try:
            self.flush()
        except BaseException as error:  # raised to the run by its next worker
            self.error = error
