"""Every figure as tables of its numbers, and as plain rows: the common ground of all forms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from falter.core.records import Estimate
from falter.figures import (
    Bars,
    Column,
    Curves,
    Figure,
    Grid,
    HeatMap,
    Strips,
    Unit,
    Value,
)
from falter.report import _numbers as n

__all__ = ["COLUMNS", "doses", "figure_table", "grids", "quartiles"]

COLUMNS = (
    "figure", "title", "row", "column", "x", "unit", "text",
    "value", "low", "high", "level", "p_value", "status", "items", "conditions", "excluded",
    "measure", "method", "estimand", "seed", "signature",
)  # fmt: skip


def figure_table(figure: Figure) -> list[dict[str, Any]]:
    """The rows of a figure: one for each number or word that it shows, under `COLUMNS`.

    Numbers are in full precision and fractions stay fractions. What does not apply has no row.
    """
    top = {"figure": figure.name, "title": figure.title}
    return [dict.fromkeys(COLUMNS) | top | row for row in _rows(figure)]


def grids(figure: Figure) -> tuple[Grid, ...]:
    """The tables that hold all numbers of a figure; a grid is its own."""
    if isinstance(figure, Grid):
        return (figure,)
    if isinstance(figure, HeatMap):
        return (_pairs(figure),)
    if isinstance(figure, Curves):
        return (_doses(figure),)
    if isinstance(figure, Bars):
        return (_parts(figure),)
    return _spreads(figure)


def doses(figure: Curves) -> tuple[float, ...]:
    """All doses of all curves, in order."""
    return tuple(sorted({x for curve in figure.curves for x, _ in curve.points}))


def quartiles(values: Iterable[float]) -> tuple[float, float, float] | None:
    """Lower quartile, median and upper quartile, by linear interpolation."""
    ranked = sorted(v for v in values if math.isfinite(v))
    if not ranked:
        return None

    def at(share: float) -> float:
        place = share * (len(ranked) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ranked) - 1)
        return ranked[below] + (place - below) * (ranked[above] - ranked[below])

    return at(0.25), at(0.5), at(0.75)


def _pairs(figure: HeatMap) -> Grid:
    """One row a cell, so that interval and p have room."""
    rows = [
        (down, across, cell, None if cell is None else cell.p_value, cell and cell.items)
        for down, cells in zip(figure.rows, figure.cells, strict=True)
        for across, cell in zip(figure.columns, cells, strict=True)
        if cell is not None
    ]
    columns = (
        Column(name=figure.down),
        Column(name=figure.across),
        Column(name="value", unit=figure.unit),
        Column(name="p", unit="p"),
        Column(name="items", unit="count"),
    )
    return _grid(figure, columns, rows, labels=2)


def _doses(figure: Curves) -> Grid:
    """One row a curve, one column a dose."""
    every = doses(figure)
    faceted = any(curve.facet for curve in figure.curves)
    names = ("", "") if faceted else ("",)
    columns = [Column(name=name) for name in names]
    columns += [Column(name=f"{x:g}", unit=figure.unit, over=figure.across) for x in every]
    rows: list[tuple[Value, ...]] = []
    for curve in figure.curves:
        found = dict(curve.points)
        label = (curve.facet, curve.label) if faceted else (curve.label,)
        rows.append((*label, *(found.get(x) for x in every)))
    return _grid(figure, columns, rows, labels=len(names))


def _parts(figure: Bars) -> Grid:
    columns = [
        Column(name=""),
        *(Column(name=part, unit=figure.unit, over=figure.across) for part in figure.parts),
        Column(name=figure.share, unit="percent"),
    ]
    rows = [(bar.label, *bar.parts, bar.share) for bar in figure.bars]
    return _grid(figure, columns, rows)


def _spreads(figure: Strips) -> tuple[Grid, ...]:
    unit = figure.unit
    columns = [
        Column(name=""),
        Column(name=""),
        Column(name="values", unit="count"),
        *(Column(name=name, unit=unit)
          for name in ("least", "lower quartile", "median", "upper quartile", "most")),
    ]  # fmt: skip
    summary: list[tuple[Value, ...]] = []
    singles: list[tuple[Value, ...]] = []
    for strip in figure.strips:
        values = [value for _, value in strip.values if math.isfinite(value)]
        box = quartiles(values) or (None, None, None)
        ends = (min(values), max(values)) if values else (None, None)
        summary.append((strip.label, strip.kind, len(values), ends[0], *box, ends[1]))
        singles += [(strip.label, strip.kind, name, value) for name, value in strip.values]
    each = (Column(name=""), Column(name=""), Column(name="of"), Column(name="value", unit=unit))
    return (
        _grid(figure, columns, summary, labels=2),
        _grid(figure, each, singles, labels=3),
    )


def _grid(
    figure: Figure, columns: Sequence[Column], rows: Sequence[tuple[Value, ...]], labels: int = 1
) -> Grid:
    return Grid(
        name=figure.name,
        title=figure.title,
        columns=tuple(columns),
        rows=tuple(rows),
        labels=labels,
    )


def _rows(figure: Figure) -> Iterator[dict[str, Any]]:
    if isinstance(figure, Grid):
        yield from _grid_rows(figure)
    elif isinstance(figure, HeatMap):
        for down, cells in zip(figure.rows, figure.cells, strict=True):
            for across, cell in zip(figure.columns, cells, strict=True):
                if cell is not None:
                    yield _cell(down, across, figure.unit, cell)
    elif isinstance(figure, Curves):
        for curve in figure.curves:
            for x, estimate in curve.points:
                yield _cell(curve.label, curve.facet, figure.unit, estimate) | {"x": x}
    elif isinstance(figure, Bars):
        for bar in figure.bars:
            for name, part in zip(figure.parts, bar.parts, strict=True):
                if part is not None:
                    yield _cell(bar.label, name, figure.unit, part)
            yield _cell(bar.label, figure.share, "percent", bar.share)
    else:
        for strip in figure.strips:
            for name, value in strip.values:
                yield _cell(strip.label, strip.kind, figure.unit, value) | {"text": name}


def _grid_rows(grid: Grid) -> Iterator[dict[str, Any]]:
    """A row of a table that has only labels still has its own row."""
    for place, row in enumerate(grid.rows, start=1):
        pairs = list(zip(grid.columns, row, strict=True))
        label = " · ".join(filter(None, (n.told(v, c.unit) for c, v in pairs[: grid.labels])))
        label = label or str(place)
        found = [
            _cell(label, f"{c.over}: {c.name}" if c.over else c.name, c.unit, value)
            for at, (c, value) in enumerate(pairs)
            if value is not None and (at >= grid.labels or isinstance(value, Estimate))
        ]
        yield from found or [{"row": label}]


def _cell(row: str, column: str, unit: Unit, value: Value) -> dict[str, Any]:
    place = {"row": row, "column": column, "unit": unit}
    if isinstance(value, str):
        return place | {"text": value}
    if not isinstance(value, Estimate):
        return place | {"value": value}
    names = ("value", "low", "high", "level", "p_value", "status", "items", "conditions")
    more = ("excluded", "measure", "method", "estimand", "seed", "signature")
    return place | {name: getattr(value, name) for name in (*names, *more)}
