"""`sums`: very easy arithmetic with small whole numbers, written for this project."""

from __future__ import annotations

import json
from importlib import resources

from falter.core.records import Item
from falter.tasks._task import Task, no_argument
from falter.tasks._template import Template

__all__ = ["load"]

ROOM = 48
OPEN = Template.parse(
    {
        "system": "You are good at sums, and you reply in one short line.",
        "input": "{question}",
        "output_format": "Reply with the number only.",
    }
)


def load(argument: str | None) -> Task:
    """Very easy sums, half of them bare and half one-step stories, with a number as the answer."""
    no_argument("sums", argument)
    text = resources.files("falter.tasks").joinpath("data/sums.jsonl").read_text("utf-8")
    items = []
    for line in text.splitlines():
        row = json.loads(line)
        items.append(
            Item(
                task="sums",
                key=row["key"],
                fields={"question": row["question"]},
                target=str(row["answer"]),
                tags=(row["kind"],),
            )
        )
    return Task(
        name="sums",
        items=tuple(items),
        templates={"open": OPEN},
        scorer="numeric",
        max_tokens=ROOM,
    )
