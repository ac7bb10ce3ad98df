"""Conversations from files: their forms, their sections, and everything that is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.engine.config import read_experiment
from falter.engine.task_loading import load_tasks
from falter.perturbations import apply_recipe, perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.perturbations.recipes import resolve_step
from falter.records import render
from falter.records.chats import openai_tools, plain_json, turns
from falter.records.errors import DuplicateName, FalterError, UsageError
from falter.records.types import Prompt, Recipe
from falter.store.encoding import pack_prompt, read_prompt
from falter.testing.samples import CHATS
from routers import TOOLS

CALL = {"name": "cancel_order", "arguments": {"order_id": "A-1042"}}
MADE = {"id": "c1", "type": "function", "function": {**CALL, "arguments": '{"order_id": "A"}'}}
USER = {"role": "user", "content": "Cancel order A-1042 please."}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}
GOOD: dict[str, Any] = {"messages": [USER], "tools": TOOLS, "target": [CALL]}
TEXT: dict[str, Any] = {"messages": [USER], "target": "yes"}


def asks(*made: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": list(made)}


def with_arguments(arguments: str) -> dict[str, Any]:
    return {**MADE, "function": {"name": "cancel_order", "arguments": arguments}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a text": ({**TEXT, "messages": "Hello"}, "'messages' is a text, not a list of turns"),
    "empty": ({**TEXT, "messages": []}, "'messages' is an empty list"),
    "no list": ({**TEXT, "messages": {"a": 1}}, "'messages' is no list, not a list of turns"),
    "last turn is a call": (
        {**GOOD, "messages": [USER, asks(MADE)]},
        "ends in a turn that is a call, so there is nothing to answer",
    ),
    "role": (
        {**TEXT, "messages": [USER, {"role": "asistant", "content": "x"}]},
        "row 1, turn 2: the role 'asistant' is not one of system, user, assistant, tool",
    ),
    "turn is a text": ({**TEXT, "messages": ["Hello"]}, "turn 1 is not a mapping with a role"),
    "result without a call": (
        {**GOOD, "messages": [USER, {**RESULT, "tool_call_id": "c9"}]},
        "turn 2 answers the call 'c9', which no earlier turn makes",
    ),
    "call without a result": (
        {**GOOD, "messages": [USER, asks(MADE), USER]},
        "turn 3 comes before the result of the call 'c1'",
    ),
    "one result of two": (
        {**GOOD, "messages": [USER, asks(MADE, {**MADE, "id": "c2"}), RESULT]},
        "has no result for the call 'c2'",
    ),
    "image": (
        {**TEXT, "messages": [{**USER, "content": [{"type": "image_url", "image_url": "x"}]}]},
        "turn 1 contains an image, but falter changes only texts",
    ),
    "audio": (
        {**TEXT, "messages": [{**USER, "content": [{"type": "input_audio"}]}]},
        "contains a part of the type 'input_audio', but falter changes only texts",
    ),
    "two tools of one name": (
        {**GOOD, "tools": [*TOOLS, TOOLS[0]]},
        "offers two tools of the name 'cancel_order'",
    ),
    "tool without a name": ({**GOOD, "tools": [{"x": 1}]}, "offers a tool without a name"),
    "name that APIs refuse": ({**GOOD, "tools": [{"name": "a b"}]}, "a name that APIs reject"),
    "target of no tool": (
        {**GOOD, "target": [{**CALL, "name": "cancel_ordr"}]},
        "has a target that calls 'cancel_ordr', which is not one of its tools",
    ),
    "call of no tool": (
        {**TEXT, "messages": [USER, asks(MADE), RESULT]},
        "turn 2 calls 'cancel_order', which is not one of its tools",
    ),
    "argument of no schema": (
        {**GOOD, "target": [{**CALL, "arguments": {"order": "A"}}]},
        "with 'order', which its schema does not have",
    ),
    "arguments are no JSON": (
        {**GOOD, "messages": [USER, asks(with_arguments("{order")), RESULT]},
        "turn 2 calls 'cancel_order' with arguments that are not a JSON object",
    ),
    "documents without a place": ({**TEXT, "documents": ["x"]}, "no turn contains {documents}"),
    "documents in a turn of the assistant": (
        {
            "messages": [USER, {"role": "assistant", "content": "{documents}"}, USER],
            "documents": ["x"],
            "target": "1",
        },
        "no turn contains {documents}",
    ),
    "documents in two places": (
        {**TEXT, "messages": [{**USER, "content": "{documents} {documents}"}], "documents": ["x"]},
        "says {documents} in 2 places",
    ),
    "exact is no mark": (
        {**GOOD, "target": [{**CALL, "arguments": {"order_id": "A"}, "exact": "yes"}]},
        "whose 'exact' or 'ordered' is neither true nor false",
    ),
    "empty document": (
        {**TEXT, "messages": [{**USER, "content": "{documents}"}], "documents": [" "]},
        "has a document without a text",
    ),
    "calls are no list": (
        {**TEXT, "messages": [USER, {"role": "assistant", "tool_calls": True}, USER]},
        "turn 2 has 'tool_calls' that are not a list",
    ),
    "empty contrast": ({**TEXT, "contrast": [{"ask": "x"}]}, "has a contrast without"),
    "no user": ({**TEXT, "messages": [{**USER, "role": "system"}]}, "has no turn of the user"),
    "no target": ({"messages": [USER]}, "no right answers: name their column with --target"),
}


class Counter:
    """A function that counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Any, tools: Any) -> str:
        self.calls += 1
        return "yes"


