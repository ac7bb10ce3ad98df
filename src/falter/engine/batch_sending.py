"""Send missing requests through provider batch APIs: submit, poll, and import the results.

Everything that a kill must not lose is stored first: a batch before it is submitted, its name as
soon as it is known, and its responses as they are read. So the same command resumes wherever the
last one ended. It submits only requests that have no response and are in no open batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from falter.engine.sending import LOOK_AHEAD, ModelQueue, main_error
from falter.records.batches import BatchClient, BatchLog, BatchStatus, StoredBatch
from falter.records.errors import EndpointError, FalterError, RunStopped, refusal
from falter.records.interfaces import ResponseStore, SharedStore
from falter.records.planning import batched
from falter.records.types import Request, Response

# Seconds. A batch takes minutes to a day, so the pause between two polls grows to a minute.
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, GROWTH = 0.5, 60.0, 1.5
LISTING_GRACE_SECONDS = 60.0
"""Seconds after which a batch that a provider does not list counts as not received."""
CLOCK_TOLERANCE_SECONDS = 3600.0
"""Seconds that a provider's clock may be behind."""
MAX_OUTAGE_SECONDS = 3600.0
"""Seconds for which a provider may be unreachable while a batch is waited for."""
# A batch that expires leaves requests unanswered, and each round may last a day. A request that
# three batches have left out is a failure, which the next run sends again.
ROUNDS = 3
# The first requests are sent directly, at full price, until one is answered. One item's prompt may
# be refused; after five refusals in a row, the batch would be refused too.
MAX_FAILED_PROBES = 5
# Responses in one transaction; after a kill, so many are read but not paid again.
COMMIT_RESPONSES = 256
Say = Callable[[str], None]
"""Function that shows a message to the user."""


async def run_batches(
    queues: Sequence[ModelQueue], store: ResponseStore, log: BatchLog, stop: asyncio.Event, say: Say
) -> None:
    """Send the missing requests of all queues in batches, and store the responses.

    The requests of a queue are iterated once a round, so they must be iterable more than once.
    Raises as `run_queues` does. Paid responses stay at the provider, and the next run with the same
    store imports them.
    """
    works = [_BatchWork(queue, store, log, stop, say) for queue in queues]
    for work in works:
        await work.api.check()
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work.run())
    except BaseExceptionGroup as group_error:
        raise main_error(group_error) from group_error
    if stop.is_set():
        waiting = sum(len(log.open(queue.client.model)) for queue in queues)
        raise refusal(RunStopped, "engine.interrupted_batches", waiting=waiting)


