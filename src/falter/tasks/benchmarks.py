"""Readers for the shapes in which five well-known benchmarks are published."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

from falter.core.errors import TaskError
from falter.core.ids import digest, short
from falter.core.records import Item
from falter.core.rng import Rng
from falter.tasks._files import read_rows
from falter.tasks._task import Task
from falter.tasks._template import Template
from falter.tasks.basics import CLOZE, LETTER

__all__ = ["gsm8k", "hellaswag", "humaneval", "mmlu", "truthfulqa"]


def truthfulqa(argument: str | None) -> Task:
    """TruthfulQA, single right answer (`mc1_targets`).

    The file lists the right answer first in every question, so the options are shuffled with a
    seed of their own: the item's key.
    """
    path = _path("truthfulqa", argument)
    items = []
    for number, row in enumerate(read_rows(path), 1):
        targets = _field(row, "mc1_targets", path, number)
        options = list(targets)
        key = short(digest("truthfulqa", row["question"], options), 16)
        order = list(Rng(int(key[:12], 16)).order(len(options)))
        right = [i for i, option in enumerate(options) if targets[option]]
        if len(right) != 1:
            raise TaskError(f"{path}, entry {number} has {len(right)} right answers; expected one")
        items.append(
            Item(
                task="truthfulqa",
                key=key,
                fields={"question": row["question"]},
                choices=tuple(options[i] for i in order),
                target=order.index(right[0]),
            )
        )
    return _choice_task("truthfulqa", items)


def mmlu(argument: str | None) -> Task:
    """MMLU: a CSV without a header (question, four options, letter), or a folder of them."""
    path = Path(_path("mmlu", argument))
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not files:
        raise TaskError(f"The folder {path} holds no .csv file", hint="give MMLU's CSV files")
    items = []
    seen: Counter[str] = Counter()  # the published files repeat a few rows
    for file in files:
        subject = re.sub(r"_(test|dev|val)$", "", file.stem)
        with file.open(encoding="utf-8", newline="") as handle:
            for number, row in enumerate(csv.reader(handle), 1):
                if len(row) != 6 or row[5] not in "ABCD" or len(row[5]) != 1:
                    raise TaskError(
                        f"{file}, line {number} is not question, four options and a letter"
                    )
                key = f"{subject}-{short(digest('mmlu', row), 12)}"
                seen[key] += 1
                items.append(
                    Item(
                        task="mmlu",
                        key=key if seen[key] == 1 else f"{key}-{seen[key]}",
                        fields={"question": row[0]},
                        choices=tuple(row[1:5]),
                        target="ABCD".index(row[5]),
                        tags=(subject,),
                    )
                )
    return _choice_task("mmlu", items)


def hellaswag(argument: str | None) -> Task:
    """HellaSwag: the likeliest of four endings, compared per character."""
    path = _path("hellaswag", argument)
    items = []
    for number, row in enumerate(read_rows(path), 1):
        endings = _field(row, "endings", path, number)
        items.append(
            Item(
                task="hellaswag",
                key=f"{row.get('ind', number)}-{short(digest('h', row['ctx'], endings), 8)}",
                fields={
                    "activity": _unbracketed(row["activity_label"]),
                    "context": _unbracketed(row["ctx"]),
                },
                choices=tuple(_unbracketed(ending) for ending in endings),
                target=int(row["label"]),
                tags=(row["activity_label"],),
            )
        )
    cloze = Template.parse("{activity}: {context}")
    letter = Template.parse(
        "Which ending follows best?\n\n{activity}: {context}\n{choices}\n\n"
        "Reply with the letter of your choice and nothing else.\nAnswer:",
        answer_as="label",
    )
    return Task(
        name="hellaswag", items=_filled("hellaswag", items),
        templates={"cloze": cloze, "letter": letter}, scorer=None,
    )  # fmt: skip


def gsm8k(argument: str | None) -> Task:
    """GSM8K: word problems whose answer is the number after `####`."""
    path = _path("gsm8k", argument)
    items = []
    for number, row in enumerate(read_rows(path), 1):
        _, mark, answer = _field(row, "answer", path, number).rpartition("####")
        if not mark:
            raise TaskError(f"{path}, line {number}: the answer has no '####'")
        items.append(
            Item(
                task="gsm8k",
                key=short(digest("gsm8k", row["question"]), 16),
                fields={"question": row["question"]},
                target=answer.strip().replace(",", ""),
            )
        )
    template = Template.parse(
        "{question}\n\nWork it out step by step, then write the final number after '####'."
    )
    return Task(
        name="gsm8k", items=_filled("gsm8k", items), templates={"open": template}, scorer="numeric"
    )


def humaneval(argument: str | None) -> Task:
    """HumanEval: functions to complete, judged by their tests.

    The prompt's code is the whole of the input, so that a base model continues it as it stands.
    """
    path = _path("humaneval", argument)
    items = []
    for number, row in enumerate(read_rows(path), 1):
        prompt = _field(row, "prompt", path, number)
        items.append(
            Item(
                task="humaneval",
                key=_field(row, "task_id", path, number),
                fields={
                    "prefix": prompt,
                    "tests": _field(row, "test", path, number),
                    "entry_point": _field(row, "entry_point", path, number),
                },
                target=_field(row, "canonical_solution", path, number),
            )
        )
    template = Template.parse(
        "Complete this Python function. Reply with code only.\n\n{prefix}", delimiter=""
    )
    return Task(
        name="humaneval",
        items=_filled("humaneval", items),
        templates={"open": template},
        scorer="unit_tests",
    )


def _choice_task(name: str, items: list[Item]) -> Task:
    return Task(name=name, items=_filled(name, items), templates={"cloze": CLOZE, "letter": LETTER})


def _filled(name: str, items: list[Item]) -> tuple[Item, ...]:
    seen: dict[str, Item] = {}
    for item in items:
        if seen.setdefault(item.key, item) is not item:
            raise TaskError(f"{name}: the item '{item.key}' is there twice")
    return tuple(items)


def _path(name: str, argument: str | None) -> str:
    if not argument:
        raise TaskError(f"The task '{name}' needs the path of its data", hint=f"--task {name}:PATH")
    return argument


def _field(row: dict[str, Any], name: str, path: str, number: int) -> Any:
    if name not in row:
        raise TaskError(
            f"{path}, entry {number} has no '{name}'", hint=f"columns: {', '.join(row)}"
        )
    return row[name]


def _unbracketed(text: str) -> str:
    text = re.sub(r"\[[^\]]{0,40}\]", "", text.replace(" [title]", ". "))
    return re.sub(r"  +", " ", text).strip()
