"""`smollm2` and `gguf:PATH`: GGUF models that llama.cpp runs in this process."""

from __future__ import annotations

import asyncio
import mmap
import os
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from falter.clients.answers import Answer, failed
from falter.clients.base import BaseClient
from falter.clients.constrained import answer_grammar
from falter.clients.quantize import quantised
from falter.clients.settings import ClientSettings, clients, costs_nothing, option_table, require
from falter.records.errors import InvalidValue, PreflightError, refusal
from falter.records.interfaces import Capabilities, Client
from falter.records.types import Model, Request, Response, Usage
from falter.weights.downloads import (
    SMOLLM2,
    cache_dir,
    content_hash,
    find_weights,
    pull_weights,
    require_content,
)

if TYPE_CHECKING:
    from falter.clients.llama_engine import LlamaEngine

MAX_CONCURRENCY = 8
HUB_NAME = re.compile(r"hub/(?P<repository>[\w.-]+/[\w.-]+)/(?P<file>[\w./ -]+\.gguf)")
TEMPLATE_KEY = b"tokenizer.chat_template"
METADATA_BYTES = 1 << 26
"""Bytes at the start of a file that contain the names of its metadata."""


class LlamaClient(BaseClient):
    """A client of a GGUF model in this process: exact option likelihoods, and text.

    There is one engine for each core, at most 8, with one thread each and the same weights. An
    answer depends neither on the engine nor on the engine's earlier work. `locate` returns the file
    and downloads it if needed; it runs on a thread.
    """

    def __init__(
        self,
        settings: ClientSettings,
        model: Model,
        locate: Callable[[], Path],
        *,
        chats: bool = True,
    ) -> None:
        self._threads = max(1, min(MAX_CONCURRENCY, os.cpu_count() or 1, settings.concurrency))
        self.capabilities = Capabilities(
            generates=True,
            scores=True,
            chats=chats,
            lanes=self._threads,
            constrains=True,
            keeps_prefixes=True,
            instead="llama.cpp's built-in chat templates omit tools: serve the file with "
            "llama-server --jinja, and use the model openai:NAME with its base_url",
        )
        self.model = model
        self._locate = locate
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=model.client)
        self._free_engines: asyncio.Queue[LlamaEngine] | None = None
        self._engines: list[LlamaEngine] = []

    async def check(self) -> None:
        """Fetch the weights on first use, and load them."""
        path = await asyncio.to_thread(self._checked_weights)
        from falter.clients.llama_engine import LlamaEngine

        engine = await asyncio.to_thread(LlamaEngine, path)
        self._engines = [engine, *(engine.fork() for _ in range(self._threads - 1))]
        self._free_engines = asyncio.Queue()
        for engine in self._engines:
            self._free_engines.put_nowait(engine)

    def _checked_weights(self) -> Path:
        """Return the weights' file; raise if its hash is not the hash in the model record."""
        path, weights = self._locate(), self.model.weights
        if weights is not None:
            require_content(path, weights, "run the same command again")
        return path

    async def generate(self, request: Request) -> Response:
        sampling = request.sampling

        def write(engine: LlamaEngine) -> Answer:
            written = engine.generate(
                request.messages or request.context,
                max_tokens=sampling.max_tokens,
                temperature=sampling.temperature,
                seed=int(request.key[7:19], 16) if sampling.seed is None else sampling.seed,
                stop=sampling.stop,
                grammar=None if request.answers is None else answer_grammar(request.answers),
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
            # The prompt is computed once for all options.
            read = engine.context_tokens(request.context) + sum(score.tokens for score in scores)
            usage = Usage(prompt_tokens=read)
            return Answer(scores=scores, usage=usage, served_by="llama.cpp")

        return await self._on_engine(request, score)

    async def _on_engine(self, request: Request, work: Callable[[LlamaEngine], Answer]) -> Response:
        """Run work on a free engine; a `ValueError` is the failure of this request alone."""
        if self._free_engines is None:
            await self.check()
        assert self._free_engines is not None
        engine = await self._free_engines.get()
        started = time.perf_counter()
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._pool, work, engine)
        except ValueError as error:
            return failed(request, str(error))
        finally:
            self._free_engines.put_nowait(engine)
        return answer.response(request, time.perf_counter() - started)


