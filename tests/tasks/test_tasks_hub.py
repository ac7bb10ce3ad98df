"""Benchmarks in the hub's shape: the same items as from the published files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import falter
from falter.records.errors import FalterError, MissingExtra, TaskError
from falter.tasks import tasks
from falter.tasks.task import Task

DATA = Path(__file__).parents[1] / "data"
NAMES = ["gsm8k", "hellaswag", "humaneval", "mmlu", "truthfulqa"]
Row = dict[str, Any]

MMLU: Row = {
    "question": "Which of these is a prime?",
    "subject": "number_theory",
    "choices": ["4", "6", "7", "9"],
    "answer": 2,
}
TRUTHFULQA: Row = {
    "question": "Where is the moon by day?",
    "mc1_targets": {"choices": ["Where it is by night", "Under the sea"], "labels": [1, 0]},
}
HELLASWAG: Row = {
    "ind": 3,
    "activity_label": "Baking bread",
    "ctx": "A man kneads dough. he",
    "endings": ["puts it into the oven.", "paints it [step] blue.", "sings.", "leaves by boat."],
    "label": "0",
}
GSM8K: Row = {"question": "Two pens and two pens?", "answer": "2 + 2 = 4\n#### 4"}
HUMANEVAL: Row = {
    "task_id": "Own/0",
    "prompt": "def one():\n",
    "canonical_solution": "    return 1\n",
    "test": "def check(candidate):\n    assert candidate() == 1\n",
    "entry_point": "one",
}
GOOD = {
    "gsm8k": GSM8K, "hellaswag": HELLASWAG, "humaneval": HUMANEVAL, "mmlu": MMLU,
    "truthfulqa": TRUTHFULQA,
}  # fmt: skip


def load(name: str, path: Path) -> Task:
    return tasks.get(name)(str(path))


def parquet(path: Path, rows: list[Row]) -> Path:
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def jsonl(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


WRITERS = {"parquet": parquet, "jsonl": jsonl}
each_shape = pytest.mark.parametrize("shape", WRITERS)


def written(shape: str, folder: Path, rows: list[Row]) -> Path:
    write: Callable[[Path, list[Row]], Path] = WRITERS[shape]
    return write(folder / f"rows.{shape}", rows)


def same(one: Task, other: Task) -> None:
    assert [item.key for item in one.items] == [item.key for item in other.items]
    assert [item.id for item in one.items] == [item.id for item in other.items]


@each_shape
def test_truthfulqa_is_the_same_from_the_hub(shape: str, tmp_path: Path) -> None:
    """All published questions: keys, the order of the options and the place of the right one."""
    path = DATA / "truthfulqa_mc_task.json.gz"
    published = json.loads(gzip.decompress(path.read_bytes()))
    rows = [
        {
            "question": row["question"],
            "mc1_targets": {
                "choices": list(row["mc1_targets"]),
                "labels": list(row["mc1_targets"].values()),
            },
        }
        for row in published
    ]
    task = load("truthfulqa", written(shape, tmp_path, rows))
    assert len(task.items) == 790
    same(task, load("truthfulqa", path))


def mmlu_rows() -> list[Row]:
    """The published CSV files as the hub has them: read here without falter's reader."""
    rows = []
    for path in sorted((DATA / "mmlu").glob("*.csv.gz")):
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
        for question, *choices, letter in csv.reader(io.StringIO(text, newline="")):
            rows.append(
                {
                    "question": question,
                    "subject": path.name.removesuffix("_test.csv.gz"),
                    "choices": choices,
                    "answer": "ABCD".index(letter),
                }
            )
    return rows


@each_shape
def test_mmlu_is_the_same_from_the_hub(shape: str, tmp_path: Path) -> None:
    """Four subjects; the first tag is the subject."""
    rows = mmlu_rows()
    task = load("mmlu", written(shape, tmp_path, rows))
    assert [item.tags for item in task.items] == [(row["subject"],) for row in rows]
    assert [item.target for item in task.items] == [row["answer"] for row in rows]
    same(task, load("mmlu", DATA / "mmlu"))


