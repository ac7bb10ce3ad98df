"""Windowed running: a few workers a model fetch what is missing and store it as it arrives."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from falter.core.errors import AuthenticationError, RunStopped
from falter.core.interfaces import ChunkClient, Client, ResponseStore, SharedStore
from falter.core.records import Request, Response
from falter.planning import batched
from falter.runner._buffer import Buffer

__all__ = ["Lane", "Progress", "run_lanes"]

LOOK_AHEAD = 64
SORTED_AHEAD = 512
HOPELESS = 25
HOPELESS_ITEMS = 5
MOST_HELD = 1024
HELD_AGAIN = 0.1


@dataclass(slots=True, kw_only=True)
class Progress:
    """Counts of one lane, updated in place; a display may read them at any time."""

    label: str
    total: int
    planned: int = 0
    stored: int = 0
    sent: int = 0
    landed: int = 0
    failed: int = 0
    elsewhere: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    started_at: float = field(default_factory=time.monotonic)
    last_failure: str | None = None

    @property
    def done(self) -> int:
        """Cells of the plan that need nothing more, failed ones included."""
        return self.stored + self.landed + self.failed + self.elsewhere


@dataclass(slots=True, kw_only=True)
class Lane:
    """One model's share of a run: its requests in plan order, its client, its concurrency.

    `on_planned` sees each stretch of the plan once, before any of it is sent. `is_cut` says whether
    an answer reached the limit of tokens before there was anything to score. What is not in the
    `share` of this process is planned and not sent.
    """

    requests: Iterable[Request]
    client: Client
    concurrency: int
    progress: Progress
    on_planned: Callable[[Sequence[Request]], None] | None = None
    is_cut: Callable[[Request, Response], bool] = lambda _, response: response.ran_out
    share: Container[str] | None = None


async def run_lanes(
    lanes: Sequence[Lane], store: ResponseStore, stop: asyncio.Event | None = None
) -> None:
    """Send what the store lacks, in all lanes at once, and store every response as it arrives.

    Raises `AuthenticationError` at once when an endpoint refuses the credentials, `RunStopped`
    when an endpoint only ever fails, when the first answers were all cut off at the limit of
    tokens, when `stop` is set, or when the store takes nothing for too long. Responses that arrived
    are stored in any case where that is possible. What another process is sending for the same
    store is waited for, not sent again.
    """
    stop = stop or asyncio.Event()
    buffer = Buffer(store)
    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                capabilities, width = lane.client.capabilities, _width(lane)
                feed = _Feed(lane, store, buffer, width if capabilities.keeps_prefixes else 0)
                for worker in range(width):
                    group.create_task(_work(feed, worker, buffer, stop))
    except BaseExceptionGroup as group_error:
        raise _main_error(group_error) from group_error
    finally:
        await buffer.settle()
    if stop.is_set():
        done = sum(lane.progress.stored + lane.progress.landed for lane in lanes)
        total = sum(lane.progress.total for lane in lanes)
        raise RunStopped(
            f"The run was interrupted: {done:,} of {total:,} cells are answered",
            hint="run the same command again to resume",
        )


def _width(lane: Lane) -> int:
    """How many workers a lane has; the user's concurrency is that within an engine."""
    lanes = lane.client.capabilities.lanes
    if isinstance(lane.client, ChunkClient):
        return lanes or 1
    return max(1, min(lane.concurrency, lanes or 1_000_000))


