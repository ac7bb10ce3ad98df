"""Curves, bars and strips in LaTeX, drawn by pgfplots."""

from __future__ import annotations

import math
from collections.abc import Sequence

from falter.figures import (
    Bar,
    Bars,
    Breakdown,
    BreakdownRow,
    Curve,
    Curves,
    Forest,
    ForestRow,
    Strip,
    Strips,
    Unit,
)
from falter.figures import numbers as n
from falter.report._tables import doses, quartiles
from falter.report._words import with_unit
from falter.report.drawing import Scale
from falter.report.drawing._axis import Axis, axis_of, ends, tick_texts
from falter.report.drawing._bars import size
from falter.report.drawing._breakdown import breakdown_axis, placed_parts
from falter.report.drawing._curves import facets
from falter.report.forms._latex_grid import NOTHING
from falter.report.forms._latex_text import latex, words

__all__ = ["bar_plots", "breakdown_plots", "curve_plots", "forest_plot", "strip_plots"]

_COLOURS = ("ka", "kb", "kc", "kd", "ke", "kf")
_PARTS = ("kitem", "ka", "kb", "kd", "kc", "ke")
_MARKS = ("*", "square*", "triangle*", "diamond*", "o", "square")
_DASHES = ("solid", "dashed", "dotted", "dashdotted", "densely dashed", "densely dotted")
_ROWS = 30
_LABELS = 9


def curve_plots(figure: Curves) -> str:
    """A small chart for each facet, two in a row, and one legend."""
    every = doses(figure)
    if not every:
        return NOTHING
    axis = axis_of(ends(e for c in figure.curves for _, e in c.points), figure.unit)
    names = list(dict.fromkeys(curve.label for curve in figure.curves))
    charts = facets(figure)
    width = "0.48" if len(charts) > 1 else "0.75"
    plots = [_facet(name, curves, figure, axis, names, width) for name, curves in charts]
    pairs = ["\\hfill%\n".join(plots[at : at + 2]) for at in range(0, len(plots), 2)]
    return "\n\n".join([_legend(names), *pairs])


def _facet(
    name: str, curves: Sequence[Curve], figure: Curves, axis: Axis, names: list[str], width: str
) -> str:
    every = doses(figure)
    step = math.ceil(len(every) / _LABELS)
    labelled = list(enumerate(every))[::step]
    options = [
        rf"width={width}\linewidth", "height=5.6cm",
        f"title={{{latex(name, 60)}}}", f"xlabel={{{latex(figure.across, 60)}}}",
        f"ylabel={{{latex(with_unit(figure.down, figure.unit), 60)}}}",
        f"xmin={-0.4}", f"xmax={len(every) - 0.6:g}",
        f"xtick={{{','.join(str(at) for at, _ in labelled)}}}",
        f"xticklabels={{{','.join(words(f'{x:g}') for _, x in labelled)}}}",
        *_vertical(axis, figure),
    ]  # fmt: skip
    lines = [_curve(curve, names.index(curve.label), len(names), every) for curve in curves]
    return _picture(options, lines)


def _vertical(axis: Axis, figure: Curves) -> list[str]:
    texts = tick_texts(axis, figure.unit)
    return [
        f"ymin={_number(axis.low)}",
        f"ymax={_number(axis.high)}",
        f"ytick={{{','.join(map(_number, axis.ticks))}}}",
        f"yticklabels={{{','.join(map(words, texts))}}}",
        "ymajorgrids",
    ]


def _curve(curve: Curve, place: int, count: int, every: Sequence[float]) -> str:
    shift = 0.09 * (place % 6 - (min(count, 6) - 1) / 2)
    points = []
    for x, e in sorted(curve.points, key=lambda point: point[0]):
        if e.value is None or not math.isfinite(e.value):
            points.append(f"({every.index(x) + shift:.3f},nan)")
            continue
        above, below = _reach(e.high, e.value), _reach(e.value, e.low)
        at = f"({every.index(x) + shift:.3f},{_number(e.value)})"
        points.append(f"{at} += (0,{_number(above)}) -= (0,{_number(below)})")
    colour = _COLOURS[place % 6]
    style = f"{colour},{_DASHES[place % 6]},line width=0.8pt"
    mark = f"mark={_MARKS[place % 6]},mark options={{solid}},mark size=1.6pt"
    bars = "error bars/.cd,y dir=both,y explicit,error bar style={solid,line width=0.3pt}"
    return rf"\addplot+[{style},{mark},{bars}] coordinates {{{' '.join(points)}}};"


def _reach(high: float | None, low: float | None) -> float:
    if high is None or low is None or not math.isfinite(high - low):
        return 0.0
    return max(0.0, high - low)


def _legend(names: Sequence[str]) -> str:
    keys = []
    for place, name in enumerate(names):
        style = f"{_COLOURS[place % 6]},{_DASHES[place % 6]}"
        mark = rf"mark={_MARKS[place % 6]},mark options={{solid}}"
        line = rf"\tikz[baseline=-2pt]\draw[{style},thick] plot[{mark}] coordinates {{(0,0) (0.35,0) (0.7,0)}};"  # noqa: E501
        keys.append(rf"\mbox{{{line}}}~{latex(name, 80)}")
    return r"{\footnotesize\raggedright " + r"\quad ".join(keys) + r"\par}"


