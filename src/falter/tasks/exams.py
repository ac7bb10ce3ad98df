"""Readers for the shapes in which five exams are published: ARC (two), MathQA, LogiQA, GPQA.

Each takes a file, `hub:owner/name/config`, or nothing, which is the hub's usual copy. Options keep
their published order, except in GPQA, whose files have a separate column for the right answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    one_column,
    unexpected,
)
from falter.tasks._task import Task
from falter.tasks._template import Template
from falter.tasks.basics import OTHERS, OWN

__all__ = ["arc_challenge", "arc_easy", "gpqa", "logiqa", "mathqa"]

PASSAGE_CLOZE = Template.parse("Passage: {passage}\nQuestion: {question}\nAnswer:")
PASSAGE_LETTER = Template.parse(
    {
        "instruction": "Read the passage and choose the right answer to the question.",
        "input": "\nPassage: {passage}\nQuestion: {question}",
        "choices": "{choices}",
        "output_format": "\nReply with the letter of your choice and nothing else.",
        "cue": "Answer:",
    },
    answer_as="label",
)
BLOCK = ("the right answer's letter", "the passage", "the question", *(f"{c}.…" for c in "ABCD"))
_MARK = re.compile(r"(?:^|,)\s*([a-e]) \) ?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The content of one row."""

    fields: Mapping[str, str]
    choices: tuple[str, ...]
    target: int
    key: str | None = None
    tags: tuple[str, ...] = ()


_Read = Callable[[Row, str], _Entry]


def arc_easy(argument: str | None) -> Task:
    """ARC's easy questions: AI2's JSONL, or the hub's flat shape."""
    return _load("arc_easy", argument, "allenai/ai2_arc/ARC-Easy", _arc)


def arc_challenge(argument: str | None) -> Task:
    """ARC's challenge questions: AI2's JSONL, or the hub's flat shape."""
    return _load("arc_challenge", argument, "allenai/ai2_arc/ARC-Challenge", _arc)


def mathqa(argument: str | None) -> Task:
    """MathQA: word problems with five options in one string."""
    return _load("mathqa", argument, "regisss/math_qa", _mathqa)


def logiqa(argument: str | None) -> Task:
    """LogiQA: a passage, a question and four options, as text blocks or as JSON."""
    if argument and argument.endswith((".txt", ".TXT")):
        return _task("logiqa", list(_blocks(Path(argument))))
    return _load("logiqa", argument, "EleutherAI/logiqa/logiqa", _logiqa)


def gpqa(argument: str | None) -> Task:
    """GPQA: the right answer and three wrong ones, in an order drawn from the item itself."""
    return _load("gpqa", argument, "Idavidrein/gpqa/gpqa_main", _gpqa, split="train")


# One row


def _arc(row: Row, where: str) -> _Entry:
    """`question` holds stem and choices, or is the stem, with `choices` in a column of its own."""
    question, listed = column(row, "question", where), row.get("choices")
    if isinstance(question, dict):
        listed, question = question.get("choices"), question.get("stem")
    texts, labels = _texts_and_labels(listed)
    if not texts or not labels or len(texts) != len(labels):
        raise unexpected(where, "choices", listed, "a text and a label for each option")
    if "".join(labels) not in ("12345"[: len(labels)], "ABCDE"[: len(labels)]):
        raise unexpected(where, "choices' labels", labels, "A, B, C … or 1, 2, 3 …, at most five")
    answer = column(row, "answerKey", where)
    if answer not in labels:
        raise unexpected(where, "answerKey", answer, f"one of the labels {', '.join(labels)}")
    key = row.get("id")
    return _Entry(
        fields={"question": as_text(question, "question", where)},
        choices=as_options(texts, where),
        target=labels.index(answer),
        key=key if isinstance(key, str) and key else None,
    )


def _texts_and_labels(listed: Any) -> tuple[list[str] | None, list[str] | None]:
    """Texts and labels, from a list of pairs or a pair of lists."""
    if isinstance(listed, list) and all(isinstance(choice, dict) for choice in listed):
        listed = {part: [choice.get(part) for choice in listed] for part in ("text", "label")}
    if not isinstance(listed, dict):
        return None, None
    return as_texts(listed.get("text")), as_texts(listed.get("label"))


def _mathqa(row: Row, where: str) -> _Entry:
    options = _mathqa_options(as_text(column(row, "options", where), "options", where), where)
    answer = column(row, "correct", where)
    letters = "abcde"[: len(options)]
    if not isinstance(answer, str) or len(answer) != 1 or answer not in letters:
        raise unexpected(where, "correct", answer, f"one of the letters {', '.join(letters)}")
    category = row.get("category")
    return _Entry(
        fields={"question": as_text(column(row, "Problem", where), "Problem", where)},
        choices=options,
        target=letters.index(answer),
        tags=(category,) if isinstance(category, str) else (),
    )


