"""A table: grouped headings, numbers with their intervals below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from falter.core.records import Estimate
from falter.figures import Column, Grid, Unit, Value
from falter.figures import numbers as n
from falter.report._escape import Html
from falter.report._markup import label, number, tag
from falter.report._words import colour, heading

__all__ = ["empty_note", "grid_table"]

WIDE, NARROW = 132, 46
"""How many characters fit on a page, and on a telephone."""
PADDING = 3
MOST_WORDS = 24


def grid_table(grid: Grid) -> Html:
    """The table, or several that each fit beside the labels; on narrow screens a list of cards."""
    if not grid.rows or not grid.columns:
        return empty_note()
    widths = [_width(grid, at) for at in range(len(grid.columns))]
    tables = [_table(part, kind) for part, kind in _fitting(grid, widths)]
    return Html("".join(tables))


def _table(grid: Grid, kind: str) -> Html:
    bodies = [tag("tbody", *rows) for rows in _bodies(grid)]
    table = tag("table", _head(grid), *bodies, class_=f"fig plain{kind}")
    return tag("div", table, class_="scroll", role="region", aria_label=grid.title[:200])


def _width(grid: Grid, at: int) -> int:
    """About how many characters a column takes; words may stand below each other."""
    column = grid.columns[at]
    texts = [*heading(column, grid).split()]
    for row in grid.rows:
        value = row[at]
        if isinstance(value, Estimate):
            shown = n.shown(value, column.unit)
            texts += (shown.value, shown.interval)
        else:
            text = n.as_text(value, column.unit)
            texts.append(text[:MOST_WORDS] if isinstance(value, str) else text)
    return max(map(len, texts), default=0) + PADDING


def _fitting(grid: Grid, widths: Sequence[int]) -> list[tuple[Grid, str]]:
    """The grid in parts that fit the page, each with the labels, and their classes."""
    kind = " cards" if sum(widths) > NARROW and len(grid.columns) > grid.labels else ""
    labels = sum(widths[: grid.labels])
    parts: list[list[int]] = [[]]
    room = WIDE - labels
    for _, group in groupby(range(grid.labels, len(widths)), key=lambda at: grid.columns[at].over):
        columns = list(group)
        size = sum(widths[at] for at in columns)
        whole = size <= WIDE - labels
        if whole and size > room and parts[-1]:
            parts.append([])
            room = WIDE - labels
        for at in columns:
            if widths[at] > room and parts[-1]:
                parts.append([])
                room = WIDE - labels
            parts[-1].append(at)
            room -= widths[at]
    if len(parts) == 1:
        return [(grid, kind)]
    return [(_columns(grid, [*range(grid.labels), *part]), kind) for part in parts]


def _columns(grid: Grid, places: Sequence[int]) -> Grid:
    return replace(
        grid,
        columns=tuple(grid.columns[at] for at in places),
        rows=tuple(tuple(row[at] for at in places) for row in grid.rows),
    )


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
        name = heading(column, grid)
        whole = f"{column.over}: {name}" if column.over and name else column.over or name
        content = _content(value, column)
        cells.append(tag("td", content, class_=classes, data_label=whole[:120] or None))
    return tag("tr", *cells)


def _content(value: Value, column: Column) -> Html:
    if isinstance(value, Estimate):
        return number(value, column.unit)
    text = n.as_text(value, column.unit)
    return label(text, 300) if isinstance(value, str) else tag("span", text, class_="num")
