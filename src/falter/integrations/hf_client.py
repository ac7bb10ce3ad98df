"""`hf:NAME`: a language model of Hugging Face transformers, in this process.

Options are scored exactly as in lm-evaluation-harness, but common prefixes of prompts are computed
once. Text is generated with the tokenizer's chat template. The model's configuration decides if it
runs as a causal model or as an encoder-decoder model (T5, BART).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from falter.clients.answers import Answer
from falter.clients.base import BatchClient
from falter.clients.llama import check_gguf
from falter.clients.settings import ClientSettings, OptionTable, clients, costs_nothing, require
from falter.records.errors import InvalidValue, PreflightError, refusal
from falter.records.interfaces import Capabilities, Client
from falter.records.types import ContinuationScore, Model, Request, Usage
from falter.weights.downloads import SMOLLM2, content_hash, find_weights, pull_weights

if TYPE_CHECKING:
    from falter.integrations.hf_engine import Engine, Scores, Tokens
    from falter.integrations.hf_writing import Ask

T = TypeVar("T")
FAILURES = (RuntimeError, ValueError, TypeError, IndexError, KeyError, MemoryError)
"""Errors that a single request may cause; any other error is a bug in falter and ends the run."""
OPTIONS = OptionTable.of("hf")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
MODEL_FILE_SUFFIXES = (
    ".safetensors",
    ".bin",
    ".json",
    ".jinja",
    ".model",
    ".tiktoken",
    ".txt",
    ".py",
)
MEGABYTE = 1 << 20
BATCH_TOKENS, BATCH_TOKENS_GPU = 512, 4096
CELLS_PER_TOKEN = 16
"""Cache positions that a batch of texts may take for each token of `batch_tokens`."""


class HuggingFace(BatchClient):
    """Client of one model, which computes on one thread.

    Waiting requests are computed together, so that they share common prefixes. An answer does not
    depend on the other requests, except for rounding. A request that the model cannot take fails
    alone.
    """

    def __init__(self, settings: ClientSettings) -> None:
        options = OPTIONS.read(settings)
        self.source = find_source(settings.name, options["revision"])
        self._device = options["device"] or _best_device()
        gpu = self._device != "cpu"
        together = 64 if gpu else 16
        super().__init__(most=4 * together, name="hf")
        self._dtype = options["dtype"] or ("bfloat16" if gpu else "float32")
        self._batch_tokens = options["batch_tokens"] or (BATCH_TOKENS_GPU if gpu else BATCH_TOKENS)
        megabytes = (4096 if gpu else 512) if options["cache_mb"] is None else options["cache_mb"]
        self._cache_bytes = megabytes * MEGABYTE
        self._threads = options["threads"]
        self._trusts_code = options["trust_remote_code"]
        self._system = options["system"]
        chats = self.source.chats and settings.api == "chat"
        lanes = min(settings.concurrency, together)
        self.capabilities = Capabilities(
            generates=True, scores=True, chats=chats, lanes=lanes, batch=4, tools=chats
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
        self._engine: Engine | None = None

    async def close(self) -> None:
        """Release the model and cancel waiting requests."""
        await super().close()
        self._engine = None

    def reason(self, error: Exception) -> str:
        """Return the model's error as text. Raise an error that is a bug in falter."""
        if not isinstance(error, FAILURES):
            raise error
        return _reason(error)

    # -- on the computing thread -------------------------------------------------------------

    def answer(self, requests: Sequence[Request]) -> Sequence[Answer | Exception]:
        """Answer the requests together; one that cannot be prepared gets its error instead."""
        engine = self.loaded
        if requests[0].scores:
            return _answer_each(
                requests, lambda r: engine.split(r.context, r.continuations), self._score
            )
        return _answer_each(requests, self._ask_for, self._write)

    def recover(self) -> None:
        """Free the memory of cached prefixes."""
        self.loaded.forget()

    def _score(self, asked: Sequence[Tokens]) -> list[Answer | Exception]:
        scores, served_by = self.loaded.score(asked), self._served_by()
        return [_checked_answer(*each, served_by) for each in zip(asked, scores, strict=True)]

    def _write(self, asks: Sequence[Ask]) -> list[Answer | Exception]:
        from falter.integrations.hf_writing import write

        engine, cells = self.loaded, self._batch_tokens * CELLS_PER_TOKEN
        return [replace(a, served_by=self._served_by()) for a in write(engine, asks, cells)]

    def _ask_for(self, request: Request) -> Ask:
        from falter.integrations.hf_writing import Ask, prompt_tokens

        sampling, chats = request.sampling, self.capabilities.chats
        plain = "\n\n".join(text for _, text in request.messages) or request.context
        turns = request.messages if chats else ()
        return Ask(
            prompt=tuple(prompt_tokens(self.loaded, turns, plain, self._system, request.tools)),
            sampling=sampling,
            seed=int(request.key[7:19], 16) if sampling.seed is None else sampling.seed,
        )

    @property
    def loaded(self) -> Engine:
        """The engine with the model, once `check` has loaded it."""
        assert self._engine is not None
        return self._engine

    def load(self) -> None:
        """Load the model; the embedded model's weights are downloaded on first use.

        Raise `PreflightError` if it cannot be loaded or has no chat template for the chat API.
        """
        source = self.source
        if source.path is None:
            path = find_weights() or pull_weights(say=lambda text: print(text, file=sys.stderr))
            source = replace(source, path=str(path.parent))
        try:
            with _without_progress_bars(), _without_stderr(source.gguf is not None):
                engine = self._open_engine(source)
        except (OSError, ValueError, RuntimeError, ImportError, KeyError, MemoryError) as error:
            raise PreflightError(
                f"hf:{source.name} cannot be loaded: {_reason(error)}",
                hint="check the installed packages with 'falter doctor'; a folder needs weights, "
                "config.json and a tokenizer",
            ) from error
        if self.capabilities.chats and not engine.tokenizer.chat_template:
            raise PreflightError(
                f"The tokenizer of hf:{source.name} has no chat template",
                hint="set api: completions to send the prompt as plain text",
            )
        self._engine = engine

    def _open_engine(self, source: Source) -> Engine:
        import torch
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForSeq2SeqLM,
            AutoTokenizer,
        )

        from falter.integrations.hf_engine import CausalEngine
        from falter.integrations.hf_writing import Seq2SeqEngine

        if self._threads:
            torch.set_num_threads(self._threads)
        where: dict[str, Any] = {"trust_remote_code": self._trusts_code}
        where |= {"gguf_file": source.gguf} if source.gguf else {}
        where |= {"revision": source.revision} if source.revision else {}
        tokenizer = AutoTokenizer.from_pretrained(source.path, **where)
        # A GGUF file is read whole for its configuration, and holds a causal model.
        encodes = False
        if source.gguf is None:
            encodes = AutoConfig.from_pretrained(source.path, **where).is_encoder_decoder
        kind = AutoModelForSeq2SeqLM if encodes else AutoModelForCausalLM
        model = kind.from_pretrained(source.path, dtype=getattr(torch, self._dtype), **where)
        model = model.to(self._device)
        if encodes:
            return Seq2SeqEngine(model, tokenizer, room=self._batch_tokens)
        return CausalEngine(
            model, tokenizer, room=self._batch_tokens, cache_bytes=self._cache_bytes
        )

    def _served_by(self) -> str:
        import transformers

        shared = "" if self.loaded.shares else ", nothing shared"
        return f"transformers {transformers.__version__}{shared}"


