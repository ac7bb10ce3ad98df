"""Run a model in several engine processes and survive the death of any of them.

A `Host`, which an entry point names, starts and ends the processes; this module does not know how.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from falter.clients.answers import failed
from falter.clients.base import MAX_REASON_CHARACTERS, BaseClient
from falter.records.errors import EngineLost, FalterError, RunStopped
from falter.records.interfaces import Client
from falter.records.registry import Registry
from falter.records.types import Request, Response

MIN_CHUNK, MAX_CHUNK = 8, 512  # requests in the first chunk, and in the largest chunk
# A chunk is stored when its last response has arrived, so a kill loses some seconds of work.
FAST_CHUNK_SECONDS, SLOW_CHUNK_SECONDS = 2.0, 15.0
"""Seconds: a faster chunk doubles the size of the next chunk, a slower chunk halves it."""
# Bisecting 512 requests down to one costs eleven engines: the chunk fails twice as a whole, and
# then once in each of nine halvings.
MAX_ENGINE_LOSSES = 16
"""Engines that may end in a row, for each engine that the host runs, before the run gives up."""


# The memory of a GPU is not free at once when the process that held it has ended.
RESTART_PAUSES = (2.0, 10.0)
"""Seconds between the attempts to replace an engine that ended."""


class Engine(Protocol):
    """A client that runs in a separate process, with its model loaded."""

    async def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return all responses in order; raise `EngineLost` if the process ended or must end."""
        ...

    async def stop(self) -> None:
        """End the process, whatever its state."""
        ...


class Host(Protocol):
    """A runner of engines: it starts and ends their processes."""

    async def open(self) -> int:
        """Prepare the host and return the number of engines to start."""
        ...

    async def start(self) -> Engine:
        """Start an engine; raise `PreflightError` if its model cannot be loaded."""
        ...

    async def close(self) -> None:
        """End all processes that were started."""
        ...


hosts: Registry[Callable[..., Host]] = Registry("engine", "falter.engines")
"""Functions that return a host for the name, settings and record of a model, the `count` of engines
and the `gpus` of each engine."""