def refusal(data: Any, tmp_path: Path, **settings: Any) -> str:
    """The error of a run, which asked nothing."""
    counter = Counter()
    model = settings.pop("models", counter)
    with pytest.raises(FalterError) as error:
        falter.run(data=data, models=model, store=str(tmp_path / "falter.db"), **settings)
    assert counter.calls == 0
    return str(error.value)


@pytest.mark.parametrize("name", REFUSED)
def test_a_row_that_does_not_fit_is_refused_before_anything_is_sent(
    name: str, tmp_path: Path
) -> None:
    row, told = REFUSED[name]
    data: dict[str, Any] = {"rows": [row]} | ({"target": "target"} if "target" in row else {})
    assert told in refusal(data, tmp_path, recipes=["identity"])


def prompt_only(prompt: str) -> str:
    raise AssertionError("asked")


def test_what_does_not_go_with_conversations_is_refused(tmp_path: Path) -> None:
    """A text around the turns, examples, options, likelihoods, remedies, clients without tools."""
    text, tools = ({"rows": [r], "target": "target"} for r in (TEXT, GOOD))
    two = {"rows": [TEXT, {**TEXT, "target": "no"}], "target": "target"}
    cases: list[tuple[Mapping[str, Any], dict[str, Any], str]] = [
        (text, {"template": "Say: {messages}"}, "cannot contain a conversation"),
        (
            text,
            {"template": {"system": "x", "input": "y", "messages": "{messages}"}},
            "can only have",
        ),
        (two, {"demonstrations": 1}, "conversations take no demonstrations"),
        (text, {"recipes": ["template"]}, "no alternative template"),
        (text, {"remedy": "tidy_lines"}, "remedies do not apply"),
        (text, {"scorer": "choice_likelihood"}, "compares options"),
        ({**text, "choices": "messages"}, {}, "cannot be listed"),
        (tools, {"models": "simulated"}, "with tools, which 'simulated' does not support"),
        (tools, {"models": prompt_only}, "does not support"),
        (
            tools,
            {"models": {"name": "openai:x", "api": "completions", "base_url": "http://[::1]:9"}},
            "does not support",
        ),
        ({"rows": [{"messages": [USER]}]}, {"same": "call"}, "has no tools"),
        ({"rows": [{"messages": [USER]}]}, {"same": "label"}, "no labels are named"),
        ({"rows": [{"messages": [USER]}]}, {"same": "auto"}, "set how answers are compared"),
        ({"rows": [GOOD, TEXT], "target": "target"}, {}, "some targets are tool calls"),
    ]
    for data, settings, told in cases:
        assert told in refusal(data, tmp_path, **settings), told


