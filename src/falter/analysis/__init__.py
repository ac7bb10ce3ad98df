"""Floor 3: reads scores, pairs them by item, calls measures; tidy export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.analysis.analyses import PanelSoFar, analyse, analyse_tables, drops_so_far
    from falter.analysis.cache import Cosine, KnownCosines
    from falter.analysis.cells import PanelCells, model_names, table_of
    from falter.analysis.drop_parts import Evidence, tables_with_evidence
    from falter.analysis.examples import (
        Answer,
        AnswerKind,
        UnreadReply,
        answers,
        segments,
        unread_replies,
    )
    from falter.analysis.export import score_rows, write_scores
    from falter.analysis.figures import analysis_figures, analysis_title, main_figures
    from falter.analysis.figures.across import brittleness_bars, ranking_figures
    from falter.analysis.figures.answer import answer_figure, answer_of
    from falter.analysis.figures.details import meaning_grid, meaning_losses
    from falter.analysis.figures.panel import drops_at_once
    from falter.analysis.meaning_checks import (
        MEANING_CHECKS,
        Rewording,
        answer_places,
        equal_prompts,
        meaning,
    )
    from falter.analysis.rescore import ReadTwice, rescore_figures, rescored_panels
    from falter.analysis.results import (
        Analysis,
        Counts,
        GroupResult,
        Meaning,
        PanelResult,
        RecipeParts,
        RecipeResult,
        Settings,
        Worst,
    )
    from falter.analysis.table import (
        OUTCOMES,
        STATUSES,
        UNREADABLE,
        Table,
        cuts_of_run,
        run_tables,
        scored_cells,
    )

__all__ = [
    "MEANING_CHECKS",
    "OUTCOMES",
    "STATUSES",
    "UNREADABLE",
    "Analysis",
    "Answer",
    "AnswerKind",
    "Cosine",
    "Counts",
    "Evidence",
    "GroupResult",
    "KnownCosines",
    "Meaning",
    "PanelCells",
    "PanelResult",
    "PanelSoFar",
    "ReadTwice",
    "RecipeParts",
    "RecipeResult",
    "Rewording",
    "Settings",
    "Table",
    "UnreadReply",
    "Worst",
    "analyse",
    "analyse_tables",
    "analysis_figures",
    "analysis_title",
    "answer_figure",
    "answer_of",
    "answer_places",
    "answers",
    "brittleness_bars",
    "cuts_of_run",
    "drops_at_once",
    "drops_so_far",
    "equal_prompts",
    "main_figures",
    "meaning",
    "meaning_grid",
    "meaning_losses",
    "model_names",
    "ranking_figures",
    "rescore_figures",
    "rescored_panels",
    "run_tables",
    "score_rows",
    "scored_cells",
    "segments",
    "table_of",
    "tables_with_evidence",
    "unread_replies",
    "write_scores",
]

__getattr__ = door(__name__)
