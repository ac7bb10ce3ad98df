"""Every drop of several models and tasks in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from falter.analysis._results import Analysis, PanelResult
from falter.analysis.figures._phrases import listed, noun
from falter.figures import VERDICT_WORDS, Figure, HeatMap
from falter.figures import numbers as n

__all__ = ["drops_at_once"]


def drops_at_once(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Panels × recipes, the recipe that costs most first; nothing for a single panel.

    The intervals are those that hold for all recipes of a panel, so bold means a verdict. Each
    analysis comes with how it was asked, or an empty text.
    """
    panels = [
        (f"{panel.title}, {how}" if how else panel.title, panel)
        for how, analysis in analyses
        for panel in analysis.panels
        if panel.recipes and not panel.has_no_baseline
    ]
    if len(panels) < 2:
        return ()
    costs: dict[str, list[float]] = {}
    for _, panel in panels:
        for recipe in panel.recipes:
            costs.setdefault(recipe.label, []).append(recipe.drop.value or 0.0)
    labels = sorted(costs, key=lambda label: -fmean(costs[label]))
    rows = []
    for _, panel in panels:
        together = {recipe.label: recipe.together for recipe in panel.recipes}
        rows.append(tuple(together.get(label) for label in labels))
    return (
        HeatMap(
            name="drops-at-once",
            title="All drops at once",
            text=(_conclusion([panel for _, panel in panels]),),
            down="model and task",
            across="recipe",
            rows=tuple(title for title, _ in panels),
            columns=tuple(labels),
            cells=tuple(rows),
        ),
    )


def _conclusion(panels: Sequence[PanelResult]) -> str:
    """How many drops have which verdict."""
    totals = {
        verdict: sum(panel.verdicts[verdict] for panel in panels) for verdict in panels[0].verdicts
    }
    kinds = [
        f"{n.whole(count)} {VERDICT_WORDS[verdict]}" for verdict, count in totals.items() if count
    ]
    return (
        f"Of {noun(sum(totals.values()), 'drop')}: {listed(kinds)}. Intervals and p hold for all "
        "recipes of a panel at once."
    )
