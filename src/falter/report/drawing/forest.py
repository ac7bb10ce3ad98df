"""Forest plots: tables with one drawn column, readable at any width.

Positions are percentages of the column, so the drawing stretches and its text does not.
"""

from __future__ import annotations

from typing import Any

from falter.records import numbers as n
from falter.records.figures import Column, Forest, ForestRow, Value, Verdict
from falter.records.types import Estimate
from falter.report.drawing.axis import Scale
from falter.report.drawing.examples import change_marked
from falter.report.drawing.stacks import as_share
from falter.report.drawing.tables import empty_note
from falter.report.escape import Html
from falter.report.markup import cell, dash, head, label, number, tag
from falter.report.words import provenance

_DIAMOND = "M0 -6.5L6.5 0L0 6.5L-6.5 0Z"
_ARROWS = {"left": "M0 0L6 -4V4Z", "right": "M0 0L-6 -4V4Z"}
_CLASSES: dict[Verdict | None, str] = {
    "degraded": "worse",
    "improved": "better",
    "equivalent": "same",
}


def forest_chart(figure: Forest, scale: Scale) -> Html:
    """Return a legend, and a row per estimate with dot, interval and numbers.

    Averages are diamonds.
    """
    if not figure.rows:
        return empty_note()
    bodies: list[list[Html]] = []
    last = ""
    for row in figure.rows:
        if row.kind != last or not bodies:
            bodies.append([])
        bodies[-1].append(_table_row(row, figure, scale))
        last = row.kind
    chart = tag("table", _head(figure, scale), *[tag("tbody", *b) for b in bodies], class_="chart")
    return Html(_legend(figure) + chart)


def _head(figure: Forest, scale: Scale) -> Html:
    levels = {row.estimate.level for row in figure.rows if row.estimate is not None}
    level = f"{n.level(*levels)} " if len(levels) == 1 else ""
    interval = f" [{level}interval]" if levels else ""
    measured = figure.measured[:1].upper() + figure.measured[1:]
    return tag(
        "thead",
        tag(
            "tr",
            head(label(figure.of[:1].upper() + figure.of[1:], 40)),
            head(_axis_ticks(scale, figure), class_="plot", aria_label=f"{measured[:80]}, drawn"),
            head(measured, tag("span", interval, class_="ci"), class_="r"),
            *[head(label(column.name, 60), class_="r wide", title=column.about or None)
              for column in figure.columns],
        ),
    )  # fmt: skip


def _table_row(row: ForestRow, figure: Forest, scale: Scale) -> Html:
    name = tag("th", *_row_name(row), scope="row")
    picture = cell(_row_picture(row, figure, scale), class_="plot")
    value = cell()
    if row.estimate is not None:
        value = cell(number(row.estimate, figure.unit), class_=f"r {_row_class(row)}")
    cells = row.cells or (None,) * len(figure.columns)
    more_cells = [
        cell(_cell_content(content, column, row.estimate), class_="r wide")
        for content, column in zip(cells, figure.columns, strict=True)
    ]
    return tag("tr", name, picture, value, *more_cells, class_=row.kind)


def _row_name(row: ForestRow) -> list[Html]:
    """Return a row's everyday name, its label, and an example of its change."""
    everyday = row.everyday or row.label
    name = [tag("span", label(everyday[:1].upper() + everyday[1:]), class_="called")]
    if row.kind != "member" or not row.everyday:
        name = [label(row.label)]
    elif row.everyday != row.label:
        name.append(tag("code", label(row.label), class_="recipe"))
    if row.change:
        name.append(tag("span", *change_marked(row.change), class_="change", dir="auto"))
    return name


def _cell_content(content: Value, column: Column, estimate: Estimate | None) -> Html:
    """Return the content of a cell; a missing p-value gets the reason of its estimate."""
    if content is None and column.unit == "p" and estimate is not None and estimate.value is None:
        return dash(estimate)
    return Html(tag("span", n.as_text(content, column.unit), class_="num"))


def _row_class(row: ForestRow) -> str:
    return _CLASSES.get(row.verdict, "open")


