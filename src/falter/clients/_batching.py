"""One thread that answers in batches: for engines that are fast when asked many things at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

__all__ = ["Batcher"]

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


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
                raise ValueError(f"{len(answers)} answers to {len(questions)} questions")
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
