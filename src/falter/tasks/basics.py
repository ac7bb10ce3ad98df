"""`basics`: easy four-choice questions over a dozen subjects, written for this project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from falter.core.errors import TaskError
from falter.core.records import Item
from falter.tasks._task import Task
from falter.tasks._template import Template

__all__ = ["CLOZE", "LETTER", "OTHERS", "OTHER_CLOZE", "OTHER_LETTER", "OWN", "load"]

CLOZE = Template.parse("Question: {question}\nAnswer:")
LETTER = Template.parse(
    {
        "instruction": "Choose the right answer to this question.",
        "input": "\nQuestion: {question}",
        "choices": "{choices}",
        "output_format": "\nReply with the letter of your choice and nothing else.",
        "cue": "Answer:",
    },
    answer_as="label",
)
OTHER_CLOZE = Template.parse("Here is a question: {question}\nThe right answer to it is")
OTHER_LETTER = Template.parse(
    {
        "instruction": "Below are a question and several answers. One of them is correct: pick it.",
        "input": "\nHere is what is asked: {question}",
        "choices": "{choices}",
        "output_format": "\nWrite the letter that stands before the correct answer, and only that.",
        "cue": "Correct:",
    },
    answer_as="label",
)
OWN = {"cloze": CLOZE, "letter": LETTER}
OTHERS = {"cloze": OTHER_CLOZE, "letter": OTHER_LETTER}
"""The second way of asking each, in other words."""


def load(argument: str | None) -> Task:
    """Easy four-choice questions; `basics:core` is the 60 that have paraphrases written by hand."""
    if argument not in (None, "core"):
        raise TaskError(
            f"The task 'basics' has no part '{argument}'", hint="use basics, or basics:core"
        )
    name = "basics" if argument is None else "basics:core"
    rows = [json.loads(line) for line in _text("basics.jsonl").splitlines()]
    if argument == "core":
        core = set(_text("basics_core.txt").split())
        rows = [row for row in rows if row["key"] in core]
    items = tuple(_item(name, row) for row in rows)
    return Task(name=name, items=items, templates=OWN, alternatives=OTHERS)


def _text(file: str) -> str:
    return resources.files("falter.tasks").joinpath("data", file).read_text("utf-8")


def _item(task: str, row: Mapping[str, Any]) -> Item:
    return Item(
        task=task,
        key=row["key"],
        fields={"question": row["question"]},
        choices=tuple(row["choices"]),
        target=row["answer"],
        tags=(row["subject"],),
    )
