"""`hf:` with models that have an encoder: tiny ones with random weights, made here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModelForSeq2SeqLM

import falter
from falter.integrations.hf_client import HuggingFace

sys.path.insert(0, str(Path(__file__).parent))

from test_hf_client import CONTEXTS, OPTIONS, asking, connected, scored, scoring, tokenizer, written

FAMILIES: dict[str, dict[str, Any]] = {
    "t5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
           "decoder_start_token_id": 1, "initializer_factor": 4.0},
    "bart": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64,
             "decoder_ffn_dim": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
             "max_position_embeddings": 512, "decoder_start_token_id": 1, "init_std": 1.0,
             "forced_bos_token_id": 0, "forced_eos_token_id": None},
}  # fmt: skip


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's model, written once; its tokenizer ends a prompt, as theirs do."""
    root = tmp_path_factory.mktemp("seq2seq")

    def folder(family: str) -> Path:
        path = root / family
        if not path.exists():
            torch.manual_seed(1)
            words = tokenizer()
            words.chat_template = None
            words.pad_token = "</s>"
            words._tokenizer.post_processor = TemplateProcessing(
                single="$A </s>", special_tokens=[("</s>", 1)]
            )
            config = AutoConfig.for_model(
                family, vocab_size=len(words), bos_token_id=0, eos_token_id=1, pad_token_id=1,
                **FAMILIES[family],
            )  # fmt: skip
            AutoModelForSeq2SeqLM.from_config(config).save_pretrained(path)
            words.save_pretrained(path)
        return path

    return folder


def naive(client: HuggingFace, context: str, continuation: str) -> tuple[float, int, bool]:
    """One pair through `labels`, as transformers trains these models; double precision."""
    model, words = client.loaded.model, client.loaded.tokenizer
    body = context.rstrip()
    head = words.encode(body) if body else [words.bos_token_id]
    tail = words.encode(context[len(body) :] + continuation, add_special_tokens=False)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([head]), labels=torch.tensor([tail])).logits[0]
    logits = logits.double().log_softmax(-1)
    total = sum(float(logits[n, token]) for n, token in enumerate(tail))
    return total, len(tail), logits.argmax(-1).tolist() == tail


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_the_naive_computation_and_the_harness(
    family: str, folders: Callable[[str], Path]
) -> None:
    """Options of several lengths after prompts of several lengths, empty ones too."""
    from lm_eval.models.huggingface import HFLM

    from lm_eval_agreement import by_harness

    client = connected(folders(family))
    assert client.capabilities.scores and not client.capabilities.chats
    requests = [scoring(context) for context in CONTEXTS]
    answers = scored(client, requests)
    for request, answer in zip(requests, answers, strict=True):
        assert answer.failure is None and len(answer.scores) == len(OPTIONS)
        for text, score in zip(request.continuations, answer.scores, strict=True):
            total, tokens, greedy = naive(client, request.context, text)
            assert score.logprob == pytest.approx(total, rel=5e-5, abs=1e-4)
            assert (score.tokens, score.greedy) == (tokens, greedy)
    engine = client.loaded
    harness = HFLM(
        pretrained=engine.model, tokenizer=engine.tokenizer, batch_size=4, backend="seq2seq"
    )
    asked = [request for request in requests if request.context]  # it gives an empty one no prompt
    for answer, theirs in zip(answers, by_harness(harness, asked), strict=False):
        found = [score.logprob for score in answer.scores]
        assert found == pytest.approx([score for score, _ in theirs], rel=5e-5, abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_text_is_transformers_own(family: str, folders: Callable[[str], Path]) -> None:
    """Prompts of several lengths in one batch give what `model.generate` gives for each.

    In double precision: the weights are random, so tokens nearly tie, and single precision breaks
    ties differently in a batch, with the load of the machine.
    """
    client = connected(folders(family))
    words, model = client.loaded.tokenizer, client.loaded.model.double()
    requests = [asking(context, max_tokens=10) for context in CONTEXTS[:4]]
    for request, answer in zip(requests, written(client, requests), strict=True):
        ids = torch.tensor([words.encode(request.context)])
        forced = model.generation_config.forced_bos_token_id is not None
        with torch.inference_mode():
            found = model.generate(ids, max_new_tokens=10 + forced, do_sample=False, num_beams=1)
        whole = words.decode(found[0], skip_special_tokens=True)
        assert answer.failure is None
        assert (answer.text or "").rstrip("\ufffd") == whole.rstrip("\ufffd")
        assert answer.usage.prompt_tokens == ids.shape[1]
    assert len({answer.text for answer in written(client, requests)}) > 1
    alone = [written(client, [request])[0].text for request in requests[::-1]][::-1]
    assert alone == [answer.text for answer in written(client, requests)]
    warm = [asking(CONTEXTS[1], n=n, temperature=1.0) for n in range(6)]
    together = [answer.text for answer in written(client, warm)]
    assert len(set(together)) > 1
    assert together == [written(client, [request])[0].text for request in warm]


def test_a_prompt_that_is_too_long_fails_alone(folders: Callable[[str], Path]) -> None:
    """With the number of tokens; nothing is cut."""
    client = connected(folders("bart"))
    long, short = written(client, [asking("many words " * 400), asking("few words")])
    assert "the model reads at most 512" in (long.failure or "")
    assert short.failure is None
    (scores,) = scored(client, [scoring("many words " * 400)])
    assert "the model reads at most 512" in (scores.failure or "")


def test_relevance_with_a_model_that_has_an_encoder(
    folders: Callable[[str], Path], tmp_path: Path
) -> None:
    """A whole run: summaries of abstracts, with every arm."""
    result = falter.run(
        protocol="relevance",
        models=[{"name": f"hf:{folders('t5')}", "options": {"device": "cpu"}}],
        limit=2,
        sampling={"max_tokens": 8},
        scorer="summary_rouge1",
        store=tmp_path / "falter.db",
    )
    assert result.study is not None
