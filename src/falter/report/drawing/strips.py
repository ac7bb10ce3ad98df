"""Distributions in rows: every value a dot, the middle half a box."""

from __future__ import annotations

import math
from itertools import groupby

from falter.records import numbers as n
from falter.records.figures import Strip, Strips
from falter.report.drawing.axis import Axis, axis_of
from falter.report.drawing.stacks import as_share, axis_picture, place_on
from falter.report.drawing.tables import empty_note
from falter.report.escape import Html
from falter.report.markup import cell, head, label, tag
from falter.report.tables import quartiles
from falter.report.words import with_unit

_NEAR = 0.014
_LANES = (0, -5, 5, -9, 9)
_MARKS = ("M-4 0A4 4 0 1 1 4 0A4 4 0 1 1 -4 0Z", "M0 -4.8L4.8 0L0 4.8L-4.8 0Z",
          "M-3.6 -3.6H3.6V3.6H-3.6Z")  # fmt: skip


def strip_table(figure: Strips) -> Html:
    """Legend, and a table with one drawn column."""
    values = [value for strip in figure.strips for _, value in strip.values]
    if not any(map(math.isfinite, values)):
        return empty_note()
    axis = axis_of(values, figure.unit)
    kinds = list(dict.fromkeys(strip.kind for strip in figure.strips))
    bodies = []
    for _, group in groupby(figure.strips, key=lambda strip: strip.label):
        strips = list(group)
        rows = [
            _row(strip, figure, axis, kinds.index(strip.kind), 0 if at else len(strips))
            for at, strip in enumerate(strips)
        ]
        bodies.append(tag("tbody", *rows))
    table = tag("table", _head(figure, axis), *bodies, class_="chart strips")
    return Html(_legend(kinds) + table)


def _legend(kinds: list[str]) -> Html:
    keys = []
    for place, kind in enumerate(kinds):
        mark = tag("svg", tag("path", d=_mark(place), class_="mark"), x=13, y=8, class_="at")
        picture = tag("svg", mark, class_=_colour(place), aria_hidden="true")
        keys.append(tag("li", picture, label(kind, 80)))
    box = tag("rect", x=1, y=2, width=24, height=12, class_="box")
    middle = tag("line", x1=13, x2=13, y1=2, y2=14, class_="median")
    picture = tag("svg", box, middle, class_="k9", aria_hidden="true")
    keys.append(tag("li", picture, "quartiles and median"))
    return tag("ul", *keys, class_="legend")


def _mark(place: int) -> str:
    return _MARKS[place % len(_MARKS)]


def _colour(place: int) -> str:
    return ("k1", "k0", "k2", "k3", "k4", "k5")[place % 6]


def _head(figure: Strips, axis: Axis) -> Html:
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


def _row(strip: Strip, figure: Strips, axis: Axis, place: int, span: int) -> Html:
    """A row; with a span of 0 its label is in a row above."""
    values = [value for _, value in strip.values if math.isfinite(value)]
    box = quartiles(values)
    scope, rows = ("rowgroup", span) if span > 1 else ("row", None)
    top = [tag("th", label(strip.label, 120), scope=scope, rowspan=rows)] if span else []
    return tag(
        "tr",
        *top,
        tag("th", label(strip.kind, 60), scope="row", class_="kind"),
        cell(_picture(strip, figure, axis, place), class_="plot"),
        cell(n.as_text(box[1], figure.unit) if box else n.NONE, class_="r wide"),
        cell(n.whole(len(values)), class_="r wide"),
    )


def _picture(strip: Strip, figure: Strips, axis: Axis, place: int) -> Html:
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
    lanes = _lanes([place_on(axis, value) for value, _ in finite])
    for (value, name), lane in zip(finite, lanes, strict=True):
        about = f"{name}: {n.as_text(value, figure.unit)}"
        dot = tag("path", tag("title", about), d=_mark(place), class_="mark",
                  transform=f"translate(0 {lane})")  # fmt: skip
        x = as_share(place_on(axis, value))
        shapes.append(tag("svg", dot, x=x, y="50%", overflow="visible", class_="at"))
    about = f"{strip.label[:120]}, {strip.kind[:60]}: {len(finite)} values"
    return tag("svg", *shapes, class_=_colour(place), role="img", aria_label=about)


def _lanes(places: list[float]) -> list[int]:
    """Shift a dot up or down if it would cover the one before it."""
    last: dict[int, float] = {}
    out = []
    for place in places:
        free = next((lane for lane in _LANES if place - last.get(lane, -1.0) > _NEAR), _LANES[0])
        last[free] = place
        out.append(free)
    return out
