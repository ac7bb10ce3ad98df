"""The sets of replies in tests/data/replies, and what the readers take from them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from falter.scorers.reading.fields import read_fields
from falter.scorers.reading.labels import read_label, read_yes_no
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.numbers import read_number

REPLIES = Path(__file__).parents[1] / "data" / "replies"
KINDS = ("letters", "labels", "numbers", "yesno", "json")
READ = ("", "held_out_2", "held_out_3", "held_out_4", "held_out_6", "by_manner", "everyday")
"""Folders whose replies have been read while the readers were written."""
UNSEEN = ("held_out", "held_out_5")
"""Folders with replies that nobody has read: the odd lines of the first, and all of the second."""


def cases(kind: str, folders: tuple[str, ...] = READ) -> Iterator[dict[str, Any]]:
    """Yield the replies of a kind, each with what a careful person reads out of it."""
    for folder in folders:
        lines = (REPLIES / folder / f"{kind}.jsonl").read_text("utf-8").splitlines()
        for n, line in enumerate(lines, 1):
            if folder != "held_out" or n % 2:
                yield json.loads(line)


@dataclass(slots=True)
class Counts:
    """Counts of replies with an answer, read, and read rightly; the last two, stated."""

    answers: int = 0
    read: int = 0
    right: int = 0
    stated: int = 0
    stated_right: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.read

    @property
    def recall(self) -> float:
        return self.right / self.answers


def _letter(case: dict[str, Any]) -> tuple[Any, str | None]:
    names = list(case["options"])
    texts = list(case["options"].values())
    found = read_letter(case["reply"], names, texts, case["question"])
    return None if found.answer is None else names[found.answer], found.tier


def _label(case: dict[str, Any]) -> tuple[Any, str | None]:
    found = read_label(case["reply"], case["labels"], case["question"])
    return found.answer, found.tier


def _number(case: dict[str, Any]) -> tuple[Any, str | None]:
    found = read_number(case["reply"], case["question"])
    return found.answer, found.tier


def _yes_no(case: dict[str, Any]) -> tuple[Any, str | None]:
    found = read_yes_no(case["reply"], case["question"])
    return found.answer, found.tier


def _json(case: dict[str, Any]) -> tuple[Any, str | None]:
    found = read_fields(case["reply"])
    values = {_key(k): v for k, v in (found.answer or {}).items()}
    return values.get(_key(case["key"])), found.tier


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


READERS: dict[str, Callable[[dict[str, Any]], tuple[Any, str | None]]] = {
    "letters": _letter, "labels": _label, "numbers": _number, "yesno": _yes_no, "json": _json,
}  # fmt: skip


def is_right(kind: str, found: Any, read: Any) -> bool:
    """Return True if an answer is the one of the corpus; numbers are compared by value."""
    if found is None or read is None:
        return False
    if kind == "numbers":
        gold = Decimal(read)
        return bool(abs(Decimal(found) - gold) <= abs(gold) * Decimal("1e-9"))
    return bool(found == read)


def counted(kind: str, folders: tuple[str, ...] = READ) -> Counts:
    """Return what the reader of a kind makes of its replies."""
    total = Counts()
    for case in cases(kind, folders):
        found, tier = READERS[kind](case)
        right = is_right(kind, found, case["read"])
        total.answers += case["read"] is not None
        total.read += found is not None
        total.right += right
        total.stated += found is not None and tier == "stated"
        total.stated_right += right and tier == "stated"
    return total
