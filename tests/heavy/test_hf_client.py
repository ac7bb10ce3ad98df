"""`hf:` against a naive computation, transformers' own generation and lm-evaluation-harness.

These tests need `falter[hf]`, `lm-eval` and the weights of `falter models pull smollm2`. They are
not part of `make test`: `make test-heavy`, or `pytest tests/heavy`.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

import falter
from falter.clients import ClientSettings
from falter.clients.chat_forms import chat_text
from falter.integrations.hf_client import HuggingFace
from falter.records.errors import PreflightError
from falter.records.ids import digest
from falter.records.types import Request, Response, Sampling

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TEXTS = [
    "Question: What is the capital of France?\nAnswer: Paris\n\n",
    "Question: How many legs has a spider?\nAnswer: eight legs, more than an insect\n\n",
    "Two plus two is four. The quick brown fox jumps over the lazy dog, é and ü and 😀.\n",
]
SHOTS = "".join(TEXTS) * 2
OPTIONS = (" Paris", " London, the capital of England", " Paris or London", " Rome")
# Shapes of attention that differ in how a position or a window enters. Bloom's positions and
# Mamba's states are made along the row, so that a tree of tokens means nothing to them.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 2},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512},
    "gpt_neox": {"max_position_embeddings": 512},
    "qwen2": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 2, "sliding_window": 96},
    "gemma2": {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 96},
    "bloom": {"n_layer": 2, "n_head": 4},
    "mamba": {"state_size": 4},
}
SHARING = {"llama", "gpt2", "gpt_neox", "qwen2", "mistral", "gemma2"}
logging.disable_progress_bar()


def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer of 400 tokens, trained on the spot."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        TEXTS * 4,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", chat_template=TEMPLATE
    )


def save(path: Path, family: str) -> Path:
    """A small model of a family with random weights, as a folder."""
    torch.manual_seed(1)
    words = tokenizer()
    common = {
        "vocab_size": len(words), "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 512,
        "initializer_range": 0.4, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1,
    }  # fmt: skip
    if family in ("gpt2", "bloom"):
        common = {k: v for k, v in common.items() if not k.startswith(("num_", "max_", "inter"))}
    config = AutoConfig.for_model(family, **{**common, **FAMILIES[family]})
    AutoModelForCausalLM.from_config(config).save_pretrained(path)
    words.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's model, written once."""
    root = tmp_path_factory.mktemp("models")

    def folder(family: str) -> Path:
        path = root / family
        return path if path.exists() else save(path, family)

    return folder


def connected(path: Path | str, **options: Any) -> HuggingFace:
    """A client, loaded."""
    client = HuggingFace(ClientSettings(name=str(path), options={"device": "cpu", **options}))
    asyncio.run(client.check())
    return client


@pytest.fixture(scope="session")
def llama(folders: Callable[[str], Path]) -> HuggingFace:
    """One client for many tests: whatever it holds must not matter."""
    return connected(folders("llama"))


@pytest.fixture(scope="session")
def smollm2() -> Iterator[HuggingFace]:
    """The embedded model's weights, read by transformers."""
    client = connected("smollm2", threads=2)
    yield client
    asyncio.run(client.close())


def scoring(context: str, continuations: Sequence[str] = OPTIONS, *, n: int = 0) -> Request:
    return Request(
        key=digest("request", context, continuations, n),
        variant=None,  # type: ignore[arg-type]
        model=None,  # type: ignore[arg-type]
        sampling=Sampling(),
        repeat=0,
        context=context,
        continuations=tuple(continuations),
    )


def asking(
    context: str = "", messages: Sequence[tuple[str, str]] = (), n: int = 0, **sampling: Any
) -> Request:
    return Request(
        key=digest("request", context, messages, n),
        variant=None,  # type: ignore[arg-type]
        model=None,  # type: ignore[arg-type]
        sampling=Sampling(**{"max_tokens": 12, **sampling}),
        repeat=0,
        context=context,
        messages=tuple(messages),
    )


def scored(client: HuggingFace, requests: Sequence[Request]) -> list[Response]:
    return list(asyncio.run(client.score_many(requests)))


