"""Tables with one drawn column: stacked bars, breakdowns into parts, and distributions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import groupby

from falter.records import numbers as n
from falter.records.figures import Bar, Bars, Breakdown, BreakdownRow, Strip, Strips, Unit
from falter.records.types import Estimate
from falter.report.drawing.axis import Axis, axis_of, tick_texts
from falter.report.drawing.tables import empty_note
from falter.report.escape import Html
from falter.report.markup import cell, head, label, number, tag
from falter.report.tables import quartiles
from falter.report.words import provenance, with_unit

_EDGE = 0.04
BAR_COLOURS = ("c-item", "c-pert", "c-run", "c-cond", "c-more", "c-rest")
_FIXED_COLOURS = {
    "the item": "c-item",
    "the prompt": "c-pert",
    "the prompt, item by item": "c-pert",
    "the prompt, equal for all items": "c-cond",
    "repeating": "c-run",
}


def visible_length(part: Estimate | None) -> float:
    """Return the length of a part; 0 if the part is unknown or estimated below zero."""
    if part is None or part.value is None or not math.isfinite(part.value):
        return 0.0
    return max(0.0, part.value)


def bar_table(figure: Bars) -> Html:
    """Return a legend, and a table with a stacked bar in each row."""
    if not figure.bars:
        return empty_note()
    axis = axis_of(
        [sum(map(visible_length, bar.parts)) for bar in figure.bars], figure.unit, zero=True
    )
    rows = [_bar_row(bar, figure, axis) for bar in figure.bars]
    table = tag("table", _bar_head(figure, axis), tag("tbody", *rows), class_="chart stacks")
    colours = map(_bar_colour, figure.parts, range(len(figure.parts)))
    return Html(
        tag("ul", *_swatches(figure.parts, colours), class_="legend") + table + _bar_note(figure)
    )


def _bar_note(figure: Bars) -> Html:
    parts = [part for bar in figure.bars for part in bar.parts]
    sentences = []
    if any(part is None or part.value is None for part in parts):
        sentences.append("A part without an estimate is not drawn.")
    if any(part is not None and (part.value or 0.0) < 0 for part in parts):
        sentences.append("A part with an estimate below zero is not drawn.")
    return tag("p", " ".join(sentences), class_="small muted") if sentences else Html("")


def _bar_colour(name: str, at: int) -> str:
    """Return the colour of a part: fixed for parts of the variance, otherwise by place."""
    return _FIXED_COLOURS.get(name) or BAR_COLOURS[at % len(BAR_COLOURS)]


def _bar_head(figure: Bars, axis: Axis) -> Html:
    picture = axis_picture(axis, figure.unit)
    share = (label(with_unit(figure.share, "percent"), 80), tag("span", " [interval]", class_="ci"))
    return tag(
        "thead",
        tag(
            "tr",
            head(tag("span", "of", class_="away")),
            head(picture, class_="plot", aria_label=f"{figure.across[:200]}, drawn"),
            head(*share, rowspan=2, class_="r"),
        ),
        tag(
            "tr",
            tag("td"),
            tag("td", label(with_unit(figure.across, figure.unit), 80), class_="across"),
            tag("td"),
        ),
    )


def _bar_row(bar: Bar, figure: Bars, axis: Axis) -> Html:
    return tag(
        "tr",
        tag("th", label(bar.label, 120), scope="row"),
        cell(_bar_picture(bar, figure, axis), class_="plot"),
        cell(number(bar.share, "percent"), class_="r"),
    )


def _bar_picture(bar: Bar, figure: Bars, axis: Axis) -> Html:
    shapes = _grid_lines(axis)
    start, descriptions = 0.0, []
    for place, (name, part) in enumerate(zip(figure.parts, bar.parts, strict=True)):
        if part is not None:
            descriptions.append(f"{name[:80]} {n.shown(part, figure.unit).text}")
        extent = visible_length(part)
        if part is None or not extent:
            continue
        about = f"{descriptions[-1]}\n{provenance(part)}"
        box = {"y": "18%", "height": "64%", "class_": _bar_colour(name, place)}
        shapes.append(_part_box(axis, start, start + extent, about, **box))
        start += extent
    about = f"{bar.label[:120]}: {', '.join(descriptions) or 'no number'}"
    return tag("svg", *shapes, role="img", aria_label=about)


def axis_picture(axis: Axis, unit: Unit) -> Html:
    """Return the ticks for a heading; on narrow screens only zero and the ends have numbers."""
    texts = tick_texts(axis, unit)
    marks = []
    for at, (tick, text) in enumerate(zip(axis.ticks, texts, strict=True)):
        kind = None if at in (0, len(texts) - 1) or not tick else "wide"
        marks.append(tag("text", text, x=_x(axis, tick), y="80%", class_=kind))
    return tag("svg", *marks, aria_hidden="true")


def _grid_lines(axis: Axis) -> list[Html]:
    return [
        tag("line", x1=x, x2=x, y1=0, y2="100%", class_="grid" if tick else "zero")
        for tick in axis.ticks
        for x in [_x(axis, tick)]
    ]


def _swatches(names: Iterable[str], colours: Iterable[str]) -> list[Html]:
    """Return the entries of a legend: a colour and a name each."""
    return [
        tag("li", tag("span", class_=f"swatch {colour}"), label(name, 80))
        for name, colour in zip(names, colours, strict=True)
    ]


def _part_box(axis: Axis, start: float, end: float, about: str, **box: str) -> Html:
    """Return a part of a stack, with a tooltip."""
    width = as_share((1 - 2 * _EDGE) * (axis.at(end) - axis.at(start)))
    return tag("rect", tag("title", about), x=_x(axis, start), width=width, **box)


def place_on(axis: Axis, value: float) -> float:
    """Return the position of a value, from 0 to 1, with room at both edges."""
    return _EDGE + (1 - 2 * _EDGE) * axis.at(value)


def _x(axis: Axis, value: float) -> str:
    return as_share(place_on(axis, value))


def as_share(at: float) -> str:
    """Return a position from 0 to 1 as a percentage of the picture."""
    return f"{100 * at:.3f}%"


# Parts that add up to a whole, stacked to both sides of zero, with a line at the whole.


BREAKDOWN_COLOURS = ("c-more", "c-rest", "c-host", "c-pert", "c-item", "c-cond")


def signed_length(part: Estimate) -> float:
    """Return the signed length of a part; 0 if the part is unknown."""
    return part.value if part.value is not None and math.isfinite(part.value) else 0.0


def reach(row: BreakdownRow) -> tuple[float, float]:
    """Return the total lengths of a row's parts below and above zero, both positive."""
    lengths = [signed_length(part) for part in row.parts]
    return -sum(v for v in lengths if v < 0), sum(v for v in lengths if v > 0)