def _mathqa_options(text: str, where: str) -> tuple[str, ...]:
    """The options of "a ) 12 , b ) 15 , …", which may also be a printed Python list.

    A mark is a letter with " ) " at the start or after a comma; the marks must be a, b, c … in
    this order, so that an option with a bracket of its own is not cut in two.
    """
    if text.lstrip().startswith("["):
        try:
            text = " , ".join(ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError, TypeError) as error:
            raise unexpected(where, "options", text, "'a ) … , b ) … , …'") from error
    marks: list[re.Match[str]] = []
    for mark in _MARK.finditer(text):
        if mark[1] == "abcde"[len(marks) : len(marks) + 1]:
            marks.append(mark)
    if len(marks) < 2 or text[: marks[0].start()].strip() or len(_MARK.findall(text)) > len(marks):
        raise unexpected(
            where, "options", text, "'a ) … , b ) … , …' with each letter once, in order"
        )
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    options = [text[m.end() : end].strip(" ,") for m, end in zip(marks, ends, strict=True)]
    return as_options(options, where)


def _logiqa(row: Row, where: str) -> _Entry:
    """Version 1 has context, question or query, label or correct_option; version 2 text, answer.

    A number counts from 0, a letter from a.
    """
    names = {
        "passage": ("context", "text"),
        "question": ("question", "query"),
        "answer": ("label", "correct_option", "answer"),
    }
    columns = {role: one_column(row, possible, where) for role, possible in names.items()}
    listed = as_texts(column(row, "options", where))
    if not listed:
        raise unexpected(where, "options", row["options"], "a list of texts")
    return _Entry(
        fields={
            role: as_text(row[columns[role]], columns[role], where)
            for role in ("passage", "question")
        },
        choices=as_options(listed, where),
        target=as_index(row[columns["answer"]], len(listed), columns["answer"], where),
    )


def _gpqa(row: Row, where: str) -> _Entry:
    wrong = [f"Incorrect Answer {n}" for n in (1, 2, 3)]
    question = as_text(column(row, "Question", where), "Question", where)
    answers = [as_text(column(row, c, where), c, where) for c in ("Correct Answer", *wrong)]
    order = list(Rng(int(digest("gpqa", question, answers)[7:19], 16)).order(4))
    tags = (row.get(name) for name in ("High-level domain", "Subdomain"))
    record = row.get("Record ID")
    return _Entry(
        fields={"question": question},
        choices=as_options([answers[i] for i in order], where),
        target=order.index(0),
        key=record if isinstance(record, str) and record else None,
        tags=tuple(tag for tag in tags if isinstance(tag, str) and tag),
    )


def _blocks(path: Path) -> Iterator[_Entry]:
    """LogiQA's text files: blocks of seven lines with an empty line between them."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(
            f"The data file {path} cannot be read: {error}", hint="give LogiQA's UTF-8 text file"
        ) from error
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            block.append(line.strip())
            _check_line(block, f"{path}, line {number}")
        elif block:
            if len(block) < len(BLOCK):
                raise TaskError(
                    f"{path}, line {number}: the block ends; expected {BLOCK[len(block)]}",
                    hint=f"a block is {len(BLOCK)} lines: {', '.join(BLOCK)}",
                )
            yield _Entry(
                fields={"passage": block[1], "question": block[2]},
                choices=tuple(option[2:].strip() for option in block[3:]),
                target="abcd".index(block[0].lower()),
            )
            block = []


def _check_line(block: Sequence[str], where: str) -> None:
    place = len(block) - 1
    line = block[-1]
    if place == 0:
        good = line.lower() in ("a", "b", "c", "d")
    elif place >= 3:
        good = place < len(BLOCK) and re.match(rf"{BLOCK[place][0]}\. *\S", line) is not None
    else:
        good = True
    if not good:
        expected = BLOCK[place] if place < len(BLOCK) else "an empty line before the next block"
        raise TaskError(f"{where} is {line!r:.80}; expected {expected}")


# All rows


def _load(name: str, argument: str | None, hub: str, read_row: _Read, split: str = "test") -> Task:
    rows = located_rows(name, argument, hub, split)
    return _task(name, [read_row(row, where) for row, where in rows])


def _task(name: str, entries: Sequence[_Entry]) -> Task:
    if not entries:
        raise TaskError(f"The task '{name}' has no items", hint="is the file empty?")
    counts: dict[str, int] = {}
    items = []
    for entry in entries:
        key = entry.key or short(digest(name, dict(entry.fields), entry.choices), 16)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > 1 and entry.key:
            raise TaskError(f"{name}: the item '{key}' appears twice", hint="drop one of the two")
        # Published files hold a few rows twice; accuracies in papers count both.
        items.append(
            Item(
                task=name,
                key=key if counts[key] == 1 else f"{key}-{counts[key]}",
                fields=entry.fields,
                choices=entry.choices,
                target=entry.target,
                tags=entry.tags,
            )
        )
    if "passage" not in entries[0].fields:
        return Task(name=name, items=tuple(items), templates=OWN, alternatives=OTHERS)
    passage = {"cloze": PASSAGE_CLOZE, "letter": PASSAGE_LETTER}
    return Task(name=name, items=tuple(items), templates=passage)