class EngineClient(BaseClient):
    """A client whose responses come from engines in other processes; it has their client's model.

    Each chunk goes to whichever engine is free. If an engine process dies on a chunk, it is
    replaced and the chunk is retried unchanged, because the machine may be at fault. If an engine
    dies on it again, the chunk is bisected until the fatal request is isolated. Only that request
    is recorded as failed.
    """

    def __init__(self, client: Client, host: Host) -> None:
        self.model = client.model
        self._key_variable = getattr(client, "key_variable", None)
        self.chunk = MIN_CHUNK
        self._abilities = client.capabilities
        self.capabilities = replace(self._abilities, lanes=1, batch=1, keeps_prefixes=False)
        self._host = host
        self._engines: set[Engine] = set()
        self._free_engines: asyncio.Queue[Engine | FalterError] = asyncio.Queue()
        self._starting: set[asyncio.Task[None]] = set()
        self._max_losses = MAX_ENGINE_LOSSES
        self._losses = 0
        """Number of engines that have ended since the last answer."""

    @property
    def key_variable(self) -> str | None:
        """The key variable of the engines' client."""
        return self._key_variable

    async def check(self) -> None:
        """Start all engines at once; each loads its model."""
        if self._engines:
            return
        count = await self._host.open()
        starting = [asyncio.create_task(self._host.start()) for _ in range(count)]
        try:
            for engine in await asyncio.gather(*starting):
                self._add_engine(engine)
        finally:
            for task in starting:
                task.cancel()
        self._max_losses = MAX_ENGINE_LOSSES * count
        # Two chunks per engine: one is computed while the next one is prepared.
        self.capabilities = replace(self.capabilities, lanes=2 * count)

    async def generate(self, request: Request) -> Response:
        """Return the response to a request from one of the engines."""
        (response,) = await self.answer_many([request])
        return response

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return log-likelihoods from one of the engines."""
        return await self.answer_many(requests)

    async def answer_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the responses to a chunk in order; engines that end are replaced.

        Raise `RunStopped` if too many engines end in a row, or if none is left.
        """
        return await self._answer_chunk(requests, before=0)

    async def close(self) -> None:
        """End all engines, also those that are still starting."""
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(*(engine.stop() for engine in self._engines), return_exceptions=True)
        self._engines.clear()
        await self._host.close()

    async def _answer_chunk(self, requests: Sequence[Request], *, before: int) -> list[Response]:
        """Return the responses to requests on which `before` engines (0 or 1) have ended."""
        engine = await self._free_engine()
        started = time.monotonic()
        try:
            responses = list(await engine.answer(requests))
        except EngineLost as error:
            await self._replace(engine, error)
            reason = error.message
        except BaseException:
            self._free_engines.put_nowait(engine)
            raise
        else:
            self._free_engines.put_nowait(engine)
            self._losses = 0
            # The time of a short chunk (a plan's last, or half of a bisected one) is no measure.
            if len(requests) >= self.chunk:
                self.chunk = next_chunk(self.chunk, time.monotonic() - started)
            return responses
        if before == 0:
            return await self._answer_chunk(requests, before=1)
        if len(requests) == 1:
            return [
                failed(
                    requests[0], f"this request ended the engine: {reason}"[:MAX_REASON_CHARACTERS]
                )
            ]
        half = len(requests) // 2
        first = await self._answer_chunk(requests[:half], before=1)
        return first + await self._answer_chunk(requests[half:], before=1)

    async def _free_engine(self) -> Engine:
        """Wait for a free engine; raise if no engine will become free."""
        engine = await self._free_engines.get()
        if isinstance(engine, FalterError):
            self._free_engines.put_nowait(engine)  # for all other tasks that wait
            raise engine
        return engine

    def _add_engine(self, engine: Engine) -> None:
        self._engines.add(engine)
        self._free_engines.put_nowait(engine)

    async def _replace(self, engine: Engine, error: EngineLost) -> None:
        """End a lost engine and begin to start another one, or raise `RunStopped`.

        The run stops after `MAX_ENGINE_LOSSES` losses in a row for each engine of the host.
        """
        self._engines.discard(engine)
        await engine.stop()
        self._losses += 1
        if self._losses >= self._max_losses:
            raise RunStopped(
                f"{self.model.label}: {self._losses} engines ended in a row without a response; "
                f"the last error was: {error.message}",
                hint="run the same command without --engine to see the model's own error",
            )
        task = asyncio.create_task(self._start_engine())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start_engine(self) -> None:
        """Start one more engine. If that fails and no other engine is left, end the run."""
        for pause in (*RESTART_PAUSES, None):
            try:
                return self._add_engine(await self._host.start())
            except Exception as error:
                reason = error.message if isinstance(error, FalterError) else repr(error)
            if pause is not None:  # the memory of the lost engine may not be free yet
                await asyncio.sleep(pause)
        # `_starting` still holds this task: with 1 in it, no other task is about to add an engine,
        # and workers would wait for ever.
        if not self._engines and len(self._starting) == 1:
            stopped = RunStopped(
                f"{self.model.label}: no engine is left, and none can be started: {reason}",
                hint="all responses so far are stored; run the same command again to resume",
            )
            self._free_engines.put_nowait(stopped)
        return None


def next_chunk(chunk: int, seconds: float) -> int:
    """Return the size of the next chunk, given the seconds that the last full chunk took.

    Large chunks are cheap to hand over. Small chunks are stored sooner, and fewer requests are
    lost if an engine ends.
    """
    if seconds < FAST_CHUNK_SECONDS:
        return min(MAX_CHUNK, 2 * chunk)
    return max(1, chunk // 2) if seconds > SLOW_CHUNK_SECONDS else chunk


async def answer_chunk(
    client: Client, requests: Sequence[Request], width: int
) -> Sequence[Response]:
    """Return all responses of a client in this process, in the requests' order.

    At most `width` calls run at a time.
    """
    capabilities = client.capabilities
    order = list(range(len(requests)))
    if capabilities.keeps_prefixes:  # prompts with a common prefix follow each other
        order.sort(key=lambda n: (requests[n].messages, requests[n].context))
    scored = [n for n in order if requests[n].scores]
    steps = [[n] for n in order if not requests[n].scores]
    steps += [scored[n : n + capabilities.batch] for n in range(0, len(scored), capabilities.batch)]
    answers: dict[int, Response] = {}
    waiting = iter(steps)

    async def work() -> None:
        for step in waiting:
            asked = [requests[n] for n in step]
            if asked[0].scores:
                responses = await client.score_many(asked)
            else:
                responses = [await client.generate(asked[0])]
            answers.update(zip(step, responses, strict=True))

    workers = [asyncio.create_task(work()) for _ in range(min(width, len(steps)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
    return [answers[n] for n in range(len(requests))]
