"""Live progress bar on stderr, and interim drops below it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from falter.analysis.analyses import PanelSoFar, drops_so_far
from falter.analysis.table import show_scored
from falter.engine.scoring import run_scorers
from falter.engine.sending import Progress
from falter.records import numbers
from falter.records.errors import printable
from falter.records.interfaces import PreparedScorer
from falter.records.planning import Price
from falter.records.types import Estimate, Run
from falter.store.store import Store

LINE_SECONDS = 10.0
BATCH_LINE_SECONDS = 600.0
"""Seconds between the lines of a run that waits for batches, which may take most of a day."""


class _BarsWithLines(Bars):
    """Progress bars with lines of text below."""

    lines: Sequence[str] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        for line in self.lines:
            yield Text(printable(line), style="dim", no_wrap=True, overflow="ellipsis")


class Meter:
    """Display of each model's progress: rate, cost so far, and time left.

    On a terminal it is a live bar with the `lines` below. Elsewhere it prints a plain line every
    few seconds (`every`), for logs. `part` is the number of the running part.
    """

    def __init__(
        self, console: Console, prices: dict[str, Price | None], every: float = LINE_SECONDS
    ) -> None:
        self._console, self._seconds_per_line = console, every
        self._prices = prices
        self.is_live = console.is_terminal
        self.part = 1
        self.lines: Callable[[], Sequence[str]] = tuple
        self._bars = _BarsWithLines(
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[text]}"),
            console=console,
            transient=False,
            auto_refresh=False,
        )
        self._ids: dict[str, TaskID] = {}
        self._last_line_at = time.monotonic()

    def __enter__(self) -> Self:
        if self.is_live:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_live:
            self._bars.stop()

    def __call__(self, lanes: Sequence[Progress]) -> None:
        """Draw the current counts."""
        if not self.is_live:
            self._print_lines(lanes)
            return
        for progress in lanes:
            if progress.label not in self._ids:
                self._ids[progress.label] = self._bars.add_task(
                    escape(progress.label), total=progress.total, text=""
                )
            self._bars.update(
                self._ids[progress.label],
                completed=progress.done,
                text=escape(describe(progress, self._prices.get(progress.label))),
            )
        self._bars.lines = self.lines()
        self._bars.refresh()

    def heading(self, number: int, parts: int, title: str) -> None:
        """Begin a part of several, with new bars."""
        self._ids, self.part = {}, number
        text = escape(f"part {number} of {parts}: {title}")
        if self.is_live:
            self._bars.add_task(text, total=1, completed=1, text="")
        else:
            self._console.print(text, highlight=False)

    def _print_lines(self, lanes: Sequence[Progress]) -> None:
        now = time.monotonic()
        ended = all(progress.done >= progress.total for progress in lanes)
        if now - self._last_line_at < self._seconds_per_line and not ended:
            return
        self._last_line_at = now
        for progress in lanes:
            text = describe(progress, self._prices.get(progress.label))
            self._console.print(f"{escape(progress.label)}  {escape(text)}", highlight=False)


@contextlib.contextmanager
def scoring_progress(console: Console, every: float = LINE_SECONDS) -> Iterator[None]:
    """Show the number of scored responses after one second; in logs every few seconds."""
    status, last = console.status(""), time.monotonic()
    pause = 1.0 if console.is_terminal else every

    def show(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last < pause:
            return
        last, text = time.monotonic(), f"{done:,} of {total:,} replies read"
        if console.is_terminal:
            status.update(text)
            status.start()
        else:
            console.print(text, highlight=False)

    token = show_scored.set(show)
    try:
        yield
    finally:
        show_scored.reset(token)
        status.stop()


def describe(lane: Progress, price: Price | None) -> str:
    """Return one model's progress in words: done of total, rate, cost, time left."""
    elapsed = max(time.monotonic() - lane.started_at, 1e-9)
    answered = lane.landed + lane.failed
    rate = answered / elapsed
    parts = [f"{lane.done:,}/{lane.total:,}"]
    if lane.stored:
        parts.append(f"{lane.stored:,} from the store")
    if lane.elsewhere:
        parts.append(f"{lane.elsewhere:,} of other shards")
    if lane.failed:
        parts.append(f"{lane.failed:,} failed")
    if answered:
        parts.append(f"{rate:,.1f}/s")
    if price is not None:
        spent = (lane.prompt_tokens * price.input + lane.completion_tokens * price.output) / 1e6
        parts.append(f"{spent:,.4f} {price.currency}")
    remaining = lane.total - lane.done
    if lane.paused:
        parts.append(f"paused, because every request fails: {printable(lane.paused)[:200]}")
    elif remaining and answered:
        parts.append(f"{clock(remaining / rate)} left")
    elif not remaining:
        parts.append(f"in {clock(elapsed)}")
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """Return seconds as 4 s, 2:05 or 1:02:05."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    minutes, remainder = divmod(rounded, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{remainder:02d}" if hours else f"{minutes}:{remainder:02d}"


# Interim drops of the run in this process, computed in a thread.


FIRST_UPDATE_SECONDS = 15.0  # seconds before the first update
IDLE_RATIO = (
    20  # pause after an update, in multiples of its duration: updates take about 5 % of the time
)
MAX_RECIPES = 3
MAX_PANELS = 4


class LiveDrops:
    """Thread that computes interim drops, rarely enough not to slow the run.

    `shown` returns the largest drops of each panel at the last update. An error in an update is
    ignored, whatever it is: a preview must not disturb the run.
    """

    def __init__(
        self, path: Path, run: Callable[[], Run | None], *, first: float = FIRST_UPDATE_SECONDS
    ) -> None:
        self._lines: tuple[str, ...] = ()
        self._path, self._run, self._first_update = path, run, first
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._update_drops, daemon=True, name="drops so far")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(timeout=1)

    def shown(self) -> tuple[str, ...]:
        """Return the drops at the last update: one line for each model and task."""
        return self._lines

    def _update_drops(self) -> None:
        wait = self._first_update
        while not self._stop.wait(wait):
            started = time.monotonic()
            with contextlib.suppress(Exception):
                self._lines = self._drop_lines()
            wait = max(self._first_update, IDLE_RATIO * (time.monotonic() - started))

    def _drop_lines(self) -> tuple[str, ...]:
        run = self._run()
        if run is None:
            return ()
        scorers = run_scorers(run)
        if any(isinstance(scorer, PreparedScorer) for scorer in scorers.values()):
            return ()  # they may execute programs, and the run needs the machine
        with Store(self._path, writes=False) as store:
            panels = drops_so_far(store, run, scorers)
        return tuple(filter(None, map(drops_line, panels[:MAX_PANELS])))


def drops_line(panel: PanelSoFar) -> str:
    """Return the largest drops of a panel in one line; empty if no drop is known."""
    ranked = [(label, drop) for label, drop in panel.drops if drop.value is not None]
    ranked.sort(key=lambda pair: -abs(pair[1].value or 0.0))
    if not ranked:
        return ""
    shown = ", ".join(f"{label} {_points(drop)}" for label, drop in ranked[:MAX_RECIPES])
    more = f" and {len(ranked) - MAX_RECIPES} more" if len(ranked) > MAX_RECIPES else ""
    return f"{panel.model} on {panel.task}, drops so far: {shown}{more}"


def _points(drop: Estimate) -> str:
    low, high = (numbers.points(bound) for bound in (drop.low, drop.high))
    return f"{numbers.points(drop.value)} [{low}, {high}]"