def test_mmlus_answer_is_a_number_or_a_letter(tmp_path: Path) -> None:
    """And white space around a text, which one copy has and another has not, changes nothing."""
    numbers = [MMLU, {**MMLU, "question": "Which is odd?"}]
    letters = [
        {**row, "answer": "C", "choices": [f" {text} " for text in row["choices"]]}
        for row in numbers
    ]
    task = load("mmlu", jsonl(tmp_path / "numbers.jsonl", numbers))
    same(task, load("mmlu", jsonl(tmp_path / "letters.jsonl", letters)))
    same(task, load("mmlu", parquet(tmp_path / "letters.parquet", letters)))
    assert task.items[0].choices[2] == "7"


def test_mmlu_without_a_subject(tmp_path: Path) -> None:
    row = {name: value for name, value in MMLU.items() if name != "subject"}
    (item,) = load("mmlu", jsonl(tmp_path / "m.jsonl", [row])).items
    assert item.tags == () and item.key.startswith("mmlu-")


def test_mmlus_csv_files_may_be_packed(tmp_path: Path) -> None:
    source = DATA / "mmlu" / "global_facts_test.csv.gz"
    (tmp_path / "open").mkdir()
    (tmp_path / "packed").mkdir()
    plain = tmp_path / "open" / "global_facts_test.csv"
    plain.write_bytes(gzip.decompress(source.read_bytes()))
    shutil.copy(source, tmp_path / "packed")
    whole = load("mmlu", plain)
    assert whole.items[0].tags == ("global_facts",)
    for path in (source, tmp_path / "open", tmp_path / "packed"):
        same(whole, load("mmlu", path))


@each_shape
def test_hellaswag_is_the_same_from_the_hub(shape: str, tmp_path: Path) -> None:
    """There the label is a text."""
    path = DATA / "hellaswag_20.jsonl"
    published = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows = [{**row, "label": str(row["label"])} for row in published]
    task = load("hellaswag", written(shape, tmp_path, rows))
    assert [item.tags[0] for item in task.items] == [row["activity_label"] for row in rows]
    same(task, load("hellaswag", path))


@pytest.mark.parametrize(
    ("name", "path"),
    [("gsm8k", DATA / "gsm8k_test.jsonl.gz"), ("humaneval", DATA / "HumanEval.jsonl.gz")],
)
def test_what_has_one_shape_is_the_same_as_parquet(name: str, path: Path, tmp_path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    same(load(name, parquet(tmp_path / "rows.parquet", rows)), load(name, path))


@pytest.mark.parametrize("name", ["gsm8k", "hellaswag", "mmlu", "truthfulqa"])
def test_the_same_row_twice_is_two_items(name: str, tmp_path: Path) -> None:
    """Published files hold a few rows twice."""
    first, second = load(name, jsonl(tmp_path / "r.jsonl", [GOOD[name]] * 2)).items
    assert second.key == f"{first.key}-2"


def test_the_same_function_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="the item 'Own/0' appears twice"):
        load("humaneval", jsonl(tmp_path / "h.jsonl", [HUMANEVAL] * 2))


