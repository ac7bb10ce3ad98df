"""Classification: a review, a question with yes or no, the better of two answers, ten options.

Each takes a file, `hub:owner/name/config`, or nothing, which is the hub's usual copy. Those whose
data come with falter (`imdb_pairs`, `llmbar`, `mmlu_four`) need no network.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from falter.core.errors import TaskError
from falter.core.ids import digest, short
from falter.core.records import Item
from falter.core.rng import Rng
from falter.tasks._files import Row
from falter.tasks._published import (
    as_index,
    as_options,
    as_text,
    as_texts,
    column,
    located_rows,
    unexpected,
)
from falter.tasks._task import Task
from falter.tasks._template import Template
from falter.tasks.basics import LETTER, OTHER_LETTER
from falter.tasks.benchmarks import mmlu

__all__ = ["boolq", "imdb", "imdb_pairs", "llmbar", "mmlu_four", "mmlu_pro", "rewardbench"]

SHORTEST = 24
SENTIMENTS = ("negative", "positive")
YES_NO = ("no", "yes")

REVIEW = Template.parse(
    "Is this film review positive or negative?\n\nReview: {review}\n\n"
    "Reply with one word: positive or negative.\nAnswer:"
)
OTHER_REVIEW = Template.parse(
    "Read what somebody wrote about a film and decide whether the writer liked it (positive) or "
    "did not (negative).\n\nText: {review}\n\nGive a single word, negative or positive, as the "
    "verdict.\nVerdict:"
)
REVIEW_CLOZE = Template.parse("Film review: {review}\nThe review is")
PASSAGE = Template.parse(
    "Read the passage and answer the question with yes or no.\n\nPassage: {passage}\n"
    "Question: {question}\nAnswer:"
)
OTHER_PASSAGE = Template.parse(
    "{passage}\n\nGoing by the text above, is the answer to this question yes or no? "
    "{question}?\nReply with one word:"
)
BETTER = Template.parse(
    {
        "instruction": "Two answers were given to the same request. Choose the better one.",
        "input": "\nRequest: {request}",
        "choices": "{choices}",
        "output_format": "\nReply with the letter of the better answer and nothing else.",
        "cue": "Answer:",
    },
    answer_as="label",
)
OTHER_BETTER = Template.parse(
    {
        "instruction": "Somebody asked for something and got two replies. Which of them serves "
        "the person better?",
        "input": "\nWhat was asked: {request}",
        "choices": "{choices}",
        "output_format": "\nName the better reply by its letter, without any other word.",
        "cue": "Better reply:",
    },
    answer_as="label",
)

Read = Callable[[Row, str], Item]


def imdb(argument: str | None) -> Task:
    """IMDB: whether a film review is positive or negative."""
    rows = located_rows("imdb", argument, "stanfordnlp/imdb")
    return _reviews("imdb", [_review("imdb", row, where) for row, where in rows])


def imdb_pairs(argument: str | None) -> Task:
    """100 IMDB reviews, each with a counterfactual rewrite of the other sentiment; bundled."""
    rows = csv.DictReader(
        io.StringIO(_bundled("imdb_pairs.tsv").read_text("utf-8")), delimiter="\t"
    )
    items = [
        replace(_review("imdb_pairs", row, f"imdb_pairs.tsv, row {n}"), tags=(row["batch_id"],))
        for n, row in enumerate(rows, 1)
    ]
    return _part(_reviews("imdb_pairs", items), argument)


def boolq(argument: str | None) -> Task:
    """BoolQ: a passage and a question whose answer is yes or no."""
    rows = located_rows("boolq", argument, "google/boolq", "validation")
    return Task(
        name="boolq",
        items=_distinct("boolq", [_boolq(row, where) for row, where in rows]),
        templates={"open": PASSAGE, "cloze": PASSAGE},
        alternatives={"open": OTHER_PASSAGE, "cloze": OTHER_PASSAGE},
    )


def mmlu_four(argument: str | None) -> Task:
    """Four subjects of MMLU (computer security, mathematics, facts, geography); bundled."""
    with resources.as_file(_bundled("mmlu_four")) as folder:
        whole = mmlu(str(folder))
    items = tuple(replace(item, task="mmlu_four") for item in whole.items)
    return _part(replace(whole, name="mmlu_four", items=items), argument)


def mmlu_pro(argument: str | None) -> Task:
    """MMLU-Pro: questions with up to ten options."""
    rows = located_rows("mmlu_pro", argument, "TIGER-Lab/MMLU-Pro")
    return Task(
        name="mmlu_pro",
        items=_distinct("mmlu_pro", [_mmlu_pro(row, where) for row, where in rows]),
        templates={"letter": LETTER},
        alternatives={"letter": OTHER_LETTER},
    )


def llmbar(argument: str | None) -> Task:
    """LLMBar's natural pairs: which of two answers follows the instruction better; bundled."""
    rows = json.loads(_bundled("llmbar_natural.json").read_text("utf-8"))
    items = [
        _pair("llmbar", row["input"], (row["output_1"], row["output_2"]), row["label"] - 1)
        for row in rows
    ]
    return _part(_pairs("llmbar", items), argument)


