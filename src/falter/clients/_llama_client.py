"""A GGUF model in this process by llama.cpp, on threads of its own: a pool of engines."""

from __future__ import annotations

import asyncio
import json
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from falter.clients._answers import Answer, failed
from falter.clients._client import BaseClient
from falter.clients._settings import ClientSettings
from falter.core.interfaces import Capabilities
from falter.core.records import Model, Request, Response, Usage

if TYPE_CHECKING:
    from falter.clients._llama import LlamaEngine

__all__ = ["LlamaClient"]

MOST_LANES = 8


class LlamaClient(BaseClient):
    """Exact option likelihoods, and text.

    One engine a core, one thread an engine, all on the same weights. An answer does not depend on
    which engine gives it, nor on what that engine did before. A subclass says where the file is.
    """

    def __init__(self, settings: ClientSettings, model: Model, *, chats: bool = True) -> None:
        self._lanes = max(1, min(MOST_LANES, os.cpu_count() or 1, settings.concurrency))
        self.capabilities = Capabilities(
            generates=True,
            scores=True,
            chats=chats,
            lanes=self._lanes,
            constrains=True,
            keeps_prefixes=True,
        )
        self.model = model
        self._pool = ThreadPoolExecutor(self._lanes, thread_name_prefix=model.client)
        self._free: asyncio.Queue[LlamaEngine] | None = None
        self._engines: list[LlamaEngine] = []

    @abstractmethod
    def locate(self) -> Path:
        """The file, fetched where it is not there yet; runs on a thread."""

    async def check(self) -> None:
        """Fetch the weights on first use, and load them."""
        path = await asyncio.to_thread(self.locate)
        from falter.clients._llama import LlamaEngine

        engine = await asyncio.to_thread(LlamaEngine, path)
        self._engines = [engine, *(engine.fork() for _ in range(self._lanes - 1))]
        self._free = asyncio.Queue()
        for engine in self._engines:
            self._free.put_nowait(engine)

    async def generate(self, request: Request) -> Response:
        sampling = request.sampling

        def write(engine: LlamaEngine) -> Answer:
            written = engine.generate(
                request.messages or request.context,
                max_tokens=sampling.max_tokens,
                temperature=sampling.temperature,
                seed=int(request.key[7:19], 16) if sampling.seed is None else sampling.seed,
                stop=sampling.stop,
                only=[json.dumps({"answer": answer}) for answer in request.answers],
            )
            usage = Usage(
                prompt_tokens=written.prompt_tokens, completion_tokens=written.completion_tokens
            )
            return Answer(
                text=written.text,
                finish_reason=written.finish_reason,
                usage=usage,
                served_by="llama.cpp",
            )

        return await self._on_engine(request, write)

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        return [await self._score(request) for request in requests]

    async def close(self) -> None:
        """Free the weights."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for engine in reversed(self._engines):
            engine.close()
        self._engines = []

    async def _score(self, request: Request) -> Response:
        def score(engine: LlamaEngine) -> Answer:
            scores = engine.score(request.context, request.continuations)
            usage = Usage(prompt_tokens=sum(score.tokens for score in scores))
            return Answer(scores=scores, usage=usage, served_by="llama.cpp")

        return await self._on_engine(request, score)

    async def _on_engine(self, request: Request, work: Callable[[LlamaEngine], Answer]) -> Response:
        """Run on a free engine. What the model cannot take is a failure of this request alone."""
        if self._free is None:
            await self.check()
        assert self._free is not None
        engine = await self._free.get()
        started = time.perf_counter()
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._pool, work, engine)
        except ValueError as error:
            return failed(request, str(error))
        finally:
            self._free.put_nowait(engine)
        return answer.response(request, time.perf_counter() - started)