def placed_parts(row: BreakdownRow) -> Iterator[tuple[int, float, float]]:
    """Yield index, start and end of each part with a length.

    Negative parts are stacked below zero, and positive parts above it.
    """
    below = above = 0.0
    for place, part in enumerate(row.parts):
        extent = signed_length(part)
        if extent > 0:
            yield place, above, above + extent
            above += extent
        elif extent < 0:
            yield place, below + extent, below
            below += extent


def breakdown_axis(figure: Breakdown) -> Axis:
    """Return an axis that covers zero, every stack and every whole."""
    ends = [end for row in figure.rows for low, high in [reach(row)] for end in (-low, high)]
    return axis_of(
        [*ends, *(signed_length(row.whole) for row in figure.rows)], figure.unit, zero=True
    )


def breakdown_table(figure: Breakdown) -> Html:
    """Return a legend, and a table with the drawn parts of each row and its text below."""
    if not figure.rows:
        return empty_note()
    axis = breakdown_axis(figure)
    rows = [line for row in figure.rows for line in _breakdown_rows(row, figure, axis)]
    table = tag("table", _breakdown_head(figure, axis), tag("tbody", *rows), class_="chart stacks")
    return Html(_breakdown_legend(figure) + table)


def _breakdown_legend(figure: Breakdown) -> Html:
    keys = _swatches(figure.parts, map(_breakdown_colour, range(len(figure.parts))))
    line = tag("line", x1=13, x2=13, y1=0, y2=16, class_="whole")
    whole = tag("span", tag("svg", line, aria_hidden="true"), class_="stacks")
    return tag("ul", *keys, tag("li", whole, label(figure.whole, 80)), class_="legend")


