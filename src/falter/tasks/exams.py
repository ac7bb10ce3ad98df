"""Readers for the shapes in which five exams are published: ARC (two), MathQA, LogiQA, GPQA.

Each takes a file, `hub:owner/name/config`, or nothing, which is the hub's usual copy. Options keep
their published order but in GPQA, whose files give the right answer a column of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falter.core.errors import FalterError, MissingExtra, TaskError, nearest
from falter.core.ids import digest, short
from falter.core.records import Item
from falter.core.rng import Rng
from falter.tasks._files import Row, read_hub, read_rows
from falter.tasks._task import Task
from falter.tasks._template import LABELS, Template
from falter.tasks.basics import CLOZE, LETTER

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
    """What one row says."""

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
    """`question` holds stem and choices, or is the stem itself with `choices` beside it."""
    question, listed = _get(row, "question", where), row.get("choices")
    if isinstance(question, dict):
        listed, question = question.get("choices"), question.get("stem")
    texts, labels = _texts_and_labels(listed)
    if not texts or not labels or len(texts) != len(labels):
        raise _wrong(where, "choices", listed, "a text and a label for each option")
    if "".join(labels) not in ("12345"[: len(labels)], "ABCDE"[: len(labels)]):
        raise _wrong(where, "choices' labels", labels, "A, B, C … or 1, 2, 3 …, at most five")
    answer = _get(row, "answerKey", where)
    if answer not in labels:
        raise _wrong(where, "answerKey", answer, f"one of the labels {', '.join(labels)}")
    key = row.get("id")
    return _Entry(
        fields={"question": _text(question, "question", where)},
        choices=_options(texts, where),
        target=labels.index(answer),
        key=key if isinstance(key, str) and key else None,
    )


def _texts_and_labels(listed: Any) -> tuple[list[str] | None, list[str] | None]:
    """From a list of pairs, or a pair of lists."""
    if isinstance(listed, list) and all(isinstance(choice, dict) for choice in listed):
        listed = {part: [choice.get(part) for choice in listed] for part in ("text", "label")}
    if not isinstance(listed, dict):
        return None, None
    return _texts(listed.get("text")), _texts(listed.get("label"))


def _mathqa(row: Row, where: str) -> _Entry:
    options = _mathqa_options(_text(_get(row, "options", where), "options", where), where)
    answer = _get(row, "correct", where)
    letters = "abcde"[: len(options)]
    if not isinstance(answer, str) or len(answer) != 1 or answer not in letters:
        raise _wrong(where, "correct", answer, f"one of the letters {', '.join(letters)}")
    category = row.get("category")
    return _Entry(
        fields={"question": _text(_get(row, "Problem", where), "Problem", where)},
        choices=options,
        target=letters.index(answer),
        tags=(category,) if isinstance(category, str) else (),
    )


def _mathqa_options(text: str, where: str) -> tuple[str, ...]:
    """The options of "a ) 12 , b ) 15 , …", also where they stand as a printed list.

    A mark is a letter with " ) " at the start or after a comma; the marks must be a, b, c … in
    this order, so that an option with a bracket of its own is not cut in two.
    """
    if text.lstrip().startswith("["):
        try:
            text = " , ".join(ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError, TypeError) as error:
            raise _wrong(where, "options", text, "'a ) … , b ) … , …'") from error
    found: list[re.Match[str]] = []
    for mark in _MARK.finditer(text):
        if mark[1] == "abcde"[len(found) : len(found) + 1]:
            found.append(mark)
    if len(found) < 2 or text[: found[0].start()].strip() or len(_MARK.findall(text)) > len(found):
        raise _wrong(where, "options", text, "'a ) … , b ) … , …' with each letter once, in order")
    ends = [*(mark.start() for mark in found[1:]), len(text)]
    options = [text[m.end() : end].strip(" ,") for m, end in zip(found, ends, strict=True)]
    return _options(options, where)


def _logiqa(row: Row, where: str) -> _Entry:
    """Version 1 says context, question or query, label or correct_option; version 2 text, answer.

    A number counts from 0, a letter from a.
    """
    names = {
        "passage": ("context", "text"),
        "question": ("question", "query"),
        "answer": ("label", "correct_option", "answer"),
    }
    column = {role: _one_of(row, known, where) for role, known in names.items()}
    listed = _texts(_get(row, "options", where))
    if not listed:
        raise _wrong(where, "options", row["options"], "a list of texts")
    answer = row[column["answer"]]
    index = LABELS.find(answer.strip().upper() or "?") if isinstance(answer, str) else answer
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(listed):
        raise _wrong(where, column["answer"], answer, f"a letter, or 0 to {len(listed) - 1}")
    return _Entry(
        fields={
            role: _text(row[column[role]], column[role], where) for role in ("passage", "question")
        },
        choices=_options(listed, where),
        target=index,
    )


def _gpqa(row: Row, where: str) -> _Entry:
    wrong = [f"Incorrect Answer {n}" for n in (1, 2, 3)]
    question = _text(_get(row, "Question", where), "Question", where)
    answers = [_text(_get(row, c, where), c, where) for c in ("Correct Answer", *wrong)]
    order = list(Rng(int(digest("gpqa", question, answers)[7:19], 16)).order(4))
    tags = (row.get(name) for name in ("High-level domain", "Subdomain"))
    record = row.get("Record ID")
    return _Entry(
        fields={"question": question},
        choices=_options([answers[i] for i in order], where),
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


def _load(name: str, argument: str | None, hub: str, read: _Read, split: str = "test") -> Task:
    path = argument or f"hub:{hub}"
    if path.startswith("hub:"):
        rows = _hub_rows(name, path.removeprefix("hub:"), split)
    else:
        rows = read_rows(path)
    return _task(name, [read(row, f"{path}, row {number}") for number, row in enumerate(rows, 1)])


def _hub_rows(name: str, owner: str, split: str) -> list[Row]:
    hint = f"a local copy needs neither: --task {name}:PATH"
    try:
        return read_hub(owner, split)
    except MissingExtra as error:
        error.hint = f"{error.hint}; {hint}"
        raise
    except FalterError as error:
        raise TaskError(error.message, hint=f"check the name and the network; {hint}") from error


def _task(name: str, entries: Sequence[_Entry]) -> Task:
    if not entries:
        raise TaskError(f"The task '{name}' has no items", hint="is the file empty?")
    seen: dict[str, int] = {}
    items = []
    for entry in entries:
        key = entry.key or short(digest(name, dict(entry.fields), entry.choices), 16)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1 and entry.key:
            raise TaskError(f"{name}: the item '{key}' is there twice", hint="drop one of the two")
        # Published files hold a few rows twice; accuracies in papers count both.
        items.append(
            Item(
                task=name,
                key=key if seen[key] == 1 else f"{key}-{seen[key]}",
                fields=entry.fields,
                choices=entry.choices,
                target=entry.target,
                tags=entry.tags,
            )
        )
    passage = "passage" in entries[0].fields
    return Task(
        name=name,
        items=tuple(items),
        templates={
            "cloze": PASSAGE_CLOZE if passage else CLOZE,
            "letter": PASSAGE_LETTER if passage else LETTER,
        },
    )


# Small parts


def _get(row: Row, name: str, where: str) -> Any:
    if name not in row:
        close = nearest(name, row)
        raise TaskError(
            f"{where} has no '{name}'",
            hint=f"did you mean '{close}'?" if close else f"columns: {', '.join(row)}",
        )
    return row[name]


def _one_of(row: Row, names: Sequence[str], where: str) -> str:
    there = [name for name in names if name in row]
    if not there:
        raise TaskError(
            f"{where} has none of {', '.join(map(repr, names))}", hint=f"columns: {', '.join(row)}"
        )
    return there[0]


def _text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(where, name, value, "a text")
    return value.strip()


def _texts(value: Any) -> list[str] | None:
    good = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return value if good else None


def _options(texts: Sequence[str], where: str) -> tuple[str, ...]:
    choices = tuple(text.strip() for text in texts)
    if len(choices) < 2 or "" in choices:
        raise _wrong(where, "options", list(choices), "at least two, none of them empty")
    return choices


def _wrong(where: str, name: str, value: object, expected: str) -> TaskError:
    return TaskError(f"{where}: '{name}' is {value!r:.120}; expected {expected}")
