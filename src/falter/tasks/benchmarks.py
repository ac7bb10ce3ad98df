"""Readers for the shapes in which five well-known benchmarks are published.

Each takes a file, `hub:owner/name/config`, or nothing, which is the hub's usual copy. The same
question has the same key, and its options the same order, from whichever of them it is read.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from falter.core.errors import TaskError
from falter.core.ids import digest, short
from falter.core.records import Item
from falter.core.rng import Rng
from falter.tasks._files import Row, read_text
from falter.tasks._published import (
    as_index,
    as_text,
    as_texts,
    column,
    located_rows,
    unexpected,
)
from falter.tasks._task import Task
from falter.tasks._template import LABELS, Template
from falter.tasks.basics import OTHERS, OWN

__all__ = ["gsm8k", "hellaswag", "humaneval", "mmlu", "truthfulqa"]


def truthfulqa(argument: str | None) -> Task:
    """TruthfulQA, single right answer (`mc1_targets`): `mc_task.json`, or the hub's rows.

    The file lists the right answer first in every question, so the options are shuffled with a
    seed of their own: the item's key.
    """
    hub = "truthfulqa/truthful_qa/multiple_choice"
    rows = located_rows("truthfulqa", argument, hub, "validation")
    return _choice_task("truthfulqa", [_truthfulqa(row, where) for row, where in rows])


def mmlu(argument: str | None) -> Task:
    """MMLU: its CSV files (question, four options, letter; no header), one or a folder of them.

    Or rows with `question`, `subject`, `choices` and `answer`, which is how the hub has it.
    """
    path = Path(argument or "")
    csvs = argument and path.name.removesuffix(".gz").lower().endswith(".csv")
    if argument and (csvs or path.is_dir()):
        return _choice_task("mmlu", list(_mmlu_csv(path)))
    rows = located_rows("mmlu", argument, "cais/mmlu/all")
    return _choice_task("mmlu", [_mmlu(row, where) for row, where in rows])


def hellaswag(argument: str | None) -> Task:
    """HellaSwag: the likeliest of four endings, compared per character."""
    rows = located_rows("hellaswag", argument, "Rowan/hellaswag", "validation")
    items = [_hellaswag(row, where, n) for n, (row, where) in enumerate(rows, 1)]
    cloze = Template.parse("{activity}: {context}")
    letter = Template.parse(
        "Which ending follows best?\n\n{activity}: {context}\n{choices}\n\n"
        "Reply with the letter of your choice and nothing else.\nAnswer:",
        answer_as="label",
    )
    return Task(
        name="hellaswag",
        items=_filled("hellaswag", items),
        templates={"cloze": cloze, "letter": letter},
    )


def gsm8k(argument: str | None) -> Task:
    """GSM8K: word problems whose answer is the number after `####`."""
    rows = located_rows("gsm8k", argument, "openai/gsm8k/main")
    template = Template.parse(
        "{question}\n\nWork it out step by step, then write the final number after '####'."
    )
    return Task(
        name="gsm8k",
        items=_filled("gsm8k", [_gsm8k(row, where) for row, where in rows]),
        templates={"open": template},
        scorer="numeric",
    )


def humaneval(argument: str | None) -> Task:
    """HumanEval: functions to complete, judged by their tests.

    The input is the code alone, so that a base model simply continues it.
    """
    rows = located_rows("humaneval", argument, "openai/openai_humaneval")
    template = Template.parse(
        "Complete this Python function. Reply with code only.\n\n{prefix}", delimiter=""
    )
    return Task(
        name="humaneval",
        items=_filled("humaneval", [_humaneval(row, where) for row, where in rows], named=True),
        templates={"open": template},
        scorer="unit_tests",
    )


# One row


def _truthfulqa(row: Row, where: str) -> Item:
    question = as_text(column(row, "question", where), "question", where)
    targets = _targets(column(row, "mc1_targets", where), where)
    options = list(targets)
    key = short(digest("truthfulqa", question, options), 16)
    order = list(Rng(int(key[:12], 16)).order(len(options)))
    right = [i for i, is_right in enumerate(targets.values()) if is_right]
    if len(right) != 1:
        raise TaskError(f"{where} has {len(right)} right answers; expected one")
    category = row.get("category")
    return Item(
        task="truthfulqa",
        key=key,
        fields={"question": question},
        choices=tuple(options[i] for i in order),
        target=order.index(right[0]),
        tags=(category,) if isinstance(category, str) and category else (),
    )


def _targets(value: Any, where: str) -> dict[str, int]:
    """1 or 0 for every option: as published, or from the hub's two lists."""
    targets: dict[str, int] = value if isinstance(value, dict) else {}
    if targets.keys() == {"choices", "labels"}:
        texts, labels = as_texts(value["choices"]), value["labels"]
        paired = texts is not None and isinstance(labels, list) and len(texts) == len(labels)
        targets = dict(zip(texts or (), labels, strict=True)) if paired else {}
    if len(targets) < 2 or not all(flag in (0, 1) for flag in targets.values()):
        raise unexpected(where, "mc1_targets", value, "options with 1 or 0, or choices and labels")
    return targets


