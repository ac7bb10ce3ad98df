"""`vllm:PATH`: a model in vLLM's engine, in this process.

Written against vLLM's documented offline interface (`LLM`, `SamplingParams`, `prompt_logprobs`).
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from falter.clients._base import ClientSettings, clients
from falter.clients._batching import Batcher
from falter.core.errors import InvalidValue, MissingExtra, PreflightError
from falter.core.interfaces import Capabilities, Client
from falter.core.records import ContinuationScore, Model, Request, Response, Usage

__all__ = ["Vllm", "connect"]

LONGEST_REASON = 500
SCORING = {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 1, "detokenize": False}
OURS = ("model", "seed", "enable_prefix_caching")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """What a response holds beside when and by whom."""

    text: str | None = None
    scores: tuple[ContinuationScore, ...] = ()
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    """Tokens for the engine; with `start`, those from there on are to be scored."""

    tokens: list[int]
    decoding: Mapping[str, Any]
    start: int | None = None


class Vllm:
    """One `LLM`. All that is asked at the same time goes to the engine together."""

    def __init__(self, settings: ClientSettings) -> None:
        _check(settings)
        if importlib.util.find_spec("vllm") is None:
            raise MissingExtra("Models in vLLM", "vllm", "vllm")
        self._options = dict(settings.options)
        self._chats = settings.api == "chat"
        self.capabilities = Capabilities(generates=True, scores=True, chats=self._chats)
        self.model = Model(
            client="vllm", name=settings.name, options={"api": settings.api, **self._options}
        )
        self._llm: Any = None
        self._tokenizer: Any = None
        self._thread: Batcher[Request, _Content] = Batcher(
            self._answer, most=settings.concurrency, name="vllm"
        )

    async def check(self) -> None:
        """Load the model."""
        if self._llm is None:
            await self._thread.call(self._load)

    async def generate(self, request: Request) -> Response:
        return await self._ask(request)

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        return await asyncio.gather(*(self._ask(request) for request in requests))

    async def close(self) -> None:
        """Let go of the engine; vLLM frees it with its last reference."""
        await self._thread.close()
        self._llm = self._tokenizer = None

    async def _ask(self, request: Request) -> Response:
        await self.check()
        started = time.perf_counter()
        try:
            content = await self._thread.ask(request)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
            return Response(key=request.key, failure=reason, received_at=time.time())
        return Response(
            key=request.key,
            text=content.text,
            scores=content.scores,
            finish_reason=content.finish_reason,
            usage=content.usage,
            latency=time.perf_counter() - started,
            served_by="vllm",
            received_at=time.time(),
        )

    # On the engine's thread

    def _load(self) -> None:
        if self._llm is not None:
            return
        from vllm import LLM

        try:
            llm = LLM(model=self.model.name, seed=0, enable_prefix_caching=True, **self._options)
            self._tokenizer = llm.get_tokenizer()
        except Exception as error:
            raise PreflightError(
                f"vLLM could not load '{self.model.name}': {error!r:.{LONGEST_REASON}}",
                hint="check the path and the options, which go to vllm.LLM",
            ) from error
        if self._chats and not getattr(self._tokenizer, "chat_template", None):
            raise PreflightError(
                f"'{self.model.name}' has no chat template",
                hint="a base model is asked in plain text: api: completions",
            )
        self._llm = llm

    def _answer(self, requests: Sequence[Request]) -> Sequence[_Content | Exception]:
        """One call to the engine for all that can be asked of it."""
        prepared = [self._prepared(request) for request in requests]
        prompts = [p for ready in prepared if not isinstance(ready, Exception) for p in ready]
        outputs = iter(self._run(prompts) if prompts else ())
        return [
            ready if isinstance(ready, Exception) else _content([(p, next(outputs)) for p in ready])
            for ready in prepared
        ]

    def _run(self, prompts: Sequence[_Prompt]) -> Any:
        from vllm import SamplingParams, TokensPrompt

        return self._llm.generate(
            [TokensPrompt(prompt_token_ids=prompt.tokens) for prompt in prompts],
            [SamplingParams(**prompt.decoding) for prompt in prompts],
            use_tqdm=False,
        )

    def _prepared(self, request: Request) -> list[_Prompt] | Exception:
        """What the engine is asked for a request. What it would refuse never gets there.

        A refusal in the middle of a list can leave the others waiting inside the engine.
        """
        try:
            if request.scores:
                ready = [self._scoring(request.context, text) for text in request.continuations]
            else:
                ready = [_Prompt(tokens=self._asked(request), decoding=_decoding(request))]
        except Exception as error:
            return error
        longest = int(self._llm.llm_engine.model_config.max_model_len)
        for prompt in ready:
            if not 0 < len(prompt.tokens) < longest:
                count = len(prompt.tokens)
                return ValueError(
                    f"the prompt has {count} tokens; the model takes 1 to {longest - 1}"
                )
        return ready

    def _asked(self, request: Request) -> list[int]:
        if not request.messages:
            return list(self._tokenizer.encode(request.context))
        turns = [{"role": role, "content": text} for role, text in request.messages]
        text = self._tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True
        )
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _scoring(self, context: str, continuation: str) -> _Prompt:
        """Both tokenised together, and where the continuation's tokens begin.

        As the harness does it: white space at the end of the context belongs to the continuation,
        and what goes beyond the tokens of the context alone is the continuation's.
        """
        tokens = list(self._tokenizer.encode(context + continuation))
        start = len(self._tokenizer.encode(context.rstrip()))
        if start == 0:
            raise ValueError("the context is empty: its first token has no log-probability")
        if not continuation or start >= len(tokens):
            raise ValueError(f"the continuation {continuation!r:.60} has no token of its own")
        return _Prompt(tokens=tokens, decoding=SCORING, start=start)


def _decoding(request: Request) -> dict[str, Any]:
    """A request without a seed has one of its own: a repeat is another draw, and stays the same."""
    sampling = request.sampling
    seed = int(request.key[7:15], 16) % 2**31 if sampling.seed is None else sampling.seed
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop),
        "seed": seed if sampling.temperature > 0 else None,
    }


def _content(answers: Sequence[tuple[_Prompt, Any]]) -> _Content | Exception:
    """A request's own part of what the engine gave."""
    prompt_tokens = sum(len(prompt.tokens) for prompt, _ in answers)
    prompt, output = answers[0]
    if prompt.start is None:
        made = output.outputs[0]
        usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=len(made.token_ids))
        return _Content(text=made.text, finish_reason=made.finish_reason, usage=usage)
    try:
        scores = tuple(_sum(output, p.tokens, p.start or 0) for p, output in answers)
    except ValueError as error:
        return error
    return _Content(scores=scores, usage=Usage(prompt_tokens=prompt_tokens))