def _answer_each(
    requests: Sequence[Request],
    prepare: Callable[[Request], T],
    answer: Callable[[Sequence[T]], Sequence[Answer | Exception]],
) -> list[Answer | Exception]:
    """Answer the requests that can be prepared; every other request gets its error instead."""
    prepared: list[T | Exception] = []
    for request in requests:
        try:
            prepared.append(prepare(request))
        except FAILURES as error:
            prepared.append(error)
    ready = [asked for asked in prepared if not isinstance(asked, Exception)]
    answers = iter(answer(ready) if ready else ())
    return [asked if isinstance(asked, Exception) else next(answers) for asked in prepared]


def _checked_answer(asked: Tokens, scores: Sequence[Scores], served_by: str) -> Answer | Exception:
    """Return a request's scores, or a `ValueError` if one is not finite."""
    sums = tuple(
        ContinuationScore(
            logprob=sum(score for score, _ in tokens),
            tokens=len(tokens),
            greedy=all(likeliest for _, likeliest in tokens),
        )
        for tokens in scores
    )
    if not all(abs(score.logprob) < float("inf") for score in sums):
        return ValueError("the model's logits are not numbers; set options: {dtype: float32}")
    read = len(asked.head) + sum(score.tokens for score in sums)
    return Answer(scores=sums, usage=Usage(prompt_tokens=read), served_by=served_by)


def _reason(error: BaseException) -> str:
    """Return an error in one line; for a lack of memory, with advice."""
    line = str(error).strip().partition("\n")[0][:400] or type(error).__name__
    memory = type(error).__name__ in ("OutOfMemoryError", "MemoryError") or "not enough mem" in line
    return f"out of memory ({line}); set a smaller options.batch_tokens" if memory else line


def _best_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


@contextlib.contextmanager
def _without_progress_bars() -> Iterator[None]:
    """Suppress transformers' progress bars and advice while a model is loaded."""
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


