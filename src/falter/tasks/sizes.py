"""Data sets that are not here, by their size: enough to plan what an experiment would send.

A plan needs to know how many items there are and how long they are, not what they say. While
`sized_by_description` is open, a data set that the hub does not give is replaced by filler text:
rows about as long as its own are on average, of which a plan looks at some and multiplies. Nothing
is ever asked of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

MOST = 50
"""Rows of a data set that a plan looks at."""
_TEXT = (
    "The report was written in the spring and sent to the office in March. Most of the people who "
    "read it said that it was clear, and a few asked how long the work had taken. "
)
_SUMMARY = (
    "A clear account of this work came out that year, and what its readers in the office wanted "
    "to know was mostly how many weeks it needed. "
)


@dataclass(slots=True)
class Described:
    """The data sets that were replaced while it was open, with the rows that each really has.

    No more than `most` rows of each are filled.
    """

    most: int
    rows: dict[str, int] = field(default_factory=dict)

    def times(self, task: str) -> float:
        """How many times the items of a task there really are, and 1 for a task that is here."""
        count = self.rows.get(task.partition(":")[0], 0)
        return max(1.0, count / self.most)


_described: ContextVar[Described | None] = ContextVar("described", default=None)


@contextmanager
def sized_by_description() -> Iterator[Described]:
    """Plan with stand-ins; what it gives says which data sets were replaced."""
    described = Described(MOST)
    token = _described.set(described)
    try:
        yield described
    finally:
        _described.reset(token)


def described_rows(name: str) -> list[dict[str, Any]] | None:
    """Filler rows of a data set, while `sized_by_description` is open and its size is known."""
    described = _described.get()
    if described is None or name not in _ROWS:
        return None
    count, columns = _ROWS[name]
    described.rows[name] = count
    return [
        {column: value(number) for column, value in columns.items()}
        for number in range(min(count, described.most))
    ]


Filler = Callable[[int], Any]
"""The value of a column in the row with this number."""


def _text(characters: int, times: int = 1, plus: int = 0, words: str = _TEXT) -> Filler:
    """Sentences of about so many characters; another number, times and plus, gives other text."""

    def filled(number: int) -> str:
        number = times * number + plus
        text = words * (1 + characters // len(words))
        return f"{number} {text[: max(1, characters - len(str(number)) - 1)].rstrip()}"

    return filled


def _summary(characters: int) -> Filler:
    """The same in other sentences, which no text holds."""
    return _text(characters, words=_SUMMARY)


def _texts(characters: int, count: int) -> Filler:
    """A list of such texts."""
    places = [_text(characters, count, place) for place in range(count)]
    return lambda number: [text(number) for text in places]


def _in_turn(values: Any) -> Filler:
    return lambda number: values[number % len(values)]


def _always(value: Any) -> Filler:
    return lambda number: value


def _number(number: int) -> int:
    return number


def _arc(question: int, option: int) -> Mapping[str, Filler]:
    options, labels = _texts(option, 4), list("ABCD")
    return {
        "question": _text(question),
        "choices": lambda number: {"text": options(number), "label": labels},
        "answerKey": _in_turn("ABCD"),
    }


_SUBJECT = _always("described")
# Rows of the split that the task reads, and lengths in characters: rough, from general knowledge.
_ROWS: Mapping[str, tuple[int, Mapping[str, Filler]]] = {
    "imdb": (25_000, {"text": _text(1_290), "label": _in_turn((0, 1))}),
    "boolq": (
        3_270,
        {"question": _text(44), "passage": _text(560), "answer": _in_turn((True, False))},
    ),
    "mmlu": (
        14_042,
        {
            "question": _text(280),
            "subject": _SUBJECT,
            "choices": _texts(45, 4),
            "answer": _in_turn(range(4)),
        },
    ),
    "mmlu_pro": (
        12_032,
        {
            "question_id": _number,
            "question": _text(320),
            "options": _texts(40, 10),
            "answer": _in_turn("ABCDEFGHIJ"),
            "answer_index": _in_turn(range(10)),
            "category": _SUBJECT,
        },
    ),
    "gpqa": (
        448,
        {
            "Question": _text(520),
            "Correct Answer": _text(80, 4),
            **{f"Incorrect Answer {k}": _text(80, 4, k) for k in (1, 2, 3)},
        },
    ),
    "rewardbench": (
        2_985,
        {
            "id": _number,
            "prompt": _text(300),
            "chosen": _text(1_000, 2),
            "rejected": _text(900, 2, 1),
            "subset": _SUBJECT,
        },
    ),
    "truthfulqa": (
        817,
        {
            "question": _text(55),
            "mc1_targets": lambda n: {"choices": _texts(55, 5)(n), "labels": [1, 0, 0, 0, 0]},
        },
    ),
    "hellaswag": (
        10_042,
        {
            "ind": _number,
            "activity_label": _SUBJECT,
            "ctx": _text(160),
            "endings": _texts(110, 4),
            "label": _in_turn("0123"),
        },
    ),
    "gsm8k": (
        1_319,
        {"question": _text(235), "answer": lambda n: f"{_text(280)(n)}\n#### {n}"},
    ),
    "arc_easy": (2_376, _arc(115, 22)),
    "arc_challenge": (1_172, _arc(130, 30)),
    "mathqa": (
        2_985,
        {
            "Problem": _text(200),
            "options": lambda n: " , ".join(f"{c} ) {5 * n + k}" for k, c in enumerate("abcde")),
            "correct": _in_turn("abcde"),
        },
    ),
    "logiqa": (
        651,
        {
            "context": _text(420),
            "question": _text(90),
            "options": _texts(80, 4),
            "label": _in_turn(range(4)),
        },
    ),
    "humaneval": (
        164,
        {
            "task_id": lambda n: f"HumanEval/{n}",
            "prompt": lambda n: f'def f{n}(x):\n    """{_text(400)(n)}"""\n',
            "canonical_solution": _always("    return x\n"),
            "test": _always("def check(candidate):\n    assert candidate(1) == 1\n"),
            "entry_point": lambda n: f"f{n}",
        },
    ),
    "cnn_dailymail": (11_490, {"article": _text(3_900), "highlights": _summary(290)}),
    "xsum": (11_334, {"document": _text(2_200), "summary": _summary(125)}),
    "reddit_tifu": (42_139, {"documents": _text(2_200), "tldr": _summary(120)}),
    "news_summary": (1_000, {"text": _text(2_400), "summary": _summary(60)}),
}
