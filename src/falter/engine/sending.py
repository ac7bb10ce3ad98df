"""Send a plan's missing requests: workers of each model store every response on arrival."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from falter.records.errors import AuthenticationError, RunStopped, StoreBusy, refusal
from falter.records.interfaces import ChunkClient, Client, ResponseStore, SharedStore
from falter.records.planning import batched
from falter.records.types import Request, Response

# Responses on their way to the store, committed when they are many or old enough.

# A killed process loses the buffered responses and pays for them again: at most so many, or the
# responses of 50 ms. Limits by count and by age: a commit costs about as much for one response as
# for a hundred, and responses that arrive slowly must not wait for a full buffer.
MAX_BUFFERED = 256
MAX_BUFFER_SECONDS = 0.05
BUSY_RETRY_SECONDS = 0.25
# Seconds to wait for a locked store or a full disk; then the run ends and reports the loss.
MAX_BUSY_SECONDS = 30.0


class Buffer:
    """Buffer of landed responses, committed in small batches on the event loop, without a thread.

    Under load a writer thread starves on the interpreter lock: in a trial a kill then lost 10,000
    of 16,500 responses. If the store is locked or its disk is full, the commit is retried and
    nothing is dropped.
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
        """Add one response; failures are stored separately, so that a later run retries them."""
        if response.failure is None:
            self._landed.append((request, response))
            self._keys.add(request.key)
        else:
            self._failed.append(response)
        if len(self._landed) + len(self._failed) >= MAX_BUFFERED and self._busy_since is None:
            self._flush_or_retry()
        elif self._timer is None:
            self._timer = self._loop.call_later(MAX_BUFFER_SECONDS, self._flush_or_retry)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def flush(self) -> None:
        """Commit all buffered responses; responses that cannot be committed stay in the buffer."""
        if self._timer is not None:
            # A full buffer commits before its timer fires, which must not cut the next batch short.
            self._timer.cancel()
            self._timer = None
        if self._landed:
            self._store.put_responses(self._landed)
            # After the commit: with a lease released before, another process would send again.
            self._release([request.key for request, _ in self._landed])
            self._landed = []
            self._keys.clear()
        if self._failed:
            self._store.put_failures(self._failed)
            self._release([response.key for response in self._failed])
            self._failed = []

    async def ready(self) -> bool:
        """Wait while the store is busy; return False after `MAX_BUSY_SECONDS`."""
        while self._busy_since is not None and self.error is None:
            if self._loop.time() - self._busy_since > MAX_BUSY_SECONDS:
                return False
            await asyncio.sleep(BUSY_RETRY_SECONDS)
        return True

    async def settle(self) -> None:
        """Commit the rest, waiting for a busy store; raise with the number of lost responses."""
        since = self._loop.time() if self._busy_since is None else self._busy_since
        while True:
            try:
                self.flush()
                self._busy_since = None
                return
            except StoreBusy as error:
                if self._loop.time() - since > MAX_BUSY_SECONDS:
                    waiting = len(self._landed)
                    lost = f"; {waiting:,} responses that had arrived are lost" if waiting else ""
                    raise RunStopped(f"{error.message}{lost}", hint=error.hint) from error
            await asyncio.sleep(BUSY_RETRY_SECONDS)

    def _release(self, keys: list[str]) -> None:
        if isinstance(self._store, SharedStore):
            self._store.release(keys)

    def _flush_or_retry(self) -> None:
        self._timer = None
        try:
            self.flush()
            self._busy_since = None
        except StoreBusy:
            if self._busy_since is None:
                self._busy_since = self._loop.time()
            self._timer = self._loop.call_later(BUSY_RETRY_SECONDS, self._flush_or_retry)
        except BaseException as error:  # raised to the run by its next worker
            self.error = error


