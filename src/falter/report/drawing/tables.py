"""Tables with grouped headings and intervals, heat maps as tables, and headline numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from falter.records import numbers as n
from falter.records.figures import Column, Grid, Headline, HeadNumber, HeatMap, Unit, Value
from falter.records.types import Estimate
from falter.report.escape import Html
from falter.report.markup import label, number, scroll, tag
from falter.report.words import colour, excludes_zero, few, heading, provenance, reason

PAGE_CHARACTERS, PHONE_CHARACTERS = 132, 46
"""Number of characters that fit on a page, and on a phone."""
CELL_PADDING = 3
MAX_TEXT_WIDTH = 24


def grid_table(grid: Grid) -> Html:
    """Return the table, or several that each fit the page with the labels.

    A table that is too wide for a phone becomes a list of cards there.
    """
    if not grid.rows or not grid.columns:
        return empty_note()
    widths = [_column_width(grid, at) for at in range(len(grid.columns))]
    tables = [_html_table(part, kind) for part, kind in _fitting_parts(grid, widths)]
    return Html("".join(tables))


def _html_table(grid: Grid, kind: str) -> Html:
    bodies = [tag("tbody", *rows) for rows in _table_bodies(grid)]
    table = tag("table", _grid_head(grid), *bodies, class_=f"fig plain{kind}")
    return tag("div", table, class_="scroll", role="region", aria_label=grid.title[:200])


def _column_width(grid: Grid, at: int) -> int:
    """Return the approximate width of a column in characters; headings may break at spaces."""
    column = grid.columns[at]
    texts = [*heading(column, grid).split()]
    for row in grid.rows:
        value = row[at]
        if isinstance(value, Estimate):
            shown = n.shown(value, column.unit)
            texts += (shown.value, shown.interval)
        else:
            text = n.as_text(value, column.unit)
            texts.append(text[:MAX_TEXT_WIDTH] if isinstance(value, str) else text)
    return max(map(len, texts), default=0) + CELL_PADDING


def _fitting_parts(grid: Grid, widths: Sequence[int]) -> list[tuple[Grid, str]]:
    """Return the grid in parts that fit the page, each with the labels and its CSS class.

    Columns under one heading stay together if they fit the page.
    """
    css = " cards" if sum(widths) > PHONE_CHARACTERS and len(grid.columns) > grid.labels else ""
    labels = sum(widths[: grid.labels])
    parts: list[list[int]] = [[]]
    characters_left = PAGE_CHARACTERS - labels
    for _, group in groupby(range(grid.labels, len(widths)), key=lambda at: grid.columns[at].over):
        columns = list(group)
        size = sum(widths[at] for at in columns)
        whole = size <= PAGE_CHARACTERS - labels
        if whole and size > characters_left and parts[-1]:
            parts.append([])
            characters_left = PAGE_CHARACTERS - labels
        for at in columns:
            if widths[at] > characters_left and parts[-1]:
                parts.append([])
                characters_left = PAGE_CHARACTERS - labels
            parts[-1].append(at)
            characters_left -= widths[at]
    if len(parts) == 1:
        return [(grid, css)]
    return [(_with_columns(grid, [*range(grid.labels), *part]), css) for part in parts]


def _with_columns(grid: Grid, places: Sequence[int]) -> Grid:
    return replace(
        grid,
        columns=tuple(grid.columns[at] for at in places),
        rows=tuple(tuple(row[at] for at in places) for row in grid.rows),
    )


def empty_note() -> Html:
    """Return the note that replaces an empty figure."""
    return tag("p", "Nothing was measured for this figure.", class_="muted")


def _grid_head(grid: Grid) -> Html:
    grouped = any(column.over for column in grid.columns)
    first: list[Html] = []
    second: list[Html] = []
    for over, columns in _heading_groups(grid):
        if over:
            first.append(
                tag("th", label(over, 80), scope="colgroup", colspan=len(columns), class_="over")
            )
        for at, column in columns:
            name = label(heading(column, grid), 80)
            kind = _cell_classes(at, grid, column.unit, starts=bool(over) and at == columns[0][0])
            span = 2 if grouped and not over else None
            cell = tag("th", name, scope="col", rowspan=span, class_=kind,
                       title=column.about or None)  # fmt: skip
            (second if over else first).append(cell)
    rows = [tag("tr", *first)] + ([tag("tr", *second)] if grouped else [])
    return tag("thead", *rows)


def _heading_groups(grid: Grid) -> list[tuple[str, list[tuple[int, Column]]]]:
    """Return the columns with their places, grouped by shared heading."""
    groups = groupby(enumerate(grid.columns), key=lambda pair: pair[1].over)
    return [(over, list(columns)) for over, columns in groups]


def _cell_classes(at: int, grid: Grid, unit: Unit, *, starts: bool) -> str | None:
    words = [
        "stick" if at == 0 and grid.labels else "",
        "r" if at >= grid.labels and unit != "text" else "",
        "starts" if starts and at else "",
    ]
    return " ".join(filter(None, words)) or None


def _table_bodies(grid: Grid) -> list[list[Html]]:
    """Return the rows in groups; with several labels, a group shares its first label."""
    if grid.labels < 2:
        return [[_row(row, grid, span=1) for row in grid.rows]]
    bodies = []
    for _, group in groupby(grid.rows, key=lambda row: row[0]):
        rows = list(group)
        spans = (len(rows), *[0] * (len(rows) - 1))
        bodies.append([_row(row, grid, span=span) for row, span in zip(rows, spans, strict=True)])
    return bodies


def _row(row: Sequence[Value], grid: Grid, span: int) -> Html:
    """Return a row; `span` is the number of rows of its first label, 0 below the first row."""
    starts = {columns[0][0] for over, columns in _heading_groups(grid) if over}
    cells = []
    for at, (value, column) in enumerate(zip(row, grid.columns, strict=True)):
        kind = _cell_classes(at, grid, column.unit, starts=at in starts)
        if at < grid.labels:
            if at or span:
                scope = "rowgroup" if span > 1 and not at else "row"
                rows = span if span > 1 and not at else None
                cells.append(
                    tag("th", _cell_content(value, column), scope=scope, rowspan=rows, class_=kind)
                )
            continue
        classes = " ".join(filter(None, (kind, colour(value, column.unit)))) or None
        name = heading(column, grid)
        whole = f"{column.over}: {name}" if column.over and name else column.over or name
        content = _cell_content(value, column)
        cells.append(tag("td", content, class_=classes, data_label=whole[:120] or None))
    return tag("tr", *cells)


def _cell_content(value: Value, column: Column) -> Html:
    if isinstance(value, Estimate):
        return number(value, column.unit)
    text = n.as_text(value, column.unit)
    return label(text, 300) if isinstance(value, str) else tag("span", text, class_="num")


# A heat map as a table: the colours repeat the numbers.


SHADE_STEPS = 6
_MANY_COLUMNS = 9


class Shades:
    """A scale from values to a few shades of one hue, readable in light and dark mode.

    `diverging` is True for points and for values below zero.
    """

    key = ("z", *(f"n{step}" for step in range(1, SHADE_STEPS + 1)))

    def __init__(self, values: Sequence[float], unit: Unit) -> None:
        self.unit = unit
        self.diverging = unit == "points" or any(v < 0 for v in values)
        self.low, self.high = min(values, default=0.0), max(values, default=0.0)

    def name(self, value: float) -> str:
        """Return the name of a value's shade, from `z` (lowest value) to `n6` (highest value)."""
        span = self.high - self.low
        return self.key[round(SHADE_STEPS * (value - self.low) / span) if span else SHADE_STEPS]


