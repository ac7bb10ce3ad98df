"""`vllm:PATH`: a model in vLLM's engine, in this process.

Written against vLLM's documented offline interface (`LLM`, `SamplingParams`, `prompt_logprobs`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from falter.clients.answers import Answer
from falter.clients.base import BatchClient
from falter.clients.chat_forms import chat_text
from falter.clients.constrained import native_choice
from falter.clients.settings import ClientSettings, OptionTable, clients, costs_nothing, require
from falter.records.errors import PreflightError, refusal
from falter.records.interfaces import Capabilities, Client
from falter.records.types import ContinuationScore, Model, Request, Usage

MAX_REASON_CHARACTERS = 500
SCORING = {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 1, "detokenize": False}
OPTIONS = OptionTable.of("vllm")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    """Tokens for the engine; with `start`, the tokens from that place on are scored."""

    tokens: list[int]
    decoding: Mapping[str, Any]
    start: int | None = None


class Vllm(BatchClient):
    """Client of one `LLM`. Requests that wait at the same time go to the engine together."""

    def __init__(self, settings: ClientSettings) -> None:
        # With the prefix cache, a prompt's log-probabilities were found to depend on earlier
        # requests (vllm#42019), so it is off until bench/gpu.sh shows otherwise on some GPU.
        self._options = OPTIONS.read(settings)
        self._caches_prefixes = self._options.get("enable_prefix_caching") is True
        super().__init__(most=settings.concurrency, name="vllm")
        require("Models in vLLM", "vllm", "vllm")
        chats = settings.api == "chat"
        self.capabilities = Capabilities(
            generates=True, scores=True, chats=chats, constrains=True, tools=chats
        )
        self.model = Model(
            client="vllm", name=settings.name, options={"api": settings.api, **self._options}
        )
        self._llm: Any = None
        self._tokenizer: Any = None

    async def close(self) -> None:
        """Release the engine; vLLM frees it with its last reference."""
        await super().close()
        self._llm = self._tokenizer = None

    # On the engine's thread

    def load(self) -> None:
        """Create the engine. Raise `PreflightError` if it fails or has no chat template."""
        from vllm import LLM

        name = self.model.name
        try:
            caching = {"enable_prefix_caching": self._caches_prefixes}
            self._llm = LLM(**{"model": name, "seed": 0, **self._options, **caching})
            self._tokenizer = self._llm.get_tokenizer()
        except Exception as error:
            raise PreflightError(
                f"vLLM could not load '{name}': {error!r:.{MAX_REASON_CHARACTERS}}",
                hint="check the path and the options, which are passed to vllm.LLM",
            ) from error
        if self.capabilities.chats and not getattr(self._tokenizer, "chat_template", None):
            raise refusal(PreflightError, "integrations.no_chat_template", name=name)

    def answer(self, requests: Sequence[Request]) -> Sequence[Answer | Exception]:
        """Answer all valid requests with one call; an invalid request gets its error instead."""
        prepared = [self._engine_prompts(request) for request in requests]
        prompts = [p for ready in prepared if not isinstance(ready, Exception) for p in ready]
        outputs = iter(self._run(prompts) if prompts else ())
        return [
            ready if isinstance(ready, Exception) else _answer([(p, next(outputs)) for p in ready])
            for ready in prepared
        ]

    def _run(self, prompts: Sequence[_Prompt]) -> Any:
        from vllm import SamplingParams, TokensPrompt

        return self._llm.generate(
            [TokensPrompt(prompt_token_ids=prompt.tokens) for prompt in prompts],
            [SamplingParams(**_constrained(prompt.decoding)) for prompt in prompts],
            use_tqdm=False,
        )

    def _engine_prompts(self, request: Request) -> list[_Prompt] | Exception:
        """Return the engine's prompts for a request, or the error if the engine would reject it.

        A rejection in the middle of a list can leave the other requests waiting inside the engine.
        """
        try:
            if request.scores:
                ready = [self._scoring(request.context, text) for text in request.continuations]
            else:
                ready = [_Prompt(tokens=self._prompt_tokens(request), decoding=_decoding(request))]
        except PreflightError:
            raise
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

    def _prompt_tokens(self, request: Request) -> list[int]:
        if not request.messages:
            return list(self._tokenizer.encode(request.context))
        text = chat_text(self._tokenizer, request.messages, request.tools)
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _scoring(self, context: str, continuation: str) -> _Prompt:
        """Return context and continuation tokenised together, with the start of the continuation.

        As in the harness, white space at the end of the context belongs to the continuation. So do
        the tokens beyond the context's own tokens.
        """
        tokens = list(self._tokenizer.encode(context + continuation))
        start = len(self._tokenizer.encode(context.rstrip()))
        if start == 0:
            raise ValueError("the context is empty: its first token has no log-probability")
        if not continuation or start >= len(tokens):
            raise ValueError(f"the continuation {continuation!r:.60} has no token of its own")
        return _Prompt(tokens=tokens, decoding=SCORING, start=start)


def _decoding(request: Request) -> dict[str, Any]:
    """Return the sampling settings of a request.

    Without a seed, the seed comes from the request key: each repeat is another draw, and
    reproducible.
    """
    sampling = request.sampling
    # Digits after "sha256:"; below 2**31, since a seed is a signed 32-bit number in many libraries.
    seed = int(request.key[7:15], 16) % 2**31 if sampling.seed is None else sampling.seed
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop),
        "seed": seed if sampling.temperature > 0 else None,
        **({} if request.answers is None else {"only": native_choice(request.answers)}),
    }


def _constrained(decoding: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with the permitted texts under the installed vLLM's field name."""
    if "only" not in decoding:
        return decoding
    from vllm import sampling_params

    kept = {name: value for name, value in decoding.items() if name != "only"}
    # Newer versions of vLLM have the first name, older ones the second.
    if hasattr(sampling_params, "StructuredOutputsParams"):
        choice = sampling_params.StructuredOutputsParams(**decoding["only"])
        return {**kept, "structured_outputs": choice}
    choice = sampling_params.GuidedDecodingParams(**decoding["only"])
    return {**kept, "guided_decoding": choice}