FORMS: dict[str, dict[str, Any]] = {
    "OpenAI": {"messages": [USER, asks(MADE), RESULT]},
    "Anthropic": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": USER["content"]}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c1", "name": "cancel_order",
                     "input": {"order_id": "A"}}
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}],
            },
        ]
    },
    "ShareGPT": {
        "conversations": [
            {"from": "human", "value": USER["content"]},
            {"from": "function_call",
             "value": '{"name": "cancel_order", "arguments": {"order_id": "A"}}'},
            {"from": "observation", "value": "done"},
        ]
    },
    "TRL": {"prompt": [USER, asks(MADE), RESULT]},
    "a cell of CSV": {"messages": json.dumps([USER, asks(MADE), RESULT])},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_conversation_becomes_the_same_turns(form: str) -> None:
    schema = TOOLS[0]["parameters"]
    tools = {
        "OpenAI": [{"type": "function", "function": entry} for entry in TOOLS],
        "Anthropic": [{"name": "cancel_order", "input_schema": schema}],
        "ShareGPT": json.dumps(TOOLS),
    }.get(form, TOOLS)
    prompt = built({**FORMS[form], "tools": tools, "target": "ok"})
    assert turns(render.messages(prompt)) == [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [MADE]},
        RESULT,
    ]
    assert openai_tools(render.tools(prompt))[0]["function"]["parameters"] == schema


def built(row: dict[str, Any], **settings: Any) -> Prompt:
    data = {"rows": [row], "target": "target"} if "target" in row else {"rows": [row]}
    experiment = read_experiment({"models": ["simulated"], **settings, **memory(data)})
    (task,) = load_tasks(experiment)
    return task.templates["open"].build(task.items[0])


def in_memory(data: dict[str, Any]) -> dict[str, Any]:
    return {"models": ["simulated"], **memory(data)}


def memory(data: dict[str, Any]) -> dict[str, Any]:
    from falter.tasks.rows import keep_rows

    rest = {name: value for name, value in data.items() if name != "rows"}
    return {"data": {"path": keep_rows(data["rows"]), **rest}}


def test_documents_stand_in_their_place_and_another_system_turn_in_that_of_the_rows() -> None:
    system = {"role": "system", "content": "Old."}
    asked = {"role": "user", "content": "{documents}\n\nHow {long}?"}
    row = {
        "messages": [system, asked],
        "documents": [{"text": "30 days.", "relevant": True}, "We ship."],
        "target": "30",
    }
    template = {"system": "New.", "messages": "{messages}"}
    prompt = built(row, template=template)
    assert render.messages(prompt) == (
        ("system", "New."),
        ("user", "30 days.\n\nWe ship.\n\nHow {long}?"),
    )


def test_documents_are_sections_that_recipes_reorder_and_turns_that_come_before_have_none() -> None:
    asked = {"role": "user", "content": "{documents}\n\nHow long?"}
    texts = ["Lamps: 30 days.", "We ship.", "Closed on Sunday.", "Glass is extra."]
    row = {"messages": [asked], "documents": texts, "target": "30"}
    row["contrast"] = [
        {"messages": [{"role": "user", "content": "Read this. {documents} Closed?"}]}
    ]
    prompt = built(row)
    ((_, said),) = render.messages(changed(prompt, "reorder_documents"))
    assert said != render.messages(prompt)[0][1] and said.endswith("\n\nHow long?")
    assert sorted(said.split("\n\n")[:4]) == sorted(texts)
    ((_, version),) = render.messages(changed(prompt, "contrast"))
    assert version == "Read this. " + "\n\n".join(texts) + " Closed?"
    spoken = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    whole = [*spoken, asked, {"role": "assistant", "content": "30"}]
    rows = {"rows": [{"messages": whole, "documents": texts}], "turns": "all"}
    (task,) = load_tasks(read_experiment(in_memory(rows)))
    assert ["documents" in item.fields for item in task.items] == [False, True]
    ((tag,), (other_tag,)) = (item.tags for item in task.items)
    assert tag == other_tag and tag.startswith("chat:")
    with pytest.raises(UsageError, match=r"does not contain \{text\} exactly once"):
        load_tasks(read_experiment(in_memory({"rows": [row], "target": "target", "each": "- "})))