def shades_of(figure: HeatMap) -> Shades:
    """Return the scale of all finite cells of a heat map."""
    cells = [cell for row in figure.cells for cell in row if cell is not None]
    values = [c.value for c in cells if c.value is not None and math.isfinite(c.value)]
    return Shades(values, figure.unit)


def heat_table(figure: HeatMap) -> Html:
    """Return the key of the shades, and the table in a box that scrolls."""
    if not figure.rows or not figure.columns:
        return empty_note()
    shades = shades_of(figure)
    rows = [
        tag(
            "tr",
            tag("th", label(name, 80), scope="row", class_="stick"),
            *[_cell(cell, name, over, shades) for cell, over in zip(cells, columns, strict=True)],
        )
        for name, cells in zip(figure.rows, figure.cells, strict=True)
        for columns in [figure.columns]
    ]
    kind = "heat many" if len(figure.columns) >= _MANY_COLUMNS else "heat"
    table = tag("table", _heat_head(figure), tag("tbody", *rows), class_=kind)
    return Html(_shade_key(shades) + scroll(table, figure.title[:200]))


def _heat_head(figure: HeatMap) -> Html:
    return tag(
        "thead",
        tag(
            "tr",
            tag("th", label(f"{figure.down} ↓", 80), scope="col", rowspan=2, class_="stick"),
            tag(
                "th",
                label(f"{figure.across} →", 80),
                scope="colgroup",
                colspan=len(figure.columns),
                class_="over",
            ),
        ),
        tag("tr", *[tag("th", label(name, 60), scope="col") for name in figure.columns]),
    )


