"""A table in a terminal: in several parts if it is too wide, headings on several lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len

from falter.figures import Grid
from falter.figures import numbers as n
from falter.report._escape import line
from falter.report._words import colour, heading
from falter.report.forms._flow import GAP, flow, padded
from falter.report.forms._printer import Printer, Row

__all__ = ["grid_rows"]

_LABEL = 36
_NAME = 14


@dataclass(frozen=True, slots=True)
class _Laid:
    """A column as text: its heading on several lines, its cells and their styles."""

    over: str
    head: tuple[str, ...]
    cells: tuple[str, ...]
    styles: tuple[str, ...]
    left: bool

    @property
    def width(self) -> int:
        return max(cell_len(text) for text in (*self.head, *self.cells, ""))


def grid_rows(grid: Grid, width: int, out: Printer) -> list[list[Row]]:
    """The grid as one or more tables, each with the labels and as many columns as fit."""
    labels = [
        " · ".join(filter(None, (out.plain(line(n.as_text(v, c.unit), 100))
                                 for v, c in zip(row, grid.columns[: grid.labels], strict=False))))
        for row in grid.rows
    ]  # fmt: skip
    top = " · ".join(
        filter(None, (out.plain(line(c.name, 60)) for c in grid.columns[: grid.labels]))
    )
    natural = max(cell_len(text) for text in (top, *labels))
    room = max(1, min(_LABEL, natural, width // 2))
    laid = [
        _laid(at, grid, out, width - room - GAP) for at in range(grid.labels, len(grid.columns))
    ]
    return [_table(top, labels, room, part) for part in _parts(laid, width - room)]


def _parts(columns: Sequence[_Laid], width: int) -> list[list[_Laid]]:
    """The columns split into parts that fit, with at least one column each."""
    out: list[list[_Laid]] = [[]]
    at = 0
    for column in columns:
        if out[-1] and at + column.width + GAP > width:
            out.append([])
            at = 0
        out[-1].append(column)
        at += column.width + GAP
    return out


def _laid(at: int, grid: Grid, out: Printer, most: int) -> _Laid:
    column = grid.columns[at]
    cells = [out.plain(line(n.as_text(row[at], column.unit), 60)) for row in grid.rows]
    cells = [text if cell_len(text) <= most else flow(text, max(1, most - 1))[0] for text in cells]
    room = max(1, min(most, max(_NAME, *(cell_len(text) for text in cells))))
    head = flow(out.plain(line(heading(column, grid), 60)), room)
    left = all(isinstance(row[at], str | None) for row in grid.rows) and column.unit == "text"
    styles = [_COLOURS[colour(row[at], column.unit)] for row in grid.rows]
    return _Laid(out.plain(line(column.over, 60)), tuple(head), tuple(cells), tuple(styles), left)


_COLOURS = {"worse": "bold red", "better": "bold blue", "": ""}


def _table(top: str, labels: Sequence[str], room: int, part: Sequence[_Laid]) -> list[Row]:
    rows: list[Row] = []
    rows += [[(" " * room + text, "dim")] for text in _overs(part)]
    height = max((len(column.head) for column in part), default=1)
    names = flow(top, room)
    height = max(height, len(names))
    for at in range(height):
        first = names[at - height + len(names)] if at >= height - len(names) else ""
        row: Row = [(padded(first, room, left=True), "dim")]
        for column in part:
            text = column.head[at - height + len(column.head)] if at >= height - len(
                column.head) else ""  # fmt: skip
            row.append((" " * GAP + padded(text, column.width, left=column.left), "dim"))
        rows.append(row)
    for number, label in enumerate(labels):
        first, *rest = flow(label, room)
        row = [(padded(first, room, left=True), "")]
        for column in part:
            cell = padded(column.cells[number], column.width, left=column.left)
            row.append((" " * GAP + cell, column.styles[number]))
        rows.append(row)
        rows += [[(more, "")] for more in rest]
    return rows


def _overs(part: Sequence[_Laid]) -> list[str]:
    """The headings of groups, each over its own columns, on as many lines as they need."""
    groups = [(over, list(columns)) for over, columns in groupby(part, key=lambda c: c.over)]
    widths = [sum(GAP + column.width for column in columns) - GAP for _, columns in groups]
    heads = [
        flow(over, width) if over else [] for (over, _), width in zip(groups, widths, strict=True)
    ]
    height = max(map(len, heads), default=0)
    heads = [[""] * (height - len(head)) + head for head in heads]
    return [
        "".join(
            " " * GAP + padded(head[at], width, left=True)
            for head, width in zip(heads, widths, strict=True)
        )
        for at in range(height)
    ]
