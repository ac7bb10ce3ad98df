"""The chart of drops: a table whose one column is drawn, so that it reads at any width.

Places are percentages of the column, so the drawing stretches and its text does not.
"""

from __future__ import annotations

from falter.analysis import PanelResult
from falter.core.records import Estimate
from falter.report import _numbers as n
from falter.report._escape import Html
from falter.report._markup import cell, dash, head, label, number, tag
from falter.report._scale import Scale
from falter.report._words import Line, excludes_zero, lines, provenance, turned

__all__ = ["drop_chart", "legend"]

_DIAMOND = "M0 -6.5L6.5 0L0 6.5L-6.5 0Z"
_ARROWS = {"left": "M0 0L6 -4V4Z", "right": "M0 0L-6 -4V4Z"}


def drop_chart(panel: PanelResult, scale: Scale) -> Html:
    """One row a recipe: dot, interval, numbers; groups, and the averages at the foot."""
    rows = [_row(line, panel, scale) for line in lines(panel)]
    bodies = [tag("tbody", *group) for group in _grouped(panel, rows)]
    return tag("table", _head(panel, scale), *bodies, class_="chart")


def _grouped(panel: PanelResult, rows: list[Html]) -> list[list[Html]]:
    """The rows cut before every group and before the averages."""
    out: list[list[Html]] = []
    last = ""
    for line, row in zip(lines(panel), rows, strict=True):
        if line.kind == "group" or (line.kind == "total" and last != "total") or not out:
            out.append([])
        out[-1].append(row)
        last = line.kind
    return out


def _head(panel: PanelResult, scale: Scale) -> Html:
    interval = f"{n.level(panel.micro.level)} interval"
    return tag(
        "thead",
        tag(
            "tr",
            head("Recipe"),
            head(_axis(scale), class_="plot", aria_label="drop in points, drawn"),
            head("Drop", tag("span", " [", interval, "]", class_="ci"), class_="r"),
            head("p", tag("span", " Holm", class_="ci"), class_="r wide"),
            head("Changed", class_="r wide", title="items whose prompt the recipe really changed"),
            head(
                "Lost / gained",
                class_="r wide",
                title="items whose answer turned wrong / turned right",
            ),
        ),
    )


def _row(line: Line, panel: PanelResult, scale: Scale) -> Html:
    recipe, drop = line.recipe, line.drop
    name = tag("th", label(line.label), scope="row" if line.kind != "group" else "rowgroup")
    picture = cell(_picture(line, panel.micro, scale), class_="plot")
    if drop is None:
        return tag("tr", name, picture, cell(), *[cell(class_="wide")] * 3, class_=line.kind)
    value = cell(number(drop, "points"), class_=f"r {_verdict(drop)}")
    if recipe is None:
        return tag("tr", name, picture, value, *[cell(class_="wide")] * 3, class_=line.kind)
    p = n.p_value(recipe.p_holm) if recipe.p_holm is not None else dash(drop)
    return tag(
        "tr",
        name,
        picture,
        value,
        cell(p, class_="r wide"),
        cell(n.whole(recipe.counts.changed), class_="r wide"),
        cell(turned(recipe, " / "), class_="r wide"),
        class_=line.kind,
    )


def _verdict(drop: Estimate) -> str:
    if drop.value is None or not excludes_zero(drop):
        return "open"
    return "worse" if drop.value > 0 else "better"


def _picture(line: Line, average: Estimate, scale: Scale) -> Html:
    """The drawing of a row: grid, average, interval, and a dot or a diamond."""
    ground = [_upright(scale.at(t), "grid") for t in scale.ticks if t]
    ground.append(_upright(scale.at(0.0), "zero"))
    if average.value is not None:
        ground.append(_upright(scale.at(average.value), "average"))
    drop = line.drop
    if drop is None or drop.value is None:
        return tag("svg", *ground, aria_hidden="true")
    text = n.shown(drop, "points").text
    about = f"{line.label}: drop {text} points"
    return tag(
        "svg",
        tag("title", _title(about, drop)),
        tag("rect", width="100%", height="100%", fill="transparent"),
        *ground,
        *_whisker(drop, scale),
        _mark(line, drop.value, drop, scale),
        role="img",
        aria_label=about,
        class_=_verdict(drop),
    )


def _title(about: str, drop: Estimate) -> str:
    return f"{about}\n{provenance(drop)}"


def _whisker(drop: Estimate, scale: Scale) -> list[Html]:
    if drop.low is None or drop.high is None:
        return []
    ends = scale.at(drop.low), scale.at(drop.high)
    out = [_line(*ends, "whisker")]
    for value, end, side in ((drop.low, ends[0], "left"), (drop.high, ends[1], "right")):
        if scale.beyond(value):
            out.append(_placed(end, tag("path", d=_ARROWS[side], class_="arrow")))
    return out


def _mark(line: Line, value: float, drop: Estimate, scale: Scale) -> Html:
    if line.recipe is None:
        return _placed(scale.at(value), tag("path", d=_DIAMOND, class_="dot"))
    return tag("circle", cx=_share(scale.at(value)), cy="50%", r=4.5, class_="dot")


def _placed(at: float, shape: Html) -> Html:
    """A shape of its own size at a place that stretches."""
    return tag("svg", shape, x=_share(at), y="50%", overflow="visible", class_="at")


def _upright(at: float, kind: str) -> Html:
    x = _share(at)
    return tag("line", x1=x, x2=x, y1=0, y2="100%", class_=kind)


def _line(start: float, end: float, kind: str) -> Html:
    return tag("line", x1=_share(start), x2=_share(end), y1="50%", y2="50%", class_=kind)


def _share(at: float) -> str:
    return f"{100 * at:.3f}%"


def _axis(scale: Scale) -> Html:
    """The ticks; on narrow screens only zero and the far end keep their numbers."""
    far = max(scale.ticks, key=abs, default=0.0)
    marks = []
    for tick in scale.ticks:
        text = n.points(tick).removesuffix(".0")
        kind = None if tick in (0.0, far) else "wide"
        marks.append(tag("text", text, x=_share(scale.at(tick)), y="75%", class_=kind))
    return tag("svg", *marks, aria_hidden="true")


def legend() -> Html:
    """What the marks mean."""
    dot = tag("circle", cx=13, cy=8, r=4.5, class_="dot")
    bar = tag("line", x1=1, x2=25, y1=8, y2=8, class_="whisker")
    diamond = tag("svg", tag("path", d=_DIAMOND, class_="dot"), x=13, y=8, class_="at")
    line = tag("line", x1=13, x2=13, y1=0, y2=16, class_="average")
    keys = [
        (bar + dot, "worse", "worse"),
        (bar + dot, "better", "better"),
        (bar + dot, "open", "undecided: interval holds zero"),
        (diamond, "open", "average of several recipes"),
        (line, "open", "average of all"),
    ]
    return tag(
        "ul",
        *[
            tag("li", tag("svg", Html(shapes), class_=kind, aria_hidden="true"), text)
            for shapes, kind, text in keys
        ],
        class_="legend",
    )