# Requests that are planned and looked up in the store at once: one query for all of them, and a
# plan of a million requests is never in memory.
LOOK_AHEAD = 64
# The more prompts are sorted at once, the longer the prefixes that neighbours share.
SORTED_AHEAD = 512
# One item may fail in all its conditions because its prompt is too long. If five items fail, the
# endpoint is wrong. A wrong setting may cost 25 requests.
ABORT_AFTER_RESPONSES = 25
ABORT_MIN_ITEMS = 5
# Requests that other processes have leased stay in memory; above so many, recheck them.
MAX_WAITING = 1024
LEASE_POLL_SECONDS = 0.1
LANDING_SECONDS = 10.0
"""Seconds that requests in flight have to land after an error has ended the run."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """Counts of one request queue, updated in place; a display may read them at any time."""

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
    paused: str | None = None

    @property
    def done(self) -> int:
        """The number of cells that need nothing more, failed cells included."""
        return self.stored + self.landed + self.failed + self.elsewhere


@dataclass(slots=True, kw_only=True)
class ModelQueue:
    """One model's part of a run: its requests in plan order, its client, its concurrency.

    `on_planned` is called once with each chunk of the plan, before any of its requests is sent.
    `is_cut` tests if a response was truncated before it contained an answer. Requests that are not
    in `share`, this process's part, are planned but not sent.
    """

    requests: Iterable[Request]
    client: Client
    concurrency: int
    progress: Progress
    on_planned: Callable[[Sequence[Request]], None] | None = None
    is_cut: Callable[[Request, Response], bool] = lambda _, response: response.ran_out
    share: Container[str] | None = None


async def run_queues(
    queues: Sequence[ModelQueue], store: ResponseStore, stop: asyncio.Event | None = None
) -> None:
    """Send the missing requests of all queues at once, and store every response on arrival.

    Raises `AuthenticationError` if an endpoint refuses the credentials. Raises `RunStopped` if all
    requests fail, the first responses are all truncated, `stop` is set, or the store stays busy.
    Responses that have landed, or land within ten seconds after an error, are stored if possible.
    Requests that another process is sending are waited for.
    """
    stop, ending = stop or asyncio.Event(), asyncio.Event()
    buffer = Buffer(store)

    def stopped() -> bool:
        return stop.is_set() or ending.is_set()

    workers: set[asyncio.Task[None]] = set()
    for queue in queues:
        capabilities, width = queue.client.capabilities, _worker_count(queue)
        feed = _Feed(queue, store, buffer, width if capabilities.keeps_prefixes else 0)
        breaker = Breaker(queue.client, queue.progress, width, feed.lose)
        work = [_run_worker(feed, n, buffer, breaker, stopped) for n in range(width)]
        for each in (*work, breaker.watch(partial(_try_one, feed, buffer), stopped)):
            workers.add(asyncio.create_task(each))
    try:
        _, flying = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        if flying:  # one worker has raised: what the others have paid for may still land
            ending.set()
            await asyncio.wait(flying, timeout=LANDING_SECONDS)
    finally:
        for task in workers:
            task.cancel()
        # Cancelled workers end first, so that nothing joins the buffer after its last commit.
        ended = await asyncio.gather(*workers, return_exceptions=True)
        await buffer.settle()
    errors = [e for e in ended if isinstance(e, Exception)]
    if errors:
        raise main_error(BaseExceptionGroup("workers", errors))
    if stop.is_set():
        done = sum(queue.progress.stored + queue.progress.landed for queue in queues)
        total = sum(queue.progress.total for queue in queues)
        raise refusal(RunStopped, "engine.interrupted_run", done=done, total=total)


def _worker_count(queue: ModelQueue) -> int:
    """Return a queue's number of workers; an engine applies the user's concurrency itself."""
    most = queue.client.capabilities.lanes
    if isinstance(queue.client, ChunkClient):
        return most or 1
    return max(1, min(queue.concurrency, most or 1_000_000))


def main_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return a group's most important error: `AuthenticationError`, otherwise the first one."""
    flat: list[BaseException] = []
    for error in group.exceptions:
        flat.append(main_error(error) if isinstance(error, BaseExceptionGroup) else error)
    return next((e for e in flat if isinstance(e, AuthenticationError)), flat[0])


