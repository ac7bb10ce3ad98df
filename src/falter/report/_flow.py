"""Text that fits a terminal: lines that break at spaces and columns that give way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

__all__ = ["Column", "fitting", "flow", "padded"]

GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; the one with the highest `rank` gives way first."""

    head: str
    cells: Sequence[str]
    rank: int = 0
    left: bool = False

    @property
    def width(self) -> int:
        return max(cell_len(cell) for cell in (self.head, *self.cells))


def fitting(columns: Sequence[Column], width: int, least: int) -> tuple[list[Column], int]:
    """The columns that fit beside a label column, and how wide that one may be.

    Columns are left out whole, the least important one first, until the labels have `least`.
    """
    kept = list(columns)
    while kept:
        room = width - sum(column.width + GAP for column in kept)
        if room >= least:
            return kept, room
        kept.remove(max(kept, key=lambda column: column.rank))
    return kept, width


def padded(text: str, width: int, *, left: bool = False) -> str:
    """Text filled up with spaces to a width in terminal cells."""
    space = " " * max(0, width - cell_len(text))
    return text + space if left else space + text


def flow(text: str, width: int, indent: str = "") -> list[str]:
    """Lines no wider than `width`, broken at spaces only; a no-break space holds.

    A word that is wider than a line is cut.
    """
    room = max(1, width - cell_len(indent))
    out, at = [""], 0
    for word in text.split(" "):
        size = cell_len(word)
        if at and at + 1 + size > room:
            out, at = [*out, ""], 0
        if size > room:
            *full, word = chop_cells(word, room)
            out[-1:] = [*full, ""] if not out[-1] else [out[-1], *full, ""]
            size = cell_len(word)
        out[-1] += f" {word}" if at else word
        at += size + (1 if at else 0)
    return [f"{indent}{part}".replace("\xa0", " ").rstrip() for part in out]
