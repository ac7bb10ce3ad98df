"""Charts as separate SVG files with axes, names and numbers, for papers and slides."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from falter.records import numbers as n
from falter.records.figures import (
    Bars,
    Breakdown,
    Curve,
    Curves,
    Figure,
    Forest,
    ForestRow,
    HeatMap,
    Strips,
)
from falter.records.types import Estimate
from falter.report.drawing.axis import Across, Axis, Scale, axis_of, extents, scales_of, tick_texts
from falter.report.drawing.curves import facets
from falter.report.drawing.stacks import breakdown_axis, placed_parts, visible_length
from falter.report.drawing.tables import shades_of
from falter.report.escape import Html
from falter.report.markup import tag
from falter.report.style import LIGHT_SHADES
from falter.report.tables import doses, quartiles
from falter.report.words import excludes_zero, with_unit

Chart = Forest | Breakdown | Bars | Strips | Curves | HeatMap

LEFT, PLOT, NUMBERS_WIDTH = 250, 330, 260
"""Widths of the names, the drawing and the numbers, in SVG units."""
ROW_HEIGHT, HEAD_HEIGHT = 28, 56
_WIDTH = LEFT + PLOT + NUMBERS_WIDTH
_MAX_LABEL_CHARACTERS = 38
_VERDICT_COLOURS = {"degraded": "#b3261e", "improved": "#22754a", "equivalent": "#0a62a9"}
_GREY = "#55636f"
_PALETTE = ("#8a6d00", "#a3316f", "#6b5b4b", "#7a5ba8", "#16827c", "#66717d")
_PANE = 220
"""Height of one small chart of curves, in SVG units."""
_CELL = 84


def write_pictures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write every chart with data as an SVG file to the folder, and return the files.

    If two names are the same as file names, the second file's ends in `_2`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for figure in figures:
        if isinstance(figure, Chart) and not _is_empty(figure):
            stem = re.sub(r"[^A-Za-z0-9_-]+", "_", figure.name)[:80]
            ends = ("", *(f"_{number}" for number in range(2, len(figures) + 1)))
            path = next(p for end in ends if (p := folder / f"{stem}{end}.svg") not in files)
            path.write_text(picture(figure), "utf-8")
            files.append(path)
    return files


def _is_empty(figure: Chart) -> bool:
    if isinstance(figure, Strips):
        return not any(math.isfinite(v) for strip in figure.strips for _, v in strip.values)
    if isinstance(figure, Curves):
        return not doses(figure)
    return not (figure.bars if isinstance(figure, Bars) else figure.rows)


def picture(figure: Chart) -> Html:
    """Return the chart as an SVG document of fixed size on a white background."""
    draw: Mapping[type, Callable[[Any], Html]] = {
        Forest: _forest,
        Breakdown: _breakdown,
        Bars: _bars,
        Strips: _strips,
        Curves: _curves,
        HeatMap: _heat_map,
    }
    return draw[type(figure)](figure)


def _forest(figure: Forest) -> Html:
    scale = scales_of([figure])[figure.scale]
    ticks = [(scale.at(tick), n.as_text(tick, figure.unit)) for tick in scale.ticks]
    rows = [_forest_row(row, at, figure, scale) for at, row in enumerate(figure.rows)]
    head = [_head_text(with_unit(figure.measured, figure.unit))]
    return _chart_svg(figure.title, ticks, len(figure.rows), [*head, *rows], scale.at(0.0))


def _forest_row(row: ForestRow, at: int, figure: Forest, scale: Scale) -> Html:
    y = _y(at)
    colour = _VERDICT_COLOURS.get(row.verdict or "", _GREY)
    shapes = [_row_name(row.everyday or row.label, y)]
    estimate = row.estimate
    if estimate is not None and estimate.value is not None:
        shapes += _interval_line(estimate, y, scale, colour, 3)
        shapes.append(tag("circle", cx=_x(scale.at(estimate.value)), cy=y, r=5, fill=colour))
    if estimate is not None:
        shapes.append(_number_text(n.shown(estimate, figure.unit).text, at))
    return tag("g", *shapes)


def _interval_line(estimate: Estimate, y: int, scale: Scale, colour: str, width: int) -> list[Html]:
    if estimate.low is None or estimate.high is None:
        return []
    x1, x2 = _x(scale.at(estimate.low)), _x(scale.at(estimate.high))
    return [tag("line", x1=x1, x2=x2, y1=y, y2=y, stroke=colour, stroke_width=width)]


def _breakdown(figure: Breakdown) -> Html:
    axis = breakdown_axis(figure)
    rows = []
    for at, row in enumerate(figure.rows):
        shapes = [_row_name(row.everyday or row.label, _y(at))]
        shapes += [_stacked_part(axis, at, *part) for part in placed_parts(row)]
        if row.whole.value is not None:
            x, y = _x(axis.at(row.whole.value)), _y(at)
            shapes.append(tag("line", x1=x, x2=x, y1=y - 12, y2=y + 12, stroke="#1b1f24"))
        rows += [*shapes, _number_text(n.shown(row.whole, figure.unit).text, at)]
    return _stacked_rows(figure, axis, with_unit(figure.whole, figure.unit), len(figure.rows), rows)


def _bars(figure: Bars) -> Html:
    axis = axis_of(
        [sum(map(visible_length, bar.parts)) for bar in figure.bars], figure.unit, zero=True
    )
    rows = []
    for at, bar in enumerate(figure.bars):
        ends = list(accumulate(map(visible_length, bar.parts), initial=0.0))
        rows.append(_row_name(bar.label, _y(at)))
        rows += [_stacked_part(axis, at, place, *part) for place, part in enumerate(pairwise(ends))]
        rows.append(_number_text(n.shown(bar.share, "percent").text, at))
    return _stacked_rows(figure, axis, with_unit(figure.share, "percent"), len(figure.bars), rows)


def _stacked_rows(
    figure: Bars | Breakdown, axis: Axis, head: str, count: int, rows: Sequence[Html]
) -> Html:
    """Return rows of stacked parts, with the key to their colours below."""
    shapes = [_head_text(head), *rows, *_colour_key(figure.parts, count)]
    ticks = _ticks(axis, figure)
    return _chart_svg(figure.title, ticks, count, shapes, axis.at(0.0), key=True)


def _stacked_part(axis: Axis, row: int, place: int, start: float, end: float) -> Html:
    x, right, colour = (_x(axis.at(start)), _x(axis.at(end)), _PALETTE[place % len(_PALETTE)])
    return tag("rect", x=x, y=_y(row) - 8, width=right - x, height=16, fill=colour)


def _head_text(text: str) -> Html:
    return _text(LEFT + PLOT + 12, 20, text, weight="bold")


def _number_text(text: str, row: int) -> Html:
    return _text(LEFT + PLOT + 12, _y(row) + 4, text)


def _strips(figure: Strips) -> Html:
    """Return a row per strip: a dot per value, a box for the quartiles, a line for the median."""
    axis = axis_of([v for strip in figure.strips for _, v in strip.values], figure.unit)
    shapes = [_head_text("median")]
    for at, strip in enumerate(figure.strips):
        y = _y(at)
        values = [value for _, value in strip.values if math.isfinite(value)]
        shapes.append(_row_name(f"{strip.label}, {strip.kind}", y))
        if box := quartiles(values):
            low, middle, high = (_x(axis.at(value)) for value in box)
            shapes.append(tag("rect", x=low, y=y - 9, width=high - low, height=18, fill="#dfe4e9"))
            shapes.append(tag("line", x1=middle, x2=middle, y1=y - 9, y2=y + 9, stroke="#1b1f24"))
            shapes.append(_number_text(n.as_text(box[1], figure.unit), at))
        shapes += [
            tag("circle", cx=_x(axis.at(v)), cy=y, r=3, fill=_PALETTE[3], fill_opacity=0.6)
            for v in values
        ]
    return _chart_svg(figure.title, _ticks(axis, figure), len(figure.strips), shapes, None)


def _ticks(axis: Axis, figure: Bars | Breakdown | Strips) -> list[tuple[float, str]]:
    texts = tick_texts(axis, figure.unit)
    return [(axis.at(tick), text) for tick, text in zip(axis.ticks, texts, strict=True)]


def _curves(figure: Curves) -> Html:
    """Return a small chart per facet, one below the other, with one vertical scale."""
    axis = axis_of(extents(e for c in figure.curves for _, e in c.points), figure.unit)
    names = list(dict.fromkeys(curve.label for curve in figure.curves))
    charts, across = facets(figure), Across.of(figure)
    shapes: list[Html] = []
    for at, (name, curves) in enumerate(charts):
        top = HEAD_HEIGHT + at * (_PANE + HEAD_HEIGHT)
        title = f"{name}: " if name else ""
        shapes.append(_text(LEFT, top - 14, f"{title}{figure.down} by {figure.across}"))
        for tick, text in zip(axis.ticks, tick_texts(axis, figure.unit), strict=True):
            y = top + _PANE * (1 - axis.at(tick))
            shapes.append(tag("line", x1=LEFT, x2=LEFT + PLOT, y1=y, y2=y, stroke="#dfe4e9"))
            shapes.append(_text(LEFT - 8, y + 4, text, anchor="end", colour=_GREY))
        for dose in across.labels:
            x = _dose_position(dose, across)
            shapes.append(_text(x, top + _PANE + 18, f"{dose:g}", anchor="middle", colour=_GREY))
        for curve in curves:
            colour = _PALETTE[names.index(curve.label) % len(_PALETTE)]
            shapes += _curve(curve, axis, across, top, colour)
    for place, name in enumerate(names):
        y = HEAD_HEIGHT + 20 * place
        colour = _PALETTE[place % len(_PALETTE)]
        shapes.append(tag("rect", x=LEFT + PLOT + 24, y=y - 6, width=12, height=12, fill=colour))
        shapes.append(_text(LEFT + PLOT + 42, y + 4, name))
    height = max(HEAD_HEIGHT + len(charts) * (_PANE + HEAD_HEIGHT), HEAD_HEIGHT + 20 * len(names))
    return _svg(figure.title, shapes, _WIDTH, height)


def _curve(curve: Curve, axis: Axis, across: Across, top: float, colour: str) -> list[Html]:
    known = [
        (_dose_position(dose, across), e)
        for dose, e in sorted(curve.points, key=lambda point: point[0])
        if e.value is not None and math.isfinite(e.value)
    ]

    def y(value: float) -> float:
        return round(top + _PANE * (1 - axis.at(value)), 2)

    line = " ".join(f"{x},{y(e.value or 0.0)}" for x, e in known)
    shapes = [tag("polyline", points=line, fill="none", stroke=colour, stroke_width=2)]
    for x, e in known:
        if e.low is not None and e.high is not None:
            shapes.append(tag("line", x1=x, x2=x, y1=y(e.low), y2=y(e.high), stroke=colour))
        shapes.append(tag("circle", cx=x, cy=y(e.value or 0.0), r=4, fill=colour))
    return shapes


def _dose_position(dose: float, across: Across) -> float:
    return round(LEFT + PLOT * (0.05 + 0.9 * across.at(dose)), 2)


def _heat_map(figure: HeatMap) -> Html:
    """Return coloured cells with numbers; a number whose interval excludes zero is bold.

    Only a diverging scale has bold numbers.
    """
    shades = shades_of(figure)
    shapes = [_text(12, 20, f"{figure.down} (down) by {figure.across} (across)")]
    for across, name in enumerate(figure.columns):
        x = LEFT + _CELL * across + _CELL / 2
        shapes.append(_text(x, HEAD_HEIGHT - 14, _shortened_text(name, 12), anchor="middle"))
    for down, (name, cells) in enumerate(zip(figure.rows, figure.cells, strict=True)):
        shapes.append(_row_name(name, _y(down)))
        for across, cell in enumerate(cells):
            x, y = LEFT + _CELL * across, HEAD_HEIGHT + ROW_HEIGHT * down
            if cell is None or cell.value is None or not math.isfinite(cell.value):
                shapes.append(
                    _text(x + _CELL / 2, y + 18, n.NO_VALUE, anchor="middle", colour=_GREY)
                )
                continue
            fill, ink = LIGHT_SHADES[shades.name(cell.value)]
            shapes.append(tag("rect", x=x, y=y, width=_CELL - 2, height=ROW_HEIGHT - 2, fill=fill))
            weight = "bold" if shades.diverging and excludes_zero(cell) else None
            text = n.shown(cell, figure.unit).value
            shapes.append(
                _text(x + _CELL / 2, y + 18, text, anchor="middle", colour=ink, weight=weight)
            )
    width = LEFT + _CELL * len(figure.columns) + 12
    return _svg(figure.title, shapes, width, HEAD_HEIGHT + ROW_HEIGHT * len(figure.rows) + 8)


def _colour_key(parts: Sequence[str], rows: int) -> list[Html]:
    """Return the key to the colours of the parts, below the rows."""
    y, shapes = _y(rows), []
    for place, name in enumerate(parts):
        x = LEFT + place * 110
        shapes += [
            tag("rect", x=x, y=y - 6, width=12, height=12, fill=_PALETTE[place % len(_PALETTE)]),
            _text(x + 18, y + 4, name),
        ]
    return shapes


def _chart_svg(
    title: str,
    ticks: Sequence[tuple[float, str]],
    rows: int,
    shapes: Sequence[Html],
    zero: float | None,
    *,
    key: bool = False,
) -> Html:
    height = HEAD_HEIGHT + ROW_HEIGHT * (rows + key) + 8
    bottom = HEAD_HEIGHT + ROW_HEIGHT * rows
    background: list[Html] = []
    for at, text in ticks:
        x = _x(at)
        background.append(tag("line", x1=x, x2=x, y1=HEAD_HEIGHT - 8, y2=bottom, stroke="#dfe4e9"))
        background.append(_text(x, HEAD_HEIGHT - 14, text, anchor="middle", colour=_GREY))
    if zero is not None:
        x = _x(zero)
        background.append(tag("line", x1=x, x2=x, y1=HEAD_HEIGHT - 8, y2=bottom, stroke="#1b1f24"))
    return _svg(title, [*background, *shapes], _WIDTH, height)


def _svg(title: str, shapes: Sequence[Html], width: float, height: float) -> Html:
    return tag(
        "svg",
        tag("title", title),
        tag("rect", width=width, height=height, fill="#ffffff"),
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        font_family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif",
        font_size=13,
    )


def _row_name(text: str, y: int) -> Html:
    return _text(LEFT - 12, y + 4, _shortened_text(text, _MAX_LABEL_CHARACTERS), anchor="end")


def _shortened_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    colour: str = "#1b1f24",
    weight: str | None = None,
) -> Html:
    return tag("text", text, x=x, y=y, text_anchor=anchor, fill=colour, font_weight=weight)


def _x(at: float) -> float:
    return round(LEFT + PLOT * at, 2)


def _y(row: int) -> int:
    return HEAD_HEIGHT + ROW_HEIGHT * row + ROW_HEIGHT // 2
