"""Floor 2: robustness quantities over items x conditions, every one an Estimate."""

from typing import TYPE_CHECKING

from falter.core.lazy_room import door

if TYPE_CHECKING:
    from falter.measures._accuracy import accuracy, accuracy_drop
    from falter.measures._association import Association, association
    from falter.measures._averages import group_average, macro_average, mean_score, micro_average
    from falter.measures._churn import Churn, churn
    from falter.measures._composition import ComposedPair, composition
    from falter.measures._consistency import (
        ConsistencyCurve,
        OutputConsistency,
        capability,
        consistency_curve,
        output_consistency,
    )
    from falter.measures._contrast import contrast
    from falter.measures._deltas import (
        BothScorings,
        QualityDelta,
        RatedPairs,
        content_delta,
        quality_delta,
    )
    from falter.measures._drops import PairedDrops, paired_drops
    from falter.measures._excess import (
        ExcessChange,
        SignedChange,
        any_metric_floor,
        excess_change,
        run_variance,
        signed_change,
    )
    from falter.measures._failures import differential_failure
    from falter.measures._family_mean import family_mean
    from falter.measures._flip_rate import FlipRate, flip_rate
    from falter.measures._geval import GevalScore, geval_score
    from falter.measures._human_evaluation import HumanEvaluation, best_arms, human_evaluation
    from falter.measures._intensity import IntensityCurve, intensity_curve
    from falter.measures._item_std import ItemStd, item_std
    from falter.measures._judge_correction import corrected_rate
    from falter.measures._mean_over_tasks import mean_over_tasks
    from falter.measures._missing import MissingBounds, Missingness, missing_bounds, missingness
    from falter.measures._noise_floor import noise_floor
    from falter.measures._parts import DropParts, drop_parts
    from falter.measures._performance_drop_rate import PerformanceDropRate, performance_drop_rate
    from falter.measures._pooled_brittleness import (
        PooledBrittleness,
        brittleness_by_model,
        brittleness_by_task,
    )
    from falter.measures._positions import (
        PositionDistribution,
        PositionShift,
        position_distribution,
        position_shift,
    )
    from falter.measures._prompt_share import PromptShare, prompt_share
    from falter.measures._random_baseline import random_baseline
    from falter.measures._random_conditions import random_conditions_average
    from falter.measures._rank_agreement import RankAgreement, rank_agreement
    from falter.measures._ranking_changed import RankingChanged, ranking_changed
    from falter.measures._ranking_survival import (
        PairSurvival,
        RankingSurvival,
        RankSet,
        rank_sets,
        ranking_survival,
    )
    from falter.measures._rarefaction import rarefied_brittleness
    from falter.measures._relative_change import net_relative_change, relative_change
    from falter.measures._remedies import (
        ConfirmedRemedy,
        RemedyEffect,
        RemedyScores,
        confirmed_remedy,
    )
    from falter.measures._robustness_regression import RobustnessRegression, robustness_regression
    from falter.measures._robustness_score import (
        CategoryScore,
        OverallScores,
        RobustnessScore,
        robustness_score,
    )
    from falter.measures._summaries import (
        CategoryDifficulty,
        RunSummary,
        Spread,
        TableSummary,
        category_difficulty,
        run_summary,
        spread,
        table_summary,
    )
    from falter.measures._tables import empty_conditions
    from falter.measures._variance_components import (
        CrossedComponents,
        OnewayComponents,
        PluginComponents,
        variance_components,
    )
    from falter.measures._verdicts import FamilyVerdicts, RecipeVerdict, recipe_verdicts
    from falter.measures.comparison import (
        Answers,
        ConditionDifference,
        PairComparison,
        PairUnderConditions,
        compare_conditions,
        compare_family,
        compare_pair,
    )

__all__ = [
    "Answers",
    "Association",
    "BothScorings",
    "CategoryDifficulty",
    "CategoryScore",
    "Churn",
    "ComposedPair",
    "ConditionDifference",
    "ConfirmedRemedy",
    "ConsistencyCurve",
    "CrossedComponents",
    "DropParts",
    "ExcessChange",
    "FamilyVerdicts",
    "FlipRate",
    "GevalScore",
    "HumanEvaluation",
    "IntensityCurve",
    "ItemStd",
    "MissingBounds",
    "Missingness",
    "OnewayComponents",
    "OutputConsistency",
    "OverallScores",
    "PairComparison",
    "PairSurvival",
    "PairUnderConditions",
    "PairedDrops",
    "PerformanceDropRate",
    "PluginComponents",
    "PooledBrittleness",
    "PositionDistribution",
    "PositionShift",
    "PromptShare",
    "QualityDelta",
    "RankAgreement",
    "RankSet",
    "RankingChanged",
    "RankingSurvival",
    "RatedPairs",
    "RecipeVerdict",
    "RemedyEffect",
    "RemedyScores",
    "RobustnessRegression",
    "RobustnessScore",
    "RunSummary",
    "SignedChange",
    "Spread",
    "TableSummary",
    "accuracy",
    "accuracy_drop",
    "any_metric_floor",
    "association",
    "best_arms",
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
    "empty_conditions",
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
    "position_distribution",
    "position_shift",
    "prompt_share",
    "quality_delta",
    "random_baseline",
    "random_conditions_average",
    "rank_agreement",
    "rank_sets",
    "ranking_changed",
    "ranking_survival",
    "rarefied_brittleness",
    "recipe_verdicts",
    "relative_change",
    "robustness_regression",
    "robustness_score",
    "run_summary",
    "run_variance",
    "signed_change",
    "spread",
    "table_summary",
    "variance_components",
]

__getattr__ = door(__name__)
