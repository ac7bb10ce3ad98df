"""Inspect's tasks as data, and its models as clients: its mock, and a provider of our own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import transcript
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.model._providers.mockllm import MockLLM

import falter
from falter.clients import ClientSettings, clients
from falter.engine.config import read_experiment
from falter.engine.resolving import resolve
from falter.integrations.inspect_client import Inspect
from falter.integrations.inspect_task import load
from falter.records import render
from falter.records.errors import (
    AuthenticationError,
    FalterError,
    InvalidValue,
    MissingExtra,
    PreflightError,
    TaskError,
    UnknownName,
)
from falter.records.types import BASELINE, Item, Prompt, Request, Response, Sampling, Variant

# Inspect passes tenacity, its retry library, a parameter that newer ones have renamed.
pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is:DeprecationWarning")

TASKS = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import choice, exact, includes, match, model_graded_qa

@task
def quiz():
    return Task(dataset=[
        Sample(input="Where do penguins live?", choices=["in trees", "at the pole"], target="B",
               id="penguins"),
        Sample(input="Which barks?", choices=["a dog", "a cat", "a fish"], target=["a dog"]),
    ], scorer=choice())

@task
def chat():
    return Task(dataset=[
        Sample(input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Hi?")],
               target="hi"),
        Sample(input="Hello?", target="hello"),
    ], scorer=includes())

@task
def sums():
    return Task(dataset=[Sample(input="3 + 4?", target="7")], scorer=match(numeric=True))

@task
def graded():
    return Task(dataset=[Sample(input="Why?", target="So.")], scorer=model_graded_qa())

@task
def many():
    return Task(dataset=MemoryDataset(
        [Sample(input=f"Say it, number {n}.", target="Default output from mockllm/model")
         for n in range(12)]), scorer=exact())

@task
def talk():
    return Task(dataset=[Sample(input=[
        ChatMessageUser(content="Hi"), ChatMessageAssistant(content="Yes?"),
        ChatMessageUser(content="Bye"),
    ], target="x")])

@task
def wrong():
    return Task(dataset=[Sample(input="Q", choices=["a", "b"], target="C")])

@task
def two():
    return Task(dataset=[Sample(input="Q", target=["a", "b"])])

@task
def doubled():
    return Task(dataset=[Sample(input=text, target="a", id="1") for text in "QR"])

@task
def needy(argument):
    return Task()

def plain():
    return 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own_tasks.py"
    path.write_text(TASKS)
    return path


def test_samples_with_choices_become_items(file: Path) -> None:
    task = load(f"{file}@quiz")
    assert task.name == "inspect:quiz" and task.scorer is None
    first, second = task.items
    assert (first.key, first.choices, first.target) == ("penguins", ("in trees", "at the pole"), 1)
    assert second.target == 0
    assert render.plain(task.templates["cloze"].build(first)) == "Where do penguins live?\nAnswer:"
    assert render.plain(task.templates["letter"].build(second)) == (
        "Which barks?\nA. a dog\nB. a cat\nC. a fish\n\n"
        "Reply with the letter of your choice and nothing else.\nAnswer:"
    )
    kinds = [s.kind for s in task.templates["letter"].build(first).sections]
    assert kinds == ["input", "instruction", "choices", "output_format", "cue"]


def test_system_messages_stay_system_messages(file: Path) -> None:
    task = load(f"{file}@chat")
    template = task.templates["open"]
    assert render.messages(template.build(task.items[0])) == (
        ("system", "Be brief."), ("user", "Hi?"),
    )  # fmt: skip
    assert render.messages(template.build(task.items[1])) == (("user", "Hello?"),)


def test_a_scorer_that_means_the_same_is_taken_over(file: Path) -> None:
    found = {name: load(f"{file}@{name}").scorer for name in ("chat", "sums", "many")}
    assert found == {"chat": "includes", "sums": "numeric", "many": "exact"}


def test_a_scorer_that_is_not_ours_has_to_be_replaced_by_the_user(file: Path) -> None:
    experiment = {"task": f"inspect:{file}@graded", "models": ["simulated"], "recipes": ["typos"]}
    with pytest.raises(UnknownName, match=r"Unknown scorer 'model_graded_qa \(a scorer of inspect"):
        resolve(read_experiment(experiment))
    assert resolve(read_experiment({**experiment, "scorer": "includes"})).panels


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("talk", "is a conversation (user, assistant, user); expected one question"),
        ("wrong", "the target is 'C'; expected one letter of AB"),
        ("two", "has 2 targets; expected one"),
        ("doubled", "the sample '1' appears twice"),
        ("needy", "could not be created: TypeError"),
        ("plain", "it returned int"),
    ],
)
def test_what_falter_cannot_ask_is_named(name: str, message: str, file: Path) -> None:
    with pytest.raises(TaskError) as error:
        load(f"{file}@{name}")
    assert message in error.value.message


def test_names_that_lead_nowhere(file: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'quiz'"):
        load(f"{file}@quizz")
    for argument in (None, str(file), "no/such/file.py@x", "no_such_module@x"):
        with pytest.raises(FalterError):
            load(argument)


@modelapi("own-mock")
class Mock(MockLLM):
    """Inspect's mock, which counts tokens with a tokenizer from the network, without it."""

    async def count_text_tokens(self, text: str) -> int:
        return len(text) // 4


class Refused(Exception):
    status_code = 401


