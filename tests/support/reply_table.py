"""How well replies are read: precision and recall on the corpora, by kind, with intervals.

    PYTHONPATH=src python tests/support/reply_table.py [--failures]

The 921 replies beside the README are the development corpus. The held-out corpus was measured once
before it had been read (`FIRST_LOOK`). After that the failures of its even lines were looked at;
its odd lines have never been. A second and a third set were written later, with whole questions,
and measured once before their failures were read and mended. The fourth is by somebody who knew
neither the readings nor the other sets; another goes through manners of reply one by one. The
fifth is like the fourth, and nobody has looked at its failures. `everyday` has plain replies of the
commonest manners, written after that and measured before they were learnt from. The sixth, letters
and labels, is by somebody who knew neither readings nor sets; it was measured once, then read.
`--failures` prints those of the development corpus.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from falter.scorers.answers import last_number
from falter.scorers.reading import _keys
from falter.scorers.reading.labels import read_label, read_yes_no
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.numbers import read_number

REPLIES = Path(__file__).parents[1] / "data" / "replies"
KINDS = ("letters", "labels", "numbers", "yesno", "json")
SETS = {
    "development": "development",
    "even": "held out, even",
    "odd": "held out, odd",
    "second": "second set",
    "third": "third set",
    "fourth": "fourth set",
    "manners": "by manner",
    "fifth": "fifth set",
    "everyday": "everyday",
    "sixth": "sixth set",
}
"""The development corpus, the lines of the held-out one, even (looked at) and odd (never), three
later sets and one written by manner of reply, all looked at since, a fifth, never looked at, and
one of everyday replies and a sixth, looked at."""
FOLDERS = {
    "development": "",
    "second": "held_out_2",
    "third": "held_out_3",
    "fourth": "held_out_4",
    "manners": "by_manner",
    "fifth": "held_out_5",
    "everyday": "everyday",
    "sixth": "held_out_6",
}
FIRST_LOOKS = {
    "second": {
        "letters": (25, 21, 18, 18),
        "labels": (26, 21, 17, 17),
        "numbers": (47, 38, 37, 30),
        "yesno": (20, 17, 11, 11),
        "json": (35, 24, 23, 22),
    },
    "third": {
        "letters": (17, 14, 14, 13),
        "labels": (18, 15, 14, 14),
        "numbers": (30, 26, 21, 19),
        "yesno": (15, 12, 11, 11),
        "json": (20, 15, 15, 14),
    },
    "fourth": {
        "letters": (75, 61, 54, 52),
        "labels": (60, 49, 45, 44),
        "numbers": (75, 62, 59, 53),
        "yesno": (50, 41, 34, 31),
        "json": (40, 33, 33, 33),
    },
    "manners": {
        "letters": (39, 30, 28, 27),
        "labels": (33, 24, 23, 22),
        "numbers": (117, 100, 83, 75),
        "yesno": (27, 19, 21, 17),
        "json": (22, 18, 17, 17),
    },
    "everyday": {
        "letters": (27, 26, 20, 18),
        "labels": (65, 61, 52, 52),
        "numbers": (30, 29, 24, 22),
        "yesno": (30, 29, 11, 10),
        "json": (0, 0, 0, 0),
    },
    "sixth": {
        "letters": (80, 61, 50, 45),
        "labels": (90, 72, 61, 56),
        "numbers": (0, 0, 0, 0),
        "yesno": (0, 0, 0, 0),
        "json": (0, 0, 0, 0),
    },
}
"""What the first measurement of the later sets gave: replies, answers, read and right."""
FIRST_LOOK = {
    "letters": (138, 98, 86, 80),
    "labels": (131, 95, 85, 85),
    "numbers": (145, 108, 106, 92),
    "yesno": (73, 50, 44, 41),
    "json": (68, 49, 49, 47),
}
"""Replies, answers, read and right of the whole held-out corpus when it was first measured."""


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


def cases(kind: str, part: str = "development") -> Iterator[dict[str, Any]]:
    """The cases of a kind in one part of the corpora."""
    folder = REPLIES / FOLDERS.get(part, "held_out")
    lines = (folder / f"{kind}.jsonl").read_text("utf-8").splitlines()
    for n, line in enumerate(lines, 1):
        if part in FOLDERS or (n % 2 == 0) == (part == "even"):
            yield json.loads(line)


def wilson(hits: int, of: int) -> str:
    """The 95 % interval of a share, in per cent."""
    if not of:
        return "–"
    z, share = 1.959964, hits / of
    centre = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    return f"{100 * (centre - half):.1f}–{100 * min(1, centre + half):.1f}"


def letter(case: dict[str, Any]) -> str | None:
    names = list(case["options"])
    found = read_letter(
        case["reply"], names, list(case["options"].values()), case["question"]
    ).answer
    return None if found is None else names[found]


READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "letters": letter,
    "labels": lambda case: read_label(case["reply"], case["labels"], case["question"]).answer,
    "numbers": lambda case: read_number(case["reply"], case["question"]).answer,
    "yesno": lambda case: read_yes_no(case["reply"], case["question"]).answer,
    "json": lambda case: _keys.read_key(case["reply"], case["key"]),
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
    kind: str, part: str = "development", reader: Callable[[dict[str, Any]], Any] | None = None
) -> Counts:
    """What a reader makes of the cases of a kind."""
    total = Counts()
    for case in cases(kind, part):
        found = (reader or READERS[kind])(case)
        right = found is not None and same(kind, found, case["read"])
        total += Counts(1, case["read"] is not None, found is not None, right)
    return total


def table() -> str:
    """The first looks of all sets together, by kind, and what was read before, in Markdown."""
    lines = [
        "| kind | replies | answers | read | right | precision | 95 % | recall | 95 % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    first = {kind: Counts(*FIRST_LOOK[kind]) for kind in KINDS}
    for looks in FIRST_LOOKS.values():
        first = {kind: counts + Counts(*looks[kind]) for kind, counts in first.items()}
    lines += [_row(kind, counts) for kind, counts in first.items()]
    lines.append(_row("all", sum(first.values(), Counts())))
    for kind, reader in EARLIER.items():
        lines.append(_row(f"{kind}, before", counted(kind, "development", reader)))
    return "\n".join(lines)


def _row(kind: str, c: Counts) -> str:
    return (
        f"| {kind} | {c.replies} | {c.answers} | {c.read} | {c.right} "
        f"| {c.precision:.1%} | {wilson(c.right, c.read)} "
        f"| {c.recall:.1%} | {wilson(c.right, c.answers)} |"
    )


def failures() -> Iterator[str]:
    """The cases of the development corpus that are read wrongly or not at all."""
    for kind in KINDS:
        for case in cases(kind):
            found = READERS[kind](case)
            if not same(kind, found, case["read"]):
                yield f"{case['id']}: {found!r} instead of {case['read']!r}\n{case['reply']}\n"


if __name__ == "__main__":
    print(table())
    if "--failures" in sys.argv:
        print("\n", *failures(), sep="\n")
