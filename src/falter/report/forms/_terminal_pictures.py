"""Pictures as tables for a terminal: numbers, and characters that stand for lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence

from falter.core.records import Estimate
from falter.figures import (
    Bars,
    Breakdown,
    BreakdownRow,
    Column,
    Curves,
    Figure,
    Grid,
    HeatMap,
    Value,
)
from falter.figures import numbers as n
from falter.report._tables import doses, grids
from falter.report._words import excludes_zero
from falter.report.drawing._axis import axis_of, ends
from falter.report.drawing._bars import size
from falter.report.drawing._breakdown import length, reach
from falter.report.forms._printer import Printer

__all__ = ["as_grid"]

_SPARKS = "▁▂▃▄▅▆▇█"
_BLOCKS = "█▓▒░"
_BAR = 28


def as_grid(figure: Figure, out: Printer) -> Grid:
    """The one table that a terminal shows of a figure."""
    if isinstance(figure, HeatMap):
        return _heat(figure)
    if isinstance(figure, Curves):
        return _curves(figure, out.plain("▁") == "▁")
    if isinstance(figure, Bars):
        return _bars(figure, out)
    if isinstance(figure, Breakdown):
        return _breakdown(figure, out)
    return grids(figure)[0]


def _heat(figure: HeatMap) -> Grid:
    """The bare numbers, with a dot if the interval excludes zero."""
    columns = [Column(name=f"{figure.down} | {figure.across}")]
    columns += [Column(name=name, unit=figure.unit) for name in figure.columns]
    rows = [
        (name, *(_value(cell, figure) for cell in cells))
        for name, cells in zip(figure.rows, figure.cells, strict=True)
    ]
    return _grid(figure, columns, rows)


def _value(cell: Estimate | None, figure: HeatMap) -> str | None:
    if cell is None:
        return None
    mark = " ●" if figure.unit == "points" and excludes_zero(cell) else ""
    return f"{n.shown(cell, figure.unit).value}{mark}"


def _curves(figure: Curves, sparks: bool) -> Grid:
    """A small line for each curve, then its value at every dose."""
    every = doses(figure)
    axis = axis_of(ends(e for c in figure.curves for _, e in c.points), figure.unit)
    columns = [Column(name="")]
    columns += [Column(name=figure.down)] if sparks else []
    columns += [Column(name=f"{x:g}", unit=figure.unit) for x in every]
    rows: list[tuple[Value, ...]] = []
    for curve in figure.curves:
        values_by_dose = {x: e.value for x, e in curve.points}
        values = [values_by_dose.get(x) for x in every]
        label = " · ".join(filter(None, (curve.facet, curve.label)))
        drawn = "".join(" " if v is None else _spark(axis.at(v)) for v in values)
        cells = [
            (n.NONE if v is None else n.as_text(v, figure.unit)) if x in values_by_dose else None
            for x, v in zip(every, values, strict=True)
        ]
        rows.append((label, *([drawn] if sparks else []), *cells))
    return _grid(figure, columns, rows if every else [])


def _spark(at: float) -> str:
    return _SPARKS[min(len(_SPARKS) - 1, math.floor(at * len(_SPARKS)))]


def _bars(figure: Bars, out: Printer) -> Grid:
    """Each bar drawn in characters, the share, and the sizes of its parts."""
    draw = out.plain(_BLOCKS) == _BLOCKS and len(figure.parts) <= len(_BLOCKS)
    most = max((sum(map(size, bar.parts)) for bar in figure.bars), default=0.0) or 1.0
    names = [
        f"{_BLOCKS[at]}\xa0{name}" if draw else name for at, name in enumerate(figure.parts)
    ]  # fmt: skip
    columns = [Column(name=""), *([Column(name=figure.across)] if draw else [])]
    columns += [Column(name=figure.share, unit="percent")]
    columns += [Column(name=name, unit=figure.unit) for name in names]
    rows: list[tuple[Value, ...]] = []
    for bar in figure.bars:
        cells = "".join(
            _BLOCKS[at] * round(_BAR * size(part) / most) for at, part in enumerate(bar.parts)
        ) if draw else ""  # fmt: skip
        sizes = [None if p is None else n.shown(p, figure.unit).text for p in bar.parts]
        rows.append((bar.label, *([cells] if draw else []), bar.share, *sizes))
    return _grid(figure, columns, rows)


def _breakdown(figure: Breakdown, out: Printer) -> Grid:
    """Each row drawn in characters around zero, the whole, and its parts."""
    draw = out.plain(_BLOCKS) == _BLOCKS and len(figure.parts) <= len(_BLOCKS)
    reaches = [reach(row) for row in figure.rows]
    below = max((low for low, _ in reaches), default=0.0)
    above = max((high for _, high in reaches), default=0.0)
    scale = _BAR / ((below + above) or 1.0)
    names = [
        f"{_BLOCKS[at]}\xa0{name}" if draw else name for at, name in enumerate(figure.parts)
    ]  # fmt: skip
    columns = [Column(name=""), *([Column(name="parts")] if draw else [])]
    columns += [Column(name=figure.whole, unit=figure.unit)]
    columns += [Column(name=name, unit=figure.unit) for name in names]
    rows: list[tuple[Value, ...]] = []
    for row in figure.rows:
        cells = [_signed_blocks(row, scale, round(scale * below))] if draw else []
        rows.append((row.label, *cells, row.whole, *row.parts))
    return _grid(figure, columns, rows)


def _signed_blocks(row: BreakdownRow, scale: float, left: int) -> str:
    """Parts below zero to the left of the line, the others to its right."""
    sizes = [(block, length(part)) for block, part in zip(_BLOCKS, row.parts, strict=False)]
    minus = "".join(block * round(-scale * v) for block, v in reversed(sizes) if v < 0)
    plus = "".join(block * round(scale * v) for block, v in sizes if v > 0)
    return f"{minus[-left:] if left else '':\xa0>{left}}│{plus}"


def _grid(figure: Figure, columns: Sequence[Column], rows: Sequence[tuple[Value, ...]]) -> Grid:
    return Grid(name=figure.name, title=figure.title, columns=tuple(columns), rows=tuple(rows))