@modelapi("own-echo")
class Echo(ModelAPI):
    """Answers with what it was asked, as JSON; some words make it fail."""

    def __init__(self, model_name: str, loud: bool = False, **settings: Any) -> None:
        super().__init__(model_name, **settings)
        self.loud = loud

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        if "poison" in input[-1].text:
            raise RuntimeError("poisoned")
        if "leak" in input[-1].text:
            raise RuntimeError(f"Incorrect API key: {os.environ['OWN_ECHO_API_KEY']}")
        if "refuse" in input[-1].text:
            raise ValueError("no") from Refused("who are you?")
        named = ("temperature", "top_p", "max_tokens", "stop_seqs", "seed", "top_k", "max_retries")
        told = {name: getattr(config, name) for name in named}
        text = json.dumps([[(m.role, m.text) for m in input], told, self.loud])
        output = ModelOutput.from_content(self.model_name, text, stop_reason="max_tokens")
        output.usage = ModelUsage(input_tokens=3, output_tokens=2, input_tokens_cache_read=4)
        return output

    def should_retry(self, ex: BaseException) -> bool:
        return False


def made(name: str, **settings: Any) -> Inspect:
    client = clients.get("inspect")(ClientSettings(name=name, **settings))
    assert isinstance(client, Inspect)
    return client


def request(client: Inspect, text: str, **content: Any) -> Request:
    variant = Variant(
        item=Item(task="t", key="k", fields={}), recipe=BASELINE, draw=0,
        prompt=Prompt(sections=()), status="baseline",
    )  # fmt: skip
    content = {"messages": (("user", text),), "sampling": Sampling(), **content}
    return Request(key=f"sha256:{0:064x}", variant=variant, model=client.model, repeat=0, **content)


def asked(client: Inspect, *requests: Request) -> list[Response]:
    async def main() -> list[Response]:
        await client.check()
        try:
            return [await client.generate(r) for r in requests]
        finally:
            await client.close()

    return asyncio.run(main())


def test_a_provider_gets_turns_and_settings() -> None:
    client = made("own-echo/m", max_attempts=3, options={"top_k": 5, "loud": True})
    sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=7, stop=("\n",), seed=4)
    turns = (("system", "S"), ("user", "U"), ("assistant", "A"), ("user", "V"))
    (found,) = asked(client, request(client, "", messages=turns, sampling=sampling))
    heard, told, loud = json.loads(found.text or "")
    assert tuple(tuple(turn) for turn in heard) == turns and loud is True
    assert told == {
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "stop_seqs": ["\n"], "seed": 4,
        "top_k": 5, "max_retries": 2,
    }  # fmt: skip
    assert found.finish_reason == "length" and found.served_by == "m"
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (7, 2)


def test_a_setting_that_a_provider_refuses_can_be_left_out() -> None:
    client = made("own-echo/m", options={"temperature": None})
    (found,) = asked(client, request(client, "Q"))
    _, told, _ = json.loads(found.text or "")
    assert told["temperature"] is None and told["top_p"] is None and told["max_tokens"] == 256


def test_what_a_provider_raises_is_a_failure_and_a_refused_key_ends_the_run() -> None:
    client = made("own-echo/m")
    bad, good = asked(client, request(client, "poison"), request(client, "Q"))
    assert "poisoned" in (bad.failure or "") and good.failure is None
    with pytest.raises(AuthenticationError):
        asked(client, request(client, "refuse"))


def test_a_key_in_the_providers_own_variable_is_in_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OWN_ECHO_API_KEY", "echo-0123456789")
    client = made("own-echo/m")
    (found,) = asked(client, request(client, "leak"))
    assert found.failure == "RuntimeError: Incorrect API key: …"


def test_no_call_stays_in_memory() -> None:
    """Inspect notes down every call in the transcript of its context; ours ends with the call."""

    async def main() -> int:
        client = made("own-mock/model")
        for n in range(5):
            found = await client.generate(request(client, f"Question {n}"))
            assert found.text == "Default output from mockllm/model"
        await client.close()
        return len(transcript().events)

    assert asyncio.run(main()) == 0


def test_names_and_options_that_do_not_fit() -> None:
    for name, settings in (
        ("gpt", {}),
        ("mockllm/model", {"requests_per_minute": 5.0}),
        ("mockllm/model", {"options": {"temperature": 0.2}}),
        ("mockllm/model", {"options": {"cache": True}}),
    ):
        with pytest.raises(InvalidValue):
            made(name, **settings)
    with pytest.raises(PreflightError, match="could not load the model 'no-such-provider/m'"):
        asyncio.run(made("no-such-provider/m").check())


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    for connect in (lambda: made("mockllm/model"), lambda: load("any_module@task")):
        with pytest.raises(MissingExtra, match=r"falter\[inspect\]"):
            connect()


def test_an_inspect_model_answers_an_inspect_task(file: Path, tmp_path: Path) -> None:
    result = falter.run(
        task=f"inspect:{file}@many", models=["inspect:own-mock/model"],
        recipes=["typos", "identity"], store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert panel.counts.cells == 36 and panel.counts.failed == 0
    assert panel.baseline.value == 1.0


def test_likelihoods_are_asked_of_others(file: Path) -> None:
    """Inspect's models write, so a multiple-choice task is asked for letters."""
    experiment = {"task": f"inspect:{file}@quiz", "models": ["inspect:mockllm/model"],
                  "recipes": ["typos"]}  # fmt: skip
    (panel,) = resolve(read_experiment(experiment)).panels
    assert panel.panel.scorer == "choice_letter"