def _sum(output: Any, tokens: Sequence[int], start: int) -> ContinuationScore:
    """The log-likelihood of the tokens from `start` on."""
    given: Sequence[Mapping[int, Any] | None] | None = output.prompt_logprobs
    if given is None or len(given) != len(tokens):
        raise ValueError("vLLM gave no log-probability for each token of the prompt")
    values, greedy = [], True
    for token, row in zip(tokens[start:], given[start:], strict=True):
        if row is None or token not in row:
            raise ValueError("a token of the continuation has no log-probability")
        values.append(float(row[token].logprob))
        greedy = greedy and row[token].logprob >= max(entry.logprob for entry in row.values())
    total = math.fsum(values)
    if not math.isfinite(total):
        raise ValueError(f"the log-likelihood is {total}")
    return ContinuationScore(logprob=total, tokens=len(values), greedy=greedy)


def _check(settings: ClientSettings) -> None:
    if not settings.name:
        raise InvalidValue("name", settings.name, "a path or a hub name, as in 'vllm:PATH'")
    if settings.base_url is not None:
        raise InvalidValue(
            "base_url", settings.base_url, "None",
            hint="a vLLM server is reached with openai:NAME and its base_url",
        )  # fmt: skip
    for name in OURS:
        if name in settings.options:
            value = settings.options[name]
            raise InvalidValue(f"options.{name}", value, "no option that falter sets itself")


@clients.registers("vllm")
def connect(settings: ClientSettings) -> Client:
    """A model in vLLM's engine."""
    return Vllm(settings)
