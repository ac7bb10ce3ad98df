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

__all__ = ["Described", "described_rows", "sized_by_description"]

_FILLER = (
    "The report was written in the spring and sent to the office in March. Most of the people who "
    "read it said that it was clear, and a few asked how long the work had taken. "
)
MOST = 50
"""Rows of a data set that a plan looks at."""
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
    count, row = _ROWS[name]
    described.rows[name] = count
    return [row(number) for number in range(min(count, described.most))]


def _text(number: int, characters: int) -> str:
    """Sentences of about so many characters; another number gives other text."""
    return _filled(_FILLER, number, characters)


def _summary(number: int, characters: int) -> str:
    """The same words in other sentences, which no text holds."""
    return _filled(_SUMMARY, number, characters)


def _filled(words: str, number: int, characters: int) -> str:
    text = words * (1 + characters // len(words))
    return f"{number} {text[: max(1, characters - len(str(number)) - 1)].rstrip()}"


def _texts(number: int, characters: int, count: int) -> list[str]:
    return [_text(count * number + place, characters) for place in range(count)]


def _labelled(number: int, characters: int, count: int, labels: str) -> dict[str, Any]:
    return {"text": _texts(number, characters, count), "label": list(labels[:count])}


# Rows of the split that the task reads, and lengths in characters: rough, from general knowledge.
_Row = Callable[[int], dict[str, Any]]
_ROWS: Mapping[str, tuple[int, _Row]] = {
    "imdb": (25_000, lambda n: {"text": _text(n, 1_290), "label": n % 2}),
    "boolq": (
        3_270,
        lambda n: {"question": _text(n, 44), "passage": _text(n, 560), "answer": n % 2 == 0},
    ),
    "mmlu": (
        14_042,
        lambda n: {
            "question": _text(n, 280),
            "subject": "described",
            "choices": _texts(n, 45, 4),
            "answer": n % 4,
        },
    ),
    "mmlu_pro": (
        12_032,
        lambda n: {
            "question_id": n,
            "question": _text(n, 320),
            "options": _texts(n, 40, 10),
            "answer": "ABCDEFGHIJ"[n % 10],
            "answer_index": n % 10,
            "category": "described",
        },
    ),
    "gpqa": (
        448,
        lambda n: {
            "Question": _text(n, 520),
            "Correct Answer": _text(4 * n, 80),
            **{f"Incorrect Answer {k}": _text(4 * n + k, 80) for k in (1, 2, 3)},
        },
    ),
    "rewardbench": (
        2_985,
        lambda n: {
            "id": n,
            "prompt": _text(n, 300),
            "chosen": _text(2 * n, 1_000),
            "rejected": _text(2 * n + 1, 900),
            "subset": "described",
        },
    ),
    "truthfulqa": (
        817,
        lambda n: {
            "question": _text(n, 55),
            "mc1_targets": {
                "choices": _texts(n, 55, 5),
                "labels": [1, 0, 0, 0, 0],
            },
        },
    ),
    "hellaswag": (
        10_042,
        lambda n: {
            "ind": n,
            "activity_label": "described",
            "ctx_a": _text(n, 150),
            "ctx_b": "they",
            "ctx": _text(n, 160),
            "endings": _texts(n, 110, 4),
            "label": str(n % 4),
        },
    ),
    "gsm8k": (
        1_319,
        lambda n: {"question": _text(n, 235), "answer": f"{_text(n, 280)}\n#### {n}"},
    ),
    "arc_easy": (
        2_376,
        lambda n: {
            "question": _text(n, 115),
            "choices": _labelled(n, 22, 4, "ABCD"),
            "answerKey": "ABCD"[n % 4],
        },
    ),
    "arc_challenge": (
        1_172,
        lambda n: {
            "question": _text(n, 130),
            "choices": _labelled(n, 30, 4, "ABCD"),
            "answerKey": "ABCD"[n % 4],
        },
    ),
    "mathqa": (
        2_985,
        lambda n: {
            "Problem": _text(n, 200),
            "options": " , ".join(
                f"{letter} ) {5 * n + place}" for place, letter in enumerate("abcde")
            ),
            "correct": "abcde"[n % 5],
        },
    ),
    "logiqa": (
        651,
        lambda n: {
            "context": _text(n, 420),
            "question": _text(n, 90),
            "options": _texts(n, 80, 4),
            "label": n % 4,
        },
    ),
    "humaneval": (
        164,
        lambda n: {
            "task_id": f"HumanEval/{n}",
            "prompt": f'def f{n}(x):\n    """{_text(n, 400)}"""\n',
            "canonical_solution": "    return x\n",
            "test": "def check(candidate):\n    assert candidate(1) == 1\n",
            "entry_point": f"f{n}",
        },
    ),
    "cnn_dailymail": (
        11_490,
        lambda n: {"article": _text(n, 3_900), "highlights": _summary(n, 290)},
    ),
    "xsum": (11_334, lambda n: {"document": _text(n, 2_200), "summary": _summary(n, 125)}),
    "reddit_tifu": (42_139, lambda n: {"documents": _text(n, 2_200), "tldr": _summary(n, 120)}),
    "news_summary": (1_000, lambda n: {"text": _text(n, 2_400), "summary": _summary(n, 60)}),
}
