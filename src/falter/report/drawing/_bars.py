"""Stacked bars of absolute size, each with its share beside it."""

from __future__ import annotations

import math

from falter.core.records import Estimate
from falter.figures import Bar, Bars
from falter.figures import numbers as n
from falter.report._escape import Html
from falter.report._markup import cell, head, label, number, tag
from falter.report._words import provenance, with_unit
from falter.report.drawing._axis import Axis, axis_of, tick_texts
from falter.report.drawing._grid import empty_note

__all__ = ["COLOURS", "bar_table", "size"]

_EDGE = 0.04
COLOURS = ("c-item", "c-pert", "c-run", "c-cond", "c-more", "c-rest")
_USUAL = {
    "the item": "c-item",
    "the prompt": "c-pert",
    "the prompt, item by item": "c-pert",
    "the prompt, alike for all items": "c-cond",
    "asking again": "c-run",
}


def size(part: Estimate | None) -> float:
    """The length of a part; 0 if it is unknown or estimated below zero."""
    if part is None or part.value is None or not math.isfinite(part.value):
        return 0.0
    return max(0.0, part.value)


def bar_table(figure: Bars) -> Html:
    """Legend, and a table with one drawn column."""
    if not figure.bars:
        return empty_note()
    axis = axis_of([sum(map(size, bar.parts)) for bar in figure.bars], figure.unit, zero=True)
    rows = [_row(bar, figure, axis) for bar in figure.bars]
    table = tag("table", _head(figure, axis), tag("tbody", *rows), class_="chart stacks")
    return Html(_legend(figure) + table + _note(figure))


def _note(figure: Bars) -> Html:
    parts = [part for bar in figure.bars for part in bar.parts]
    sentences = []
    if any(part is None or part.value is None for part in parts):
        sentences.append("A part without an estimate is not drawn.")
    if any(part is not None and (part.value or 0.0) < 0 for part in parts):
        sentences.append("A part with an estimate below zero is not drawn.")
    return tag("p", " ".join(sentences), class_="small muted") if sentences else Html("")


def _legend(figure: Bars) -> Html:
    keys = [
        tag("li", tag("span", class_=f"swatch {_colour(name, at)}"), label(name, 80))
        for at, name in enumerate(figure.parts)
    ]
    return tag("ul", *keys, class_="legend")


def _colour(name: str, at: int) -> str:
    """A part of the variance has the same colour everywhere; others go by their place."""
    return _USUAL.get(name) or COLOURS[at % len(COLOURS)]


def _head(figure: Bars, axis: Axis) -> Html:
    texts = tick_texts(axis, figure.unit)
    marks = []
    for at, (tick, text) in enumerate(zip(axis.ticks, texts, strict=True)):
        kind = None if at in (0, len(texts) - 1) else "wide"
        marks.append(tag("text", text, x=_x(axis, tick), y="80%", class_=kind))
    picture = tag("svg", *marks, aria_hidden="true")
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


def _row(bar: Bar, figure: Bars, axis: Axis) -> Html:
    return tag(
        "tr",
        tag("th", label(bar.label, 120), scope="row"),
        cell(_picture(bar, figure, axis), class_="plot"),
        cell(number(bar.share, "percent"), class_="r"),
    )


def _picture(bar: Bar, figure: Bars, axis: Axis) -> Html:
    shapes = [
        tag("line", x1=x, x2=x, y1=0, y2="100%", class_="grid" if tick else "zero")
        for tick in axis.ticks
        for x in [_x(axis, tick)]
    ]
    start, descriptions = 0.0, []
    for place, (name, part) in enumerate(zip(figure.parts, bar.parts, strict=True)):
        if part is not None:
            descriptions.append(f"{name[:80]} {n.shown(part, figure.unit).text}")
        length = size(part)
        if part is None or not length:
            continue
        shapes.append(
            tag(
                "rect",
                tag("title", f"{descriptions[-1]}\n{provenance(part)}"),
                x=_x(axis, start),
                width=_share((1 - 2 * _EDGE) * (axis.at(start + length) - axis.at(start))),
                y="18%",
                height="64%",
                class_=_colour(name, place),
            )
        )
        start += length
    about = f"{bar.label[:120]}: {', '.join(descriptions) or 'no number'}"
    return tag("svg", *shapes, role="img", aria_label=about)


def _x(axis: Axis, value: float) -> str:
    return _share(_EDGE + (1 - 2 * _EDGE) * axis.at(value))


def _share(at: float) -> str:
    return f"{100 * at:.3f}%"
