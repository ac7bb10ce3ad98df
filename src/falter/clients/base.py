"""Base classes of clients: for any client, for HTTP, and for models that compute in batches."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from falter.clients.answers import Answer, failed
from falter.records.errors import EndpointError, EngineLost, refusal
from falter.records.interfaces import Capabilities
from falter.records.types import Model, Request, Response

if TYPE_CHECKING:
    from falter.clients.transport import Transport

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")

MAX_REASON_CHARACTERS = 500
FATAL_ERROR_MARKS = ("CUDA error", "HIP error", "device-side assert", "EngineDeadError")
"""Parts of errors after which an engine in this process can no longer answer."""


class BaseClient(ABC):
    """Base class of a client, which must have `model`, `capabilities` and `generate`.

    `model` enters the key of every request, so it holds every setting that changes responses, and
    no API key. A request that fails becomes a response with `failure` set. An exception ends the
    run.
    """

    model: Model
    capabilities: Capabilities

    async def check(self) -> None:  # noqa: B027 (most have nothing to check)
        """Raise `PreflightError` if the first request could only fail; costs nothing."""

    @abstractmethod
    async def generate(self, request: Request) -> Response:
        """Return the response to `request.messages`, or to the plain text `request.context`."""

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return one response per request, with the log-likelihoods of its continuations."""
        raise refusal(EndpointError, "clients.no_likelihoods", model=self.model.label)

    @property
    def address(self) -> str | None:
        """The URL that requests are sent to; None if they stay in this process."""
        return self.model.base_url

    @property
    def key_variable(self) -> str | None:
        """The environment variable whose value is sent as the key; None if no key is sent."""
        return None

    @property
    def adapted(self) -> Mapping[str, str]:
        """Fields that the client renamed or dropped for this server, each with its change."""
        return {}

    async def close(self) -> None:  # noqa: B027 (or to close)
        """Close connections and free memory."""


class HttpClient(BaseClient):
    """Base class of a client that sends requests to a server through a `Transport`."""

    transport: Transport

    async def check(self) -> None:
        """Request the model list, which is free, to check that the first request can succeed."""
        await self.transport.check(self.model.name)

    @property
    def key_variable(self) -> str | None:
        """The variable of the transport's key."""
        return self.transport.key_variable

    @property
    def adapted(self) -> Mapping[str, str]:
        """The changes of the transport's dialect."""
        return self.transport.dialect.changes

    async def close(self) -> None:
        """Close the connections."""
        await self.transport.close()


