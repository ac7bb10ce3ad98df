"""Drawing figures for a page: one module a kind."""

from __future__ import annotations

from collections.abc import Mapping

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
from falter.report.drawing.stacks import bar_table, breakdown_table
from falter.report.drawing.strips import strip_table
from falter.report.drawing.tables import grid_table, head_numbers, heat_table
from falter.report.escape import Html
from falter.report.style import FIGURE_STYLE

__all__ = ["FIGURE_STYLE", "Scale", "drawn", "grid_table", "picture", "scales_of", "write_pictures"]


def drawn(figure: Figure, scales: Mapping[str, Scale]) -> Html:
    """The picture or table of a figure; empty for texts. `scales` are those of forest plots."""
    if isinstance(figure, Grid):
        return grid_table(figure)
    if isinstance(figure, Headline):
        return head_numbers(figure)
    if isinstance(figure, Forest):
        return forest_chart(figure, scales[figure.scale])
    if isinstance(figure, Bars):
        return bar_table(figure)
    if isinstance(figure, Breakdown):
        return breakdown_table(figure)
    if isinstance(figure, Examples):
        return example_pairs(figure)
    if isinstance(figure, HeatMap):
        return heat_table(figure)
    if isinstance(figure, Curves):
        return curves_chart(figure)
    if isinstance(figure, Strips):
        return strip_table(figure)
    return Html("")
