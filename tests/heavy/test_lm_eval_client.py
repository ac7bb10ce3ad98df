"""lm-evaluation-harness's models as clients: its dummy, and one that computes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

import falter
from falter.clients import ClientSettings, clients
from falter.integrations.lm_eval_client import LmEval
from falter.records.errors import InvalidValue, MissingExtra, PreflightError, UnknownName
from falter.records.types import BASELINE, Item, Prompt, Request, Response, Sampling, Variant
from falter.tasks import tasks


@register_model("own-counting")
class Counting(LM):
    """Log-likelihood: minus the continuation's length; text: what it was asked, as JSON."""

    def __init__(self, factor: float = 1.0, batch_size: int = 1) -> None:
        super().__init__()
        if factor < 0:
            raise ValueError("factor below 0")
        self.factor, self.lists = factor, []

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        self.lists.append(len(requests))
        if any("poison" in r.args[0] for r in requests):
            raise RuntimeError("poisoned")
        return [(-self.factor * len(r.args[1]), len(r.args[1]) < 4) for r in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        raise NotImplementedError

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        assert disable_tqdm
        self.lists.append(len(requests))
        return [json.dumps([r.args[0], r.args[1]]) for r in requests]

    def apply_chat_template(self, chat_history: list[dict[str, str]], **_: Any) -> str:
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in chat_history)


def request(client: LmEval, n: int = 0, **content: Any) -> Request:
    item = Item(task="t", key=str(n), fields={})
    variant = Variant(
        item=item, recipe=BASELINE, draw=0, prompt=Prompt(sections=()), status="baseline"
    )
    content = {"sampling": Sampling(max_tokens=5, stop=("\n",)), **content}
    return Request(key=f"sha256:{n:064x}", variant=variant, model=client.model, repeat=0, **content)


def made(name: str, **settings: Any) -> LmEval:
    client = clients.get("lm-eval")(ClientSettings(name=name, **settings))
    assert isinstance(client, LmEval)
    return client


def asked(client: LmEval, requests: Sequence[Request]) -> list[Response]:
    async def main() -> list[Response]:
        await client.check()
        try:
            return list(
                await asyncio.gather(
                    *(client.generate(r) for r in requests if not r.scores),
                    *(_one(client, r) for r in requests if r.scores),
                )
            )
        finally:
            await client.close()

    return asyncio.run(main())


async def _one(client: LmEval, request: Request) -> Response:
    (response,) = await client.score_many([request])
    return response


def test_continuations_are_scored_in_order_and_in_few_lists() -> None:
    client = made("own-counting,factor=2")
    requests = [request(client, n, context="c", continuations=("a", "bbbbb")) for n in range(10)]
    found = asked(client, requests)
    assert [[s.logprob for s in r.scores] for r in found] == [[-2.0, -10.0]] * 10
    assert [s.greedy for s in found[0].scores] == [True, False]
    assert found[0].served_by == "lm-eval own-counting"


def test_one_request_that_fails_costs_no_other_its_answer() -> None:
    client = made("own-counting")
    contexts = ["fine", "poison", "fine too"]
    found = asked(
        client,
        [request(client, n, context=c, continuations=("x",)) for n, c in enumerate(contexts)],
    )
    assert [r.failure for r in found] == [None, "RuntimeError: poisoned", None]


def test_decoding_is_said_in_the_harnesss_words() -> None:
    client = made("own-counting")
    hot = Sampling(temperature=0.5, top_p=0.9, max_tokens=7)
    cold, warm = asked(
        client, [request(client, 1, context="Q"), request(client, 2, context="R", sampling=hot)]
    )
    assert json.loads(cold.text or "") == [
        "Q", {"until": ["\n"], "max_gen_toks": 5, "temperature": 0.0, "do_sample": False},
    ]  # fmt: skip
    assert json.loads(warm.text or "") == [
        "R",
        {"until": [], "max_gen_toks": 7, "temperature": 0.5, "do_sample": True, "top_p": 0.9},
    ]


def test_turns_go_through_the_models_chat_template_where_asked_for() -> None:
    client = made("own-counting", options={"apply_chat_template": True})
    assert client.capabilities.chats and client.model.options == {"apply_chat_template": True}
    (found,) = asked(client, [request(client, messages=(("system", "S"), ("user", "U")))])
    assert json.loads(found.text or "")[0] == "<system>S<user>U"


@pytest.mark.parametrize(
    ("name", "scores", "chats"),
    [
        ("dummy", True, False),
        ("local-completions", True, False),
        ("local-chat-completions", False, True),
        ("openai-chat-completions", False, True),
        ("gguf", True, False),
    ],
)
def test_what_a_model_can_do_is_read_off_its_class(name: str, scores: bool, chats: bool) -> None:
    """Before anything is loaded."""
    able = made(name).capabilities
    assert (able.generates, able.scores, able.chats) == (True, scores, chats)


def test_names_and_arguments_that_do_not_fit() -> None:
    with pytest.raises(UnknownName, match="did you mean 'dummy'"):
        made("dumy")
    with pytest.raises(InvalidValue, match="without keys or passwords") as error:
        made("dummy,api_key=abc")
    assert "abc" not in str(error.value)
    with pytest.raises(UnknownName):
        made("dummy", options={"chat": True})
    with pytest.raises(InvalidValue):
        made("dummy", base_url="http://localhost:1/v1")
    with pytest.raises(PreflightError, match="factor below 0"):
        asyncio.run(made("own-counting,factor=-1").check())


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "lm_eval"]:
        monkeypatch.setitem(sys.modules, name, None)
    for connect in (lambda: made("dummy"), lambda: tasks.get("lm-eval")("arc_easy")):
        with pytest.raises(MissingExtra, match=r"falter\[lm-eval\]"):
            connect()


def test_a_harness_model_answers_a_harness_task(tmp_path: Path) -> None:
    """The dummy's likelihoods are random; the counting model always takes the shortest option."""
    data = tmp_path / "d.jsonl"
    rows = [{"q": f"Which of {n} is it?", "o": ["me", "somebody else"], "a": 0} for n in range(8)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "task": "own", "dataset_path": "json", "output_type": "multiple_choice",
        "dataset_kwargs": {"data_files": {"test": str(data)}}, "test_split": "test",
        "doc_to_text": "{{q}}\nAnswer:", "doc_to_choice": "o", "doc_to_target": "a",
    }  # fmt: skip
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(config))
    result = falter.run(
        task=f"lm-eval:{path}", models=["lm-eval:dummy", "lm-eval:own-counting,factor=2"],
        recipes=["typos", "identity"], store=tmp_path / "falter.db",
    )  # fmt: skip
    dummy, counting = result.analysis.panels
    assert dummy.counts.cells == counting.counts.cells == 24
    assert dummy.counts.failed == counting.counts.failed == 0
    assert counting.baseline.value == 1.0