class Batcher(Generic[Q, A]):
    """A queue that collects questions while an engine is busy and passes them on together.

    `answer` takes at most `most` questions, all of one `kind`. It returns their answers in order,
    with an exception in place of a missing answer. If it raises, `recover` is called and each half
    of the batch is tried, and so on. So a question that cannot be answered costs no other question
    its answer. All calls run on one thread called `name`.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Q]], Sequence[A | Exception]],
        *,
        most: int,
        name: str,
        kind: Callable[[Q], Hashable] = lambda _: None,
        recover: Callable[[], None] = lambda: None,
    ) -> None:
        self._answer_batch = answer
        self._max_batch = most
        self._kind_of = kind
        self._recover = recover
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._queue: list[tuple[Q, asyncio.Future[A]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """Return the answer to a question, or raise the question's exception."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._queue.append((question, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._serve())
        return await future

    async def call(self, work: Callable[[], T]) -> T:
        """Run other work on the engine's thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def close(self) -> None:
        """Cancel all questions, and wait until the engine has finished its current batch."""
        if self._worker is not None:
            self._worker.cancel()
        for _, future in self._queue:
            future.cancel()
        self._queue.clear()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def _serve(self) -> None:
        await asyncio.sleep(0)  # let other tasks that are ready add their questions
        while batch := self._next_batch():
            outcomes: Sequence[A | Exception]
            try:
                outcomes = await self.call(partial(self._compute, [q for q, _ in batch]))
            except asyncio.CancelledError:
                for _, future in batch:
                    future.cancel()
                raise
            except Exception as error:  # what `recover` raised
                outcomes = [error] * len(batch)
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if future.done():
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    def _next_batch(self) -> list[tuple[Q, asyncio.Future[A]]]:
        """Take the next batch: questions of one kind in order, without cancelled questions."""
        batch: list[tuple[Q, asyncio.Future[A]]] = []
        later: list[tuple[Q, asyncio.Future[A]]] = []
        for question, future in self._queue:
            if future.done():
                continue
            fits = not batch or self._kind_of(question) == self._kind_of(batch[0][0])
            (batch if fits and len(batch) < self._max_batch else later).append((question, future))
        self._queue = later
        return batch

    def _compute(self, questions: Sequence[Q]) -> Sequence[A | Exception]:
        try:
            answers = self._answer_batch(questions)
            if len(answers) != len(questions):
                raise ValueError(
                    f"the model returned {len(answers)} responses to {len(questions)} requests"
                )
            return answers
        except (Exception, SystemExit) as error:
            failure = error if isinstance(error, Exception) else RuntimeError(repr(error))
        alone = len(questions) == 1
        failures = [failure] if alone else []
        del failure  # its traceback keeps the batch's data in memory
        self._recover()
        if alone:
            return failures
        half = len(questions) // 2
        return [*self._compute(questions[:half]), *self._compute(questions[half:])]


class BatchClient(BaseClient):
    """Base class of a model in this process that computes several requests together.

    It computes on one thread. Requests that arrive meanwhile go to `answer` together, at most
    `most` at a time, with scoring and generation in separate batches.
    """

    def __init__(self, *, most: int, name: str) -> None:
        self._loaded = False
        self._batcher: Batcher[Request, Response] = Batcher(
            self._timed_responses,
            most=most,
            name=name,
            kind=lambda request: request.scores,
            recover=self.recover,
        )

    @abstractmethod
    def load(self) -> None:
        """Load the model, on its thread; raise `PreflightError` if that fails."""

    @abstractmethod
    def answer(self, requests: Sequence[Request]) -> Sequence[Answer | Exception]:
        """Return the answers in order, on the model's thread; an exception for a missing answer.

        All requests are to be scored, or none is. If this raises, the batch is bisected until the
        failing request is known, so that no other request loses its answer.
        """

    def recover(self) -> None:
        """Free memory after a batch that failed, on the model's thread."""

    def reason(self, error: Exception) -> str:
        """Return an exception as the failure of its request, or raise it to end the run."""
        return f"{type(error).__name__}: {error}"[:MAX_REASON_CHARACTERS]

    async def check(self) -> None:
        """Load the model."""
        if not self._loaded:
            await self._batcher.call(self._load_once)

    async def generate(self, request: Request) -> Response:
        """Return the response to a request, computed together with concurrent requests."""
        await self.check()
        try:
            return await self._batcher.ask(request)
        except Exception as error:
            if any(mark in repr(error) for mark in FATAL_ERROR_MARKS):
                raise EngineLost(
                    f"{self.model.label} no longer responds: {error!r:.{MAX_REASON_CHARACTERS}}",
                    hint="all responses so far are stored; run the same command again to resume, "
                    "with '--engine ray' to restart failed engines automatically",
                ) from error
            return failed(request, self.reason(error))

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return log-likelihoods, computed together with concurrent requests."""
        return await asyncio.gather(*map(self.generate, requests))

    async def close(self) -> None:
        """Wait for the current batch to end; a subclass frees its model."""
        await self._batcher.close()
        self._loaded = False

    def _load_once(self) -> None:
        if not self._loaded:
            self.load()
            self._loaded = True

    def _timed_responses(self, requests: Sequence[Request]) -> list[Response | Exception]:
        """Return responses in order; each latency is an equal share of the batch's time."""
        started = time.perf_counter()
        answers = self.answer(requests)
        share = (time.perf_counter() - started) / len(requests)
        return [
            answer if isinstance(answer, Exception) else answer.response(request, share)
            for request, answer in zip(requests, answers, strict=True)
        ]
