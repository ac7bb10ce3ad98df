"""Conversion of figures into tables: long (a row per number or text) or wide (a row per row)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from falter.records import numbers as n
from falter.records.figures import (
    VERDICT_WORDS,
    Bars,
    Breakdown,
    Column,
    Curves,
    Examples,
    Figure,
    Forest,
    Grid,
    Headline,
    HeatMap,
    Segment,
    Statement,
    Strips,
    Unit,
    Value,
)
from falter.records.types import Estimate

# Every figure as tables of its numbers, for formats without pictures.


def grids(figure: Figure) -> tuple[Grid, ...]:
    """Return tables with all numbers of a figure; empty for statements and examples."""
    if isinstance(figure, Grid):
        return (figure,)
    if isinstance(figure, Strips):
        return _strip_tables(figure)
    make = _TABLE_OF_KIND.get(type(figure))
    return () if make is None else (make(figure),)


def doses(figure: Curves) -> tuple[float, ...]:
    """Return the different doses of all curves, in ascending order."""
    return tuple(sorted({x for curve in figure.curves for x, _ in curve.points}))


def split_columns(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Return the column numbers in parts whose sizes fit `room`, at least one column each."""
    parts: list[list[int]] = [[]]
    used = 0
    for at, size in enumerate(sizes):
        if parts[-1] and used + size > room:
            parts.append([])
            used = 0
        parts[-1].append(at)
        used += size
    return parts


def quartiles(values: Iterable[float]) -> tuple[float, float, float] | None:
    """Return lower quartile, median and upper quartile, by linear interpolation.

    Values that are not finite are ignored. Return None without any value.
    """
    ranked = sorted(v for v in values if math.isfinite(v))
    if not ranked:
        return None

    def at(share: float) -> float:
        place = share * (len(ranked) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ranked) - 1)
        return ranked[below] + (place - below) * (ranked[above] - ranked[below])

    return at(0.25), at(0.5), at(0.75)


def _head_numbers(figure: Headline) -> Grid:
    """Return a table with a column for each number, because the units differ."""
    columns = [
        Column(name=number.label, unit=number.unit, about=number.about) for number in figure.numbers
    ]
    return _grid(figure, columns, [tuple(number.estimate for number in figure.numbers)], labels=0)


def _forest_table(figure: Forest) -> Grid:
    """Return a table with label, everyday name, estimate, the plot's columns, and an example.

    Everyday name and example have a column only if some row has them.
    """
    everyday = any(row.everyday for row in figure.rows)
    changes = any(row.change for row in figure.rows)
    columns = [
        Column(name=figure.of.capitalize()),
        *([Column(name="In words")] if everyday else []),
        Column(name=figure.measured.capitalize(), unit=figure.unit),
        *figure.columns,
        *([Column(name="For example")] if changes else []),
    ]
    rows: list[tuple[Value, ...]] = [
        (
            row.label,
            *([row.everyday or None] if everyday else []),
            row.estimate,
            *(row.cells or [None] * len(figure.columns)),
            *([word_diff(row.change) or None] if changes else []),
        )
        for row in figure.rows
    ]
    return _grid(figure, columns, rows)


def word_diff(segments: Sequence[Segment]) -> str:
    """Return the change as a word diff, such as `My [-password-]{+psasword+} is lost`."""
    parts = []
    for segment in segments:
        if segment.kind == "same":
            parts.append(segment.after)
            continue
        parts.append(f"[-{segment.before}-]" if segment.before else "")
        parts.append(f"{{+{segment.after}+}}" if segment.after else "")
    return "".join(parts)


def _heat_map_table(figure: HeatMap) -> Grid:
    """Return a table with a row per cell, which leaves room for interval and p-value."""
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


def _curve_table(figure: Curves) -> Grid:
    """Return a table with a row per curve and a column per dose.

    A chart with a true scale, such as a scatter plot, has a row per point.
    """
    rows: list[tuple[Value, ...]] = []
    if figure.true_scale:
        rows += [(c.label, f"{x:.3g}", estimate) for c in figure.curves for x, estimate in c.points]
        names = Column(name=""), Column(name=figure.across)
        return _grid(figure, (*names, Column(name=figure.down, unit=figure.unit)), rows)
    every = doses(figure)
    faceted = any(curve.facet for curve in figure.curves)
    columns = [Column(name="")] * (2 if faceted else 1)
    columns += [Column(name=f"{x:g}", unit=figure.unit, over=figure.across) for x in every]
    for curve in figure.curves:
        points = dict(curve.points)
        label = (curve.facet, curve.label) if faceted else (curve.label,)
        rows.append((*label, *(points.get(x) for x in every)))
    return _grid(figure, columns, rows, labels=2 if faceted else 1)


