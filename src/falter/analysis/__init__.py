"""Floor 3: reads scores, pairs them by item, calls measures; tidy export."""

from __future__ import annotations

from falter.analysis._across_results import (
    Across,
    Concordance,
    Consistency,
    FailureShift,
    ModelPair,
    Omnibus,
    Pooled,
    RankingChange,
    RankRange,
    RecipeRanking,
    Survival,
)
from falter.analysis._analyse import analyse, analyse_tables
from falter.analysis._answers import Answer, AnswerKind, UnreadReply, answers, unread_replies
from falter.analysis._cells import PanelCells, table_of
from falter.analysis._export import score_rows, write_scores
from falter.analysis._meaning import (
    MEANING_CHECKS,
    Cosine,
    Rewording,
    equal_prompts,
    meaning,
)
from falter.analysis._results import (
    Analysis,
    Counts,
    GroupResult,
    Meaning,
    PanelResult,
    RecipeParts,
    RecipeResult,
    Worst,
)
from falter.analysis._settings import Settings
from falter.analysis._stack import model_names
from falter.analysis._subjects import subject_mean
from falter.analysis._table import (
    OUTCOMES,
    STATUSES,
    UNREADABLE,
    Table,
    run_tables,
    score_cell,
    scored_cells,
)
from falter.analysis.figures import (
    analysis_figures,
    analysis_title,
    brittleness_bars,
    main_figures,
    meaning_grid,
    meaning_losses,
    ranking_figures,
)

__all__ = [
    "MEANING_CHECKS",
    "OUTCOMES",
    "STATUSES",
    "UNREADABLE",
    "Across",
    "Analysis",
    "Answer",
    "AnswerKind",
    "Concordance",
    "Consistency",
    "Cosine",
    "Counts",
    "FailureShift",
    "GroupResult",
    "Meaning",
    "ModelPair",
    "Omnibus",
    "PanelCells",
    "PanelResult",
    "Pooled",
    "RankRange",
    "RankingChange",
    "RecipeParts",
    "RecipeRanking",
    "RecipeResult",
    "Rewording",
    "Settings",
    "Survival",
    "Table",
    "UnreadReply",
    "Worst",
    "analyse",
    "analyse_tables",
    "analysis_figures",
    "analysis_title",
    "answers",
    "brittleness_bars",
    "equal_prompts",
    "main_figures",
    "meaning",
    "meaning_grid",
    "meaning_losses",
    "model_names",
    "ranking_figures",
    "run_tables",
    "score_cell",
    "score_rows",
    "scored_cells",
    "subject_mean",
    "table_of",
    "unread_replies",
    "write_scores",
]