def written(client: HuggingFace, requests: Sequence[Request]) -> list[Response]:
    async def together() -> list[Response]:
        return await asyncio.gather(*map(client.generate, requests))

    return asyncio.run(together())


def naive(client: HuggingFace, context: str, continuation: str) -> tuple[float, int, bool]:
    """One sequence, no cache, no padding, double precision at the end."""
    model, words = client.loaded.model, client.loaded.tokenizer
    body = context.rstrip()
    whole = words.encode(context + continuation)
    head = words.encode(body) if body else [words.bos_token_id]
    tail = whole[len(head) :] if body else whole
    ids = torch.tensor([head + tail])
    with torch.inference_mode():
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits[0].double()
    logits = logits.log_softmax(-1)[len(head) - 1 :]
    total = sum(float(logits[n, token]) for n, token in enumerate(tail))
    return total, len(tail), bool((logits.argmax(-1) == ids[0, len(head) :]).all())


def assert_naive(client: HuggingFace, requests: Sequence[Request], answers: list[Response]) -> None:
    for request, answer in zip(requests, answers, strict=True):
        assert answer.failure is None
        for text, score in zip(request.continuations, answer.scores, strict=True):
            total, tokens, greedy = naive(client, request.context, text)
            assert score.logprob == pytest.approx(total, abs=1e-4)
            assert (score.tokens, score.greedy) == (tokens, greedy)


CONTEXTS = [
    "Question: What is the capital of France?\nAnswer:",
    SHOTS + "Question: What is the capital of France?\nAnswer:",
    SHOTS + "Question: How many legs has a dog?\nAnswer:",
    "The quick brown fox",
    "Answer: ",
    "A fox é 😀 \n\n",
    "",
]


# -- scores ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_the_naive_computation(family: str, folders: Callable[[str], Path]) -> None:
    """In every family, sharing or not, with a cold and with a warm cache."""
    client = connected(folders(family))
    assert client.loaded.shares is (family in SHARING)
    requests = [scoring(context) for context in CONTEXTS]
    assert_naive(client, requests, scored(client, requests))
    assert_naive(client, requests[::-1], scored(client, requests[::-1]))
    shared = client.loaded.shares
    said = scored(client, requests[:1])[0].served_by or ""
    assert said.endswith("nothing shared") is not shared


@pytest.mark.parametrize("room", [64, 100, 4096])
def test_scores_do_not_depend_on_the_batch(
    room: int, llama: HuggingFace, folders: Callable[[str], Path]
) -> None:
    """Alone, together, in another order, in rows of another size: the same within 1e-4."""
    requests = [scoring(context) for context in CONTEXTS]
    client = connected(folders("llama"), batch_tokens=room)
    together = scored(client, requests)
    alone = [scored(llama, [request])[0] for request in reversed(requests)][::-1]
    for one, other in zip(together, alone, strict=True):
        for a, b in zip(one.scores, other.scores, strict=True):
            assert a.logprob == pytest.approx(b.logprob, abs=1e-4)
            assert (a.tokens, a.greedy) == (b.tokens, b.greedy)


def test_what_prompts_share_is_read_once(folders: Callable[[str], Path]) -> None:
    """The examples once for all questions and calls, a context once for all its options."""
    client = connected(folders("llama"))
    engine = client.loaded
    requests = [scoring(f"{SHOTS}Question: Is {n} a number?\nAnswer:") for n in range(8)]
    tokens = [engine.split(r.context, r.continuations) for r in requests]
    shots = len(engine.encode([SHOTS])[0])
    own = [len(t.head) - shots + sum(len(tail) for tail in t.tails) for t in tokens]
    scored(client, requests[:4])
    assert engine.tokens_read <= shots + sum(own[:4])
    before = engine.tokens_read
    scored(client, requests[4:])
    assert engine.tokens_read - before <= sum(own[4:])


def test_kept_prefixes_stay_within_their_bytes(folders: Callable[[str], Path]) -> None:
    """No room, nothing kept, and the same scores."""
    client = connected(folders("llama"), cache_mb=0)
    requests = [scoring(SHOTS + "Question: Who?\nAnswer:", n=n) for n in range(2)]
    first = scored(client, requests[:1])
    before = client.loaded.tokens_read
    second = scored(client, requests[1:])
    assert client.loaded.tokens_read == 2 * before
    assert first[0].scores == second[0].scores