def forest_plot(figure: Forest, scale: Scale) -> str:
    """Points with their intervals below each other; averages are diamonds."""
    rows = [
        row for row in figure.rows if row.estimate is not None and row.estimate.value is not None
    ]
    if not rows:
        return NOTHING
    parts = [rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS)]
    return "\n\n".join(_forest(figure, part, scale) for part in parts)


def _forest(figure: Forest, rows: Sequence[ForestRow], scale: Scale) -> str:
    texts = [words(n.as_text(tick, figure.unit).removesuffix(".0")) for tick in scale.ticks]
    options = [
        *_rows([row.label for row in rows]),
        f"xlabel={{{latex(with_unit(figure.measured, figure.unit), 60)}}}",
        f"xmin={_number(scale.low)}",
        f"xmax={_number(scale.high)}",
        f"xtick={{{','.join(map(_number, scale.ticks))}}}",
        f"xticklabels={{{','.join(texts)}}}",
        "xmajorgrids",
    ]
    lines = [rf"\draw[gray] (axis cs:0,-0.6) -- (axis cs:0,{len(rows) - 0.4:g});"]
    for at, row in enumerate(rows):
        estimate = row.estimate
        assert estimate is not None and estimate.value is not None
        wide = row.together
        if wide is not None and wide.low is not None and wide.high is not None:
            ends = _number(max(wide.low, scale.low)), _number(min(wide.high, scale.high))
            line = f"(axis cs:{ends[0]},{at}) -- (axis cs:{ends[1]},{at})"
            lines.append(rf"\draw[gray,line width=0.2pt] {line};")
        colour = {"degraded": "worse", "improved": "better"}.get(row.verdict or "", "gray")
        mark = "*" if row.kind == "member" else "diamond*"
        right, left = _reach(estimate.high, estimate.value), _reach(estimate.value, estimate.low)
        bars = "error bars/.cd,x dir=both,x explicit,error bar style={line width=0.6pt}"
        point = f"({_number(estimate.value)},{at}) += ({_number(right)},0) -= ({_number(left)},0)"
        lines.append(
            rf"\addplot+[only marks,{colour},mark={mark},mark options={{{colour}}},{bars}] "
            rf"coordinates {{{point}}};"
        )
    return _picture(options, lines)


def bar_plots(figure: Bars) -> str:
    """Stacked bars with the share at their ends."""
    if not figure.bars:
        return NOTHING
    axis = axis_of([sum(map(size, bar.parts)) for bar in figure.bars], figure.unit, zero=True)
    keys = [
        rf"\textcolor{{{_PARTS[at % 6]}}}{{\rule{{8pt}}{{6pt}}}}~{latex(name, 60)}"
        for at, name in enumerate(figure.parts)
    ]
    share = rf"beside the bar: {latex(with_unit(figure.share, 'percent'), 60)}"
    legend = r"{\footnotesize\raggedright " + r"\quad ".join((*keys, share)) + r"\par}"
    cuts = [figure.bars[at : at + _ROWS] for at in range(0, len(figure.bars), _ROWS)]
    return "\n\n".join([legend, *(_stack(bars, figure, axis) for bars in cuts)])


def _stack(bars: Sequence[Bar], figure: Bars, axis: Axis) -> str:
    options = [
        "xbar stacked",
        "bar width=7pt",
        *_rows([bar.label for bar in bars]),
        *_horizontal(axis, figure.across, figure.unit, room=1.35),
    ]
    lines = []
    for place in range(len(figure.parts)):
        points = " ".join(
            f"({_number(size(bar.parts[place]))},{at})" for at, bar in enumerate(bars)
        )
        colour = _PARTS[place % 6]
        lines.append(rf"\addplot[fill={colour},draw=white] coordinates {{{points}}};")
    for at, bar in enumerate(bars):
        total = sum(map(size, bar.parts))
        text = words(n.shown(bar.share, "percent").text)
        lines.append(
            rf"\node[anchor=west,font=\scriptsize] at (axis cs:{_number(total)},{at}) {{{text}}};"
        )
    return _picture(options, lines)


def breakdown_plots(figure: Breakdown) -> str:
    """Parts to both sides of zero, and a line at the whole."""
    if not figure.rows:
        return NOTHING
    axis = breakdown_axis(figure)
    keys = [
        rf"\textcolor{{{_PARTS[at % 6]}}}{{\rule{{8pt}}{{6pt}}}}~{latex(name, 60)}"
        for at, name in enumerate(figure.parts)
    ]
    whole = rf"\rule[-1pt]{{1pt}}{{8pt}}~{latex(figure.whole, 60)}"
    legend = r"{\footnotesize\raggedright " + r"\quad ".join((*keys, whole)) + r"\par}"
    cuts = [figure.rows[at : at + _ROWS] for at in range(0, len(figure.rows), _ROWS)]
    return "\n\n".join([legend, *(_signed_stack(rows, figure, axis) for rows in cuts)])


