"""Floor 2: robustness quantities over items x conditions, every one an Estimate."""

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.measures.averages import (
        family_mean,
        group_average,
        macro_average,
        mean_over_tasks,
        mean_score,
        micro_average,
        random_conditions_average,
    )
    from falter.measures.brittleness import (
        PooledBrittleness,
        brittleness_by_model,
        brittleness_by_task,
    )
    from falter.measures.comparison import (
        Answers,
        ConditionDifference,
        PairComparison,
        compare_conditions,
        compare_family,
        compare_pair,
    )
    from falter.measures.consistency import (
        capability,
        consistency_curve,
        item_std,
        output_consistency,
        random_baseline,
    )
    from falter.measures.doses import (
        ComposedPair,
        IntensityCurve,
        composition,
        contrast,
        intensity_curve,
    )
    from falter.measures.drop_decomposition import DropParts, drop_parts
    from falter.measures.drops import (
        accuracy,
        accuracy_drop,
        differential_failure,
        net_relative_change,
        paired_drops,
        performance_drop_rate,
        relative_change,
    )
    from falter.measures.enterprise import (
        RatedPairs,
        RobustnessScore,
        category_difficulty,
        content_delta,
        quality_delta,
        robustness_score,
        run_summary,
        spread,
        table_summary,
    )
    from falter.measures.flips import Churn, FlipRate, churn, excess_change, flip_rate, noise_floor
    from falter.measures.missing import MissingBounds, missing_bounds, missingness
    from falter.measures.rankings import (
        rank_agreement,
        rank_sets,
        ranking_changed,
        ranking_survival,
    )
    from falter.measures.regression import RobustnessRegression, association, robustness_regression
    from falter.measures.relevance import (
        HumanEvaluation,
        PositionShift,
        corrected_rate,
        geval_score,
        human_evaluation,
        position_shift,
    )
    from falter.measures.remedies import (
        ConfirmedRemedy,
        RemedyEffect,
        RemedyScores,
        confirmed_remedy,
    )
    from falter.measures.variance import PromptShare, prompt_share, variance_components
    from falter.measures.verdicts import FamilyVerdicts, RecipeVerdict, recipe_verdicts

__all__ = [
    "Answers",
    "Churn",
    "ComposedPair",
    "ConditionDifference",
    "ConfirmedRemedy",
    "DropParts",
    "FamilyVerdicts",
    "FlipRate",
    "HumanEvaluation",
    "IntensityCurve",
    "MissingBounds",
    "PairComparison",
    "PooledBrittleness",
    "PositionShift",
    "PromptShare",
    "RatedPairs",
    "RecipeVerdict",
    "RemedyEffect",
    "RemedyScores",
    "RobustnessRegression",
    "RobustnessScore",
    "accuracy",
    "accuracy_drop",
    "association",
    "brittleness_by_model",
    "brittleness_by_task",
    "capability",
    "category_difficulty",
    "churn",
    "compare_conditions",
    "compare_family",
    "compare_pair",
    "composition",
    "confirmed_remedy",
    "consistency_curve",
    "content_delta",
    "contrast",
    "corrected_rate",
    "differential_failure",
    "drop_parts",
    "excess_change",
    "family_mean",
    "flip_rate",
    "geval_score",
    "group_average",
    "human_evaluation",
    "intensity_curve",
    "item_std",
    "macro_average",
    "mean_over_tasks",
    "mean_score",
    "micro_average",
    "missing_bounds",
    "missingness",
    "net_relative_change",
    "noise_floor",
    "output_consistency",
    "paired_drops",
    "performance_drop_rate",
    "position_shift",
    "prompt_share",
    "quality_delta",
    "random_baseline",
    "random_conditions_average",
    "rank_agreement",
    "rank_sets",
    "ranking_changed",
    "ranking_survival",
    "recipe_verdicts",
    "relative_change",
    "robustness_regression",
    "robustness_score",
    "run_summary",
    "spread",
    "table_summary",
    "variance_components",
]

__getattr__ = door(__name__)
