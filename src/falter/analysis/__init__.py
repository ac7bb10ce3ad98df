"""Floor 3: reads scores, pairs them by item, calls measures; tidy export."""

from __future__ import annotations

from falter.analysis._across_results import (
    Across,
    Concordance,
    Consistency,
    FailureShift,
    Omnibus,
    Pooled,
    RankingChange,
    RankRange,
    RecipeRanking,
    Survival,
    Verdict,
    Worst,
)
from falter.analysis._analyse import analyse, analyse_tables
from falter.analysis._cells import PanelCells, table_of
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
from falter.analysis._settings import Settings
from falter.analysis._stack import model_names
from falter.analysis._subjects import subject_mean
from falter.analysis._table import Table, score_cell, tables

__all__ = [
    "MEANING_CHECKS",
    "Across",
    "Analysis",
    "Concordance",
    "Consistency",
    "Cosine",
    "Counts",
    "Example",
    "FailureShift",
    "GroupResult",
    "Meaning",
    "Omnibus",
    "PanelCells",
    "PanelResult",
    "Pooled",
    "RankRange",
    "RankingChange",
    "RecipeRanking",
    "RecipeResult",
    "Rewording",
    "Segment",
    "Settings",
    "Side",
    "Survival",
    "Table",
    "Verdict",
    "Worst",
    "analyse",
    "analyse_tables",
    "meaning",
    "model_names",
    "score_cell",
    "score_rows",
    "subject_mean",
    "table_of",
    "tables",
    "write_parquet",
]