def _without_stderr(gguf: bool) -> contextlib.AbstractContextManager[object]:
    """Suppress stderr while a GGUF file is read, whose progress bar has no switch."""
    return contextlib.redirect_stderr(io.StringIO()) if gguf else contextlib.nullcontext()


@clients.registers("hf")
@costs_nothing
def connect(settings: ClientSettings) -> Client:
    """A Hugging Face model in this process: hf:smollm2, hf:FOLDER, hf:FILE.gguf, hf:OWNER/NAME."""
    return HuggingFace(settings)


# The location and the identity of a model, found without loading it


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of weights: a folder or hub id with a revision, or a GGUF file (`gguf`) in a folder.

    `weights` is the hash or commit that identifies the weights. `path` is None for the embedded
    model if it is not downloaded yet.
    """

    name: str
    path: str | None
    weights: str
    chats: bool
    gguf: str | None = None
    revision: str | None = None


def _require(*, gguf: bool) -> None:
    modules = ("torch", "transformers") + (("gguf", "accelerate") if gguf else ())
    require("A Hugging Face model in this process", "hf", *modules)


def find_source(name: str, revision: str | None) -> Source:
    """Return the source for `hf:NAME`: `smollm2`, a folder, a `.gguf` file, a hub model."""
    if name == "smollm2":
        _refuse_revision(revision)
        return _embedded_source()
    path = Path(name).expanduser()
    if path.is_file() and path.suffix == ".gguf":
        _refuse_revision(revision)
        return _file_source(path)
    if path.is_dir():
        _refuse_revision(revision)
        return _folder_source(path)
    if HUB_ID.fullmatch(name) and not name.endswith(".gguf"):
        return _hub_source(name, revision)
    raise InvalidValue(
        "model",
        f"hf:{name}",
        "hf:smollm2, hf:FOLDER, hf:FILE.gguf or hf:OWNER/NAME of the hub",
        hint="there is no such file or folder here",
    )


def _refuse_revision(revision: str | None) -> None:
    if revision is not None:
        raise InvalidValue("options.revision", revision, "nothing: only the hub has revisions")


def _embedded_source() -> Source:
    _require(gguf=True)
    weights = find_weights()
    return Source(
        name="smollm2",
        path=None if weights is None else str(weights.parent),
        gguf=SMOLLM2.file,
        weights=f"sha256:{SMOLLM2.sha256}",
        chats=True,
    )


def _file_source(path: Path) -> Source:
    _require(gguf=True)
    path = path.resolve()
    chats = check_gguf(path)
    return Source(
        name=path.name,
        path=str(path.parent),
        gguf=path.name,
        weights=content_hash(path),
        chats=chats,
    )


def _folder_source(path: Path) -> Source:
    _require(gguf=False)
    path = path.resolve()
    if not (path / "config.json").is_file():
        raise refusal(PreflightError, "integrations.no_config", path=path)
    lines = [
        f"{file.name} {content_hash(file).removeprefix('sha256:')}\n"
        for file in sorted(path.iterdir())
        if file.is_file() and file.suffix in MODEL_FILE_SUFFIXES
    ]
    return Source(
        name=path.name,
        path=str(path),
        weights=f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}",
        chats=_has_template(path),
    )


def _hub_source(name: str, revision: str | None) -> Source:
    """Return a hub model at one commit: the cached commit, or else the commit on the hub."""
    _require(gguf=False)
    from huggingface_hub import try_to_load_from_cache

    asked = revision or "main"
    config = try_to_load_from_cache(name, "config.json", revision=asked)
    if isinstance(config, str):
        folder = Path(config).parent
        commit, chats = folder.name, _has_template(folder)
    else:
        commit, files = _hub_commit_and_files(name, asked)
        chats = "chat_template.jinja" in files or _hub_template(name, commit)
    return Source(name=name, path=name, weights=f"revision:{commit}", revision=commit, chats=chats)


def _hub_commit_and_files(name: str, revision: str) -> tuple[str, set[str]]:
    """Return the commit of a revision and the names of its files, without downloading them."""
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(name, revision=revision, timeout=20)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise PreflightError(
            f"hf:{name} is not in the local cache and was not found on the hub: {reason[:300]}",
            hint="check the name and the network, or name a local folder or .gguf file",
        ) from error
    return str(info.sha), {file.rfilename for file in info.siblings or ()}


def _hub_template(name: str, commit: str) -> bool:
    """Return True if the tokenizer's configuration file on the hub has a chat template."""
    from huggingface_hub import hf_hub_download

    try:
        config = hf_hub_download(name, "tokenizer_config.json", revision=commit)
    except Exception:
        return False
    return _has_template(Path(config).parent)


def _has_template(folder: Path) -> bool:
    """Return True if the tokenizer's files in a folder have a chat template."""
    if (folder / "chat_template.jinja").is_file():
        return True
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(isinstance(config, dict) and config.get("chat_template"))
