"""An event loop whose clock stands still while anything happens, and then jumps to the next timer.

So a time-out of a minute costs a test nothing, and a slow machine brings none about: time passes
only once every socket has been silent for a moment of real time. What is in threads is not seen.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run_in_idle_time"]

T = TypeVar("T")
SILENCE = 0.05
"""Real seconds that a packet may be on its way within this machine."""


class _Jumping(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(timeout if timeout is None else min(timeout, SILENCE))
        if not events and timeout is not None:
            self.now += timeout
        return events


class _IdleLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_in_idle_time(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on such a loop."""
    with asyncio.Runner(loop_factory=_IdleLoop) as runner:
        return runner.run(main)
