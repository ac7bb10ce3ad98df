"""Run a resolved experiment: check clients, send queues, store responses; estimate costs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import statistics
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, islice, pairwise
from typing import Any, Self, TypeVar

from falter.engine.batch_sending import run_batches
from falter.engine.resolving import PanelPlan, Resolved
from falter.engine.sending import ModelQueue, Progress, run_queues
from falter.records.errors import (
    EndpointError,
    PreflightError,
    RunStopped,
    StoreBusy,
    StoreError,
    printable,
    refusal,
)
from falter.records.interfaces import Case, Client
from falter.records.planning import Cost, Shard, batched, estimate_cost
from falter.records.types import CUT, Request, Response, Run
from falter.scorers.base import safe_score
from falter.scorers.constrained import constrained_answer
from falter.store.batches import Batches
from falter.store.store import PlannedCell, Store
from falter.tasks.task import pick

# Python's default is 700 or 2,000, by version. A plan creates several objects for each request,
# none of them in a reference cycle. So a pass finds nothing and costs a walk over all items.
GC_THRESHOLD = 50_000
"""Number of new objects after which the garbage collector starts its next pass."""


@contextlib.contextmanager
def reduced_gc() -> Iterator[None]:
    """Reduce garbage-collector passes while many objects without reference cycles are created."""
    usual_thresholds = gc.get_threshold()
    # Existing objects, such as modules and items, are left out of the remaining passes.
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *usual_thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual_thresholds)
        gc.unfreeze()


T = TypeVar("T")
Watch = Callable[[Sequence[Progress]], None]
"""Function that displays the counts of all queues."""
OnPlanned = Callable[[Sequence[Request]], None]
"""Function that receives each chunk of a plan before its requests are sent."""
WATCH_EVERY = 0.1
"""Seconds between two updates of a display."""
PLAN_COMMIT = 512
"""Number of planned cells in one transaction."""
SAMPLED_CELLS = 5_000
"""Number of cells up to which a plan counts each; 5,000 prompts take about two seconds."""
SAMPLED_ITEMS, SAMPLED_PARTS = 200, 10
"""Number of items counted above `SAMPLED_CELLS` cells, and the number of parts they form.

The token counts of the parts give the error of the estimate.
"""
SAMPLE_SEED_OFFSET = 2
"""Number added to the seed, so that the sample is independent of the items that a limit draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelCost:
    """The missing requests of a panel and their cost, counted or estimated from some items.

    `items` is the number of items counted. `error` is the relative 95 % error of the tokens.
    """

    panel: PanelPlan
    cost: Cost
    items: int
    error: float = 0.0


def planned_cost(resolved: Resolved, store: Store | None, *, exact: bool = True) -> list[PanelCost]:
    """Return the cost of the missing requests for each panel. Sends nothing, writes nothing.

    Requests that panels share, such as two scorers' responses, count for the first panel. Unless
    `exact`, only `SAMPLED_ITEMS` items of a large panel are counted. Without a store, all requests
    are missing.
    """

    def all_of(keys: Sequence[str]) -> set[str]:
        return set(keys)

    missing = all_of if store is None else store.missing
    counted: set[bytes] = set()
    costs: list[PanelCost] = []
    for p in resolved.panels:
        alike = [c for c in costs if c.panel.conditions is p.conditions
                 and c.panel.target == p.target and c.panel.asked is p.asked is None]  # fmt: skip
        if alike:  # every request was counted, so none needs to be made again
            nothing = replace(alike[0].cost.times(0), cells=alike[0].cost.cells)
            costs.append(PanelCost(panel=p, cost=nothing, items=alike[0].items))
        else:
            costs.append(_panel_cost(p, resolved.run, missing, counted, exact))
    return costs