def _bar_table(figure: Bars) -> Grid:
    columns = [
        Column(name=""),
        *(Column(name=part, unit=figure.unit, over=figure.across) for part in figure.parts),
        Column(name=figure.share, unit="percent"),
    ]
    rows = [(bar.label, *bar.parts, bar.share) for bar in figure.bars]
    return _grid(figure, columns, rows)


def _breakdown_table(figure: Breakdown) -> Grid:
    """Return a table with the whole, its parts under one heading, and the figure's columns."""
    columns = [
        Column(name=figure.of.capitalize()),
        Column(name=figure.whole.capitalize(), unit=figure.unit),
        *(Column(name=part, unit=figure.unit, over="of which") for part in figure.parts),
        *figure.columns,
    ]
    rows: list[tuple[Value, ...]] = [
        (row.label, row.whole, *row.parts, *(row.cells or [None] * len(figure.columns)))
        for row in figure.rows
    ]
    return _grid(figure, columns, rows)


_TABLE_OF_KIND: Mapping[type, Callable[[Any], Grid]] = {
    Headline: _head_numbers,
    Forest: _forest_table,
    HeatMap: _heat_map_table,
    Curves: _curve_table,
    Bars: _bar_table,
    Breakdown: _breakdown_table,
}


def _strip_tables(figure: Strips) -> tuple[Grid, ...]:
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
    single = (Column(name=""), Column(name=""), Column(name="of"), Column(name="value", unit=unit))
    return (
        _grid(figure, columns, summary, labels=2),
        _grid(figure, single, singles, labels=3),
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


COLUMNS = (
    "figure", "title", "section", "row", "column", "x", "unit", "text",
    "value", "low", "high", "own_low", "own_high", "level", "p_value", "status", "items",
    "conditions", "excluded", "clusters", "design_effect", "model", "task", "recipe", "measure",
    "method", "estimand", "seed",
    "signature",
)  # fmt: skip
_ESTIMATE_KEYS = (
    "value", "low", "high", "level", "p_value", "status", "items", "conditions", "excluded",
    "clusters", "design_effect", "measure", "method", "estimand", "seed", "signature",
)  # fmt: skip
_GROUP_KEYS = ("model", "task", "recipe")

Row = dict[str, Any]


def figure_rows(figure: Figure) -> list[Row]:
    """Return a row for each number or text of a figure, with the keys `COLUMNS`.

    Numbers have full precision, and fractions stay fractions. A cell that is None has no row.
    """
    top = {"figure": figure.name, "title": figure.title, "section": figure.section}
    return [dict.fromkeys(COLUMNS) | top | row for row in _rows_of(figure)]


def figure_table(figure: Figure) -> list[Row]:
    """Return the rows of a figure's last table, with plain names: `recipe`, `drop`, `p_holm`.

    An estimate fills several columns: `drop`, `drop_low`, `drop_high`, `drop_status` and
    `drop_items`. The rows of a forest plot also have their `kind` (member, group or total), and
    rows without an estimate are left out.
    """
    rows: list[Row] = []
    for grid in grids(figure)[-1:]:
        names = _plain_names(grid)
        for values in grid.rows:
            row: Row = {}
            for name, value in zip(names, values, strict=True):
                if isinstance(value, Estimate):
                    row |= {
                        name: value.value,
                        f"{name}_low": value.low,
                        f"{name}_high": value.high,
                        f"{name}_status": value.status,
                        f"{name}_items": value.items,
                    }
                else:
                    row[name] = value
            rows.append(row)
    if isinstance(figure, Forest):
        return [row | {"kind": line.kind} for row, line in zip(rows, figure.rows, strict=True)
                if line.estimate is not None]  # fmt: skip
    return rows


def nested_rows(grid: Grid) -> list[Row]:
    """Return a mapping for each row of a table; estimates stay `Estimate` objects."""
    names = _plain_names(grid)
    return [dict(zip(names, values, strict=True)) for values in grid.rows]


def _plain_names(grid: Grid) -> list[str]:
    """Return unique column names made from the headings.

    An empty or repeated name gets the column's number. Names of the columns that an estimate fills,
    such as `drop_low`, count as taken.
    """
    names: list[str] = []
    taken: set[str] = set()
    for place, column in enumerate(grid.columns, start=1):
        words = re.sub(r", (%|points)", "", f"{column.over} {column.name}".strip())
        name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_") or f"column_{place}"
        free, number = name, place
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        taken |= {free, *(f"{free}_{end}" for end in ("low", "high", "status", "items"))}
        names.append(free)
    return names


def _rows_of(figure: Figure) -> Iterator[Row]:
    if isinstance(figure, Statement):
        for place, text in enumerate(figure.text, start=1):
            yield _cell_row(str(place), figure.kind, "text", text)
    elif isinstance(figure, Headline):
        for number in figure.numbers:
            if number.estimate is not None:
                yield _cell_row(number.label, number.about, number.unit, number.estimate)
    elif isinstance(figure, Forest):
        yield from _forest_rows(figure)
    elif isinstance(figure, Grid):
        yield from _grid_rows(figure)
    elif isinstance(figure, HeatMap):
        for down, cells in zip(figure.rows, figure.cells, strict=True):
            for across, cell in zip(figure.columns, cells, strict=True):
                if cell is not None:
                    yield _cell_row(down, across, figure.unit, cell)
    elif isinstance(figure, Curves):
        for curve in figure.curves:
            for x, estimate in curve.points:
                yield _cell_row(curve.label, curve.facet, figure.unit, estimate) | {"x": x}
    elif isinstance(figure, Bars):
        for bar in figure.bars:
            for name, part in zip(figure.parts, bar.parts, strict=True):
                if part is not None:
                    yield _cell_row(bar.label, name, figure.unit, part)
            yield _cell_row(bar.label, figure.share, "percent", bar.share)
    elif isinstance(figure, Breakdown):
        yield from _breakdown_rows(figure)
    elif isinstance(figure, Strips):
        for strip in figure.strips:
            for name, value in strip.values:
                yield _cell_row(strip.label, strip.kind, figure.unit, value) | {"text": name}
    else:
        yield from _example_rows(figure)


def _forest_rows(figure: Forest) -> Iterator[Row]:
    """Yield the rows of a forest plot; the verdict is the text of the estimate's row."""
    for row in figure.rows:
        if row.everyday:
            yield _cell_row(row.label, "in words", "text", row.everyday)
        if row.change:
            yield _cell_row(row.label, "for example", "text", word_diff(row.change))
        if row.estimate is not None:
            estimate = _cell_row(row.label, figure.measured, figure.unit, row.estimate)
            estimate["text"] = row.verdict and VERDICT_WORDS[row.verdict]
            yield estimate | dict(zip(("own_low", "own_high"), row.own, strict=True))
        for column, value in zip(figure.columns, row.cells, strict=False):
            if value is not None:
                yield _cell_row(row.label, column.name, column.unit, value)


def _breakdown_rows(figure: Breakdown) -> Iterator[Row]:
    """Yield the rows of a breakdown: whole, parts, cells, and lines of text."""
    for row in figure.rows:
        yield _cell_row(row.label, figure.whole, figure.unit, row.whole)
        for name, part in zip(figure.parts, row.parts, strict=True):
            yield _cell_row(row.label, name, figure.unit, part)
        for column, value in zip(figure.columns, row.cells, strict=False):
            if value is not None:
                yield _cell_row(row.label, column.name, column.unit, value)
        for place, words in enumerate(row.lines, start=1):
            yield _cell_row(row.label, f"line {place}", "text", words)


def _grid_rows(grid: Grid) -> Iterator[Row]:
    """Yield the rows of a table; a row without values is kept with its label."""
    for place, row in enumerate(grid.rows, start=1):
        pairs = list(zip(grid.columns, row, strict=True))
        label = " · ".join(filter(None, (n.as_text(v, c.unit) for c, v in pairs[: grid.labels])))
        label = label or str(place)
        cells = [
            _cell_row(label, f"{c.over}: {c.name}" if c.over else c.name, c.unit, value)
            for at, (c, value) in enumerate(pairs)
            if value is not None and (at >= grid.labels or isinstance(value, Estimate))
        ]
        yield from cells or [{"row": label}]


def _example_rows(figure: Examples) -> Iterator[Row]:
    for example in figure.examples:
        label = f"{example.recipe} · {example.item}"
        yield _cell_row(label, "expected", "text", example.expected)
        for name, side, prompt in example.sides:
            yield _cell_row(label, f"prompt as {name}", "text", prompt)
            yield _cell_row(label, f"answer as {name}", "text", side.answer)
            yield _cell_row(label, f"outcome as {name}", "text", side.word)
            for what, text in (("read", side.read), ("tier", side.tier), ("second", side.second)):
                if text:
                    yield _cell_row(label, f"{what} as {name}", "text", text)


def _cell_row(row: str, column: str, unit: Unit, value: Value) -> Row:
    place: Row = {"row": row, "column": column, "unit": unit}
    if isinstance(value, str):
        return place | {"text": value}
    if not isinstance(value, Estimate):
        return place | {"value": value}
    place |= {name: getattr(value, name) for name in _ESTIMATE_KEYS}
    return place | {name: value.group.get(name) for name in _GROUP_KEYS}
