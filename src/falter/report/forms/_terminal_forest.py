"""A forest plot in a terminal: a table that fits, with a small picture of every interval."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.records import Estimate
from falter.figures import Forest, ForestRow
from falter.figures import numbers as n
from falter.report._escape import line
from falter.report.drawing import Scale
from falter.report.forms._flow import GAP, Column, fitting, flow, padded
from falter.report.forms._printer import Printer, Row

__all__ = ["forest_rows"]

INDENT = "  "
LEAST, MOST = 24, 40
STRIP, WIDE_STRIP, WIDE = 13, 21, 100
_COLOURS = {"degraded": "bold red", "improved": "bold blue"}


def forest_rows(figure: Forest, scale: Scale, out: Printer) -> list[Row]:
    """One line a row; on a narrow screen the least important columns are left out first."""
    rows = figure.rows
    labels = [(INDENT if row.kind == "member" else "") + out.plain(_name(row)) for row in rows]
    numbers = [n.shown(row.estimate, figure.unit) if row.estimate else None for row in rows]
    levels = {row.estimate.level for row in rows if row.estimate}
    size = STRIP if out.width < WIDE else WIDE_STRIP
    more_columns = [
        Column(
            head=column.name,
            cells=[n.as_text(row.cells[at], column.unit) if row.cells else "" for row in rows],
            rank=(2, 7)[at] if at < 2 else 6,
        )
        for at, column in enumerate(figure.columns)
    ]
    columns = [
        Column(head=figure.measured, cells=[text.value if text else "" for text in numbers]),
        Column(
            head=f"{n.level(max(levels))} interval" if levels else "interval",
            cells=[text.interval if text else "" for text in numbers],
            rank=1,
        ),
        *more_columns[:1],
        Column(
            head=_axis(scale, size, figure),
            cells=[strip(row, scale, size) for row in rows],
            rank=3,
            left=True,
        ),
        *more_columns[1:],
    ]
    return _table(figure.of, labels, columns, out.width, [_styles(row) for row in rows])


def _name(row: ForestRow) -> str:
    """What people call it, and its own name where that is another."""
    name = line(row.label, 100)
    return f"{line(row.everyday, 60)} ({name})" if row.everyday not in ("", name) else name


def strip(row: ForestRow, scale: Scale, size: int) -> str:
    """A small picture: `│` is zero, `━` the interval, `●` the estimate; `◆` for averages.

    `─` is the interval that holds for all rows at once. A hollow `○` or `◇` means undecided, `◎`
    the same within the margin.
    """
    estimate = row.estimate
    if estimate is None:
        return ""

    def place(value: float) -> int:
        return round(scale.at(value) * (size - 1))

    cells = [" "] * size
    zero = place(0.0)
    for interval, drawn in ((row.together, "─"), (estimate, "━")):
        if interval is None or interval.value is None:
            continue
        if interval.low is not None and interval.high is not None:
            first, last = place(interval.low), place(interval.high)
            cells[first : last + 1] = drawn * (last + 1 - first)
            cells[0] = "◂" if scale.beyond(interval.low) else cells[0]
            cells[-1] = "▸" if scale.beyond(interval.high) else cells[-1]
    cells[zero] = {"─": "┼", "━": "┿"}.get(cells[zero], "│")
    if estimate.value is not None:
        full, hollow = ("●", "○") if row.kind == "member" else ("◆", "◇")
        mark = full if row.verdict in _COLOURS else hollow
        cells[place(estimate.value)] = "◎" if row.verdict == "equivalent" else mark
    return "".join(cells)


def _axis(scale: Scale, size: int, figure: Forest) -> str:
    """The ends of the picture."""
    low, high = n.as_text(scale.low, figure.unit), n.as_text(scale.high, figure.unit)
    return low + " " * max(1, size - len(low) - len(high)) + high


def _styles(row: ForestRow) -> tuple[str, str]:
    """The styles of a line and of its estimate; the dots say the same as the colours."""
    base = "" if row.kind == "member" else "bold"
    estimate: Estimate | None = row.estimate
    if estimate is None or estimate.value is None:
        return base, base
    return base, _COLOURS.get(row.verdict or "", base)


def _table(
    head: str,
    labels: Sequence[str],
    columns: Sequence[Column],
    width: int,
    styles: Sequence[tuple[str, str]],
) -> list[Row]:
    natural = min(MOST, Column(head=head, cells=labels).width)
    fitting_columns, room = fitting(columns, width, min(LEAST, natural))
    room = max(1, min(room, natural))
    top: Row = [(padded(head, room, left=True), "dim")]
    top += [(" " * GAP + padded(c.head, c.width, left=c.left), "dim") for c in fitting_columns]
    rows = [top]
    for number, (text, (style, accent)) in enumerate(zip(labels, styles, strict=True)):
        bare = text.removeprefix(INDENT)
        first, *rest = flow(bare, room, text[: len(text) - len(bare)])
        row: Row = [(padded(first, room, left=True), style)]
        for at, column in enumerate(fitting_columns):
            cell = padded(column.cells[number], column.width, left=column.left)
            row.append((" " * GAP + cell, accent if at == 0 else style))
        rows.append(row)
        rows += [[(part, style)] for part in rest]
    return rows