def _cell(cell: Estimate | None, down: str, across: str, shades: Shades) -> Html:
    if cell is None:
        return tag("td", class_="void", data_label=across[:60])
    where = f"{down} → {across}"
    if cell.value is None or not math.isfinite(cell.value):
        why = f"{where}: {reason(cell.status)}\n{provenance(cell)}"
        return tag("td", tag("abbr", n.NO_VALUE, class_="none"), class_="void", title=why,
                   data_label=across[:60])  # fmt: skip
    text = n.shown(cell, shades.unit)
    p = f", p {n.p_value(cell.p_value)}" if cell.p_value is not None else ""
    clear = " clear" if shades.diverging and excludes_zero(cell) else ""
    about = f"{where}: {text.text}{p}\n{provenance(cell)}"
    scant = " scant" if few(cell) else ""
    kind = f"h-{shades.name(cell.value)}{clear}{scant}"
    return tag("td", text.value, class_=kind, title=about, data_label=across[:60])


def _shade_key(shades: Shades) -> Html:
    """Return the shades with the ends of their scale."""
    low, high = (n.as_text(value, shades.unit) for value in (shades.low, shades.high))
    swatches = [tag("span", class_=f"h-{name}") for name in shades.key]
    ramp = tag("span", *swatches, class_="ramp", aria_hidden="true")
    parts = [tag("span", f"{low} ", ramp, f" {high}", class_="scale")]
    clear = tag("b", "bold") + Html(": its interval excludes zero") if shades.diverging else ""
    parts += [tag("span", Html(clear))] if clear else []
    return tag("p", *parts, class_="key")


# The headline numbers, in large print.


def head_numbers(figure: Headline) -> Html:
    """Return the headline numbers with interval and explanation, and the signature at the end."""
    numbers = tag("dl", *map(_head_number, figure.numbers), class_="numbers")
    if not figure.signature:
        return numbers
    signature = tag("p", tag("code", label(figure.signature, 1_000)), class_="signature")
    return Html(numbers + signature)


def _head_number(head: HeadNumber) -> Html:
    unit = " %" if head.unit == "percent" else ""
    value = tag("span", n.NO_VALUE, class_="none")
    if head.estimate is not None:
        value = number(head.estimate, head.unit, unit)
    return tag(
        "div",
        tag("dt", head.label),
        tag("dd", value),
        tag("dd", label(head.about, 200), class_="small muted"),
    )