def _breakdown_colour(at: int) -> str:
    return BREAKDOWN_COLOURS[at % len(BREAKDOWN_COLOURS)]


def _breakdown_head(figure: Breakdown, axis: Axis) -> Html:
    whole = with_unit(figure.whole, figure.unit)
    return tag(
        "thead",
        tag(
            "tr",
            head(label(figure.of.capitalize(), 80)),
            head(
                axis_picture(axis, figure.unit),
                class_="plot",
                aria_label=f"parts of the {figure.whole[:200]}, drawn",
            ),
            head(label(whole, 80), tag("span", " [interval]", class_="ci"), class_="r"),
        ),
    )


def _breakdown_rows(row: BreakdownRow, figure: Breakdown, axis: Axis) -> Iterator[Html]:
    yield tag(
        "tr",
        tag("th", *_row_name(row), scope="row"),
        cell(_breakdown_picture(row, figure, axis), class_="plot"),
        cell(number(row.whole, figure.unit), class_="r"),
    )
    parts = ", ".join(
        f"{name[:80]} {n.shown(part, figure.unit).text}"
        for name, part in zip(figure.parts, row.parts, strict=True)
    )
    is_split = sum(bool(part.value) for part in row.parts) > 1
    said = label(" ".join((*([f"{parts}."] if is_split else []), *row.lines)), 3_000)
    yield tag("tr", cell(tag("p", said), colspan=3), class_="said")


def _row_name(row: BreakdownRow) -> list[Html]:
    """Return a row's everyday name, if it has one, and its label."""
    if not row.everyday:
        return [label(row.label, 120)]
    name = [tag("span", label(row.everyday[:1].upper() + row.everyday[1:]), class_="called")]
    if row.everyday != row.label:
        name.append(tag("code", label(row.label), class_="recipe"))
    return name


def _breakdown_picture(row: BreakdownRow, figure: Breakdown, axis: Axis) -> Html:
    shapes = _grid_lines(axis)
    for place, start, end in placed_parts(row):
        part, name = row.parts[place], figure.parts[place]
        about = f"{name[:80]} {n.shown(part, figure.unit).text}\n{provenance(part)}"
        box = {"y": "22%", "height": "56%", "class_": _breakdown_colour(place)}
        shapes.append(_part_box(axis, start, end, about, **box))
    if row.whole.value is not None:
        x = _x(axis, signed_length(row.whole))
        shapes.append(tag("line", x1=x, x2=x, y1="8%", y2="92%", class_="whole"))
    whole = n.shown(row.whole, figure.unit).text
    return tag("svg", *shapes, role="img", aria_label=f"{row.label[:120]}: {whole} in parts")


# Distributions in rows: a dot for every value, a box from quartile to quartile


_MIN_DOT_DISTANCE = 0.014
_LANES = (0, -5, 5, -9, 9)
_STRIP_SHAPES = ("M-4 0A4 4 0 1 1 4 0A4 4 0 1 1 -4 0Z", "M0 -4.8L4.8 0L0 4.8L-4.8 0Z",
          "M-3.6 -3.6H3.6V3.6H-3.6Z")  # fmt: skip


def strip_table(figure: Strips) -> Html:
    """Return a legend, and a table with the values of each strip as dots."""
    values = [value for strip in figure.strips for _, value in strip.values]
    if not any(map(math.isfinite, values)):
        return empty_note()
    axis = axis_of(values, figure.unit)
    kinds = list(dict.fromkeys(strip.kind for strip in figure.strips))
    bodies = []
    for _, group in groupby(figure.strips, key=lambda strip: strip.label):
        strips = list(group)
        rows = [
            _strip_row(strip, figure, axis, kinds.index(strip.kind), 0 if at else len(strips))
            for at, strip in enumerate(strips)
        ]
        bodies.append(tag("tbody", *rows))
    table = tag("table", _strip_head(figure, axis), *bodies, class_="chart strips")
    return Html(_strip_legend(kinds) + table)


