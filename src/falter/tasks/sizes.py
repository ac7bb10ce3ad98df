"""Stand-ins for data sets, with which an experiment can be planned before its data are loaded.

A plan needs the number and the length of the items, not their content. While `sized_by_description`
is open, filler rows of average length replace a data set that the hub does not deliver. From a
large file of the user, only some rows are read. The plan multiplies the counts of the rows read;
none of the rows is sent to a model.
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
"""Maximum number of filler rows per data set."""
MAX_ROWS_READ = 2_000
"""Rows of the user's file that a plan reads: enough to choose the scorer by their targets."""
_FILLER_TEXT = (
    "The report # was written in the spring and sent to the office in March. Most people who read "
    "# said that it was clear, and a few asked how long the work had taken. "
)
_FILLER_SUMMARY = "A clear account of # came out, and all that its readers wished was more of it. "
"""Filler of summaries.

Each # becomes a different word: no sentence repeats, and each sentence of a summary has a source.
"""


@dataclass(slots=True)
class Described:
    """Sizes of the data sets that a plan does not read whole.

    `rows` holds the real number of rows of each replaced data set, of which at most `most` are
    filled. `read` holds for each task of a sampled file the numbers of rows read and of all rows.
    If `exact`, files are read whole.
    """

    most: int
    exact: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    read: dict[str, tuple[int, int]] = field(default_factory=dict)

    def times(self, task: str) -> float:
        """Return the ratio of a task's real items to its loaded items; 1 for a complete task."""
        if task in self.read:
            read, count = self.read[task]
            return count / read
        count = self.rows.get(task.partition(":")[0], 0)
        return max(1.0, count / self.most)


_description: ContextVar[Described | None] = ContextVar("described", default=None)


@contextmanager
def sized_by_description(exact: bool = False) -> Iterator[Described]:
    """Let data sets be replaced by stand-ins inside the context, and yield the record of them.

    If `exact`, local files are read whole.
    """
    described = Described(FILLER_ROWS, exact)
    token = _description.set(described)
    try:
        yield described
    finally:
        _description.reset(token)


def described_rows(name: str) -> list[dict[str, Any]] | None:
    """Return filler rows of a data set and record its real size.

    Return None if `sized_by_description` is not open or the size is unknown.
    """
    described = _description.get()
    if described is None or name not in sizes():
        return None
    size = sizes()[name]
    described.rows[name] = size["rows"]
    return [_filled_value(size["row"], n, name) for n in range(min(size["rows"], described.most))]


def planned_rows(path: str, task: str) -> Iterable[Row]:
    """Return the rows of the user's data; in a plan, at most MAX_ROWS_READ rows of a file.

    An exact plan, and rows in memory, have all rows.
    """
    described = _description.get()
    if described is None or described.exact or in_memory(path):
        return rows_at(path)
    rows, count = sampled_rows(path, MAX_ROWS_READ)
    if len(rows) < count:
        described.read[task] = len(rows), count
    return rows


@cache
def sizes() -> Mapping[str, Any]:
    """Return the table `sizes.yaml`: the number of rows of each data set, and its filler row."""
    file = resources.files("falter.tasks").joinpath("data", "sizes.yaml")
    table: Mapping[str, Any] = read_yaml(file.read_text("utf-8"))
    return table


@dataclass(frozen=True, slots=True)
class _Filler:
    """A placeholder of a filler row: a number, followed by sentences of about a given length."""

    words: str
    n: int

    def __format__(self, settings: str) -> str:
        """Return the text for settings such as `80,4,1`: 80 characters with the number 4 n + 1.

        The setting `80` has the number n.
        """
        numbers = [int(number) for number in settings.split(",")]
        characters, times, plus = [*numbers, *(0, 1, 0)[len(numbers) :]]
        number = str(times * self.n + plus)
        if not self.words:
            return number
        count = itertools.count()
        text = self.words * (1 + characters // len(self.words))
        text = re.sub("#", lambda _: f"{number}x{next(count)}", text)
        return f"{number} {text[: max(1, characters - len(number) - 1)].rstrip()}"


def _filled_value(value: Any, n: int, name: str) -> Any:
    """Return the value of row n for an entry of the table.

    The text names the data set, so that no two data sets share a prompt.
    """
    filler = f"{_FILLER_TEXT}This was about {name} in #. "
    if isinstance(value, str):
        named = (words.replace("#", f"{name}#") for words in (filler, _FILLER_SUMMARY, ""))
        text, summary, number = (_Filler(words, n) for words in named)
        return value.format(n=n, text=text, summary=summary, number=number)
    if isinstance(value, list):
        return value[n % len(value)]
    if "texts" in value:
        characters, count = value["texts"]
        return [f"{_Filler(filler, count * n + place):{characters}}" for place in range(count)]
    return {key: _filled_value(inner, n, name) for key, inner in value.items()}
