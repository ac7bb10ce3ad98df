"""Data sets that are not here, by their size: enough to plan what an experiment would send.

A plan needs to know how many items there are and how long they are, not what they say. While
`sized_by_description` is open, a data set that the hub does not give is replaced by filler text:
rows about as long as its own are on average, of which a plan looks at some and multiplies. Nothing
is ever asked of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from falter.tasks.enterprise_data import read_yaml

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
    if described is None or name not in sizes():
        return None
    size = sizes()[name]
    described.rows[name] = size["rows"]
    return [_filled(size["row"], n, name) for n in range(min(size["rows"], described.most))]


@cache
def sizes() -> Mapping[str, Any]:
    """`sizes.yaml`: the rows of each data set, and what a row of it is filled with."""
    file = resources.files("falter.tasks").joinpath("data", "sizes.yaml")
    table: Mapping[str, Any] = read_yaml(file.read_text("utf-8"))
    return table


@dataclass(frozen=True, slots=True)
class _Filler:
    """What stands in braces: a number, and sentences of about so many characters after it."""

    words: str
    n: int

    def __format__(self, settings: str) -> str:
        """`80,4,1`: 80 characters and the number 4 n + 1; of `80` it is n."""
        numbers = [int(number) for number in settings.split(",")]
        characters, times, plus = [*numbers, *(0, 1, 0)[len(numbers) :]]
        number = str(times * self.n + plus)
        if not self.words:
            return number
        text = self.words * (1 + characters // len(self.words))
        return f"{number} {text[: max(1, characters - len(number) - 1)].rstrip()}"


def _filled(value: Any, n: int, name: str) -> Any:
    """A value of the table in row n. Its text names the data set, so that no two share prompts."""
    filler = f"{_TEXT}This was about {name}. "
    if isinstance(value, str):
        text, summary, number = (_Filler(words, n) for words in (filler, _SUMMARY, ""))
        return value.format(n=n, text=text, summary=summary, number=number)
    if isinstance(value, list):
        return value[n % len(value)]
    if "texts" in value:
        characters, count = value["texts"]
        return [f"{_Filler(filler, count * n + place):{characters}}" for place in range(count)]
    return {key: _filled(inner, n, name) for key, inner in value.items()}
