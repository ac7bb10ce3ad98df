"""Small line charts with intervals, next to each other on one vertical scale.

Positions are percentages of the chart, so the drawing stretches and its text does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from falter.records import numbers as n
from falter.records.figures import Curve, Curves, Unit
from falter.records.types import Estimate
from falter.report.drawing.axis import Across, Axis, axis_of, extents, tick_texts
from falter.report.drawing.tables import empty_note
from falter.report.escape import Html
from falter.report.markup import label, tag
from falter.report.tables import doses
from falter.report.words import provenance, with_unit

SHAPES = (
    "M-4 0A4 4 0 1 1 4 0A4 4 0 1 1 -4 0Z",
    "M-3.7 -3.7H3.7V3.7H-3.7Z",
    "M0 -4.8L4.6 3.4H-4.6Z",
    "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 4.8L4.6 -3.4H-4.6Z",
    "M-1.5 -4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z",
)
DASHES = (None, "7 3", "2 3", "9 3 2 3", "4 2", "1 2")
_MAX_BANDS = 4
_MAX_TICK_LABELS = 9
_EDGE = 0.05


@dataclass(frozen=True, slots=True)
class _Style:
    """Colour, mark and dashes of a curve in all charts; after six curves, marks are hollow."""

    place: int

    @property
    def colour(self) -> str:
        hollow = " hollow" if self.place // len(SHAPES) % 2 else ""
        return f"k{self.place % len(SHAPES)}{hollow}"

    @property
    def shape(self) -> str:
        return SHAPES[self.place % len(SHAPES)]

    @property
    def dash(self) -> str | None:
        return DASHES[self.place % len(DASHES)]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Settings that all charts of a figure share."""

    axis: Axis
    across: Across
    unit: Unit
    bands: bool
    styles: dict[str, _Style]

    def x(self, dose: float) -> float:
        """Return the horizontal position of a dose, from 0 to 1, with room at both ends."""
        return _EDGE + (1 - 2 * _EDGE) * self.across.at(dose)

    def y(self, value: float) -> float:
        return 1 - self.axis.at(value)


def facets(figure: Curves) -> list[tuple[str, list[Curve]]]:
    """Return the curves of each small chart, in the order in which the charts first appear."""
    names = list(dict.fromkeys(curve.facet for curve in figure.curves))
    ranked = sorted(figure.curves, key=lambda curve: names.index(curve.facet))
    return [(name, list(group)) for name, group in groupby(ranked, key=lambda c: c.facet)]


def curves_chart(figure: Curves) -> Html:
    """Return legend, charts, and a note on the axes."""
    if not doses(figure):
        return empty_note()
    estimates = [estimate for curve in figure.curves for _, estimate in curve.points]
    names = list(dict.fromkeys(curve.label for curve in figure.curves))
    charts = facets(figure)
    frame = _Frame(
        axis=axis_of(extents(estimates), figure.unit),
        across=Across.of(figure),
        unit=figure.unit,
        bands=max(len(curves) for _, curves in charts) <= _MAX_BANDS,
        styles={name: _Style(place) for place, name in enumerate(names)},
    )
    panes = [_small_chart(name, curves, figure, frame) for name, curves in charts]
    kind = "panes one" if len(panes) == 1 else "panes"
    return Html(_legend(frame) + tag("div", *panes, class_=kind) + _axes_note(figure, frame.bands))


def _axes_note(figure: Curves, bands: bool) -> Html:
    what = "The shaded bands are" if bands else "The vertical lines are"
    parts = [f"{what} the intervals. All charts share one vertical scale, which need not start at "
             "zero."]  # fmt: skip
    steps = {round(b - a, 9) for a, b in pairwise(doses(figure))}
    if len(steps) > 1 and not figure.true_scale:
        parts.append("Doses are evenly spaced, whatever their differences.")
    return tag("p", " ".join(parts), class_="small muted")


def _legend(frame: _Frame) -> Html:
    keys = []
    for name, style in frame.styles.items():
        line = tag("line", x1=0, x2=28, y1=8, y2=8, stroke_dasharray=style.dash, class_="curve")
        mark = tag("svg", tag("path", d=style.shape, class_="mark"), x=14, y=8, class_="at")
        picture = tag("svg", line, mark, class_=style.colour, aria_hidden="true")
        keys.append(tag("li", picture, label(name, 80)))
    return tag("ul", *keys, class_="legend")