def _row_picture(row: ForestRow, figure: Forest, scale: Scale) -> Html:
    """Return the drawing of a row: grid, average, interval, and a dot or a diamond."""
    background = [_upright_line(scale.at(t), "grid") for t in scale.ticks if t]
    background.append(_upright_line(scale.at(0.0), "zero"))
    average = figure.average
    if average is not None and average.value is not None:
        background.append(_upright_line(scale.at(average.value), "average"))
    estimate = row.estimate
    if estimate is None or estimate.value is None:
        return tag("svg", *background, aria_hidden="true")
    text = n.shown(estimate, figure.unit).text
    about = f"{row.label}: {figure.measured} {text} {figure.unit}"
    return tag(
        "svg",
        tag("title", f"{about}\n{provenance(estimate)}"),
        tag("rect", width="100%", height="100%", fill="transparent"),
        *background,
        *_interval_line(estimate, scale),
        _estimate_mark(row, scale.at(estimate.value)),
        role="img",
        aria_label=about,
        class_=_row_class(row),
    )


def _interval_line(estimate: Estimate, scale: Scale) -> list[Html]:
    """Return the line of an interval, with an arrow at an end that leaves the picture."""
    if estimate.low is None or estimate.high is None:
        return []
    ends = scale.at(estimate.low), scale.at(estimate.high)
    line: dict[str, Any] = {"x1": as_share(ends[0]), "x2": as_share(ends[1])}
    shapes = [tag("line", **line, y1="50%", y2="50%", class_="whisker")]
    for value, end, side in ((estimate.low, ends[0], "left"), (estimate.high, ends[1], "right")):
        if scale.beyond(value):
            shapes.append(_placed_shape(end, tag("path", d=_ARROWS[side], class_="arrow")))
    return shapes


def _estimate_mark(row: ForestRow, at: float) -> Html:
    if row.kind != "member":
        return _placed_shape(at, tag("path", d=_DIAMOND, class_="dot"))
    return tag("circle", cx=as_share(at), cy="50%", r=4.5, class_="dot")


def _placed_shape(at: float, shape: Html) -> Html:
    """Return a shape of fixed size at a position that stretches with the drawing."""
    return tag("svg", shape, x=as_share(at), y="50%", overflow="visible", class_="at")


def _upright_line(at: float, kind: str) -> Html:
    x = as_share(at)
    return tag("line", x1=x, x2=x, y1=0, y2="100%", class_=kind)


def _axis_ticks(scale: Scale, figure: Forest) -> Html:
    """Return the ticks; on narrow screens only zero and the far end keep their numbers."""
    far_end = max(scale.ticks, key=abs, default=0.0)
    marks = []
    for tick in scale.ticks:
        text = n.as_text(tick, figure.unit).removesuffix(".0")
        kind = None if tick in (0.0, far_end) else "wide"
        marks.append(tag("text", text, x=as_share(scale.at(tick)), y="75%", class_=kind))
    return tag("svg", *marks, aria_hidden="true")


def _legend(figure: Forest) -> Html:
    """Return the legend, with only the marks that the figure has."""
    dot = tag("circle", cx=13, cy=8, r=4.5, class_="dot")
    bar = tag("line", x1=1, x2=25, y1=8, y2=8, class_="whisker")
    diamond = tag("svg", tag("path", d=_DIAMOND, class_="dot"), x=13, y=8, class_="at")
    line = tag("line", x1=13, x2=13, y1=0, y2=16, class_="average")
    verdicts = {row.verdict for row in figure.rows if row.kind == "member"}
    kinds = {row.kind for row in figure.rows if row.estimate is not None}
    keys = [
        *([(bar + dot, "worse", "worse")] if "degraded" in verdicts else []),
        *([(bar + dot, "better", "better")] if "improved" in verdicts else []),
        *([(bar + dot, "same", "the same within the margin")]
          if "equivalent" in verdicts else []),
        *([(bar + dot, "open", "undecided")] if "undecided" in verdicts else []),
        *([(diamond, "open", "average (filled: that of all recipes excludes zero)")]
          if kinds - {"member"} else []),
        *([(line, "open", "average of all")] if "total" in kinds else []),
    ]  # fmt: skip
    return tag(
        "ul",
        *[
            tag("li", tag("svg", Html(shapes), class_=kind, aria_hidden="true"), text)
            for shapes, kind, text in keys
        ],
        class_="legend",
    )
