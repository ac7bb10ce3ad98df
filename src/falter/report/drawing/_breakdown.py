"""Parts that add up to a whole, stacked to both sides of zero, with a line at the whole."""

from __future__ import annotations

import math
from collections.abc import Iterator

from falter.core.records import Estimate
from falter.figures import Breakdown, BreakdownRow
from falter.figures import numbers as n
from falter.report._escape import Html
from falter.report._markup import cell, head, label, number, tag
from falter.report._words import provenance, with_unit
from falter.report.drawing._axis import Axis, axis_of, tick_texts
from falter.report.drawing._grid import empty_note

__all__ = ["breakdown_axis", "breakdown_table", "length", "placed_parts", "reach"]

_EDGE = 0.04
_COLOURS = ("c-more", "c-rest", "c-host", "c-pert", "c-item", "c-cond")


def length(part: Estimate) -> float:
    """The signed length of a part; 0 if it is unknown."""
    return part.value if part.value is not None and math.isfinite(part.value) else 0.0


def reach(row: BreakdownRow) -> tuple[float, float]:
    """How far the parts of a row lie below and above zero, taken together."""
    lengths = [length(part) for part in row.parts]
    return -sum(v for v in lengths if v < 0), sum(v for v in lengths if v > 0)


def placed_parts(row: BreakdownRow) -> Iterator[tuple[int, float, float]]:
    """Each part that has a length: its place among the parts, where it starts and ends."""
    below = above = 0.0
    for place, part in enumerate(row.parts):
        size = length(part)
        if size > 0:
            yield place, above, above + size
            above += size
        elif size < 0:
            yield place, below + size, below
            below += size


def breakdown_axis(figure: Breakdown) -> Axis:
    """An axis that holds zero, every stack and every whole."""
    ends = [end for row in figure.rows for low, high in [reach(row)] for end in (-low, high)]
    return axis_of([*ends, *(length(row.whole) for row in figure.rows)], figure.unit, zero=True)


def breakdown_table(figure: Breakdown) -> Html:
    """Legend, and a table with one drawn column; what is to be said stands below each row."""
    if not figure.rows:
        return empty_note()
    axis = breakdown_axis(figure)
    rows = [line for row in figure.rows for line in _rows(row, figure, axis)]
    table = tag("table", _head(figure, axis), tag("tbody", *rows), class_="chart stacks")
    return Html(_legend(figure) + table)


def _legend(figure: Breakdown) -> Html:
    keys = [
        tag("li", tag("span", class_=f"swatch {_colour(at)}"), label(name, 80))
        for at, name in enumerate(figure.parts)
    ]
    line = tag("line", x1=13, x2=13, y1=0, y2=16, class_="whole")
    whole = tag("span", tag("svg", line, aria_hidden="true"), class_="stacks")
    return tag("ul", *keys, tag("li", whole, label(figure.whole, 80)), class_="legend")


def _colour(at: int) -> str:
    return _COLOURS[at % len(_COLOURS)]


def _head(figure: Breakdown, axis: Axis) -> Html:
    texts = tick_texts(axis, figure.unit)
    marks = []
    for at, (tick, text) in enumerate(zip(axis.ticks, texts, strict=True)):
        kind = None if at in (0, len(texts) - 1) or not tick else "wide"
        marks.append(tag("text", text, x=_x(axis, tick), y="80%", class_=kind))
    whole = with_unit(figure.whole, figure.unit)
    return tag(
        "thead",
        tag(
            "tr",
            head(label(figure.of.capitalize(), 80)),
            head(
                tag("svg", *marks, aria_hidden="true"),
                class_="plot",
                aria_label=f"parts of the {figure.whole[:200]}, drawn",
            ),
            head(label(whole, 80), tag("span", " [interval]", class_="ci"), class_="r"),
        ),
    )


def _rows(row: BreakdownRow, figure: Breakdown, axis: Axis) -> Iterator[Html]:
    yield tag(
        "tr",
        tag("th", *_name(row), scope="row"),
        cell(_picture(row, figure, axis), class_="plot"),
        cell(number(row.whole, figure.unit), class_="r"),
    )
    parts = ", ".join(
        f"{name[:80]} {n.shown(part, figure.unit).text}"
        for name, part in zip(figure.parts, row.parts, strict=True)
    )
    is_split = sum(bool(part.value) for part in row.parts) > 1
    said = label(" ".join((*([f"{parts}."] if is_split else []), *row.lines)), 3_000)
    yield tag("tr", cell(tag("p", said), colspan=3), class_="said")


def _name(row: BreakdownRow) -> list[Html]:
    """What people call it, and its own name."""
    if row.everyday in ("", row.label):
        return [label(row.label, 120)]
    everyday = row.everyday[:1].upper() + row.everyday[1:]
    return [
        tag("span", label(everyday), class_="called"),
        tag("code", label(row.label), class_="recipe"),
    ]


def _picture(row: BreakdownRow, figure: Breakdown, axis: Axis) -> Html:
    shapes = [
        tag("line", x1=x, x2=x, y1=0, y2="100%", class_="grid" if tick else "zero")
        for tick in axis.ticks
        for x in [_x(axis, tick)]
    ]
    for place, start, end in placed_parts(row):
        part, name = row.parts[place], figure.parts[place]
        about = f"{name[:80]} {n.shown(part, figure.unit).text}\n{provenance(part)}"
        shapes.append(
            tag(
                "rect",
                tag("title", about),
                x=_x(axis, start),
                width=_share((1 - 2 * _EDGE) * (axis.at(end) - axis.at(start))),
                y="22%",
                height="56%",
                class_=_colour(place),
            )
        )
    if row.whole.value is not None:
        x = _x(axis, length(row.whole))
        shapes.append(tag("line", x1=x, x2=x, y1="8%", y2="92%", class_="whole"))
    whole = n.shown(row.whole, figure.unit).text
    return tag("svg", *shapes, role="img", aria_label=f"{row.label[:120]}: {whole} in parts")


def _x(axis: Axis, value: float) -> str:
    return _share(_EDGE + (1 - 2 * _EDGE) * axis.at(value))


def _share(at: float) -> str:
    return f"{100 * at:.3f}%"
