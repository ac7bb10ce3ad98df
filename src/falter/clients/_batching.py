"""One thread that answers in batches: for engines that are fast when asked many things at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

__all__ = ["Batcher"]

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


class Batcher(Generic[Q, A]):
    """Collects what is asked while the engine is busy, and hands it over together.

    `answer` takes at most `most` questions and returns their answers in order, an exception for
    one without. When it raises, each question of that batch is asked again by itself, so that
    one which cannot be answered costs no other its answer.
    """

    def __init__(
        self, answer: Callable[[Sequence[Q]], Sequence[A | Exception]], *, most: int, name: str
    ) -> None:
        self._answer = answer
        self._most = most
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
        while self._waiting:
            taken, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            wanted = [(q, future) for q, future in taken if not future.done()]
            outcomes = await self.call(partial(self._answers, [q for q, _ in wanted]))
            for (_, future), outcome in zip(wanted, outcomes, strict=True):
                if future.done():
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    def _answers(self, questions: Sequence[Q]) -> Sequence[A | Exception]:
        try:
            answers = self._answer(questions)
            if len(answers) != len(questions):
                raise ValueError(f"{len(answers)} answers to {len(questions)} questions")
        except (Exception, SystemExit) as error:
            if len(questions) == 1:
                return [error if isinstance(error, Exception) else RuntimeError(repr(error))]
            return [outcome for question in questions for outcome in self._answers([question])]
        return answers