def test_half_precision_shares_too(folders: Callable[[str], Path]) -> None:
    """bfloat16 is another model record, and its trees pass for right."""
    client = connected(folders("llama"), dtype="bfloat16")
    assert client.loaded.shares
    assert client.model.options["dtype"] == "bfloat16"
    [answer] = scored(client, [scoring(CONTEXTS[0])])
    assert answer.failure is None


def test_a_window_that_a_row_exceeds_is_respected(folders: Callable[[str], Path]) -> None:
    """Sequences longer than the window are read by themselves; the rest still shares."""
    client = connected(folders("mistral"))
    engine = client.loaded
    assert engine.shares
    requests = [scoring(SHOTS + "Question: Who?\nAnswer:"), scoring(CONTEXTS[0])]
    assert_naive(client, requests, scored(client, requests))


def test_white_space_moves_to_the_continuation(llama: HuggingFace) -> None:
    """As in the harness: "a: " + "b" is "a:" + " b"."""
    [moved, plain] = scored(llama, [scoring("Answer: ", ["Paris"]), scoring("Answer:", [" Paris"])])
    assert moved.scores == plain.scores


def test_what_cannot_be_scored_fails_alone(llama: HuggingFace) -> None:
    """With its reason; nothing is cut, and the neighbours are scored."""
    good = scoring(CONTEXTS[0])
    long, empty = scoring("word " * 600, n=1), scoring("a", [" b", ""])
    answers = scored(llama, [long, good, empty])
    assert "the model reads at most 512" in (answers[0].failure or "")
    assert "continuation 1 is ''" in (answers[2].failure or "")
    assert_naive(llama, [good], [answers[1]])