WRONG: list[tuple[str, Row, str]] = [
    ("mmlu", {"subject": "x"}, "has no 'choices'"),
    ("mmlu", {**MMLU, "question": " "}, "'question' is ' '; expected a text"),
    ("mmlu", {**MMLU, "choices": "4, 6"}, "'choices' is '4, 6'; expected a list of texts"),
    ("mmlu", {**MMLU, "choices": ["4"], "answer": 0}, "'choices' is ['4']; expected at least two"),
    ("mmlu", {**MMLU, "answer": 4}, "'answer' is 4; expected a letter, or 0 to 3"),
    ("mmlu", {**MMLU, "answer": -1}, "'answer' is -1; expected a letter, or 0 to 3"),
    ("mmlu", {**MMLU, "answer": "E"}, "'answer' is 'E'; expected a letter, or 0 to 3"),
    ("mmlu", {**MMLU, "answer": "BC"}, "'answer' is 'BC'; expected a letter, or 0 to 3"),
    ("mmlu", {**MMLU, "answer": True}, "'answer' is True; expected a letter, or 0 to 3"),
    ("truthfulqa", {"mc1_targets": {}}, "has no 'question'"),
    ("truthfulqa", {"question": "Q?"}, "has no 'mc1_targets'"),
    ("truthfulqa", {**TRUTHFULQA, "mc1_targets": ["a"]}, "expected options with 1 or 0"),
    ("truthfulqa", {**TRUTHFULQA, "mc1_targets": {"a": 1}}, "expected options with 1 or 0"),
    ("truthfulqa", {**TRUTHFULQA, "mc1_targets": {"a": 1, "b": 2}}, "expected options with 1"),
    (
        "truthfulqa",
        {**TRUTHFULQA, "mc1_targets": {"choices": ["a", "b"], "labels": [1]}},
        "expected options with 1 or 0, or choices and labels",
    ),
    ("truthfulqa", {**TRUTHFULQA, "mc1_targets": {"a": 1, "b": 1}}, "has 2 right answers"),
    ("hellaswag", {"ctx": "a"}, "has no 'endings'"),
    ("hellaswag", {**HELLASWAG, "endings": "x"}, "expected a list of texts"),
    ("hellaswag", {**HELLASWAG, "label": ""}, "'label' is ''; expected 0 to 3"),
    ("hellaswag", {**HELLASWAG, "ctx": None}, "'ctx' is None; expected a text"),
    ("gsm8k", {"question": "Q?"}, "has no 'answer'"),
    ("gsm8k", {**GSM8K, "answer": "4"}, "the answer has no '####'"),
    ("gsm8k", {**GSM8K, "question": 4}, "'question' is 4; expected a text"),
    ("humaneval", {**HUMANEVAL, "test": None}, "'test' is None; expected a text"),
    ("humaneval", {"task_id": "x", "promt": ""}, "has no 'prompt'"),
]


@pytest.mark.parametrize(("name", "row", "message"), WRONG, ids=[f"{w[0]} {w[2]}" for w in WRONG])
def test_a_row_of_another_shape_is_named(name: str, row: Row, message: str, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "data.jsonl", [GOOD[name], row])
    with pytest.raises(TaskError) as error:
        load(name, path)
    assert f"{path}, row 2" in error.value.message
    assert message in error.value.message


def test_a_broken_csv_file_is_named_by_its_line(tmp_path: Path) -> None:
    """Four options, a letter, no header; a folder without such files is no MMLU."""
    path = tmp_path / "x_test.csv"
    for line in ("question,A,B,C,D,answer", "Q?,1,2,3,4", " ,1,2,3,4,A", '"\0",1,2,3,4,AB'):
        path.write_text(f'"Two\nlines?",1,2,3,4,A\n{line}\n')
        with pytest.raises(TaskError, match=r"x_test.csv, line 3"):
            load("mmlu", path)
    path.unlink()
    with pytest.raises(TaskError, match=r"holds no \.csv file"):
        load("mmlu", tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_without_the_hubs_library_a_local_copy_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an argument, and with the name of another copy."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    for argument in (None, "hub:owner/name/config"):
        with pytest.raises(MissingExtra) as error:
            tasks.get(name)(argument)
        assert f"--task {name}:PATH" in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_not_there_is_an_error_of_ours(name: str, tmp_path: Path) -> None:
    for ending in ("jsonl", "csv", "csv.gz", "parquet", "xyz", ""):
        with pytest.raises(FalterError):
            load(name, tmp_path / f"none.{ending}")


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("")
    with pytest.raises(TaskError, match="The task 'mmlu' has no items"):
        load("mmlu", tmp_path / "e.csv")


def test_rows_of_the_hub_run(tmp_path: Path) -> None:
    """Under the hub's subjects, which a report can group by."""
    path = parquet(tmp_path / "mmlu.parquet", mmlu_rows()[:40])
    result = falter.run(
        task=f"mmlu:{path}", models=["simulated"], recipes=["pad_newlines"],
        store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert panel.counts.cells == 80 and panel.counts.failed == 0
