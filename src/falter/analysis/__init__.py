"""Floor 3: reads scores, pairs them by item, calls measures; tidy export."""

from __future__ import annotations

from falter.analysis._analyse import analyse
from falter.analysis._export import score_rows, write_parquet
from falter.analysis._results import (
    Analysis,
    Counts,
    Example,
    GroupResult,
    PanelResult,
    RecipeResult,
    Segment,
    Side,
)

__all__ = [
    "Analysis",
    "Counts",
    "Example",
    "GroupResult",
    "PanelResult",
    "RecipeResult",
    "Segment",
    "Side",
    "analyse",
    "score_rows",
    "write_parquet",
]
