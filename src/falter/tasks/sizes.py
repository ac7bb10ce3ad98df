"""Data sets by their size: enough to plan what an experiment would send.

A plan needs to know how many items there are and how long they are, not what they say. While
`sized_by_description` is open, a data set that the hub does not give is replaced by filler text:
rows about as long as its own are on average. Of a large file of the user's own some rows are read.
A plan looks at these and multiplies; nothing is ever asked of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from falter.tasks.enterprise_data import read_yaml
from falter.tasks.rows import Row, in_memory, rows_at, sampled_rows

FILLER_ROWS = 50
"""Rows of filler that a plan looks at."""
MAX_ROWS_READ = 2_000
"""Rows of the user's own file that a plan reads: enough to choose the scorer by their targets."""
_TEXT = (
    "The report # was written in the spring and sent to the office in March. Most people who read "
    "# said that it was clear, and a few asked how long the work had taken. "
)
_SUMMARY = "A clear account of # came out, and all that its readers wished was more of it. "
"""Each # becomes a word of its own: no sentence is there twice, each of a summary has a source."""


@dataclass(slots=True)
class Described:
    """The data sets that were replaced while it was open, with the rows that each really has.

    No more than `most` rows of each are filled. `read` are the user's own files of which some rows
    were read: how many, and of how many.
    """

    most: int
    exact: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    read: dict[str, tuple[int, int]] = field(default_factory=dict)

    def times(self, task: str) -> float:
        """Return the ratio of a task's real items to those here, and 1 for a task that is here."""
        if task in self.read:
            read, count = self.read[task]
            return count / read
        count = self.rows.get(task.partition(":")[0], 0)
        return max(1.0, count / self.most)


_described: ContextVar[Described | None] = ContextVar("described", default=None)


@contextmanager
def sized_by_description(exact: bool = False) -> Iterator[Described]:
    """Plan with stand-ins; what it gives says which data sets were replaced.

    If `exact`, files that are here are read whole.
    """
    described = Described(FILLER_ROWS, exact)
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


def planned_rows(path: str, task: str) -> Iterable[Row]:
    """Return the rows of the user's own data; of a large file that is only planned, some."""
    described = _described.get()
    if described is None or described.exact or in_memory(path):
        return rows_at(path)
    rows, count = sampled_rows(path, MAX_ROWS_READ)
    if len(rows) < count:
        described.read[task] = len(rows), count
    return rows


@cache
def sizes() -> Mapping[str, Any]:
    """`sizes.yaml`: the rows of each data set, and what a row of it is filled with."""
    file = resources.files("falter.tasks").joinpath("data", "sizes.yaml")
    table: Mapping[str, Any] = read_yaml(file.read_text("utf-8"))
    return table


@dataclass(frozen=True, slots=True)
class _Filler:
    """The text in braces: a number, and sentences of about so many characters after it."""

    words: str
    n: int

    def __format__(self, settings: str) -> str:
        """`80,4,1`: 80 characters and the number 4 n + 1; of `80` it is n."""
        numbers = [int(number) for number in settings.split(",")]
        characters, times, plus = [*numbers, *(0, 1, 0)[len(numbers) :]]
        number = str(times * self.n + plus)
        if not self.words:
            return number
        count = itertools.count()
        text = self.words * (1 + characters // len(self.words))
        text = re.sub("#", lambda _: f"{number}x{next(count)}", text)
        return f"{number} {text[: max(1, characters - len(number) - 1)].rstrip()}"


def _filled(value: Any, n: int, name: str) -> Any:
    """A value of the table in row n. Its text names the data set, so that no two share prompts."""
    filler = f"{_TEXT}This was about {name} in #. "
    if isinstance(value, str):
        named = (words.replace("#", f"{name}#") for words in (filler, _SUMMARY, ""))
        text, summary, number = (_Filler(words, n) for words in named)
        return value.format(n=n, text=text, summary=summary, number=number)
    if isinstance(value, list):
        return value[n % len(value)]
    if "texts" in value:
        characters, count = value["texts"]
        return [f"{_Filler(filler, count * n + place):{characters}}" for place in range(count)]
    return {key: _filled(inner, n, name) for key, inner in value.items()}
