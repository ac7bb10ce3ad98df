"""Answers that the server holds to the options, and room for models that think."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.cli.app import invoke
from falter.clients.settings import asks_for_reasoning
from falter.engine.execution import run_async
from falter.integrations import vllm_client
from falter.records.errors import PreflightError, UsageError
from local_server import Asked, LocalServer, Reply

SETTINGS: dict[str, Any] = {"task": "basics", "recipes": ["typos"], "limit": 6}


def chat(text: str) -> Reply:
    return 200, {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
        "model": "m",
    }


def asked(answer: Any, tmp_path: Path, **settings: Any) -> tuple[Any, list[Asked]]:
    """Return the result of a run against a scripted server, and the requests received."""

    async def threaded() -> tuple[Any, list[Asked]]:
        async with LocalServer(answer) as server:
            model = {"name": "openai:m", **settings.pop("model", {}), "base_url": server.base_url}
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
    assert "restricted the model to the possible" in constrained.notes[0]
    assert not any("restricted the model" in note for note in free.notes)
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


ECHOED = {"tokens": ["a"], "token_logprobs": [-1.0]}
GENERATED: Reply = (200, {"choices": [{"text": ".", "logprobs": {"content": []}}] * 4})
MESSAGE = {"role": "assistant", "content": "Let me see"}
CUT: Reply = (200, {"choices": [{"message": MESSAGE, "finish_reason": "length"}]})
ONE: Reply = (200, {"choices": [{"text": ".", "logprobs": ECHOED}]})


@pytest.mark.parametrize(
    ("reply", "asked_for", "requests", "reason"),
    [
        (
            chat("A"),
            "constrained",
            3,
            "does not constrain the model to the given answers: it returned 'A'",
        ),
        (chat('{"answer": "Z"}'), "constrained", 3, 'it returned \'{"answer": "Z"}\''),
        (CUT, "constrained", 3, "it returned 'Let me see'"),
        ((422, {"error": "no format"}), "constrained", 3, "HTTP 422: no format"),
        (chat(""), "likelihood", 1, "gives no log-probabilities of given answers"),
        (GENERATED, "likelihood", 1, "no log-probabilities with echo"),
        (ONE, "likelihood", 1, "one of 4 prompts in a list"),
        ((400, {"error": "no list"}), "likelihood", 6, "HTTP 400: no list"),
    ],
)
def test_a_misfit_is_found_before_anything_else_is_asked(
    reply: Reply, asked_for: str, requests: int, reason: str, tmp_path: Path
) -> None:
    """At once, or after three items; the free panel, which stands first, is not begun.

    An echo that is refused with HTTP 400 is tried again with one token to generate.
    """
    posted: list[Asked] = []

    def answer(request: Asked) -> Reply:
        posted.extend([request] if request.body else [])
        return reply

    model = {"api": "completions" if asked_for == "likelihood" else "chat"}
    with pytest.raises(PreflightError, match=reason):
        asked(answer, tmp_path, model=model, scorer=["choice_letter", f"choice_{asked_for}"])
    assert len(posted) == requests


def test_the_first_answer_of_a_server_that_fits_counts(tmp_path: Path) -> None:
    """One prompt may be refused: the next is tried, and what it answers is not asked again."""
    replies: Iterator[Reply] = iter([(400, {"error": "too long"})])
    result, sent = asked(
        lambda request: next(replies, held(request)) if request.body else (404, {}),
        tmp_path,
        scorer="choice_constrained",
    )
    (panel,) = result.analysis.panels
    assert panel.counts.scored == panel.counts.cells == len(sent) - 1


def test_a_client_without_it_is_refused(tmp_path: Path) -> None:
    """Before anything is asked."""
    with pytest.raises(UsageError, match="needs a client that constrains the model's answers"):
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
    settings = {**SETTINGS, "models": ["smollm2"], "limit": 1}
    result = falter.run({**settings, "scorer": "choice_constrained"}, store=tmp_path / "s.db")
    (panel,) = result.analysis.panels
    assert panel.counts.scored == panel.counts.cells == 2
    assert {row["extracted"] for row in result.scores()} <= set("ABCDE")


TICKETS = [
    {"text": f"{n}: {text}", "queue": queue, "count": str(n)}
    for n, (text, queue) in enumerate(
        [("I was charged twice", "billing"), ('My "parcel" is late', "d\u00e9livery")] * 5
    )
]


def of_tickets(column: str, limit: int | None = None) -> dict[str, Any]:
    """Ten tickets, each under one more condition; the queue or the number is the answer."""
    return {
        "task": None, "data": {"rows": TICKETS, "target": column}, "limit": limit,
        "template": f"{{text}}\nThe {column}, in a word:", "recipes": ["pad_newlines"],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["json_schema", "structured_outputs", "guided_choice", "grammar"])
@pytest.mark.parametrize(("column", "scorer"), [("queue", "label"), ("count", "numeric")])
def test_labels_and_numbers_are_held_too(
    column: str, scorer: str, form: str, tmp_path: Path
) -> None:
    """In a panel beside the free one; whatever the form, none of 20 replies is unread."""

    def answer(request: Asked) -> Reply:
        body = request.body
        if not {"response_format", "structured_outputs", "grammar"} & set(body) and not any(
            name.startswith("guided") for name in body
        ):
            return chat("It may be this or that.")
        text = json.dumps(body.get("response_format") or body, ensure_ascii=False)
        if column == "count":
            assert '"type": "number"' in text or "[0-9]{0,14}" in text
            return chat('{"answer": 3}')
        assert "d\u00e9livery" in text and "billing" in text
        return chat('{"answer": "billing"}')

    model = {"name": "openai:m", "options": {"hold_by": form}}
    both = [scorer, f"{scorer}_constrained"]
    result, _ = asked(answer, tmp_path, model=model, scorer=both, **of_tickets(column))
    free, constrained = result.analysis.panels
    assert (free.counts.unparsed, constrained.counts.unparsed) == (20, 0)
    right = 0.5 if column == "queue" else 0.1
    assert constrained.baseline.value == pytest.approx(right)
    assert "restricted the model to the possible" in constrained.notes[0]


@pytest.mark.parametrize(
    ("reply", "scorer", "column"),
    [
        ("billing", "label", "queue"),
        ('{"answer": "returns"}', "label", "queue"),
        ('{"answer": "billing", "more": 1}', "label", "queue"),
        ('{"answer": ["billing"]}', "label", "queue"),
        ("3", "numeric", "count"),
        ('{"answer": "3"}', "numeric", "count"),
        ('{"answer": true}', "numeric", "count"),
        ('{"answer": NaN}', "numeric", "count"),
    ],
)
def test_any_other_reply_is_unparsed(reply: str, scorer: str, column: str, tmp_path: Path) -> None:
    """Also when the server held the model at first."""
    first = iter([chat('{"answer": "billing"}' if column == "queue" else '{"answer": 3}')])
    result, _ = asked(
        lambda request: next(first, chat(reply)) if request.body else (404, {}),
        tmp_path,
        scorer=f"{scorer}_constrained",
        **of_tickets(column, 2),
    )
    assert result.analysis.panels[0].counts.unparsed == 3


@pytest.mark.parametrize("model", ["smollm2", "simulated"])
@pytest.mark.parametrize(("column", "scorer"), [("queue", "label"), ("count", "numeric")])
def test_models_in_this_process_write_labels_and_numbers(
    model: str, column: str, scorer: str, tmp_path: Path
) -> None:
    settings = {**of_tickets(column, 1), "models": [model], "scorer": f"{scorer}_constrained"}
    result = falter.run({**SETTINGS, **settings}, store=tmp_path / "s.db")
    assert result.analysis.panels[0].counts.scored == 2


TEXT = '{"answer": "%s"}'


def of_schema(schema: dict[str, Any]) -> str:
    """The first answer of a JSON schema that is exactly the one expected."""
    (answer,) = schema["properties"].values()
    assert schema == {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": answer["enum"]}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return str(answer["enum"][0])


def by_top_logprobs(body: dict[str, Any]) -> Reply:
    """A server that says which tokens may come first: one that is no option leads."""
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert 1 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    tokens = [("The", -0.1), (" B", -3.0), ("A", -2.5), ("**", -1.0)]
    top = [{"token": token, "logprob": logprob} for token, logprob in tokens]
    status, reply = chat("The")[:2]
    reply["choices"][0]["finish_reason"] = "length"
    reply["choices"][0]["logprobs"] = {"content": [{"token": "The", "top_logprobs": top}]}
    return status, reply


def by_form(form: str, body: dict[str, Any]) -> Reply:
    """A chat server that knows one form alone, and writes the first of the answers."""
    forms = {"response_format", "structured_outputs", "guided_choice", "grammar", "top_logprobs"}
    asked = forms & set(body)
    assert asked == {"response_format" if form == "json_schema" else form}, asked
    if form == "top_logprobs":
        return by_top_logprobs(body)
    if form == "json_schema":
        held_by = body["response_format"]["json_schema"]
        assert (held_by["name"], held_by["strict"]) == ("answer", True)
        return chat(TEXT % of_schema(held_by["schema"]))
    if form == "grammar":
        root, _, rules = body["grammar"].partition(" ::= ")
        assert root == "root"
        return chat(json.loads(rules.split(" | ")[0]))
    choice = body[form] if form == "guided_choice" else body[form]["choice"]
    assert all(json.loads(text).keys() == {"answer"} for text in choice)
    return chat(choice[0])


@pytest.mark.parametrize(
    "form", ["json_schema", "structured_outputs", "guided_choice", "grammar", "top_logprobs"]
)
def test_a_server_is_asked_in_its_own_form(form: str, tmp_path: Path) -> None:
    """Whatever the form, the answer is the same, and it stands in the model's record."""
    settings = {"limit": 2, "scorer": "choice_constrained"}
    model = {"name": "openai:m", "options": {"hold_by": form}}
    result, sent = asked(
        lambda request: by_form(form, request.body), tmp_path, model=model, **settings
    )
    (panel,) = result.analysis.panels
    assert panel.counts.scored == panel.counts.cells == len(sent)
    assert {row["extracted"] for row in result.scores()} == {"A"}


