"""`functions`: tiny Python functions to complete, shaped like HumanEval, our own writing."""

from __future__ import annotations

import json
from importlib import resources

from falter.core.records import Item
from falter.tasks._task import Task, no_argument
from falter.tasks._template import Template

__all__ = ["load"]

ROOM = 96
# What a model writes behind the function: the end of its fence, a call of it, a remark.
STOP = ("\n```\n", "\nprint(", "\nassert ", "\n# ")
OPEN = Template.parse(
    "Complete this Python function. Reply with code only.\n\n{prefix}", delimiter=""
)


def load(argument: str | None) -> Task:
    """Tiny Python functions of one line each, judged by their tests in a sandbox."""
    no_argument("functions", argument)
    text = resources.files("falter.tasks").joinpath("data/functions.jsonl").read_text("utf-8")
    items = []
    for line in text.splitlines():
        row = json.loads(line)
        items.append(
            Item(
                task="functions",
                key=row["entry_point"],
                fields={
                    "prefix": row["prompt"],
                    "tests": row["test"],
                    "entry_point": row["entry_point"],
                },
                target=row["solution"],
            )
        )
    return Task(
        name="functions",
        items=tuple(items),
        templates={"open": OPEN},
        scorer="unit_tests",
        stop=STOP,
        max_tokens=ROOM,
    )