def _mmlu(row: Row, where: str) -> Item:
    listed = as_texts(column(row, "choices", where))
    if listed is None:
        raise unexpected(where, "choices", row["choices"], "a list of texts")
    subject = row.get("subject")
    return _mmlu_item(
        subject if isinstance(subject, str) else "",
        as_text(column(row, "question", where), "question", where),
        _options(listed, where),
        as_index(column(row, "answer", where), len(listed), "answer", where),
    )


def _mmlu_csv(path: Path) -> Iterator[Item]:
    """Rows of the published files, whose names say the subject."""
    files = sorted([*path.glob("*.csv"), *path.glob("*.csv.gz")]) if path.is_dir() else [path]
    if not files:
        raise TaskError(f"The folder {path} holds no .csv file", hint="give MMLU's CSV files")
    for file in files:
        subject = re.sub(r"(_(test|dev|val))?\.csv(\.gz)?$", "", file.name, flags=re.IGNORECASE)
        for row, where in _cells(file):
            if len(row) != 6 or row[5] not in ("A", "B", "C", "D"):
                raise TaskError(f"{where} does not have a question, four options and a letter")
            yield _mmlu_item(
                subject,
                as_text(row[0], "question", where),
                _options(row[1:5], where),
                LABELS.index(row[5]),
            )


def _cells(file: Path) -> Iterator[tuple[list[str], str]]:
    if not file.exists():
        raise TaskError(f"The data file {file} does not exist", hint="give MMLU's CSV files")
    reader = csv.reader(io.StringIO(read_text(file), newline=""))
    try:
        for row in reader:
            yield row, f"{file}, line {reader.line_num}"
    except csv.Error as error:
        raise TaskError(f"{file}, line {reader.line_num}: {error}") from error


def _mmlu_item(subject: str, question: str, choices: tuple[str, ...], target: int) -> Item:
    content = digest("mmlu", [question, *choices, LABELS[target]])
    return Item(
        task="mmlu",
        key=f"{subject or 'mmlu'}-{short(content, 12)}",
        fields={"question": question},
        choices=choices,
        target=target,
        tags=(subject,) if subject else (),
    )


def _options(texts: Sequence[str], where: str) -> tuple[str, ...]:
    """The stripped options. Published files have some that are white space only; those stay."""
    if len(texts) < 2:
        raise unexpected(where, "choices", texts, "at least two")
    return tuple(text.strip() for text in texts)


def _hellaswag(row: Row, where: str, number: int) -> Item:
    endings = as_texts(column(row, "endings", where))
    if not endings:
        raise unexpected(where, "endings", row["endings"], "a list of texts")
    activity = as_text(column(row, "activity_label", where), "activity_label", where)
    context = as_text(column(row, "ctx", where), "ctx", where)
    label = column(row, "label", where)  # 3 in the published file, '3' on the hub
    if str(label) not in map(str, range(len(endings))):
        raise unexpected(where, "label", label, f"0 to {len(endings) - 1}")
    return Item(
        task="hellaswag",
        key=f"{row.get('ind', number)}-{short(digest('h', row['ctx'], endings), 8)}",
        fields={"activity": _unbracketed(activity), "context": _unbracketed(context)},
        choices=tuple(_unbracketed(ending) for ending in endings),
        target=int(label),
        tags=(row["activity_label"],),
    )


def _gsm8k(row: Row, where: str) -> Item:
    question = as_text(column(row, "question", where), "question", where)
    worked = as_text(column(row, "answer", where), "answer", where)
    _, mark, answer = worked.rpartition("####")
    if not mark:
        raise TaskError(f"{where}: the answer has no '####'")
    return Item(
        task="gsm8k",
        key=short(digest("gsm8k", question), 16),
        fields={"question": question},
        target=answer.strip().replace(",", ""),
    )


def _humaneval(row: Row, where: str) -> Item:
    names = ("task_id", "prompt", "test", "entry_point", "canonical_solution")
    key, prompt, tests, entry_point, solution = (_verbatim(row, name, where) for name in names)
    return Item(
        task="humaneval",
        key=key,
        fields={"prefix": prompt, "tests": tests, "entry_point": entry_point},
        target=solution,
    )


def _verbatim(row: Row, name: str, where: str) -> str:
    """Code, whose white space counts."""
    value = column(row, name, where)
    if not isinstance(value, str):
        raise unexpected(where, name, value, "a text")
    return value


def _unbracketed(text: str) -> str:
    text = re.sub(r"\[[^\]]{0,40}\]", "", text.replace(" [title]", ". "))
    return re.sub(r"  +", " ", text).strip()


# All rows


def _choice_task(name: str, items: Sequence[Item]) -> Task:
    return Task(name=name, items=_filled(name, items), templates=OWN, alternatives=OTHERS)


def _filled(name: str, items: Sequence[Item], *, named: bool = False) -> tuple[Item, ...]:
    """The items; repeated content is numbered, a repeated `named` key is an error.

    Published files hold a few rows twice; accuracies in papers count both.
    """
    if not items:
        raise TaskError(f"The task '{name}' has no items", hint="is the file empty?")
    counts: Counter[str] = Counter()
    numbered = []
    for item in items:
        counts[item.key] += 1
        if counts[item.key] > 1 and named:
            raise TaskError(
                f"{name}: the item '{item.key}' appears twice", hint="drop one of the two"
            )
        numbered.append(
            item if counts[item.key] == 1 else replace(item, key=f"{item.key}-{counts[item.key]}")
        )
    return tuple(numbered)
