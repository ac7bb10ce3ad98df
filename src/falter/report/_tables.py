"""Every figure as tables of its numbers, for forms without pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from falter.figures import (
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
    Value,
)

__all__ = ["TOGETHER", "doses", "grids", "quartiles", "word_diff"]

TOGETHER = "the interval that holds for all rows at once"


def grids(figure: Figure) -> tuple[Grid, ...]:
    """Tables with all numbers of a figure; a grid is its own table, texts have none."""
    if isinstance(figure, Grid):
        return (figure,)
    if isinstance(figure, Statement | Examples):
        return ()
    if isinstance(figure, Headline):
        return (_head_numbers(figure),)
    if isinstance(figure, Forest):
        return (_forest(figure),)
    if isinstance(figure, HeatMap):
        return (_pairs(figure),)
    if isinstance(figure, Curves):
        return (_doses(figure),)
    if isinstance(figure, Bars):
        return (_parts(figure),)
    if isinstance(figure, Breakdown):
        return (_breakdown(figure),)
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


def _head_numbers(figure: Headline) -> Grid:
    """One column a number, because each has a unit of its own."""
    columns = [
        Column(name=number.label, unit=number.unit, about=number.about) for number in figure.numbers
    ]
    return _grid(figure, columns, [tuple(number.estimate for number in figure.numbers)], labels=0)


def _forest(figure: Forest) -> Grid:
    """Label, estimate, the interval of all rows together, and the columns of the plot."""
    families = figure.has_families
    everyday = any(row.everyday for row in figure.rows)
    changes = any(row.change for row in figure.rows)
    columns = [
        Column(name=figure.of.capitalize()),
        *([Column(name="In words")] if everyday else []),
        Column(name=figure.measured.capitalize(), unit=figure.unit),
        *([Column(name="All together", unit=figure.unit, about=TOGETHER)] if families else []),
        *figure.columns,
        *([Column(name="For example")] if changes else []),
    ]
    rows: list[tuple[Value, ...]] = [
        (
            row.label,
            *([row.everyday or None] if everyday else []),
            row.estimate,
            *([row.together] if families else []),
            *(row.cells or [None] * len(figure.columns)),
            *([word_diff(row.change) or None] if changes else []),
        )
        for row in figure.rows
    ]
    return _grid(figure, columns, rows)


def word_diff(segments: Sequence[Segment]) -> str:
    """`My [-password-]{+psasword+} is lost`."""
    parts = []
    for segment in segments:
        if segment.kind == "same":
            parts.append(segment.after)
            continue
        parts.append(f"[-{segment.before}-]" if segment.before else "")
        parts.append(f"{{+{segment.after}+}}" if segment.after else "")
    return "".join(parts)


def _pairs(figure: HeatMap) -> Grid:
    """One row a cell, which leaves room for interval and p."""
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
        points = dict(curve.points)
        label = (curve.facet, curve.label) if faceted else (curve.label,)
        rows.append((*label, *(points.get(x) for x in every)))
    return _grid(figure, columns, rows, labels=len(names))


def _parts(figure: Bars) -> Grid:
    columns = [
        Column(name=""),
        *(Column(name=part, unit=figure.unit, over=figure.across) for part in figure.parts),
        Column(name=figure.share, unit="percent"),
    ]
    rows = [(bar.label, *bar.parts, bar.share) for bar in figure.bars]
    return _grid(figure, columns, rows)


def _breakdown(figure: Breakdown) -> Grid:
    """The whole, its parts under one heading, and the columns of the figure."""
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
