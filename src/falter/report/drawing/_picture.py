"""A figure as one SVG that stands by itself, for documents: forest plots and breakdowns."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.records import Estimate
from falter.figures import Breakdown, Forest, ForestRow
from falter.figures import numbers as n
from falter.report._escape import Html
from falter.report._markup import tag
from falter.report._words import with_unit
from falter.report.drawing._axis import tick_texts
from falter.report.drawing._breakdown import breakdown_axis, placed_parts
from falter.report.drawing._scale import Scale, scales_of

__all__ = ["picture"]

LEFT, PLOT, RIGHT = 250, 330, 260
"""The widths of the names, the drawing and the numbers."""
ROW, HEAD = 28, 56
_WIDTH = LEFT + PLOT + RIGHT
_LONGEST = 38
_COLOURS = {"degraded": "#b9500f", "improved": "#2b6fb3", "equivalent": "#16827c"}
_OPEN = "#55636f"
_PARTS = ("#8a6d00", "#a3316f", "#6b5b4b", "#2b6fb3")


def picture(figure: Forest | Breakdown) -> Html:
    """The figure with its axis, names and numbers, on white, in a drawing of fixed size."""
    if isinstance(figure, Breakdown):
        return _breakdown(figure)
    scale = scales_of([figure])[figure.scale]
    ticks = [(scale.at(tick), n.as_text(tick, figure.unit)) for tick in scale.ticks]
    rows = [_forest_row(row, at, figure, scale) for at, row in enumerate(figure.rows)]
    head = [_text(LEFT + PLOT + 12, 20, with_unit(figure.measured, figure.unit), weight="bold")]
    return _drawing(figure.title, ticks, len(figure.rows), [*head, *rows], scale.at(0.0))


def _forest_row(row: ForestRow, at: int, figure: Forest, scale: Scale) -> Html:
    y = _y(at)
    colour = _COLOURS.get(row.verdict or "", _OPEN)
    shapes = [_name(row.everyday or row.label, y)]
    estimate = row.estimate
    if estimate is not None and estimate.value is not None:
        shapes += _line(row.together, y, scale, colour, 1)
        shapes += _line(estimate, y, scale, colour, 3)
        shapes.append(tag("circle", cx=_x(scale.at(estimate.value)), cy=y, r=5, fill=colour))
    if estimate is not None:
        shapes.append(_text(LEFT + PLOT + 12, y + 4, n.shown(estimate, figure.unit).text))
    return tag("g", *shapes)


def _line(estimate: Estimate | None, y: int, scale: Scale, colour: str, width: int) -> list[Html]:
    if estimate is None or estimate.low is None or estimate.high is None:
        return []
    x1, x2 = _x(scale.at(estimate.low)), _x(scale.at(estimate.high))
    return [tag("line", x1=x1, x2=x2, y1=y, y2=y, stroke=colour, stroke_width=width)]


def _breakdown(figure: Breakdown) -> Html:
    axis = breakdown_axis(figure)
    texts = tick_texts(axis, figure.unit)
    ticks = [(axis.at(tick), text) for tick, text in zip(axis.ticks, texts, strict=True)]
    shapes = [_text(LEFT + PLOT + 12, 20, with_unit(figure.whole, figure.unit), weight="bold")]
    for at, row in enumerate(figure.rows):
        y = _y(at)
        shapes.append(_name(row.everyday or row.label, y))
        for place, start, end in placed_parts(row):
            x, right = _x(axis.at(start)), _x(axis.at(end))
            colour = _PARTS[place % len(_PARTS)]
            shapes.append(tag("rect", x=x, y=y - 8, width=right - x, height=16, fill=colour))
        if row.whole.value is not None:
            x = _x(axis.at(row.whole.value))
            shapes.append(tag("line", x1=x, x2=x, y1=y - 12, y2=y + 12, stroke="#1b1f24"))
        shapes.append(_text(LEFT + PLOT + 12, y + 4, n.shown(row.whole, figure.unit).text))
    return _drawing(
        figure.title, ticks, len(figure.rows), [*shapes, *_key(figure)], axis.at(0.0), key=True
    )


def _key(figure: Breakdown) -> list[Html]:
    """What the colours mean, below the rows."""
    y, shapes = _y(len(figure.rows)), []
    for place, name in enumerate(figure.parts):
        x = LEFT + place * 110
        shapes += [
            tag("rect", x=x, y=y - 6, width=12, height=12, fill=_PARTS[place % len(_PARTS)]),
            _text(x + 18, y + 4, name),
        ]
    return shapes


def _drawing(
    title: str,
    ticks: Sequence[tuple[float, str]],
    rows: int,
    shapes: Sequence[Html],
    zero: float,
    *,
    key: bool = False,
) -> Html:
    height = HEAD + ROW * (rows + key) + 8
    foot = HEAD + ROW * rows
    ground = [tag("rect", width=_WIDTH, height=height, fill="#ffffff")]
    for at, text in ticks:
        x = _x(at)
        ground.append(tag("line", x1=x, x2=x, y1=HEAD - 8, y2=foot, stroke="#dfe4e9"))
        ground.append(_text(x, HEAD - 14, text, anchor="middle", colour=_OPEN))
    x = _x(zero)
    ground.append(tag("line", x1=x, x2=x, y1=HEAD - 8, y2=foot, stroke="#1b1f24"))
    return tag(
        "svg",
        tag("title", title),
        *ground,
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH,
        height=height,
        role="img",
        font_family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif",
        font_size=13,
    )


def _name(text: str, y: int) -> Html:
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return _text(LEFT - 12, y + 4, short, anchor="end")


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
    return HEAD + ROW * row + ROW // 2
