"""A heat map as a table: the colours repeat the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from falter.core.records import Estimate
from falter.figures import HeatMap, Unit
from falter.figures import numbers as n
from falter.report._escape import Html
from falter.report._markup import label, scroll, tag
from falter.report._words import excludes_zero, few, provenance, reason
from falter.report.drawing._grid import empty_note

__all__ = ["STEPS", "Shades", "heat_table", "shades_of"]

STEPS = 6
_MANY = 9


class Shades:
    """Values to a few shades, all readable in light and dark mode."""

    def __init__(self, values: Sequence[float], unit: Unit) -> None:
        self.unit = unit
        self.diverging = unit == "points" or any(v < 0 for v in values)
        if self.diverging:
            self.high = max((abs(v) for v in values), default=0.0) or 0.01
            self.low = -self.high
        else:
            self.low, self.high = min(values, default=0.0), max(values, default=0.0)

    def name(self, value: float) -> str:
        """`z` at zero, `w1` to `w6` above, `b1` to `b6` below; else from `z` up to `n6`."""
        if not self.diverging:
            span = self.high - self.low
            return self._shade("n", round(STEPS * (value - self.low) / span) if span else STEPS)
        side = "w" if value > 0 else "b"
        return self._shade(side, round(STEPS * abs(value) / self.high))

    def _shade(self, side: str, step: int) -> str:
        return f"{side}{min(step, STEPS)}" if step > 0 else "z"

    @property
    def key(self) -> tuple[str, ...]:
        """All shades from the lowest value to the highest."""
        if not self.diverging:
            return ("z", *(f"n{step}" for step in range(1, STEPS + 1)))
        better = [f"b{step}" for step in range(STEPS, 0, -1)]
        return (*better, "z", *(f"w{step}" for step in range(1, STEPS + 1)))


def shades_of(figure: HeatMap) -> Shades:
    """One scale for all cells."""
    cells = [cell for row in figure.cells for cell in row if cell is not None]
    values = [c.value for c in cells if c.value is not None and math.isfinite(c.value)]
    return Shades(values, figure.unit)


def heat_table(figure: HeatMap) -> Html:
    """The key, and the table in a box that scrolls."""
    if not figure.rows or not figure.columns:
        return empty_note()
    shades = shades_of(figure)
    rows = [
        tag(
            "tr",
            tag("th", label(name, 80), scope="row", class_="stick"),
            *[_cell(cell, name, over, shades) for cell, over in zip(cells, columns, strict=True)],
        )
        for name, cells in zip(figure.rows, figure.cells, strict=True)
        for columns in [figure.columns]
    ]
    kind = "heat many" if len(figure.columns) >= _MANY else "heat"
    table = tag("table", _head(figure), tag("tbody", *rows), class_=kind)
    return Html(_key(shades) + scroll(table, figure.title[:200]))


def _head(figure: HeatMap) -> Html:
    return tag(
        "thead",
        tag(
            "tr",
            tag("th", label(f"{figure.down} ↓", 80), scope="col", rowspan=2, class_="stick"),
            tag(
                "th",
                label(f"{figure.across} →", 80),
                scope="colgroup",
                colspan=len(figure.columns),
                class_="over",
            ),
        ),
        tag("tr", *[tag("th", label(name, 60), scope="col") for name in figure.columns]),
    )


def _cell(cell: Estimate | None, down: str, across: str, shades: Shades) -> Html:
    if cell is None:
        return tag("td", class_="void", data_label=across[:60])
    where = f"{down} → {across}"
    if cell.value is None or not math.isfinite(cell.value):
        why = f"{where}: {reason(cell.status)}\n{provenance(cell)}"
        return tag("td", tag("abbr", n.NONE, class_="none"), class_="void", title=why,
                   data_label=across[:60])  # fmt: skip
    text = n.shown(cell, shades.unit)
    p = f", p {n.p_value(cell.p_value)}" if cell.p_value is not None else ""
    clear = " clear" if shades.diverging and excludes_zero(cell) else ""
    about = f"{where}: {text.text}{p}\n{provenance(cell)}"
    scant = " scant" if few(cell) else ""
    kind = f"h-{shades.name(cell.value)}{clear}{scant}"
    return tag("td", text.value, class_=kind, title=about, data_label=across[:60])


def _key(shades: Shades) -> Html:
    """The colours with the ends of their scale, for points also in words."""
    low, high = (n.as_text(value, shades.unit) for value in (shades.low, shades.high))
    words = ("better ", " worse") if shades.unit == "points" else ("", "")
    swatches = [tag("span", class_=f"h-{name}") for name in shades.key]
    ramp = tag("span", *swatches, class_="ramp", aria_hidden="true")
    parts = [tag("span", f"{words[0]}{low} ", ramp, f" {high}{words[1]}", class_="scale")]
    clear = tag("b", "bold") + Html(": its interval excludes zero") if shades.diverging else ""
    parts += [tag("span", Html(clear))] if clear else []
    return tag("p", *parts, class_="key")
