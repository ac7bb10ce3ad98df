"""Readers for five exams, on files of their shapes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import falter
from falter.records import render
from falter.records.errors import FalterError, MissingExtra, TaskError
from falter.tasks import tasks
from falter.tasks.task import Task

STEM = "Which of these floats on water?"
ARC_NESTED = {
    "id": "Own_1",
    "question": {
        "stem": STEM,
        "choices": [{"text": "a brick", "label": "1"}, {"text": "a cork", "label": "2"}],
    },
    "answerKey": "2",
}
ARC_FLAT = {
    "id": "Own_2",
    "question": STEM,
    "choices": {"text": ["a brick", "a nail", "a cork"], "label": ["A", "B", "C"]},
    "answerKey": "C",
}
MATHQA = {
    "Problem": "a box holds 12 pens . how many pens are in 100 boxes ?",
    "options": "a ) 1,200 , b ) rs . 12 ( b ) , c ) 112 , d ) 12 , 5 , e ) none of these",
    "correct": "a",
    "category": "general",
}
LOGIQA_TEXT = """
b
Every clerk in the office drinks tea. Nina drinks no tea.
What follows?
A.Nina is a clerk.
B.Nina is no clerk.
C.Tea is cheap.
D.Some clerks drink coffee.

D
It rains only at night here. It is noon.
Which is true?
A.It rains.
B.It snows.
C.It is dark.
D. It does not rain.
"""
LOGIQA = {
    "context": "Every clerk drinks tea.", "query": "What follows?",
    "options": ["Tea is cheap.", "No clerk drinks none."], "correct_option": 1,
}  # fmt: skip
GPQA = {
    "Record ID": "rec1",
    "Question": "Which orbital has no angular node?",
    "Correct Answer": "s\n",
    "Incorrect Answer 1": "p",
    "Incorrect Answer 2": "d",
    "Incorrect Answer 3": "f",
    "High-level domain": "Chemistry",
    "Subdomain": "Quantum",
}


def load(name: str, path: Path) -> Task:
    return tasks.get(name)(str(path))


def jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def answer(task: Task, n: int = 0) -> str:
    item = task.items[n]
    assert isinstance(item.target, int)
    return item.choices[item.target]


@pytest.mark.parametrize("name", ["arc_easy", "arc_challenge"])
def test_arc_in_both_shapes_and_with_both_kinds_of_label(name: str, tmp_path: Path) -> None:
    task = load(name, jsonl(tmp_path / "arc.jsonl", ARC_NESTED, ARC_FLAT))
    assert [item.key for item in task.items] == ["Own_1", "Own_2"]
    assert [len(item.choices) for item in task.items] == [2, 3]
    assert answer(task, 0) == answer(task, 1) == "a cork"
    assert task.name == name


def test_arc_as_parquet(tmp_path: Path) -> None:
    path = tmp_path / "arc.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist([ARC_FLAT]), path)
    assert answer(load("arc_easy", path)) == "a cork"


def test_mathqas_options_are_cut_at_their_letters_only(tmp_path: Path) -> None:
    """A comma or a bracket inside an option is not a border."""
    printed = str(["a ) 7", "b ) 8 , 9", "c ) 10"])
    path = tmp_path / "test.json"
    path.write_text(json.dumps([MATHQA, {**MATHQA, "options": printed, "correct": "b"}]))
    task = load("mathqa", path)
    assert task.items[0].choices == ("1,200", "rs . 12 ( b )", "112", "12 , 5", "none of these")
    assert task.items[1].choices == ("7", "8 , 9", "10")
    assert (answer(task, 0), answer(task, 1)) == ("1,200", "8 , 9")
    assert task.items[0].tags == ("general",)


def test_logiqas_text_blocks(tmp_path: Path) -> None:
    path = tmp_path / "Test.txt"
    path.write_text(LOGIQA_TEXT)
    task = load("logiqa", path)
    assert (answer(task, 0), answer(task, 1)) == ("Nina is no clerk.", "It does not rain.")
    prompt = task.templates["letter"].build(task.items[1])
    assert "Passage: It rains only at night here." in render.plain(prompt)
    assert {s.kind for s in prompt.sections if s.text.startswith("It rains only")} == {"input"}


@pytest.mark.parametrize(
    "row",
    [
        LOGIQA,
        {"context": "C.", "question": "Q?", "options": LOGIQA["options"], "label": "b"},
        {"text": "C.", "question": "Q?", "options": LOGIQA["options"], "answer": 1, "id": 4},
    ],
    ids=["1", "1 flat", "2"],
)
def test_logiqas_json_shapes(row: dict[str, Any], tmp_path: Path) -> None:
    assert answer(load("logiqa", jsonl(tmp_path / "l.jsonl", row))) == "No clerk drinks none."


def gpqa_file(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_gpqas_options_are_in_an_order_of_the_items_own(tmp_path: Path) -> None:
    """The right answer has a column of its own; its place must not tell, nor move between runs."""
    rows = [{**GPQA, "Record ID": f"rec{n}", "Question": f"Question {n}?"} for n in range(40)]
    path = gpqa_file(tmp_path / "gpqa_main.csv", *rows)
    task, again = load("gpqa", path), load("gpqa", path)
    assert [item.id for item in task.items] == [item.id for item in again.items]
    assert {answer(task, n) for n in range(40)} == {"s"}
    assert len({item.target for item in task.items}) == 4
    assert task.items[0].tags == ("Chemistry", "Quantum")


def test_the_same_row_twice_is_two_items(tmp_path: Path) -> None:
    """Published files hold a few rows twice."""
    task = load("mathqa", jsonl(tmp_path / "m.jsonl", MATHQA, MATHQA))
    first, second = (item.key for item in task.items)
    assert second == f"{first}-2"


def test_the_same_id_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="the item 'Own_2' appears twice"):
        load("arc_easy", jsonl(tmp_path / "a.jsonl", ARC_FLAT, ARC_FLAT))


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("arc_easy", {"answerKey": "A"}, "has no 'question'"),
    ("arc_easy", {**ARC_FLAT, "answerKey": "D"}, "'answerKey' is 'D'; expected one of the labels"),
    ("arc_easy", {**ARC_FLAT, "choices": ["a", "b"]}, "expected a text and a label for each"),
    (
        "arc_easy",
        {**ARC_FLAT, "choices": {"text": ["a", "b"], "label": ["A", "C"]}, "answerKey": "A"},
        "expected A, B, C",
    ),
    ("arc_easy", {**ARC_FLAT, "question": " "}, "'question' is ' '; expected a text"),
    ("mathqa", {**MATHQA, "options": "12, 13, 14"}, "expected 'a ) … , b ) … , …'"),
    ("mathqa", {**MATHQA, "options": "b ) 1 , c ) 2"}, "each letter once, in order"),
    ("mathqa", {**MATHQA, "options": "a ) 1 , b ) 2 , b ) 3"}, "each letter once, in order"),
    ("mathqa", {**MATHQA, "options": "a ) 1 , b ) , c ) 2"}, "none of them empty"),
    ("mathqa", {**MATHQA, "options": "[oops"}, "expected 'a ) … , b ) … , …'"),
    ("mathqa", {**MATHQA, "correct": "f"}, "'correct' is 'f'; expected one of the letters a, b"),
    ("logiqa", {**LOGIQA, "correct_option": 2}, "expected a letter, or 0 to 1"),
    ("logiqa", {**LOGIQA, "correct_option": True}, "expected a letter, or 0 to 1"),
    ("logiqa", {"question": "Q?", "options": []}, "has none of 'context', 'text'"),
    ("logiqa", {**LOGIQA, "options": "A. x"}, "'options' is 'A. x'; expected a list of texts"),
    ("gpqa", {"Question": "Q?"}, "has no 'Correct Answer'"),
    ("gpqa", {**GPQA, "Incorrect Answer 2": ""}, "'Incorrect Answer 2' is ''; expected a text"),
]


@pytest.mark.parametrize(("name", "row", "message"), WRONG, ids=[w[2][:40] for w in WRONG])
def test_a_row_of_another_shape_is_named(
    name: str, row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    good = {"arc_easy": ARC_FLAT, "mathqa": MATHQA, "logiqa": LOGIQA, "gpqa": GPQA}[name]
    path = jsonl(tmp_path / "data.jsonl", good, row)
    with pytest.raises(TaskError) as error:
        load(name, path)
    assert f"{path}, row 2" in error.value.message
    assert message in error.value.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.replace("\nb\n", "\nx\n"),
            "line 2 is 'x'; expected the right answer's letter",
        ),
        (lambda t: t.replace("C.Tea", "Tea"), "line 7 is 'Tea is cheap.'; expected C.…"),
        (
            lambda t: t.replace("D. It does not rain.\n", ""),
            "line 16: the block ends early; expected D.",
        ),
        (lambda t: t.replace("coffee.\n\n", "coffee.\n"), "line 9 is 'D'; expected an empty line"),
        (lambda _: "", "The task 'logiqa' has no items"),
    ],
)
def test_a_broken_block_is_named_by_its_line(
    change: Callable[[str], str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "Test.txt"
    path.write_text(change(LOGIQA_TEXT))
    with pytest.raises(TaskError) as error:
        load("logiqa", path)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["arc_easy", "arc_challenge", "mathqa", "logiqa", "gpqa"])
def test_without_the_hubs_library_a_local_copy_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtra) as error:
        tasks.get(name)(None)
    assert f"--task {name}:PATH" in str(error.value)


@pytest.mark.parametrize("name", ["arc_easy", "logiqa"])
def test_a_file_that_is_not_there_is_an_error_of_ours(name: str, tmp_path: Path) -> None:
    for ending in ("jsonl", "txt", "parquet"):
        with pytest.raises(FalterError):
            load(name, tmp_path / f"none.{ending}")


def test_an_exam_runs(tmp_path: Path) -> None:
    rows = [{**MATHQA, "Problem": f"how much is {n} plus {n} ?"} for n in range(30)]
    result = falter.run(
        task=f"mathqa:{jsonl(tmp_path / 'm.jsonl', *rows)}", models=["simulated"],
        recipes=["pad_newlines"], store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert panel.counts.cells == 60 and panel.counts.failed == 0
