"""The drops so far of a run that this process makes, worked out beside it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from falter.analysis.analyses import PanelSoFar, drops_so_far
from falter.engine.scoring import run_scorers
from falter.records import numbers
from falter.records.errors import FalterError
from falter.records.interfaces import PreparedScorer
from falter.records.types import Estimate, Run
from falter.store.store import Store

FIRST = 15.0  # seconds before the first look
REST = 20  # a look takes at most one part in so many of the time
SHOWN = 3
MOST_PANELS = 4


class LiveDrops:
    """Looks at the answers in a thread of its own, seldom enough not to slow the run.

    `shown` is what it saw last: for each panel the recipes with the largest drops. Whatever goes
    wrong in a look is no trouble of the run's; there is just nothing to show.
    """

    def __init__(self, path: Path, run: Callable[[], Run | None], *, first: float = FIRST) -> None:
        self._lines: tuple[str, ...] = ()
        self._path, self._run, self._first = path, run, first
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True, name="drops so far")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=1)

    def shown(self) -> tuple[str, ...]:
        """What it saw last, a line a panel."""
        return self._lines

    def _look(self) -> None:
        wait = self._first
        while not self._stop.wait(wait):
            began = time.monotonic()
            with contextlib.suppress(FalterError, ValueError):
                self._lines = self._seen()
            wait = max(self._first, REST * (time.monotonic() - began))

    def _seen(self) -> tuple[str, ...]:
        run = self._run()
        if run is None:
            return ()
        scorers = run_scorers(run)
        if any(isinstance(scorer, PreparedScorer) for scorer in scorers.values()):
            return ()  # such as those that run programs: the machine is the run's
        with Store(self._path, writes=False) as store:
            panels = drops_so_far(store, run, scorers)
        return tuple(filter(None, map(drops_line, panels[:MOST_PANELS])))


def drops_line(panel: PanelSoFar) -> str:
    """The largest drops of a panel in one line; empty where none is known."""
    known = [(label, drop) for label, drop in panel.drops if drop.value is not None]
    known.sort(key=lambda pair: -abs(pair[1].value or 0.0))
    if not known:
        return ""
    shown = ", ".join(f"{label} {_points(drop)}" for label, drop in known[:SHOWN])
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"{panel.model} on {panel.task}, drops so far: {shown}{more}"


def _points(drop: Estimate) -> str:
    low, high = (numbers.points(bound) for bound in (drop.low, drop.high))
    return f"{numbers.points(drop.value)} [{low}, {high}]"
