"""Base classes of clients: any, one behind HTTP, one that computes in batches."""

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

LONGEST_REASON = 500
LOST = ("CUDA error", "HIP error", "device-side assert", "EngineDeadError")
"""Words in errors after which an engine answers nothing more in this process."""


class BaseClient(ABC):
    """The least that a client has: `model`, `capabilities` and `generate`.

    `model` says who answers: it enters the key of every request, so it holds whatever changes
    answers, and no key. What goes wrong with one request is a response with `failure` set; what is
    raised ends the run.
    """

    model: Model
    capabilities: Capabilities

    async def check(self) -> None:  # noqa: B027 (most have nothing to check)
        """Raise `PreflightError` when the first request could only fail; nothing is paid yet."""

    @abstractmethod
    async def generate(self, request: Request) -> Response:
        """The answer to `request.messages`, or to the plain text `request.context`."""

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """The log-likelihood of every continuation after its context, a response a request."""
        raise refusal(EndpointError, "clients.no_likelihoods", model=self.model.label)

    @property
    def address(self) -> str | None:
        """The address that requests go to; None if they stay in this process."""
        return self.model.base_url

    @property
    def key_variable(self) -> str | None:
        """The name of the environment variable whose value goes there; None if none does."""
        return None

    @property
    def adapted(self) -> Mapping[str, str]:
        """Fields that the client renamed or dropped for this server, each with its change."""
        return {}

    async def close(self) -> None:  # noqa: B027 (or to close)
        """Let go of connections and memory."""


class HttpClient(BaseClient):
    """A model behind a `Transport`."""

    transport: Transport

    async def check(self) -> None:
        """Ask for the model list: free of charge, and it says if the first request can work."""
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
    """Collects what is asked while the engine is busy, and hands it over together.

    `answer` takes at most `most` questions, all of one `kind`, and returns their answers in order,
    an exception for one without. When it raises, both halves of that batch are asked again, and
    so on, so that one question which cannot be answered costs no other its answer; `recover` is
    called in between. Everything runs on one thread of the given name.
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
        self._answer = answer
        self._most = most
        self._kind = kind
        self._recover = recover
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """The answer to one question, or the exception that it raised."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return await future

    async def call(self, work: Callable[[], T]) -> T:
        """Something else on the engine's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def close(self) -> None:
        """Let the batch that is under way end, and drop the rest."""
        if self._serving is not None:
            self._serving.cancel()
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def _serve(self) -> None:
        await asyncio.sleep(0)  # whoever asks in the same moment comes along
        while batch := self._next():
            outcomes: Sequence[A | Exception]
            try:
                outcomes = await self.call(partial(self._outcomes, [q for q, _ in batch]))
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

    def _next(self) -> list[tuple[Q, asyncio.Future[A]]]:
        """The next batch: what is of the first question's kind, in order; nobody's is dropped."""
        batch: list[tuple[Q, asyncio.Future[A]]] = []
        later: list[tuple[Q, asyncio.Future[A]]] = []
        for question, future in self._waiting:
            if future.done():
                continue
            fits = not batch or self._kind(question) == self._kind(batch[0][0])
            (batch if fits and len(batch) < self._most else later).append((question, future))
        self._waiting = later
        return batch

    def _outcomes(self, questions: Sequence[Q]) -> Sequence[A | Exception]:
        try:
            answers = self._answer(questions)
            if len(answers) != len(questions):
                raise ValueError(
                    f"the model returned {len(answers)} responses to {len(questions)} requests"
                )
            return answers
        except (Exception, SystemExit) as error:
            failure = error if isinstance(error, Exception) else RuntimeError(repr(error))
        alone = len(questions) == 1
        failures = [failure] if alone else []
        del failure  # and with its traceback what the batch held in memory
        self._recover()
        if alone:
            return failures
        half = len(questions) // 2
        return [*self._outcomes(questions[:half]), *self._outcomes(questions[half:])]


class BatchClient(BaseClient):
    """A model in this process that is fast when asked many things at once.

    It computes on one thread of its own. Whatever is asked meanwhile goes to `answer` together,
    scoring and writing apart, `most` requests at a time.
    """

    def __init__(self, *, most: int, name: str) -> None:
        self._loaded = False
        self._batcher: Batcher[Request, Response] = Batcher(
            self._responses,
            most=most,
            name=name,
            kind=lambda request: request.scores,
            recover=self.recover,
        )

    @abstractmethod
    def load(self) -> None:
        """Load the model, on its thread; `PreflightError` when that cannot be done."""

    @abstractmethod
    def answer(self, requests: Sequence[Request]) -> Sequence[Answer | Exception]:
        """The answers in order, on the model's thread; an exception where there is none.

        All requests are to be scored, or none is. What is raised costs no other request its
        answer: the batch is halved until it is known whose failure it is.
        """

    def recover(self) -> None:
        """Give back memory after a batch that failed, on the model's thread."""

    def reason(self, error: Exception) -> str:
        """An exception as the failure of its request; raise it where it should end the run."""
        return f"{type(error).__name__}: {error}"[:LONGEST_REASON]

    async def check(self) -> None:
        """Load the model."""
        if not self._loaded:
            await self._batcher.call(self._load_once)

    async def generate(self, request: Request) -> Response:
        """One answer, in a batch with whatever else is asked at the time."""
        await self.check()
        try:
            return await self._batcher.ask(request)
        except Exception as error:
            if any(mark in repr(error) for mark in LOST):
                raise EngineLost(
                    f"{self.model.label} no longer responds: {error!r:.{LONGEST_REASON}}",
                    hint="all responses so far are stored; run the same command again to resume, "
                    "with '--engine ray' to restart failed engines automatically",
                ) from error
            return failed(request, self.reason(error))

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Log-likelihoods, in a batch with whatever else is asked at the time."""
        return await asyncio.gather(*map(self.generate, requests))

    async def close(self) -> None:
        """Let the batch under way end, and the model go."""
        await self._batcher.close()
        self._loaded = False

    def _load_once(self) -> None:
        if not self._loaded:
            self.load()
            self._loaded = True

    def _responses(self, requests: Sequence[Request]) -> list[Response | Exception]:
        """Each request of a batch took its share of the batch's time."""
        started = time.perf_counter()
        answers = self.answer(requests)
        share = (time.perf_counter() - started) / len(requests)
        return [
            answer if isinstance(answer, Exception) else answer.response(request, share)
            for request, answer in zip(requests, answers, strict=True)
        ]
