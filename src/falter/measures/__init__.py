"""Robustness measures of items x conditions tables; their numbers are `Estimate` records."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

DOCUMENTED = {
    "averages": (
        "drop_quantile family_mean group_average macro_average mean_over_tasks mean_score "
        "micro_average random_conditions_average"
    ),
    "brittleness": "brittleness_by_model brittleness_by_task",
    "comparison": "compare_conditions compare_family compare_pair",
    "consistency": (
        "capability consistency_curve item_std output_consistency random_baseline steadiness "
        "steadiness_beside_others"
    ),
    "doses": "composition contrast intensity_curve",
    "drop_decomposition": "drop_parts",
    "drops": (
        "accuracy accuracy_drop differential_failure paired_drops performance_drop_rate "
        "relative_change"
    ),
    "enterprise": (
        "category_difficulty content_delta quality_delta robustness_score run_summary spread "
        "table_summary"
    ),
    "flips": "churn excess_change flip_rate noise_floor",
    "missing": "missing_bounds missingness",
    "rankings": "rank_agreement rank_sets ranking_changed ranking_survival",
    "regression": "association robustness_regression",
    "relevance": (
        "arm_difference corrected_rate geval_score human_evaluation position_shift score_change"
    ),
    "remedies": "confirmed_remedy",
    "variance": "prompt_share variance_components",
    "verdicts": "recipe_verdicts",
}
"""The functions that docs/measures.md explains and `falter list measures` lists, by module."""


def measures() -> dict[str, Callable[..., Any]]:
    """Return every documented measure by its name."""
    found = {
        name: getattr(import_module(f"falter.measures.{module}"), name)
        for module, names in DOCUMENTED.items()
        for name in names.split()
    }
    return dict(sorted(found.items()))