def test_running_out_of_memory_fails_only_what_is_too_large(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is halved until the rest fits."""
    client = connected(folders("llama"))
    score = client.loaded.score

    def narrow(asked: Any) -> Any:
        if len(asked) > 2 or any(len(tokens.head) > 100 for tokens in asked):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return score(asked)

    monkeypatch.setattr(client.loaded, "score", narrow)
    requests = [scoring(context) for context in CONTEXTS]
    answers = scored(client, requests)
    assert [a.failure is not None for a in answers] == [n in (1, 2) for n in range(7)]
    assert (answers[1].failure or "").startswith("out of memory (CUDA out of memory.")
    assert_naive(client, [requests[0]], [answers[0]])


def test_scores_that_are_not_numbers_are_failures(folders: Callable[[str], Path]) -> None:
    """Neither a score nor a text comes out of broken arithmetic."""
    client = connected(folders("llama"))
    with torch.no_grad():
        client.loaded.model.lm_head.weight.fill_(float("nan"))
    [answer] = scored(client, [scoring(CONTEXTS[0])])
    assert "not numbers" in (answer.failure or "")
    [text] = written(client, [asking("a")])
    assert "not numbers" in (text.failure or "")


# -- the harness -----------------------------------------------------------------------------


@pytest.mark.parametrize(("questions", "shots"), [(200, 0), (4, 5)])
def test_scores_equal_the_harness(smollm2: HuggingFace, questions: int, shots: int) -> None:
    """TruthfulQA's options with the same weights: within 1e-4, the same choice every time."""
    from lm_eval.models.huggingface import HFLM

    from lm_eval_agreement import by_harness, requests

    engine = smollm2.loaded
    assert engine.shares
    asked = requests(smollm2, questions, shots)
    ours = scored(smollm2, asked)
    harness = HFLM(pretrained=engine.model, tokenizer=engine.tokenizer, batch_size=16)
    for answer, theirs in zip(ours, by_harness(harness, asked), strict=True):
        found = [score.logprob for score in answer.scores]
        assert found == pytest.approx([score for score, _ in theirs], abs=1e-4)
        assert [score.greedy for score in answer.scores] == [greedy for _, greedy in theirs]
        assert max(range(len(found)), key=found.__getitem__) == max(
            range(len(found)), key=lambda n: theirs[n][0]
        )


# -- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "bloom", "mamba"])
def test_greedy_text_is_transformers_own(family: str, folders: Callable[[str], Path]) -> None:
    """Prompts of several lengths in one batch give what `model.generate` gives for each."""
    client = connected(folders(family))
    requests = [asking(context, max_tokens=10) for context in CONTEXTS[:4]]
    for request, answer in zip(requests, written(client, requests), strict=True):
        words, model = client.loaded.tokenizer, client.loaded.model
        ids = torch.tensor([words.encode(request.context)])
        with torch.inference_mode():
            found = model.generate(ids, max_new_tokens=10, do_sample=False)[0, ids.shape[1] :]
        # A character that the token limit cuts in half is left out.
        whole = words.decode(found, skip_special_tokens=True)
        assert (answer.text or "").rstrip("\ufffd") == whole.rstrip("\ufffd")
        assert answer.usage.prompt_tokens == ids.shape[1]


def test_sampled_text_depends_on_the_request_alone(llama: HuggingFace) -> None:
    """Alone or with others: the same request gives the same text, another repeat another."""
    requests = [asking("The quick", temperature=1.0, n=n) for n in range(6)]
    together = [answer.text for answer in written(llama, requests)]
    assert [written(llama, [request])[0].text for request in requests] == together
    assert len(set(together)) == 6
    seeded = [asking("The quick", temperature=1.0, seed=5, n=n) for n in range(2)]
    assert len({answer.text for answer in written(llama, seeded)}) == 1


def test_draws_follow_the_softmax_and_top_p_cuts_its_tail(llama: HuggingFace) -> None:
    """4,000 draws land where they should; a small top_p leaves the likeliest token."""
    from falter.integrations.hf_writing import Ask, pick

    row = torch.tensor([0.0, 1.0, 2.0, -1.0])

    def counts(**sampling: Any) -> list[float]:
        ask = Ask(prompt=(0,), sampling=Sampling(**sampling), seed=7)
        found = Counter(pick(torch, row, ask) for _ in range(4000))
        return [found[n] / 4000 for n in range(4)]

    for temperature in (0.5, 1.0, 2.0):
        expected = (row / temperature).softmax(-1).tolist()
        assert counts(temperature=temperature) == pytest.approx(expected, abs=0.03)
    cut = row.softmax(-1)[1:3] / row.softmax(-1)[1:3].sum()
    assert counts(temperature=1.0, top_p=0.85) == pytest.approx([0, *cut.tolist(), 0], abs=0.03)
    assert counts(temperature=1.0, top_p=0.1) == [0, 0, 1, 0]
    assert counts(temperature=0.0) == [0, 0, 1, 0]


def test_texts_end_where_they_should(llama: HuggingFace) -> None:
    """At the token limit, before a stop string, and with the model's window."""
    [whole] = written(llama, [asking("The quick", max_tokens=8)])
    assert (whole.finish_reason, whole.usage.completion_tokens) == ("length", 8)
    text = whole.text or ""
    [cut] = written(llama, [asking("The quick", max_tokens=8, stop=(text[3:5],))])
    assert (cut.text, cut.finish_reason) == (text[: text.find(text[3:5])], "stop")
    room = llama.loaded.limit or 0
    [full, over] = written(
        llama, [asking(" fox" * (room // 2), max_tokens=900), asking(" fox" * 2000, n=1)]
    )
    assert full.finish_reason == "length"
    assert full.usage.prompt_tokens + full.usage.completion_tokens == room + 1
    assert "the model reads at most 512" in (over.failure or "")


def test_what_cannot_be_asked_fails_alone(llama: HuggingFace) -> None:
    """Settings out of range are failures of their request."""
    answers = written(llama, [asking("a", max_tokens=0), asking("a", top_p=0.0, n=1), asking("b")])
    assert [a.failure for a in answers] == [
        "max_tokens is 0; expected at least 1",
        "top_p is 0.0; expected above 0, at most 1",
        None,
    ]


def test_chats_take_the_tokenizers_template(folders: Callable[[str], Path]) -> None:
    """With a system turn where one is set; without chats, as one plain text."""
    from falter.integrations.hf_writing import prompt_tokens

    chat = (("user", "Who?"),)
    client = connected(folders("llama"), system="Be brief.")
    engine = client.loaded

    def shown(messages: Sequence[tuple[str, str]], system: str | None) -> str:
        text: str = engine.tokenizer.decode(prompt_tokens(engine, messages, "", system))
        return text

    assert client.capabilities.chats
    assert shown(chat, None) == "<|user|>Who?<|assistant|>"
    assert shown(chat, "Be brief.") == "<|system|>Be brief.<|user|>Who?<|assistant|>"
    own = (("system", "No."), *chat)
    assert shown(own, "Be brief.") == "<|system|>No.<|user|>Who?<|assistant|>"
    plain = HuggingFace(
        ClientSettings(name=str(folders("llama")), options={"device": "cpu"}, api="completions")
    )
    [answer] = written(plain, [asking(messages=chat)])
    [same] = written(plain, [asking("Who?")])
    assert answer.text == same.text
    assert written(client, [asking(messages=chat)])[0].failure is None


def test_tools_go_into_the_template_and_one_that_ignores_them_is_refused() -> None:
    """Arguments are a mapping there, and the content of a turn that only calls is an empty text."""
    words = tokenizer()
    tool = '{"name": "find", "parameters": {"type": "object"}}'
    chat = [
        ("user", "Who?"),
        ("call", '{"id": "c1", "name": "find", "arguments": {"x": 1}}'),
        ("result", '{"id": "c1", "content": "Ann"}'),
    ]
    with pytest.raises(PreflightError, match="chat template ignores tools"):
        chat_text(words, chat[:1], [tool])
    words.chat_template = (
        "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}"
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{{ c.function.name }}:{{ c.function.arguments.x + 1 }}{% endfor %}{% endfor %}"
    )
    assert chat_text(words, chat, [tool]) == "[find]<user>Who?<assistant>find:2<tool>Ann"
    assert chat_text(words, chat[:1]) == "<user>Who?"


def test_the_embedded_model_answers_with_its_default_system_turn(smollm2: HuggingFace) -> None:
    """SmolLM2's own template writes one where there is none; llama.cpp's copy does not."""
    [answer] = written(smollm2, [asking(messages=[("user", "Name the capital of France.")])])
    assert "Paris" in (answer.text or "")
    assert (answer.finish_reason, answer.usage.prompt_tokens) == ("stop", 36)


def test_scoring_and_writing_may_be_mixed(llama: HuggingFace) -> None:
    """A batch of both kinds comes back in order."""
    requests = [scoring(CONTEXTS[0]), asking("The quick"), scoring(CONTEXTS[3]), asking("a")]
    answers = scored(llama, requests)
    assert [bool(a.scores) for a in answers] == [True, False, True, False]
    assert [a.text is None for a in answers] == [True, False, True, False]


# -- loading ---------------------------------------------------------------------------------


def test_a_folder_without_weights_is_a_preflight_error(
    folders: Callable[[str], Path], tmp_path: Path
) -> None:
    """Said before anything is sent, in one line."""
    for file in folders("llama").iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(PreflightError, match="cannot be loaded"):
        connected(tmp_path)


def test_a_hub_model_that_is_not_here_is_a_preflight_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline, the message says that the hub was not reached and what to give instead."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PreflightError, match="not in the local cache") as caught:
        HuggingFace(ClientSettings(name="nobody/nothing", options={"device": "cpu"}))
    assert "name a local folder" in (caught.value.hint or "")


def test_a_whole_run(folders: Callable[[str], Path], tmp_path: Path) -> None:
    """Through the runner and the store; asked again, nothing is sent."""
    settings: dict[str, Any] = {
        "task": "basics",
        "models": [{"name": f"hf:{folders('llama')}", "options": {"device": "cpu"}}],
        "recipes": ["pad_newlines", "identity"],
        "limit": 12,
    }
    store = tmp_path / "falter.db"
    result = falter.run(**settings, store=store)
    (panel,) = result.analysis.panels
    assert panel.model == "hf:llama"
    assert panel.noise_floor is not None
    assert panel.noise_floor.value == 0.0
    assert falter.run(**settings, store=store).table("drops") == result.table("drops")
