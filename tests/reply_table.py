"""How well replies are read: precision and recall on the corpus, by kind, in two halves.

    PYTHONPATH=src python tests/reply_table.py [--failures]

The readings were developed looking at the failures of the first half only. The second half is
what a hash of the case's id puts there; the first fifty letters are in the first half whatever
their hash, since they had been seen before the corpus was split. Of the
second half, only counts (by manner, and by how firmly an answer was given) were looked at.
`--failures` prints those of the first half.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from falter.scorers.answers import last_number
from falter.scorers.reading import read_key, read_label, read_letter, read_number, read_yes_no

REPLIES = Path(__file__).parent / "data" / "replies"
KINDS = ("letters", "labels", "numbers", "yesno", "json")
HALVES = ("first", "second")


@dataclass(frozen=True, slots=True)
class Counts:
    """What was read of a set of replies."""

    replies: int = 0
    answers: int = 0
    read: int = 0
    right: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.replies + other.replies,
            self.answers + other.answers,
            self.read + other.read,
            self.right + other.right,
        )

    @property
    def precision(self) -> float:
        """The share of what was read that is right."""
        return self.right / self.read if self.read else 1.0

    @property
    def recall(self) -> float:
        """The share of the answers that was read rightly."""
        return self.right / self.answers if self.answers else 1.0


def cases(kind: str, half: str | None = None) -> Iterator[dict[str, Any]]:
    """The cases of a kind, or those of one half."""
    for line in (REPLIES / f"{kind}.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        if half in (None, half_of(case["id"])):
            yield case


def half_of(name: str) -> str:
    """Which half a case is in."""
    seen = name.startswith("C-") and name <= "C-050"
    even = int(hashlib.sha256(name.encode()).hexdigest()[:2], 16) % 2 == 0
    return "first" if seen or even else "second"


def letter(case: dict[str, Any]) -> str | None:
    names = list(case["options"])
    found = read_letter(case["reply"], names, list(case["options"].values()))
    return None if found is None else names[found]


READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "letters": letter,
    "labels": lambda case: read_label(case["reply"], case["labels"]),
    "numbers": lambda case: read_number(case["reply"]),
    "yesno": lambda case: read_yes_no(case["reply"]),
    "json": lambda case: read_key(case["reply"], case["key"]),
}
EARLIER: dict[str, Callable[[dict[str, Any]], Any]] = {
    "labels": lambda case: case["reply"].strip(),
    "numbers": lambda case: last_number(case["reply"]),
}
"""What was read before there was a reading layer: the whole reply, and its last number."""


def same(kind: str, found: Any, read: Any) -> bool:
    """Whether a reading is the one of the corpus."""
    if found is None or read is None:
        return found is read
    if kind == "numbers":
        return Decimal(str(found)) == Decimal(read)
    return bool(found == read) and isinstance(found, bool) == isinstance(read, bool)


def counted(
    kind: str, half: str | None = None, reader: Callable[[dict[str, Any]], Any] | None = None
) -> Counts:
    """What a reader makes of the cases of a kind."""
    total = Counts()
    for case in cases(kind, half):
        found = (reader or READERS[kind])(case)
        right = found is not None and same(kind, found, case["read"])
        total += Counts(1, case["read"] is not None, found is not None, right)
    return total


def table() -> str:
    """The counts as a Markdown table."""
    lines = [
        "| kind | half | replies | answers | read | right | precision | recall |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    rows = [(kind, half) for kind in KINDS for half in (*HALVES, None)]
    for kind, half in rows:
        lines.append(_row(kind, half or "both", counted(kind, half)))
    for half in HALVES:
        lines.append(_row("all", half, sum((counted(k, half) for k in KINDS), Counts())))
    lines.append(_row("all", "both", sum((counted(k) for k in KINDS), Counts())))
    for kind, reader in EARLIER.items():
        lines.append(_row(f"{kind}, before", "both", counted(kind, None, reader)))
    return "\n".join(lines)


def _row(kind: str, half: str, c: Counts) -> str:
    return (
        f"| {kind} | {half} | {c.replies} | {c.answers} | {c.read} | {c.right} "
        f"| {c.precision:.1%} | {c.recall:.1%} |"
    )


def failures() -> Iterator[str]:
    """The cases of the first half that are read wrongly or not at all."""
    for kind in KINDS:
        for case in cases(kind, "first"):
            found = READERS[kind](case)
            if not same(kind, found, case["read"]):
                yield f"{case['id']}: {found!r} instead of {case['read']!r}\n{case['reply']}\n"


if __name__ == "__main__":
    print(table())
    if "--failures" in sys.argv:
        print("\n", *failures(), sep="\n")
