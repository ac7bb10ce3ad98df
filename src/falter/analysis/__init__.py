"""Floor 3: reads scores, pairs them by item, calls measures; tidy export."""

from __future__ import annotations

from falter.analysis._analyse import analyse
from falter.analysis._export import score_rows, write_parquet
from falter.analysis._meaning import MEANING_CHECKS, Cosine, Rewording, meaning
from falter.analysis._results import (
    Analysis,
    Counts,
    Example,
    GroupResult,
    Meaning,
    PanelResult,
    RecipeResult,
    Segment,
    Side,
)

__all__ = [
    "MEANING_CHECKS",
    "Analysis",
    "Cosine",
    "Counts",
    "Example",
    "GroupResult",
    "Meaning",
    "PanelResult",
    "RecipeResult",
    "Rewording",
    "Segment",
    "Side",
    "analyse",
    "meaning",
    "score_rows",
    "write_parquet",
]
