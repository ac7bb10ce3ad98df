"""Floor 3: reads scores, pairs them by item, calls measures; tidy export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.core.lazy_room import door

if TYPE_CHECKING:
    from falter.analysis._across_results import (
        Across,
        Concordance,
        Consistency,
    )
    from falter.analysis._analyse import analyse, analyse_tables
    from falter.analysis._answers import Answer, AnswerKind, UnreadReply, answers, unread_replies
    from falter.analysis._cells import PanelCells, table_of
    from falter.analysis._compare import Side, SidesCompared, compare_sides, pair_sides
    from falter.analysis._cut_prompts import cuts_of_run
    from falter.analysis._examples import segments
    from falter.analysis._export import score_rows, write_scores
    from falter.analysis._known_cosines import KnownCosines
    from falter.analysis._meaning import (
        MEANING_CHECKS,
        Cosine,
        Rewording,
        answer_places,
        equal_prompts,
        meaning,
    )
    from falter.analysis._parts import Evidence, tables_with_evidence
    from falter.analysis._rescore import ReadTwice, rescored_panels
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
    from falter.analysis._so_far import PanelSoFar, drops_so_far
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
        answer_figure,
        answer_of,
        brittleness_bars,
        comparison_figures,
        drops_at_once,
        main_figures,
        meaning_grid,
        meaning_losses,
        ranking_figures,
        rescore_figures,
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
    "Side",
    "SidesCompared",
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
    "compare_sides",
    "comparison_figures",
    "cuts_of_run",
    "drops_at_once",
    "drops_so_far",
    "equal_prompts",
    "main_figures",
    "meaning",
    "meaning_grid",
    "meaning_losses",
    "model_names",
    "pair_sides",
    "ranking_figures",
    "rescore_figures",
    "rescored_panels",
    "run_tables",
    "score_cell",
    "score_rows",
    "scored_cells",
    "segments",
    "subject_mean",
    "table_of",
    "tables_with_evidence",
    "unread_replies",
    "write_scores",
]

__getattr__ = door(__name__)