def test_a_completions_server_can_be_held_by_a_grammar_alone(tmp_path: Path) -> None:
    def answer(request: Asked) -> Reply:
        _, _, rules = request.body["grammar"].partition(" ::= ")
        choice = {"text": json.loads(rules.split(" | ")[0]), "finish_reason": "stop"}
        return 200, {"choices": [choice], "model": "m"}

    settings = {"limit": 2, "scorer": "choice_constrained"}
    model = {"name": "openai:m", "api": "completions"}
    held_so = {**model, "options": {"hold_by": "grammar"}}
    result, _ = asked(answer, tmp_path, model=held_so, **settings)
    assert result.analysis.panels[0].counts.scored == 4
    with pytest.raises(UsageError, match="needs a client that constrains the model") as caught:
        asked(answer, tmp_path, model=model, **settings)
    assert "--option hold_by=" in str(caught.value.hint)


@pytest.mark.parametrize("client", ["gemini", "responses"])
def test_native_clients_hold_by_their_own_schemas(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "nk-very-secret-0123456789")

    def answer(request: Asked) -> Reply:
        if request.method == "GET":
            return 404, {}
        if client == "gemini":
            config = request.body["generationConfig"]
            schema = config["responseSchema"]
            enum = schema["properties"]["answer"]["enum"]
            assert config["responseMimeType"] == "application/json"
            assert schema == {
                "type": "OBJECT",
                "properties": {"answer": {"type": "STRING", "format": "enum", "enum": enum}},
                "required": ["answer"],
            }
            part = {"content": {"parts": [{"text": TEXT % enum[0]}]}, "finishReason": "STOP"}
            return 200, {"candidates": [part]}
        form = request.body["text"]["format"]
        assert (form["type"], form["name"], form["strict"]) == ("json_schema", "answer", True)
        text = {"type": "output_text", "text": TEXT % of_schema(form["schema"])}
        return 200, {"status": "completed", "output": [{"type": "message", "content": [text]}]}

    result, sent = asked(
        answer, tmp_path, model={"name": f"{client}:m"}, limit=2, scorer="choice_constrained"
    )
    (panel,) = result.analysis.panels
    assert panel.counts.scored == panel.counts.cells == len(sent)


