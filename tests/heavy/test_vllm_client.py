"""The vLLM client against a stand-in with the part of vLLM's interface that it uses.

The stand-in is a package of its own on the path. Its classes take exactly the arguments that
vLLM documents, its tokens are characters, and a token's log-probability is minus its place in the
alphabet over a hundred, so every score can be worked out by hand.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.clients import ClientSettings, clients
from falter.integrations.vllm_client import Vllm
from falter.records.errors import InvalidValue, MissingExtra, PreflightError
from falter.records.types import BASELINE, Item, Prompt, Request, Response, Sampling, Variant

STAND_IN = """
from dataclasses import dataclass, field
from typing import NamedTuple, Optional, TypedDict


class TokensPrompt(TypedDict):
    prompt_token_ids: list


@dataclass
class SamplingParams:
    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: Optional[int] = None
    stop: Optional[list] = None
    stop_token_ids: Optional[list] = None
    ignore_eos: bool = False
    max_tokens: Optional[int] = 16
    min_tokens: int = 0
    logprobs: Optional[int] = None
    prompt_logprobs: Optional[int] = None
    detokenize: bool = True


class Logprob(NamedTuple):
    logprob: float
    rank: int
    decoded_token: str


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list
    cumulative_logprob: Optional[float]
    logprobs: Optional[list]
    finish_reason: Optional[str] = None


@dataclass
class RequestOutput:
    request_id: str
    prompt: Optional[str]
    prompt_token_ids: list
    prompt_logprobs: Optional[list]
    outputs: list
    finished: bool = True


class Tokenizer:
    def __init__(self, path):
        self.chat_template = None if "base" in path else "{% … %}"

    def encode(self, text, add_special_tokens=True):
        return [1] * add_special_tokens + [ord(c) for c in text]

    def apply_chat_template(self, conversation, *, tokenize=True, add_generation_prompt=False):
        if tokenize or not add_generation_prompt:
            raise ValueError("an answer could not follow")
        return "".join(f"<{m['role']}>{m['content']}" for m in conversation) + "<assistant>"


class Engine:
    def __init__(self, longest):
        self.model_config = type("ModelConfig", (), {"max_model_len": longest})()


class LLM:
    made = []

    def __init__(self, model, *, tokenizer=None, dtype="auto", seed=0, max_model_len=None,
                 gpu_memory_utilization=0.9, tensor_parallel_size=1, enable_prefix_caching=None):
        if "broken" in model:
            raise ValueError("no such weights")
        self.model, self.seed = model, seed
        self.llm_engine = Engine(max_model_len or 4000)
        self.caching, self.calls = enable_prefix_caching, []
        LLM.made.append(self)

    def get_tokenizer(self):
        return Tokenizer(self.model)

    def generate(self, prompts, sampling_params=None, *, use_tqdm=True):
        many = isinstance(sampling_params, list)
        if many and len(sampling_params) != len(prompts):
            raise ValueError("one SamplingParams a prompt")
        each = sampling_params if many else [sampling_params] * len(prompts)
        self.calls.append((len(prompts), use_tqdm))
        return [self._one(p, s) for p, s in zip(prompts, each)]

    def _one(self, prompt, params):
        ids = prompt["prompt_token_ids"]
        if len(ids) >= self.llm_engine.model_config.max_model_len:
            raise ValueError("the list is lost")
        given = None
        if params.prompt_logprobs is not None:
            best = {ord("a"): Logprob(-0.01, 1, "a")}
            given = [None] + [
                {**best, i: Logprob(-(i - 96) / 100, i - 96, chr(i))} for i in ids[1:]
            ]
        text = f"t={params.temperature} p={params.top_p} n={params.max_tokens} "
        text += f"s={params.stop} seed={params.seed} :: {''.join(map(chr, ids))}"
        output = CompletionOutput(0, text, [1, 2, 3], None, None, "length")
        return RequestOutput("0", None, ids, given, [output])