class _Feed:
    """The requests that one queue still has to send.

    The plan is read in chunks and looked up in the store. A request in flight or in the buffer is
    not sent again; once it is stored, the look-up finds it.

    Missing requests are sent in plan order by any free worker. With `queues`, larger chunks are
    sorted by text and split into a work queue for each worker. Each engine then receives prompts
    with a common prefix in a row, and reads that prefix once.
    """

    def __init__(
        self, queue: ModelQueue, store: ResponseStore, buffer: Buffer, queues: int = 0
    ) -> None:
        self.queue = queue
        # Checked once: `isinstance` with a protocol takes 40 µs, as long as half a request.
        self.chunks = queue.client if isinstance(queue.client, ChunkClient) else None
        self._chunk_size = SORTED_AHEAD if queues else LOOK_AHEAD
        self._work_queues: list[deque[Request]] = [deque() for _ in range(queues or 1)]
        self.progress = queue.progress
        self._store = store
        self._buffer = buffer
        self._in_flight: set[str] = set()
        self._waiting: dict[str, int] = {}
        self._failed: set[str] = set()
        self._failed_items: set[str] = set()
        self._cut_items: set[str] = set()
        self._cut, self._any_complete = 0, False
        self._leased_elsewhere: dict[str, list[Request]] = {}
        self._failed_since_landing: list[tuple[Request, int]] = []
        self._sent_while_dead: set[str] = set()
        self._server_died = False
        self._missing_chunks = self._stream()
        self.ended = False

    def take(self, limit: int, worker: int = 0) -> list[Request]:
        """Return up to `limit` requests to send next; an empty list if none is due at present."""
        requests: list[Request] = []
        while len(requests) < limit and not self.ended:
            request = self._next(worker)
            if request is not None:
                requests.append(request)
                continue
            missing = next(self._missing_chunks, None)
            self.ended = missing is None
            if not missing:
                break
            self._fill_work_queues(missing)
        self.progress.sent += len(requests)
        return requests

    def _next(self, worker: int) -> Request | None:
        """Return a request from the worker's own queue, or else the last one of the longest."""
        own = self._work_queues[worker % len(self._work_queues)]
        if own:
            return own.popleft()
        longest = max(self._work_queues, key=len)
        # From the far end: the owner continues with neighbours of the prompt that it sent last.
        return longest.pop() if longest else None

    def _fill_work_queues(self, missing: list[Request]) -> None:
        """Divide missing requests among the work queues, sorted by text if there are several."""
        if self._chunk_size == SORTED_AHEAD:
            missing.sort(key=_prompt_text)
        share = -(-len(missing) // len(self._work_queues))
        for own, first in zip(self._work_queues, range(0, len(missing), share), strict=False):
            own.extend(missing[first : first + share])

    def landed(self, request: Request, response: Response) -> None:
        """Count one response, also for the other cells that wait for the same request."""
        self._in_flight.discard(request.key)
        cells = 1 + self._waiting.pop(request.key, 0)
        progress = self.progress
        if response.failure is None:
            # The first response after a pause: the server is back, so its failures are retried.
            if self._server_died:
                self.send_again()
                # Requests sent while the server was dead may still fail, for example by time-out.
                self._sent_while_dead, self._server_died = set(self._in_flight), False
            self._failed_since_landing.clear()
            progress.landed += cells
            progress.prompt_tokens += response.usage.prompt_tokens
            progress.completion_tokens += response.usage.completion_tokens
            self._stop_if_truncated(request, response)
        else:
            progress.failed += cells
            progress.last_failure = response.failure
            self._failed_since_landing.append((request, cells))
            self._failed.add(request.key)
            self._failed_items.add(request.variant.item.key)
            self._stop_if_hopeless()
            if request.key in self._sent_while_dead:
                self._sent_while_dead.discard(request.key)
                self.send_again()

    def lose(self) -> None:
        """Attribute the failures since the last response to the server, which has died."""
        self._server_died = True

    def send_again(self) -> None:
        """Take back the failures since the last response, which a dead server caused."""
        for request, cells in self._failed_since_landing:
            self.progress.failed -= cells
            self._failed.discard(request.key)
            # The other cells of this request were counted as failed too; they wait once more.
            self._waiting[request.key] = cells - 1
            self._leased_elsewhere.setdefault(request.key, []).append(request)
        self._failed_since_landing.clear()
        # The plan has ended, but these requests have to be sent again: continue with them alone.
        if self.ended and self._leased_elsewhere:
            self._missing_chunks, self.ended = self._leased(), False

    def _stop_if_hopeless(self) -> None:
        """Stop if every response is a failure, over several items: one item may be too long."""
        progress = self.progress
        few = progress.failed < ABORT_AFTER_RESPONSES or len(self._failed_items) < ABORT_MIN_ITEMS
        if progress.landed == 0 and not few:
            raise RunStopped(
                f"{progress.label}: the first {progress.failed} requests all failed; "
                f"the last error was: {progress.last_failure}",
                hint="check the endpoint with 'falter doctor'; this run has nothing to report",
            )

    def _stop_if_truncated(self, request: Request, response: Response) -> None:
        """Stop if every response is truncated, over several items: more requests would not help."""
        if self._any_complete:
            return
        if not self.queue.is_cut(request, response):
            self._any_complete = True
            return
        self._cut += 1
        self._cut_items.add(request.variant.item.key)
        if self._cut >= ABORT_AFTER_RESPONSES and len(self._cut_items) >= ABORT_MIN_ITEMS:
            limit = request.sampling.max_tokens
            raise RunStopped(
                f"{self.progress.label}: the first {self._cut} responses were all truncated at "
                f"{limit:,} tokens, before an answer",
                hint=f"raise max_tokens (--max-tokens {max(4096, 4 * limit)}); "
                "this run has nothing to report",
            )

    def _stream(self) -> Iterator[list[Request]]:
        """Yield the requests to send; an empty list while other processes lease the rest."""
        queue, progress = self.queue, self.progress
        for chunk in batched(queue.requests, self._chunk_size):
            progress.planned += len(chunk)
            if queue.on_planned is not None:
                queue.on_planned(chunk)
            if missing := list(self._unanswered(self._share_of(chunk))):
                yield missing
            if len(self._leased_elsewhere) > MAX_WAITING and (missing := [*self._recheck_leased()]):
                yield missing
        yield from self._leased()

    def _leased(self) -> Iterator[list[Request]]:
        """Yield requests that other processes had leased, until all of them are answered."""
        while self._leased_elsewhere:
            missing = list(self._recheck_leased())
            if missing or self._leased_elsewhere:
                yield missing

    def _share_of(self, chunk: Sequence[Request]) -> Sequence[Request]:
        """Return the requests of this process's part; count the others."""
        share = self.queue.share
        if share is None:
            return chunk
        ours = [request for request in chunk if request.key in share]
        self.progress.elsewhere += len(chunk) - len(ours)
        return ours

    def _recheck_leased(self) -> Iterator[Request]:
        """Recheck requests that another process had leased; yield the ones that are now ours."""
        held, self._leased_elsewhere = self._leased_elsewhere, {}
        for chunk in batched((r for same in held.values() for r in same), self._chunk_size):
            yield from self._unanswered(chunk)

    def _unanswered(self, chunk: Sequence[Request]) -> Iterator[Request]:
        """Yield the requests of a chunk that are missing and now leased; count all other cells."""
        progress = self.progress
        known = (self._in_flight, self._buffer, self._failed)
        # In flight or buffered: not in the store yet. Failed: final in this run.
        fresh = {r.key for r in chunk if not any(r.key in keys for keys in known)}
        missing = self._store.missing(list(fresh))
        store = self._store
        # `claim` checks again: another process may have stored a response since the look-up.
        ours = store.claim(missing) if isinstance(store, SharedStore) else set(missing)
        for request in chunk:
            key = request.key
            if key in self._in_flight:
                self._waiting[key] = self._waiting.get(key, 0) + 1
            elif key in self._buffer:
                progress.landed += 1
            elif key in self._failed:
                progress.failed += 1
            elif key in ours:
                self._in_flight.add(key)
                # The caller sends while this generator is suspended. The response may be stored
                # before the next cell with this key, which must not send the request again.
                ours.discard(key)
                missing.discard(key)
                yield request
            elif key in missing:
                self._leased_elsewhere.setdefault(key, []).append(request)
            else:
                progress.stored += 1


def _prompt_text(request: Request) -> tuple[str, ...]:
    """Return the text that a model reads; sorting by it joins prompts with a common prefix."""
    if request.messages:
        return tuple(content for _, content in request.messages)
    return (request.context,)


async def _try_one(feed: _Feed, buffer: Buffer, seconds: float) -> None:
    """Send one request and wait at most `seconds`: a server may accept connections and be mute."""
    # Failures are put back, so that there is a request to try even at the end of the plan.
    feed.send_again()
    for request in feed.take(1):
        try:
            async with asyncio.timeout(seconds):
                (response,) = await _send_chunk(feed, [request])
        except TimeoutError:
            failure = f"no answer within {seconds:,.0f} s"
            response = Response(key=request.key, failure=failure, received_at=time.time())
        buffer.add(request, response)
        feed.landed(request, response)


async def _send_chunk(feed: _Feed, requests: Sequence[Request]) -> Sequence[Response]:
    client = feed.queue.client
    if feed.chunks is not None:
        return await feed.chunks.answer_many(requests)
    if requests[0].scores:
        return await client.score_many(requests)
    return [await client.generate(request) for request in requests]


async def _run_worker(
    feed: _Feed, worker: int, buffer: Buffer, breaker: Breaker, stopped: Callable[[], bool]
) -> None:
    """Take requests, send them and store their responses until the queue is empty or stopped."""
    client, progress = feed.queue.client, feed.progress
    try:
        while not stopped():
            ready = await buffer.ready()
            if buffer.error is not None:
                raise buffer.error
            if not ready:
                return  # requests in flight may still land
            limit = client.capabilities.batch if feed.chunks is None else feed.chunks.chunk
            requests = [] if progress.paused else feed.take(limit, worker)
            # At the end no new attempt could reveal a dead server: judge by the attempts so far.
            if not requests and feed.ended and not breaker.opens(at_the_end=True):
                return
            if not requests:
                await asyncio.sleep(LEASE_POLL_SECONDS)
                continue
            answers = await _send_chunk(feed, requests)
            for request, response in zip(requests, answers, strict=True):
                buffer.add(request, response)
                feed.landed(request, response)
    finally:
        # `watch` ends with the last worker, even if that worker raised.
        breaker.workers -= 1


# Dead servers: detected, their queue paused, probed at growing intervals

POLL_SECONDS = 0.1
# A server is dead if all of at least 20 attempts in 30 s failed in one way. Without a pause, a run
# had 654 failures ten minutes after its server had died.
OUTAGE_SECONDS = 30.0
OUTAGE_ATTEMPTS = 20
FIRST_PROBE_SECONDS = 2.0
MAX_PAUSE_SECONDS = 120.0
"""Seconds for which a dead server is tried again, after 2, 4, 8, … s; given up within 3 min."""


class Breaker:
    """Circuit breaker of a request queue: pauses the queue while its server is dead.

    Attempts of the client's transport are the evidence. Any response shows that a server is alive,
    even a refusal, as does work on an accepted request. A client without a transport is never
    paused. `workers` is the number that are running. `in_vain` is called when a pause begins: the
    failures since the last response are to be sent again.
    """

    def __init__(
        self, client: Client, progress: Progress, workers: int, in_vain: Callable[[], None]
    ) -> None:
        self.workers = workers
        self._progress, self._in_vain = progress, in_vain
        self._last_alive = _now()
        self._failed_attempts: deque[tuple[float, str]] = deque()
        self._first_failure = _now()
        self._transport = getattr(client, "transport", None)
        if self._transport is not None:
            self._transport.on_attempt = self._record_attempt

    def opens(self, *, at_the_end: bool = False) -> bool:
        """Pause if enough attempts failed alike; at the end of a plan, without the usual delay."""
        # Only the kind ("HTTP 503"): a dead server fails in one way, an overloaded one in several.
        kinds = {trouble.partition(":")[0] for _, trouble in self._failed_attempts}
        enough = len(self._failed_attempts) >= OUTAGE_ATTEMPTS and not self._is_at_work()
        alike = enough and len(kinds) == 1
        if alike and (at_the_end or _now() - self._last_alive >= OUTAGE_SECONDS):
            self._progress.paused = self._failed_attempts[-1][1]
            self._in_vain()
        return self._progress.paused is not None

    async def watch(
        self, try_one: Callable[[float], Awaitable[None]], stopped: Callable[[], bool]
    ) -> None:
        """While the server is dead, call `try_one` at growing intervals with the seconds left.

        Raises `RunStopped` if the server has not responded for two minutes.
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
                    raise refusal(
                        RunStopped,
                        "engine.dead_server",
                        label=progress.label,
                        paused=progress.paused,
                        answered=progress.stored + progress.landed,
                        total=progress.total,
                    )
                if _now() < due:
                    await asyncio.sleep(POLL_SECONDS)
                    continue
                await try_one(end - _now())
                interval *= 2
                due = min(_now() + interval, end)

    def _is_at_work(self) -> bool:
        """Return True if a request that was sent before the first failure is still unanswered."""
        since = None if self._transport is None else self._transport.waits_since
        return since is not None and since < self._first_failure

    def _record_attempt(self, trouble: str | None) -> None:
        now = _now()
        if not self._failed_attempts:
            self._first_failure = now
        if trouble is None:
            self._last_alive = now
            self._failed_attempts.clear()
            self._progress.paused = None
            return
        self._failed_attempts.append((now, trouble))
        # This never empties the queue: the newest attempt has just been added.
        while self._failed_attempts[0][0] < now - OUTAGE_SECONDS:
            self._failed_attempts.popleft()


def _now() -> float:
    return asyncio.get_running_loop().time()