@pytest.mark.parametrize(
    ("named", "field"),
    [
        ("StructuredOutputsParams", "structured_outputs"),
        ("GuidedDecodingParams", "guided_decoding"),
    ],
)
def test_vllm_is_asked_under_the_name_that_it_has(
    named: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its newer versions call it structured outputs, its older ones guided decoding."""
    module = types.ModuleType("vllm")
    module.sampling_params = types.SimpleNamespace(**{named: dict})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    only = {"choice": ['{"answer": "A"}', '{"answer": "B"}']}
    decoding = {"max_tokens": 32, "only": only}
    assert vllm_client._constrained(decoding) == {"max_tokens": 32, field: only}
    assert vllm_client._constrained({"max_tokens": 32}) == {"max_tokens": 32}


def test_the_likeliest_option_needs_no_chance(tmp_path: Path) -> None:
    """With a temperature nothing is sent; a server without log-probabilities ends the run."""
    model = {"name": "openai:m", "options": {"hold_by": "top_logprobs"}, "max_attempts": 1}
    settings: dict[str, Any] = {"limit": 2, "scorer": "choice_constrained", "model": model}
    sent: list[Asked] = []

    def answer(request: Asked) -> Reply:
        sent.append(request)
        return chat("A")

    with pytest.raises(PreflightError, match="needs temperature 0"):
        asked(answer, tmp_path, **settings, sampling={"temperature": 0.7})
    assert not [request for request in sent if request.method == "POST"]
    with pytest.raises(PreflightError, match="returns no log-probabilities of the first token"):
        asked(answer, tmp_path, **settings)


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
    assert invoke(command) == 0
    assert "because the model is asked to think" not in capsys.readouterr().out
    assert invoke(thinks) == 0
    assert "answers of up to 4,096 tokens, because the model is asked to think" in (
        capsys.readouterr().out
    )
    assert invoke([*thinks, "--max-tokens", "99", "--json"]) == 0
    (panel,) = json.loads(capsys.readouterr().out)["panels"]
    assert (panel["max_tokens"], panel["thinks"]) == (99, False)
