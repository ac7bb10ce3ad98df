"""Text that fits a terminal: lines that break at spaces, and columns that may be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

__all__ = ["GAP", "Column", "fitting", "flow", "padded"]

GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; those with the highest `rank` are left out first, together."""

    head: str
    cells: Sequence[str]
    rank: int = 0
    left: bool = False

    @property
    def width(self) -> int:
        return max(cell_len(cell) for cell in (self.head, *self.cells))


def fitting(columns: Sequence[Column], width: int, least: int) -> tuple[list[Column], int]:
    """The columns that fit beside the labels, and the width that the labels may take.

    Whole columns are left out, the least important first, until the labels have `least`.
    """
    fitting_columns = list(columns)
    while fitting_columns:
        room = width - sum(column.width + GAP for column in fitting_columns)
        if room >= least:
            return fitting_columns, room
        last = max(column.rank for column in fitting_columns)
        fitting_columns = [column for column in fitting_columns if column.rank < last]
    return fitting_columns, width


def padded(text: str, width: int, *, left: bool = False) -> str:
    """Text padded with spaces to a width in terminal cells."""
    space = " " * max(0, width - cell_len(text))
    return text + space if left else space + text


def flow(text: str, width: int, indent: str = "") -> list[str]:
    """Lines no wider than `width`, broken at spaces but not at no-break spaces.

    A word that is wider than a line is split.
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