def changed(prompt: Prompt, name: str) -> Prompt:
    recipe = Recipe(label=name, steps=(resolve_step(name),))
    applied = apply_recipe("k", prompt, recipe, 0, 0)
    assert applied.status == "changed"
    return applied.prompt


def test_the_last_turn_of_the_assistant_is_the_right_answer_and_is_not_sent() -> None:
    row = {"messages": [USER, asks(MADE)], "tools": TOOLS}
    (task,) = load_tasks(read_experiment({"models": ["simulated"], **memory({"rows": [row]})}))
    assert json.loads(str(task.items[0].target)) == [{**CALL, "arguments": {"order_id": "A"}}]
    assert "is used as the right answer and is not sent" in task.remarks[0]
    prompt = task.templates["open"].build(task.items[0])
    assert render.messages(prompt) == (("user", USER["content"]),)


def test_every_turn_of_the_assistant_may_be_an_item() -> None:
    said = {"role": "assistant", "content": "Which one?"}
    row = {"messages": [USER, said, USER, {**said, "content": "Done."}]}
    data = memory({"rows": [row]})
    data["data"]["turns"] = "all"
    (task,) = load_tasks(read_experiment({"models": ["simulated"], **data}))
    assert [item.target for item in task.items] == ["Which one?", "Done."]
    assert len({item.tags for item in task.items}) == 1
    assert task.remarks[0].startswith("the last turn of 1 conversations is the assistant's")
    data = memory({"rows": [row, row]})
    data["data"]["turns"] = "all"
    with pytest.raises(DuplicateName, match="rows 1 and 2 have the same"):
        load_tasks(read_experiment({"models": ["simulated"], **data}))


# Round trips


@pytest.mark.parametrize("sample", CHATS, ids=lambda sample: sample.name)
def test_turns_links_and_tools_survive_every_perturbation(sample: Any) -> None:
    """Other turns stay, calls keep their ids, tools parse; the store gives all of it back."""
    clean = sample.prompt
    before = [m for m in turns(render.messages(clean)) if m["role"] != "user"]
    for perturbation in perturbations:
        if isinstance(perturbation, SettingPerturbation) or perturbation.needs_model:
            continue
        recipe = Recipe(label="x", steps=(resolve_step(perturbation.name),))
        for draw in range(3):
            prompt = apply_recipe("k", clean, recipe, 0, draw).prompt
            assert read_prompt(pack_prompt(prompt), whole=True)[0] == prompt
            after = [m for m in turns(render.messages(prompt)) if m["role"] != "user"]
            tools = [plain_json(tool) for tool in render.tools(prompt)]
            assert len({tool["name"] for tool in tools}) == len(tools)
            if perturbation.name in ("contrast", "tool_names"):
                continue
            kept = [m for m in after if m in before]
            assert kept == before, perturbation.name


def test_names_go_back_to_the_old_ones() -> None:
    clean = next(s.prompt for s in CHATS if s.name == "chat: after a result")
    for way in ("case", "synonym", "opaque"):
        recipe = Recipe(label="x", steps=(resolve_step("tool_names", {"way": way}),))
        prompt = apply_recipe("k", clean, recipe, 0, 0).prompt
        offered = {tool["name"] for tool in map(plain_json, render.tools(prompt))}
        called = {c["function"]["name"] for m in turns(render.messages(prompt))
                  for c in m.get("tool_calls", ())}  # fmt: skip
        assert called <= offered and "get_invoice" not in offered, way
        text = "\n".join(s.text for s in prompt.sections if s.kind in ("tool", "call"))
        for new, old in prompt.renames:
            text = text.replace(f'"{new}"', f'"{old}"')
        told = "\n".join(s.text for s in clean.sections if s.kind in ("tool", "call"))
        if way == "opaque":
            continue  # descriptions mention the new names without quotes
        for name in ("get_invoice", "cancel_order", "invoice_number", "withLines"):
            assert text.count(f'"{name}"') == told.count(f'"{name}"'), (way, name)
