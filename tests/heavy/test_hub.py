"""The hub's own library on folders in the hub's layout: usual names, configurations and splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from falter.records.errors import TaskError
from falter.tasks import tasks
from falter.tasks.task import Task

Row = dict[str, Any]
OPTIONS = {"text": ["a brick", "a cork"], "label": ["A", "B"]}
ARC: Row = {"id": "Own_1", "question": "What floats?", "choices": OPTIONS, "answerKey": "B"}
COPIES: dict[str, tuple[str, str, Row]] = {
    "arc_challenge": ("allenai/ai2_arc/ARC-Challenge", "test", ARC),
    "arc_easy": ("allenai/ai2_arc/ARC-Easy", "test", ARC),
    "gpqa": (
        "Idavidrein/gpqa/gpqa_main",
        "train",
        {
            "Question": "What floats?", "Correct Answer": "a cork",
            "Incorrect Answer 1": "a brick", "Incorrect Answer 2": "a nail",
            "Incorrect Answer 3": "an anvil",
        },
    ),
    "gsm8k": ("openai/gsm8k/main", "test", {"question": "2 + 2?", "answer": "So.\n#### 4"}),
    "hellaswag": (
        "Rowan/hellaswag",
        "validation",
        {
            "ind": 1, "activity_label": "Fishing", "ctx": "A cork", "label": "1",
            "endings": ["sinks.", "floats.", "sings.", "burns."],
        },
    ),
    "humaneval": (
        "openai/openai_humaneval",
        "test",
        {
            "task_id": "Own/0", "prompt": "def one():\n", "canonical_solution": "    return 1\n",
            "test": "def check(candidate):\n    assert candidate() == 1\n", "entry_point": "one",
        },
    ),
    "logiqa": (
        "EleutherAI/logiqa/logiqa",
        "test",
        {
            "context": "Corks float.", "question": "Which is true?", "label": "b",
            "options": ["No cork floats.", "Some corks float."],
        },
    ),
    "mathqa": (
        "regisss/math_qa",
        "test",
        {"Problem": "2 + 2 ?", "options": "a ) 3 , b ) 4", "correct": "b"},
    ),
    "mmlu": (
        "cais/mmlu/all",
        "test",
        {"question": "2 + 2?", "subject": "sums", "choices": ["3", "4", "5", "6"], "answer": 1},
    ),
    "truthfulqa": (
        "truthfulqa/truthful_qa/multiple_choice",
        "validation",
        {
            "question": "What floats?",
            "mc1_targets": {"choices": ["A cork", "A brick"], "labels": [1, 0]},
        },
    ),
}  # fmt: skip


def put(where: str, split: str, row: Row) -> None:
    """A folder `owner/name` as the hub lays it out, one Parquet file a configuration and split."""
    owner, name, *config = where.split("/")
    folder = Path(owner, name)
    data = folder / (config[0] if config else "data") / f"{split}-00000-of-00001.parquet"
    data.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.Table.from_pylist([row]), data)
    entry = {
        "config_name": config[0] if config else "default",
        "data_files": [{"split": split, "path": str(data.relative_to(folder))}],
    }
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': [entry]})}---\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own to stand in, with the library's cache in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path


def only(task: Task) -> tuple[str, str]:
    (item,) = task.items
    return item.key, item.id


@pytest.mark.parametrize("name", COPIES)
def test_the_usual_copy_is_read(name: str, here: Path) -> None:
    """Its name, its configuration and its split are asked for where no argument is given."""
    where, split, row = COPIES[name]
    put(where, split, row)
    task = tasks.get(name)(None)
    local = here / "row.jsonl"
    local.write_text(json.dumps(row) + "\n")
    assert only(task) == only(tasks.get(name)(str(local)))


@pytest.mark.parametrize("where", ["own/copy/part", "own/copy"])
def test_another_copy_is_read_by_its_name(where: str, here: Path) -> None:
    put(where, "test", COPIES["mmlu"][2])
    (item,) = tasks.get("mmlu")(f"hub:{where}").items
    assert item.tags == ("sums",)


def test_a_configuration_that_is_not_there_is_an_error_of_ours(here: Path) -> None:
    put("own/copy/part", "test", COPIES["mmlu"][2])
    with pytest.raises(TaskError, match=r"'own/copy/other' \(split 'test'\) could not be loaded"):
        tasks.get("mmlu")("hub:own/copy/other")