def _small_chart(name: str, curves: Sequence[Curve], figure: Curves, frame: _Frame) -> Html:
    about = f"{figure.down} by {figure.across}{f', {name}' if name else ''}"
    lines = [
        _curve_shapes(curve, 0.0 if figure.true_scale else at - (len(curves) - 1) / 2, frame)
        for at, curve in enumerate(curves)
    ]
    return tag(
        "div",
        tag("p", label(name, 80), class_="facet") if name else "",
        tag("p", label(with_unit(figure.down, figure.unit), 60), class_="down"),
        tag(
            "div",
            _value_ticks(frame),
            tag(
                "svg",
                *_grid_lines(frame),
                *lines,
                class_="area",
                role="img",
                aria_label=about[:300],
            ),
            _dose_ticks(frame),
            class_="plane",
        ),
        tag("p", label(figure.across, 60), class_="across"),
        class_="pane",
    )  # fmt: skip


def _value_ticks(frame: _Frame) -> Html:
    texts = tick_texts(frame.axis, frame.unit)
    marks = [
        tag("text", text, x="100%", y=_share(frame.y(tick)), dy="0.32em")
        for tick, text in zip(frame.axis.ticks, texts, strict=True)
    ]
    return tag("svg", *marks, class_="up", aria_hidden="true")


def _dose_ticks(frame: _Frame) -> Html:
    labels = frame.across.labels
    every = math.ceil(len(labels) / _MAX_TICK_LABELS)
    marks = [
        tag("text", f"{dose:g}", x=_share(frame.x(dose)), y="1.1em") for dose in labels[::every]
    ]
    return tag("svg", *marks, class_="along", aria_hidden="true")


def _grid_lines(frame: _Frame) -> list[Html]:
    lines = []
    for tick in frame.axis.ticks:
        y = _share(frame.y(tick))
        kind = "zero" if tick == 0 else "grid"
        lines.append(tag("line", x1=0, x2="100%", y1=y, y2=y, class_=kind))
    return lines


def _curve_shapes(curve: Curve, aside: float, frame: _Frame) -> Html:
    style = frame.styles[curve.label]
    dodge = 0.0 if frame.bands else 0.012 * aside
    parts: list[Html] = []
    for run in _runs(curve):
        parts += _run_shapes([(frame.x(dose) + dodge, e) for dose, e in run], style, frame)
    for run in _runs(curve):
        parts += [
            _mark(frame.x(x) + dodge, e, f"{curve.label}, {x:g}", style, frame) for x, e in run
        ]
    return tag("g", *parts, class_=style.colour)


def _runs(curve: Curve) -> list[list[tuple[float, Estimate]]]:
    """Return the points by dose, split at missing numbers."""
    points = sorted(curve.points, key=lambda point: point[0])
    groups = groupby(points, key=lambda p: p[1].value is not None and math.isfinite(p[1].value))
    return [list(run) for has_value, run in groups if has_value]


def _run_shapes(run: Sequence[tuple[float, Estimate]], style: _Style, frame: _Frame) -> list[Html]:
    """Return the line of a run of points, with a band or with whiskers behind it."""
    middle = [(x, frame.y(e.value or 0.0)) for x, e in run]
    bounded = [(x, e.low, e.high) for x, e in run if e.low is not None and e.high is not None]
    shapes = []
    if frame.bands and len(bounded) == len(run):
        upper = [(x, frame.y(high)) for x, _, high in bounded]
        lower = [(x, frame.y(low)) for x, low, _ in reversed(bounded)]
        shapes.append(tag("path", d=f"{_path_data([*upper, *lower])}Z", class_="band"))
    else:
        for x, low, high in bounded:
            d = _path_data([(x, frame.y(low)), (x, frame.y(high))])
            shapes.append(tag("path", d=d, class_="reach"))
    shapes.append(
        tag("path", d=_path_data(middle), stroke_dasharray=style.dash, class_="curve")
    )  # fmt: skip
    return [
        tag(
            "svg",
            *shapes,
            viewBox="0 0 100 100",
            preserveAspectRatio="none",
            width="100%",
            height="100%",
            overflow="visible",
            aria_hidden="true",
        )
    ]


def _path_data(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{100 * x:.2f} {100 * y:.2f}" for x, y in points)


def _mark(x: float, estimate: Estimate, of: str, style: _Style, frame: _Frame) -> Html:
    about = f"{of}: {n.shown(estimate, frame.unit).text}\n{provenance(estimate)}"
    shape = tag("path", tag("title", about), d=style.shape, class_="mark")
    return tag(
        "svg",
        shape,
        x=_share(x),
        y=_share(frame.y(estimate.value or 0.0)),
        overflow="visible",
        class_="at",
    )


def _share(at: float) -> str:
    return f"{100 * at:.2f}%"