def _strip_legend(kinds: list[str]) -> Html:
    keys = []
    for place, kind in enumerate(kinds):
        mark = tag("svg", tag("path", d=_strip_mark(place), class_="mark"), x=13, y=8, class_="at")
        picture = tag("svg", mark, class_=_strip_colour(place), aria_hidden="true")
        keys.append(tag("li", picture, label(kind, 80)))
    box = tag("rect", x=1, y=2, width=24, height=12, class_="box")
    middle = tag("line", x1=13, x2=13, y1=2, y2=14, class_="median")
    picture = tag("svg", box, middle, class_="k9", aria_hidden="true")
    keys.append(tag("li", picture, "quartiles and median"))
    return tag("ul", *keys, class_="legend")


def _strip_mark(place: int) -> str:
    return _STRIP_SHAPES[place % len(_STRIP_SHAPES)]


def _strip_colour(place: int) -> str:
    return ("k1", "k0", "k2", "k3", "k4", "k5")[place % 6]


def _strip_head(figure: Strips, axis: Axis) -> Html:
    picture = axis_picture(axis, figure.unit)
    return tag(
        "thead",
        tag(
            "tr",
            head(tag("span", "of", class_="away")),
            head(tag("span", "kind", class_="away")),
            head(picture, class_="plot", aria_label=f"{figure.across[:200]}, drawn"),
            head("Median", rowspan=2, class_="r wide"),
            head("Values", rowspan=2, class_="r wide"),
        ),
        tag(
            "tr",
            tag("td", colspan=2),
            tag("td", label(with_unit(figure.across, figure.unit), 80), class_="across"),
        ),
    )


def _strip_row(strip: Strip, figure: Strips, axis: Axis, place: int, span: int) -> Html:
    """Return a row; `span` is the number of rows of its label, 0 below the first row."""
    values = [value for _, value in strip.values if math.isfinite(value)]
    box = quartiles(values)
    scope, rows = ("rowgroup", span) if span > 1 else ("row", None)
    top = [tag("th", label(strip.label, 120), scope=scope, rowspan=rows)] if span else []
    return tag(
        "tr",
        *top,
        tag("th", label(strip.kind, 60), scope="row", class_="kind"),
        cell(_strip_picture(strip, figure, axis, place), class_="plot"),
        cell(n.as_text(box[1], figure.unit) if box else n.NO_VALUE, class_="r wide"),
        cell(n.whole(len(values)), class_="r wide"),
    )


def _strip_picture(strip: Strip, figure: Strips, axis: Axis, place: int) -> Html:
    shapes = [
        tag("line", x1=x, x2=x, y1=0, y2="100%", class_="grid")
        for x in (as_share(place_on(axis, tick)) for tick in axis.ticks)
    ]
    finite = sorted(((v, name) for name, v in strip.values if math.isfinite(v)), key=lambda p: p[0])
    if box := quartiles(value for value, _ in finite):
        low, middle, high = (place_on(axis, value) for value in box)
        x = as_share(middle)
        shapes += [
            tag("rect", x=as_share(low), width=as_share(max(high - low, 0.002)), y="14%",
                height="72%", class_="box"),
            tag("line", x1=x, x2=x, y1="14%", y2="86%", class_="median"),
        ]  # fmt: skip
    lanes = _strip_lanes([place_on(axis, value) for value, _ in finite])
    for (value, name), lane in zip(finite, lanes, strict=True):
        about = f"{name}: {n.as_text(value, figure.unit)}"
        dot = tag("path", tag("title", about), d=_strip_mark(place), class_="mark",
                  transform=f"translate(0 {lane})")  # fmt: skip
        x = as_share(place_on(axis, value))
        shapes.append(tag("svg", dot, x=x, y="50%", overflow="visible", class_="at"))
    about = f"{strip.label[:120]}, {strip.kind[:60]}: {len(finite)} values"
    return tag("svg", *shapes, class_=_strip_colour(place), role="img", aria_label=about)


def _strip_lanes(places: list[float]) -> list[int]:
    """Return the vertical shift of each dot, so that no dot covers its neighbours.

    `places` are positions in ascending order. If all shifts are taken, the first one is used again.
    """
    ends: dict[int, float] = {}
    lanes = []
    for place in places:
        free = next(
            (lane for lane in _LANES if place - ends.get(lane, -1.0) > _MIN_DOT_DISTANCE), _LANES[0]
        )
        ends[free] = place
        lanes.append(free)
    return lanes
