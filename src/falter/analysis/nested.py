"""Nested mappings of an analysis's numbers: tasks, models, recipes, verdicts, parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from falter.analysis.results import Analysis, PanelResult, RecipeParts, RecipeResult
from falter.records.figures import VERDICT_WORDS


def nested_panels(analysis: Analysis) -> tuple[Mapping[str, Any], ...]:
    """Return a mapping for each model on each task. Its numbers are estimates, absent ones None."""
    return tuple(map(_panel_mapping, analysis.panels))


def _panel_mapping(panel: PanelResult) -> dict[str, Any]:
    parts = {part.label: part for part in panel.parts}
    return {
        "task": panel.panel.task,
        "model": panel.model,
        "scorer": panel.panel.scorer,
        "items": panel.items,
        "answers": {
            "planned": panel.counts.cells,
            "scored": panel.counts.answers - panel.counts.unread,
            "unread": panel.counts.unread,
            "failed": panel.counts.failed,
            "missing": panel.counts.missing,
        },
        "baseline": panel.baseline,
        "average_drop": panel.micro,
        "average_drop_of_other_recipes": panel.like_these,
        "prompt_share": panel.prompt_share.share,
        "flip_rate": panel.flip_rate,
        "noise_floor": panel.noise_floor,
        "margin": panel.margin,
        "verdicts": {VERDICT_WORDS[name]: count for name, count in panel.verdicts.items()},
        "recipes": [_recipe_mapping(recipe, parts.get(recipe.label)) for recipe in panel.recipes],
        "notes": list(panel.notes),
    }


def _recipe_mapping(recipe: RecipeResult, parts: RecipeParts | None) -> dict[str, Any]:
    split = None if parts is None else parts.split
    names = ("reading", "meaning", "serving", "wording")
    return {
        "name": recipe.label,
        "people_call_it": recipe.everyday,
        "group": recipe.group,
        "same_prompts_as": list(recipe.same),
        "verdict": VERDICT_WORDS[recipe.verdict],
        "why_undecided": recipe.why_undecided,
        "drop": recipe.together,
        "drop_alone": recipe.drop,
        "score": recipe.accuracy,
        "items_changed": recipe.changed,
        "lost": recipe.lost,
        "gained": recipe.gained,
        "parts": None if split is None else dict(zip(names, split.parts, strict=True)),
    }