def rewardbench(argument: str | None) -> Task:
    """RewardBench: which of two answers people prefer, in an order drawn from the item itself."""
    rows = located_rows("rewardbench", argument, "allenai/reward-bench", "filtered")
    return _pairs("rewardbench", [_preference(row, where) for row, where in rows])


# One row


def _review(task: str, row: Mapping[str, Any], where: str) -> Item:
    """`text` with `label` 0 or 1, or `Text` with a `Sentiment` in words."""
    row = {name.lower(): value for name, value in row.items()}
    text = as_text(column(row, "text", where), "text", where)
    label = row.get("label", row.get("sentiment"))
    if isinstance(label, str) and label.strip().lower() in SENTIMENTS:
        target = SENTIMENTS.index(label.strip().lower())
    else:
        target = as_index(label, 2, "label", where)
    return Item(
        task=task,
        key=short(digest(task, text), 16),
        fields={"review": text},
        choices=SENTIMENTS,
        target=target,
    )


def _boolq(row: Row, where: str) -> Item:
    answer = column(row, "answer", where)
    if not isinstance(answer, bool):
        raise unexpected(where, "answer", answer, "true or false")
    question = as_text(column(row, "question", where), "question", where)
    passage = as_text(column(row, "passage", where), "passage", where)
    return Item(
        task="boolq",
        key=short(digest("boolq", question, passage), 16),
        fields={"question": question, "passage": passage},
        choices=YES_NO,
        target=int(answer),
    )


def _mmlu_pro(row: Row, where: str) -> Item:
    listed = as_texts(column(row, "options", where))
    if listed is None:
        raise unexpected(where, "options", row["options"], "a list of texts")
    choices = as_options(listed, where)
    question = as_text(column(row, "question", where), "question", where)
    answer = row.get("answer_index", row.get("answer"))
    category = row.get("category")
    return Item(
        task="mmlu_pro",
        key=short(digest("mmlu_pro", question, list(choices)), 16),
        fields={"question": question},
        choices=choices,
        target=as_index(answer, len(choices), "answer_index", where),
        tags=(category,) if isinstance(category, str) and category else (),
    )


def _preference(row: Row, where: str) -> Item:
    request, chosen, rejected = (
        as_text(column(row, name, where), name, where) for name in ("prompt", "chosen", "rejected")
    )
    key = digest("rewardbench", request, chosen, rejected)
    second = next(iter(Rng(int(short(key, 12), 16)).order(2))) == 1
    answers = (rejected, chosen) if second else (chosen, rejected)
    item = _pair("rewardbench", request, answers, int(second))
    subset = row.get("subset")
    return replace(item, tags=(subset,)) if isinstance(subset, str) and subset else item


def _pair(task: str, request: str, answers: Sequence[str], target: int) -> Item:
    return Item(
        task=task,
        key=short(digest(task, request, list(answers)), 16),
        fields={"request": request.strip()},
        choices=tuple(answer.strip() for answer in answers),
        target=target,
    )


# All rows


def _reviews(name: str, items: Sequence[Item]) -> Task:
    return Task(
        name=name,
        items=_distinct(name, items),
        templates={"open": REVIEW, "cloze": REVIEW_CLOZE},
        alternatives={"open": OTHER_REVIEW},
    )


def _pairs(name: str, items: Sequence[Item]) -> Task:
    return Task(
        name=name,
        items=_distinct(name, items),
        templates={"letter": BETTER},
        alternatives={"letter": OTHER_BETTER},
    )


def _distinct(name: str, items: Sequence[Item]) -> tuple[Item, ...]:
    """The items, each once: published files hold a few rows twice."""
    if not items:
        raise TaskError(f"The task '{name}' has no items", hint="is the file empty?")
    return tuple({item.key: item for item in items}.values())


def _bundled(name: str) -> Traversable:
    return resources.files("falter.tasks").joinpath("data", "classification", name)


def _part(task: Task, argument: str | None) -> Task:
    """The task, or the items of it with the fewest characters, in their order."""
    if argument is None:
        return task
    if argument != "short":
        raise TaskError(
            f"The task '{task.name}' has no part '{argument}'",
            hint=f"use {task.name}, or {task.name}:short",
        )
    shortest = sorted(task.items, key=_characters)[:SHORTEST]
    keys = {item.key for item in shortest}
    items = tuple(item for item in task.items if item.key in keys)
    return replace(task, name=f"{task.name}:short", items=items)


def _characters(item: Item) -> int:
    return sum(map(len, (*item.fields.values(), *item.choices)))