def _signed_stack(rows: Sequence[BreakdownRow], figure: Breakdown, axis: Axis) -> str:
    options = [
        *_rows([row.label for row in rows]),
        *_horizontal(axis, figure.whole, figure.unit, room=1.0),
    ]
    lines = [rf"\draw[gray] (axis cs:0,-0.6) -- (axis cs:0,{len(rows) - 0.4:g});"]
    for at, row in enumerate(rows):
        for place, start, end in placed_parts(row):
            lines.append(
                rf"\fill[{_PARTS[place % 6]}] (axis cs:{_number(start)},{at - 0.3:.1f}) rectangle "
                rf"(axis cs:{_number(end)},{at + 0.3:.1f});"
            )
        if row.whole.value is not None and math.isfinite(row.whole.value):
            x = _number(row.whole.value)
            lines.append(
                rf"\draw[thick] (axis cs:{x},{at - 0.4:.1f}) -- (axis cs:{x},{at + 0.4:.1f});"
            )
    return _picture(options, lines)


def strip_plots(figure: Strips) -> str:
    """Dots on a line for each strip, a box for the middle half behind them."""
    values = [value for strip in figure.strips for _, value in strip.values]
    if not any(map(math.isfinite, values)):
        return NOTHING
    axis = axis_of(values, figure.unit)
    kinds = list(dict.fromkeys(strip.kind for strip in figure.strips))
    cuts = [figure.strips[at : at + _ROWS] for at in range(0, len(figure.strips), _ROWS)]
    return "\n\n".join(_strip_plot(strips, figure, axis, kinds) for strips in cuts)


def _strip_plot(strips: Sequence[Strip], figure: Strips, axis: Axis, kinds: list[str]) -> str:
    names = [" · ".join(filter(None, (strip.label, strip.kind))) for strip in strips]
    options = [
        *_rows(names),
        *_horizontal(axis, figure.across, figure.unit, room=1.0),
        "xmajorgrids",
    ]
    lines = []
    for at, strip in enumerate(strips):
        place = kinds.index(strip.kind)
        colour = ("kb", "ka", "kc", "kd", "ke", "kf")[place % 6]
        finite = [value for _, value in strip.values if math.isfinite(value)]
        if box := quartiles(finite):
            low, middle, high = map(_number, box)
            lines.append(
                rf"\fill[{colour},opacity=0.18] (axis cs:{low},{at - 0.3:.1f}) rectangle "
                rf"(axis cs:{high},{at + 0.3:.1f});"
            )
            lines.append(
                rf"\draw[{colour},thick] (axis cs:{middle},{at - 0.3:.1f}) -- "
                rf"(axis cs:{middle},{at + 0.3:.1f});"
            )
        dots = " ".join(f"({_number(value)},{at})" for value in finite)
        mark = ("*", "diamond*", "square*")[place % 3]
        lines.append(
            rf"\addplot[only marks,{colour},mark={mark},mark size=1.5pt,opacity=0.8] "
            rf"coordinates {{{dots}}};"
        )
    return _picture(options, lines)


def _rows(names: Sequence[str]) -> list[str]:
    """The vertical axis of a chart with named rows, the first at the top."""
    count = len(names)
    return [
        r"width=0.72\linewidth",
        f"height={0.62 * count + 1.9:.2f}cm",
        "y dir=reverse",
        "ymin=-0.6",
        f"ymax={count - 0.4:g}",
        f"ytick={{{','.join(map(str, range(count)))}}}",
        f"yticklabels={{{','.join(f'{{{latex(name, 60)}}}' for name in names)}}}",
        r"yticklabel style={font=\scriptsize,align=right,text width=0.27\linewidth}",
    ]


def _horizontal(axis: Axis, across: str, unit: Unit, room: float) -> list[str]:
    texts = tick_texts(axis, unit)
    pad = 0.02 * (axis.high - axis.low)
    low = axis.low if room > 1 else axis.low - pad
    high = axis.low + room * (axis.high - axis.low) + pad
    return [
        f"xlabel={{{latex(with_unit(across, unit), 60)}}}",
        f"xmin={_number(low)}",
        f"xmax={_number(high)}",
        f"xtick={{{','.join(map(_number, axis.ticks))}}}",
        f"xticklabels={{{','.join(map(words, texts))}}}",
    ]


def _picture(options: Sequence[str], lines: Sequence[str]) -> str:
    settings = ",\n  ".join(options)
    body = "\n".join(lines)
    return (
        "\\begin{tikzpicture}\\begin{axis}[falter,\n  "
        f"{settings}]\n{body}\n\\end{{axis}}\\end{{tikzpicture}}"
    )


def _number(value: float) -> str:
    return f"{value:.8f}".rstrip("0").rstrip(".") if math.isfinite(value) else "nan"