class _BatchWork:
    """The batches of one queue: submitted, waited for, and imported."""

    def __init__(
        self, queue: ModelQueue, store: ResponseStore, log: BatchLog, stop: asyncio.Event, say: Say
    ) -> None:
        assert isinstance(queue.client, BatchClient)
        self.queue, self.api, self.model = queue, queue.client.batches, queue.client.model
        self.progress = queue.progress
        self._client, self._store, self._log, self._stop = queue.client, store, log, stop
        self._show_message = say
        self._open: dict[str, StoredBatch] = {}
        self._foreign_batches: set[str] = set()  # other programs' batches of equal size
        self._pending: dict[str, int] = {}  # number of cells that wait for each request
        self._retries: dict[str, str] = {}  # requests for another batch, each with the reason
        self._failed_keys: set[str] = set()
        self._max_size = self.api.most_requests
        self._one_by_one = self._too_large = self._cancelled = self._probed = False

    async def run(self) -> None:
        """Submit, wait and import; requests that a batch left unanswered go into another batch."""
        rounds = 0
        while rounds < ROUNDS and not self._stop.is_set():
            self._retries, self._too_large = {}, False
            await self._submit_missing(is_first=not self.progress.planned)
            await self._wait()
            if self._cancelled:
                raise refusal(RunStopped, "engine.cancelled_batch", label=self.progress.label)
            self._retries = {k: why for k, why in self._retries.items() if k in self._pending}
            if not self._retries:
                return
            # A batch that was too large for the provider costs no round: its requests were not
            # tried.
            rounds += not self._too_large
        if not self._stop.is_set():
            self._give_up()

    # Batches of other processes, or of an earlier process that was killed

    async def _attach(self) -> list[StoredBatch]:
        """Adopt the open batches that this run needs; return batches that others have leased."""
        leased = []
        for batch in self._log.open(self.model):
            if batch.mark in self._open or self._pending.keys().isdisjoint(self._log.keys(batch)):
                continue
            if not self._log.lease(batch):
                leased.append(batch)
            elif batch.name is None:
                await self._search_provider(batch, batch.created_at + LISTING_GRACE_SECONDS)
            else:
                self._say(f"waiting for batch {batch.name} of {batch.requests:,} requests")
                self._open[batch.mark] = batch
        return leased

    async def _search_provider(self, batch: StoredBatch, until: float) -> None:
        """Find a batch whose submission had no answer, because of a lost reply or a killed process.

        If the provider does not list it by `until`, it counts as lost, and its requests go into
        another batch.
        """
        self._say(
            f"looking for a batch of {batch.requests:,} requests that the provider may have "
            "received"
        )
        for listings, pause in enumerate(self._pauses(), 1):
            # List at least twice, even long after the grace period, before anything is paid again.
            late = time.time() > until and listings > 1
            try:
                name = await self._listed_as(batch)
            except EndpointError as error:
                if late:
                    raise RunStopped(
                        f"{self.progress.label}: cannot list the provider's batches to see if the "
                        f"last one arrived: {error.message}",
                        hint="run the same command again later; it looks for that batch before "
                        "it submits another",
                    ) from error
            else:
                if name is not None:
                    self._open[batch.mark] = self._log.mark(batch, "waiting", name=name)
                    self._say(f"the provider has received batch {name}")
                    return
                if late:
                    self._log.mark(batch, "lost", name=None, said="it never arrived")
                    self._mark_for_retry(batch, "the batch did not reach the provider")
                    return
            await self._sleep(pause)
            if self._stop.is_set():
                return

    async def _listed_as(self, batch: StoredBatch) -> str | None:
        """Return the provider's name of a batch, by its mark or else the oldest of its size."""
        names = self._log.names(self.model) | self._foreign_batches
        alike = None
        async for listed in self.api.listed(batch.created_at - CLOCK_TOLERANCE_SECONDS):
            if listed.mark == batch.mark:
                return listed.name
            # Anthropic takes no mark, so its batches are matched by size. A wrong guess shows in
            # the results (`_exclude_foreign`), and the next candidate is tried.
            unmarked = listed.mark is None and listed.name not in names
            if unmarked and listed.requests == batch.requests:
                alike = listed.name
        return alike

    # Submitting

    async def _submit_missing(self, *, is_first: bool) -> None:
        """Iterate the plan once, and submit the missing requests in as few batches as possible."""
        keys: list[str] = []
        lines: list[bytes] = []
        size = 0
        async for request in self._unsent_requests(is_first):
            try:
                line = self.api.batch_line(request)
            except (ValueError, EndpointError) as error:
                self._land_direct(request, _failure(request.key, f"it cannot be sent: {error}"))
                continue
            full = len(keys) >= self._max_size or size + len(line) > self.api.most_bytes
            if keys and full:
                await self._submit(keys, lines)
                keys, lines, size = [], [], 0
            keys.append(request.key)
            lines.append(line)
            size += len(line) + 1
        if keys and not self._stop.is_set():
            await self._submit(keys, lines)

    async def _unsent_requests(self, is_first: bool) -> AsyncIterator[Request]:
        """Yield the requests that have no response and are in no batch, each once."""
        yielded: set[str] = set()
        for chunk in batched(self.queue.requests, LOOK_AHEAD):
            if self._stop.is_set():
                return
            if is_first:
                self.progress.planned += len(chunk)
                if self.queue.on_planned is not None:
                    self.queue.on_planned(chunk)
            missing = self._missing_keys(chunk, is_first)
            sendable = missing - self._log.held(missing) - yielded - self._failed_keys
            for request in chunk:
                if request.key in sendable:
                    sendable.discard(request.key)
                    if self._probed or not await self._probe(request):
                        yielded.add(request.key)
                        yield request
            # A long plan must not block the other queues.
            await asyncio.sleep(0)

    def _missing_keys(self, chunk: Sequence[Request], is_first: bool) -> set[str]:
        """Return the keys of a chunk without a response; count its cells the first time."""
        share = self.queue.share
        own_requests = [r for r in chunk if share is None or r.key in share]
        missing = self._store.missing(list({r.key for r in own_requests}))
        if is_first:
            self.progress.elsewhere += len(chunk) - len(own_requests)
            for request in own_requests:
                if request.key in missing:
                    self._pending[request.key] = self._pending.get(request.key, 0) + 1
                else:
                    self.progress.stored += 1
        return missing

    async def _probe(self, request: Request) -> bool:
        """Send one request directly before any batch; return False if another process has it.

        An unsupported field, a wrong model name or a used-up quota then shows at once. In a batch
        it would show only the next day, in every line.
        """
        shared = self._store if isinstance(self._store, SharedStore) else None
        if shared is not None and not shared.claim([request.key]):
            return False
        # Lease first, then look up: in the other order, another process could submit it in between.
        if not self._log.is_free(request.key):
            if shared is not None:
                shared.release([request.key])
            return False
        self.progress.sent += 1
        response = await self._client.generate(request)
        self._land_direct(request, response)
        if shared is not None:
            shared.release([request.key])
        self._probed = response.failure is None
        if len(self._failed_keys) >= MAX_FAILED_PROBES and not self._probed:
            raise RunStopped(
                f"{self.progress.label}: the first {len(self._failed_keys)} requests all failed, "
                f"so no batch was submitted; the last error was: {response.failure}",
                hint="check the endpoint with 'falter doctor'",
            )
        return True

    async def _submit(self, keys: Sequence[str], lines: Sequence[bytes]) -> None:
        """Submit one batch: log it, send it, and log the name that the provider gives it."""
        # Logged before it is sent: after a crash the next run looks for it, and pays nothing twice.
        batch = self._log.record(self.model, keys, self.api.asked)
        ours = set() if batch is None else set(self._log.keys(batch))
        self._retries |= dict.fromkeys(set(keys) - ours, "another process has submitted it")
        if batch is None:
            return
        chosen = [line for key, line in zip(keys, lines, strict=True) if key in ours]
        try:
            name = await self.api.submit(batch.mark, chosen)
        except FalterError as error:  # refused for certain
            self._log.mark(batch, "refused", name=None, said=error.message)
            if isinstance(error, EndpointError):
                raise RunStopped(
                    f"{self.progress.label}: the batch was refused: {error.message}",
                    hint="the provider did not charge for it; leave --batch out to send every "
                    "request separately",
                ) from error
            raise
        self.progress.sent += len(chosen)
        if name is None:
            await self._search_provider(batch, time.time() + LISTING_GRACE_SECONDS)
        elif not name:
            raise refusal(RunStopped, "engine.unnamed_batch", progress=self.progress.label)
        else:
            self._open[batch.mark] = self._log.mark(batch, "waiting", name=name)
            self._say(f"batch {name} has {len(chosen):,} requests")
        if self._one_by_one:
            await self._wait()

    # Waiting and importing

    async def _wait(self) -> None:
        """Wait until every batch has ended and been imported, also batches of other processes."""
        trouble: float | None = None
        for pause in self._pauses():
            leased: list[StoredBatch] = []
            try:
                leased = await self._attach()
                await self._poll_all()
                trouble = None
            except EndpointError as error:
                now = time.monotonic()
                trouble = now if trouble is None else trouble
                if now - trouble > MAX_OUTAGE_SECONDS:
                    raise RunStopped(
                        f"{self.progress.label}: {error.message}",
                        hint="the batches continue at the provider; run the same command again "
                        "to import them",
                    ) from error
                self._say(f"{error.message}; trying again")
            if (not self._open and not leased and trouble is None) or self._stop.is_set():
                break
            await self._sleep(pause)
        self._count_stored_elsewhere()

    async def _poll_all(self) -> None:
        """Poll every open batch once; import the batches that have ended, and handle refusals."""
        for batch in list(self._open.values()):
            assert batch.name is not None
            status = await self.api.status(batch.name)
            if status.gone:
                raise RunStopped(
                    f"{self.progress.label}: the provider has no batch {batch.name}",
                    hint="use the key of the account that submitted it; if its results are lost, "
                    f"run 'falter batch forget {batch.name}', after which they are requested "
                    "and paid for again",
                )
            if not status.ended:
                if status.said != batch.said:
                    self._open[batch.mark] = self._log.mark(
                        batch, "waiting", name=batch.name, said=status.said
                    )
                continue
            if status.failure:
                self._handle_refusal(batch, status)
            else:
                await self._store_results(batch, status)

    def _handle_refusal(self, batch: StoredBatch, status: BatchStatus) -> None:
        """Handle a batch that the provider accepted, validated and refused; nothing was paid.

        If it was too large, its requests are submitted again in batches of half the size.
        """
        del self._open[batch.mark]
        self._log.mark(batch, "refused", name=batch.name, said=status.failure)
        if not status.too_much or batch.requests == 1:
            raise RunStopped(
                f"{self.progress.label}: batch {batch.name} was refused: {status.failure}",
                hint="the provider did not charge for it; leave --batch out to send every "
                "request separately",
            )
        # Submit smaller batches, each only after the previous batch has ended.
        self._max_size, self._one_by_one, self._too_large = max(1, batch.requests // 2), True, True
        self._say(f"{status.failure}; continuing with batches of {self._max_size:,} requests")
        self._mark_for_retry(batch, status.failure)

    def _mark_for_retry(self, batch: StoredBatch, why: str) -> None:
        """Mark the unanswered requests of a batch for another batch, with the reason."""
        keys = self._pending.keys() & self._log.keys(batch)
        self._retries |= dict.fromkeys(keys, why)

    async def _store_results(self, batch: StoredBatch, status: BatchStatus) -> None:
        """Store the results of a batch, in any order; count each request once."""
        assert batch.name is not None
        reasons = dict.fromkeys(self._log.keys(batch), status.said)
        uncommitted: list[Response] = []
        known = unknown = answered = 0
        async with contextlib.aclosing(self.api.results(batch.name, batch.asked)) as lines:
            async for line in lines:
                known += line.key in reasons
                if line.key not in reasons:
                    unknown += 1
                elif line.response is None:
                    reasons[line.key] = line.reason
                else:
                    del reasons[line.key]
                    uncommitted.append(line.response)
                    answered += line.response.failure is None
                if len(uncommitted) >= COMMIT_RESPONSES:
                    self._land(batch, uncommitted)
                    uncommitted = []
        self._land(batch, uncommitted)
        del self._open[batch.mark]
        # No line is ours: the batch was mistaken for ours by its number of requests.
        if unknown and not known:
            await self._exclude_foreign(batch)
            return
        if unknown:
            self._say(
                f"batch {batch.name} has {unknown:,} lines that this run did not request; they "
                "are ignored"
            )
        reasons = {key: reason for key, reason in reasons.items() if key in self._pending}
        self._retries |= reasons
        # A batch that was cancelled after its last response is complete.
        self._cancelled |= status.cancelled and bool(reasons)
        self._log.mark(batch, "read", name=batch.name, said=status.said)
        self._say(
            f"batch {batch.name} is imported: {answered:,} of {batch.requests:,} requests have a "
            "response"
        )

    async def _exclude_foreign(self, batch: StoredBatch) -> None:
        """Exclude another program's batch that was mistaken for ours by its size; look again."""
        self._foreign_batches.add(batch.name or "")
        await self._search_provider(self._log.mark(batch, "sending", name=None), 0.0)

    # Counting

    def _land(self, batch: StoredBatch, responses: Sequence[Response]) -> None:
        """Store and count the responses of a batch, except to requests that have already failed."""
        not_failed = [response for response in responses if response.key not in self._failed_keys]
        if not_failed:
            self._log.store_results(batch, not_failed)
            for response in not_failed:
                self._count(response)

    def _land_direct(self, request: Request, response: Response) -> None:
        """Store and count a response that was requested directly."""
        if response.failure is None:
            self._store.put_responses([(request, response)])
        else:
            self._store.put_failures([response])
        self._count(response)

    def _count(self, response: Response) -> None:
        """Count a response for all cells that wait for it."""
        progress, cells = self.progress, self._pending.pop(response.key, 0)
        if response.failure is None and cells:  # a file may be read twice
            progress.landed += cells
            progress.prompt_tokens += response.usage.prompt_tokens
            progress.completion_tokens += response.usage.completion_tokens
        elif response.failure is not None:
            progress.failed += cells
            progress.last_failure = response.failure
            self._failed_keys.add(response.key)

    def _count_stored_elsewhere(self) -> None:
        """Count the responses that other processes have stored in the meantime."""
        missing = self._store.missing(list(self._pending))
        for key in self._pending.keys() - missing:
            self.progress.stored += self._pending.pop(key)

    def _give_up(self) -> None:
        """Record requests that several batches left unanswered as failures of this run."""
        failures = [
            _failure(key, f"no response in {ROUNDS} batches: {why}")
            for key, why in self._retries.items()
        ]
        self._store.put_failures(failures)
        for failure in failures:
            self._count(failure)

    # Time and words

    def _say(self, text: str) -> None:
        """Show a message with the model's label."""
        self._show_message(f"{self.progress.label}: {text}")

    def _pauses(self) -> Iterator[float]:
        """Yield the seconds between two polls, growing to `MAX_PAUSE_SECONDS`."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            yield pause
            pause = min(MAX_PAUSE_SECONDS, pause * GROWTH)

    async def _sleep(self, seconds: float) -> None:
        """Pause for some seconds, or until an interruption."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)


def _failure(key: str, reason: str) -> Response:
    """Return a failed response to a request."""
    return Response(key=key, failure=reason, received_at=time.time())