@clients.registers("smollm2")
@costs_nothing
def connect_smollm2(settings: ClientSettings) -> Client:
    """The embedded model; smollm2:q4_0 and the like, in another quantisation."""
    option_table("smollm2").read(settings)
    require("The embedded model smollm2", "local", "cyllama")
    # A missing quantisation is made now, since its hash is part of the model record.
    made = quantised(settings.name) if settings.name else None
    weights = content_hash(made) if made else f"sha256:{SMOLLM2.sha256}"
    model = Model(client="smollm2", name=settings.name or "smollm2", weights=weights)
    return LlamaClient(settings, model, lambda: made or find_weights() or pull_weights())


@clients.registers("gguf")
@costs_nothing
def connect_gguf(settings: ClientSettings) -> Client:
    """A GGUF file in this process: gguf:PATH, or gguf:hub/ORG/REPO/FILE.gguf."""
    option_table("gguf").read(settings)
    require("A GGUF model", "local", "cyllama")
    file = find_gguf(settings.name)
    # A file without a template gets the plain prompt. The file's folder is not recorded.
    chats = file.chats and settings.api == "chat"
    model = Model(
        client="gguf",
        name=file.name,
        weights=file.weights,
        options={"api": "chat" if chats else "completions"},
    )
    return LlamaClient(settings, model, file.fetched, chats=chats)


# Files


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFile:
    """A GGUF file on this machine (`path`), or a file of the hub that is not downloaded yet.

    `weights` is the hash of its bytes. `chats` is True if it has a chat template.
    """

    name: str
    weights: str
    chats: bool
    path: Path | None = None
    repository: str = ""
    member: str = ""

    def fetched(self) -> Path:
        """Return the file's path; download the file from the hub if needed."""
        if self.path is not None:
            return self.path
        from huggingface_hub import hf_hub_download

        try:
            path = Path(hf_hub_download(self.repository, self.member)).resolve()
        except Exception as error:
            raise _hub_unreachable(self.name, error) from error
        return path


def find_gguf(name: str) -> GgufFile:
    """Find the file of `gguf:NAME`: a path, a name in the cache, or `hub/ORG/REPO/FILE.gguf`."""
    fetched = cache_dir() / "models" / name
    path = Path(name).expanduser()
    if not path.is_file() and path.name == name and fetched.is_file():
        path = fetched
    if path.is_file():
        path = path.resolve()
        return GgufFile(
            name=path.name, weights=content_hash(path), chats=check_gguf(path), path=path
        )
    found = HUB_NAME.fullmatch(name)
    if found is None:
        raise InvalidValue(
            "model",
            f"gguf:{name}",
            "gguf:PATH of a file, or gguf:hub/ORG/REPO/FILE.gguf of the hub",
            hint="there is no such file, and falter has not downloaded such a model",
        )
    require(f"The hub's file {name}", "hf", "huggingface_hub")
    return _hub_file(name, found["repository"], found["file"])


def check_gguf(path: Path) -> bool:
    """Return True if the file has a chat template. Raise `PreflightError` if it is no GGUF file."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise refusal(PreflightError, "clients.no_gguf", path=path)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            # The names of the metadata are plain bytes at the start of the file.
            return view.find(TEMPLATE_KEY, 0, METADATA_BYTES) >= 0


def _hub_file(name: str, repository: str, member: str) -> GgufFile:
    """Return the file in the hub's cache, or else the hub's metadata of it, not downloaded."""
    from huggingface_hub import HfApi, try_to_load_from_cache

    cached = try_to_load_from_cache(repository, member)
    if isinstance(cached, str):
        path = Path(cached).resolve()
        return GgufFile(name=name, weights=content_hash(path), chats=check_gguf(path), path=path)
    try:
        info = HfApi().model_info(repository, files_metadata=True, timeout=20)
    except Exception as error:
        raise _hub_unreachable(name, error) from error
    template = (getattr(info, "gguf", None) or {}).get("chat_template")
    file = next((f for f in info.siblings or () if f.rfilename == member), None)
    if file is None or file.lfs is None:
        raise refusal(PreflightError, "clients.no_hub_file", repository=repository, member=member)
    return GgufFile(
        name=name,
        weights=f"sha256:{file.lfs.sha256}",
        chats=bool(template),
        repository=repository,
        member=member,
    )


def _hub_unreachable(name: str, error: Exception) -> PreflightError:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return PreflightError(
        f"gguf:{name} is not in the local cache and cannot be downloaded from the hub: "
        f"{reason[:300]}",
        hint="check the name and the network, or name a local file",
    )
