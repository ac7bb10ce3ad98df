"""Drawings of figures for the page, by kind of figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from falter.records.figures import (
    Bars,
    Breakdown,
    Curves,
    Examples,
    Figure,
    Forest,
    Grid,
    Headline,
    HeatMap,
    Strips,
)
from falter.report.drawing.axis import Scale, scales_of
from falter.report.drawing.curves import curves_chart
from falter.report.drawing.examples import example_pairs
from falter.report.drawing.forest import forest_chart
from falter.report.drawing.pictures import picture, write_pictures
from falter.report.drawing.stacks import bar_table, breakdown_table, strip_table
from falter.report.drawing.tables import grid_table, head_numbers, heat_table
from falter.report.escape import Html

__all__ = ["Scale", "drawn", "grid_table", "picture", "scales_of", "write_pictures"]


_DRAWINGS: Mapping[type, Callable[[Any], Html]] = {
    Grid: grid_table,
    Headline: head_numbers,
    Bars: bar_table,
    Breakdown: breakdown_table,
    Examples: example_pairs,
    HeatMap: heat_table,
    Curves: curves_chart,
    Strips: strip_table,
}


def drawn(figure: Figure, scales: Mapping[str, Scale]) -> Html:
    """Return the chart or table of a figure; empty for statements.

    `scales` are the scales of forest plots by name.
    """
    if isinstance(figure, Forest):
        return forest_chart(figure, scales[figure.scale])
    draw = _DRAWINGS.get(type(figure))
    return Html("") if draw is None else draw(figure)