"""


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "vllm", raising=False)


def made(name: str = "weights", **settings: Any) -> Vllm:
    client = clients.get("vllm")(ClientSettings(name=name, **settings))
    assert isinstance(client, Vllm)
    return client


def request(client: Vllm, n: int, **content: Any) -> Request:
    variant = Variant(
        item=Item(task="t", key=str(n), fields={}), recipe=BASELINE, draw=0,
        prompt=Prompt(sections=()), status="baseline",
    )  # fmt: skip
    content = {"sampling": Sampling(max_tokens=9, stop=("\n",)), **content}
    return Request(key=f"sha256:{n:064x}", variant=variant, model=client.model, repeat=0, **content)


def asked(client: Vllm, requests: list[Request]) -> list[Response]:
    async def main() -> list[Response]:
        await client.check()
        try:
            scored = await client.score_many([r for r in requests if r.scores])
            written = [client.generate(r) for r in requests if not r.scores]
            return [*scored, *await asyncio.gather(*written)]
        finally:
            await client.close()

    return asyncio.run(main())


def engine() -> Any:
    return sys.modules["vllm"].LLM.made[-1]


def test_options_are_scored_by_their_own_tokens() -> None:
    client = made()
    (found,) = asked(client, [request(client, 1, context="zz", continuations=("a", "ab", "aa"))])
    assert [round(s.logprob, 6) for s in found.scores] == [-0.01, -0.03, -0.02]
    assert [(s.tokens, s.greedy) for s in found.scores] == [(1, True), (2, False), (2, True)]
    assert found.usage.prompt_tokens == 4 + 5 + 5
    assert engine().caching is False and engine().calls == [(3, False)]
    assert found.served_by == "vllm"


def test_its_prefix_cache_is_off_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked before must not change a score; what the engine promises is recorded."""
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    client = made(options={"enable_prefix_caching": True})
    (found,) = asked(client, [request(client, 1, context="zz", continuations=("a",))])
    assert engine().caching is True and client.model.options["enable_prefix_caching"] is True
    assert found.served_by == "vllm, batch invariant"


def test_white_space_at_the_end_of_the_context_belongs_to_the_continuation() -> None:
    client = made()
    first, second = asked(
        client,
        [
            request(client, 1, context="zz ", continuations=("a",)),
            request(client, 2, context="zz", continuations=(" a",)),
        ],
    )
    assert first.scores == second.scores and first.scores[0].tokens == 2


def test_one_request_that_fails_costs_no_other_its_answer() -> None:
    client = made(options={"max_model_len": 20})
    requests = [
        request(client, 1, context="zz", continuations=("a",)),
        request(client, 2, context="z" * 30, continuations=("a",)),
        request(client, 3, context="zz", continuations=("",)),
        request(client, 4, context="short"),
    ]
    good, long, nothing, text = asked(client, requests)
    assert good.failure is None and text.failure is None
    assert "the prompt has 32 tokens; the model takes 1 to 19" in (long.failure or "")
    assert "has no token of its own" in (nothing.failure or "")


def test_every_request_keeps_its_own_way_of_decoding() -> None:
    client = made()
    hot = Sampling(temperature=0.5, top_p=0.9, max_tokens=3)
    seeded = Sampling(temperature=0.5, max_tokens=3, seed=77)
    found = asked(
        client,
        [
            request(client, 1, messages=(("system", "S"), ("user", "U"))),
            request(client, 2 << 224, messages=(("user", "V"),), sampling=hot),
            request(client, 3, context="W", sampling=seeded),
        ],
    )
    assert [r.text for r in found] == [
        "t=0.0 p=1.0 n=9 s=['\\n'] seed=None :: <system>S<user>U<assistant>",
        "t=0.5 p=0.9 n=3 s=[] seed=2 :: <user>V<assistant>",
        "t=0.5 p=1.0 n=3 s=[] seed=77 :: \x01W",
    ]
    assert found[0].finish_reason == "length" and found[0].usage.completion_tokens == 3


def test_what_does_not_fit_is_said_before_anything_is_asked() -> None:
    for settings in ({"base_url": "http://localhost:1/v1"}, {"options": {"seed": 3}}):
        with pytest.raises(InvalidValue):
            made(**settings)
    with pytest.raises(PreflightError, match="no such weights"):
        asyncio.run(made("broken").check())
    with pytest.raises(PreflightError, match="'base' has no chat template"):
        asyncio.run(made("base").check())
    client = made("base", api="completions", options={"dtype": "half"})
    asyncio.run(client.check())
    assert not client.capabilities.chats and client.model.options["dtype"] == "half"


def test_without_the_library_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(tmp_path)])
    with pytest.raises(MissingExtra, match=r"falter\[vllm\]"):
        made()


def test_a_run_scores_and_writes(tmp_path: Path) -> None:
    for scorer in ("choice_likelihood", "choice_letter"):
        result = falter.run(
            task="basics", models=["vllm:weights"], recipes=["typos"], limit=8, scorer=scorer,
            store=tmp_path / "falter.db",
        )  # fmt: skip
        (panel,) = result.analysis.panels
        assert panel.counts.cells == 16 and panel.counts.failed == 0
