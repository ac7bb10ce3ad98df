"""Small tasks written for this project, which come with falter.

Questions, sums, functions, and conversations with tools and documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from falter.records.errors import TaskError
from falter.records.types import Item
from falter.tasks.chats import chat_items, chat_template
from falter.tasks.rows import DataSpec
from falter.tasks.task import Task, Template

ONE_LETTER = "Reply with the letter of your choice and nothing else."


def lettered(instruction: str, question: str, wanted: str, cue: str = "Answer:") -> Template:
    """A template that lists options and asks for the letter of one."""
    parts = {
        "instruction": instruction,
        "input": f"\n{question}",
        "choices": "{choices}",
        "output_format": f"\n{wanted}",
        "cue": cue,
    }
    return Template.parse(parts, answer_as="label")


LETTER = lettered("Choose the right answer to this question.", "Question: {question}", ONE_LETTER)
OTHER_LETTER = lettered(
    "Below are a question and several answers. One of them is correct: pick it.",
    "Here is what is asked: {question}",
    "Write the letter that stands before the correct answer, and only that.",
    cue="Correct:",
)
OWN = {"cloze": Template.parse("Question: {question}\nAnswer:"), "letter": LETTER}
OTHERS = {
    "cloze": Template.parse("Here is a question: {question}\nThe right answer to it is"),
    "letter": OTHER_LETTER,
}
"""The second way of asking each, in other words."""
CODE = Template.parse(
    "Complete this Python function. Reply with code only.\n\n{prefix}", delimiter=""
)
SUM = Template.parse(
    {
        "system": "You are good at sums, and you reply in one short line.",
        "input": "{question}",
        "output_format": "Reply with the number only.",
    }
)
CHAT_TASKS = {"rag:core": "documents", "tools:core": "tools"}
"""The bundled conversations, each with the column that its rows have beside the turns."""
# What a model writes behind the function: the end of its fence, a call of it, a remark.
AFTER_CODE = ("\n```\n", "\nprint(", "\nassert ", "\n# ")


def basics(argument: str | None) -> Task:
    """Easy four-choice questions; `basics:core` is the 60 that have paraphrases written by hand."""
    if argument not in (None, "core"):
        raise TaskError(
            f"The task 'basics' has no part '{argument}'", hint="use basics, or basics:core"
        )
    name = "basics" if argument is None else "basics:core"
    core = set(_text("basics_core.txt").split())
    items = _items(
        "basics.jsonl",
        lambda row: Item(
            task=name,
            key=row["key"],
            fields={"question": row["question"]},
            choices=tuple(row["choices"]),
            target=row["answer"],
            tags=(row["subject"],),
        ),
    )
    items = tuple(item for item in items if argument is None or item.key in core)
    return Task(name=name, items=items, templates=OWN, alternatives=OTHERS)


def sums(argument: str | None) -> Task:
    """Very easy sums, half of them bare and half one-step stories, with a number as the answer."""
    _no_argument("sums", argument)
    items = _items(
        "sums.jsonl",
        lambda row: Item(
            task="sums",
            key=row["key"],
            fields={"question": row["question"]},
            target=str(row["answer"]),
            tags=(row["kind"],),
        ),
    )
    return Task(name="sums", items=items, templates={"open": SUM}, scorer="numeric", max_tokens=48)


def functions(argument: str | None) -> Task:
    """Tiny Python functions of one line each, judged by their tests in a sandbox."""
    _no_argument("functions", argument)
    items = _items(
        "functions.jsonl",
        lambda row: Item(
            task="functions",
            key=row["entry_point"],
            fields={
                "prefix": row["prompt"],
                "tests": row["test"],
                "entry_point": row["entry_point"],
            },
            target=row["solution"],
        ),
    )
    return Task(
        name="functions",
        items=items,
        templates={"open": CODE},
        scorer="unit_tests",
        stop=AFTER_CODE,
        max_tokens=96,
    )


def tools(argument: str | None) -> Task:
    """`tools:core`: 60 conversations with tools; one call is right, two, none, or a further one."""
    return _chats("tools", argument, "tool_call")


def rag(argument: str | None) -> Task:
    """`rag:core`: 40 questions about four to six documents, one or two of which answer most."""
    return _chats("rag", argument, "answer")


def _chats(kind: str, argument: str | None, scorer: str) -> Task:
    if argument != "core":
        given = f"'{argument}'" if argument else "none"
        raise TaskError(
            f"The task '{kind}' has the part 'core' alone, got {given}",
            hint=f"use --task {kind}:core",
        )
    name = f"{kind}:{argument}"
    spec = DataSpec(path=name, target="target", key="key", tags=("kind",))
    rows = [json.loads(line) for line in _text(f"chats/{kind}_core.jsonl").splitlines()]
    items, _ = chat_items(rows, spec, "messages", name, same=False)
    return Task(
        name=name, items=items, templates={"open": chat_template(None, spec)}, scorer=scorer
    )


def _items(file: str, item: Callable[[Mapping[str, Any]], Item]) -> tuple[Item, ...]:
    return tuple(item(json.loads(line)) for line in _text(file).splitlines())


def _text(file: str) -> str:
    return resources.files("falter.tasks").joinpath("data", file).read_text("utf-8")


def _no_argument(name: str, argument: str | None) -> None:
    """Raise when a task that takes no argument was given one."""
    if argument:
        raise TaskError(
            f"The task '{name}' takes no argument after a colon, got '{argument}'",
            hint=f"use --task {name}",
        )
