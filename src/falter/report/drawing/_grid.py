"""A table: grouped headings, numbers with their intervals below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from falter.core.records import Estimate
from falter.figures import Column, Grid, Unit, Value
from falter.figures import numbers as n
from falter.report._escape import Html
from falter.report._markup import label, number, scroll, tag
from falter.report._words import colour, heading

__all__ = ["empty_note", "grid_table"]


def grid_table(grid: Grid) -> Html:
    """The table in a box that scrolls; the first column stays in view."""
    if not grid.rows or not grid.columns:
        return empty_note()
    bodies = [tag("tbody", *rows) for rows in _bodies(grid)]
    return scroll(tag("table", _head(grid), *bodies, class_="fig plain"), grid.title[:200])


def empty_note() -> Html:
    """The note in place of an empty figure."""
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
            cell = tag("th", name, scope="col", rowspan=span, class_=kind,
                       title=column.about or None)  # fmt: skip
            (second if over else first).append(cell)
    rows = [tag("tr", *first)] + ([tag("tr", *second)] if grouped else [])
    return tag("thead", *rows)


def _groups(grid: Grid) -> list[tuple[str, list[tuple[int, Column]]]]:
    """The columns in order, those under one heading together."""
    groups = groupby(enumerate(grid.columns), key=lambda pair: pair[1].over)
    return [(over, list(columns)) for over, columns in groups]


def _classes(at: int, grid: Grid, unit: Unit, *, starts: bool) -> str | None:
    words = [
        "stick" if at == 0 and grid.labels else "",
        "r" if at >= grid.labels and unit != "text" else "",
        "starts" if starts and at else "",
    ]
    return " ".join(filter(None, words)) or None


def _bodies(grid: Grid) -> list[list[Html]]:
    """The rows; with several labels, rows with the same first label share it."""
    if grid.labels < 2:
        return [[_row(row, grid, span=1) for row in grid.rows]]
    bodies = []
    for _, group in groupby(grid.rows, key=lambda row: row[0]):
        rows = list(group)
        spans = (len(rows), *[0] * (len(rows) - 1))
        bodies.append([_row(row, grid, span=span) for row, span in zip(rows, spans, strict=True)])
    return bodies


def _row(row: Sequence[Value], grid: Grid, span: int) -> Html:
    """A row; with a span of 0 its first label is in a row above."""
    starts = {columns[0][0] for over, columns in _groups(grid) if over}
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
        classes = " ".join(filter(None, (kind, colour(value, column.unit)))) or None
        cells.append(tag("td", _content(value, column), class_=classes))
    return tag("tr", *cells)


def _content(value: Value, column: Column) -> Html:
    if isinstance(value, Estimate):
        return number(value, column.unit)
    text = n.as_text(value, column.unit)
    return label(text, 300) if isinstance(value, str) else tag("span", text, class_="num")