def _answer(outputs: Sequence[tuple[_Prompt, Any]]) -> Answer | Exception:
    """Return the answer to one request from the engine's outputs."""
    prompt_tokens = sum(len(prompt.tokens) for prompt, _ in outputs)
    prompt, output = outputs[0]
    if prompt.start is None:
        text = output.outputs[0]
        usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=len(text.token_ids))
        return Answer(
            text=text.text, finish_reason=text.finish_reason, usage=usage, served_by=_served_by()
        )
    try:
        scores = tuple(_continuation_score(output, p.tokens, p.start or 0) for p, output in outputs)
    except ValueError as error:
        return error
    return Answer(scores=scores, usage=Usage(prompt_tokens=prompt_tokens), served_by=_served_by())


def _served_by() -> str:
    """Return the engine's version, and if answers are the same in every batch."""
    import vllm

    version = getattr(vllm, "__version__", "")
    invariant = os.environ.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0")
    return f"vllm {version}".strip() + (", batch invariant" if invariant else "")


def _continuation_score(output: Any, tokens: Sequence[int], start: int) -> ContinuationScore:
    """Return the log-likelihood of the tokens from `start` on.

    Raise `ValueError` if a token has no log-probability, or if the sum is not finite.
    """
    given: Sequence[Mapping[int, Any] | None] | None = output.prompt_logprobs
    if given is None or len(given) != len(tokens):
        raise ValueError("vLLM returned no log-probability for some token of the prompt")
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


@clients.registers("vllm")
@costs_nothing
def connect(settings: ClientSettings) -> Client:
    """A model in vLLM's engine."""
    return Vllm(settings)
