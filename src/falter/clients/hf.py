"""`hf:NAME`: a causal language model of Hugging Face transformers, in this process.

Scores options exactly as lm-evaluation-harness does, with what prompts share read once; writes
text in the tokenizer's chat template.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from falter.clients._base import ClientSettings, clients
from falter.clients._hf_source import Source, find_source, read_options
from falter.core.errors import InvalidValue, PreflightError
from falter.core.interfaces import Capabilities, Client
from falter.core.records import ContinuationScore, Model, Request, Response, Usage
from falter.weights import find_weights, pull_weights

if TYPE_CHECKING:
    from falter.clients._hf_engine import Engine, Scores, Tokens
    from falter.clients._hf_writing import Ask, Written

__all__ = ["HuggingFace", "connect"]

T = TypeVar("T")
Job = tuple[Request, "asyncio.Future[Response]"]
FAILURES = (RuntimeError, ValueError, TypeError, IndexError, KeyError, MemoryError)
"""What a request may run into; anything else is a mistake of ours and ends the run."""
MEGABYTE = 1 << 20
ROOM, ROOM_GPU = 512, 4096
CELLS_A_TOKEN = 16
"""Places of the cache that a batch of texts may take, for each token of `batch_tokens`."""


class HuggingFace:
    """One model, one thread that computes, and a line of requests in front of it.

    Whatever waits is computed together, so that neighbours share what they have in common. No
    answer depends on what it was computed with, but for rounding. What the model cannot take is a
    failure of that request alone.
    """

    def __init__(self, settings: ClientSettings) -> None:
        if not settings.name:
            raise InvalidValue("name", settings.name, "a model, as in 'hf:smollm2' or 'hf:FOLDER'")
        options = read_options(settings.options)
        self.source = find_source(settings.name, options.get("revision"))
        self._device = options.get("device") or _best_device()
        gpu = self._device != "cpu"
        self._dtype = options.get("dtype") or ("bfloat16" if gpu else "float32")
        self._room = options.get("batch_tokens") or (ROOM_GPU if gpu else ROOM)
        self._cache_bytes = options.get("cache_mb", 4096 if gpu else 512) * MEGABYTE
        self._threads = options.get("threads")
        self._trust = bool(options.get("trust_remote_code"))
        self._system = options.get("system")
        chats = self.source.chats and settings.api == "chat"
        self._together = 64 if gpu else 16
        lanes = max(1, min(settings.concurrency, self._together))
        self.capabilities = Capabilities(
            generates=True, scores=True, chats=chats, lanes=lanes, batch=4
        )
        self.model = Model(
            client="hf",
            name=self.source.name,
            weights=self.source.weights,
            options={
                "dtype": self._dtype,
                "api": "chat" if chats else "completions",
                **({"system": self._system} if self._system is not None else {}),
            },
        )
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hf")
        self._waiting: deque[Job] = deque()
        self._server: asyncio.Task[None] | None = None
        self._engine: Engine | None = None

    async def check(self) -> None:
        """Load the model; fetch the embedded one's weights on first use."""
        if self._engine is None:
            loop = asyncio.get_running_loop()
            self._engine = await loop.run_in_executor(self._pool, self._load)

    async def generate(self, request: Request) -> Response:
        return (await self._ask([request]))[0]

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        return await self._ask(requests)

    async def close(self) -> None:
        """Let the model go; what still waits is cancelled."""
        for _, answer in self._waiting:
            answer.cancel()
        self._waiting.clear()
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)
        self._engine = None

    # -- the line ----------------------------------------------------------------------------

    async def _ask(self, requests: Sequence[Request]) -> list[Response]:
        await self.check()
        loop = asyncio.get_running_loop()
        jobs: list[Job] = [(request, loop.create_future()) for request in requests]
        self._waiting.extend(jobs)
        if self._server is None or self._server.done():
            self._server = loop.create_task(self._serve())
        return [await answer for _, answer in jobs]

    async def _serve(self) -> None:
        """Compute what waits, batch by batch; what was asked in the same breath goes together."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        while self._waiting:
            jobs = self._next()
            asked = [request for request, _ in jobs]
            try:
                answers = await loop.run_in_executor(self._pool, self._compute, asked)
            except BaseException as error:
                for _, answer in jobs:
                    if not answer.done():
                        answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            for (_, answer), response in zip(jobs, answers, strict=True):
                if not answer.done():
                    answer.set_result(response)

    def _next(self) -> list[Job]:
        """The requests to compute next: those of the kind of the first, in order."""
        scores = self._waiting[0][0].scores
        most = 4 * self._together if scores else self._together
        jobs: list[Job] = []
        for _ in range(len(self._waiting)):
            job = self._waiting.popleft()
            fits = job[0].scores is scores and len(jobs) < most
            (jobs if fits else self._waiting).append(job)
        return jobs

    # -- on the computing thread -------------------------------------------------------------

    def _compute(self, requests: Sequence[Request]) -> list[Response]:
        started = time.perf_counter()
        answers = self._scores(requests) if requests[0].scores else self._texts(requests)
        latency = (time.perf_counter() - started) / len(requests)
        served_by = self._served_by()
        return [
            replace(answers[r.key], latency=latency, served_by=served_by, received_at=time.time())
            for r in requests
        ]

    def _scores(self, requests: Sequence[Request]) -> dict[str, Response]:
        engine = self.loaded
        asked, answers = _each(requests, lambda r: engine.split(r.context, r.continuations))

        def answer(jobs: Sequence[tuple[Request, Tokens]]) -> list[Response]:
            found = engine.score([tokens for _, tokens in jobs])
            return [
                _scored(r, len(tokens.head), scores)
                for (r, tokens), scores in zip(jobs, found, strict=True)
            ]

        return answers | self._tried(asked, answer)

    def _texts(self, requests: Sequence[Request]) -> dict[str, Response]:
        from falter.clients._hf_writing import write

        engine = self.loaded
        asked, answers = _each(requests, self._asking)

        def answer(jobs: Sequence[tuple[Request, Ask]]) -> list[Response]:
            made = write(engine, [ask.fresh() for _, ask in jobs], self._room * CELLS_A_TOKEN)
            return [_written(r, ask, it) for (r, ask), it in zip(jobs, made, strict=True)]

        return answers | self._tried(asked, answer)

    def _asking(self, request: Request) -> Ask:
        from falter.clients._hf_writing import Ask, prompt_tokens

        sampling, chats = request.sampling, self.capabilities.chats
        plain = "\n\n".join(text for _, text in request.messages) or request.context
        turns = request.messages if chats else ()
        return Ask(
            prompt=tuple(prompt_tokens(self.loaded, turns, plain, self._system)),
            sampling=sampling,
            seed=int(request.key[7:19], 16) if sampling.seed is None else sampling.seed,
        )

    def _tried(
        self,
        jobs: Sequence[tuple[Request, T]],
        answer: Callable[[Sequence[tuple[Request, T]]], list[Response]],
    ) -> dict[str, Response]:
        """All together; when that fails, half by half, until it is known which request fails."""
        if not jobs:
            return {}
        try:
            return {response.key: response for response in answer(jobs)}
        except FAILURES as error:
            reason = _reason(error)
        self.loaded.forget()
        if len(jobs) == 1:
            return {jobs[0][0].key: Response(key=jobs[0][0].key, failure=reason)}
        half = len(jobs) // 2
        return self._tried(jobs[:half], answer) | self._tried(jobs[half:], answer)

    @property
    def loaded(self) -> Engine:
        """The model, once `check` has loaded it."""
        assert self._engine is not None
        return self._engine

    def _load(self) -> Engine:
        source = self.source
        if source.path is None:
            pull_weights(say=lambda text: print(text, file=sys.stderr))
            source = replace(source, path=str(_found().parent))
        try:
            with _quiet(), _hushed(source.gguf is not None):
                engine = self._opened(source)
        except (OSError, ValueError, RuntimeError, ImportError, KeyError, MemoryError) as error:
            raise PreflightError(
                f"hf:{source.name} cannot be loaded: {_reason(error)}",
                hint="'falter doctor' says what is installed; a folder needs its weights, its "
                "config.json and its tokenizer",
            ) from error
        if self.capabilities.chats and not engine.tokenizer.chat_template:
            raise PreflightError(
                f"The tokenizer of hf:{source.name} has no chat template",
                hint="set api: completions, and the prompt is given as plain text",
            )
        return engine

    def _opened(self, source: Source) -> Engine:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from falter.clients._hf_engine import Engine

        if self._threads:
            torch.set_num_threads(self._threads)
        where: dict[str, Any] = {"trust_remote_code": self._trust}
        where |= {"gguf_file": source.gguf} if source.gguf else {}
        where |= {"revision": source.revision} if source.revision else {}
        tokenizer = AutoTokenizer.from_pretrained(source.path, **where)
        model = AutoModelForCausalLM.from_pretrained(
            source.path, dtype=getattr(torch, self._dtype), **where
        )
        return Engine(
            model.to(self._device), tokenizer, room=self._room, cache_bytes=self._cache_bytes
        )

    def _served_by(self) -> str:
        import transformers

        shared = "" if self.loaded.shares else ", nothing shared"
        return f"transformers {transformers.__version__}{shared}"


def _each(
    requests: Sequence[Request], prepare: Callable[[Request], T]
) -> tuple[list[tuple[Request, T]], dict[str, Response]]:
    """Every request with what is prepared for it, or with the reason why it cannot be asked."""
    ready: list[tuple[Request, T]] = []
    failed: dict[str, Response] = {}
    for request in requests:
        try:
            ready.append((request, prepare(request)))
        except FAILURES as error:
            failed[request.key] = Response(key=request.key, failure=_reason(error))
    return ready, failed


def _scored(request: Request, head: int, found: Sequence[Scores]) -> Response:
    """A request's scores; a failure when one is not a number."""
    scores = tuple(
        ContinuationScore(
            logprob=sum(score for score, _ in tokens),
            tokens=len(tokens),
            greedy=all(likeliest for _, likeliest in tokens),
        )
        for tokens in found
    )
    if not all(abs(score.logprob) < float("inf") for score in scores):
        reason = "the model's scores are not numbers; try options: {dtype: float32}"
        return Response(key=request.key, failure=reason)
    read = head + sum(score.tokens for score in scores)
    return Response(key=request.key, scores=scores, usage=Usage(prompt_tokens=read))


def _written(request: Request, ask: Ask, made: Written) -> Response:
    return Response(
        key=request.key,
        text=made.text,
        finish_reason=made.finish_reason,
        usage=Usage(prompt_tokens=len(ask.prompt), completion_tokens=made.tokens),
    )


def _reason(error: BaseException) -> str:
    """An error in one line; running out of memory with what would help."""
    line = str(error).strip().partition("\n")[0][:400] or type(error).__name__
    memory = type(error).__name__ in ("OutOfMemoryError", "MemoryError") or "not enough mem" in line
    return f"out of memory ({line}); a smaller options.batch_tokens needs less" if memory else line


def _best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _found() -> Any:
    found = find_weights()
    assert found is not None
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Loading without progress bars and advice on our terminal."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _hushed(gguf: bool) -> contextlib.AbstractContextManager[object]:
    """Reading a GGUF file draws a progress bar that has no switch."""
    return contextlib.redirect_stderr(io.StringIO()) if gguf else contextlib.nullcontext()


@clients.registers("hf")
def connect(settings: ClientSettings) -> Client:
    """A Hugging Face model in this process: hf:smollm2, hf:FOLDER, hf:FILE.gguf, hf:OWNER/NAME."""
    return HuggingFace(settings)