def _panel_cost(
    p: PanelPlan,
    run: Run,
    missing: Callable[[Sequence[str]], set[str]],
    counted: set[bytes],
    exact: bool,
) -> PanelCost:
    """Return the cost of one panel; `counted` has the requests of earlier panels and grows."""
    cells = p.cells(run.draws, run.repeats)
    items = p.items
    if not exact and cells > SAMPLED_CELLS:
        items = pick(items, SAMPLED_ITEMS, run.seed + SAMPLE_SEED_OFFSET)
    ends = [0, len(items)]
    if not exact and len(items) >= SAMPLED_ITEMS:
        ends = [n * len(items) // SAMPLED_PARTS for n in range(SAMPLED_PARTS + 1)]
    parts = [
        estimate_cost(
            replace(p, items=items[first:end]).requests(run.draws, run.repeats),
            p.target, missing, counted,
        )
        for first, end in pairwise(ends)
    ]  # fmt: skip
    seen = reduce(Cost.plus, parts)
    tokens = [part.prompt_tokens for part in parts]
    # The standard error of a sum of ten independent parts, from their standard deviation.
    spread = statistics.stdev(tokens) * len(parts) ** 0.5 if len(parts) > 1 else 0.0
    error = 1.96 * spread / max(1, sum(tokens))
    cost = seen if seen.cells == cells else replace(seen.times(cells / seen.cells), cells=cells)
    return PanelCost(panel=p, cost=cost, items=len(items), error=error)


def record_run(resolved: Resolved, store: Store, command: str = "") -> bool:
    """Record the run with the command that started it; return True if all responses are stored."""
    run = resolved.run
    cells = sum(p.cells(run.draws, run.repeats) for p in resolved.panels)
    made_by = {"command": command} if command else {}
    origin = {**run.origin, **made_by, "cells": str(cells)}
    if not store.begin_run(replace(run, origin=origin)):
        return False
    planned, answered = store.counts(resolved.run)
    if planned == answered:
        store.finish_run(resolved.run)  # again, so that this run is shown as the newest
    return planned == answered


async def run_missing(
    resolved: Resolved, store: Store, watch: Watch | None, shard: Shard | None = None
) -> list[Progress]:
    """Send the missing requests of a recorded run, or of a shard, with clients that are open."""
    return await run_missing_together([resolved], store, watch, shard)


async def run_missing_together(
    runs: Sequence[Resolved], store: Store, watch: Watch | None, shard: Shard | None = None
) -> list[Progress]:
    """Send the missing requests of several runs at once, so that their requests alternate.

    Raises `RunStopped` if a run has no response in the end.
    """
    recorders = [_Recorder(resolved.run, store) for resolved in runs]
    queues = [
        queue
        for resolved, recorder in zip(runs, recorders, strict=True)
        for queue in _queues(resolved, recorder, shard)
    ]
    progress = [queue.progress for queue in queues]
    stop, batch = asyncio.Event(), any(resolved.experiment.batch for resolved in runs)
    with interruptible(stop), reduced_gc(), _stopped_by_the_store(progress):
        with contextlib.ExitStack() as stack:
            for recorder in recorders:
                stack.enter_context(recorder)
            async with watching(watch, progress):
                for queue in queues:
                    await _probe(queue, store)
                await send(queues, store, stop, batch=batch)
        counted = [_mark_finished(resolved.run, store) for resolved in runs]
        store.check_place()
    if not all(counted) and (shard is None or any(p.failed for p in progress)):
        reason = next((p.last_failure for p in progress if p.last_failure), "no answer")
        raise refusal(RunStopped, "engine.all_failed", reason=reason)
    return progress


async def send(
    queues: Sequence[ModelQueue], store: Store, stop: asyncio.Event, *, batch: bool
) -> None:
    """Send the missing requests, in batches or singly, and store the responses.

    Singly, raises `PreflightError` if an open batch holds any of the requests.
    """
    book = Batches(store)
    if batch:
        await run_batches(queues, store, book, stop, _print_message)
    else:
        _require_read_batches(queues, book)
        await run_queues(queues, store, stop)


def _require_read_batches(queues: Sequence[ModelQueue], batch_log: Batches) -> None:
    """Raise if an open batch holds requests that would now be sent, and paid for, again."""
    if not batch_log.any_open():
        return
    held: set[str] = set()
    for queue in queues:
        for stretch in batched(queue.requests, PLAN_COMMIT):
            held |= batch_log.held({request.key for request in stretch})
    if held:
        raise refusal(PreflightError, "engine.unread_batches", count=len(held))


def _print_message(text: str) -> None:
    """Print a message on standard error."""
    print(printable(text), file=sys.stderr)


def recorded_plan(resolved: Resolved, store: Store) -> Iterator[tuple[Client, list[Request]]]:
    """Yield a run's requests in chunks, each recorded in the store's plan before it is yielded."""
    run = resolved.run
    with _Recorder(run, store) as recorder:
        for place, p in enumerate(resolved.panels):
            count = p.cells(run.draws, run.repeats)
            record = recorder.of([place], [count])
            for stretch in batched(p.requests(run.draws, run.repeats), PLAN_COMMIT):
                record(stretch)
                yield p.client, stretch
    store.finish_plan(run)


def _mark_finished(run: Run, store: Store) -> int:
    """Mark the plan as complete, and the run if all cells are answered; return how many are."""
    store.finish_plan(run)
    planned, answered = store.counts(run)
    if planned == answered:
        store.finish_run(run)
    return answered


def check_scorers(resolved: Resolved) -> None:
    """Raise if a scorer lacks something it needs, such as a sandbox, before anything is sent."""
    for scorer in resolved.scorers.values():
        scorer.check()


@contextlib.asynccontextmanager
async def opened(clients: Sequence[Client]) -> AsyncIterator[None]:
    """Check every client before the first request; close all of them in any case."""
    try:
        for client in clients:
            await client.check()
        yield
    finally:
        for client in clients:
            await client.close()


def _queues(resolved: Resolved, recorder: _Recorder, shard: Shard | None) -> list[ModelQueue]:
    """Return one request queue for each model; the panels of a model follow each other."""
    run = resolved.run
    by_model: dict[str, list[int]] = {}
    for place, p in enumerate(resolved.panels):
        by_model.setdefault(p.panel.model.id, []).append(place)
    queues = []
    for places in by_model.values():
        panels = [resolved.panels[place] for place in places]
        counts = [p.cells(run.draws, run.repeats) for p in panels]
        queues.append(
            ModelQueue(
                requests=_Planned(panels, run),
                client=panels[0].client,
                concurrency=panels[0].concurrency,
                progress=Progress(label=panels[0].panel.model.label, total=sum(counts)),
                on_planned=recorder.of(places, counts),
                is_cut=_truncation_test(resolved, panels),
                share=shard,
            )
        )
    return queues


async def _probe(queue: ModelQueue, store: Store) -> None:
    """Test the abilities of a queue's server before its panels are paid for."""
    planned, share = queue.requests, queue.share
    if queue.client.model.base_url is None or not isinstance(planned, _Planned):
        return
    for panel in planned.panels:
        requests = (r for r in panel if share is None or r.key in share)
        await probe(requests, queue.client, store, queue.progress)


def _truncation_test(resolved: Resolved, panels: Sequence[PanelPlan]) -> Callable[..., bool]:
    """Return a test for truncated responses in which no scorer finds a complete answer."""

    def is_cut(request: Request, response: Response) -> bool:
        if response.failure is not None or response.finish_reason not in CUT:
            return False
        case = Case(variant=request.variant, response=response)
        task = request.variant.item.task
        scorers = [resolved.scorers[p.panel.scorer] for p in panels if p.panel.task == task]
        return all(safe_score(scorer, case).outcome == "truncated" for scorer in scorers)

    return is_cut


class _Planned(Iterable[Request]):
    """The requests of some panels, planned anew on every iteration."""

    def __init__(self, panels: Sequence[PanelPlan], run: Run) -> None:
        self._panels, self._run = panels, run

    @property
    def panels(self) -> Iterator[Iterator[Request]]:
        """The requests of each panel."""
        return (panel.requests(self._run.draws, self._run.repeats) for panel in self._panels)

    def __iter__(self) -> Iterator[Request]:
        return chain.from_iterable(self.panels)


class _Recorder:
    """Records a plan in the store as it unfolds, some hundreds of cells at a time.

    A killed run loses its last chunk, which does no harm: the next run plans these cells again.
    """

    def __init__(self, run: Run, store: Store) -> None:
        self._run, self._store = run, store
        self._cells: list[PlannedCell] = []

    def of(self, panels: Sequence[int], counts: Sequence[int]) -> OnPlanned:
        """Return a function that records a queue's requests: `counts` cells for each of `panels`.

        Two panels that differ only in their scorer have identical requests. So only the order tells
        the panel of a request.
        """
        cells = (
            (panel, sequence)
            for panel, count in zip(panels, counts, strict=True)
            for sequence in range(count)
        )

        def record(requests: Sequence[Request]) -> None:
            for request in requests:
                panel, sequence = next(cells)
                self._cells.append(PlannedCell(panel=panel, sequence=sequence, request=request))
            if len(self._cells) >= PLAN_COMMIT:
                with contextlib.suppress(StoreBusy):  # later, with the cells that follow
                    self._flush()

        return record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._flush()
        except StoreError:
            if error is None:  # another error already explains why the run ends
                raise

    def _flush(self) -> None:
        """Write the collected cells to the store."""
        if self._cells:
            self._store.put_plan(self._run, self._cells)
            self._cells = []


@contextlib.contextmanager
def _stopped_by_the_store(progress: Sequence[Progress]) -> Iterator[None]:
    """Turn an error of the store into `RunStopped` if anything was sent: the run is incomplete."""
    try:
        yield
    except StoreError as error:
        if not any(p.sent for p in progress):
            raise
        raise RunStopped(f"The run was stopped. {error.message}", hint=error.hint) from error


# Seconds. Containers are killed ten seconds after SIGTERM, so a longer wait would store less.
TERMINATION_SECONDS = 5.0


@contextlib.contextmanager
def interruptible(stop: asyncio.Event) -> Iterator[None]:
    """Let requests in flight land after the first Ctrl-C or SIGTERM; cancel on the second.

    After SIGTERM the requests have `TERMINATION_SECONDS` to land.
    """
    # Python permits signal handlers only in the main thread; in a notebook a run has another one.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import signal

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    ended: list[asyncio.TimerHandle] = []

    def interrupt(seconds: float | None) -> None:
        if stop.is_set():
            task.cancel()
        elif seconds is not None:
            ended.append(loop.call_later(seconds, task.cancel))
        stop.set()

    ends = {signal.SIGINT: None, signal.SIGTERM: TERMINATION_SECONDS}
    try:
        for number, seconds in ends.items():
            loop.add_signal_handler(number, interrupt, seconds)
    except NotImplementedError:  # Windows
        yield
        return
    try:
        yield
    finally:
        for number in ends:
            loop.remove_signal_handler(number)
        for timer in ended:
            timer.cancel()


@contextlib.asynccontextmanager
async def watching(watch: Watch | None, progress: Sequence[Progress]) -> AsyncIterator[None]:
    """Display the counts every tenth of a second, and once more at the end."""
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
    """Run a coroutine on a fast event loop; inside a running loop, use a separate thread."""

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
    """Return uvloop's factory of event loops, or None if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


# A panel's first request is sent alone if the server must return more than text


PROBE_ITEMS = 3
"""Number of items in a probe: a single prompt may be too long or filtered, three are evidence."""


async def probe(
    requests: Iterable[Request], client: Client, store: Store, progress: Progress
) -> None:
    """Request one item of a panel from a server, and store the response for the run.

    Raises `PreflightError` if the server gives none of three items log-probabilities of given
    texts, or constrained answers, as the panel needs. Text-only panels are not probed.
    """
    misfits: list[str] = []
    for request in islice(_first_of_each_item(requests), PROBE_ITEMS):
        if not store.claim(store.missing([request.key])):
            return
        try:
            if request.scores:
                (response,) = await client.score_many([request])
            else:
                response = await client.generate(request)
            misfit = _misfit_reason(request, response)
            if misfit is None:
                store.put_responses([(request, response)])
        except EndpointError as error:
            reason = f"gives no log-probabilities of given answers: {error.message}"
            raise _unfit_server_error(client, request, reason) from error
        finally:
            store.release([request.key])
        progress.sent += 1
        progress.prompt_tokens += response.usage.prompt_tokens
        progress.completion_tokens += response.usage.completion_tokens
        if misfit is None:
            return
        misfits.append(misfit)
    if misfits:
        raise _unfit_server_error(client, request, misfits[0])


def _unfit_server_error(client: Client, request: Request, reason: str) -> PreflightError:
    """Return the error for a server that cannot serve a panel."""
    other = "" if request.scores else ", or another constraint with --option hold_by=…"
    return PreflightError(
        f"{client.model.base_url} {reason}",
        hint=f"use a scorer that reads written replies, such as choice_letter or label{other}",
    )


def _first_of_each_item(requests: Iterable[Request]) -> Iterator[Request]:
    """Yield the first request of each item; nothing if the requests are for text only."""
    seen = set()
    for request in requests:
        if not request.scores and request.answers is None:
            return
        key = request.variant.item.key
        if key not in seen:
            seen.add(key)
            yield request


def _misfit_reason(request: Request, response: Response) -> str | None:
    """Return the reason to refuse the server; None if it fits or if the reply is inconclusive."""
    if response.failure is not None:
        wanted = "log-probabilities" if request.scores else "constrained answers"
        return f"failed at the first request for {wanted}: {response.failure}"
    if request.scores:
        return None
    text, options, ended = response.text or "", request.answers, response.finish_reason
    answer = constrained_answer(text)
    held = answer in options if options else isinstance(answer, (int, float))
    # A reply that was truncated inside its JSON ("{", "```json") or while the model was still
    # thinking ("") does not tell whether the server constrains.
    cut = ended == "length" and text.lstrip()[:1] in ("", "{", "`")
    if held or cut or ended not in (None, "stop", "length"):
        return None
    return f"does not constrain the model to the given answers: it returned {text[:80]!r}"
