"""Running a resolved experiment: preflight, lanes, store; and looking at what a plan would cost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from falter.core.errors import RunStopped
from falter.core.interfaces import Client
from falter.core.records import Request
from falter.experiment._resolve import PanelPlan, Resolved
from falter.plan import Cost, count_cells, estimate_cost, plan
from falter.runner import Lane, Progress, run_lanes
from falter.store import PlannedCell, Store

__all__ = [
    "Watch",
    "carry_out",
    "check_scorers",
    "execute",
    "interruptible",
    "is_answered",
    "opened",
    "planned_cost",
    "run_async",
    "watching",
]

T = TypeVar("T")
Watch = Callable[[Sequence[Progress]], None]
WATCH_EVERY = 0.1
PLAN_COMMIT = 128


def planned_cost(resolved: Resolved, store: Store | None) -> list[tuple[PanelPlan, Cost]]:
    """What each panel would take, given what is stored. Sends nothing, writes nothing."""

    def all_of(keys: Sequence[str]) -> set[str]:
        return set(keys)

    missing = all_of if store is None else store.missing
    run = resolved.run
    return [
        (p, estimate_cost(_requests(p, run.draws, run.repeats), p.target, missing))
        for p in resolved.panels
    ]


def execute(resolved: Resolved, store: Store, watch: Watch | None = None) -> list[Progress]:
    """Run what is missing, to the end. A run whose answers are all stored sends nothing.

    Raises when a rewrite is missing, before anything is sent or stored.
    """
    if resolved.rewrites is not None:
        resolved.rewrites.require()
    if is_answered(resolved, store):
        return []
    return run_async(lambda: _execute(resolved, store, watch))


def is_answered(resolved: Resolved, store: Store) -> bool:
    """Record the run, and say whether all of its answers are stored."""
    if not store.begin_run(resolved.run):
        return False
    planned, answered = store.counts(resolved.run)
    return planned == answered


async def _execute(resolved: Resolved, store: Store, watch: Watch | None) -> list[Progress]:
    check_scorers(resolved)
    async with opened(resolved.clients):
        return await carry_out(resolved, store, watch)


async def carry_out(resolved: Resolved, store: Store, watch: Watch | None) -> list[Progress]:
    """Run what is missing with clients that are open. The run is recorded already."""
    run = resolved.run
    recorder = _Recorder(resolved, store)
    lanes = _lanes(resolved, recorder)
    progress = [lane.progress for lane in lanes]
    stop = asyncio.Event()
    with interruptible(stop), _settled_heap(), recorder:
        async with watching(watch, progress):
            await run_lanes(lanes, store, stop)
    store.finish_plan(run)
    planned, answered = store.counts(run)
    if planned == answered:
        store.finish_run(run)
    if not answered:
        reason = next((p.last_failure for p in progress if p.last_failure), "no answer")
        raise RunStopped(
            f"Every request failed; the last one with: {reason}",
            hint="'falter doctor' checks the endpoint; nothing is reported from this run",
        )
    return progress


def check_scorers(resolved: Resolved) -> None:
    """Let a scorer that needs something, such as a sandbox, say so before anything is sent."""
    for scorer in resolved.scorers.values():
        check = getattr(scorer, "check", None)
        if check is not None:
            check()


@contextlib.asynccontextmanager
async def opened(clients: Sequence[Client]) -> AsyncIterator[None]:
    """Preflight every client before the first request; close all of them in any case."""
    try:
        for client in clients:
            await client.check()
        yield
    finally:
        for client in clients:
            await client.close()


def _lanes(resolved: Resolved, recorder: _Recorder) -> list[Lane]:
    """One lane a model; the panels of a model follow each other."""
    run = resolved.run
    by_model: dict[str, list[PanelPlan]] = {}
    for p in resolved.panels:
        by_model.setdefault(p.panel.model.id, []).append(p)
    lanes = []
    for panels in by_model.values():
        lanes.append(
            Lane(
                requests=itertools.chain.from_iterable(
                    _requests(p, run.draws, run.repeats) for p in panels
                ),
                client=panels[0].client,
                concurrency=panels[0].concurrency,
                progress=Progress(
                    label=panels[0].panel.model.label,
                    total=sum(
                        count_cells(len(p.items), p.conditions, run.draws, run.repeats)
                        for p in panels
                    ),
                ),
                on_planned=recorder,
            )
        )
    return lanes


def _requests(panel: PanelPlan, draws: int, repeats: int) -> Iterator[Request]:
    return plan(panel.items, panel.conditions, panel.target, draws=draws, repeats=repeats)


class _Recorder:
    """Writes the plan to the store as it unfolds, some hundreds of cells a commit.

    A killed run loses the last of them, and nothing by that: the next run plans them again.
    """

    def __init__(self, resolved: Resolved, store: Store) -> None:
        self._run, self._store = resolved.run, store
        self._number = {(p.panel.model.id, p.panel.task): n for n, p in enumerate(resolved.panels)}
        self._sequence = [0] * len(resolved.panels)
        self._cells: list[PlannedCell] = []

    def __call__(self, requests: Sequence[Request]) -> None:
        for request in requests:
            panel = self._number[request.model.id, request.variant.item.task]
            sequence = self._sequence[panel]
            self._cells.append(PlannedCell(panel=panel, sequence=sequence, request=request))
            self._sequence[panel] = sequence + 1
        if len(self._cells) >= PLAN_COMMIT:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()

    def _flush(self) -> None:
        cells, self._cells = self._cells, []
        if cells:
            self._store.put_plan(self._run, cells)


@contextlib.contextmanager
def _settled_heap() -> Iterator[None]:
    """Keep the garbage collector from walking all items over and over while requests fly."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextlib.contextmanager
def interruptible(stop: asyncio.Event) -> Iterator[None]:
    """The first Ctrl-C lets what is in flight land; the second ends at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import signal

    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def interrupt() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except NotImplementedError:  # Windows
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@contextlib.asynccontextmanager
async def watching(watch: Watch | None, progress: Sequence[Progress]) -> AsyncIterator[None]:
    """Show the counts every tenth of a second, and once more at the end."""
    if watch is None:
        yield
        return

    async def tick(watch: Watch) -> None:
        while True:
            watch(progress)
            await asyncio.sleep(WATCH_EVERY)

    ticker = asyncio.create_task(tick(watch))
    try:
        yield
    finally:
        ticker.cancel()
        watch(progress)


def run_async(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a fast loop; inside a running loop, on a thread of its own."""

    def run() -> T:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(main())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
