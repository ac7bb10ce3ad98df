"""The bundled conversations: `tools:core` and `rag:core`."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.engine.config import read_experiment
from falter.engine.recipes import recipes_of
from falter.engine.task_loading import load_task
from falter.records.errors import TaskError
from falter.records.render import plain

TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list}


def rows(kind: str) -> list[dict[str, Any]]:
    folder = resources.files("falter.tasks").joinpath("data", "chats")
    lines = folder.joinpath(f"{kind}_core.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def stands(text: str, answer: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.IGNORECASE) is not None


def asked(row: dict[str, Any]) -> str:
    return str(next(t["content"] for t in reversed(row["messages"]) if t["role"] == "user"))


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Return True if a value is of the schema's type, and one of those that it lists."""
    kind = schema["type"]
    if kind == "object":
        known = schema["properties"]
        return set(schema["required"]) <= value.keys() and all(
            fits(inner, known[name]) for name, inner in value.items()
        )
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return False
    if kind == "array":
        return all(fits(inner, schema["items"]) for inner in value)
    dated = schema.get("format") != "date" or re.fullmatch(r"20\d\d-\d\d-\d\d", value)
    return bool(dated) and value in schema.get("enum", (value,))


def test_the_items_are_of_the_kinds_that_they_say() -> None:
    """Counts of right calls, offered tools and relevant chunks."""
    tools, rag = rows("tools"), rows("rag")
    assert Counter(row["kind"] for row in tools) == {"one": 36, "two": 8, "none": 8, "after": 8}
    assert Counter(row["kind"] for row in rag) == {"one": 24, "two": 10, "none": 6}
    right = {"one": {1}, "two": {2}, "none": {0}, "after": {0, 1}}
    for row in tools:
        assert len(row["target"]) in right[row["kind"]], row["key"]
        assert (row["messages"][-1]["role"] == "tool") == (row["kind"] == "after"), row["key"]
        assert 4 <= len(row["tools"]) <= 8
    for row in rag:
        relevant = sum(document["relevant"] for document in row["documents"])
        assert relevant == {"one": 1, "two": 2, "none": 0}[row["kind"]], row["key"]
        assert 4 <= len(row["documents"]) <= 6
    assert sum("conflict" in row for row in rag) == 20
    for listed in (tools, rag):
        assert len({row["key"] for row in listed}) == len({asked(row) for row in listed})
        assert len({row["key"] for row in listed}) == len(listed)


@pytest.mark.parametrize("row", rows("tools"), ids=lambda row: row["key"])
def test_right_calls_fit_the_tools_that_are_offered(row: dict[str, Any]) -> None:
    """All arguments that a schema asks for, of their types; others only where they are free."""
    offered = {tool["name"]: tool["parameters"] for tool in row["tools"]}
    (contrast,) = row["contrast"]
    assert contrast["target"] != row["target"]
    assert contrast["say"] != asked(row)
    for call in (*row["target"], *contrast["target"]):
        schema = offered[call["name"]]
        assert fits(call["arguments"], schema), call
        free = set(call.get("free", ()))
        assert free <= set(schema["properties"])
        listed = {name: p for name, p in schema["properties"].items() if "default" in p}
        assert all(fits(p["default"], p) for p in listed.values())
        for name, values in call.get("or", {}).items():
            assert all(fits(value, schema["properties"][name]) for value in values)


@pytest.mark.parametrize("row", rows("rag"), ids=lambda row: row["key"])
def test_answers_stand_in_the_relevant_chunk_alone(row: dict[str, Any]) -> None:
    """A sum of two chunks stands in none; the conflicting copy differs in its value alone."""
    texts = {d["text"]: d["relevant"] for d in row["documents"]}
    holds = [relevant for text, relevant in texts.items() if stands(text, row["target"])]
    assert holds == [True] if row["kind"] == "one" else all(holds)
    assert not stands(asked(row), row["target"])
    (contrast,) = row["contrast"]
    assert contrast["target"] != row["target"]
    assert sum(stands(text, contrast["target"]) for text in texts) == 1
    if "conflict" in row:
        copy = row["conflict"]
        (text,) = (text for text, relevant in texts.items() if relevant)
        assert copy["text"] == text.replace(row["target"], copy["target"]) != text


def say(calls: list[dict[str, Any]]) -> Any:
    return [{k: call[k] for k in ("name", "arguments")} for call in calls] or "There is none."


@pytest.mark.parametrize("kind", ["tools", "rag"])
def test_a_perfect_reader_gets_everything_right_and_follows_the_contrast(
    kind: str, tmp_path: Path
) -> None:
    """The targets are read from the replies as those who wrote them meant."""
    listed = rows(kind)
    known = {asked(row).split("\n")[-1]: row["target"] for row in listed}
    known |= {c["say"]: c["target"] for row in listed for c in row["contrast"]}

    def reader(messages: Any, tools: Any) -> Any:
        said = [turn["content"] for turn in messages if turn["role"] == "user"][-1]
        answer = known[said.split("\n")[-1]]
        return say(answer) if kind == "tools" else answer

    result = falter.run(
        task=f"{kind}:core", models=reader, recipes=["contrast"], store=str(tmp_path / "s.db")
    )
    (panel,) = result.analysis.panels
    assert panel.baseline.value == 1
    assert panel.keeping is not None
    shares = {c.label: (c.share.value, c.items) for c in panel.keeping.conditions}
    assert shares["contrast"] == (1, len(listed))


def test_documents_stand_before_the_question() -> None:
    task = load_task("rag:core")
    prompt = task.templates["open"].build(task.items[0])
    assert plain(prompt).endswith("free of charge.\n\nWithin how many days may a lamp be returned?")
    assert [s.kind for s in prompt.sections].count("document") == 5


@pytest.mark.parametrize("name", ["tools", "rag:all"])
def test_other_parts_are_refused_by_name(name: str) -> None:
    with pytest.raises(TaskError, match="has only the part 'core'"):
        load_task(name)


@pytest.mark.parametrize("kind", ["tools", "rag"])
def test_without_recipes_they_get_the_sets_that_fit(kind: str) -> None:
    recipes = recipes_of(read_experiment({"task": f"{kind}:core"}, needs_models=False))
    names = {recipe.label for recipe in recipes}
    assert {"sharded_turns", "contrast", "identity"} <= names
    assert ("tool_names" in names) == (kind == "tools")
