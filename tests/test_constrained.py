"""Answers that the server holds to the options, and room for models that think."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.cli._main import _run
from falter.clients._reasoning import asks_for_reasoning
from falter.core.errors import UsageError
from falter.experiment import run_async
from local_server import Asked, LocalServer, Reply

SETTINGS: dict[str, Any] = {"task": "basics", "recipes": ["typos"], "limit": 6}


def chat(text: str) -> Reply:
    return 200, {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
        "model": "m",
    }


def asked(answer: Any, tmp_path: Path, **settings: Any) -> tuple[Any, list[Asked]]:
    """What a run against a scripted server comes to, and what it was sent."""

    async def threaded() -> tuple[Any, list[Asked]]:
        async with LocalServer(answer) as server:
            model = {"name": "openai:m", "base_url": server.base_url}
            result = await asyncio.to_thread(
                falter.run, {**SETTINGS, "models": [model], **settings}, store=tmp_path / "s.db"
            )
            return result, server.posted

    return run_async(threaded)


def held(request: Asked) -> Reply:
    """A server that does as it is asked: the first of the answers, or a sentence."""
    form = request.body.get("response_format")
    if form is None:
        return chat("The answer is A.")
    schema = form["json_schema"]["schema"]
    assert form["type"] == "json_schema" and form["json_schema"]["strict"] is True
    assert schema["required"] == ["answer"] and schema["additionalProperties"] is False
    return chat(json.dumps({"answer": schema["properties"]["answer"]["enum"][0]}))


def test_a_server_holds_the_model_to_the_options(tmp_path: Path) -> None:
    """In a panel of its own beside free replies, with requests of its own; the report says so."""
    result, sent = asked(held, tmp_path, scorer=["choice_letter", "choice_constrained"])
    free, constrained = result.analysis.panels
    assert free.baseline.value == constrained.baseline.value
    assert constrained.counts.scored == constrained.counts.cells
    assert "held the model to the options" in constrained.notes[0]
    assert not any("held the model" in note for note in free.notes)
    formed = ["response_format" in request.body for request in sent]
    assert sum(formed) == len(formed) / 2
    enums = {
        tuple(
            request.body["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"]
        )
        for request in sent
        if "response_format" in request.body
    }
    assert all(set(enum) <= set("ABCDE") for enum in enums)


def test_a_server_that_does_not_hold_it_gets_no_credit(tmp_path: Path) -> None:
    result, _ = asked(lambda _: chat("A"), tmp_path, scorer="choice_constrained")
    (panel,) = result.analysis.panels
    assert panel.counts.unparsed == panel.counts.cells


def test_a_client_without_it_is_refused(tmp_path: Path) -> None:
    """Before anything is asked."""
    with pytest.raises(UsageError, match="needs a client that holds a model to the options"):
        falter.run(
            {**SETTINGS, "models": [lambda prompt: "A"], "scorer": "choice_constrained"},
            store=tmp_path / "s.db",
        )


def test_the_simulated_model_can_be_held(tmp_path: Path) -> None:
    """Its accuracy is the one that its letters have."""
    settings = {**SETTINGS, "models": ["simulated"], "limit": 40}
    both = ["choice_letter", "choice_constrained"]
    result = falter.run({**settings, "scorer": both}, store=tmp_path / "s.db")
    free, constrained = result.analysis.panels
    assert free.baseline.value == constrained.baseline.value
    assert constrained.counts.unparsed == 0


def test_a_model_in_this_process_is_held_token_by_token(tmp_path: Path) -> None:
    """The embedded model writes a letter of the item and nothing else, in every answer."""
    settings = {**SETTINGS, "models": ["smollm2"], "limit": 2}
    result = falter.run({**settings, "scorer": "choice_constrained"}, store=tmp_path / "s.db")
    (panel,) = result.analysis.panels
    assert panel.counts.scored == panel.counts.cells == 4
    assert {row["extracted"] for row in result.scores()} <= set("ABCDE")


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        ({"reasoning_effort": "low"}, True),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning": {"effort": "high"}}, True),
        ({"reasoning": {"enabled": False}}, False),
        ({"thinking": {"type": "disabled"}}, False),
        ({"chat_template_kwargs": {"enable_thinking": True}}, True),
        ({"chat_template_kwargs": {"enable_thinking": False}}, False),
        ({"top_k": 20}, False),
    ],
)
def test_options_say_whether_a_model_thinks(options: dict[str, Any], asks: bool) -> None:
    assert asks_for_reasoning(options) is asks


def test_a_model_that_thinks_has_room(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan says so; a limit of one's own is kept."""
    monkeypatch.chdir(tmp_path)
    command = ["plan", "--task", "basics", "-m", "openai:m", "--base-url", "http://127.0.0.1:9/v1"]
    command += ["--limit", "2", "-r", "typos", "--scorer", "choice_letter"]
    thinks = [*command, "--option", "reasoning_effort=low"]
    assert _run(command) == 0
    assert "because the model is asked to think" not in capsys.readouterr().out
    assert _run(thinks) == 0
    assert "answers of up to 4,096 tokens, because the model is asked to think" in (
        capsys.readouterr().out
    )
    assert _run([*thinks, "--max-tokens", "99", "--json"]) == 0
    (panel,) = json.loads(capsys.readouterr().out)["panels"]
    assert (panel["max_tokens"], panel["thinks"]) == (99, False)
