"""A table of a study: headings in groups, numbers with their intervals beneath."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from falter.core.records import Estimate
from falter.figures import Column, Grid, Unit, Value
from falter.report import _numbers as n
from falter.report._escape import Html
from falter.report._figure_words import heading, verdict
from falter.report._markup import label, number, tag
from falter.report._tables import scroll

__all__ = ["empty_note", "grid_table"]


def grid_table(grid: Grid) -> Html:
    """The table in a box that scrolls; the first column stays in sight."""
    if not grid.rows or not grid.columns:
        return empty_note()
    bodies = [tag("tbody", *rows) for rows in _bodies(grid)]
    return scroll(tag("table", _head(grid), *bodies, class_="fig plain"), grid.title[:200])


def empty_note() -> Html:
    """What stands where a figure holds nothing."""
    return tag("p", "Nothing was measured for this figure.", class_="muted")


def _head(grid: Grid) -> Html:
    grouped = any(column.over for column in grid.columns)
    first: list[Html] = []
    second: list[Html] = []
    for over, columns in _groups(grid):
        if over:
            first.append(
                tag("th", label(over, 80), scope="colgroup", colspan=len(columns), class_="over")
            )
        for at, column in columns:
            name = label(heading(column, grid), 80)
            kind = _classes(at, grid, column.unit, starts=bool(over) and at == columns[0][0])
            span = 2 if grouped and not over else None
            cell = tag("th", name, scope="col", rowspan=span, class_=kind)
            (second if over else first).append(cell)
    rows = [tag("tr", *first)] + ([tag("tr", *second)] if grouped else [])
    return tag("thead", *rows)


def _groups(grid: Grid) -> list[tuple[str, list[tuple[int, Column]]]]:
    """The columns in order, those under one heading together."""
    found = groupby(enumerate(grid.columns), key=lambda pair: pair[1].over)
    return [(over, list(columns)) for over, columns in found]


def _starts(grid: Grid) -> frozenset[int]:
    """Where a group of columns begins."""
    return frozenset(columns[0][0] for over, columns in _groups(grid) if over)


def _classes(at: int, grid: Grid, unit: Unit, *, starts: bool) -> str | None:
    words = [
        "stick" if at == 0 and grid.labels else "",
        "r" if at >= grid.labels and unit != "text" else "",
        "starts" if starts and at else "",
    ]
    return " ".join(filter(None, words)) or None


def _bodies(grid: Grid) -> list[list[Html]]:
    """The rows; those with the same first label share it where there are several labels."""
    if grid.labels < 2:
        return [[_row(row, grid, span=1) for row in grid.rows]]
    bodies = []
    for _, group in groupby(grid.rows, key=lambda row: row[0]):
        rows = list(group)
        spans = (len(rows), *[0] * (len(rows) - 1))
        bodies.append([_row(row, grid, span=span) for row, span in zip(rows, spans, strict=True)])
    return bodies


def _row(row: Sequence[Value], grid: Grid, span: int) -> Html:
    """A row; with a span of 0 the first label stands in a row above."""
    starts = _starts(grid)
    cells = []
    for at, (value, column) in enumerate(zip(row, grid.columns, strict=True)):
        kind = _classes(at, grid, column.unit, starts=at in starts)
        if at < grid.labels:
            if at or span:
                scope = "rowgroup" if span > 1 and not at else "row"
                rows = span if span > 1 and not at else None
                cells.append(
                    tag("th", _content(value, column), scope=scope, rowspan=rows, class_=kind)
                )
            continue
        told = " ".join(filter(None, (kind, verdict(value, column.unit)))) or None
        cells.append(tag("td", _content(value, column), class_=told))
    return tag("tr", *cells)


def _content(value: Value, column: Column) -> Html:
    if isinstance(value, Estimate):
        return number(value, column.unit)
    text = n.told(value, column.unit)
    return label(text, 300) if isinstance(value, str) else tag("span", text, class_="num")
