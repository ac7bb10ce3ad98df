"""Floor ½: what a report shows, as records. Whoever draws them computes nothing."""

from __future__ import annotations

from falter.figures._kinds import (
    Bar,
    Bars,
    Column,
    Curve,
    Curves,
    Example,
    Examples,
    Figure,
    Forest,
    ForestRow,
    Grid,
    Headline,
    HeadNumber,
    HeatMap,
    Segment,
    Side,
    Statement,
    Strip,
    Strips,
    Unit,
    Value,
    Verdict,
)
from falter.figures._study import Study, StudyPart
from falter.figures._walk import estimates, renamed

__all__ = [
    "Bar",
    "Bars",
    "Column",
    "Curve",
    "Curves",
    "Example",
    "Examples",
    "Figure",
    "Forest",
    "ForestRow",
    "Grid",
    "HeadNumber",
    "Headline",
    "HeatMap",
    "Segment",
    "Side",
    "Statement",
    "Strip",
    "Strips",
    "Study",
    "StudyPart",
    "Unit",
    "Value",
    "Verdict",
    "estimates",
    "renamed",
]