def _main_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that matters most: refused credentials come before their consequences."""
    flat: list[BaseException] = []
    for error in group.exceptions:
        flat.append(_main_error(error) if isinstance(error, BaseExceptionGroup) else error)
    return next((e for e in flat if isinstance(e, AuthenticationError)), flat[0])


class _Feed:
    """The requests that one lane still has to send.

    The plan is read a stretch at a time and looked up in the store, so a plan of a million
    requests is never in memory. A request that is in flight or on its way to the store is not
    sent again; once it is stored, the look-up finds it.

    What is missing of a stretch is sent in plan order, by whichever worker is free. With `piles`,
    the stretch is longer, sorted by its text and cut into so many piles, one a worker: each of the
    client's engines then meets prompts that begin alike one after the other, those of different
    items with the same examples too, and reads the shared beginning once.
    """

    def __init__(self, lane: Lane, store: ResponseStore, buffer: Buffer, piles: int = 0) -> None:
        self.lane = lane
        self._ahead = SORTED_AHEAD if piles else LOOK_AHEAD
        self._piles: list[deque[Request]] = [deque() for _ in range(piles or 1)]
        self.progress = lane.progress
        self._store = store
        self._buffer = buffer
        self._in_flight: set[str] = set()
        self._waiting: dict[str, int] = {}
        self._failed: set[str] = set()
        self._failed_items: set[str] = set()
        self._cut_items: set[str] = set()
        self._cut, self._some_whole = 0, False
        self._held: dict[str, list[Request]] = {}
        self._missing = self._stream()
        self.ended = False

    def take(self, limit: int, worker: int = 0) -> list[Request]:
        """Up to `limit` requests to send next; an empty list if there are none just now."""
        requests: list[Request] = []
        while len(requests) < limit and not self.ended:
            request = self._next(worker)
            if request is not None:
                requests.append(request)
                continue
            missing = next(self._missing, None)
            self.ended = missing is None
            if not missing:
                break
            self._pile_up(missing)
        self.progress.sent += len(requests)
        return requests

    def _next(self, worker: int) -> Request | None:
        """From the worker's own pile; else the last of the highest one."""
        pile = self._piles[worker % len(self._piles)]
        if pile:
            return pile.popleft()
        highest = max(self._piles, key=len)
        return highest.pop() if highest else None

    def _pile_up(self, missing: list[Request]) -> None:
        if self._ahead == SORTED_AHEAD:
            missing.sort(key=_text)
        height = -(-len(missing) // len(self._piles))
        for pile, first in zip(self._piles, range(0, len(missing), height), strict=False):
            pile.extend(missing[first : first + height])

    def landed(self, request: Request, response: Response) -> None:
        """Count one response, also for the other cells that wait for the same request."""
        self._in_flight.discard(request.key)
        cells = 1 + self._waiting.pop(request.key, 0)
        progress = self.progress
        if response.failure is None:
            progress.landed += cells
            progress.prompt_tokens += response.usage.prompt_tokens
            progress.completion_tokens += response.usage.completion_tokens
            self._stop_if_cut(request, response)
        else:
            progress.failed += cells
            progress.last_failure = response.failure
            self._failed.add(request.key)
            self._failed_items.add(request.variant.item.key)
            self._stop_if_hopeless()

    def _stop_if_hopeless(self) -> None:
        """Give up if every response is a failure, over several items: one may just be too long."""
        progress = self.progress
        few = progress.failed < HOPELESS or len(self._failed_items) < HOPELESS_ITEMS
        if progress.landed == 0 and not few:
            raise RunStopped(
                f"{progress.label}: the first {progress.failed} requests all failed; "
                f"the last error was: {progress.last_failure}",
                hint="check the endpoint with 'falter doctor'; this run has nothing to report",
            )

    def _stop_if_cut(self, request: Request, response: Response) -> None:
        """Give up if every answer ends at the limit, over several items: more would not help."""
        if self._some_whole:
            return
        if not self.lane.is_cut(request, response):
            self._some_whole = True
            return
        self._cut += 1
        self._cut_items.add(request.variant.item.key)
        if self._cut >= HOPELESS and len(self._cut_items) >= HOPELESS_ITEMS:
            limit = request.sampling.max_tokens
            raise RunStopped(
                f"{self.progress.label}: the first {self._cut} answers all reached the limit of "
                f"{limit:,} tokens before an answer",
                hint=f"raise max_tokens (--max-tokens {max(4096, 4 * limit)}); "
                "this run has nothing to report",
            )

    def _stream(self) -> Iterator[list[Request]]:
        """What is to be sent; nothing while all the rest is in the hands of another process."""
        lane, progress = self.lane, self.progress
        for stretch in batched(lane.requests, self._ahead):
            progress.planned += len(stretch)
            if lane.on_planned is not None:
                lane.on_planned(stretch)
            if missing := list(self._unanswered(self._share_of(stretch))):
                yield missing
            if len(self._held) > MOST_HELD and (missing := list(self._again())):
                yield missing
        while self._held:
            missing = list(self._again())
            if missing or self._held:
                yield missing

    def _share_of(self, stretch: Sequence[Request]) -> Sequence[Request]:
        share = self.lane.share
        if share is None:
            return stretch
        ours = [request for request in stretch if request.key in share]
        self.progress.elsewhere += len(stretch) - len(ours)
        return ours

    def _again(self) -> Iterator[Request]:
        """What another process held before: answered by now, still held, or ours to send."""
        held, self._held = self._held, {}
        for stretch in batched((r for same in held.values() for r in same), self._ahead):
            yield from self._unanswered(stretch)

    def _unanswered(self, stretch: Sequence[Request]) -> Iterator[Request]:
        progress = self.progress
        known = (self._in_flight, self._buffer, self._failed)
        fresh = {r.key for r in stretch if not any(r.key in keys for keys in known)}
        missing = self._store.missing(list(fresh))
        store = self._store
        ours = store.claim(missing) if isinstance(store, SharedStore) else set(missing)
        for request in stretch:
            key = request.key
            if key in self._in_flight:
                self._waiting[key] = self._waiting.get(key, 0) + 1
            elif key in self._buffer:
                progress.landed += 1
            elif key in self._failed:
                progress.failed += 1
            elif key in ours:
                self._in_flight.add(key)
                ours.discard(key)
                missing.discard(key)
                yield request
            elif key in missing:
                self._held.setdefault(key, []).append(request)
            else:
                progress.stored += 1


def _text(request: Request) -> tuple[str, ...]:
    """What a model reads, for sorting: prompts that begin alike stand together."""
    if request.messages:
        return tuple(content for _, content in request.messages)
    return (request.context,)


async def _work(feed: _Feed, worker: int, buffer: Buffer, stop: asyncio.Event) -> None:
    client = feed.lane.client
    chunks = client if isinstance(client, ChunkClient) else None
    while not stop.is_set():
        ready = await buffer.ready()
        if buffer.error is not None:
            raise buffer.error
        if not ready:
            return  # what is in flight may still land
        requests = feed.take(chunks.chunk if chunks else client.capabilities.batch, worker)
        if not requests and feed.ended:
            return
        if not requests:
            await asyncio.sleep(HELD_AGAIN)
            continue
        answers: Sequence[Response]
        if chunks:
            answers = await chunks.answer_many(requests)
        elif requests[0].scores:
            answers = await client.score_many(requests)
        else:
            answers = [await client.generate(request) for request in requests]
        for request, response in zip(requests, answers, strict=True):
            buffer.add(request, response)
            feed.landed(request, response)
