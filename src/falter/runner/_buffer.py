"""Responses on their way to the store, committed when they are many or old enough."""

from __future__ import annotations

import asyncio

from falter.core.errors import RunStopped, StoreBusy
from falter.core.interfaces import ResponseStore, SharedStore
from falter.core.records import Request, Response

__all__ = ["Buffer"]

COUNT = 256
AGE = 0.05
AGAIN = 0.25
PATIENCE = 30.0


class Buffer:
    """Collects landed responses and commits them inline, in small batches.

    Not in a thread: under load a writer thread starves on the interpreter lock, and whatever it
    holds back is lost if the process is killed. A batch waits at most `AGE` seconds; while the
    store is locked or its disk is full, nothing is dropped and a commit is tried again.
    """

    def __init__(self, store: ResponseStore) -> None:
        self._store = store
        self._landed: list[tuple[Request, Response]] = []
        self._failed: list[Response] = []
        self._keys: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._busy_since: float | None = None
        self.error: BaseException | None = None

    def add(self, request: Request, response: Response) -> None:
        """Add one response; failures are stored apart, so that a later run asks again."""
        if response.failure is None:
            self._landed.append((request, response))
            self._keys.add(request.key)
        else:
            self._failed.append(response)
        if len(self._landed) + len(self._failed) >= COUNT and self._busy_since is None:
            self._try()
        elif self._timer is None:
            self._timer = self._loop.call_later(AGE, self._try)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def flush(self) -> None:
        """Commit everything that is waiting; what cannot be committed goes on waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._landed:
            self._store.put_responses(self._landed)
            self._release([request.key for request, _ in self._landed])
            self._landed = []
            self._keys.clear()
        if self._failed:
            self._store.put_failures(self._failed)
            self._release([response.key for response in self._failed])
            self._failed = []

    async def ready(self) -> bool:
        """Wait while the store takes nothing; False if that goes on for too long."""
        while self._busy_since is not None and self.error is None:
            if self._loop.time() - self._busy_since > PATIENCE:
                return False
            await asyncio.sleep(AGAIN)
        return True

    async def settle(self) -> None:
        """Commit the rest, with patience, or raise and say what is lost."""
        since = self._loop.time() if self._busy_since is None else self._busy_since
        while True:
            try:
                self.flush()
                self._busy_since = None
                return
            except StoreBusy as error:
                if self._loop.time() - since > PATIENCE:
                    waiting = len(self._landed)
                    lost = f"; {waiting:,} answers that had arrived are lost" if waiting else ""
                    raise RunStopped(f"{error.message}{lost}", hint=error.hint) from error
            await asyncio.sleep(AGAIN)

    def _release(self, keys: list[str]) -> None:
        if isinstance(self._store, SharedStore):
            self._store.release(keys)

    def _try(self) -> None:
        self._timer = None
        try:
            self.flush()
            self._busy_since = None
        except StoreBusy:
            if self._busy_since is None:
                self._busy_since = self._loop.time()
            self._timer = self._loop.call_later(AGAIN, self._try)
        except BaseException as error:  # raised to the run by its next worker
            self.error = error
