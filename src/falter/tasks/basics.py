"""`basics`: easy four-choice questions over a dozen subjects, written for this project."""

from __future__ import annotations

import json
from importlib import resources

from falter.core.records import Item
from falter.tasks._task import Task, no_argument
from falter.tasks._template import Template

__all__ = ["CLOZE", "LETTER", "load"]

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


def load(argument: str | None) -> Task:
    """The bundled questions."""
    no_argument("basics", argument)
    text = resources.files("falter.tasks").joinpath("data/basics.jsonl").read_text("utf-8")
    items = []
    for line in text.splitlines():
        row = json.loads(line)
        items.append(
            Item(
                task="basics",
                key=row["key"],
                fields={"question": row["question"]},
                choices=tuple(row["choices"]),
                target=row["answer"],
                tags=(row["subject"],),
            )
        )
    return Task(name="basics", items=tuple(items), templates={"cloze": CLOZE, "letter": LETTER})
